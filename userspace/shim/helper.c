// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helper threads: they post what is held while the program makes no calls.
 *
 * While something is held, the program's own calls post what may be posted. The helper does
 * it when there are none. Each member has one helper, which starts when something has to
 * wait and sleeps while nothing does. It ends after a while without anything to do: a
 * process whose other threads are all gone ends by itself, whether it has closed its devices
 * or not.
 *
 * At every unlock shim_member.waiting says whether something is held. When that begins, the
 * thread that unlocks wakes the helper. The kernel forgets who wants no grants, so that
 * thread also tells the kernel whenever grants are wanted again.
 *
 * Locks: shim_members.lock protects whether there is a helper, and its sleep. Who wakes the
 * helper has unlocked the member. The helper takes shim_member.lock to serve, and waits for
 * the kernel without a lock.
 *
 * helper() and what it calls run in the helper. The rest runs in threads of the program,
 * shim_unlock_and_drive() in both.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "guard.h"
#include "helper.h"
#include "member.h"
#include "post.h"
#include "qp.h"
#include "reap.h"
#include "registry.h"
#include "shim.h"
#include "soft.h"

/* How long the helper waits for the kernel, in microseconds. */
enum {
	WAIT_GRANT = 100000,	/* only for a grant */
	WAIT_COMPLETION = 100,	/* for the room that a completion makes */
	WAIT_PROGRAM = 1000,	/* if the program polls, or to tell what is done */
};

/* Seconds without anything to do after which it ends. */
enum { IDLE = 1 };

/* Bytes: many times what the calls of the provider and the page of soft completions need */
enum { STACK = 256 * 1024 };

static bool holds(const struct shim_member *m)
{
	return __atomic_load_n(&m->held, __ATOMIC_RELAXED);
}

/* Look at the page for a while, no longer than @w; true if there is something new. */
static bool spin(struct shim_member *m, const struct riso_ioc_wait *w)
{
	uint64_t most = w->timeout_us * 1000ULL;
	struct riso_ioc_wait ask = *w;
	uint64_t end;

	if (!m->spin_ns)
		return false;
	ask.timeout_us = 0;
	shim_wait_kernel(m, &ask);
	end = shim_sys.now() + (m->spin_ns < most ? m->spin_ns : most);
	do {
		if (shim_has_news(m->kpage, w->seq, w->mode))
			return true;
	} while (holds(m) && shim_sys.now() < end);
	return false;
}

static struct riso_ioc_wait known(struct shim_member *m, uint32_t timeout_us)
{
	int dir;

	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		m->asked[dir] = m->upage->dir[dir].want;
	return (struct riso_ioc_wait) {
		.seq = { m->seq[RISO_USER_TX], m->seq[RISO_USER_RX] },
		.mode = m->mode,
		.timeout_us = timeout_us,
	};
}

/* How long the helper shall wait, 0 for no more. */
static uint32_t how_long(const struct shim_member *m)
{
	uint32_t timeout = WAIT_GRANT;
	const struct shim_qp *f;

	if (!m->held)
		return 0;
	TAILQ_FOREACH(f, &m->busy, busy) {
		if (!f->sq.signaled && !f->full)
			continue;
		if (f->full && f->cq->unseen > 1)
			return WAIT_COMPLETION;
		timeout = WAIT_PROGRAM;
	}
	return timeout;
}

/* Take completions and grants, and post; how long to wait then, 0 for no more. */
static uint32_t serve(struct shim_member *m, struct riso_ioc_wait *w)
{
	struct shim_qp *f;

	shim_lock(&m->lock);
	m->round++;
	TAILQ_FOREACH(f, &m->busy, busy) {
		if ((!f->sq.signaled && !f->full) || f->cq->round == m->round)
			continue;
		f->cq->round = m->round;
		f->cq->unseen++;
		shim_comp_reap(f->cq);
		shim_cq_update(f->cq);
	}
	shim_queue_drive(m);
	m->waiting = m->held;
	*w = known(m, how_long(m));
	shim_unlock(&m->lock);
	return w->timeout_us;
}

/* Sleep until there may be something to do; false after IDLE without. */
static bool wait_idle(struct shim_member *m)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE;
	return pthread_cond_timedwait(&m->wake, &shim_members.lock, &until) != ETIMEDOUT;
}

/* Lives until nothing was held for IDLE, or the last context is closed. */
static void *helper(void *arg)
{
	struct shim_member *m = arg;
	struct riso_ioc_wait w;

	shim_lock(&shim_members.lock);
	while (m->refs) {
		if (!holds(m)) {
			if (!wait_idle(m) && !holds(m))
				break;
			continue;
		}
		shim_unlock(&shim_members.lock);
		if (shim_member_stale(m))
			shim_qps_refresh(m);
		if (serve(m, &w) && !spin(m, &w))
			shim_wait_kernel(m, &w);
		/* Nothing wakes it then: a provider that refuses may take it some other time. */
		if (__atomic_load_n(&m->gone, __ATOMIC_RELAXED))
			usleep(w.timeout_us);
		shim_lock(&shim_members.lock);
	}
	/* Who holds something from here on finds no helper, and starts one. */
	m->started = false;
	if (!m->refs)
		shim_free_member(m);
	shim_unlock(&shim_members.lock);
	return NULL;
}

/* Is this a thread that others of its processor wait for until it sleeps? */
static bool is_real_time(void)
{
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

/*
 * Signals are for the program's own threads. One of real-time priority may wait for what
 * the helper posts without sleeping: the helper is not of its kind, so that the kernel
 * lets it have a part of the time.
 */
static bool start_helper(struct shim_member *m)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	size_t size;
	int err;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (is_real_time())
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_getstacksize(&attr, &size);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = shim_sys.create_thread(&thread, &attr, helper, m);
	if (err == EINVAL) {
		/* The program's thread-local variables are on it, too. */
		pthread_attr_setstacksize(&attr, size);
		err = shim_sys.create_thread(&thread, &attr, helper, m);
	}
	if (!err)
		pthread_setname_np(thread, "rdma_isolate");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return !err;
}

/* False if there cannot be a helper, so that nothing may wait; its list is locked. */
static bool have_helper(struct shim_member *m)
{
	if (!m->started)
		m->started = start_helper(m);
	__atomic_store_n(&m->failed, !m->started, __ATOMIC_RELAXED);
	return m->started;
}

/* False if nothing may wait. */
static bool wake_helper(struct shim_member *m)
{
	bool failed, was_failed;

	shim_lock(&shim_members.lock);
	was_failed = m->failed;
	failed = was_failed || !have_helper(m);
	pthread_cond_signal(&m->wake);
	shim_unlock(&shim_members.lock);
	if (failed && !was_failed) {
		shim_qps_no_thread(m);
		/* They ask again with the next queue pair, for which there may be one. */
		__atomic_store_n(&m->refused, true, __ATOMIC_RELAXED);
	}
	return !failed;
}

/* Post once more; true if something is held still. */
static bool drive(struct shim_member *m)
{
	bool held;

	shim_lock(&m->lock);
	shim_queue_drive(m);
	held = m->held;
	m->waiting = held;
	shim_unlock(&m->lock);
	return held;
}

/* Grants are wanted, and the kernel does not know. */
static bool must_ask(const struct shim_member *m)
{
	int dir;

	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		if (!m->asked[dir] && m->upage->dir[dir].want)
			return true;
	return false;
}

/**
 * shim_unlock_and_drive - unlock a member where something may be held now
 * @m: the member
 */
void shim_unlock_and_drive(struct shim_member *m)
{
	bool begins = m->held && !m->waiting;
	bool asks = must_ask(m);
	struct riso_ioc_wait w;
	int saved;

	m->waiting = m->held;
	if (asks)
		w = known(m, 0);
	shim_unlock(&m->lock);
	if (!begins && !asks)
		return;
	saved = errno;
	if (asks) {
		shim_wait_kernel(m, &w);
		begins = drive(m) && begins;
	}
	if (begins && !wake_helper(m))
		drive(m);
	errno = saved;
}

/* Try once more to have a helper where there could be none; false if there still cannot. */
static bool retry_helper(struct shim_member *m)
{
	bool failed;

	shim_lock(&shim_members.lock);
	failed = m->failed && !have_helper(m);
	shim_unlock(&shim_members.lock);
	return !failed;
}

/**
 * shim_ask_and_drive - have a flow governed, and post what its class lets go out
 * @f: the flow, whose member is not locked; shim_class_lock is held
 */
void shim_ask_and_drive(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;

	shim_ask_kernel_and_lock(f, !m->attached || retry_helper(m));
	if (m->held)
		shim_queue_drive(m);
	shim_unlock_and_drive(m);
}

/* Does it hold something, and may its class have changed? */
static bool is_stale(void *value, void *arg)
{
	struct shim_qp *f = value;

	return f->ctx->m == arg && !shim_qp_is_fresh(f) && shim_qp_holds(f);
}

/**
 * shim_qps_refresh - ask for the classes of flows that hold something
 * @m: the member, not locked
 *
 * For those that the program does not post to. A flow leaves the map under
 * shim_class_lock, so those that are found stay.
 */
void shim_qps_refresh(struct shim_member *m)
{
	/* Before the kernel is asked, so that a change after its answer is noticed. */
	uint32_t classes = __atomic_load_n(&shim_member_kpage(m)->classes,
					   __ATOMIC_ACQUIRE);
	struct shim_qp *f;
	int saved = errno;

	shim_lock(&shim_class_lock);
	while ((f = shim_map_search(&shim_qps, is_stale, m)))
		shim_ask_and_drive(f);
	__atomic_store_n(&m->classes, classes, __ATOMIC_RELAXED);
	shim_unlock(&shim_class_lock);
	errno = saved;
}
