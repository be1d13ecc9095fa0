// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that hold locks of the shim.
 *
 * Owns the count of locks that a thread holds. The thread cannot be cancelled while it holds
 * one, so it leaves nothing locked.
 *
 * The count is the thread's own, so there is no lock. Runs in any thread.
 */
#include "guard.h"

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
 */
void shim_leave(void)
{
	if (!--inside)
		pthread_setcancelstate(cancel_state, NULL);
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
