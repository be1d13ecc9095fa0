// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that hold locks of the shim.
 *
 * Owns the count of locks that a thread holds, how threads wait for one, and which processors the
 * process began with. A thread cannot be
 * cancelled while it holds one, so it leaves nothing locked.
 *
 * The count is the thread's own, and the number of those that wait is atomic, so there is no lock
 * besides. Runs in any thread.
 */
#include <sched.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

enum {
	/* Nanoseconds: longer than it takes to post a message of 1 MB in chunks of 4 KB */
	SPIN_NS = 20000,
	/* Pauses of the processor between two looks: 0.1 to 0.5 us */
	PAUSES = 8,
};

/* The processors that the process began with, none if there are more than 1,024 */
static cpu_set_t first_cpus;

/* Who has a lock cannot run while somebody looks for it. */
static bool has_one_cpu;

/* How many threads look for a lock that is taken, any lock */
uint32_t shim_waiters;

/* How many locks this thread holds, and whether it could be cancelled without. */
static __thread unsigned int inside __attribute__((tls_model("initial-exec")));
static __thread int cancel_state __attribute__((tls_model("initial-exec")));

/**
 * shim_enter - this thread will hold a lock
 *
 * It may not be cancelled then, though providers make system calls under our locks.
 */
void shim_enter(void)
{
	if (!inside++)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
}

/**
 * shim_leave - it holds it no more
 *
 * A signal handler may come once the count is 0, and note that it cannot be cancelled.
 */
void shim_leave(void)
{
	int state = cancel_state;

	if (!--inside)
		pthread_setcancelstate(state, NULL);
}

/**
 * shim_is_inside - tell whether this thread holds a lock
 *
 * Return: true if so.
 */
bool shim_is_inside(void)
{
	return inside;
}

static uint64_t read_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Leave the processor's memory to others. */
static void pause_shortly(void)
{
	int i;

	for (i = 0; i < PAUSES; i++) {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#endif
	}
}

/*
 * Before the program gives its threads processors of their own. A thread that has one already may
 * load the shim, so ask for those of the main thread.
 */
static void __attribute__((constructor)) note_cpus(void)
{
	if (sched_getaffinity(getpid(), sizeof(first_cpus), &first_cpus))
		CPU_ZERO(&first_cpus);
	has_one_cpu = CPU_COUNT(&first_cpus) == 1;
}

/**
 * shim_use_first_cpus - let this thread run where the process began
 *
 * The thread that has started it may have a processor of its own.
 */
void shim_use_first_cpus(void)
{
	if (CPU_COUNT(&first_cpus))
		sched_setaffinity(0, sizeof(first_cpus), &first_cpus);
}

static bool try_shortly(pthread_mutex_t *lock)
{
	pause_shortly();
	return !pthread_mutex_trylock(lock);
}

/*
 * Look for a lock for a while. True if it is locked now. Who only lets others go first finds it free
 * the first time, and has nobody wait for that.
 */
static bool spin_for(pthread_mutex_t *lock)
{
	uint64_t end = read_clock() + SPIN_NS;
	bool locked;

	if (try_shortly(lock))
		return true;
	__atomic_add_fetch(&shim_waiters, 1, __ATOMIC_RELAXED);
	do {
		locked = try_shortly(lock);
	} while (!locked && read_clock() < end);
	__atomic_sub_fetch(&shim_waiters, 1, __ATOMIC_RELAXED);
	return locked;
}

/**
 * shim_lock_taken - lock what somebody else has locked, or waits for
 * @lock: the lock
 *
 * Most locks are held for less time than it takes to sleep and to be woken, so this looks for a
 * while before it sleeps.
 */
void shim_lock_taken(pthread_mutex_t *lock)
{
	if (has_one_cpu || !spin_for(lock))
		pthread_mutex_lock(lock);
}
