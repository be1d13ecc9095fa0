// SPDX-License-Identifier: GPL-2.0
/*
 * Telling listeners what has happened to flows and groups.
 *
 * Owns what listeners know of a flow or group, under &riso_dev.mutex, and how often they are
 * told of what programs do. It may sleep.
 */

#include "line.h"
#include "news.h"
#include "nl_event.h"
#include "notify.h"
#include "reason.h"
#include "show.h"
#include "work.h"

enum {
	/* Of the flows of an owner, listeners are told 100 times a second in the long run... */
	RISO_NEWS_NS = 10 * NSEC_PER_MSEC,
	/* ...and 100 times at once. */
	RISO_NEWS_BURST = 100,
	/* One go tells of 32 flows at most, as it holds the mutex. */
	RISO_NEWS_VISITS = 32,
};

static void tell(struct riso_flow *f, enum riso_flow_event event)
{
	struct riso_flow_info info;

	riso_show_fill_flow(f, &info);
	riso_nl_flow_event(f->rd->ibdev->name, &info, event);
}

/**
 * riso_notify_error - tell listeners that a flow has failed, unless they know
 * @f: the flow
 *
 * Context: &riso_dev.mutex.
 */
void riso_notify_error(struct riso_flow *f)
{
	enum ib_wc_status error = READ_ONCE(f->error);

	lockdep_assert_held(&f->rd->mutex);
	if (f->told_error == error)
		return;
	f->told_error = error;
	if (error != IB_WC_SUCCESS)
		tell(f, RISO_FLOW_FAILED);
}

/* Of what programs do, which may be as often as they like, not everything is told. */
static bool may_tell(const struct riso_flow *f)
{
	return !f->who.pid ||
	       riso_rate_take(&f->rd->told, riso_place_key(&f->who.owner), RISO_NEWS_NS,
			      RISO_NEWS_BURST);
}

/**
 * riso_notify_news - tell listeners what has changed with a flow, unless they know
 * @f: the flow
 *
 * A rule never changes: its id stands for the weight.
 *
 * Context: &riso_dev.mutex.
 */
void riso_notify_news(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->mutex);
	if (f->told && f->told_reason == riso_reason_of(f) && f->told_class == f->class &&
	    f->told_rule == f->rule_id && f->told_over == f->over_target &&
	    f->told_around == riso_flow_is_around(f))
		return;
	/* The drain work tells the last of what a process has changed too often. */
	if (!may_tell(f)) {
		spin_lock_irq(&f->rd->lock);
		riso_news_owe(f);
		spin_unlock_irq(&f->rd->lock);
		return;
	}
	f->told_over = f->over_target;
	f->told_around = riso_flow_is_around(f);
	f->told_reason = riso_reason_of(f);
	f->told_class = f->class;
	f->told_rule = f->rule_id;
	f->told = true;
	tell(f, RISO_FLOW_NEWS);
}

/**
 * riso_notify_gone - tell listeners that know of a flow that it is gone
 * @f: the flow
 *
 * Context: &riso_dev.mutex.
 */
void riso_notify_gone(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->mutex);
	if (f->told && may_tell(f))
		tell(f, RISO_FLOW_GONE);
}

/**
 * riso_notify_faults - tell listeners what the process of a group did wrong
 * @rd: the device
 * @g: the group
 *
 * It tells of each kind once, and not of all groups where they are many, so that nobody can
 * make much noise.
 *
 * Context: &riso_dev.mutex.
 */
void riso_notify_faults(struct riso_dev *rd, struct riso_group *g)
{
	unsigned long faults = READ_ONCE(g->faults) & ~g->told_faults;
	struct riso_group_info info;

	lockdep_assert_held(&rd->mutex);
	for (; faults; faults &= faults - 1) {
		riso_line_group_info(rd, g, &info);
		info.fault = __ffs(faults);
		g->told_faults |= BIT(info.fault);
		if (__ratelimit(&rd->faults))
			riso_nl_fault_event(rd->ibdev->name, &info);
	}
}

/**
 * riso_notify_some - tell listeners of some of the flows that they have to be told of
 * @rd: the device
 *
 * That is, which have failed while posting, which are not managed any more since, and what
 * their processes have changed too often. What is left over is the drain work's, some time
 * later.
 *
 * Context: &riso_dev.mutex.
 */
void riso_notify_some(struct riso_dev *rd)
{
	int visits = RISO_NEWS_VISITS;
	struct riso_flow *f, *last;

	lockdep_assert_held(&rd->mutex);
	spin_lock_irq(&rd->lock);
	/* Those that have to wait for longer go behind it. */
	last = list_empty(&rd->news) ? NULL :
	       list_last_entry(&rd->news, struct riso_flow, news);
	for (f = NULL; last && f != last && visits; visits--) {
		f = list_first_entry(&rd->news, struct riso_flow, news);
		list_del_init(&f->news);
		spin_unlock_irq(&rd->lock);
		riso_notify_news(f);
		riso_notify_error(f);
		spin_lock_irq(&rd->lock);
	}
	if (!list_empty(&rd->news))
		riso_work_settle(rd);
	spin_unlock_irq(&rd->lock);
}
