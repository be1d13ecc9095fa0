/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * fork(), and threads that hold locks. See fork.c.
 */
#ifndef SHIM_FORK_H
#define SHIM_FORK_H

#include <pthread.h>

void shim_enter(void);
void shim_leave(void);
void shim_prepare_fork(void);
void shim_unlock_all(void);
void shim_enter_child(void);

/**
 * shim_lock - lock, in a call that unlocks before it returns
 * @lock: the lock
 */
static inline void shim_lock(pthread_mutex_t *lock)
{
	shim_enter();
	pthread_mutex_lock(lock);
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

#endif /* SHIM_FORK_H */
