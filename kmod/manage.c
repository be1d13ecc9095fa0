// SPDX-License-Identifier: GPL-2.0
/*
 * What a managed flow has, and where flows count.
 *
 * Owns the memory of queues and tags, &riso_flow.mode, and the numbers of flows by mode and
 * class of a device and of its groups. &riso_dev.mutex serialises it; what the post path
 * looks at is written under &riso_dev.lock inside the mutex.
 */

#include <linux/mm.h>

#include "cq.h"
#include "group.h"
#include "limits.h"
#include "manage.h"
#include "news.h"
#include "open.h"
#include "process.h"
#include "ring.h"
#include "sched.h"
#include "tag.h"
#include "turn.h"
#include "userpath.h"
#include "work.h"

enum {
	/* Queues of all devices together may take a 64th of the memory. */
	RISO_MEMORY_SHARE = 64,
};

static atomic64_t memory_used;

static u64 queue_size(const struct riso_flow *f)
{
	return riso_ring_size(f) + riso_batch_size(f);
}

/**
 * riso_manage_make_ready - give a flow a queue and tags
 * @f: the flow; does nothing if it has them
 *
 * Context: &riso_dev.mutex, may sleep.
 * Return: 0; -ENOMEM if there is no memory, or all queues together would take too much.
 */
int riso_manage_make_ready(struct riso_flow *f)
{
	u64 size;

	lockdep_assert_held(&f->rd->mutex);
	if (f->q.recs)
		return 0;
	size = queue_size(f);
	if (atomic64_add_return(size, &memory_used) >
	    (totalram_pages() << PAGE_SHIFT) / RISO_MEMORY_SHARE)
		goto err_used;
	if (riso_batch_alloc(f))
		goto err_used;
	if (riso_ring_alloc(f))
		goto err_batch;
	if (!f->slots && riso_tag_alloc(f))
		goto err_queue;
	spin_lock_irq(&f->rd->lock);
	list_add_tail(&f->managed, &f->rd->managed);
	spin_unlock_irq(&f->rd->lock);
	return 0;

err_queue:
	riso_ring_free(f);
err_batch:
	riso_batch_free(f);
err_used:
	atomic64_sub(size, &memory_used);
	return -ENOMEM;
}

/**
 * riso_manage_make_bare - take a flow its queue
 * @f: the flow, with nothing held; does nothing if it has none
 *
 * Context: &riso_dev.mutex.
 */
void riso_manage_make_bare(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->mutex);
	if (!f->q.recs)
		return;
	spin_lock_irq(&f->rd->lock);
	list_del_init(&f->managed);
	riso_sched_forget(f);
	spin_unlock_irq(&f->rd->lock);
	riso_ring_free(f);
	riso_batch_free(f);
	atomic64_sub(queue_size(f), &memory_used);
}

/**
 * riso_manage_tally - count a flow in its group
 * @f: the flow
 * @gone: it belongs there no longer
 *
 * Context: &riso_dev.mutex.
 */
void riso_manage_tally(struct riso_flow *f, bool gone)
{
	bool counts = f->class == RISO_CLASS_LATENCY ? f->counted : f->shim || f->q.recs;

	lockdep_assert_held(&f->rd->mutex);
	if (f->tallied)
		--*f->tallied;
	f->tallied = counts && !gone && f->group ? &f->group->tally[f->class] : NULL;
	if (f->tallied)
		++*f->tallied;
}

/**
 * riso_manage_set_mode - change how the hooks treat a flow
 * @f: the flow
 * @mode: how
 *
 * Context: under &riso_dev.lock.
 */
void riso_manage_set_mode(struct riso_flow *f, enum riso_flow_mode mode)
{
	struct riso_dev *rd = f->rd;
	u32 managed = rd->managed_flows;

	lockdep_assert_held(&rd->lock);
	managed -= f->mode == RISO_FLOW_MANAGED;
	managed += mode == RISO_FLOW_MANAGED;
	WRITE_ONCE(rd->managed_flows, managed);
	rd->draining_flows -= f->mode == RISO_FLOW_DRAIN;
	rd->draining_flows += mode == RISO_FLOW_DRAIN;
	WRITE_ONCE(f->mode, mode);
	riso_flow_update_post(f);
	riso_open_update(f);
}

/**
 * riso_manage_refresh_all - what bounds flows may have changed
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 */
void riso_manage_refresh_all(struct riso_dev *rd)
{
	struct riso_flow *f;

	lockdep_assert_held(&rd->mutex);
	list_for_each_entry(f, &rd->managed, managed) {
		spin_lock_irq(&rd->lock);
		riso_sched_refresh(f);
		spin_unlock_irq(&rd->lock);
	}
}

/**
 * riso_manage_count_latency - count a flow as a latency flow, or no longer
 * @f: the flow
 * @latency: whether it is one in RTS
 *
 * The first and the last one change how the device is shaped.
 *
 * Context: &riso_dev.mutex, may sleep.
 */
void riso_manage_count_latency(struct riso_flow *f, bool latency)
{
	struct riso_dev *rd = f->rd;
	bool refresh;

	lockdep_assert_held(&f->rd->mutex);
	if (f->counted == latency)
		return;
	f->counted = latency;
	spin_lock_irq(&rd->lock);
	WRITE_ONCE(rd->latency_flows, rd->latency_flows + (latency ? 1 : -1));
	f->over_target = latency && riso_over_target(rd);
	refresh = riso_limits_update(rd);
	spin_unlock_irq(&rd->lock);
	if (refresh)
		riso_manage_refresh_all(rd);
	riso_process_refresh_all(rd);
	riso_sched_run(rd);
	/* The drain work tells of the first and the last one. */
	if (rd->told_latency != !!rd->latency_flows)
		riso_work_settle(rd);
}

/* What the flow holds and posts counts for its new group from now on. */
static void leave_group(struct riso_flow *f, struct riso_group *old, struct riso_group *g,
			u64 now)
{
	u32 held = f->q.recs ? riso_ring_len(&f->q) : 0;

	if (held) {
		riso_pressure_hold(&g->pressure, held, now);
		riso_pressure_release(&old->pressure, held);
	}
	if (f->posting) {
		riso_pressure_serve(&g->pressure, true, now);
		riso_pressure_serve(&old->pressure, false, now);
	}
}

/**
 * riso_manage_join_group - put a flow into its group
 * @f: the flow; a live one moves with what it holds
 *
 * Context: &riso_dev.mutex, may sleep.
 */
void riso_manage_join_group(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;
	struct riso_group *g = riso_group_get(rd, f);
	struct riso_group *old = f->group;
	u64 now;

	lockdep_assert_held(&f->rd->mutex);
	if (!g)
		return;
	riso_manage_tally(f, true);
	spin_lock_irq(&rd->lock);
	now = ktime_get_ns();
	riso_turn_remove(f, now);
	if (old && old != g)
		leave_group(f, old, g, now);
	f->group = g;
	g->weight = f->weight;
	riso_turn_wake(f, now);
	spin_unlock_irq(&rd->lock);
	riso_group_put(rd, old);
}

/**
 * riso_manage_count_sender - count a flow that its process posts for, or no longer
 * @f: the flow, which has a group
 * @sends: whether it is in RTS
 *
 * A process is given grants while it has such a flow.
 *
 * Context: &riso_dev.mutex.
 */
void riso_manage_count_sender(struct riso_flow *f, bool sends)
{
	lockdep_assert_held(&f->rd->mutex);
	if (f->sends == sends)
		return;
	f->sends = sends;
	WRITE_ONCE(f->group->senders, f->group->senders + (sends ? 1 : -1));
}

/**
 * riso_manage_set_shim - let the process of a flow post for it, or no longer
 * @f: the flow
 * @shim: whether it does
 *
 * Context: &riso_dev.mutex.
 */
void riso_manage_set_shim(struct riso_flow *f, bool shim)
{
	lockdep_assert_held(&f->rd->mutex);
	if (!f->group)
		return;
	if (f->shim != shim)
		WRITE_ONCE(f->around, false);
	if (!shim) {
		spin_lock_irq(&f->rd->lock);
		riso_userpath_release(f);
		spin_unlock_irq(&f->rd->lock);
	}
	f->shim = shim;
	riso_manage_count_sender(f, shim && f->state == IB_QPS_RTS);
}

/**
 * riso_manage_surrender - a flow posts what is not known here
 * @f: the flow; what it holds, and posts until that is gone, still goes in order
 *
 * Context: any, under RCU and no lock of ours.
 */
void riso_manage_surrender(struct riso_flow *f)
{
	unsigned long flags;

	spin_lock_irqsave(&f->rd->lock, flags);
	/* Another CPU may have done it, or the device be disabled. */
	if (f->mode == RISO_FLOW_MANAGED) {
		f->unfit = RISO_REASON_UNKNOWN_OPCODE;
		f->cq->uses -= f->cq_uses;
		f->cq_uses = 0;
		riso_manage_set_mode(f, RISO_FLOW_DRAIN);
		riso_news_owe(f);
	}
	spin_unlock_irqrestore(&f->rd->lock, flags);
}

/* Leave a flow alone that has drained. False if one is to drain and has not. */
static bool settle_flow(struct riso_flow *f)
{
	if (f->mode == RISO_FLOW_PASS)
		return true;
	if (f->mode == RISO_FLOW_MANAGED)
		return f->rd->state == RISO_DEV_ENABLE;
	if (riso_ring_len(&f->q) || f->posting ||
	    (f->slots && f->slots->head != f->slots->tail))
		return false;
	riso_manage_set_mode(f, RISO_FLOW_PASS);
	return true;
}

/**
 * riso_manage_settle_all - leave alone the flows that have drained
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 * Return: how many flows are still draining.
 */
u32 riso_manage_settle_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	u32 draining = 0;
	bool settled;

	lockdep_assert_held(&rd->mutex);
	/* Programs can have the drain work run without end: it looks no further then. */
	spin_lock_irq(&rd->lock);
	settled = !rd->draining_flows &&
		  (rd->state == RISO_DEV_ENABLE || !rd->managed_flows);
	spin_unlock_irq(&rd->lock);
	if (settled)
		return 0;
	list_for_each_entry(f, &rd->managed, managed) {
		spin_lock_irq(&rd->lock);
		draining += !settle_flow(f);
		spin_unlock_irq(&rd->lock);
	}
	return draining;
}

/**
 * riso_manage_bare_all - give the memory of queues and tags back
 * @rd: a device whose hooks for posting and polling are gone
 *
 * Context: &riso_dev.mutex.
 */
void riso_manage_bare_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	unsigned long qpn;

	lockdep_assert_held(&rd->mutex);
	xa_for_each(&rd->qpns, qpn, f) {
		riso_manage_make_bare(f);
		riso_tag_free(f);
		riso_manage_tally(f, false);
	}
}
