// SPDX-License-Identifier: GPL-2.0
/*
 * The case of the wire: who waits for whom in the device.
 *
 * A case runs in process context under main.c's case_lock. The device itself tells how
 * long a message took.
 */

#include <linux/minmax.h>

#include "case.h"
#include "ctx.h"
#include "lane.h"
#include "message.h"
#include "qp.h"
#include "wr.h"

/* the bytes of the SEND, and the receive that it has far from the other messages */
#define ULP_SMALL	64
#define ULP_SMALL_PLACE	(ULP_BUF_SIZE - ULP_BASE - ULP_SMALL)

/* A small SEND of one queue pair comes behind large messages of another. */
int ulp_case_behind(struct ulp_ctx *ctx)
{
	u32 i, n = min3(ctx->arg.count ? : 8, ctx->arg.depth, (u32)ULP_MAX_BATCH);
	struct ulp_op ops[ULP_MAX_BATCH], send;
	int err;

	ctx->conf.pairs = 2;
	err = ulp_connect(ctx);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		ops[i] = ulp_make_op(ctx, ulp_get_opcode(ctx), i, n, ctx->arg.len);
		/* they overlap, and are carried out in order */
		ops[i].roff = ULP_BASE + i;
	}
	send = ulp_make_op(ctx, IB_WR_SEND, 0, 1, ULP_SMALL);
	return ulp_post_recv(ctx->qb[1].recv, ULP_SMALL_PLACE, ULP_SMALL, 1, ULP_EXP_OK) ? :
	       ulp_post_chain(ctx->qa[0].send, ops, n, NULL) ? :
	       ulp_post(ctx->qa[1].send, &send) ? :
	       ulp_wait_pair(ctx, 0) ? : ulp_wait_pair(ctx, 1);
}
