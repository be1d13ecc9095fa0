/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks that a cancelled thread does not leave locked. See guard.c.
 */
#ifndef SHIM_GUARD_H
#define SHIM_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void shim_enter(void);
void shim_leave(void);
bool shim_is_inside(void);
void shim_use_first_cpus(void);
void shim_lock_taken(pthread_mutex_t *lock);

extern uint32_t shim_waiters;

/**
 * shim_lock - lock, in a call that unlocks before it returns
 * @lock: the lock
 *
 * Who waits goes first: the thread that has just unlocked would be faster each time.
 */
static inline void shim_lock(pthread_mutex_t *lock)
{
	shim_enter();
	if (__atomic_load_n(&shim_waiters, __ATOMIC_RELAXED) || pthread_mutex_trylock(lock))
		shim_lock_taken(lock);
}

/**
 * shim_unlock - unlock; a member only where nothing has begun to be held
 * @lock: the lock
 */
static inline void shim_unlock(pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
	shim_leave();
}

#endif /* SHIM_GUARD_H */
