// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of errors: messages that fail half-way, states that refuse, and queues that end
 * with messages waiting.
 *
 * A case runs in process context under main.c's case_lock.
 */

#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/sizes.h>

#include "../compat.h"
#include "case.h"
#include "cq.h"
#include "ctx.h"
#include "fail.h"
#include "lane.h"
#include "message.h"
#include "mr.h"
#include "qp.h"
#include "wr.h"

/*
 * One good request, then one that fails, then more that must be flushed: each
 * of the latter completes, signaled or not.
 */
static int run_failing(struct ulp_ctx *ctx, struct ulp_op *bad,
		       enum ulp_expect before)
{
	u32 i, n = 8, len = ctx->arg.len;
	struct ulp_op ops[8];

	ctx->verify = ULP_VERIFY_PREFIX;
	for (i = 0; i < n; i++) {
		enum ib_wr_opcode opcode = i % 2 ? IB_WR_RDMA_READ :
						   IB_WR_RDMA_WRITE;

		ops[i] = ulp_make_op(ctx, opcode, i, 2 * n, len);
		ops[i].flags = i % 3 == 2 ? 0 : IB_SEND_SIGNALED;
		ops[i].expect = ULP_EXP_FLUSH;
	}
	ops[0] = ulp_make_op(ctx, IB_WR_RDMA_WRITE, 0, 2 * n, len);
	ops[0].expect = before;
	ops[0].flags = IB_SEND_SIGNALED;
	ops[1] = *bad;
	ops[1].flags = ctx->arg.signal == 1 ? IB_SEND_SIGNALED : 0;
	if (!ulp_uses_wr_id(ctx->arg.cq))
		ops[5].hidden = !(ops[5].flags & IB_SEND_SIGNALED);
	return ulp_post_chain(ctx->qa[0].send, ops, n, NULL);
}

/* The peer has registered only the first half of what is read or written. */
int ulp_case_remacc(struct ulp_ctx *ctx)
{
	u32 len = ctx->arg.len;
	struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), 1, 16, len);
	bool read = op.opcode == IB_WR_RDMA_READ;
	int err = ulp_connect(ctx);

	if (err)
		return err;
	op.reach = len / 2;
	op.rmr = ulp_alloc_case_mr(ctx, &ctx->b, read ? &ctx->b.src : &ctx->b.dst,
				   op.roff, op.reach);
	op.expect = ULP_EXP_STATUS;
	op.status = IB_WC_REM_ACCESS_ERR;
	return ulp_reg_mr(ctx->qb[0].send, op.rmr) ? :
	       run_failing(ctx, &op, ULP_EXP_OK) ? :
	       ulp_wait_flush(ctx->qa[0].send);
}

/* The last SGE has a key that does not exist. */
int ulp_case_locprot(struct ulp_ctx *ctx)
{
	struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), 1, 16, ctx->arg.len);
	int err = ulp_connect(ctx);

	ctx->fails_here = true;
	op.nsge = 4;
	op.bad_lkey = true;
	op.expect = ULP_EXP_ERROR;
	err = err ? : run_failing(ctx, &op, ULP_EXP_ANY);
	if (err)
		return err;
	/* rxe of Linux 6.1 flushes nothing before it is told to */
	wait_event_timeout(ulp_wq, ulp_all_done(ctx->qa[0].send), HZ);
	return ulp_modify_qp(ctx, &ctx->qa[0], IB_QPS_ERR) ? :
	       ulp_wait_flush(ctx->qa[0].send);
}

/* A SEND that finds no receive, behind and before large requests. */
int ulp_case_rnr(struct ulp_ctx *ctx)
{
	struct ulp_op op = ulp_make_op(ctx, IB_WR_SEND, 1, 16, 100);
	int err;

	ctx->conf.rnr_retry = 0;
	op.expect = ULP_EXP_STATUS;
	op.status = IB_WC_RNR_RETRY_EXC_ERR;
	err = ulp_connect(ctx);
	return err ? : run_failing(ctx, &op, ULP_EXP_OK) ? :
		       ulp_wait_flush(ctx->qa[0].send);
}

int ulp_case_drain(struct ulp_ctx *ctx)
{
	struct ulp_lane *lane;
	int err;

	/* its own completion is found by a wr_cqe */
	if (ulp_uses_wr_id(ctx->arg.cq))
		return -EINVAL;
	err = ulp_connect(ctx) ? : ulp_post_many(ctx, 0);
	if (err)
		return err;
	ib_drain_qp(ctx->qa[0].qp);
	ctx->qa[0].state = IB_QPS_ERR;
	lane = ctx->qa[0].send;
	if (!ulp_all_done(lane))
		ulp_fail(ctx, "ib_drain_qp returned, but only %u of %u were completed",
			 lane->matched, lane->posted);
	return 0;
}

int ulp_case_err(struct ulp_ctx *ctx)
{
	return ulp_connect(ctx) ? : ulp_post_many(ctx, 0) ? :
	       ulp_modify_qp(ctx, &ctx->qa[0], IB_QPS_ERR) ? :
	       ulp_wait_flush(ctx->qa[0].send);
}

/*
 * Reset with messages waiting, then connected to another QP and used. Some of
 * the old messages may still be on their way to the old one.
 */
int ulp_case_reset(struct ulp_ctx *ctx)
{
	struct ulp_qp *qa = &ctx->qa[0], *qb = &ctx->qb[1];
	struct ulp_op op;
	int err;

	ctx->conf.pairs = 2;
	err = ulp_connect(ctx) ? : ulp_post_many(ctx, 0);
	if (err)
		return err;
	/*
	 * While an old rxe resets a QP, an answer that comes in empties the same queue on
	 * another CPU. Then both count its entries, and later it has some that nobody posted.
	 */
	if (TEST_RXE_RESET_RACES && qa->qp->device->ops.driver_id == RDMA_DRIVER_RXE) {
		ulp_destroy_qp(ctx, &ctx->qb[0]);
		ulp_await_silence();
	}
	err = ulp_modify_qp(ctx, qa, IB_QPS_RESET) ? :
	      ulp_modify_qp(ctx, qb, IB_QPS_RESET);
	if (err)
		return err;
	/*
	 * rxe takes what the old peer still sends for an answer to the new one, if
	 * that is reading: it comes to an end first.
	 */
	ulp_destroy_qp(ctx, &ctx->qb[0]);
	msleep(100);
	/*
	 * And rxe may go on where the queue stood before the reset: it looks for its
	 * place before it empties the queue, and finds the end the second time.
	 */
	err = ulp_modify_qp(ctx, qa, IB_QPS_RESET);
	if (err)
		return err;
	qa->peer = qb;
	qb->peer = qa;
	qa->psn += SZ_1M;
	qa->send = ulp_add_lane(ctx, qa, false);
	if (!qa->send)
		return -ENOMEM;
	op = ulp_make_op(ctx, ulp_get_opcode(ctx), 0, 1, ctx->arg.len);
	op.roff = ULP_BUF_SIZE - ULP_BASE - op.len;
	op.loff = op.roff;
	return ulp_raise_pair(ctx, qa, qb, IB_QPS_RTS) ? :
	       ulp_post(qa->send, &op) ? : ulp_wait_lane(qa->send);
}

int ulp_case_destroy(struct ulp_ctx *ctx)
{
	int err;

	err = ulp_connect(ctx) ? : ulp_post_many(ctx, 0);
	if (!err)
		ulp_destroy_qp(ctx, &ctx->qa[0]);
	return err;
}

/* The peer is reset in the middle: nobody acknowledges any more. */
int ulp_case_peergone(struct ulp_ctx *ctx)
{
	int err;

	ctx->conf.timeout = 14;
	ctx->conf.retry = 2;
	err = ulp_connect(ctx) ? : ulp_post_many(ctx, IB_WC_RETRY_EXC_ERR);
	if (err)
		return err;
	ulp_destroy_qp(ctx, &ctx->qb[0]);
	return ulp_wait_flush(ctx->qa[0].send);
}

/* A QP that is not ready to send refuses; one in error flushes. */
int ulp_case_badstate(struct ulp_ctx *ctx)
{
	static const enum ib_qp_state state[] = {
		IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR,
	};
	struct ulp_op ops[2] = {
		ulp_make_op(ctx, IB_WR_RDMA_WRITE, 0, 2, ctx->arg.len),
		ulp_make_op(ctx, IB_WR_RDMA_WRITE, 1, 2, ctx->arg.len),
	};
	u32 i, accepted;
	int err;

	ctx->conf.state = IB_QPS_RESET;
	ctx->verify = ULP_VERIFY_PREFIX;
	err = ulp_connect(ctx);
	for (i = 0; !err && i < ARRAY_SIZE(state); i++) {
		if (state[i] != IB_QPS_RESET)
			err = ulp_modify_qp(ctx, &ctx->qa[0], state[i]);
		if (err)
			break;
		if (!ulp_post_chain(ctx->qa[0].send, ops, 2, &accepted) ||
		    accepted)
			ulp_fail(ctx, "a QP in state %d accepted %u requests",
				 state[i], accepted);
	}
	err = err ? : ulp_modify_qp(ctx, &ctx->qa[0], IB_QPS_RTS) ? :
	      ulp_modify_qp(ctx, &ctx->qa[0], IB_QPS_ERR);
	ops[0].expect = ULP_EXP_FLUSH;
	ops[1].expect = ULP_EXP_FLUSH;
	return err ? : ulp_post_chain(ctx->qa[0].send, ops, 2, NULL) ? :
	       ulp_wait_flush(ctx->qa[0].send);
}
