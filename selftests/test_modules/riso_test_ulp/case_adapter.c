// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of what adapters do and rxe does not. They need riso_test_layer under the
 * module that is tested.
 *
 * A case runs in process context under main.c's case_lock.
 */

#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "case.h"
#include "cq.h"
#include "ctx.h"
#include "fail.h"
#include "lane.h"
#include "layer.h"
#include "message.h"
#include "qp.h"
#include "wr.h"

/* Nobody looks into a CQ on its owner's behalf before a grace period has gone by. */
static void await_reaper(void)
{
	synchronize_rcu();
	ulp_await_silence();
}

/*
 * Messages that have all arrived and completed while nobody polled: whatever looked for their
 * completions meanwhile has them, and no event is to come.
 */
static int post_unpolled(struct ulp_ctx *ctx, u32 first, u32 n)
{
	struct ulp_lane *lane = ctx->qa[0].send;
	struct ulp_op send = ulp_make_op(ctx, IB_WR_SEND, 0, 1, 16);
	u32 i;
	int err;

	err = ulp_post_recv(ctx->qb[0].recv, 0, 64, 1, ULP_EXP_OK);
	for (i = first; !err && i < first + n; i++) {
		struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, 4 * n,
					       ctx->arg.len);

		op.flags = IB_SEND_SIGNALED;
		err = ulp_post(lane, &op);
	}
	err = err ? : ulp_post(lane, &send) ? : ulp_wait_lane(ctx->qb[0].recv);
	/* The sender hears of the last one later than the receiver. */
	if (!err)
		await_reaper();
	return err;
}

/* One message more, and its completion. */
static int run_one(struct ulp_ctx *ctx, u32 i)
{
	struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, 4 * i, ctx->arg.len);

	op.flags = IB_SEND_SIGNALED;
	return ulp_post(ctx->qa[0].send, &op) ? : ulp_wait_lane(ctx->qa[0].send);
}

/* A ULP that asks for an event and does not look at the answer gets it. */
int ulp_case_arm(struct ulp_ctx *ctx)
{
	struct riso_test_seen before, after;
	u32 n = ctx->arg.count ? : 8;
	struct ulp_cq *cq;
	int err, missed;

	ctx->arg.cq = ULP_CQ_WORK;
	err = ulp_connect(ctx);
	if (err)
		return err;
	cq = ctx->qa[0].scq;
	WRITE_ONCE(cq->held, true);
	err = post_unpolled(ctx, 0, n);
	if (err || !ulp_layer_read(ctx, &before))
		return -EIO;
	missed = ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP |
				  IB_CQ_REPORT_MISSED_EVENTS);
	ulp_layer_read(ctx, &after);
	if (missed <= 0)
		ulp_fail(ctx, "ib_req_notify_cq returned %d", missed);
	if (after.notifies == before.notifies)
		ulp_fail(ctx, "the provider was not asked for an event");
	cancel_work_sync(&cq->work);
	WRITE_ONCE(cq->held, false);
	ulp_poll_empty(cq);
	err = ulp_wait_lane(ctx->qa[0].send);
	if (err)
		return err;

	/* only the event of this one can tell of it */
	err = run_one(ctx, n);
	if (err)
		return err;

	/* no answer was asked for: what was there before must raise an event */
	WRITE_ONCE(cq->held, true);
	err = post_unpolled(ctx, n + 1, n);
	cancel_work_sync(&cq->work);
	WRITE_ONCE(cq->held, false);
	ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP);
	return err ? : ulp_wait_pair(ctx, 0);
}

/* What nobody has polled of a queue pair goes with it. */
int ulp_case_purge(struct ulp_ctx *ctx)
{
	bool reset = !strcmp(ctx->arg.op, "reset");
	u32 n = ctx->arg.count ? : 8;
	struct ulp_lane *lane;
	struct ulp_cq *cq;
	int err;

	ctx->arg.cq = ULP_CQ_WORK;
	err = ulp_connect(ctx);
	if (err)
		return err;
	lane = ctx->qa[0].send;
	cq = ctx->qa[0].scq;
	WRITE_ONCE(cq->held, true);
	err = post_unpolled(ctx, 0, n);
	if (err)
		return err;
	if (reset)
		err = ulp_modify_qp(ctx, &ctx->qa[0], IB_QPS_RESET);
	else
		ulp_destroy_qp(ctx, &ctx->qa[0]);
	lane->closed = true;
	cancel_work_sync(&cq->work);
	WRITE_ONCE(cq->held, false);
	local_bh_disable();
	ulp_poll_cq(cq);
	local_bh_enable();
	return err;
}

/*
 * A message was taken in part when its queue pair is destroyed, that part has failed, and the
 * completion that tells is found meanwhile.
 */
int ulp_case_dying(struct ulp_ctx *ctx)
{
	struct riso_test_seen before, after;
	struct ulp_lane *lane;
	struct ulp_op op;
	int err;

	ctx->arg.cq = ULP_CQ_WORK;
	ctx->verify = ULP_VERIFY_NONE;
	err = ulp_connect(ctx);
	if (err)
		return err;
	/* More than one piece is posted only when it is known how long the path is. */
	err = run_one(ctx, 1);
	if (err)
		return err;
	lane = ctx->qa[0].send;
	op = ulp_make_op(ctx, IB_WR_RDMA_WRITE, 0, 1, ctx->arg.len);
	op.flags = IB_SEND_SIGNALED;
	op.bad_lkey = true;
	op.expect = ULP_EXP_END;
	if (!ulp_layer_withhold(ctx) || !ulp_layer_refuse(ctx, ENOMEM, 1) ||
	    !ulp_layer_read(ctx, &before))
		return -EIO;
	err = ulp_post(lane, &op);
	await_reaper();
	ulp_destroy_qp(ctx, &ctx->qa[0]);
	lane->closed = true;
	ulp_layer_refuse(ctx, 0, 0);
	ulp_layer_read(ctx, &after);
	if (after.refused == before.refused)
		ulp_fail(ctx, "nothing was refused");
	if (after.dying != before.dying)
		ulp_fail(ctx, "%llu calls while the QP was destroyed",
			 after.dying - before.dying);
	return err;
}

/* A reply goes with the data that it is for. */
int ulp_case_reply(struct ulp_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 10, ctx->arg.depth / 2);
	struct riso_test_seen before, after;
	int err = ulp_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		struct ulp_op ops[2] = {
			ulp_make_op(ctx, IB_WR_RDMA_WRITE, i, n, ctx->arg.len),
			ulp_make_op(ctx, IB_WR_SEND, i, n, 16),
		};

		ops[0].flags = 0;
		ops[1].flags = IB_SEND_SIGNALED;
		ops[1].loff = 64 * i;
		err = ulp_post_recv(ctx->qb[0].recv, 64 * i, 64, 1, ULP_EXP_OK);
		if (err || !ulp_layer_read(ctx, &before))
			return -EIO;
		err = ulp_post_chain(ctx->qa[0].send, ops, 2, NULL);
		ulp_layer_read(ctx, &after);
		if (after.sends == before.sends)
			ulp_fail(ctx, "reply %u had to wait", i);
		err = err ? : ulp_wait_lane(ctx->qa[0].send);
		/* the next slice of its group */
		usleep_range(2000, 3000);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}

/* Drained by the device's own work request, while it takes no other. */
int ulp_case_fulldrain(struct ulp_ctx *ctx)
{
	struct ulp_lane *lane;
	int err;

	err = ulp_connect(ctx) ? : ulp_post_many(ctx, 0);
	if (err || !ulp_layer_refuse(ctx, ENOMEM, 0))
		return err ? : -EIO;
	ib_drain_sq(ctx->qa[0].qp);
	ctx->qa[0].state = IB_QPS_ERR;
	lane = ctx->qa[0].send;
	if (!ulp_all_done(lane))
		ulp_fail(ctx, "ib_drain_sq returned, but only %u of %u were completed",
			 lane->matched, lane->posted);
	ulp_layer_refuse(ctx, 0, 0);
	return 0;
}

/* An operation that only the device knows, behind messages that wait. */
int ulp_case_unknown(struct ulp_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 12, ctx->arg.depth);
	int err = ulp_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		bool unknown = i % 4 == 2;
		struct ulp_op op = ulp_make_op(ctx, unknown ? IB_WR_RESERVED1 :
							      ulp_get_opcode(ctx),
					       i, n, ctx->arg.len);

		if (unknown)
			op.len = 300;
		err = ulp_post(ctx->qa[0].send, &op);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}

/*
 * As many work requests as there is room for, the first of which is out in pieces, when
 * the second is one that only the device knows.
 */
int ulp_case_surrender(struct ulp_ctx *ctx)
{
	u32 i, n = ctx->arg.depth;
	int err = ulp_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		struct ulp_op op = ulp_make_op(ctx, i == 1 ? IB_WR_RESERVED1 :
							     ulp_get_opcode(ctx),
					       i, n, ctx->arg.len);

		if (i)
			op.len = 300;
		err = ulp_post(ctx->qa[0].send, &op);
		/* on a wire on which they are under way for seconds */
		if (!i)
			msleep(300);
	}
	return err ? : ulp_wait_pair(ctx, 0);
}

/*
 * The device takes a part of a chain and refuses the rest: what it took, and will not
 * tell of, ends before what it refused.
 */
int ulp_case_partial(struct ulp_ctx *ctx)
{
	struct ulp_lane *lane;
	struct ulp_op ops[12];
	u32 i;
	int err;

	ctx->verify = ULP_VERIFY_PREFIX;
	ctx->fails_here = true;
	err = ulp_connect(ctx);
	if (err)
		return err;
	lane = ctx->qa[0].send;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		ops[i] = ulp_make_op(ctx, ulp_get_opcode(ctx), i, ARRAY_SIZE(ops),
				     ctx->arg.len);
		ops[i].flags = i % 6 == 5 ? IB_SEND_SIGNALED : 0;
		ops[i].expect = ULP_EXP_END;
	}
	/* so that the group counts as sparse, and all goes as one chain */
	usleep_range(2000, 3000);
	if (!ulp_layer_refuse(ctx, EINVAL, ctx->arg.after))
		return -EIO;
	err = ulp_post_chain(lane, ops, ARRAY_SIZE(ops), NULL);
	if (!err && !ulp_wait(ctx, READ_ONCE(lane->flushing)))
		err = -ETIMEDOUT;
	ulp_layer_refuse(ctx, 0, 0);
	/* all that is behind the first error, and all that was taken before it */
	return err ? : ulp_wait_flush(lane);
}
