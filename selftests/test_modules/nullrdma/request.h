/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a requester does with its messages: starts them, and ends them in their order. All
 * of it runs under nr_engine.lock.
 */
#ifndef NULLRDMA_REQUEST_H
#define NULLRDMA_REQUEST_H

#include "mem.h"
#include "nullrdma.h"

void nr_end_here(struct nr_wqe *wqe, u64 t);
void nr_end_request(struct nr_wqe *wqe, enum ib_wc_status status, u64 t);
void nr_fill_send_cqe(struct nr_cqe *cqe, const struct nr_wqe *wqe, enum ib_wc_status status);
void nr_complete(struct nr_qp *qp, u64 t);
void nr_flush_send(struct nr_qp *qp, u64 t);
void nr_flush_recv(struct nr_qp *qp, u64 t);
void nr_set_state(struct nr_qp *qp, u32 state);
void nr_fail_qp(struct nr_qp *qp, u64 t);
void nr_begin_gap(struct nr_wqe *wqe, enum nr_gap gap, u64 until, u64 t);
void nr_end_gap(struct nr_qp *qp, u64 t);
void nr_forget_gap(struct nr_qp *qp);

/* Nothing keeps it from being sent. */
static inline bool nr_may_start(const struct nr_wqe *wqe)
{
	const struct nr_qp *qp = wqe->qp;

	if (unlikely(qp->gap != NR_GAP_NONE))
		return false;
	if (likely(!(wqe->flags & (NR_FENCED | NR_FETCH | NR_LOCAL))))
		return true;
	if ((wqe->flags & NR_FENCED) && qp->reads)
		return false;
	if ((wqe->flags & NR_FETCH) && qp->reads >= qp->attr.max_rd_atomic)
		return false;
	/* What is in front of it may still use the memory. */
	return wqe->opcode != IB_WR_LOCAL_INV || qp->sq.done == wqe->idx;
}

/* False if nothing of it goes over the wire: it has ended. */
static inline bool nr_start(struct nr_wqe *wqe, u64 t)
{
	bool fetch = wqe->flags & NR_FETCH;

	if (unlikely(wqe->flags & NR_LOCAL) ||
	    (!(wqe->flags & NR_INLINE) &&
	     unlikely(!nr_may_use(wqe->qp, wqe->sge, wqe->num_sge,
				  fetch ? IB_ACCESS_LOCAL_WRITE : 0)))) {
		nr_end_here(wqe, t);
		return false;
	}
	wqe->state = NR_SENT;
	wqe->qp->reads += fetch;
	return true;
}

#endif /* NULLRDMA_REQUEST_H */
