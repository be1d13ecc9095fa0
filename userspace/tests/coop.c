// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads of which one runs at a time.
 *
 * Each waits for its own semaphore, which whoever had the turn before posts. Now and
 * then one thread has no turn for a while, unless the others are done: what it was in
 * the middle of stays as it is, while they go far.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "coop.h"
#include "random.h"

/* A thread is left out once in so many turns, for at most so many. */
enum { RARE = 64, LONG = 1024 };

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __real_usleep(useconds_t us);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_usleep(useconds_t us);

static struct {
	void (*fn)(unsigned int thread);
	sem_t turn[COOP_THREADS];
	bool done[COOP_THREADS];
	unsigned int num, left;
	unsigned int out;	/* the thread that is left out */
	uint64_t turns;		/* for so many */
} coop;

/* Of this thread, and one more: 0 for those that are not ours */
static __thread unsigned int number;

static unsigned int next(void)
{
	unsigned int i = random_u64() % coop.num;

	if (coop.turns) {
		coop.turns--;
	} else if (random_u64() % RARE == 0) {
		coop.out = random_u64() % coop.num;
		coop.turns = random_u64() % LONG;
	}
	while (coop.done[i] || (coop.turns && i == coop.out && coop.left > 1))
		i = (i + 1) % coop.num;
	return i;
}

static void wait_turn(void)
{
	while (sem_wait(&coop.turn[number - 1]))
		assert(errno == EINTR);
}

void coop_yield(void)
{
	unsigned int to;

	if (!number)
		return;
	to = next();
	if (to == number - 1)
		return;
	sem_post(&coop.turn[to]);
	wait_turn();
}

static void *run(void *arg)
{
	number = (unsigned int)(uintptr_t)arg + 1;
	wait_turn();
	coop.fn(number - 1);
	coop.done[number - 1] = true;
	if (--coop.left)
		sem_post(&coop.turn[next()]);
	number = 0;
	return NULL;
}

void coop_run(uint64_t first, void (*fn)(unsigned int thread), unsigned int num)
{
	pthread_t thread[COOP_THREADS];
	unsigned int i;

	assert(num <= COOP_THREADS);
	seed = first;
	coop.fn = fn;
	coop.num = num;
	coop.left = num;
	coop.turns = 0;
	for (i = 0; i < num; i++) {
		coop.done[i] = false;
		sem_init(&coop.turn[i], 0, 0);
	}
	for (i = 0; i < num; i++)
		assert(!pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i));
	sem_post(&coop.turn[next()]);
	for (i = 0; i < num; i++)
		pthread_join(thread[i], NULL);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	if (!number)
		return __real_pthread_mutex_lock(lock);
	coop_yield();
	while (__real_pthread_mutex_trylock(lock))
		coop_yield();
	return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
	coop_yield();
	return __real_pthread_mutex_trylock(lock);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	int err = __real_pthread_mutex_unlock(lock);

	coop_yield();
	return err;
}

int __wrap_usleep(useconds_t us)
{
	if (!number)
		return __real_usleep(us);
	coop_yield();
	return 0;
}
