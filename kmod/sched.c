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
 * of a control group or of a user share. Inside a group, flows take turns of one token.
 *
 * When. While the device has a latency flow (L > 0), messages are cut to chunks
 * and two limits hold:
 * - The clock. It says until when the device has work, and bulk is posted when it
 *   is not ahead of the time. Each post advances it by its device time at SafeUtil.
 *   What a late timer has missed is lost, not made up for as a burst: the queue that
 *   a burst leaves would hardly get shorter at a rate near the link's. A device that
 *   delivers less than MaxRate although it is full slows the clock. Where chunks are
 *   too short for a timer, the clock works in ticks.
 * - The window. It caps what is posted and not completed: per device two chunks
 *   beyond the paths' own bandwidth-delay products, per flow a chunk more. It is
 *   finer than whole chunks: between two completions the oldest piece is taken to
 *   leave the device at the rate at which it was seen to deliver. If MaxRate is set
 *   too high, or the timer is early, this is what keeps the queue short. Bytes of a
 *   flow that does not complete (its peer is gone, the network is slow) are not in
 *   the NIC's queue any more after a while: they count against the flow, not against
 *   the device.
 * With no latency flow nothing is cut and the clock does not run. One active group
 * posts without limit; with more, a window keeps the queue here, where turns are
 * taken, rather than in the device.
 *
 * What cannot wait goes at once and is charged all the same, as debt: flows in
 * error or draining, and what a sparse group posts, one that had nothing held: a chunk
 * in each slice, in one chain or many, and a reply behind it.
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
#include <linux/math64.h>

#include "batch.h"
#include "compat.h"
#include "cq.h"
#include "flow.h"
#include "limits.h"
#include "line.h"
#include "process.h"
#include "ring.h"
#include "sched.h"
#include "tag.h"
#include "trace.h"
#include "window.h"
#include "work.h"

enum {
	/* A turn of a throughput flow is 64 messages, if no number was set. */
	RISO_TURN_OPS = 64,
	/* A reply of a storage protocol: NVMe 16 bytes, iSER 76, SRP and NFS up to this. */
	RISO_REPLY_BYTES = 256,
	/* A flow that holds something and did not post for a second just posts. */
	RISO_STUCK_NS = NSEC_PER_SEC,
	/*
	 * How often a run lets others have the lock, and sees as many processes again that
	 * want nothing any more, if interrupts may come meanwhile. Else the timer goes on at
	 * once.
	 */
	RISO_RUN_ROUNDS = 16,
};

/* Whose turn it is, and how much of it. */
struct turn {
	struct riso_flow *f;
	enum riso_dir dir;
	struct riso_quantum qt;
};

static u32 token_ops(const struct riso_dev *rd)
{
	return rd->cfg.token_ops == RISO_AUTO ? RISO_TURN_OPS :
						rd->cfg.token_ops;
}

/**
 * riso_sched_remove - a flow has nothing that may be posted
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_sched_remove(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	if (list_empty(&f->arb))
		return;
	list_del_init(&f->arb);
	if (f->place != RISO_PLACE_GROUP)
		return;
	riso_line_leave(f->rd, f->arb_dir, &f->group->dir[f->arb_dir]);
}

/* Does it post at once, and nothing is cut? */
static bool goes_whole(const struct riso_flow *f)
{
	return f->flush || f->mode == RISO_FLOW_DRAIN ||
	       (f->ending && riso_ring_tells(&f->q));
}

static void place_flow(struct riso_flow *f, enum riso_place place)
{
	struct riso_dev *rd = f->rd;
	struct riso_group_dir *gd;

	f->place = place;
	if (place == RISO_PLACE_URGENT) {
		list_add_tail(&f->arb, &rd->urgent);
		return;
	}
	if (place == RISO_PLACE_PARKED) {
		list_add_tail(&f->arb, &rd->parked);
		return;
	}
	gd = &f->group->dir[f->arb_dir];
	riso_line_enter(rd, f->arb_dir, gd);
	/* A flow keeps its turn until the token is spent. */
	if (gd->turn) {
		list_add(&f->arb, &gd->flows);
	} else {
		list_add_tail(&f->arb, &gd->flows);
		trace_token_grant(f, f->arb_dir, riso_token(rd));
	}
}

/**
 * riso_sched_wake - see again whether a flow may post, and where it stands
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_sched_wake(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;
	enum riso_place where = RISO_PLACE_GROUP;
	u64 now = ktime_get_ns();
	enum riso_dir dir;

	lockdep_assert_held(&rd->lock);
	if (!f->q.recs)
		return;
	if (!riso_batch_ready(f, now)) {
		if (!list_empty(&f->arb) && f->place == RISO_PLACE_PARKED &&
		    now < f->retry_ns)
			return;
		riso_sched_remove(f);
		if (riso_ring_len(&f->q) && !f->posting && !f->paused &&
		    now < f->retry_ns)
			place_flow(f, RISO_PLACE_PARKED);
		return;
	}
	dir = riso_ring_dir(f);
	if (goes_whole(f) || f->debt || riso_ring_is_sparse(&f->q)) {
		where = RISO_PLACE_URGENT;
	} else if (!riso_window_fits(f, dir, riso_batch_next(f, riso_window_chunk(f, dir)))) {
		rd->stats[RISO_STAT_THROTTLE_WINDOW]++;
		trace_throttle(f, dir, 0, f->inflight[dir], riso_window_of_flow(f, dir),
			       RISO_CAUSE_FLOW);
		riso_sched_remove(f);
		return;
	}
	if (!list_empty(&f->arb) && f->place == where && f->arb_dir == dir)
		return;
	riso_sched_remove(f);
	f->arb_dir = dir;
	place_flow(f, where);
}

/* It is not the turn of a flow yet: say why, and when to look again. */
static void throttle(struct riso_dev *rd, const struct turn *t, const struct riso_pacer_limits *l,
		     const struct riso_pacer_say *say, u64 now)
{
	struct riso_arb *a = &rd->arb[t->dir];

	if (say->verdict == RISO_PACER_WINDOW) {
		rd->stats[RISO_STAT_THROTTLE_WINDOW]++;
		riso_pressure_why(&a->hold, RISO_WHY_WINDOW, now);
		trace_throttle(t->f, t->dir, 0, a->pacer.load, l->window, RISO_CAUSE_DEVICE);
	} else {
		rd->stats[RISO_STAT_THROTTLE_CLOCK]++;
		a->estimate.slack = true;
		riso_pressure_why(&a->hold, RISO_WHY_CLOCK, now);
		trace_throttle(t->f, t->dir, say->when - now, t->f->inflight[t->dir], 0,
			       RISO_CAUSE_CLOCK);
	}
	rd->want_ns = min(rd->want_ns, say->when);
}

static struct riso_pacer_limits limits_of(const struct riso_dev *rd, enum riso_dir dir, u64 now)
{
	struct riso_pacer_limits l = {
		.clocked = riso_is_shaped(rd),
		.tick_ns = riso_tick(rd),
		.pace = riso_pace(rd, dir),
		.speed = riso_speed(rd, dir),
		.window = RISO_NEVER,
	};

	if (l.clocked)
		l.window = riso_window(rd);
	else if (now < rd->arb[dir].contested_ns)
		l.window = riso_process_open_limit(rd, dir);
	return l;
}

static bool pick_dir(struct riso_dev *rd, enum riso_dir dir, u64 now, struct turn *t)
{
	struct riso_arb *a = &rd->arb[dir];
	struct riso_pacer_limits l;
	struct riso_group_dir *gd;
	struct riso_pacer_say say;
	u64 limit;
	u32 need;

	while ((gd = riso_line_first(a)) && gd->asks)
		if (!riso_process_grant(rd, dir, riso_line_group(gd, dir)->user, now))
			return false;
	if (!gd)
		return false;
	t->f = list_first_entry(&gd->flows, struct riso_flow, arb);
	t->dir = dir;
	t->qt = (struct riso_quantum){ .chunk = riso_window_chunk(t->f, dir), .end = U64_MAX };
	l = limits_of(rd, dir, now);
	need = riso_batch_next(t->f, t->qt.chunk);
	say = riso_window_ask(rd, dir, &l, need, now);
	/* It may be processes that fill it, which nobody has looked at for a while. */
	if (say.verdict == RISO_PACER_WINDOW && !l.clocked && !list_empty(&rd->users)) {
		riso_process_read_some(rd, now);
		l.window = riso_process_open_limit(rd, dir);
		say = riso_window_ask(rd, dir, &l, need, now);
		say.when = min(say.when, now + RISO_REAP_MAX_NS);
	}
	if (say.verdict != RISO_PACER_GO) {
		throttle(rd, t, &l, &say, now);
		return false;
	}
	riso_pressure_why(&a->hold, RISO_WHY_NONE, now);
	limit = riso_window_of_flow(t->f, dir);
	t->qt.bytes = min(say.bytes, limit - min(limit, t->f->inflight[dir]));
	return true;
}

static bool pick_turn(struct riso_dev *rd, u64 now, struct turn *t)
{
	struct riso_flow *f;
	int dir;

	f = list_first_entry_or_null(&rd->urgent, struct riso_flow, arb);
	if (f) {
		bool whole = goes_whole(f);
		bool sparse = !whole && riso_ring_is_sparse(&f->q);

		t->f = f;
		t->dir = riso_ring_dir(f);
		t->qt.chunk = whole ? 0 : riso_window_chunk(f, t->dir);
		t->qt.bytes = whole || sparse ? U64_MAX : 0;
		t->qt.end = U64_MAX;
		if (sparse)
			t->qt.end = f->q.sparse_end;
		else if (f->ending && riso_ring_tells(&f->q))
			t->qt.end = f->q.told_end;
		t->qt.debt = true;
		rd->stats[RISO_STAT_DEBT_POSTED]++;
		return true;
	}
	/* The direction that was not served last goes first. */
	for (dir = 0; dir < RISO_DIRS; dir++) {
		enum riso_dir d = (rd->last_dir + 1 + dir) % RISO_DIRS;

		if (pick_dir(rd, d, now, t)) {
			rd->last_dir = d;
			return true;
		}
	}
	return false;
}

static void charge_turn(struct riso_dev *rd, const struct turn *t, u32 wire, u64 now)
{
	struct riso_flow *f = t->f;
	struct riso_group_dir *gd = &f->group->dir[t->dir];
	u32 ops = f->batch.num;

	/* What is only flushed, or soon will be, takes no time of the device. */
	f->charged = !f->flush && !f->ending;
	if (f->charged) {
		riso_line_move_clock(rd, t->dir,
				     riso_cost_of(rd, wire, ops, riso_pace(rd, t->dir)), now);
		riso_line_charge(rd, t->dir, f->group, wire, ops, t->qt.debt, now);
	}
	gd->turn += wire;
	gd->turn_ops += ops;
	if (gd->turn >= riso_token(rd) ||
	    (f->class == RISO_CLASS_THROUGHPUT &&
	     gd->turn_ops >= token_ops(rd))) {
		gd->turn = 0;
		gd->turn_ops = 0;
	}
	if (now - gd->slice_ns > RISO_SLICE_NS) {
		gd->slice_ns = now;
		gd->slice_bytes = 0;
	}
	gd->slice_bytes += wire;

	f->stale = false;
	f->debt = false;
	f->progress_ns = now;
	riso_window_add(f, t->dir, wire);
	if (list_empty(&f->reap))
		f->cq->out++;
	list_move_tail(&f->reap, &rd->reap);
}

static void arm_timer(struct riso_dev *rd, u64 now)
{
	u64 when = rd->want_ns;

	rd->want_ns = U64_MAX;
	if ((!rd->held && !rd->asking && list_empty(&rd->quiet)) || !rd->running)
		return;
	/*
	 * Events of the provider drive it then, and the timer is the backstop. But it is at
	 * once that those in line go on who are behind others who want nothing any more.
	 */
	if (!rd->fine && rd->drops)
		when = max(when, now + RISO_TICK_NS / 2);
	/* The next post takes completions along, if it is soon. */
	if (when == U64_MAX ||
	    (when > now + RISO_REAP_MAX_NS && !list_empty(&rd->quiet)))
		when = min(when, riso_window_next_reap(rd, now));
	if (rd->timer_ns <= when)
		return;
	rd->timer_ns = when;
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
 * Pick, and let others have the lock after some of those who stood in front and want
 * nothing any more; @rounds times at most.
 */
static bool pick_behind(struct riso_dev *rd, struct turn *t, u64 *now, int *rounds,
			unsigned long *flags)
{
	while (!pick_turn(rd, *now, t)) {
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

/* The provider did not take all of a batch: what was charged for the rest is not owed. */
static void refund(struct riso_flow *f, const struct riso_untaken *rest)
{
	enum riso_dir dir;

	lockdep_assert_held(&f->rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++) {
		if (!rest->wire[dir])
			continue;
		riso_window_sub(f, dir, rest->wire[dir]);
		if (f->charged)
			riso_line_refund(f->rd, dir, f->group, rest->wire[dir], rest->ops);
	}
	if (f->slots->head == f->slots->tail)
		riso_window_idle(f);
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
	int batches = RISO_RUN_BATCHES;
	int rounds = irqs_disabled() ? 0 : RISO_RUN_ROUNDS;
	unsigned long flags;
	struct turn t;
	u64 now;
	int dir;

	spin_lock_irqsave(&rd->lock, flags);
	now = ktime_get_ns();
	for (dir = 0; dir < RISO_DIRS; dir++)
		rd->grants[dir] = RISO_RUN_BATCHES;
	rd->drops = RISO_RUN_BATCHES;
	while (pick_behind(rd, &t, &now, &rounds, &flags)) {
		struct riso_flow *f = t.f;
		const struct ib_send_wr *bad_wr;
		struct riso_untaken rest;
		struct ib_send_wr *wr;
		enum riso_posted how;
		u32 wire;
		int err;

		if (!batches--) {
			rd->want_ns = now;
			break;
		}
		riso_sched_remove(f);
		wr = riso_batch_cut(f, &t.qt, now, &wire);
		if (WARN_ON_ONCE(!wr))
			continue;
		charge_turn(rd, &t, wire, now);
		f->posting = true;
		riso_pressure_serve(&f->group->pressure, true, now);
		keep_cpu();
		spin_unlock_irqrestore(&rd->lock, flags);

		bad_wr = wr;
		err = rd->orig.post_send(f->qp, wr, &bad_wr);

		spin_lock_irqsave(&rd->lock, flags);
		release_cpu();
		now = ktime_get_ns();
		how = riso_batch_posted(f, err, bad_wr, now, &rest);
		if (err)
			refund(f, &rest);
		f->posting = false;
		riso_pressure_serve(&f->group->pressure, false, now);
		if (how == RISO_POSTED_REFUSED) {
			f->refused = true;
			queue_delayed_work(riso_wq, &f->refuse, 0);
		} else if (how == RISO_POSTED_RETRY) {
			rd->want_ns = min(rd->want_ns, f->retry_ns);
		}
		riso_sched_wake(f);
		if (f->paused)
			wake_up_all(&rd->wait);
	}
	arm_timer(rd, now);
	spin_unlock_irqrestore(&rd->lock, flags);
}

/* Would the group have posted at most a chunk in this slice, and a reply, with @wire? */
static bool fits_slice(const struct riso_flow *f, enum riso_dir dir, u64 wire, u64 now)
{
	const struct riso_group_dir *gd = &f->group->dir[dir];
	u64 spent = now - gd->slice_ns > RISO_SLICE_NS ? 0 : gd->slice_bytes;

	return !wire || spent + wire <= riso_chunk_wire(f->rd) +
					riso_piece_wire(RISO_REPLY_BYTES, f->mtu);
}

/**
 * riso_sched_is_sparse - may a flow's new chain of work requests go at once, as debt?
 * @f: a flow that had nothing held
 * @now: time, ns
 *
 * The whole chain goes or none of it: a target posts the data that were read and its
 * reply in one, and the initiator waits for the reply.
 *
 * Context: under &riso_dev.lock.
 * Return: true if the group has nothing held and posts, with the chain, at most a chunk
 * and a reply in the present slice.
 */
bool riso_sched_is_sparse(struct riso_flow *f, u64 now)
{
	u64 wire[RISO_DIRS];

	lockdep_assert_held(&f->rd->lock);
	if (!riso_is_shaped(f->rd) || !list_empty(&f->group->dir[RISO_TX].flows) ||
	    !list_empty(&f->group->dir[RISO_RX].flows))
		return false;
	riso_ring_sum(f, wire);
	return fits_slice(f, RISO_TX, wire[RISO_TX], now) &&
	       fits_slice(f, RISO_RX, wire[RISO_RX], now);
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
	riso_sched_remove(f);
	riso_window_idle(f);
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
	riso_window_update(f, RISO_TX);
	riso_window_update(f, RISO_RX);
	riso_sched_wake(f);
}

/**
 * riso_sched_unstick - let a flow that has not posted for a second post
 * @f: the flow
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_sched_unstick(struct riso_flow *f, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	if (!riso_ring_len(&f->q) || f->debt ||
	    now - max(f->progress_ns, riso_ring_since(f)) < RISO_STUCK_NS)
		return;
	f->debt = true;
	riso_sched_wake(f);
}
