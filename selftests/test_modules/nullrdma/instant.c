// SPDX-License-Identifier: GPL-2.0
/*
 * WRITEs that end as they are posted, with instant=1: nothing goes over a wire, and the engine
 * does not see them. So what posters on several CPUs do to each other is theirs alone.
 *
 * The poster adds the completion himself, under &nr_cq.lock, which keeps pollers and other
 * posters away. The engine may not add to the same CQ meanwhile: it is for queue pairs that
 * only write, and for ULPs that poll and do not wait for events.
 */

#include "cq.h"
#include "instant.h"
#include "request.h"

static void add_cqe(struct nr_cq *cq, const struct nr_wqe *wqe)
{
	struct nr_cqe *cqe = nr_next_cqe(cq);

	if (unlikely(!cqe))
		return;
	nr_fill_send_cqe(cqe, wqe, IB_WC_SUCCESS);
	/* Pairs with the acquire in nr_poll_cq(). */
	smp_store_release(&cq->head, cq->head + 1);
}

/* The WRITEs up to @head were posted. Under the lock of the send queue, interrupts off. */
void nr_end_at_once(struct nr_qp *qp, u32 head)
{
	struct nr_cq *cq = to_nr_cq(qp->ibqp.send_cq);

	lockdep_assert_held(&qp->sq.lock);
	spin_lock(&cq->lock);
	for (; qp->seen != head; qp->seen++) {
		struct nr_wqe *wqe = nr_get_wqe(qp, qp->seen);

		wqe->state = NR_DONE;
		if (wqe->flags & NR_SIGNALED)
			add_cqe(cq, wqe);
	}
	qp->sq.done = head;
	spin_unlock(&cq->lock);
}
