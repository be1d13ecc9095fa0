/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What other hosts may send to a receiver: how large the pool is, and who gets what of it.
 *
 * The pool is SafeUtil of what comes in. It follows the law of SafeUtil (aimd.h), with what those
 * who send have measured with the receiver. split.h has how it is split.
 *
 * Functions on numbers: no clock, no I/O, no lock.
 */
#ifndef RISO_POOL_H
#define RISO_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "aimd.h"
#include "split.h"

enum {
	/* A pool that less than 9/10 of is used makes nobody wait: a miss has another cause. */
	POOL_USED_NUM = 9,
	POOL_USED_DEN = 10,
};

/**
 * struct pool_view - what is known at a step
 * @now_ns: any clock that does not go backwards
 * @latency: groups of latency flows that the receiver's link matters to
 * @groups: groups of bulk of all senders
 * @used: what they send together, bytes per second
 * @current99_ns: the worst that was measured, see @target99_ns; 0 for nothing
 * @target99_ns: what that should be at most
 * @window_ns: until it shows what has changed here, see struct aimd_params
 */
struct pool_view {
	uint64_t now_ns;
	uint32_t latency;
	uint32_t groups;
	uint64_t used;
	uint64_t current99_ns;
	uint64_t target99_ns;
	uint64_t window_ns;
};

/**
 * struct pool - a receiver's
 * @aimd: parameters of its law
 * @state: what that remembers
 * @safe: its last answer, bytes per second
 */
struct pool {
	struct aimd_params aimd;
	struct aimd_state state;
	uint64_t safe;
};

/**
 * pool_is_filled - may what is sent be what others wait for?
 * @used: what is sent, bytes per second
 * @limit: what may be sent
 *
 * Return: true if at least 9/10 of @limit are used.
 */
bool pool_is_filled(uint64_t used, uint64_t limit);

/**
 * pool_init - begin with all that the link has
 * @p: the pool
 * @max_rate: MaxRate of the receiver, bytes per second
 */
void pool_init(struct pool *p, uint64_t max_rate);

/**
 * pool_step - follow the law
 * @p: the pool
 * @max_rate: MaxRate of the receiver now
 * @v: what is known
 *
 * A miss while the pool is not filled has another cause, and counts as none.
 *
 * Return: the pool, bytes per second; MaxRate without latency groups.
 */
uint64_t pool_step(struct pool *p, uint64_t max_rate, const struct pool_view *v);

/**
 * pool_grant - split a pool, and what nobody demands as well
 * @law: how
 * @s: the senders; each gets its grant
 * @num: how many there are, at most SPLIT_SENDERS
 * @pool: bytes per second
 * @latency: latency groups, for SPLIT_LAW_PAPER
 *
 * With SPLIT_LAW_MAXMIN what is left goes to all by their weights, so that whoever begins need not
 * wait for a record. The sum of grants is no more than @pool.
 */
void pool_grant(enum split_law law, struct split_sender *s, uint32_t num, uint64_t pool,
		uint32_t latency);

#endif /* RISO_POOL_H */
