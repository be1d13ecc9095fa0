/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The arithmetic of grants and of debt.
 *
 * Pure functions: no lock, no allocation, no clock, nothing but their arguments.
 */
#ifndef SHIM_GRANT_H
#define SHIM_GRANT_H

#include <stdbool.h>
#include <linux/types.h>
#include <linux/rdma_isolate_user.h>

#include "core/cost.h"

/**
 * struct shim_budget - what may still be posted in one direction
 * @grant: grants that were taken over; one with 0 bytes is free
 * @next: index in @grant of the one that is spent first
 * @taken: number of the last grant that was taken over
 */
struct shim_budget {
	struct riso_grant grant[2];
	__u32 next;
	__u32 taken;
};

/**
 * struct shim_slice - debt in the present slice
 * @start: when the slice began, in nanoseconds of CLOCK_MONOTONIC
 * @debt: cost bytes that were posted in the slice without a grant
 */
struct shim_slice {
	__u64 start;
	__u64 debt;
};

/**
 * shim_budget_expire - drop grants that are void
 * @b: the budget
 * @now: nanoseconds of CLOCK_MONOTONIC
 *
 * Return: true if there was something left of one.
 */
static inline bool shim_budget_expire(struct shim_budget *b, __u64 now)
{
	bool left = false;
	int i;

	for (i = 0; i < 2; i++) {
		if (b->grant[i].not_after > now)
			continue;
		left = left || b->grant[i].bytes;
		b->grant[i].bytes = 0;
	}
	return left;
}

/**
 * shim_budget_full - tell whether a budget has no room for another grant
 * @b: the budget
 *
 * Return: true if both have bytes left.
 */
static inline bool shim_budget_full(const struct shim_budget *b)
{
	return b->grant[0].bytes && b->grant[1].bytes;
}

/**
 * shim_budget_add - take a grant over
 * @b: a budget with room
 * @g: the grant
 * @n: number of the grant
 */
static inline void shim_budget_add(struct shim_budget *b,
				   const struct riso_grant *g, __u32 n)
{
	if (!b->grant[b->next].bytes)
		b->next ^= 1;
	/* The older one, if it has bytes, is @next now; else either will do. */
	b->grant[b->next ^ 1] = *g;
	b->taken = n;
}

/**
 * shim_budget_left - sum up what may be posted
 * @b: a budget without void grants
 *
 * Return: cost bytes.
 */
static inline __u64 shim_budget_left(const struct shim_budget *b)
{
	__u64 sum = b->grant[0].bytes + b->grant[1].bytes;

	return sum < b->grant[0].bytes ? ~(__u64)0 : sum;
}

/**
 * shim_budget_spend - pay, from the older grant first
 * @b: a budget with that much left
 * @bytes: cost bytes
 */
static inline void shim_budget_spend(struct shim_budget *b, __u64 bytes)
{
	struct riso_grant *g = &b->grant[b->next];
	__u64 part = bytes < g->bytes ? bytes : g->bytes;

	g->bytes -= part;
	b->grant[b->next ^ 1].bytes -= bytes - part;
	if (!g->bytes)
		b->next ^= 1;
}

/**
 * shim_slice_debt - charge a slice, if it may have more debt
 * @s: the slice
 * @now: nanoseconds of CLOCK_MONOTONIC
 * @slice_ns: length of a slice in nanoseconds
 * @sparse: cost bytes of debt that each slice may have
 * @cost: cost bytes of what would go out without a grant
 *
 * Return: true if the slice was charged.
 */
static inline bool shim_slice_debt(struct shim_slice *s, __u64 now,
				   __u32 slice_ns, __u64 sparse, __u64 cost)
{
	if (now - s->start >= slice_ns) {
		s->start = now;
		s->debt = 0;
	}
	if (cost > sparse || s->debt > sparse - cost)
		return false;
	s->debt += cost;
	return true;
}

/**
 * shim_cost - compute what a chunk, or a message that goes out whole, costs
 * @payload: bytes of the chunk or message
 * @mtu: path MTU in bytes
 * @header: riso_kpage.header
 * @op_bytes: riso_kpage.op_bytes
 *
 * The kernel charges a process the same. It charges its own users the longer of the times
 * that bytes and messages of a batch take, see riso_cost_of().
 *
 * Return: cost bytes.
 */
static inline __u64 shim_cost(__u64 payload, __u32 mtu, __u32 header,
			      __u32 op_bytes)
{
	__u64 wire = riso_wire_bytes(payload, mtu, header) + RISO_MESSAGE_HEADER;

	return wire > op_bytes ? wire : op_bytes;
}

#endif /* SHIM_GRANT_H */
