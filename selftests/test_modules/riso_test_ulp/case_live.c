// SPDX-License-Identifier: GPL-2.0
/*
 * The case of lasting traffic, which goes on while something happens to the device.
 *
 * A case runs in process context under main.c's case_lock. Whoever ends it does so by
 * ulp_stop, by ulp_leaving or by a signal.
 */

#include <linux/minmax.h>
#include <linux/sched/signal.h>

#include "case.h"
#include "ctx.h"
#include "fail.h"
#include "lane.h"
#include "message.h"
#include "wr.h"

/*
 * Rounds of the same messages until somebody writes "stop", or the device
 * leaves, or the writer gets a signal.
 */
int ulp_case_traffic(struct ulp_ctx *ctx)
{
	u32 i, keep, n = min(ctx->arg.count ? : 24, ctx->arg.depth);
	struct ulp_lane *lane;
	int err;

	err = ulp_connect(ctx);
	if (err)
		return err;
	lane = ctx->qa[0].send;
	keep = atomic_read(&ctx->nrecs);
	do {
		ulp_forget_recs(lane, keep);
		for (i = 0; !err && i < n; i++) {
			struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, n,
						       ctx->arg.len);

			err = ulp_post(lane, &op);
		}
		/* this round is waited for, even if it is the last */
		ulp_wait(ctx, ulp_signaled_done(lane));
	} while (!err && ulp_signaled_done(lane) && !ulp_is_hopeless(ctx) &&
		 !signal_pending(current));
	WRITE_ONCE(ctx->quiet, true);
	return err ? : ulp_wait_lane(lane);
}
