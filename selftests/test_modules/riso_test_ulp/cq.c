// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues, and who polls them.
 *
 * The core polls a CQ of the modes "wq", "unbound" and "softirq", and knows a
 * completion by its wr_cqe. A CQ of the modes "work" and "tasklet" is polled here, and
 * wr_id says whose a completion is.
 *
 * &ulp_cq.lock lets one poll at a time run of a CQ that is polled here, and protects
 * what the poll has found. Bottom halves are off meanwhile. A work item, a tasklet or
 * the case polls. The case creates and destroys CQs in process context.
 */

#include <linux/err.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "cq.h"
#include "fail.h"
#include "mutate.h"

/* The wr_id of a queue that is not alone says which lane it belongs to. */
static struct ulp_lane *find_lane(struct ulp_cq *cq, const struct ib_wc *wc)
{
	struct ulp_ctx *ctx = cq->ctx;
	struct ulp_lane *only = NULL;
	u32 i, n = 0;

	for (i = 0; i < ctx->nlanes; i++) {
		struct ulp_lane *lane = ctx->lanes[i];
		struct ulp_cq *of = lane->recv ? lane->qp->rcq : lane->qp->scq;

		if (of != cq)
			continue;
		if (lane->id + 1 == wc->wr_id >> 32 && !ctx->arg.odd)
			return lane;
		only = lane;
		n++;
	}
	return n == 1 ? only : NULL;
}

/* One batch. Negative if the CQ is not to be polled, or cannot be. */
static int poll_batch(struct ulp_cq *cq)
{
	int n, i;

	lockdep_assert_held(&cq->lock);
	if (READ_ONCE(cq->closing) || READ_ONCE(cq->held))
		return -EBUSY;
	/* whatever is not written must be seen as wrong */
	memset(cq->wc, 0xa5, sizeof(cq->wc));
	n = ib_poll_cq(cq->cq, cq->batch, cq->wc);
	if (n < 0 || n > cq->batch) {
		ulp_fail(cq->ctx, "ib_poll_cq returned %d of %d", n, cq->batch);
		return -EIO;
	}
	for (i = 0; i < n; i++) {
		struct ulp_lane *lane;

		lane = find_lane(cq, &cq->wc[i]);
		if (lane)
			ulp_complete_rec(cq, lane, NULL, &cq->wc[i]);
		else
			ulp_fail(cq->ctx, "completion with a foreign wr_id %#llx",
				 cq->wc[i].wr_id);
	}
	return n;
}

/* Until nothing is left. False if the CQ is not to be polled, or cannot be. */
bool ulp_poll_empty(struct ulp_cq *cq)
{
	int n;

	do {
		spin_lock_bh(&cq->lock);
		n = poll_batch(cq);
		spin_unlock_bh(&cq->lock);
	} while (n == cq->batch);
	return n >= 0;
}

void ulp_poll_cq(struct ulp_cq *cq)
{
	while (ulp_poll_empty(cq) &&
	       ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP |
				IB_CQ_REPORT_MISSED_EVENTS) > 0)
		;
}

static void poll_work(struct work_struct *work)
{
	ulp_poll_cq(container_of(work, struct ulp_cq, work));
}

static void poll_tasklet(struct tasklet_struct *t)
{
	ulp_poll_cq(from_tasklet(((struct ulp_cq *)NULL), t, tasklet));
}

void ulp_kick_cq(struct ulp_cq *cq)
{
	if (cq->mode == ULP_CQ_WORK)
		queue_work(system_highpri_wq, &cq->work);
	else
		tasklet_schedule(&cq->tasklet);
}

static void comp_handler(struct ib_cq *ibcq, void *context)
{
	struct ulp_cq *cq = context;

	if (!READ_ONCE(cq->closing))
		ulp_kick_cq(cq);
}

void ulp_cq_event(struct ib_event *event, void *context)
{
	struct ulp_cq *cq = context;

	ulp_fail(cq->ctx, "the CQ raised '%s'", ib_event_msg(event->event));
}

bool ulp_uses_wr_id(enum ulp_cqmode mode)
{
	return mode == ULP_CQ_WORK || mode == ULP_CQ_TASKLET;
}

struct ulp_cq *ulp_create_cq(struct ulp_ctx *ctx, struct ulp_ep *ep, u32 nr_cqe)
{
	static const enum ib_poll_context poll_ctx[] = {
		[ULP_CQ_WQ]		= IB_POLL_WORKQUEUE,
		[ULP_CQ_UNBOUND]	= IB_POLL_UNBOUND_WORKQUEUE,
		[ULP_CQ_SOFTIRQ]	= IB_POLL_SOFTIRQ,
	};
	struct ib_cq_init_attr attr = { .cqe = nr_cqe };
	struct ulp_cq *cq;

	if (ctx->ncqs == ULP_MAX_CQS)
		return ERR_PTR(-ENOSPC);
	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->ctx = ctx;
	cq->mode = ctx->arg.cq;
	cq->batch = clamp_t(u32, ctx->arg.batch, 1, ULP_MAX_BATCH);
	spin_lock_init(&cq->lock);
	INIT_WORK(&cq->work, poll_work);
	tasklet_setup(&cq->tasklet, poll_tasklet);

	if (ulp_uses_wr_id(cq->mode))
		cq->cq = ib_create_cq(ep->dev, comp_handler, ulp_cq_event, cq,
				      &attr);
	else
		cq->cq = ib_alloc_cq(ep->dev, cq, nr_cqe, 0,
				     poll_ctx[cq->mode]);
	if (IS_ERR(cq->cq)) {
		long err = PTR_ERR(cq->cq);

		kfree(cq);
		return ERR_PTR(err);
	}
	ctx->cqs[ctx->ncqs++] = cq;
	if (ulp_uses_wr_id(cq->mode))
		ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP);
	return cq;
}

/* No QP uses the CQ any more. What is left in it is nobody's. */
void ulp_destroy_cq(struct ulp_cq *cq)
{
	struct ib_cq *ibcq = cq->cq;

	if (ulp_uses_wr_id(cq->mode)) {
		WRITE_ONCE(cq->closing, true);
		cancel_work_sync(&cq->work);
		tasklet_kill(&cq->tasklet);
		ib_destroy_cq(ibcq);
		/* the handler may have been called until now */
		cancel_work_sync(&cq->work);
		tasklet_kill(&cq->tasklet);
	} else {
		ib_free_cq(ibcq);
	}
	kfree(cq);
}

/* What is left in a CQ goes to the ledger, which knows whether it may be. */
void ulp_reap_cq(struct ulp_cq *cq)
{
	struct ib_wc wc;

	if (ulp_uses_wr_id(cq->mode)) {
		cancel_work_sync(&cq->work);
		tasklet_kill(&cq->tasklet);
		WRITE_ONCE(cq->held, false);
		local_bh_disable();
		ulp_poll_cq(cq);
		local_bh_enable();
		return;
	}
	while (ib_poll_cq(cq->cq, 1, &wc) > 0) {
		if (wc.wr_cqe)
			wc.wr_cqe->done(cq->cq, &wc);
		else if (wc.status == IB_WC_SUCCESS)
			ulp_fail(cq->ctx, "success without a wr_cqe");
	}
}
