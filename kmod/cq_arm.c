// SPDX-License-Identifier: GPL-2.0
/*
 * Events: when a ULP that waits is woken up.
 *
 * Owns &riso_cq.quiet and &riso_dev.quiet. While a CQ is quiet the provider was not asked
 * for an event, and the reaper calls the ULP when there is something for it. If the ULP
 * asks for an event while completions are in the soft list, it is told of them.
 *
 * Locks: &riso_cq.poll_lock covers &riso_cq.quiet, &riso_dev.lock inside it the list. The
 * ULP asks for events in any context; the reaper comes in hard interrupt context.
 */

#include <linux/workqueue.h>

#include "cq.h"
#include "cq_arm.h"
#include "dev.h"
#include "limits.h"
#include "sched.h"
#include "work.h"

/*
 * May the reaper stand in for the provider's events on this CQ? Only the RDMA core's
 * own handlers, which just schedule, may be called from where it runs; and nobody
 * but managed flows may use the CQ, whose completions may wait for a tick. Where
 * completions come faster than a timer should, there is nothing to gain. Where the timer is
 * late, there is much to lose.
 */
static bool may_be_quiet(const struct riso_cq *c)
{
	const struct riso_dev *rd = c->rd;

	lockdep_assert_held(&rd->lock);
	return riso_cq_is_ours(c) && rd->running && rd->was_shaped && rd->paces_chunks &&
	       riso_timer_late(rd) < RISO_TICK_NS && c->flows_out && c->cq->wc &&
	       c->cq->poll_ctx != IB_POLL_DIRECT &&
	       atomic_read(&c->cq->usecnt) == c->uses;
}

/* Let the reaper stand in for the provider, if it may; say whether it does. */
static bool become_quiet(struct riso_cq *c, enum ib_cq_notify_flags flags)
{
	struct riso_dev *rd = c->rd;
	unsigned long irq;
	bool missed, quiet;

	spin_lock_irqsave(&c->poll_lock, irq);
	missed = c->soft_head != c->soft_tail;
	if (!missed && !c->quiet && (flags & IB_CQ_NEXT_COMP)) {
		spin_lock(&rd->lock);
		WRITE_ONCE(c->quiet, may_be_quiet(c));
		if (c->quiet)
			list_add_tail(&c->quiet_list, &rd->quiet);
		spin_unlock(&rd->lock);
	}
	quiet = c->quiet && !missed;
	spin_unlock_irqrestore(&c->poll_lock, irq);
	return quiet;
}

/**
 * riso_cq_notify - what the ULP's req_notify_cq does
 * @c: the CQ
 * @flags: of the request
 *
 * While chunks of this CQ are out, each of their completions would wake the ULP up
 * for nothing. The reaper polls the CQ at every tick anyway, so the provider is not
 * asked for an event, and the reaper calls the ULP when there is something for it.
 *
 * In all other cases the provider is asked, because some ULPs ignore the answer. An
 * adapter raises an event at once if its CQ is not empty. So if completions are in the
 * soft list and the ULP did not ask to be told of them, it is called.
 *
 * Context: any.
 * Return: more than 0 if the ULP asked to be told of, and has, completions that
 * it did not poll; else what the provider returned.
 */
int riso_cq_notify(struct riso_cq *c, enum ib_cq_notify_flags flags)
{
	struct riso_dev *rd = c->rd;
	unsigned long irq;
	bool missed;
	int ret;

	/* One that just becomes quiet, or loud, is asked about again. */
	if ((READ_ONCE(c->quiet) || READ_ONCE(rd->paces_chunks)) && become_quiet(c, flags)) {
		riso_sched_run(rd);
		return 0;
	}
	ret = rd->orig.req_notify_cq(c->cq, flags);
	if (ret < 0)
		return ret;
	/* The reaper may have come before the provider was asked. */
	spin_lock_irqsave(&c->poll_lock, irq);
	missed = c->soft_head != c->soft_tail;
	if (missed && !c->dead && !(flags & IB_CQ_REPORT_MISSED_EVENTS))
		queue_work(riso_wq, &c->wake);
	spin_unlock_irqrestore(&c->poll_lock, irq);
	return missed && (flags & IB_CQ_REPORT_MISSED_EVENTS) ? 1 : ret;
}

/**
 * riso_cq_make_loud - leave events to the provider again
 * @c: a quiet CQ
 *
 * Context: under &riso_cq.poll_lock.
 * Return: true if some were missed.
 */
bool riso_cq_make_loud(struct riso_cq *c)
{
	lockdep_assert_held(&c->poll_lock);
	WRITE_ONCE(c->quiet, false);
	spin_lock(&c->rd->lock);
	list_del_init(&c->quiet_list);
	spin_unlock(&c->rd->lock);
	return c->soft_head != c->soft_tail ||
	       c->rd->orig.req_notify_cq(c->cq, IB_CQ_NEXT_COMP |
					 IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

/**
 * riso_cq_check_quiet - a CQ was polled: wake its ULP up if there is something for it
 * @c: the CQ
 *
 * Context: under &riso_cq.poll_lock.
 */
void riso_cq_check_quiet(struct riso_cq *c)
{
	bool keep;

	lockdep_assert_held(&c->poll_lock);
	if (!c->quiet)
		return;
	spin_lock(&c->rd->lock);
	keep = c->soft_head == c->soft_tail && may_be_quiet(c);
	spin_unlock(&c->rd->lock);
	if (!keep && riso_cq_make_loud(c))
		c->cq->comp_handler(c->cq, c->cq->cq_context);
}
