// SPDX-License-Identifier: GPL-2.0
/*
 * The watch: what is looked at several times a second while a device does not idle.
 *
 * Owns the work that looks for processes that are active, for flows that are stuck, for
 * measurements that are too old, and that averages what groups waited. It may sleep; it
 * takes &riso_dev.mutex, and lets others have it after a few groups.
 */

#include <linux/ktime.h>
#include <linux/workqueue.h>

#include "cq.h"
#include "flow.h"
#include "limits.h"
#include "line.h"
#include "manage.h"
#include "open.h"
#include "peer.h"
#include "process.h"
#include "pump.h"
#include "sched.h"
#include "settings.h"
#include "watch.h"
#include "work.h"

enum {
	/* Flows that are stuck are looked for every 250 ms. */
	RISO_CHECK_NS = NSEC_PER_SEC / 4,
	/* Completions come in bursts: a rate is above MaxRate when it is so by a sixteenth. */
	RISO_ABOVE_PART = 16,
	/* The averages of pressure.c decay as if they were taken every 2 s. */
	RISO_AVERAGE_NS = 2 * NSEC_PER_SEC,
};

static void average_pressure(struct riso_dev *rd)
{
	u64 now = ktime_get_ns();
	u64 period = now - rd->averaged_ns;
	struct riso_group *g;
	unsigned long id;
	u32 cost = 0;

	if (period < RISO_AVERAGE_NS)
		return;
	rd->averaged_ns = now;
	riso_dev_lock(rd);
	xa_for_each(&rd->groups, id, g) {
		spin_lock_irq(&rd->lock);
		riso_line_sync_waits(rd, g, now);
		riso_pressure_average(&g->pressure, period, now);
		spin_unlock_irq(&rd->lock);
		riso_dev_pass(rd, &cost, 1);
	}
	riso_dev_unlock(rd);
}

/* Does the device deliver more than MaxRate? Then that is too low. */
static void watch_rate(struct riso_dev *rd, u64 now)
{
	u64 rate = 0, above;
	int dir;

	spin_lock_irq(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++) {
		struct riso_estimate *e = &rd->arb[dir].estimate;

		riso_estimate_expire(e, now);
		rate = max(rate, e->last);
		e->last = 0;
	}
	if (!riso_is_shaped(rd) || riso_is_clocked(rd) ||
	    rate <= riso_rate(rd) + riso_rate(rd) / RISO_ABOVE_PART)
		rate = 0;
	/* A single look may have found a burst of completions. */
	above = min(rate, rd->above);
	rd->above = rate;
	spin_unlock_irq(&rd->lock);
	if (!above)
		return;
	/* A quarter more, as the window for less may be what holds it back. */
	riso_settings_believe_rate(rd, above / 4 * 5);
	mutex_lock(&rd->control);
	if (!rd->removing)
		queue_work(riso_wq, &rd->port);
	mutex_unlock(&rd->control);
}

/* Whether groups fill the device; looked at often while there are several. */
static bool watch_groups(struct riso_dev *rd, u64 now)
{
	bool contended, changed;

	riso_dev_lock(rd);
	changed = riso_open_watch(rd, now, &contended);
	changed |= riso_peer_expire(rd, now);
	if (changed)
		riso_manage_refresh_all(rd);
	riso_dev_unlock(rd);
	if (changed)
		riso_sched_run(rd);
	return contended;
}

static void watch_device(struct work_struct *work)
{
	struct riso_dev *rd = container_of(to_delayed_work(work),
					   struct riso_dev, watch);
	bool busy;
	u64 now;

	busy = riso_process_watch(rd);
	now = ktime_get_ns();
	busy |= watch_groups(rd, now);
	if (now - rd->checked_ns >= RISO_CHECK_NS) {
		rd->checked_ns = now;
		watch_rate(rd, now);
		riso_flow_check_all(rd);
		riso_sched_run(rd);
		average_pressure(rd);
		riso_dev_lock(rd);
		riso_cq_untag_all(rd);
		riso_dev_unlock(rd);
	}
	queue_delayed_work(riso_wq, &rd->watch,
			   nsecs_to_jiffies(busy ? RISO_WATCH_NS : RISO_CHECK_NS));
}

/**
 * riso_watch_init - make the watch of a new device
 * @rd: the device
 */
void riso_watch_init(struct riso_dev *rd)
{
	INIT_DELAYED_WORK(&rd->watch, watch_device);
}

/**
 * riso_watch_start - let the device post, and watch it
 * @rd: the device
 *
 * Context: may sleep.
 */
void riso_watch_start(struct riso_dev *rd)
{
	struct riso_group *g;
	unsigned long id;

	rd->averaged_ns = ktime_get_ns();
	riso_dev_lock(rd);
	xa_for_each(&rd->groups, id, g)
		memset(g->pressure.avg, 0, sizeof(g->pressure.avg));
	riso_pump_start(rd);
	riso_dev_unlock(rd);
	queue_delayed_work(riso_wq, &rd->watch, nsecs_to_jiffies(RISO_CHECK_NS));
}

/**
 * riso_watch_stop - watch no more, and stop the timer
 * @rd: the device, with nothing held
 *
 * Context: may sleep.
 */
void riso_watch_stop(struct riso_dev *rd)
{
	riso_pump_stop(rd);
	cancel_delayed_work_sync(&rd->watch);
	riso_pump_cancel(rd);
}
