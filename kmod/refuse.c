// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests that the provider refuses after they were taken over from the ULP.
 *
 * Owns &riso_flow.refuse; sets &riso_flow.told_refused and &riso_flow.marked, which flow.c
 * clears when the QP is reset. The ULP believes that such work requests are posted, so they
 * complete here, in the soft list of their CQ, once all that the provider has taken before
 * them has completed.
 *
 * While the marker is posted the flow is posting, see sched.c: nobody else posts, and who pauses
 * the flow waits.
 *
 * Locks: &riso_cq.poll_lock, for the soft list, and &riso_dev.lock inside it, for ring and
 * slots. Runs on the workqueue and may sleep.
 */

#include <linux/sched/mm.h>
#include <linux/workqueue.h>

#include "cq.h"
#include "dev.h"
#include "flow.h"
#include "news.h"
#include "refuse.h"
#include "ring.h"
#include "tag.h"
#include "work.h"

/* May something still end that no signaled work request stands behind? */
static bool is_unmarked(const struct riso_flow *f)
{
	const struct riso_slots *s = f->slots;

	lockdep_assert_held(&f->rd->lock);
	return !f->marked && (s->head != s->tail || s->untagged) && riso_tag_room(s);
}

/* Has the QP failed, and will nothing be posted behind what may still end? */
static bool is_orphaned(const struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	return f->phase == RISO_PHASE_FLUSHING && !f->posting && !riso_ring_len(&f->q) &&
	       !riso_tag_is_marked(f->slots);
}

/**
 * riso_refuse_queue - have riso_refuse_work() look at a flow
 * @f: the flow
 *
 * Not while it is paused: its QP may be about to go. riso_flow_resume() asks again.
 *
 * Context: under &riso_dev.lock.
 */
void riso_refuse_queue(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	if (!f->paused)
		queue_delayed_work(riso_wq, &f->refuse, 0);
}

/**
 * riso_refuse_is_due - has a flow something for riso_refuse_work()?
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 * Return: true if so.
 */
bool riso_refuse_is_due(const struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	return f->phase == RISO_PHASE_REFUSED ||
	       (f->phase == RISO_PHASE_FLUSHING && f->slots && !riso_tag_is_marked(f->slots));
}

/* Take a slot for the marker, and the turn to post it; under &riso_dev.lock. */
static struct riso_slot *take_mark(struct riso_flow *f)
{
	struct riso_slots *s = f->slots;
	struct riso_slot *slot;

	lockdep_assert_held(&f->rd->lock);
	s->untagged++;
	s->sq_used++;
	slot = riso_tag_take(s, 1);
	slot->flags = RISO_SLOT_POSTED | RISO_SLOT_SIGNALED | RISO_SLOT_MARK;
	slot->wr_id = 0;
	slot->seq = f->q.seq;
	slot->posted_ns = 0;
	slot->total = 0;
	f->marked = true;
	f->posting = true;
	riso_tag_note_out(f);
	return slot;
}

/* Nothing was posted with it. */
static void drop_mark(struct riso_flow *f, struct riso_slot *slot)
{
	struct riso_slots *s = f->slots;
	int dir;

	lockdep_assert_held(&f->rd->lock);
	riso_tag_give_back(s);
	s->sq_used--;
	s->untagged = slot->wqes - 1;
	for (dir = 0; dir < RISO_DIRS; dir++)
		s->untagged_wire[dir] = slot->wire[dir];
	if (s->head == s->tail)
		riso_tag_note_idle(f);
}

/*
 * The provider has taken work requests without a signal and refuses what is behind them:
 * when they end nobody would know. A work request that fails puts its QP into error, and
 * so does this one. All that was taken is flushed then, and the marker behind it last.
 */
static void mark_taken(struct riso_flow *f, struct riso_slot *slot)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &slot->cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	struct riso_dev *rd = f->rd;
	const struct ib_send_wr *bad_wr;
	bool failed;

	failed = rd->orig.modify_qp(f->qp, &attr, IB_QP_STATE, NULL) ||
		 rd->orig.post_send(f->qp, &wr.wr, &bad_wr);
	spin_lock_irq(&rd->lock);
	if (failed)
		drop_mark(f, slot);
	f->posting = false;
	if (f->paused)
		wake_up_all(&rd->wait);
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_refuse_work - complete what the provider refuses after we took it
 * @work: &riso_flow.refuse
 *
 * With an error for the first and as flushed for the rest, once everything before it has
 * completed. If the ULP has put the QP into error itself, all are flushed. If nothing is held any
 * more, but a batch was taken in part, it only sees to it that the end of that is told.
 *
 * Context: process, may sleep.
 */
void riso_refuse_work(struct work_struct *work)
{
	struct riso_flow *f = container_of(to_delayed_work(work),
					   struct riso_flow, refuse);
	struct riso_cq *c = f->cq;
	/* Who resets or destroys the QP waits for this, be it that of a disk. */
	unsigned int noio = memalloc_noio_save();
	struct riso_slot *mark = NULL;
	bool told = false;
	bool more;

	spin_lock_irq(&c->poll_lock);
	spin_lock(&f->rd->lock);
	more = f->posting;
	if (f->posting || f->paused)
		goto unlock;
	while (riso_ring_len(&f->q) && !riso_tag_awaits(f->slots) && riso_cq_soft_room(c)) {
		struct ib_wc *wc = &c->soft[c->soft_tail % RISO_SOFT];
		u64 wr_id;

		if (is_unmarked(f)) {
			mark = take_mark(f);
			break;
		}
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
		riso_cq_tag(c);
		c->soft_tail++;
		told = true;
	}
	if (is_orphaned(f) && is_unmarked(f))
		mark = take_mark(f);
	more = riso_ring_len(&f->q);
unlock:
	spin_unlock(&f->rd->lock);
	spin_unlock_irq(&c->poll_lock);
	if (mark)
		mark_taken(f, mark);
	if (told && c->cq->comp_handler)
		c->cq->comp_handler(c->cq, c->cq->cq_context);
	if (more)
		queue_delayed_work(riso_wq, &f->refuse, 1);
	memalloc_noio_restore(noio);
}
