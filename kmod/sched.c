// SPDX-License-Identifier: GPL-2.0
/*
 * The scheduler: which flow posts next, and when.
 *
 * Theory of operation
 *
 * What a NIC has been given it sends, first come, first served, so a small message
 * waits behind all that was posted before it. The cure is to post bulk late: to
 * hold it here, and to give the device just what keeps it busy.
 *
 * There is one arbiter for what a device sends (WRITE, SEND, atomics) and one for
 * what READs bring to it; the two never block each other. Each decides two things.
 *
 * Whose turn. Groups are served by virtual time (core/share.c): what a group posts
 * advances it by the device time that it takes, max(bytes / MaxRate, messages / MaxOps),
 * divided by its weight. A tenant has one group, unless the device says that the processes
 * of a control group or of a user share. Inside a group, flows take turns of one token. Who
 * finds nobody in line has a turn at once.
 *
 * When. While the device has a latency flow (L > 0), messages are cut to chunks
 * and two limits hold:
 * - The clock, if SafeUtil is less than MaxRate, MaxOps is set, or the window is off. It says
 *   until when the device has work, and bulk is posted when it is not ahead of the time. Each
 *   post advances it by its device time at SafeUtil. What was missed is lost, not made up for as
 *   a burst: the queue that a burst leaves would hardly get shorter at a rate near the link's. But
 *   where timers are late all the time, completions drive. A device that delivers much less than
 *   MaxRate although it is full slows the clock. Where chunks are too short for a timer, the clock
 *   works in ticks.
 * - The window. It caps what is posted and not completed: per device a chunk, a part of the
 *   next one that comes just in time, and what covers the time that completions take, beyond
 *   the paths' own bandwidth-delay products; per flow a chunk more. It is finer than whole
 *   chunks: between two completions the oldest piece is taken to leave the device at the best
 *   rate that it has shown. Bytes of a flow that does not complete (its peer is
 *   gone, the network is slow) are not in the NIC's queue any more after a while: they count
 *   against the flow, not against the device.
 * With no latency flow nothing of the kernel is cut and the clock does not run. Flows are open
 * (open.c) unless several groups fill the device. Then a window keeps the queue here, where
 * turns are taken; programs cut to 128 KB then, to take turns too.
 *
 * What cannot wait goes at once. What a sparse group posts is charged as debt: a group
 * that had nothing held may post a chunk in each slice, in one chain or many, and a
 * reply behind it. So is what a flow posts that leaves management, and one piece of a
 * flow that has posted nothing for a second, unless it is in line and others have their
 * turns. What flows that end, fail or flush post is not charged.
 *
 * One timer per device is armed while something is held, for the clock or to look
 * for completions that the ULP has not polled (see cq_poll.c). It is pump.c's and runs in hard
 * interrupt context (in softirq on PREEMPT_RT), where verbs may be called: in a
 * softirq it could be late by milliseconds on 6.1 (ksoftirqd).
 *
 * All state is under &riso_dev.lock, which is never held over a post: the flow is
 * marked as posting, the lock dropped, and whoever comes meanwhile takes another
 * flow or leaves. Who posts is not preempted.
 */

#include <linux/hrtimer.h>

#include "batch.h"
#include "compat.h"
#include "cq.h"
#include "flow.h"
#include "limits.h"
#include "line.h"
#include "open.h"
#include "peer.h"
#include "process.h"
#include "refuse.h"
#include "ring.h"
#include "sched.h"
#include "tag.h"
#include "trace.h"
#include "turn.h"
#include "window.h"

enum {
	/* A turn of a throughput flow is 64 messages, if no number was set. */
	RISO_TURN_OPS = 64,
	/* A flow that holds work and has posted nothing for 1 s posts a piece without a turn ... */
	RISO_STUCK_NS = NSEC_PER_SEC,
	/* ... but in line, where others have their turns, after ten times that. */
	RISO_STUCK_IN_LINE = 10,
	/*
	 * A run releases the lock at most 16 times. After each release it may drop as many
	 * processes from the line again. With interrupts off it releases nothing, and the
	 * timer continues.
	 */
	RISO_RUN_ROUNDS = 16,
	/* No batch begins after 128 work requests: a run may have interrupts off. */
	RISO_RUN_WRS = 128,
};

static u32 token_ops(const struct riso_dev *rd)
{
	return rd->cfg.token_ops == RISO_AUTO ? RISO_TURN_OPS : rd->cfg.token_ops;
}

static void charge_turn(struct riso_dev *rd, const struct riso_turn *t, u32 wire, u64 now)
{
	struct riso_flow *f = t->f;
	struct riso_group_dir *gd = &f->group->dir[t->dir];
	u32 ops = f->batch->num;
	struct riso_bill bill = {
		.wire = wire,
		.ops = ops,
		.busy_ns = riso_cost_of(rd, wire, ops, t->pace),
		.debt = t->qt.debt,
	};

	/* What a flow hands over to end, or has flushed, is nobody's turn. */
	f->batch->charged = f->phase == RISO_PHASE_PACED;
	if (f->batch->charged) {
		riso_line_charge(rd, t->dir, f->group, &bill, now);
		riso_peer_charge(f, t->dir, wire, now);
	}
	gd->turn_bytes += wire;
	gd->turn_ops += ops;
	if (gd->turn_bytes >= riso_token(rd) ||
	    (f->class == RISO_CLASS_THROUGHPUT && gd->turn_ops >= token_ops(rd))) {
		gd->turn_bytes = 0;
		gd->turn_ops = 0;
	}
	if (now - gd->slice_start_ns > RISO_SLICE_NS) {
		gd->slice_start_ns = now;
		gd->slice_bytes = 0;
	}
	gd->slice_bytes += wire;

	f->stale = false;
	f->debt = false;
	f->progress_ns = now;
	riso_window_add(f, t->dir, wire, now);
	riso_tag_note_out(f);
}

/**
 * riso_sched_arm - have the timer fire when it is wanted
 * @rd: the device
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_sched_arm(struct riso_dev *rd, u64 now)
{
	u64 when = rd->want_ns;
	bool looks = false;

	rd->want_ns = U64_MAX;
	if (!rd->running)
		return;
	if (now < rd->linger_ns)
		when = min(when, now + RISO_TICK_NS);
	else if (!rd->held && !rd->asking && list_empty(&rd->quiet) &&
		 list_empty(&rd->busy_peers))
		return;
	/*
	 * Where chunks are too short for a timer, events of the provider start the next run
	 * and the timer is the backstop. If this run used up its drops, others still stand
	 * behind those that it dropped: then the timer fires as soon as find_rest_end() says.
	 */
	if (!rd->paces_chunks && rd->drops)
		when = max(when, now + RISO_TICK_NS / 2);
	/* The next post takes completions along, if it is soon. */
	if (when == U64_MAX && riso_completions_drive(rd)) {
		when = now + rd->look_ns;
		looks = true;
	} else if (when == U64_MAX ||
		   (when > now + RISO_REAP_MAX_NS &&
		    !(list_empty(&rd->quiet) && (!rd->held || list_empty(&rd->busy_peers))))) {
		when = min(when, riso_window_next_reap(rd, now));
	}
	if (rd->timer_ns <= when) {
		rd->looks &= looks;
		return;
	}
	rd->looks = looks;
	WRITE_ONCE(rd->timer_ns, when);
	hrtimer_start(&rd->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_PINNED);
}

/*
 * While one CPU posts for a flow, no other can. If the scheduler took the CPU from the one
 * that posts, the flow would wait for as long as whatever runs instead. So it keeps its
 * CPU. On PREEMPT_RT it cannot, as the provider's locks sleep.
 */
static void keep_cpu(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static void release_cpu(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

/*
 * Pick the next turn. When the run has dropped its quota of processes that want nothing,
 * release the lock and try again, @rounds times at most.
 */
static bool pick_behind(struct riso_dev *rd, struct riso_turn *t, u64 *now, int *rounds,
			unsigned long *flags)
{
	while (!riso_turn_pick(rd, *now, t)) {
		if (rd->drops)
			return false;
		if (!*rounds) {
			rd->want_ns = *now;
			return false;
		}
		--*rounds;
		spin_unlock_irqrestore(&rd->lock, *flags);
		spin_lock_irqsave(&rd->lock, *flags);
		*now = ktime_get_ns();
		rd->drops = RISO_RUN_BATCHES;
	}
	return true;
}

/*
 * When does a run go on that began at @start and leaves something over? After as long as it took,
 * so that the timer leaves about half of the CPU to whom it interrupts. A run may have been
 * interrupted itself: no more counts than completions are looked for in.
 */
static u64 find_rest_end(u64 start)
{
	u64 now = ktime_get_ns();

	return now + min_t(u64, now - start, RISO_REAP_MAX_NS);
}

/* The provider did not take all of a batch: what was charged for the rest is not owed. */
static void refund(struct riso_flow *f, const struct riso_untaken *rest)
{
	const struct riso_batch *b = f->batch;

	lockdep_assert_held(&f->rd->lock);
	if (!rest->ops)
		return;
	riso_window_sub(f, b->dir, rest->wire);
	if (b->charged) {
		riso_line_refund(f->rd, b->dir, f->group, rest->wire, rest->ops);
		riso_peer_refund(f, b->dir, rest->wire);
	}
	if (f->slots->head == f->slots->tail)
		riso_tag_note_idle(f);
}

/**
 * riso_sched_rounds - how often a run may let others have the lock
 *
 * Context: before the lock is taken.
 * Return: what riso_sched_go() is to be told.
 */
int riso_sched_rounds(void)
{
	return irqs_disabled() ? 0 : RISO_RUN_ROUNDS;
}

/**
 * riso_sched_go - post what may be posted now, under the lock
 * @rd: the device
 * @first: a flow that has something new, or more room than before, or NULL
 * @rounds: what riso_sched_rounds() said
 * @flags: of the lock, which is dropped for each batch
 * @now: time, ns
 *
 * Bounded; what is left over is the timer's.
 *
 * Context: under &riso_dev.lock alone, and RCU if there is @first.
 */
void riso_sched_go(struct riso_dev *rd, struct riso_flow *first, int rounds,
		   unsigned long *flags, u64 now)
{
	int batches = RISO_RUN_BATCHES;
	u64 start = now;
	u32 wrs = 0;
	struct riso_turn t;
	bool picked;
	int dir;

	lockdep_assert_held(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++)
		rd->grants[dir] = RISO_RUN_BATCHES;
	rd->drops = RISO_RUN_BATCHES;
	picked = first && riso_turn_pick_alone(first, now, &t);
	while (picked || pick_behind(rd, &t, &now, &rounds, flags)) {
		struct riso_flow *f = t.f;
		const struct ib_send_wr *bad_wr;
		struct riso_untaken rest;
		struct ib_send_wr *wr;
		enum riso_posted how;
		u32 wire;
		int err;

		picked = false;
		if (!batches-- || wrs >= RISO_RUN_WRS) {
			rd->want_ns = now;
			break;
		}
		riso_turn_remove(f, now);
		wr = riso_batch_cut(f, &t.qt, now, &wire);
		if (WARN_ON_ONCE(!wr))
			continue;
		wrs += f->batch->num;
		charge_turn(rd, &t, wire, now);
		f->posting = true;
		riso_pressure_serve(&f->group->pressure, true, now);
		keep_cpu();
		spin_unlock_irqrestore(&rd->lock, *flags);

		bad_wr = wr;
		err = rd->orig.post_send(f->qp, wr, &bad_wr);

		spin_lock_irqsave(&rd->lock, *flags);
		release_cpu();
		now = ktime_get_ns();
		how = riso_batch_posted(f, err, bad_wr, now, &rest);
		if (err)
			refund(f, &rest);
		f->posting = false;
		riso_pressure_serve(&f->group->pressure, false, now);
		if (how == RISO_POSTED_REFUSED) {
			riso_flow_step(f, RISO_ON_REFUSE);
			riso_refuse_queue(f);
		} else if (how == RISO_POSTED_RETRY) {
			rd->want_ns = min(rd->want_ns, f->retry_ns);
		}
		riso_turn_wake(f, now);
		if (f->paused)
			wake_up_all(&rd->wait);
	}
	if (rd->want_ns <= now)
		rd->want_ns = find_rest_end(start);
	rd->ran_ns = now;
	riso_sched_arm(rd, now);
}

/**
 * riso_sched_run - post what may be posted now
 * @rd: the device
 *
 * Bounded; what is left over is the timer's.
 *
 * Context: any, under no lock of ours.
 */
void riso_sched_run(struct riso_dev *rd)
{
	int rounds = riso_sched_rounds();
	unsigned long flags;

	spin_lock_irqsave(&rd->lock, flags);
	riso_sched_go(rd, NULL, rounds, &flags, ktime_get_ns());
	spin_unlock_irqrestore(&rd->lock, flags);
}

/*
 * May the provider have what a flow posts at once? Pieces take more room in its queue than
 * the ULP knows of.
 */
static bool may_pass(const struct riso_flow *f)
{
	/* The provider knows best what to say about a QP that cannot send yet. */
	return f->mode == RISO_FLOW_PASS || f->state < IB_QPS_RTS ||
	       (f->mode == RISO_FLOW_DRAIN && !riso_ring_len(&f->q) && !f->posting &&
		!riso_tag_has_pieces(f->slots));
}

static int hold_chain(struct riso_flow *f, const struct ib_send_wr *wr, u64 now)
{
	bool first = !riso_ring_len(&f->q);
	u64 wire[RISO_DIRS];
	int err;

	err = riso_ring_add(f, wr, now, wire);
	if (err)
		return err;
	riso_open_update(f);
	if (f->phase == RISO_PHASE_REFUSED)
		riso_refuse_queue(f);
	else if (first && riso_line_is_sparse(f, wire, now))
		f->q.sparse_end = f->q.tail;
	return 0;
}

/**
 * riso_sched_post - take over what the ULP posts, and post what may be posted now
 * @f: a managed flow
 * @wr: a chain of work requests
 *
 * Context: any, under RCU and no lock of ours.
 * Return: 0 when all of it was taken over; RISO_SCHED_PASS when it is the provider's; or as
 * riso_ring_add(), then none was.
 */
int riso_sched_post(struct riso_flow *f, const struct ib_send_wr *wr)
{
	struct riso_dev *rd = f->rd;
	int rounds = riso_sched_rounds();
	int ret = RISO_SCHED_PASS;
	unsigned long flags;
	u64 now;

	spin_lock_irqsave(&rd->lock, flags);
	if (!may_pass(f)) {
		now = ktime_get_ns();
		ret = hold_chain(f, wr, now);
		if (!ret)
			riso_sched_go(rd, f, rounds, &flags, now);
	}
	spin_unlock_irqrestore(&rd->lock, flags);
	return ret;
}

/**
 * riso_sched_forget - a flow's posted work requests will not complete
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_sched_forget(struct riso_flow *f)
{
	int dir;

	lockdep_assert_held(&f->rd->lock);
	riso_turn_remove(f, ktime_get_ns());
	riso_tag_note_idle(f);
	/* What completes all the same is nobody's. */
	if (f->slots)
		f->slots->flow = NULL;
	for (dir = 0; dir < RISO_DIRS; dir++)
		riso_window_sub(f, dir, f->inflight[dir]);
}

/**
 * riso_sched_refresh - what bounds a flow may have changed
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_sched_refresh(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->lock);
	if (f->path.rtt_ns < rd->toggled_ns)
		riso_path_restart(&f->path, ktime_get_ns());
	riso_window_rebound(f);
	riso_window_update(f, RISO_TX);
	riso_window_update(f, RISO_RX);
	riso_turn_wake(f, ktime_get_ns());
}

/* Is it in line, and others have their turns? On a slow device its own may take seconds to come. */
static bool waits_for_turn(const struct riso_flow *f, u64 idle, u64 now)
{
	if (list_empty(&f->arb))
		return false;
	/* A path of a low rate takes longer, however many wait for it. */
	if (f->list == RISO_LIST_PEER)
		return riso_peer_when(f, f->arb_dir, now);
	return f->list == RISO_LIST_GROUP &&
	       idle / RISO_STUCK_NS < RISO_STUCK_IN_LINE &&
	       now - f->rd->arb[f->arb_dir].turn_ns < RISO_STUCK_NS;
}

/**
 * riso_sched_unstick - let a flow post that has not for a second, and does not wait for its turn
 * @f: the flow
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_sched_unstick(struct riso_flow *f, u64 now)
{
	u64 idle;

	lockdep_assert_held(&f->rd->lock);
	if (!riso_ring_len(&f->q) || f->debt)
		return;
	idle = now - max(f->progress_ns, riso_ring_since(f));
	if (idle < RISO_STUCK_NS || waits_for_turn(f, idle, now))
		return;
	f->debt = true;
	riso_turn_wake(f, now);
}
