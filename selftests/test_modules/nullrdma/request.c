// SPDX-License-Identifier: GPL-2.0
/*
 * What a requester does with its messages: starts them when nothing keeps it from that,
 * ends them in the order of the send queue, and flushes both queues of a queue pair that
 * is in error.
 *
 * Owns the states of requests and the gaps of queue pairs. All of it runs under
 * nr_engine.lock, in any context.
 */

#include <linux/kernel.h>
#include <linux/minmax.h>

#include "cq.h"
#include "mem.h"
#include "mr.h"
#include "request.h"
#include "wire.h"

/* what a request completes as, and what it is counted as */
static const struct {
	u8 opcode;
	u8 kind;
} kinds[] = {
	[IB_WR_RDMA_WRITE]		= { IB_WC_RDMA_WRITE, NR_KIND_WRITE },
	[IB_WR_RDMA_WRITE_WITH_IMM]	= { IB_WC_RDMA_WRITE, NR_KIND_WRITE },
	[IB_WR_SEND]			= { IB_WC_SEND, NR_KIND_SEND },
	[IB_WR_SEND_WITH_IMM]		= { IB_WC_SEND, NR_KIND_SEND },
	[IB_WR_SEND_WITH_INV]		= { IB_WC_SEND, NR_KIND_SEND },
	[IB_WR_RDMA_READ]		= { IB_WC_RDMA_READ, NR_KIND_READ },
	[IB_WR_ATOMIC_CMP_AND_SWP]	= { IB_WC_COMP_SWAP, NR_KIND_OTHER },
	[IB_WR_ATOMIC_FETCH_AND_ADD]	= { IB_WC_FETCH_ADD, NR_KIND_OTHER },
	[IB_WR_REG_MR]			= { IB_WC_REG_MR, NR_KIND_OTHER },
	[IB_WR_LOCAL_INV]		= { IB_WC_LOCAL_INV, NR_KIND_OTHER },
};

static enum ib_wc_status do_local(struct nr_wqe *wqe)
{
	if (wqe->opcode == IB_WR_REG_MR)
		return nr_register(wqe);
	return nr_invalidate(wqe->qp->end, wqe->qp->ibqp.pd, wqe->ex.invalidate_rkey);
}

/* It goes nowhere: it is local, or the ULP may not use the memory. */
void nr_end_here(struct nr_wqe *wqe, u64 t)
{
	nr_end_request(wqe, wqe->flags & NR_LOCAL ? do_local(wqe) : IB_WC_LOC_PROT_ERR, t);
}

static void count_success(const struct nr_wqe *wqe, u64 t)
{
	struct nr_count *count = &wqe->qp->end->count[kinds[wqe->opcode].kind];

	count->messages++;
	count->bytes += wqe->length;
	count->last_bytes = wqe->length;
	count->last_ns = t - wqe->posted;
	count->late_ns = nr_engine.now - min(nr_engine.now, t);
}

/* As adapters do, it leaves alone what a completion of a send queue does not have. */
void nr_fill_send_cqe(struct nr_cqe *cqe, const struct nr_wqe *wqe, enum ib_wc_status status)
{
	struct nr_qp *qp = wqe->qp;

	cqe->wc.wr_id = wqe->wr_id;
	cqe->wc.status = status;
	cqe->wc.opcode = kinds[wqe->opcode].opcode;
	cqe->wc.vendor_err = 0;
	cqe->wc.byte_len = wqe->length;
	cqe->wc.qp = &qp->ibqp;
	cqe->wc.wc_flags = 0;
	cqe->tail = &qp->sq.tail;
	cqe->value = wqe->idx + 1;
}

static void add_send_cqe(const struct nr_wqe *wqe, enum ib_wc_status status, u64 t)
{
	struct nr_cq *cq = to_nr_cq(wqe->qp->ibqp.send_cq);
	struct nr_cqe *cqe = nr_next_cqe(cq);

	if (unlikely(!cqe))
		return;
	nr_fill_send_cqe(cqe, wqe, status);
	nr_add_cqe(cq, cqe, false, t);
}

/* Those at the front of the send queue that have ended complete. */
void nr_complete(struct nr_qp *qp, u64 t)
{
	lockdep_assert_held(&nr_engine.lock);
	while (qp->sq.done != qp->seen) {
		struct nr_wqe *wqe = nr_get_wqe(qp, qp->sq.done);

		if (wqe->state != NR_DONE)
			break;
		qp->sq.done++;
		if (unlikely(wqe->status != IB_WC_SUCCESS)) {
			add_send_cqe(wqe, wqe->status, t);
			nr_fail_qp(qp, t);
			return;
		}
		count_success(wqe, t);
		if (wqe->flags & NR_SIGNALED)
			add_send_cqe(wqe, IB_WC_SUCCESS, t);
	}
	if (unlikely(!list_empty(&qp->requests.queue)))
		nr_resume(qp, t);
}

/* A request has ended: its acknowledgment or its answer is there, or none will come. */
void nr_end_request(struct nr_wqe *wqe, enum ib_wc_status status, u64 t)
{
	struct nr_qp *qp = wqe->qp;

	lockdep_assert_held(&nr_engine.lock);
	if ((wqe->flags & NR_FETCH) && wqe->state != NR_READY)
		qp->reads--;
	wqe->state = NR_DONE;
	wqe->status = status;
	if (likely(status == IB_WC_SUCCESS)) {
		qp->retries = 0;
		qp->rnr = 0;
	} else {
		nr_forget_gap(qp);
		qp->gap = NR_GAP_FATAL;
	}
	nr_complete(qp, t);
}

/* All that has not ended is flushed. */
void nr_flush_send(struct nr_qp *qp, u64 t)
{
	lockdep_assert_held(&nr_engine.lock);
	nr_forget_gap(qp);
	nr_take_back(qp, qp->sq.done, t);
	while (qp->sq.done != qp->seen) {
		struct nr_wqe *wqe = nr_get_wqe(qp, qp->sq.done++);

		nr_remove(wqe);
		wqe->state = NR_DONE;
		add_send_cqe(wqe, IB_WC_WR_FLUSH_ERR, t);
	}
	qp->waiting = 0;
}

void nr_flush_recv(struct nr_qp *qp, u64 t)
{
	struct nr_cq *cq = to_nr_cq(qp->ibqp.recv_cq);
	/* Pairs with the release in nr_post_recv(). */
	u32 head = smp_load_acquire(&qp->rq.head);

	lockdep_assert_held(&nr_engine.lock);
	while (qp->rq.done != head) {
		struct nr_rwqe *rwqe = nr_get_rwqe(qp, qp->rq.done++);
		struct nr_cqe *cqe = nr_next_cqe(cq);

		if (!cqe)
			continue;
		cqe->wc = (struct ib_wc) {
			.wr_id = rwqe->wr_id,
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
			.qp = &qp->ibqp,
		};
		cqe->tail = &qp->rq.tail;
		cqe->value = qp->rq.done;
		nr_add_cqe(cq, cqe, false, t);
	}
}

/* No post sees two states. */
void nr_set_state(struct nr_qp *qp, u32 state)
{
	lockdep_assert_held(&nr_engine.lock);
	spin_lock(&qp->sq.lock);
	spin_lock_nested(&qp->rq.lock, SINGLE_DEPTH_NESTING);
	qp->state = state;
	spin_unlock(&qp->rq.lock);
	spin_unlock(&qp->sq.lock);
}

/* The queue pair is in error. */
void nr_fail_qp(struct nr_qp *qp, u64 t)
{
	nr_set_state(qp, IB_QPS_ERR);
	nr_flush_send(qp, t);
	nr_flush_recv(qp, t);
}

/* --- gaps --- */

void nr_forget_gap(struct nr_qp *qp)
{
	lockdep_assert_held(&nr_engine.lock);
	qp->gap = NR_GAP_NONE;
	list_del_init(&qp->gap_link);
}

/* Nothing is sent until then, and this request and all behind it again after that. */
void nr_begin_gap(struct nr_wqe *wqe, enum nr_gap gap, u64 until, u64 t)
{
	struct nr_qp *qp = wqe->qp;
	struct nr_qp *other;

	lockdep_assert_held(&nr_engine.lock);
	nr_forget_gap(qp);
	qp->gap = gap;
	qp->gap_idx = wqe->idx;
	qp->gap_until = until;
	nr_take_back(qp, wqe->idx, t);
	if (until == NR_NEVER)
		return;
	list_for_each_entry_reverse(other, &nr_engine.gaps, gap_link)
		if (other->gap_until <= until)
			break;
	/* behind @other, which is the head of the list if all are later */
	list_add(&qp->gap_link, &other->gap_link);
	nr_engine.timed_at = min(nr_engine.timed_at, until);
}

/* The time of a gap is over. */
void nr_end_gap(struct nr_qp *qp, u64 t)
{
	struct nr_wqe *wqe = nr_get_wqe(qp, qp->gap_idx);
	bool lost = qp->gap == NR_GAP_LOST;

	lockdep_assert_held(&nr_engine.lock);
	nr_forget_gap(qp);
	if (!lost || qp->retries++ < qp->attr.retry_cnt) {
		nr_resume(qp, t);
		return;
	}
	nr_remove(wqe);
	qp->waiting--;
	nr_end_request(wqe, IB_WC_RETRY_EXC_ERR, t);
}
