// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that poll a CQ without a lock, as nothing there has to be translated.
 *
 * Owns the list of these threads. Before a flow posts with tags for the first time, its CQ
 * becomes active, and who begins to poll from then on takes the lock. shim_pollers_wait()
 * returns when the polls are over that began before, whose completions nobody translates. So
 * no completion of a tag is ever in the hands of a thread that does not hold the lock.
 *
 * Each thread has a number of its own, odd while it polls so. It writes the number and
 * then looks whether the CQ is active; who waits has made it active and then looks at
 * the number. The fence between the two is membarrier() for all threads at once, so that
 * polling costs none. Where the kernel refuses membarrier(), no thread polls without the
 * lock any more.
 *
 * Lock: pollers.lock protects the list, and whether a thread is on it. It is taken inside of
 * shim_class_lock, and nothing is taken inside of it.
 *
 * Threads of the program add themselves. Threads of the program and the helper wait.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <unistd.h>

#include "guard.h"
#include "poller.h"
#include "shim.h"

enum {
	/* Microseconds between two looks at a poll that goes on. */
	LOOK_US = 20,
	/* No processor keeps a store from the others for so many microseconds. */
	STORE_US = 10000,
};

__thread struct shim_poller shim_poller;
enum shim_polls shim_polls;

static struct {
	LIST_HEAD(, shim_poller) list;
	pthread_mutex_t lock;
	pthread_key_t key;
	pthread_once_t once;
	bool ready;
} pollers = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.once = PTHREAD_ONCE_INIT,
	.list = LIST_HEAD_INITIALIZER(pollers.list),
};

/* Then no poll without the lock begins any more. */
static bool refuses(int cmd)
{
	enum shim_polls free = SHIM_POLLS_FREE;

	if (!shim_sys.membarrier(cmd))
		return false;
	__atomic_compare_exchange_n(&shim_polls, &free, SHIM_POLLS_END, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return true;
}

/* The thread ends. */
static void forget_poller(void *arg)
{
	struct shim_poller *p = arg;

	/* It may end in a poll: who waits for the end of that has the lock. */
	__atomic_store_n(&p->turn, p->turn + p->turn % 2, __ATOMIC_RELEASE);
	shim_lock(&pollers.lock);
	if (p->known)
		LIST_REMOVE(p, list);
	p->known = false;
	shim_unlock(&pollers.lock);
}

/**
 * shim_is_in_call - tell whether the present thread is in the middle of a call of the shim
 *
 * A signal handler may ask.
 *
 * Return: true if it holds a lock of ours, or if who holds one waits for its poll.
 */
bool shim_is_in_call(void)
{
	return shim_is_inside() || shim_poller.turn % 2;
}

/**
 * shim_is_nested - tell whether a signal handler calls in the middle of another call
 *
 * It cannot wait for locks that its own thread holds, so it has to be refused. The first one is
 * told of on stderr.
 *
 * Return: true if so.
 */
bool shim_is_nested(void)
{
	static bool told;

	if (!shim_is_in_call())
		return false;
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		shim_warn("a signal handler uses verbs in the middle of a verbs call: refused");
	return true;
}

/**
 * shim_is_refused - refuse what a signal handler calls in the middle of another call
 *
 * Return: true if it does so; errno tells then.
 */
bool shim_is_refused(void)
{
	if (!shim_is_nested())
		return false;
	errno = EDEADLK;
	return true;
}

static void create_key(void)
{
	pollers.ready = !pthread_key_create(&pollers.key, forget_poller);
}

static bool prepare_thread(struct shim_poller *p)
{
	pthread_once(&pollers.once, create_key);
	return pollers.ready && !refuses(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
	       !refuses(MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
	       !pthread_setspecific(pollers.key, p);
}

/**
 * shim_poller_add - the present thread will poll without a lock
 *
 * Who finds the list without it makes its CQ active before: pollers.lock orders that. A signal
 * handler that polls meanwhile finds the thread in a call.
 *
 * Return: false if it cannot.
 */
bool shim_poller_add(void)
{
	struct shim_poller *p = &shim_poller;

	if (p->known || __atomic_load_n(&shim_polls, __ATOMIC_RELAXED) != SHIM_POLLS_FREE)
		return false;
	shim_lock(&pollers.lock);
	p->known = prepare_thread(p);
	if (p->known)
		LIST_INSERT_HEAD(&pollers.list, p, list);
	shim_unlock(&pollers.lock);
	return p->known;
}

/**
 * shim_pollers_wait - wait for the end of all polls without a lock that go on now
 *
 * shim_class_lock is held, and no lock behind it.
 */
void shim_pollers_wait(void)
{
	struct shim_poller *p;
	uint32_t turn;

	shim_lock(&pollers.lock);
	/*
	 * Pairs with the fence of shim_poll_begin(). It may be refused from some time on, as
	 * by a filter for system calls.
	 */
	if (!LIST_EMPTY(&pollers.list) && shim_polls != SHIM_POLLS_ENDED &&
	    refuses(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
		usleep(STORE_US);
		__atomic_store_n(&shim_polls, SHIM_POLLS_ENDED, __ATOMIC_RELAXED);
	}
	LIST_FOREACH(p, &pollers.list, list) {
		/* Pairs with the releases in shim_poll_end() and forget_poller(). */
		turn = __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE);
		while (turn % 2 && __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE) == turn)
			usleep(LOOK_US);
	}
	shim_unlock(&pollers.lock);
}

/**
 * shim_pollers_lock - let the list be as it is
 *
 * For fork().
 */
void shim_pollers_lock(void)
{
	pthread_mutex_lock(&pollers.lock);
}

/**
 * shim_pollers_unlock - the opposite of shim_pollers_lock()
 */
void shim_pollers_unlock(void)
{
	pthread_mutex_unlock(&pollers.lock);
}

/**
 * shim_pollers_forked - the child has one thread
 */
void shim_pollers_forked(void)
{
	LIST_INIT(&pollers.list);
	if (shim_poller.known)
		LIST_INSERT_HEAD(&pollers.list, &shim_poller, list);
	if (!LIST_EMPTY(&pollers.list))
		refuses(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}
