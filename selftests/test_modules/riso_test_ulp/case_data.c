// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of data: every byte of messages of many shapes, and what depends on their
 * order.
 *
 * A case runs in process context under main.c's case_lock. check_announced() runs in
 * completion handlers, in any context.
 */

#include <linux/align.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "case.h"
#include "ctx.h"
#include "fail.h"
#include "lane.h"
#include "message.h"
#include "wr.h"

/* @n messages of one size, posted one by one */
static int run_messages(struct ulp_ctx *ctx, enum ib_wr_opcode opcode, u32 n,
			u32 len)
{
	u32 i;
	int err = ulp_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		struct ulp_op op = ulp_make_op(ctx, opcode, i, n, len);

		err = ulp_post_recv_for(&ctx->qb[0], &op, i, n) ? :
		      ulp_post(ctx->qa[0].send, &op);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}

int ulp_case_size(struct ulp_ctx *ctx)
{
	u32 n = min(ctx->arg.count ? : 3, ctx->arg.depth);

	return run_messages(ctx, ulp_get_opcode(ctx), n, ctx->arg.len);
}

int ulp_case_sge(struct ulp_ctx *ctx)
{
	u32 i, n;
	int err;

	ctx->arg.sge = ULP_MAX_SGE;
	err = ulp_connect(ctx);
	n = min(ctx->qa[0].max_sge, ctx->arg.depth);
	for (i = 0; !err && i < n; i++) {
		struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, n,
					       ctx->arg.len + i);

		op.nsge = i + 1;
		op.skew = i & 1;
		err = ulp_post_recv_for(&ctx->qb[0], &op, i, n) ? :
		      ulp_post(ctx->qa[0].send, &op);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}

/* What a READ brought is sent on by a fenced request behind it. */
int ulp_case_fence(struct ulp_ctx *ctx)
{
	u32 i, n = ctx->arg.count ? : 4;
	int err = ulp_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		struct ulp_op ops[2] = {
			ulp_make_op(ctx, IB_WR_RDMA_READ, i, n, ctx->arg.len),
			ulp_make_op(ctx, ulp_get_opcode(ctx), i, n, ctx->arg.len),
		};

		ops[0].flags = 0;
		ops[1].loff = ops[0].loff;
		ops[1].from_dst = true;
		ops[1].flags = IB_SEND_FENCE | IB_SEND_SIGNALED;
		err = ulp_post_recv_for(&ctx->qb[0], &ops[1], i, n) ? :
		      ulp_post_chain(ctx->qa[0].send, ops, 2, NULL);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}

/* inline data may be overwritten when the post returns */
int ulp_case_inline(struct ulp_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 16, ctx->arg.depth);
	int err = ulp_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		bool big = i % 4 == 0;
		struct ulp_op op = ulp_make_op(ctx, i % 2 ? IB_WR_SEND :
							    IB_WR_RDMA_WRITE,
					       i, n, big ? ctx->arg.len :
							   i * ULP_INLINE / n);

		op.roff = ulp_find_place(i, n, ctx->arg.len);
		op.nsge = 1 + i % 4;
		if (!big)
			op.flags |= IB_SEND_INLINE;
		err = ulp_post_recv_for(&ctx->qb[0], &op, i, n) ? :
		      ulp_post(ctx->qa[0].send, &op);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}

int ulp_case_atomic(struct ulp_ctx *ctx)
{
	u32 len = ctx->arg.len;
	u32 roff = ALIGN(ulp_find_place(2, 4, len), 8);
	u64 *word = ctx->b.model + roff;
	struct ulp_op ops[] = {
		ulp_make_op(ctx, IB_WR_RDMA_WRITE, 0, 4, len),
		{ .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .add = 0x1111 },
		ulp_make_op(ctx, IB_WR_RDMA_WRITE, 1, 4, len),
		{ .opcode = IB_WR_ATOMIC_CMP_AND_SWP, .add = *word + 0x1111,
		  .swap = 0x2222 },
		ulp_make_op(ctx, IB_WR_RDMA_READ, 0, 4, len),
		{ .opcode = IB_WR_ATOMIC_CMP_AND_SWP, .add = ~*word,
		  .swap = 0x3333 },
		ulp_make_op(ctx, IB_WR_RDMA_WRITE, 3, 4, len),
	};
	u32 i;

	for (i = 1; i < ARRAY_SIZE(ops); i += 2) {
		ops[i].len = sizeof(u64);
		ops[i].loff = ULP_BASE + 16 * i;
		ops[i].roff = roff;
		ops[i].flags = IB_SEND_SIGNALED;
	}
	return ulp_connect(ctx) ? :
	       ulp_post_chain(ctx->qa[0].send, ops, ARRAY_SIZE(ops), NULL) ? :
	       ulp_wait_pair(ctx, 0);
}

/* The bytes written before a SEND are there when the SEND is received. */
static void check_announced(struct ulp_lane *lane)
{
	struct ulp_ctx *ctx = lane->ctx;
	u32 n = ctx->arg.count, i = lane->step++;
	u32 len = ctx->arg.len;

	if (memcmp(ctx->b.dst.va + ulp_find_place(i, n, len),
		   ctx->a.src.va + ulp_find_place(n - 1 - i, n, len), len))
		ulp_fail(ctx, "SEND %u was received before the data it announces",
			 i);
}

int ulp_case_announce(struct ulp_ctx *ctx)
{
	u32 i, n;
	int err;

	ctx->arg.count = min(ctx->arg.count ? : 8, ctx->arg.depth / 2);
	n = ctx->arg.count;
	/* the next message may come before the handler runs */
	if (ulp_overlap(n, ctx->arg.len))
		return -EINVAL;
	err = ulp_connect(ctx);
	ctx->qb[0].recv->next = check_announced;
	for (i = 0; !err && i < n; i++) {
		struct ulp_op write = ulp_make_op(ctx, IB_WR_RDMA_WRITE, i, n,
						  ctx->arg.len);
		struct ulp_op send = ulp_make_op(ctx, IB_WR_SEND, i, n, 16);

		write.flags = 0;
		err = ulp_post_recv(ctx->qb[0].recv, 64 * i, 64, 1,
				    ULP_EXP_OK) ? :
		      ulp_post(ctx->qa[0].send, &write) ? :
		      ulp_post(ctx->qa[0].send, &send);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}
