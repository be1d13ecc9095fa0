// SPDX-License-Identifier: GPL-2.0
/*
 * The line of groups: whose turn it is, and what a post costs.
 *
 * Owns the places of groups in the turns of each direction (core/share.c), what they are
 * charged, and what they wait for while they are in line (pressure.c). All of it is under
 * &riso_dev.lock, in any context.
 */

#include <linux/ktime.h>

#include "flow.h"
#include "grant.h"
#include "limits.h"
#include "line.h"
#include "peer.h"
#include "passed.h"

enum {
	/* Two groups contend that posted within 50 ms of each other. */
	RISO_ACTIVE_NS = 50 * NSEC_PER_MSEC,
	/* A reply of a storage protocol: NVMe 16 bytes, iSER 76, SRP and NFS up to this. */
	RISO_REPLY_BYTES = 256,
};

static struct riso_share_tenant *tenant_of(struct riso_group_dir *gd, enum riso_dir dir)
{
	return &riso_line_group(gd, dir)->tenant->dir[dir];
}

static void insert_group(struct riso_dev *rd, enum riso_dir dir, struct riso_group_dir *gd)
{
	riso_share_enter(&rd->arb[dir].share, tenant_of(gd, dir), &gd->share);
}

static void erase_group(struct riso_dev *rd, enum riso_dir dir, struct riso_group_dir *gd)
{
	riso_share_leave(&rd->arb[dir].share, tenant_of(gd, dir), &gd->share);
}

/**
 * riso_line_enter - put a group into the line that is about to have something to post
 * @rd: the device
 * @dir: direction
 * @gd: the place of the group; does nothing if that is in line
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_line_enter(struct riso_dev *rd, enum riso_dir dir, struct riso_group_dir *gd,
		     u64 now)
{
	lockdep_assert_held(&rd->lock);
	if (riso_line_holds(gd))
		return;
	insert_group(rd, dir, gd);
	riso_pressure_begin(&rd->arb[dir].hold, &gd->wait, now);
}

/**
 * riso_line_leave - take a group out of the line that has nothing to post any more
 * @rd: the device
 * @dir: direction
 * @gd: the place of the group; does nothing if that still has something
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_line_leave(struct riso_dev *rd, enum riso_dir dir, struct riso_group_dir *gd,
		     u64 now)
{
	lockdep_assert_held(&rd->lock);
	if (riso_line_holds(gd))
		return;
	erase_group(rd, dir, gd);
	riso_pressure_end(&rd->arb[dir].hold, &gd->wait, now);
}

/**
 * riso_line_enter_tenant - let a group share with others from now on
 * @rd: the device
 * @g: the group
 * @tenant: with whom it shares
 *
 * Context: under &riso_dev.lock.
 */
void riso_line_enter_tenant(struct riso_dev *rd, struct riso_group *g, struct riso_tenant *tenant)
{
	int dir;

	lockdep_assert_held(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++) {
		struct riso_group_dir *gd = &g->dir[dir];

		if (riso_line_holds(gd))
			erase_group(rd, dir, gd);
	}
	g->tenant = tenant;
	for (dir = 0; dir < RISO_DIRS; dir++) {
		struct riso_group_dir *gd = &g->dir[dir];

		riso_share_begin_group(&tenant->dir[dir], &gd->share);
		if (riso_line_holds(gd))
			insert_group(rd, dir, gd);
	}
}

/**
 * riso_line_note_active - note that a group posts
 * @a: one direction of a device
 * @g: the group
 * @now: time, ns
 *
 * Groups that are active by turns contend for the device.
 *
 * Context: under &riso_dev.lock.
 */
void riso_line_note_active(struct riso_arb *a, struct riso_group *g, u64 now)
{
	/* Two that take turns are seen again before this ends. */
	if (a->last != g && now - a->last_ns < RISO_ACTIVE_NS)
		a->contested_ns = now + 2 * RISO_ACTIVE_NS;
	a->last = g;
	a->last_ns = now;
	g->active_ns = now;
}

/**
 * riso_line_charge - charge a group for a post, and move the clock of a shaped device
 * @rd: the device
 * @dir: direction
 * @g: the group
 * @bill: what for
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_line_charge(struct riso_dev *rd, enum riso_dir dir, struct riso_group *g,
		      const struct riso_bill *bill, u64 now)
{
	u64 cost = riso_cost_of(rd, bill->wire, bill->ops, rd->cfg.max_rate);
	struct riso_group_dir *gd = &g->dir[dir];
	struct riso_arb *a = &rd->arb[dir];
	u64 was = a->pacer.next;
	/* Debt is nobody's turn. If nobody is in line, the turns may advance all the same. */
	bool turn = !bill->debt || !riso_line_first(a);
	u64 fill;

	lockdep_assert_held(&rd->lock);
	/* No window of ours keeps grants that were missed from going out as a burst. */
	if (riso_is_shaped(rd)) {
		riso_pacer_advance(&a->pacer, bill->grant ? riso_grant_lag(rd) : riso_lag(rd),
				   bill->busy_ns, now);
		fill = riso_time_of(bill->wire, riso_drain(rd, dir));
		/* Processes that lie about debt move no clock by more than that. */
		if (bill->debt && bill->grant)
			fill = min(fill, bill->busy_ns);
		riso_pacer_fill(&a->pacer, fill, now);
	}
	/*
	 * The clock also says when processes may have grants. Bulk of the kernel that it does not
	 * hold moves it by a chunk and a tick at most, as the window holds that bulk.
	 */
	if (!riso_is_clocked(rd) && !bill->grant)
		a->pacer.next = max(was, min(a->pacer.next,
					     now + riso_tick(rd) + rd->chunk_ns));
	if (!a->pacer.load)
		riso_estimate_wait(&a->estimate);
	/* With more than two chunks on their way nobody can tell whether the device is full. */
	if (a->out.bytes - a->standing > 2 * riso_chunk_wire(rd))
		a->estimate.slack = true;
	if (!bill->debt && !gd->share.in_line)
		riso_share_limit(&a->share, tenant_of(gd, dir), &gd->share);
	riso_share_charge(&a->share, tenant_of(gd, dir), &gd->share, turn, cost, g->weight);
	g->used_ns += cost;
	if (a->hold.waits)
		riso_pressure_take(&a->hold, &g->pressure, g->id, cost);
	riso_line_note_active(a, g, now);
}

/* Would the group have posted at most a chunk in this slice, and a reply, with @wire? */
static bool fits_slice(const struct riso_flow *f, enum riso_dir dir, u64 wire, u64 now)
{
	const struct riso_group_dir *gd = &f->group->dir[dir];
	u64 spent = now - gd->slice_start_ns > RISO_SLICE_NS ? 0 : gd->slice_bytes;

	return !wire || spent + wire <= riso_chunk_wire(f->rd) +
					riso_piece_wire(RISO_REPLY_BYTES, f->mtu);
}

/**
 * riso_line_is_sparse - may a chain of work requests go at once, as debt?
 * @f: a flow that had nothing held
 * @wire: wire bytes of the chain, by direction
 * @now: time, ns
 *
 * The whole chain goes or none of it: a target posts the data that were read and its
 * reply in one, and the initiator waits for the reply.
 *
 * Context: under &riso_dev.lock.
 * Return: true if the group has nothing held, its peer lets it post, and it posts, with the
 * chain, at most a chunk and a reply in the present slice.
 */
bool riso_line_is_sparse(const struct riso_flow *f, const u64 *wire, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	if (f->group->pressure.asides || (wire[RISO_TX] && riso_peer_when(f, RISO_TX, now)) ||
	    (wire[RISO_RX] && riso_peer_when(f, RISO_RX, now)))
		return false;
	return riso_is_shaped(f->rd) && list_empty(&f->group->dir[RISO_TX].flows) &&
	       list_empty(&f->group->dir[RISO_RX].flows) &&
	       fits_slice(f, RISO_TX, wire[RISO_TX], now) &&
	       fits_slice(f, RISO_RX, wire[RISO_RX], now);
}

/**
 * riso_line_refund - give a group back what it was charged for a post that was not taken
 * @rd: the device
 * @dir: direction
 * @g: the group
 * @wire: wire bytes
 * @ops: messages
 *
 * Context: under &riso_dev.lock.
 */
void riso_line_refund(struct riso_dev *rd, enum riso_dir dir, struct riso_group *g, u64 wire,
		      u32 ops)
{
	u64 cost = riso_cost_of(rd, wire, ops, rd->cfg.max_rate);
	struct riso_group_dir *gd = &g->dir[dir];
	struct riso_arb *a = &rd->arb[dir];

	lockdep_assert_held(&rd->lock);
	if (riso_is_shaped(rd))
		riso_pacer_refund(&a->pacer, riso_cost_of(rd, wire, ops, riso_pace(rd, dir)),
				  riso_time_of(wire, riso_drain(rd, dir)));
	g->used_ns -= min(g->used_ns, cost);
	riso_share_refund(&a->share, tenant_of(gd, dir), &gd->share, cost, g->weight);
}

/**
 * riso_line_sync_waits - add what a group waits for just now to its sums
 * @rd: the device
 * @g: the group
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_line_sync_waits(struct riso_dev *rd, struct riso_group *g, u64 now)
{
	int dir;

	lockdep_assert_held(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++)
		if (riso_line_holds(&g->dir[dir]))
			riso_pressure_sync(&rd->arb[dir].hold,
					   &g->dir[dir].wait, now);
}

/**
 * riso_line_group_info - what a dump shows of a group
 * @rd: the device
 * @g: the group
 * @info: filled in
 *
 * Context: under RCU, or &riso_dev.mutex.
 */
void riso_line_group_info(struct riso_dev *rd, struct riso_group *g, struct riso_group_info *info)
{
	struct riso_passed sum;
	u64 now;

	info->id = g->id;
	info->who = g->who;
	riso_passed_sum(READ_ONCE(g->passed), &sum);
	spin_lock_irq(&rd->lock);
	/* The process itself holds it, too. */
	info->flows = READ_ONCE(g->users) - !!g->process;
	now = ktime_get_ns();
	riso_line_sync_waits(rd, g, now);
	info->weight = g->weight;
	info->tx_bytes = g->bytes[RISO_TX] + sum.bytes[RISO_TX];
	info->rx_bytes = g->bytes[RISO_RX] + sum.bytes[RISO_RX];
	info->wrs = g->wrs + sum.wrs;
	info->used_ns = g->used_ns;
	info->shim = g->process;
	info->fault = g->fault;
	riso_pressure_info(&g->pressure, now, &info->pressure);
	spin_unlock_irq(&rd->lock);
}
