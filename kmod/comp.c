// SPDX-License-Identifier: GPL-2.0
/*
 * Completions: many of chunks become the one that the ULP expects.
 *
 * Owns the tags that posted work requests carry in place of the ULP's wr_id, the
 * shadows of kernel CQs, and the reaper.
 *
 * A tag is the address of a slot. The slots of a flow fill one page, and the page
 * address is in a table, so any wr_id can be looked up without following it. A
 * slot is retired by its own completion, or by a later one if it was not signaled,
 * since the completions of a send queue come in order. Tags outlive their QP: rxe
 * leaves the completions of a destroyed QP in the CQ, mlx5 takes them out. So the
 * slots of a destroyed QP wait on the CQ's list of zombies until the CQ has once
 * been polled empty, and a grace period longer.
 *
 * The reaper polls on behalf of a ULP that is busy with something else: a target
 * works on commands in the thread that polls, for up to a millisecond, and pacing
 * cannot wait for it. What belongs to the ULP goes to a soft list and is the first
 * thing that its next poll finds. The provider raised its event when it made the
 * completion. If the CQ is quiet it did not, and the reaper wakes the ULP up. If the ULP
 * asks for an event later, riso_cq_notify() tells it of what is in the soft list. The
 * completions of a QP leave the soft list when the QP is destroyed or reset.
 *
 * Locks: &riso_cq.poll_lock serialises the polls of one CQ and covers the soft
 * list and the zombies; it is held over the provider's poll_cq, with interrupts
 * off. &riso_dev.lock is taken inside it and covers the slots. The reaper runs in
 * hard interrupt context and only tries poll_lock. The hashes are read under RCU
 * and written under &riso_dev.mutex (CQs) and tag_lock (tag pages).
 */

#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "dev.h"
#include "flow.h"
#include "news.h"
#include "sched.h"
#include "trace.h"
#include "window.h"
#include "work.h"

enum { TAG_HASH_BITS = 10 };

static DEFINE_HASHTABLE(tag_pages, TAG_HASH_BITS);
static DEFINE_SPINLOCK(tag_lock);

static_assert(RISO_SLOTS * sizeof(struct riso_slot) <= PAGE_SIZE);

/* A tag that is polled around the hooks ends here, and nothing happens. */
static void tag_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

/**
 * riso_tag_find - whose tag is it?
 * @wr_id: of a completion
 *
 * Context: under RCU.
 * Return: the slots that it is one of, or NULL if it is no tag of ours.
 */
struct riso_slots *riso_tag_find(u64 wr_id)
{
	unsigned long page = (unsigned long)wr_id & PAGE_MASK;
	struct riso_slots *s;

	if (wr_id != (unsigned long)wr_id ||
	    wr_id % sizeof(struct riso_slot))
		return NULL;
	hash_for_each_possible_rcu(tag_pages, s, hash, page)
		if ((unsigned long)s->slot == page)
			return s;
	return NULL;
}

/**
 * riso_tag_alloc - give a flow its tags
 * @f: a flow with room in its CQ
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int riso_tag_alloc(struct riso_flow *f)
{
	struct riso_slots *s;
	int i;

	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->slot = (struct riso_slot *)get_zeroed_page(GFP_KERNEL);
	if (!s->slot) {
		kfree(s);
		return -ENOMEM;
	}
	for (i = 0; i < RISO_SLOTS; i++)
		s->slot[i].cqe.done = tag_done;
	s->num = f->cq_room;
	s->flow = f;
	s->qpn = f->qpn;
	s->err_seq = U64_MAX;
	s->refused_seq = U64_MAX;
	INIT_LIST_HEAD(&s->zombie);
	f->slots = s;
	spin_lock_irq(&tag_lock);
	hash_add_rcu(tag_pages, &s->hash, (unsigned long)s->slot);
	spin_unlock_irq(&tag_lock);
	return 0;
}

static void free_slots_rcu(struct rcu_head *head)
{
	struct riso_slots *s = container_of(head, struct riso_slots, rcu);

	free_page((unsigned long)s->slot);
	kfree(s);
}

static void forget_slots_rcu(struct rcu_head *head)
{
	struct riso_slots *s = container_of(head, struct riso_slots, rcu);
	unsigned long flags;

	spin_lock_irqsave(&tag_lock, flags);
	hash_del_rcu(&s->hash);
	spin_unlock_irqrestore(&tag_lock, flags);
	call_rcu(&s->rcu, free_slots_rcu);
}

/**
 * riso_tag_free_slots - free slots that no completion will be found for any more
 * @s: the slots, which no flow has
 *
 * Who polls around the hooks may have found a tag, and looks it up before he is done.
 *
 * Context: any.
 */
void riso_tag_free_slots(struct riso_slots *s)
{
	call_rcu(&s->rcu, forget_slots_rcu);
}

/**
 * riso_tag_free - take the tags of a flow back
 * @f: a flow that has none out
 *
 * Context: any.
 */
void riso_tag_free(struct riso_flow *f)
{
	if (f->slots)
		riso_tag_free_slots(f->slots);
	f->slots = NULL;
}

/**
 * riso_cq_abandon - the QP is gone, its completions may still come
 * @f: the flow, under neither lock
 *
 * Context: process.
 */
void riso_cq_abandon(struct riso_flow *f)
{
	struct riso_slots *s = f->slots;
	unsigned long flags;

	if (!s)
		return;
	spin_lock_irqsave(&f->cq->poll_lock, flags);
	spin_lock(&f->rd->lock);
	s->flow = NULL;
	f->slots = NULL;
	spin_unlock(&f->rd->lock);
	if (s->head == s->tail)
		riso_tag_free_slots(s);
	else
		list_add_tail(&s->zombie, &f->cq->zombies);
	spin_unlock_irqrestore(&f->cq->poll_lock, flags);
}

/**
 * riso_tag_oldest - the slot that should complete next
 * @s: slots of a flow
 *
 * Context: under &riso_dev.lock.
 * Return: the slot or NULL.
 */
struct riso_slot *riso_tag_oldest(const struct riso_slots *s)
{
	lockdep_assert_held(&s->flow->rd->lock);
	return s->head == s->tail ? NULL : riso_tag_at(s, s->tail);
}

/**
 * riso_tag_has_pieces - is a part of a work request out that is not its last?
 * @s: slots of a flow, or NULL
 *
 * Context: under &riso_dev.lock.
 * Return: true if so.
 */
bool riso_tag_has_pieces(const struct riso_slots *s)
{
	u32 pos;

	if (!s)
		return false;
	for (pos = s->tail; pos != s->head; pos++)
		if ((riso_tag_at(s, pos)->flags &
		     (RISO_SLOT_POSTED | RISO_SLOT_CHUNK | RISO_SLOT_LAST)) ==
		    (RISO_SLOT_POSTED | RISO_SLOT_CHUNK))
			return true;
	return false;
}

/**
 * riso_tag_take - take the next slot
 * @s: slots of a flow, with one free
 *
 * The slot answers for all that was posted since the last one was taken.
 *
 * Context: under &riso_dev.lock.
 * Return: the slot, to be filled in.
 */
struct riso_slot *riso_tag_take(struct riso_slots *s)
{
	struct riso_slot *slot = riso_tag_at(s, s->head++);
	int dir;

	lockdep_assert_held(&s->flow->rd->lock);
	slot->wqes = s->untagged;
	s->untagged = 0;
	for (dir = 0; dir < RISO_DIRS; dir++) {
		slot->wire[dir] = s->untagged_wire[dir];
		s->untagged_wire[dir] = 0;
	}
	return slot;
}

/**
 * riso_tag_untag - give back slots whose work requests were not taken
 * @f: the flow
 * @head: where the first of them was taken
 * @untagged_wire: what had been posted without a tag then
 * @wire: filled in: bytes that were not taken, by direction
 *
 * Context: under &riso_dev.lock, by the one that took them.
 */
void riso_tag_untag(struct riso_flow *f, u32 head, const u32 *untagged_wire, u32 *wire)
{
	struct riso_slots *s = f->slots;
	int dir;

	lockdep_assert_held(&f->rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++) {
		u32 pos;

		wire[dir] = s->untagged_wire[dir] - untagged_wire[dir];
		for (pos = head; pos != s->head; pos++)
			wire[dir] += riso_tag_at(s, pos)->wire[dir];
		s->untagged_wire[dir] = untagged_wire[dir];
	}
	while (s->head != head)
		riso_tag_at(s, --s->head)->flags = 0;
}

/**
 * riso_tag_retire - a work request has ended
 * @s: slots of a flow
 * @slot: that of the work request
 *
 * Frees the send queue entries that the slot stands for. The bytes are for the caller to
 * account for.
 *
 * Context: under &riso_dev.lock.
 */
void riso_tag_retire(struct riso_slots *s, struct riso_slot *slot)
{
	slot->flags &= ~RISO_SLOT_POSTED;
	s->sq_used -= slot->wqes;
	if (slot->flags & RISO_SLOT_FETCH)
		s->rd_out--;
}

/**
 * riso_tag_trim - free the oldest slots as far as they are retired
 * @s: slots of a flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_tag_trim(struct riso_slots *s)
{
	while (s->tail != s->head &&
	       !(riso_tag_at(s, s->tail)->flags & RISO_SLOT_POSTED))
		s->tail++;
}

/**
 * riso_tag_awaits - is a completion certain to come?
 * @s: slots of a flow
 *
 * Context: under &riso_dev.lock.
 * Return: true if so.
 */
bool riso_tag_awaits(const struct riso_slots *s)
{
	u32 pos;

	for (pos = s->tail; pos != s->head; pos++)
		if ((riso_tag_at(s, pos)->flags & RISO_SLOT_POSTED) &&
		    (riso_tag_at(s, pos)->flags & RISO_SLOT_SIGNALED))
			return true;
	return false;
}

/* A work request has ended: its bytes are out of the device. */
static void end_slot(struct riso_slots *s, struct riso_slot *slot)
{
	struct riso_flow *f = s->flow;
	int dir;

	riso_tag_retire(s, slot);
	if (!f)
		return;
	for (dir = 0; dir < RISO_DIRS; dir++)
		if (slot->wire[dir])
			riso_window_complete(f, dir, slot->wire[dir]);
	if (!(slot->flags & RISO_SLOT_CHUNK))
		return;
	f->rd->stats[RISO_STAT_CHUNK_COMPLETED]++;
	trace_chunk_complete(f, slot->seq, slot->bytes);
}

/* One completion of ours: rewrite it for the ULP, or say that it is hidden. */
static enum riso_verdict complete_slot(struct riso_dev *rd,
				       struct riso_slots *s,
				       struct ib_wc *wc)
{
	struct riso_slot *slot = container_of(wc->wr_cqe, struct riso_slot,
					      cqe);
	bool success = wc->status == IB_WC_SUCCESS;
	struct riso_flow *f = s->flow;
	enum riso_verdict verdict;
	u32 pos;

	lockdep_assert_held(&rd->lock);
	if (WARN_ON_ONCE(!(slot->flags & RISO_SLOT_POSTED)))
		return RISO_HIDE;
	/* What was posted before it and is not signaled has completed, too. */
	for (pos = s->tail; riso_tag_at(s, pos) != slot; pos++) {
		u16 flags = riso_tag_at(s, pos)->flags;

		if ((flags & RISO_SLOT_POSTED) &&
		    !(flags & RISO_SLOT_SIGNALED))
			end_slot(s, riso_tag_at(s, pos));
	}
	if (success && f)
		riso_window_measure(f, slot);
	end_slot(s, slot);
	riso_tag_trim(s);

	verdict = riso_merge(success, slot->flags & RISO_SLOT_LAST,
			     slot->flags & RISO_SLOT_ULP_SIGNALED,
			     (slot->flags & RISO_SLOT_MARK) ||
			     slot->seq == s->err_seq ||
			     slot->seq == s->refused_seq);
	if (!success && !(slot->flags & RISO_SLOT_MARK)) {
		s->err_seq = slot->seq;
		rd->stats[RISO_STAT_FLUSHED]++;
		if (f) {
			f->flush = true;
			riso_news_failed(f, wc->status);
			riso_ring_kill(f, slot->seq);
		}
	}
	if (f) {
		if (s->tail == s->head)
			riso_window_idle(f);
		/* A provider that was full may have room now. */
		f->retry_ns = 0;
		riso_sched_wake(f);
	}
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
static int filter(struct riso_dev *rd, struct ib_wc *wc, int num)
{
	int kept = 0;
	int i;

	if (!num)
		return 0;
	spin_lock(&rd->lock);
	for (i = 0; i < num; i++) {
		struct riso_slots *s = riso_tag_find(wc[i].wr_id);

		if (!s)
			note_error(rd, &wc[i]);
		else if (complete_slot(rd, s, &wc[i]) == RISO_HIDE)
			continue;
		if (kept != i)
			wc[kept] = wc[i];
		kept++;
	}
	spin_unlock(&rd->lock);
	/* SMC looks at fields of an entry that it believes it had cleared. */
	memset(wc + kept, 0, (num - kept) * sizeof(*wc));
	return kept;
}

static void bury_zombies(struct riso_cq *c)
{
	struct riso_slots *s, *tmp;

	list_for_each_entry_safe(s, tmp, &c->zombies, zombie) {
		list_del(&s->zombie);
		riso_tag_free_slots(s);
	}
}

/* Poll the provider for up to @num entries that the ULP may see. */
static int poll_provider(struct riso_cq *c, int num, struct ib_wc *wc)
{
	int n = 0;

	lockdep_assert_held(&c->poll_lock);
	while (n < num) {
		int want = num - n;
		int got = c->rd->orig.poll_cq(c->cq, want, wc + n);

		if (got < 0)
			return n ? n : got;
		n += filter(c->rd, wc + n, got);
		if (got < want) {
			bury_zombies(c);
			break;
		}
	}
	c->polled_ns = ktime_get_ns();
	return n;
}

/**
 * riso_cq_poll - what the ULP's poll_cq does
 * @c: the CQ
 * @num: entries wanted
 * @found: of these, what the provider has given already, in front
 * @wc: room for them
 *
 * Context: any.
 * Return: entries found; fewer than @num means that the CQ is empty.
 */
int riso_cq_poll(struct riso_cq *c, int num, int found, struct ib_wc *wc)
{
	unsigned long flags;
	int got, n;

	spin_lock_irqsave(&c->poll_lock, flags);
	n = filter(c->rd, wc, found);
	while (n < num && c->soft_head != c->soft_tail)
		wc[n++] = c->soft[c->soft_head++ % RISO_SOFT];
	if (n < num) {
		got = poll_provider(c, num - n, wc + n);
		n = got < 0 && !n ? got : n + max(got, 0);
	}
	spin_unlock_irqrestore(&c->poll_lock, flags);
	/* Who queues something later runs the arbiter himself. */
	if (READ_ONCE(c->rd->held))
		riso_sched_run(c->rd);
	return n;
}

/*
 * May the reaper stand in for the provider's events on this CQ? Only the RDMA core's
 * own handlers, which just schedule, may be called from where it runs; and nobody
 * but managed flows may use the CQ, whose completions may wait for a tick. Where
 * completions come faster than a timer should, there is nothing to gain.
 */
static bool may_be_quiet(const struct riso_cq *c)
{
	const struct riso_dev *rd = c->rd;

	lockdep_assert_held(&rd->lock);
	return rd->running && rd->was_shaped && rd->fine && c->out && c->cq->wc &&
	       c->cq->poll_ctx != IB_POLL_DIRECT &&
	       atomic_read(&c->cq->usecnt) == c->uses;
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
	bool missed, quiet;
	unsigned long irq;
	int ret;

	spin_lock_irqsave(&c->poll_lock, irq);
	missed = c->soft_head != c->soft_tail;
	if (!missed && !c->quiet && (flags & IB_CQ_NEXT_COMP)) {
		spin_lock(&rd->lock);
		c->quiet = may_be_quiet(c);
		if (c->quiet)
			list_add_tail(&c->quiet_list, &rd->quiet);
		spin_unlock(&rd->lock);
	}
	quiet = c->quiet && !missed;
	spin_unlock_irqrestore(&c->poll_lock, irq);
	if (quiet) {
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

static void wake_ulp(struct work_struct *work)
{
	struct riso_cq *c = container_of(work, struct riso_cq, wake);

	if (c->cq->comp_handler)
		c->cq->comp_handler(c->cq, c->cq->cq_context);
}

static void purge_soft(struct riso_cq *c, const struct ib_qp *qp)
{
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&c->poll_lock, flags);
	to = c->soft_head;
	for (from = to; from != c->soft_tail; from++)
		if (c->soft[from % RISO_SOFT].qp != qp)
			c->soft[to++ % RISO_SOFT] = c->soft[from % RISO_SOFT];
	c->soft_tail = to;
	spin_unlock_irqrestore(&c->poll_lock, flags);
}

/**
 * riso_cq_purge - drop what nobody has polled of a QP that is gone
 * @rd: the device
 * @qp: the QP; the provider has destroyed or reset it
 *
 * Providers that take the completions of such a QP out of its CQs have not seen those
 * that the reaper took before.
 *
 * Context: process.
 */
void riso_cq_purge(struct riso_dev *rd, const struct ib_qp *qp)
{
	struct ib_cq *cqs[] = { qp->send_cq, qp->recv_cq };
	struct riso_cq *c;
	size_t i;

	rcu_read_lock();
	for (i = 0; i < ARRAY_SIZE(cqs); i++) {
		c = cqs[i] ? riso_cq_find(rd, cqs[i]) : NULL;
		if (c)
			purge_soft(c, qp);
	}
	rcu_read_unlock();
}

/* Leave events to the provider again; poll_lock held. True if some were missed. */
static bool make_loud(struct riso_cq *c)
{
	lockdep_assert_held(&c->poll_lock);
	c->quiet = false;
	spin_lock(&c->rd->lock);
	list_del_init(&c->quiet_list);
	spin_unlock(&c->rd->lock);
	return c->soft_head != c->soft_tail ||
	       c->rd->orig.req_notify_cq(c->cq, IB_CQ_NEXT_COMP |
					 IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

/* Polled: is there something to wake the ULP up for? poll_lock held. */
static void check_quiet(struct riso_cq *c)
{
	bool keep;

	lockdep_assert_held(&c->poll_lock);
	if (!c->quiet)
		return;
	spin_lock(&c->rd->lock);
	keep = c->soft_head == c->soft_tail && may_be_quiet(c);
	spin_unlock(&c->rd->lock);
	if (!keep && make_loud(c))
		c->cq->comp_handler(c->cq, c->cq->cq_context);
}

/**
 * riso_cq_use - a flow is managed from now on, or no longer
 * @f: the flow
 * @managed: it is
 *
 * Context: &riso_dev.mutex.
 */
void riso_cq_use(struct riso_flow *f, bool managed)
{
	struct riso_cq *c = f->cq;
	u32 uses = managed ? 1 + (f->qp->recv_cq == f->qp->send_cq) : 0;
	unsigned long flags;

	lockdep_assert_held(&f->rd->mutex);
	if (!c)
		return;
	spin_lock_irqsave(&c->poll_lock, flags);
	spin_lock(&f->rd->lock);
	c->uses += uses - f->cq_uses;
	f->cq_uses = uses;
	spin_unlock(&f->rd->lock);
	/* Once no managed flow is left the CQ may go at any time. */
	check_quiet(c);
	spin_unlock_irqrestore(&c->poll_lock, flags);
}

static u32 soft_room(const struct riso_cq *c)
{
	return RISO_SOFT - (c->soft_tail - c->soft_head);
}

static void reap_cq(struct riso_cq *c)
{
	unsigned long flags;
	int room, got, i;

	if (!spin_trylock_irqsave(&c->poll_lock, flags))
		return;
	room = min_t(int, soft_room(c), RISO_POLL);
	if (!c->dead && room) {
		got = poll_provider(c, room, c->wc);
		for (i = 0; i < got; i++)
			c->soft[c->soft_tail++ % RISO_SOFT] = c->wc[i];
		if (got > 0)
			atomic_long_add(got, &c->rd->reaped);
	}
	if (!c->dead)
		check_quiet(c);
	spin_unlock_irqrestore(&c->poll_lock, flags);
}

/**
 * riso_cq_reap - look for completions that nobody has polled yet
 * @rd: the device
 *
 * Looks at the CQs of the flows that have waited longest.
 *
 * Context: any but under a lock of ours.
 */
void riso_cq_reap(struct riso_dev *rd)
{
	struct riso_cq *cqs[RISO_REAP_CQS];
	struct riso_flow *f;
	struct riso_cq *c;
	unsigned long flags;
	int n = 0;
	int i;

	rcu_read_lock();
	spin_lock_irqsave(&rd->lock, flags);
	/* Should there be more than fit, they take turns. */
	for (; n < RISO_REAP_CQS; n++) {
		c = list_first_entry_or_null(&rd->quiet, struct riso_cq,
					     quiet_list);
		if (!c || (n && c == cqs[0]))
			break;
		cqs[n] = c;
		list_move_tail(&c->quiet_list, &rd->quiet);
	}
	list_for_each_entry(f, &rd->reap, reap) {
		if (n == RISO_REAP_CQS)
			break;
		for (i = 0; i < n; i++)
			if (cqs[i] == f->cq)
				break;
		if (i == n)
			cqs[n++] = f->cq;
	}
	spin_unlock_irqrestore(&rd->lock, flags);
	for (i = 0; i < n; i++)
		reap_cq(cqs[i]);
	rcu_read_unlock();
}

/* May something still end that no signaled work request stands behind? */
static bool is_unmarked(const struct riso_flow *f)
{
	const struct riso_slots *s = f->slots;

	lockdep_assert_held(&f->rd->lock);
	return !f->marked && (s->head != s->tail || s->untagged) &&
	       riso_tag_has_slot(s);
}

/* Take a slot for the marker; under &riso_dev.lock. */
static struct riso_slot *take_mark(struct riso_flow *f)
{
	struct riso_slot *slot = riso_tag_take(f->slots);

	lockdep_assert_held(&f->rd->lock);
	slot->flags = RISO_SLOT_POSTED | RISO_SLOT_SIGNALED | RISO_SLOT_MARK;
	slot->wr_id = 0;
	slot->seq = f->q.seq;
	slot->posted_ns = 0;
	slot->bytes = 0;
	slot->total = 0;
	slot->wqes++;
	f->slots->sq_used++;
	f->marked = true;
	f->flush = true;
	return slot;
}

/* Nothing was posted with it. */
static void drop_mark(struct riso_flow *f, struct riso_slot *slot)
{
	struct riso_slots *s = f->slots;
	int dir;

	lockdep_assert_held(&f->rd->lock);
	slot->flags = 0;
	s->head--;
	s->sq_used--;
	s->untagged = slot->wqes - 1;
	for (dir = 0; dir < RISO_DIRS; dir++)
		s->untagged_wire[dir] = slot->wire[dir];
}

/*
 * The provider has taken work requests without a signal and refuses what is behind them:
 * when they end nobody would know. A work request that fails puts its QP into error, and
 * so does this one. All that was taken is flushed then, and the marker behind it last.
 */
static void mark_taken(struct riso_flow *f)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	struct riso_dev *rd = f->rd;
	const struct ib_send_wr *bad_wr;
	struct riso_slot *slot;

	spin_lock_irq(&rd->lock);
	slot = take_mark(f);
	wr.wr.wr_cqe = &slot->cqe;
	spin_unlock_irq(&rd->lock);
	if (!rd->orig.modify_qp(f->qp, &attr, IB_QP_STATE, NULL) &&
	    !rd->orig.post_send(f->qp, &wr.wr, &bad_wr))
		return;
	spin_lock_irq(&rd->lock);
	drop_mark(f, slot);
	spin_unlock_irq(&rd->lock);
}

/*
 * Complete what the provider refuses after we took it: with an error for the
 * first and as flushed for the rest, once everything before it has completed. If the ULP
 * has put the QP into error itself, all are flushed.
 */
void riso_refuse_work(struct work_struct *work)
{
	struct riso_flow *f = container_of(to_delayed_work(work),
					   struct riso_flow, refuse);
	struct riso_cq *c = f->cq;
	/* Who resets or destroys the QP waits for this, be it that of a disk. */
	unsigned int noio = memalloc_noio_save();
	bool told = false;
	bool mark = false;
	bool more;

	spin_lock_irq(&c->poll_lock);
	spin_lock(&f->rd->lock);
	while (riso_ring_len(&f->q) && !riso_tag_awaits(f->slots) && soft_room(c)) {
		struct ib_wc *wc = &c->soft[c->soft_tail % RISO_SOFT];
		u64 wr_id;

		mark = is_unmarked(f);
		if (mark)
			break;
		/* Chunks of it that were taken may yet be flushed. */
		if (f->q.cur.done)
			f->slots->refused_seq = f->q.seq;
		if (!riso_ring_pop(f, &wr_id))
			continue;
		memset(wc, 0, sizeof(*wc));
		wc->wr_id = wr_id;
		wc->qp = f->qp;
		wc->status = f->told_refused || f->state == IB_QPS_ERR ?
			     IB_WC_WR_FLUSH_ERR : IB_WC_GENERAL_ERR;
		f->told_refused = true;
		riso_news_failed(f, wc->status);
		c->soft_tail++;
		told = true;
	}
	more = riso_ring_len(&f->q);
	spin_unlock(&f->rd->lock);
	spin_unlock_irq(&c->poll_lock);
	if (mark)
		mark_taken(f);
	if (told && c->cq->comp_handler)
		c->cq->comp_handler(c->cq, c->cq->cq_context);
	if (more)
		queue_delayed_work(riso_wq, &f->refuse, 1);
	memalloc_noio_restore(noio);
}

/* --- CQs --- */

/**
 * riso_cq_find - look a CQ up
 * @rd: its device
 * @cq: the CQ
 *
 * Context: RCU read side or &riso_dev.mutex.
 * Return: its shadow or NULL.
 */
struct riso_cq *riso_cq_find(struct riso_dev *rd, const struct ib_cq *cq)
{
	struct riso_cq *c;

	hash_for_each_possible_rcu(rd->cqs, c, hash, (unsigned long)cq,
				   lockdep_is_held(&rd->mutex))
		if (c->cq == cq)
			return c;
	return NULL;
}

static struct riso_cq *add_cq(struct riso_dev *rd, struct ib_cq *cq, u32 room)
{
	struct riso_cq *c;

	lockdep_assert_held(&rd->mutex);
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return NULL;
	c->soft = kcalloc(RISO_SOFT + RISO_POLL, sizeof(*c->soft), GFP_KERNEL);
	if (!c->soft) {
		kfree(c);
		return NULL;
	}
	c->wc = c->soft + RISO_SOFT;
	c->rd = rd;
	c->cq = cq;
	c->room = room;
	spin_lock_init(&c->poll_lock);
	INIT_LIST_HEAD(&c->zombies);
	INIT_LIST_HEAD(&c->quiet_list);
	INIT_WORK(&c->wake, wake_ulp);
	hash_add_rcu(rd->cqs, &c->hash, (unsigned long)cq);
	return c;
}

/**
 * riso_cq_created - remember what a new kernel CQ has room for
 * @rd: its device
 * @cq: the CQ
 * @extra: CQEs that were added for us
 *
 * Context: may sleep.
 */
void riso_cq_created(struct riso_dev *rd, struct ib_cq *cq, u32 extra)
{
	riso_dev_lock(rd);
	add_cq(rd, cq, extra);
	riso_dev_unlock(rd);
}

static void free_cq_rcu(struct rcu_head *head)
{
	struct riso_cq *c = container_of(head, struct riso_cq, rcu);

	kfree(c->soft);
	kfree(c);
}

/**
 * riso_cq_destroyed - a CQ is about to go
 * @rd: its device
 * @cq: the CQ, which no QP uses any more
 *
 * Context: may sleep.
 */
void riso_cq_destroyed(struct riso_dev *rd, struct ib_cq *cq)
{
	struct riso_cq *c;

	riso_dev_lock(rd);
	c = riso_cq_find(rd, cq);
	if (c) {
		hash_del_rcu(&c->hash);
		spin_lock_irq(&c->poll_lock);
		c->dead = true;
		if (c->quiet)
			make_loud(c);
		bury_zombies(c);
		spin_unlock_irq(&c->poll_lock);
		cancel_work_sync(&c->wake);
		call_rcu(&c->rcu, free_cq_rcu);
	}
	riso_dev_unlock(rd);
}

/**
 * riso_cq_reserve - reserve CQEs for the chunks of a flow
 * @f: a new flow; its cq and cq_room are set
 * @cq: its send CQ
 *
 * On a CQ of the shared pools, room is taken as another user of the pool would.
 * A private CQ was made larger when it was created, if that was after load.
 *
 * Context: &riso_dev.mutex.
 * Return: true if there is enough.
 */
bool riso_cq_reserve(struct riso_flow *f, struct ib_cq *cq)
{
	struct riso_dev *rd = f->rd;
	struct riso_cq *c = riso_cq_find(rd, cq);
	u32 want = RISO_SLOTS;

	lockdep_assert_held(&rd->mutex);
	if (!c)
		c = add_cq(rd, cq, 0);
	if (!c)
		return false;
	while (want > RISO_SLOTS_MIN && want > 2 * f->sq_depth)
		want /= 2;
	if (cq->shared) {
		spin_lock_irq(&rd->ibdev->cq_pools_lock);
		while (want >= RISO_SLOTS_MIN &&
		       cq->cqe_used + want > cq->cqe)
			want /= 2;
		if (want >= RISO_SLOTS_MIN)
			cq->cqe_used += want;
		spin_unlock_irq(&rd->ibdev->cq_pools_lock);
	} else {
		/* Leave something for the next QP on this CQ. */
		while (want >= RISO_SLOTS_MIN && want > c->room / 2)
			want /= 2;
		if (want >= RISO_SLOTS_MIN)
			c->room -= want;
	}
	if (want < RISO_SLOTS_MIN)
		return false;
	f->cq = c;
	f->cq_room = want;
	/* Who polls around us just now looks for it once more. */
	WRITE_ONCE(c->tagged, true);
	return true;
}

/**
 * riso_cq_release - give reserved CQEs back
 * @f: the flow
 *
 * Context: &riso_dev.mutex.
 */
void riso_cq_release(struct riso_flow *f)
{
	struct ib_cq *cq;

	lockdep_assert_held(&f->rd->mutex);
	if (!f->cq_room)
		return;
	cq = f->cq->cq;
	if (cq->shared) {
		spin_lock_irq(&f->rd->ibdev->cq_pools_lock);
		cq->cqe_used -= f->cq_room;
		spin_unlock_irq(&f->rd->ibdev->cq_pools_lock);
	} else {
		f->cq->room += f->cq_room;
	}
	f->cq_room = 0;
}

/**
 * riso_cq_idle - is nothing of ours in any CQ?
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 * Return: true if no tag and no reaped completion is left.
 */
bool riso_cq_idle(struct riso_dev *rd)
{
	struct riso_cq *c;
	bool idle = true;
	int bkt;

	lockdep_assert_held(&rd->mutex);
	hash_for_each(rd->cqs, bkt, c, hash) {
		if (!list_empty(&c->zombies)) {
			rcu_read_lock();
			reap_cq(c);
			rcu_read_unlock();
		}
		spin_lock_irq(&c->poll_lock);
		idle = idle && list_empty(&c->zombies) &&
		       c->soft_head == c->soft_tail;
		spin_unlock_irq(&c->poll_lock);
	}
	return idle;
}

/**
 * riso_cq_forget - drop the shadows of a device whose hooks are gone
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 */
void riso_cq_forget(struct riso_dev *rd)
{
	struct hlist_node *tmp;
	struct riso_cq *c;
	int bkt;

	lockdep_assert_held(&rd->mutex);
	hash_for_each_safe(rd->cqs, bkt, tmp, c, hash) {
		hash_del_rcu(&c->hash);
		cancel_work_sync(&c->wake);
		bury_zombies(c);
		call_rcu(&c->rcu, free_cq_rcu);
	}
}
