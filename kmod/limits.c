// SPDX-License-Identifier: GPL-2.0
/*
 * What changes when settings, or the number of latency flows, do.
 *
 * Owns what is derived from the settings: the window, the time of a chunk, whether a timer can
 * pace single ones, how far a group may be ahead, since when the device is shaped. All of it is
 * under &riso_dev.lock.
 */

#include <linux/ktime.h>

#include "core/chunk.h"
#include "limits.h"
#include "trace.h"

/* What may stand in a shaped device: what was set, or else what riso_pacer_window() says */
static u64 find_window(const struct riso_dev *rd)
{
	if (rd->cfg.inflight_bytes == RISO_AUTO)
		return riso_pacer_window(riso_chunk_wire(rd), riso_rate(rd));
	return rd->cfg.inflight_bytes ?: U32_MAX;
}

/**
 * riso_limits_update - settings, or the number of latency flows, have changed
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: true if riso_sched_refresh() has to be called for all flows; so has
 * riso_process_refresh_all() in any case.
 */
bool riso_limits_update(struct riso_dev *rd)
{
	bool was = rd->was_shaped;
	struct riso_bounds bounds;
	u64 now = ktime_get_ns();
	int dir;

	lockdep_assert_held(&rd->lock);
	rd->chunk = rd->cfg.chunk_bytes;
	if (rd->chunk == RISO_AUTO)
		rd->chunk = riso_chunk_auto(riso_rate(rd));
	rd->chunk_ns = riso_time_of(rd->chunk, rd->cfg.safe_util);
	rd->window = find_window(rd);
	rd->lately_ns = riso_time_of(riso_open_window(rd) / 2, rd->cfg.max_rate);
	WRITE_ONCE(rd->paces_chunks, rd->chunk_ns >= RISO_TICK_NS);
	rd->was_shaped = riso_is_shaped(rd);
	if (was != rd->was_shaped)
		rd->toggled_ns = now;
	if (!was && rd->was_shaped)
		rd->shaped_ns = now;
	for (dir = 0; dir < RISO_DIRS; dir++) {
		struct riso_arb *a = &rd->arb[dir];

		a->share.slice_ns = riso_time_of(riso_token(rd), rd->cfg.max_rate);
		a->pacer.next = min(a->pacer.next, now + rd->chunk_ns + riso_tick(rd));
		if (was != rd->was_shaped)
			riso_estimate_restart(&a->estimate);
		riso_limits_rebound(rd, dir);
	}
	bounds = (struct riso_bounds) {
		.max_rate = riso_rate(rd),
		.chunk_bytes = rd->chunk,
		.inflight_bytes = rd->cfg.inflight_bytes,
	};
	trace_budget_update(rd);
	if (was == rd->was_shaped && !memcmp(&bounds, &rd->bounds, sizeof(bounds)))
		return false;
	rd->bounds = bounds;
	return true;
}

/**
 * riso_limits_note_late - note how late the timer is, if it is
 * @rd: the device
 * @now: time, ns; the timer has fired, or should have
 *
 * A host whose timers are late is so now and then, for milliseconds, and not in between.
 *
 * Context: under &riso_dev.lock.
 */
void riso_limits_note_late(struct riso_dev *rd, u64 now)
{
	u64 since = min_t(u64, now - rd->late_at_ns, RISO_LATE_NS);
	u64 late = now > rd->timer_ns ? now - rd->timer_ns : 0;

	lockdep_assert_held(&rd->lock);
	rd->late_ns -= div_u64(rd->late_ns * since, RISO_LATE_NS);
	rd->late_ns = min_t(u64, max(rd->late_ns, late), NSEC_PER_SEC);
	rd->late_at_ns = now;
}
