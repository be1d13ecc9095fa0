// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: created with their CQs and SRQs, led from state to state, destroyed.
 *
 * The case alone creates and changes them, so no lock protects them. Everything here
 * runs in process context, and sleeps.
 */

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>

#include "cq.h"
#include "fail.h"
#include "lane.h"
#include "qp.h"

int ulp_modify_qp(struct ulp_ctx *ctx, struct ulp_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	struct ulp_ep *ep = qp->ep;
	int mask = IB_QP_STATE;
	int err;

	switch (state) {
	case IB_QPS_INIT:
		attr.port_num = ep->port;
		attr.qp_access_flags = ULP_REMOTE;
		mask |= IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
		break;
	case IB_QPS_RTR:
		attr.path_mtu = ep->mtu;
		attr.dest_qp_num = qp->peer->qp->qp_num;
		attr.rq_psn = qp->peer->psn;
		attr.max_dest_rd_atomic = ctx->arg.rdatomic;
		attr.min_rnr_timer = IB_RNR_TIMER_000_64;
		attr.ah_attr.type = rdma_ah_find_type(ep->dev, ep->port);
		rdma_ah_set_grh(&attr.ah_attr, &ep->peer->gid, 0, ep->gid_index,
				64, 0);
		rdma_ah_set_port_num(&attr.ah_attr, ep->port);
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			IB_QP_MIN_RNR_TIMER;
		break;
	case IB_QPS_RTS:
		attr.timeout = ctx->conf.timeout;
		attr.retry_cnt = ctx->conf.retry;
		attr.rnr_retry = ctx->conf.rnr_retry;
		attr.sq_psn = qp->psn;
		attr.max_rd_atomic = ctx->arg.rdatomic;
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC;
		break;
	default:
		break;
	}
	err = ib_modify_qp(qp->qp, &attr, mask);
	if (err)
		ulp_fail(ctx, "modify to state %d failed with %d", state, err);
	else
		qp->state = state;
	return err;
}

/* Both ends, one state after the other. */
int ulp_raise_pair(struct ulp_ctx *ctx, struct ulp_qp *qa, struct ulp_qp *qb,
		   enum ib_qp_state to)
{
	enum ib_qp_state state;
	int err;

	for (state = IB_QPS_INIT; state <= to; state++) {
		err = ulp_modify_qp(ctx, qa, state) ? : ulp_modify_qp(ctx, qb, state);
		if (err)
			return err;
	}
	return 0;
}

static int create_qp(struct ulp_ctx *ctx, struct ulp_ep *ep, struct ulp_qp *qp,
		     struct ulp_qp *peer, struct ib_srq *srq)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = ctx->arg.depth + 1,
			.max_recv_wr = ctx->arg.depth + 1,
			.max_send_sge = min_t(u32, ctx->arg.sge,
					      ep->dev->attrs.max_send_sge),
			.max_recv_sge = min_t(u32, ctx->arg.sge,
					      ep->dev->attrs.max_recv_sge),
			.max_inline_data = ULP_INLINE,
		},
		.sq_sig_type = ctx->arg.sigall ? IB_SIGNAL_ALL_WR :
						 IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = qp->scq->cq,
		.recv_cq = qp->rcq->cq,
		.srq = srq,
	};

	if (srq) {
		attr.cap.max_recv_wr = 0;
		attr.cap.max_recv_sge = 0;
	}
	qp->qp = ib_create_qp(ep->pd, &attr);
	if (IS_ERR(qp->qp)) {
		long err = PTR_ERR(qp->qp);

		qp->qp = NULL;
		ulp_fail(ctx, "ib_create_qp failed with %ld", err);
		return err;
	}
	qp->gone = qp->qp;
	qp->ep = ep;
	qp->peer = peer;
	qp->srq = srq;
	qp->psn = 0x1000 + qp->qp->qp_num;
	qp->depth = attr.cap.max_send_wr - 1;
	qp->max_sge = attr.cap.max_send_sge;
	qp->state = IB_QPS_RESET;
	qp->send = ulp_add_lane(ctx, qp, false);
	qp->recv = ulp_add_lane(ctx, qp, true);
	return qp->send && qp->recv ? 0 : -ENOMEM;
}

int ulp_create_side(struct ulp_ctx *ctx, struct ulp_ep *ep,
		    struct ulp_qp *qps, struct ulp_qp *peers,
		    struct ib_srq **srqp)
{
	u32 queue = ctx->arg.depth + 1;
	struct ulp_cq *all = NULL;
	u32 i;
	int err;

	if (ctx->conf.one_cq) {
		all = ulp_create_cq(ctx, ep, 2 * queue * ctx->conf.pairs);
		if (IS_ERR(all))
			return PTR_ERR(all);
	}
	if (ctx->conf.srq) {
		struct ib_srq_init_attr attr = {
			.attr = { .max_wr = queue, .max_sge = ctx->arg.sge },
			.srq_type = IB_SRQT_BASIC,
		};
		struct ib_srq *srq = ib_create_srq(ep->pd, &attr);

		if (IS_ERR(srq))
			return PTR_ERR(srq);
		*srqp = srq;
	}
	for (i = 0; i < ctx->conf.pairs; i++) {
		qps[i].scq = all ? : ulp_create_cq(ctx, ep,
						   ctx->conf.scqe ? : queue);
		if (IS_ERR(qps[i].scq))
			return PTR_ERR(qps[i].scq);
		qps[i].rcq = all ? : ulp_create_cq(ctx, ep, queue);
		if (IS_ERR(qps[i].rcq))
			return PTR_ERR(qps[i].rcq);
		err = create_qp(ctx, ep, &qps[i], &peers[i], *srqp);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Both ends are drained: soon nothing comes in any more. rxe queues a packet, with which
 * its hold on the queue pair may be gone, and then still touches that: if another CPU
 * has handled the packet and the queue pair is destroyed meanwhile, the kernel crashes.
 */
void ulp_await_silence(void)
{
	msleep(ULP_ON_THE_WIRE_MS);
	synchronize_rcu_expedited();
}

void ulp_destroy_qp(struct ulp_ctx *ctx, struct ulp_qp *qp)
{
	int err;

	if (!qp->qp)
		return;
	err = ib_destroy_qp(qp->qp);
	if (err)
		ulp_fail(ctx, "ib_destroy_qp failed with %d", err);
	else
		qp->qp = NULL;
}
