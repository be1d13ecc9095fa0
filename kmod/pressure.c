// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits, what for and behind whom.
 *
 * Owns the sums of the time that each group waited, in all and by reason, and of
 * the device time that other groups used while it stood in line. The latter is in
 * the currency that shares are counted in, not in time that went by: whoever posts
 * little is no cause, however late what comes next. The table of groups is short,
 * and where more than RISO_BLAMED groups wait at once, a post is put down to some
 * of them in turn, for all: so the cost of a post does not grow with their number.
 *
 * A group waits while it has something held and none of its flows is posting, or
 * while another of its flows stands in line. It waits for its turn while a flow of
 * it stands in line, else for the limit of a path while a flow of it waits for its
 * peer, else for what is its own: the flow's window, what its queue pair may have
 * out, a full send queue, a queue pair that is not in RTS.
 *
 * Everything here is under &riso_dev.lock, in any context.
 */

#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched/loadavg.h>

#include "pressure.h"

/* Groups in line that a post is put down to. */
enum { RISO_BLAMED = 8 };

/* exp(-2s/10s), exp(-2s/60s) and exp(-2s/300s), in units of 1/FIXED_1 */
static const unsigned int decay[RISO_AVGS] = { 1677, 1981, 2034 };

/* Callers read the clock before they take other steps: it may be behind. */
static u64 lap(u64 *since, u64 now)
{
	u64 ns = now > *since ? now - *since : 0;

	*since += ns;
	return ns;
}

/* Add up to now, in the state that was. */
static void count(struct riso_pressure *p, u64 now)
{
	u64 ns = lap(&p->counted_ns, now);

	if (p->ready) {
		p->stall_ns += ns;
	} else if ((p->held || p->asides) && !p->serving) {
		p->stall_ns += ns;
		*(p->asides ? &p->path_ns : &p->own_ns) += ns;
	}
}

/**
 * riso_pressure_hold - a group has more to post
 * @p: of the group
 * @n: work requests
 * @now: time, ns
 */
void riso_pressure_hold(struct riso_pressure *p, u32 n, u64 now)
{
	if (!p->held)
		count(p, now);
	p->held += n;
}

/**
 * riso_pressure_release - a group has less to post
 * @p: of the group
 * @n: work requests
 */
void riso_pressure_release(struct riso_pressure *p, u32 n)
{
	if (p->held == n)
		count(p, ktime_get_ns());
	p->held -= n;
}

/**
 * riso_pressure_serve - a flow begins or ends to post
 * @p: of its group
 * @begin: which of the two
 * @now: time, ns
 */
void riso_pressure_serve(struct riso_pressure *p, bool begin, u64 now)
{
	count(p, now);
	p->serving += begin ? 1 : -1;
}

/**
 * riso_pressure_aside - a flow begins or ends to wait for its peer
 * @p: of its group
 * @begin: which of the two
 * @now: time, ns
 */
void riso_pressure_aside(struct riso_pressure *p, bool begin, u64 now)
{
	count(p, now);
	p->asides += begin ? 1 : -1;
}

static void advance(struct riso_waiters *h, u64 now)
{
	h->spent[h->why] += lap(&h->why_ns, now);
}

static void blame(struct riso_pressure *p, u32 group, u64 ns)
{
	struct riso_behind *b, *least = p->behind;

	for (b = p->behind; b < p->behind + RISO_BEHIND; b++) {
		if (b->group == group || !b->group) {
			b->group = group;
			b->ns += ns;
			return;
		}
		if (b->ns < least->ns)
			least = b;
	}
	p->others_ns += least->ns;
	least->group = group;
	least->ns = ns;
}

/**
 * riso_pressure_begin - a group begins to stand in line
 * @h: of the arbiter
 * @w: of the group and direction
 * @now: time, ns
 */
void riso_pressure_begin(struct riso_waiters *h, struct riso_wait *w, u64 now)
{
	count(w->p, now);
	w->p->ready++;
	advance(h, now);
	memcpy(w->mark, h->spent, sizeof(w->mark));
	list_add_tail(&w->node, &h->waiting);
	h->waits++;
}

/**
 * riso_pressure_end - a group does not stand in line any more
 * @h: of the arbiter
 * @w: of the group and direction
 * @now: time, ns
 */
void riso_pressure_end(struct riso_waiters *h, struct riso_wait *w, u64 now)
{
	riso_pressure_sync(h, w, now);
	w->p->ready--;
	list_del(&w->node);
	h->waits--;
}

/**
 * riso_pressure_sync - add what was waited until now to the sums
 * @h: of the arbiter
 * @w: of a group that stands in line
 * @now: time, ns
 */
void riso_pressure_sync(struct riso_waiters *h, struct riso_wait *w, u64 now)
{
	int i;

	count(w->p, now);
	advance(h, now);
	for (i = 0; i < RISO_WHYS; i++)
		w->p->why_ns[i] += h->spent[i] - w->mark[i];
	memcpy(w->mark, h->spent, sizeof(w->mark));
}

/**
 * riso_pressure_change - another reason keeps an arbiter from posting
 * @h: of the arbiter
 * @why: from now on
 * @now: time, ns
 */
void riso_pressure_change(struct riso_waiters *h, enum riso_why why, u64 now)
{
	advance(h, now);
	h->why = why;
}

/**
 * riso_pressure_take - a group posts, while others stand in line
 * @h: of the arbiter
 * @p: of the group
 * @group: its id
 * @cost: device time of what it posts, ns
 */
void riso_pressure_take(struct riso_waiters *h, const struct riso_pressure *p,
			u32 group, u64 cost)
{
	u32 visits = min_t(u32, h->waits, RISO_BLAMED);
	struct riso_wait *w, *tmp;
	LIST_HEAD(seen);

	if (h->waits > RISO_BLAMED)
		cost = cost * h->waits / RISO_BLAMED;
	list_for_each_entry_safe(w, tmp, &h->waiting, node) {
		if (!visits--)
			break;
		if (w->p != p)
			blame(w->p, group, cost);
		list_move_tail(&w->node, &seen);
	}
	list_splice_tail(&seen, &h->waiting);
}

/**
 * riso_pressure_average - bring the averages up to date, about every 2 seconds
 * @p: of a group whose waits were added up to now
 * @period: time since the last call, ns
 * @now: time, ns
 */
void riso_pressure_average(struct riso_pressure *p, u64 period, u64 now)
{
	u64 stall;
	int i;

	count(p, now);
	stall = min(p->stall_ns - p->averaged_ns, period);
	p->averaged_ns = p->stall_ns;
	for (i = 0; i < RISO_AVGS; i++)
		p->avg[i] = calc_load(p->avg[i], decay[i],
				      div64_u64(stall * 100 * FIXED_1, period));
}

/**
 * riso_pressure_info - what a dump shows
 * @p: of a group whose waits were added up to now
 * @now: time, ns
 * @info: filled in
 */
void riso_pressure_info(struct riso_pressure *p, u64 now,
			struct riso_pressure_info *info)
{
	int i;

	count(p, now);
	info->held = p->held;
	info->stall_ns = p->stall_ns;
	info->path_ns = p->path_ns;
	info->own_ns = p->own_ns;
	info->clock_ns = p->why_ns[RISO_WHY_CLOCK];
	info->window_ns = p->why_ns[RISO_WHY_WINDOW];
	memcpy(info->behind, p->behind, sizeof(info->behind));
	info->others_ns = p->others_ns;
	for (i = 0; i < RISO_AVGS; i++)
		info->avg[i] = p->avg[i] * 100 >> FSHIFT;
}
