/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lanes: what the hooks look up about a QP or a CQ of the kernel. See lane.c.
 */
#ifndef RISO_LANE_H
#define RISO_LANE_H

#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/types.h>

enum {
	/* Lanes of one bucket: two keys that collide have one each. */
	RISO_LANE_WAYS = 2,
	/* Buckets: 512 KB. Of 4,000 QPs and CQs nine in ten have the first lane, 1 % none. */
	RISO_LANE_BITS = 14,
};

/**
 * struct riso_lane - a QP or a CQ
 * @key: its address, NULL if the lane is free
 * @to: the flow of the QP, or the shadow of the CQ
 */
struct riso_lane {
	const void *key;
	void *to;
};

extern struct riso_lane riso_lanes[];

/**
 * riso_lane_find - look a QP or CQ up
 * @key: its address
 * @l: its lane, filled in
 *
 * Its lane stays its own until it is destroyed. So its owner may look at what that leads to
 * without a lock and without RCU.
 *
 * Context: any, on behalf of its owner.
 * Return: true if it has one.
 */
static __always_inline bool riso_lane_find(const void *key, const struct riso_lane **l)
{
	*l = &riso_lanes[hash_ptr(key, RISO_LANE_BITS) * RISO_LANE_WAYS];
	/* Pairs with the release in riso_lane_take(). */
	if (likely(smp_load_acquire(&(*l)->key) == key))
		return true;
	++*l;
	/* As above */
	return smp_load_acquire(&(*l)->key) == key;
}

struct riso_lane *riso_lane_take(const void *key, void *to);
void riso_lane_shut(struct riso_lane *l);
void riso_lane_leave(struct riso_lane *l);

#endif /* RISO_LANE_H */
