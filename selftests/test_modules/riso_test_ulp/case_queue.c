// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of queues: chains, full queues, CQs without room to spare, and queues that
 * several queue pairs share.
 *
 * A case runs in process context under main.c's case_lock.
 */

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "case.h"
#include "cq.h"
#include "ctx.h"
#include "fail.h"
#include "lane.h"
#include "message.h"
#include "wr.h"

int ulp_case_depth(struct ulp_ctx *ctx)
{
	u32 i, n;
	int err = ulp_connect(ctx);

	n = ctx->qa[0].depth;
	for (i = 0; !err && i < n; i++) {
		struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, n,
					       ctx->arg.len);

		err = ulp_post(ctx->qa[0].send, &op);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}

/* small and large ones, WRITE, READ and SEND, in one ib_post_send() */
int ulp_case_chain(struct ulp_ctx *ctx)
{
	static const enum ib_wr_opcode opcode[] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
	};
	u32 i, n = min(ctx->arg.count ? : 24, ctx->arg.depth);
	struct ulp_op *ops;
	int err;

	err = ulp_connect(ctx);
	if (err)
		return err;
	ops = kcalloc(n, sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	for (i = 0; !err && i < n; i++) {
		u32 len = i % 3 ? ctx->arg.len : 64 + i;

		ops[i] = ulp_make_op(ctx, opcode[i % ARRAY_SIZE(opcode)], i, n,
				     len);
		ops[i].roff = ulp_find_place(i, n, ctx->arg.len);
		ops[i].loff = ulp_find_place(n - 1 - i, n, ctx->arg.len);
		err = ulp_post_recv_for(&ctx->qb[0], &ops[i], i, n);
	}
	err = err ? : ulp_post_chain(ctx->qa[0].send, ops, n, NULL) ? :
	      ulp_wait_pair(ctx, 0);
	kfree(ops);
	return err;
}

/*
 * A send CQ with room for the signaled requests and not one more, filled
 * again and again.
 */
int ulp_case_exactcq(struct ulp_ctx *ctx)
{
	u32 i, round, n = 30;
	int err;

	ctx->conf.scqe = 15;
	ctx->arg.depth = n;
	err = ulp_connect(ctx);
	for (round = 0; !err && round < 3; round++) {
		for (i = 0; !err && i < n; i++) {
			struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, n,
						       ctx->arg.len);

			op.flags = i & 1 ? IB_SEND_SIGNALED : 0;
			err = ulp_post(ctx->qa[0].send, &op);
		}
		err = err ? : ulp_wait_lane(ctx->qa[0].send);
	}
	return err;
}

/* The sender does not look at its CQ before the peer has received all. */
int ulp_case_lazy(struct ulp_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 8, ctx->arg.depth - 1);
	struct ulp_op send = ulp_make_op(ctx, IB_WR_SEND, 0, 1, 16);
	int err;

	if (!ulp_uses_wr_id(ctx->arg.cq))
		ctx->arg.cq = ULP_CQ_WORK;
	err = ulp_connect(ctx);
	if (err)
		return err;
	WRITE_ONCE(ctx->qa[0].scq->held, true);
	err = ulp_post_recv(ctx->qb[0].recv, 0, 64, 1, ULP_EXP_OK);
	for (i = 0; !err && i < n; i++) {
		struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, n,
					       ctx->arg.len);

		err = ulp_post(ctx->qa[0].send, &op);
	}
	send.flags |= IB_SEND_FENCE;
	err = err ? : ulp_post(ctx->qa[0].send, &send) ? :
	      ulp_wait_lane(ctx->qb[0].recv);
	WRITE_ONCE(ctx->qa[0].scq->held, false);
	ulp_kick_cq(ctx->qa[0].scq);
	return err ? : ulp_wait_pair(ctx, 0);
}

/* More than fits, one by one or in a chain: what was accepted is done. */
int ulp_case_overpost(struct ulp_ctx *ctx)
{
	bool chain = !strcmp(ctx->arg.op, "chain");
	u32 n, i, accepted, total = 0;
	struct ulp_op *ops;
	int err;

	err = ulp_connect(ctx);
	if (err)
		return err;
	n = ctx->qa[0].depth + 9;
	ops = kcalloc(n, sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	ctx->arg.signal = 1;
	for (i = 0; i < n; i++)
		ops[i] = ulp_make_op(ctx, IB_WR_RDMA_WRITE, i, n, ctx->arg.len);
	if (chain) {
		err = ulp_post_chain(ctx->qa[0].send, ops, n, &total);
	} else {
		for (i = 0; !err && i < ULP_MAX_RECS / 2; i++) {
			err = ulp_post_chain(ctx->qa[0].send, &ops[i % n], 1,
					     &accepted);
			total += accepted;
		}
	}
	kfree(ops);
	if (!err)
		ulp_fail(ctx, "%u requests fit a queue of %u", total,
			 ctx->qa[0].depth + 1);
	else if (total <= ctx->qa[0].depth && !(chain && !total))
		ulp_fail(ctx, "only %u requests fit a queue of %u", total,
			 ctx->qa[0].depth + 1);
	return ulp_wait_pair(ctx, 0);
}

/*
 * Several QPs, all of whose queues complete to one CQ per side, with data
 * and messages in both directions.
 */
int ulp_case_onecq(struct ulp_ctx *ctx)
{
	u32 i, p, n = ctx->arg.count ? : 6, all;
	int err;

	ctx->conf.one_cq = true;
	ctx->conf.pairs = clamp_t(u32, ctx->arg.qps, 2, 4);
	all = ctx->conf.pairs * n;
	err = ulp_connect(ctx);
	for (i = 0; !err && i < n; i++) {
		for (p = 0; !err && p < ctx->conf.pairs; p++) {
			enum ib_wr_opcode opcode = i % 3 == 2 ? IB_WR_SEND :
						   ulp_get_opcode(ctx);
			u32 k = i * ctx->conf.pairs + p;
			struct ulp_op op = ulp_make_op(ctx, opcode, k, all,
						       ctx->arg.len);

			op.flags |= IB_SEND_SIGNALED;
			err = ulp_post_recv_for(&ctx->qb[p], &op, k, all) ? :
			      ulp_post_recv_for(&ctx->qa[p], &op, k, all) ? :
			      ulp_post(ctx->qa[p].send, &op) ? :
			      ulp_post(ctx->qb[p].send, &op);
		}
	}
	for (p = 0; !err && p < ctx->conf.pairs; p++)
		err = ulp_wait_pair(ctx, p);
	return err;
}

int ulp_case_srq(struct ulp_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 16, ctx->arg.depth);
	static const enum ib_wr_opcode opcode[] = {
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM,
		IB_WR_SEND_WITH_IMM,
	};
	int err;

	ctx->conf.srq = true;
	err = ulp_connect(ctx);
	for (i = 0; !err && i < n; i++) {
		struct ulp_op op = ulp_make_op(ctx, opcode[i % 4], i, n,
					       ctx->arg.len);

		err = ulp_post_recv_for(&ctx->qb[0], &op, i, n) ? :
		      ulp_post(ctx->qa[0].send, &op);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}
