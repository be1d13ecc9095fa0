// SPDX-License-Identifier: GPL-2.0
/*
 * The messages of a case: where each lies, what it does, and the receive that it needs.
 *
 * Owns no state and takes no lock. What posts or waits runs in process context. The
 * rest may run in any context.
 */

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "fail.h"
#include "lane.h"
#include "message.h"
#include "op.h"
#include "wr.h"

enum ib_wr_opcode ulp_get_opcode(struct ulp_ctx *ctx)
{
	static const struct {
		const char *name;
		enum ib_wr_opcode opcode;
	} op[] = {
		{ "write", IB_WR_RDMA_WRITE },
		{ "read", IB_WR_RDMA_READ },
		{ "send", IB_WR_SEND },
		{ "writeimm", IB_WR_RDMA_WRITE_WITH_IMM },
		{ "sendimm", IB_WR_SEND_WITH_IMM },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(op); i++)
		if (!strcmp(ctx->arg.op, op[i].name))
			return op[i].opcode;
	return IB_WR_RDMA_WRITE;
}

/* Places for @n messages, side by side as long as there is room. */
u32 ulp_find_place(u32 i, u32 n, u32 len)
{
	u32 room = ULP_BUF_SIZE - 2 * ULP_BASE - len - ULP_MAX_SGE * ULP_GAP;
	u32 step = len + ULP_MAX_SGE * ULP_GAP + 37;

	return ULP_BASE + i * min(step, room / max(n, 1U));
}

bool ulp_overlap(u32 n, u32 len)
{
	return ulp_find_place(1, n, len) - ULP_BASE < len;
}

static bool is_signaled(struct ulp_ctx *ctx, u32 i, u32 n)
{
	return i == n - 1 || (ctx->arg.signal && i % ctx->arg.signal == 0);
}

/* message @i of @n */
struct ulp_op ulp_make_op(struct ulp_ctx *ctx, enum ib_wr_opcode opcode,
			  u32 i, u32 n, u32 len)
{
	struct ulp_op op = {
		.opcode = opcode,
		.len = len,
		.loff = ulp_find_place(n - 1 - i, n, len),
		.roff = ulp_find_place(i, n, len),
		.imm = 0x12345600 + i,
	};

	if (is_signaled(ctx, i, n))
		op.flags = IB_SEND_SIGNALED;
	return op;
}

static bool takes_recv(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_SEND || opcode == IB_WR_SEND_WITH_IMM ||
	       opcode == IB_WR_SEND_WITH_INV ||
	       opcode == IB_WR_RDMA_WRITE_WITH_IMM;
}

/* The receive that message @i of @n needs, if it needs one. */
int ulp_post_recv_for(struct ulp_qp *qp, const struct ulp_op *op, u32 i, u32 n)
{
	u32 place = ulp_find_place(i, n, op->len);

	if (!takes_recv(op->opcode))
		return 0;
	if (!ulp_is_send(op))
		return ulp_post_recv(qp->recv, place, 0, 1, ULP_EXP_OK);
	return ulp_post_recv(qp->recv, place, op->len + 33, op->nsge, ULP_EXP_OK);
}

/* Wait for everything of both ends that is expected to succeed. */
int ulp_wait_pair(struct ulp_ctx *ctx, u32 i)
{
	return ulp_wait_lane(ctx->qa[i].send) ? :
	       ulp_wait_lane(ctx->qb[i].send) ? :
	       ulp_wait_lane(ctx->qa[i].recv) ? :
	       ulp_wait_lane(ctx->qb[i].recv);
}

/*
 * Large messages, many of which are still waiting when this returns: when as
 * many have completed as the caller wants.
 */
int ulp_post_many(struct ulp_ctx *ctx, enum ib_wc_status status)
{
	u32 i, n = min(ctx->arg.count ? : 30, ctx->arg.depth);
	struct ulp_lane *lane = ctx->qa[0].send;
	u32 enough = lane->nsig_done + ctx->arg.after;
	int err = 0;

	/* what came over can be told only if they do not overlap */
	if (ulp_overlap(n, ctx->arg.len))
		return -EINVAL;
	ctx->verify = ULP_VERIFY_PREFIX;
	for (i = 0; !err && i < n; i++) {
		struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, n,
					       ctx->arg.len);

		op.expect = ULP_EXP_ANY;
		op.status = status;
		err = ulp_post(lane, &op);
	}
	if (!err && !ulp_wait(ctx, READ_ONCE(lane->nsig_done) >= enough))
		return -ETIMEDOUT;
	return err;
}
