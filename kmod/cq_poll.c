// SPDX-License-Identifier: GPL-2.0
/*
 * Polls: many completions of chunks become the one that the ULP expects.
 *
 * Owns the rewriting of what a provider's poll_cq returns, the list of completions that
 * were reaped (&riso_cq.soft), and the reaper.
 *
 * The reaper polls on behalf of a ULP that is busy with something else: a target
 * works on commands in the thread that polls, for up to a millisecond, and pacing
 * cannot wait for it. What belongs to the ULP goes to a soft list and is the first
 * thing that its next poll finds. The provider raised its event when it made the
 * completion. If the CQ is quiet it did not, and the reaper wakes the ULP up, see cq_arm.c.
 *
 * Locks: &riso_cq.poll_lock serialises the polls of one CQ and covers the soft list and the
 * zombies; it is held over the provider's poll_cq, with interrupts off. &riso_dev.lock is
 * taken inside it and covers the slots; a poll that has found something keeps it when it
 * leaves poll_lock, and posts what has room now. The ULP polls in any context. The reaper runs in
 * hard interrupt context and only tries poll_lock.
 */

#include <linux/ktime.h>

#include "core/chunk.h"
#include "cq.h"
#include "cq_arm.h"
#include "cq_poll.h"
#include "dev.h"
#include "flow.h"
#include "news.h"
#include "refuse.h"
#include "ring.h"
#include "sched.h"
#include "tag.h"
#include "trace.h"
#include "turn.h"
#include "window.h"

enum {
	/* CQs that the reaper looks at in one go */
	RISO_REAP_CQS = 8,
	/*
	 * It finds them by the first 16 flows that are stale, and the first 16 others. There may
	 * be thousands, and posts wait for it.
	 */
	RISO_REAP_FLOWS = 16,
	/* Where there are more flows it searches an eighth of the table of CQs as well. */
	RISO_REAP_BUCKETS = (1 << RISO_CQ_HASH_BITS) / 8,
};

/* Work requests have ended: their bytes are out of the device, and added to @wire. */
static void end_slot(struct riso_slots *s, struct riso_slot *slot, u64 *wire)
{
	struct riso_flow *f = s->flow;
	int dir;

	riso_tag_retire(s, slot);
	if (!f)
		return;
	for (dir = 0; dir < RISO_DIRS; dir++)
		wire[dir] += slot->wire[dir];
	if (!(slot->flags & RISO_SLOT_CHUNK))
		return;
	f->rd->stats[RISO_STAT_CHUNK_COMPLETED] += slot->pieces;
	trace_chunk_complete(f, slot->seq, slot->pieces);
}

/* The work requests of a slot have ended, and those of earlier slots that are not signaled. */
static void end_slots(struct riso_slots *s, struct riso_slot *slot, bool success, u64 now)
{
	struct riso_flow *f = s->flow;
	u64 wire[RISO_DIRS] = {};
	u32 pos;
	int dir;

	for (pos = s->tail; riso_tag_at(s, pos) != slot; pos++) {
		u8 flags = riso_tag_at(s, pos)->flags;

		if ((flags & RISO_SLOT_POSTED) &&
		    !(flags & RISO_SLOT_SIGNALED))
			end_slot(s, riso_tag_at(s, pos), wire);
	}
	end_slot(s, slot, wire);
	riso_tag_trim(s);
	if (!f)
		return;
	for (dir = 0; dir < RISO_DIRS; dir++)
		riso_window_complete(f, dir, wire[dir], success);
	if (s->tail == s->head)
		riso_tag_note_idle(f);
	if (success)
		riso_window_measure(f, slot, now);
	/* A provider that was full may have room now. */
	f->retry_ns = 0;
}

/*
 * A poll that has found something. It holds &riso_dev.lock then, until the provider is asked
 * again, or it ends.
 * @locked: it does
 * @ours: some of it had our tags; stays set when the lock is dropped
 * @now: time, ns
 * @flow: has more room than before, and holds something; the last one that was found so
 */
struct found {
	bool locked;
	bool ours;
	u64 now;
	struct riso_flow *flow;
};

/* Sparse does not follow @locked: to it, the lock is held by nobody between the two. */
static void lock_found(struct riso_dev *rd, struct found *b)
{
	if (!b->locked) {
		spin_lock(&rd->lock);
		__release(&rd->lock);
	}
	b->locked = true;
	b->now = ktime_get_ns();
}

static void unlock_found(struct riso_dev *rd, struct found *b)
{
	if (!b->locked)
		return;
	if (b->flow)
		riso_turn_wake(b->flow, b->now);
	b->flow = NULL;
	b->locked = false;
	__acquire(&rd->lock);
	spin_unlock(&rd->lock);
}

/* A flow has more room. The last such flow is left to riso_sched_go(), others are woken here. */
static void note_room(struct riso_flow *f, struct found *b)
{
	if (b->flow && b->flow != f)
		riso_turn_wake(b->flow, b->now);
	b->flow = riso_ring_len(&f->q) ? f : NULL;
	if (!b->flow)
		riso_turn_wake(f, b->now);
}

/* One completion of ours: rewrite it for the ULP, or say that it is hidden. */
static enum riso_verdict complete_slot(struct riso_dev *rd,
				       struct riso_slots *s,
				       struct ib_wc *wc, struct found *b)
{
	struct riso_slot *slot = riso_tag_slot(wc->wr_id);
	bool success = wc->status == IB_WC_SUCCESS;
	bool last = wc->wr_cqe == &slot->cqe;
	struct riso_flow *f = s->flow;
	enum riso_verdict verdict;

	lockdep_assert_held(&rd->lock);
	if (WARN_ON_ONCE(!(slot->flags & RISO_SLOT_POSTED)))
		return RISO_HIDE;
	if (last)
		end_slots(s, slot, success, b->now);
	verdict = riso_merge(success, last && (slot->flags & RISO_SLOT_LAST),
			     slot->flags & RISO_SLOT_ULP_SIGNALED,
			     (slot->flags & RISO_SLOT_MARK) ||
			     slot->seq == s->err_seq ||
			     slot->seq == s->refused_seq);
	if (!success && !(slot->flags & RISO_SLOT_MARK)) {
		s->err_seq = slot->seq;
		rd->stats[RISO_STAT_FLUSHED]++;
		if (f) {
			riso_flow_step(f, RISO_ON_FAIL);
			riso_news_failed(f, wc->status);
			riso_ring_kill(f, slot->seq);
			/* Of a post that was taken in part, only a marker tells the end. */
			if (!last && !riso_tag_is_marked(s))
				riso_refuse_queue(f);
		}
	}
	if (f)
		note_room(f, b);
	if (verdict == RISO_HIDE) {
		rd->stats[RISO_STAT_CQE_HIDDEN]++;
		return RISO_HIDE;
	}
	rd->stats[RISO_STAT_WR_COMPLETED]++;
	trace_wr_complete(rd, s, slot, wc->status);
	wc->wr_id = slot->wr_id;
	if (success && (slot->flags & RISO_SLOT_FETCH) &&
	    (slot->flags & RISO_SLOT_CHUNK))
		wc->byte_len = slot->total;
	return RISO_DELIVER;
}

/* A completion without our tag: of its flow, it may be the first error. */
static void note_error(struct riso_dev *rd, const struct ib_wc *wc)
{
	struct riso_flow *f;

	if (wc->status == IB_WC_SUCCESS || wc->status == IB_WC_WR_FLUSH_ERR)
		return;
	f = riso_flow_find(rd, wc->qp, false);
	if (f && f->mode != RISO_FLOW_PASS)
		riso_news_failed(f, wc->status);
}

/* Keep what the ULP may see of @num completions, in order; under RCU. */
static int filter(struct riso_dev *rd, struct ib_wc *wc, int num, struct found *b)
{
	int kept = 0;
	int i;

	lock_found(rd, b);
	for (i = 0; i < num; i++) {
		struct riso_slots *s = riso_tag_find(wc[i].wr_id);

		b->ours |= !!s;
		if (!s)
			note_error(rd, &wc[i]);
		else if (complete_slot(rd, s, &wc[i], b) == RISO_HIDE)
			continue;
		if (kept != i)
			wc[kept] = wc[i];
		kept++;
	}
	/* SMC looks at fields of an entry that it believes it had cleared. */
	memset(wc + kept, 0, (num - kept) * sizeof(*wc));
	return kept;
}

/**
 * riso_cq_bury - free the tags of QPs that are gone
 * @c: a CQ in which none of their completions is left
 *
 * Context: under &riso_cq.poll_lock, or when nobody polls any more.
 */
void riso_cq_bury(struct riso_cq *c)
{
	struct riso_slots *s, *tmp;

	list_for_each_entry_safe(s, tmp, &c->zombies, zombie) {
		list_del(&s->zombie);
		riso_tag_free_slots(s);
	}
}

/*
 * Poll the provider for up to @num entries that the ULP may see. Leaves the device locked if
 * there was anything.
 */
static int poll_provider(struct riso_cq *c, int num, struct ib_wc *wc, struct found *b)
{
	struct riso_dev *rd = c->rd;
	int n = 0;

	lockdep_assert_held(&c->poll_lock);
	while (n < num) {
		int want = num - n;
		int got;

		unlock_found(rd, b);
		got = rd->orig.poll_cq(c->cq, want, wc + n);
		if (got < 0)
			return n ? n : got;
		if (got)
			n += filter(rd, wc + n, got, b);
		else
			b->now = ktime_get_ns();
		if (got < want) {
			riso_cq_bury(c);
			break;
		}
	}
	c->polled_ns = b->now;
	return n;
}

/**
 * riso_cq_poll - what the ULP's poll_cq does
 * @c: the CQ
 * @num: entries wanted
 * @found: of these, what the provider has given already, in front
 * @wc: room for them
 *
 * Context: any, under RCU.
 * Return: entries found; fewer than @num means that the CQ is empty.
 */
int riso_cq_poll(struct riso_cq *c, int num, int found, struct ib_wc *wc)
{
	int rounds = riso_sched_rounds();
	struct riso_dev *rd = c->rd;
	struct found b = {};
	unsigned long flags;
	int got, n = 0;
	bool runs;

	spin_lock_irqsave(&c->poll_lock, flags);
	if (found)
		n = filter(rd, wc, found, &b);
	while (n < num && c->soft_head != c->soft_tail)
		wc[n++] = c->soft[c->soft_head++ % RISO_SOFT];
	if (n < num) {
		got = poll_provider(c, num - n, wc + n, &b);
		n = got < 0 && !n ? got : n + max(got, 0);
	}
	/*
	 * Who queues something later runs the scheduler himself. If nothing of ours has completed
	 * it is the timer's turn, unless that is late.
	 */
	runs = READ_ONCE(rd->held) && (b.ours || b.now > READ_ONCE(rd->timer_ns));
	if (b.locked) {
		__acquire(&rd->lock);
		spin_unlock(&c->poll_lock);
		if (runs)
			riso_sched_go(rd, b.flow, rounds, &flags, b.now);
		spin_unlock_irqrestore(&rd->lock, flags);
	} else {
		spin_unlock_irqrestore(&c->poll_lock, flags);
		if (runs)
			riso_sched_run(rd);
	}
	return n;
}

/**
 * riso_cq_reap_one - look for completions in a CQ, unless somebody polls it just now
 * @c: the CQ
 *
 * Context: under RCU, under no lock of ours.
 * Return: true if there was something.
 */
bool riso_cq_reap_one(struct riso_cq *c)
{
	struct found b = {};
	unsigned long flags;
	int room, got = 0, i;

	if (!riso_cq_is_ours(c) || !spin_trylock_irqsave(&c->poll_lock, flags))
		return false;
	room = min_t(int, riso_cq_soft_room(c), RISO_POLL);
	if (!c->dead && room) {
		got = poll_provider(c, room, c->wc, &b);
		unlock_found(c->rd, &b);
		for (i = 0; i < got; i++)
			c->soft[c->soft_tail++ % RISO_SOFT] = c->wc[i];
		if (got > 0)
			atomic_long_add(got, &c->rd->reaped);
	}
	if (!c->dead)
		riso_cq_check_quiet(c);
	spin_unlock_irqrestore(&c->poll_lock, flags);
	return b.ours || got > 0;
}

/* What the reaper looks at in one go: each CQ once */
struct reaping {
	struct riso_cq *cqs[RISO_REAP_CQS];
	int num;
};

/* There has to be room for it. */
static void add_cq(struct reaping *r, struct riso_cq *c)
{
	int i;

	for (i = 0; i < r->num; i++)
		if (r->cqs[i] == c)
			return;
	r->cqs[r->num++] = c;
}

/* CQs that are quiet. Should there be more than fit, they take turns. */
static void add_quiet(struct reaping *r, struct riso_dev *rd)
{
	struct riso_cq *c;

	while (r->num < RISO_REAP_CQS) {
		c = list_first_entry_or_null(&rd->quiet, struct riso_cq, quiet_list);
		if (!c || (r->num && c == r->cqs[0]))
			break;
		r->cqs[r->num++] = c;
		list_move_tail(&c->quiet_list, &rd->quiet);
	}
}

/* CQs of the first flows of a list, which have waited longest. Says whether these are all. */
static bool add_waiting(struct reaping *r, const struct list_head *flows)
{
	int left = RISO_REAP_FLOWS;
	struct riso_flow *f;

	list_for_each_entry(f, flows, reap) {
		if (!left-- || r->num == RISO_REAP_CQS)
			return false;
		add_cq(r, f->cq);
	}
	return true;
}

/* CQs that any flow has something out in. These take turns, too, by where they are in the table. */
static void add_others(struct reaping *r, struct riso_dev *rd)
{
	struct riso_cq *c;
	int i;

	for (i = 0; i < RISO_REAP_BUCKETS && r->num < RISO_REAP_CQS; i++) {
		hlist_for_each_entry_rcu(c, &rd->cqs[rd->reap_bucket], hash)
			if (c->flows_out && r->num < RISO_REAP_CQS)
				add_cq(r, c);
		rd->reap_bucket = (rd->reap_bucket + 1) % HASH_SIZE(rd->cqs);
	}
}

/**
 * riso_cq_reap - look for completions that nobody has polled yet
 * @rd: the device
 *
 * Looks at quiet CQs first, then at those of the flows that have waited longest, then at others
 * that flows have something out in.
 *
 * Context: any but under a lock of ours.
 * Return: true if there was something.
 */
bool riso_cq_reap(struct riso_dev *rd)
{
	struct reaping r = {};
	unsigned long flags;
	bool found = false;
	bool all;
	int i;

	rcu_read_lock();
	spin_lock_irqsave(&rd->lock, flags);
	add_quiet(&r, rd);
	all = add_waiting(&r, &rd->stale);
	all &= add_waiting(&r, &rd->reap);
	if (!all)
		add_others(&r, rd);
	spin_unlock_irqrestore(&rd->lock, flags);
	for (i = 0; i < r.num; i++)
		found |= riso_cq_reap_one(r.cqs[i]);
	rcu_read_unlock();
	return found;
}
