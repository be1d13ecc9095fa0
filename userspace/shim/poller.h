/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads that poll without a lock. See poller.c.
 */
#ifndef SHIM_POLLER_H
#define SHIM_POLLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/**
 * struct shim_poller - a thread that polls without a lock
 * @list: entry of the list of all such threads, under pollers.lock
 * @known: the thread is in the list; only the thread itself reads this
 * @turn: odd while the thread polls without a lock; read by shim_pollers_wait()
 */
struct shim_poller {
	LIST_ENTRY(shim_poller) list;
	bool known;
	uint32_t turn;
};

extern __thread struct shim_poller shim_poller
	__attribute__((tls_model("initial-exec")));

/**
 * enum shim_polls - whether polls without a lock may begin
 * @SHIM_POLLS_FREE: they may begin
 * @SHIM_POLLS_END: none begins any more, except in threads that do not know yet
 * @SHIM_POLLS_ENDED: none begins any more, and all threads know
 */
enum shim_polls {
	SHIM_POLLS_FREE,
	SHIM_POLLS_END,
	SHIM_POLLS_ENDED,
};

extern enum shim_polls shim_polls;

bool shim_is_in_call(void);
bool shim_is_nested(void);
bool shim_is_refused(void);
bool shim_poller_add(void);
void shim_pollers_wait(void);
void shim_pollers_lock(void);
void shim_pollers_unlock(void);
void shim_pollers_forked(void);

/**
 * shim_poll_begin - announce that the present thread polls without a lock
 * @turn: filled in with the number for shim_poll_end()
 *
 * The thread may do so if it finds the CQ not active after this call.
 *
 * Return: false if the thread has to take the lock, or is in such a poll already.
 */
static inline bool shim_poll_begin(uint32_t *turn)
{
	struct shim_poller *p = &shim_poller;

	*turn = p->turn;
	if (__atomic_load_n(&shim_polls, __ATOMIC_RELAXED) != SHIM_POLLS_FREE ||
	    *turn % 2 || !p->known)
		return false;
	__atomic_store_n(&p->turn, *turn + 1, __ATOMIC_RELAXED);
	/* Pairs with the membarrier() of shim_pollers_wait(). */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

/**
 * shim_poll_end - the opposite of shim_poll_begin()
 * @turn: what that has filled in
 */
static inline void shim_poll_end(uint32_t turn)
{
	/* Pairs with the acquire in shim_pollers_wait(). */
	__atomic_store_n(&shim_poller.turn, turn + 2, __ATOMIC_RELEASE);
}

#endif /* SHIM_POLLER_H */
