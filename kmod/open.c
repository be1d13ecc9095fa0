// SPDX-License-Identifier: GPL-2.0
/*
 * Open flows: their posts go straight to the provider.
 *
 * A device is open while nobody has to be protected from anybody: no latency flow can send, and
 * what groups post does not fill it. A managed flow of an open device is open as soon as it
 * holds nothing. Then the hook passes its posts on, without a lock, a copy or a tag, and counts
 * them in memory of the CPU.
 *
 * Owns &riso_dev.full, &riso_flow.open and the counts, and finds out whether groups fill the
 * device. &riso_dev.lock protects all of it, except the counts; hooks read &riso_flow.open
 * without it. Whoever has read it just before it changes posts at the same time as another,
 * and nobody may expect an order of these. The counts are allocated under &riso_dev.mutex.
 */

#include <linux/ktime.h>

#include "limits.h"
#include "line.h"
#include "open.h"
#include "passed.h"
#include "tag.h"

enum {
	/* A device that groups have filled is closed for 100 ms: they fill it in turns. */
	RISO_CLOSED_NS = 100 * NSEC_PER_MSEC,
	/*
	 * It is full when it sends half of MaxRate. That may be a guess: groups still have their
	 * shares if it is twice as high as it should be.
	 */
	RISO_FULL_PART = 2,
};

/**
 * riso_open_equip - let a flow be open
 * @f: a flow with a queue, and a group
 *
 * Without memory for the counts it is never open.
 *
 * Context: &riso_dev.mutex.
 */
void riso_open_equip(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->mutex);
	if (!f->passed)
		WRITE_ONCE(f->passed, riso_passed_alloc());
	if (!f->group->passed)
		WRITE_ONCE(f->group->passed, riso_passed_alloc());
}

/**
 * riso_open_update - see again whether a flow is open
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_open_update(struct riso_flow *f)
{
	const struct riso_dev *rd = f->rd;
	bool open = !riso_is_shaped(rd) && !rd->full && f->mode == RISO_FLOW_MANAGED &&
		    !f->peer && f->passed && f->group->passed && !f->posting && !f->paused &&
		    f->phase == RISO_PHASE_PACED && f->state == IB_QPS_RTS &&
		    !riso_ring_len(&f->q);

	lockdep_assert_held(&rd->lock);
	/* Pieces take more room in the provider's queue than the ULP knows of. */
	if (open && !f->open && riso_tag_has_pieces(f->slots))
		open = false;
	if (f->open == open)
		return;
	/* Pairs with the acquire in hook_post_send(): it finds the counts. */
	smp_store_release(&f->open, open);
}

/* How much a sum has grown: not at all if what the provider refused was taken off it. */
static u64 grow(u64 *seen, u64 now)
{
	s64 more = now - *seen;

	if (more <= 0)
		return 0;
	*seen = now;
	return more;
}

/* What a group has posted since it was looked at last, in any way */
static void look_at_group(struct riso_dev *rd, struct riso_group *g, u64 *posted)
{
	struct riso_passed sum;
	u64 now, passed;
	int dir;

	riso_passed_sum(g->passed, &sum);
	spin_lock_irq(&rd->lock);
	now = ktime_get_ns();
	for (dir = 0; dir < RISO_DIRS; dir++) {
		passed = grow(&g->passed_seen[dir], sum.bytes[dir]);
		posted[dir] = grow(&g->posted_seen[dir], g->bytes[dir] + sum.bytes[dir]);
		/* A process that cannot send may say what it likes. */
		if (g->process && !g->senders)
			posted[dir] = 0;
		if (!passed)
			continue;
		g->used_ns += riso_cost_of(rd, passed, 0, rd->cfg.max_rate);
		riso_line_note_active(&rd->arb[dir], g, now);
	}
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_open_watch - find out whether groups fill the device
 * @rd: the device
 * @now: time, ns
 * @contended: filled in: several groups have posted within a second, so look again soon
 *
 * Context: &riso_dev.mutex, may sleep.
 * Return: true if the device has become open, or is open no longer: then
 * riso_manage_refresh_all() has to be called.
 */
bool riso_open_watch(struct riso_dev *rd, u64 now, bool *contended)
{
	u64 full = riso_bytes_in(now - rd->looked_ns, rd->cfg.max_rate) / RISO_FULL_PART;
	u32 active[RISO_DIRS] = {};
	u64 total[RISO_DIRS] = {};
	u64 posted[RISO_DIRS];
	struct riso_group *g;
	unsigned long id;
	u32 cost = 0;
	bool changed;
	int dir;

	lockdep_assert_held(&rd->mutex);
	rd->looked_ns = now;
	xa_for_each(&rd->groups, id, g) {
		look_at_group(rd, g, posted);
		for (dir = 0; dir < RISO_DIRS; dir++) {
			active[dir] += !!posted[dir];
			total[dir] += posted[dir];
		}
		riso_dev_pass(rd, &cost, 1);
	}
	if (active[RISO_TX] > 1 || active[RISO_RX] > 1)
		rd->several_ns = now;
	*contended = now - rd->several_ns < NSEC_PER_SEC;

	spin_lock_irq(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++)
		if (active[dir] > 1 && total[dir] >= full)
			rd->full_ns = now + RISO_CLOSED_NS;
	changed = !riso_is_shaped(rd) && rd->full != (now < rd->full_ns);
	rd->full = now < rd->full_ns;
	spin_unlock_irq(&rd->lock);
	return changed;
}
