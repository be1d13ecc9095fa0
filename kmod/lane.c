// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: what the hooks look up about a QP or a CQ of the kernel.
 *
 * Owns the table of lanes, one for all devices. It is a look-up that costs hardly anything: it
 * follows no list, so nobody has to hold grace periods up. Who finds no lane looks in the hash of
 * the device, which knows all.
 *
 * lane_lock serialises those who take and leave lanes. The hooks read without a lock, in any
 * context. While a QP or CQ lives its lane has its address, or after riso_lane_shut() a key that
 * nothing has, and leads to the same place. Nobody else has the lane before riso_lane_leave().
 */

#include <linux/cache.h>
#include <linux/spinlock.h>

#include "lane.h"

struct riso_lane riso_lanes[RISO_LANE_WAYS << RISO_LANE_BITS] ____cacheline_aligned;
static DEFINE_SPINLOCK(lane_lock);

/**
 * riso_lane_take - give a QP or a CQ a lane
 * @key: its address
 * @to: its flow or its shadow
 *
 * Context: process.
 * Return: the lane, or NULL if those that it may have are taken.
 */
struct riso_lane *riso_lane_take(const void *key, void *to)
{
	struct riso_lane *l = &riso_lanes[hash_ptr(key, RISO_LANE_BITS) * RISO_LANE_WAYS];
	struct riso_lane *end = l + RISO_LANE_WAYS;
	unsigned long flags;

	spin_lock_irqsave(&lane_lock, flags);
	while (l < end && l->key)
		l++;
	if (l == end) {
		l = NULL;
	} else {
		l->to = to;
		/* Pairs with the acquire in riso_lane_find(). */
		smp_store_release(&l->key, key);
	}
	spin_unlock_irqrestore(&lane_lock, flags);
	return l;
}

/**
 * riso_lane_shut - a QP or a CQ may go without notice from now on
 * @l: its lane, or NULL
 *
 * It is not found there any more. Its owner may be looking just now, so nobody else has the lane
 * before riso_lane_leave().
 *
 * Context: process.
 */
void riso_lane_shut(struct riso_lane *l)
{
	/* The address of the table is that of no QP and no CQ. */
	if (l)
		WRITE_ONCE(l->key, riso_lanes);
}

/**
 * riso_lane_leave - a QP or a CQ is gone, or nobody looks for it any more
 * @l: its lane, or NULL
 *
 * Context: process.
 */
void riso_lane_leave(struct riso_lane *l)
{
	unsigned long flags;

	if (!l)
		return;
	spin_lock_irqsave(&lane_lock, flags);
	WRITE_ONCE(l->key, NULL);
	spin_unlock_irqrestore(&lane_lock, flags);
}
