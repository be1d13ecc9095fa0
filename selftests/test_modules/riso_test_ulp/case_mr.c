// SPDX-License-Identifier: GPL-2.0
/*
 * The case of registrations: memory is registered and invalidated between data
 * requests.
 *
 * A case runs in process context under main.c's case_lock.
 */

#include <linux/errno.h>
#include <linux/kernel.h>

#include "case.h"
#include "ctx.h"
#include "lane.h"
#include "message.h"
#include "mr.h"
#include "wr.h"

static int post_regmr_chain(struct ulp_ctx *ctx, struct ib_mr *src_mr,
			    struct ib_mr *dst_mr, u32 round)
{
	u32 len = ctx->arg.len, n = 4;
	struct ulp_op ops[] = {
		ulp_make_op(ctx, IB_WR_RDMA_WRITE, 0, n, len),
		{ .opcode = IB_WR_REG_MR, .mr = src_mr },
		ulp_make_op(ctx, IB_WR_RDMA_WRITE, 1, n, len),
		{ .opcode = IB_WR_REG_MR, .mr = dst_mr,
		  .flags = IB_SEND_SIGNALED },
		ulp_make_op(ctx, IB_WR_RDMA_READ, 2, n, len),
		{ .opcode = IB_WR_LOCAL_INV, .mr = src_mr },
		{ .opcode = IB_WR_LOCAL_INV, .mr = dst_mr,
		  .flags = IB_SEND_FENCE },
		ulp_make_op(ctx, IB_WR_RDMA_WRITE, 3, n, len),
	};

	ops[2].lmr = src_mr;
	ops[4].lmr = dst_mr;
	ops[0].roff += round;
	ops[2].roff += round;
	ops[4].roff += round;
	ib_update_fast_reg_key(src_mr, ib_inc_rkey(src_mr->rkey));
	ib_update_fast_reg_key(dst_mr, ib_inc_rkey(dst_mr->rkey));
	return ulp_post_chain(ctx->qa[0].send, ops, ARRAY_SIZE(ops), NULL) ? :
	       ulp_wait_lane(ctx->qa[0].send);
}

/*
 * Registrations between data requests: first used on this side, then by the
 * peer, which is told by a SEND that stands behind the registration, and
 * which ends it with a SEND_WITH_INV.
 */
int ulp_case_regmr(struct ulp_ctx *ctx)
{
	u32 len = ctx->arg.len;
	struct ib_mr *src_mr, *dst_mr;
	struct ulp_op op;
	u32 round;
	int err;

	ctx->arg.signal = 0;
	err = ulp_connect(ctx);
	if (err)
		return err;
	src_mr = ulp_alloc_case_mr(ctx, &ctx->a, &ctx->a.src, 0, ULP_BUF_SIZE);
	dst_mr = ulp_alloc_case_mr(ctx, &ctx->a, &ctx->a.dst, 0, ULP_BUF_SIZE);
	if (!src_mr || !dst_mr)
		return -ENOMEM;
	for (round = 0; !err && round < 3; round++)
		err = post_regmr_chain(ctx, src_mr, dst_mr, round);
	if (err)
		return err;

	{
		struct ulp_op ops[] = {
			ulp_make_op(ctx, IB_WR_RDMA_WRITE, 0, 4, len),
			{ .opcode = IB_WR_REG_MR, .mr = src_mr },
			ulp_make_op(ctx, IB_WR_SEND, 3, 4, 100),
		};

		ib_update_fast_reg_key(src_mr, ib_inc_rkey(src_mr->rkey));
		err = ulp_post_recv_for(&ctx->qb[0], &ops[2], 1, 4) ? :
		      ulp_post_recv(ctx->qa[0].recv, ULP_BASE, 64, 1,
				    ULP_EXP_OK) ? :
		      ulp_post_chain(ctx->qa[0].send, ops, ARRAY_SIZE(ops),
				     NULL) ? :
		      ulp_wait_lane(ctx->qb[0].recv);
	}
	if (err)
		return err;
	op = ulp_make_op(ctx, IB_WR_RDMA_READ, 2, 4, len);
	op.rmr = src_mr;
	err = ulp_post(ctx->qb[0].send, &op);
	if (err)
		return err;
	op = ulp_make_op(ctx, IB_WR_SEND_WITH_INV, 3, 4, 40);
	op.flags = IB_SEND_FENCE | IB_SEND_SIGNALED;
	op.mr = src_mr;
	return ulp_post(ctx->qb[0].send, &op) ? : ulp_wait_pair(ctx, 0);
}
