// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel ULP that checks every byte and every completion.
 *
 * It connects kernel RC queue pairs of two RDMA devices in one host, moves
 * position-dependent patterns between them, and compares:
 *
 *  - the whole of both destination buffers, guard areas included, with a
 *    model that replays the work requests in the order they were posted;
 *  - the completions with a ledger that holds one record per work request:
 *    exactly one completion for each signaled one, in order, none for an
 *    unsignaled one, and after the first error one for every one.
 *
 * The protection domains carry the name of this module, those of the idle pair made by
 * "lat-on" are called riso_test_lat.
 *
 *	echo "CASE [KEY=VALUE]..." > /sys/kernel/debug/riso_test_ulp/run
 *	cat /sys/kernel/debug/riso_test_ulp/result
 *
 * The write returns when the case has ended, with an error if it failed.
 *
 * This file owns the module, its files in debugfs, the cases and the idle
 * pair. A case runs under case_lock, in the process that writes. Devices come and go in
 * the context of the RDMA core, which may sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/align.h>
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/in.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/kthread.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "../riso_test_layer.h"
#include "buffer.h"
#include "cq.h"
#include "ctx.h"
#include "endpoint.h"
#include "fail.h"
#include "lane.h"
#include "message.h"
#include "model.h"
#include "mr.h"
#include "qp.h"
#include "ulp.h"
#include "wr.h"

#define ULP_LAT_NAME	"riso_test_lat"

/* A case runs under it. It protects the memory in buffer.c and what follows. */
static DEFINE_MUTEX(case_lock);
static struct ulp_ctx *lat;
static struct dentry *dir;

struct ulp_case {
	const char *name;
	int (*fn)(struct ulp_ctx *ctx);
	const char *help;
};

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

static int ulp_case_size(struct ulp_ctx *ctx)
{
	u32 n = min(ctx->arg.count ? : 3, ctx->arg.depth);

	return run_messages(ctx, ulp_get_opcode(ctx), n, ctx->arg.len);
}

static int ulp_case_sge(struct ulp_ctx *ctx)
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
static int ulp_case_fence(struct ulp_ctx *ctx)
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
static int ulp_case_inline(struct ulp_ctx *ctx)
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

static int ulp_case_atomic(struct ulp_ctx *ctx)
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

static int ulp_case_announce(struct ulp_ctx *ctx)
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
static int ulp_case_regmr(struct ulp_ctx *ctx)
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

static int ulp_case_depth(struct ulp_ctx *ctx)
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
static int ulp_case_chain(struct ulp_ctx *ctx)
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
static int ulp_case_exactcq(struct ulp_ctx *ctx)
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
static int ulp_case_lazy(struct ulp_ctx *ctx)
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
static int ulp_case_overpost(struct ulp_ctx *ctx)
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
static int ulp_case_onecq(struct ulp_ctx *ctx)
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

static int ulp_case_srq(struct ulp_ctx *ctx)
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
static int ulp_case_remacc(struct ulp_ctx *ctx)
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
static int ulp_case_locprot(struct ulp_ctx *ctx)
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
static int ulp_case_rnr(struct ulp_ctx *ctx)
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

static int ulp_case_drain(struct ulp_ctx *ctx)
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

static int ulp_case_err(struct ulp_ctx *ctx)
{
	return ulp_connect(ctx) ? : ulp_post_many(ctx, 0) ? :
	       ulp_modify_qp(ctx, &ctx->qa[0], IB_QPS_ERR) ? :
	       ulp_wait_flush(ctx->qa[0].send);
}

/*
 * Reset with messages waiting, then connected to another QP and used. Some of
 * the old messages may still be on their way to the old one.
 */
static int ulp_case_reset(struct ulp_ctx *ctx)
{
	struct ulp_qp *qa = &ctx->qa[0], *qb = &ctx->qb[1];
	struct ulp_op op;
	int err;

	ctx->conf.pairs = 2;
	err = ulp_connect(ctx) ? : ulp_post_many(ctx, 0) ? :
	      ulp_modify_qp(ctx, qa, IB_QPS_RESET) ? :
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

static int ulp_case_destroy(struct ulp_ctx *ctx)
{
	int err;

	err = ulp_connect(ctx) ? : ulp_post_many(ctx, 0);
	if (!err)
		ulp_destroy_qp(ctx, &ctx->qa[0]);
	return err;
}

/* The peer is reset in the middle: nobody acknowledges any more. */
static int ulp_case_peergone(struct ulp_ctx *ctx)
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
static int ulp_case_badstate(struct ulp_ctx *ctx)
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

struct ulp_thread {
	struct ulp_lane *lane;
	struct task_struct *task;
	struct completion *start;
	struct completion done;
	u32 first;
	u32 window;
};

/* the place of a lane in the buffers, and of its message @i in that */
static struct ulp_op make_lane_op(struct ulp_lane *lane, u32 slot, u32 i)
{
	struct ulp_ctx *ctx = lane->ctx;
	u32 n = max(ctx->arg.threads, 1U), len = ctx->arg.len;
	u32 room = (ULP_BUF_SIZE - 2 * ULP_BASE) / n - ULP_GAP;
	struct ulp_op op = {
		.opcode = ulp_get_opcode(ctx),
		.len = min(len, room / 2),
		.flags = i % 4 == 3 ? IB_SEND_SIGNALED : 0,
	};

	op.roff = ULP_BASE + slot * room + (i * 1021) % (room - op.len);
	op.loff = ULP_BASE + slot * room + (i * 2039) % (room - op.len);
	/* READs of one lane must not overtake each other's bytes */
	if (op.opcode == IB_WR_RDMA_READ)
		op.loff = op.roff;
	return op;
}

static int thread_fn(void *data)
{
	struct ulp_thread *t = data;
	struct ulp_lane *lane = t->lane;
	struct ulp_ctx *ctx = lane->ctx;
	u32 i, n = ctx->arg.count;
	int err = 0;

	wait_for_completion(t->start);
	for (i = 0; !err && i < n; i++) {
		struct ulp_op op = make_lane_op(lane, t->first, i);

		if (i == n - 1)
			op.flags = IB_SEND_SIGNALED;
		if (!ulp_wait(ctx, READ_ONCE(lane->posted) -
				   READ_ONCE(lane->matched) < t->window))
			break;
		err = ulp_post(lane, &op);
	}
	if (!err)
		ulp_wait_lane(lane);
	complete(&t->done);
	return 0;
}

/* Threads on different CPUs post to one QP, or to several. */
static int ulp_case_cpus(struct ulp_ctx *ctx)
{
	DECLARE_COMPLETION_ONSTACK(start);
	struct ulp_thread *threads;
	u32 i, cpu, n, pairs;
	int err;

	ctx->conf.pairs = clamp_t(u32, ctx->arg.qps, 1, ULP_MAX_QPS);
	ctx->arg.threads = clamp_t(u32, ctx->arg.threads, ctx->conf.pairs, 8);
	ctx->arg.count = ctx->arg.count ? : 64;
	pairs = ctx->conf.pairs;
	n = ctx->arg.threads;
	err = ulp_connect(ctx);
	if (err)
		return err;
	threads = kcalloc(n, sizeof(*threads), GFP_KERNEL);
	if (!threads)
		return -ENOMEM;
	cpu = cpumask_first(cpu_online_mask);
	for (i = 0; i < n; i++) {
		struct ulp_thread *t = &threads[i];

		t->start = &start;
		t->first = i;
		t->window = ctx->arg.depth / DIV_ROUND_UP(n, pairs);
		init_completion(&t->done);
		t->lane = i < pairs ? ctx->qa[i].send :
			  ulp_add_lane(ctx, &ctx->qa[i % pairs], false);
		if (!t->lane) {
			err = -ENOSPC;
			break;
		}
		t->task = kthread_create(thread_fn, t, "riso_ulp/%u", i);
		if (IS_ERR(t->task)) {
			err = PTR_ERR(t->task);
			break;
		}
		kthread_bind(t->task, cpu);
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		wake_up_process(t->task);
	}
	complete_all(&start);
	while (i--)
		wait_for_completion(&threads[i].done);
	kfree(threads);
	return err;
}

/* Each completion posts the next request. */
static void repost(struct ulp_lane *lane)
{
	struct ulp_op op;

	if (!lane->left || ulp_is_hopeless(lane->ctx))
		return;
	op = make_lane_op(lane, lane->step, lane->left--);
	op.flags = IB_SEND_SIGNALED;
	op.expect = lane->ctx->verify == ULP_VERIFY_NONE ? ULP_EXP_ANY :
							   ULP_EXP_OK;
	ulp_post(lane, &op);
}

static int start_repost(struct ulp_ctx *ctx, u32 count)
{
	u32 i, n, first;
	int err;

	ctx->conf.pairs = clamp_t(u32, ctx->arg.qps, 1, ULP_MAX_QPS);
	n = clamp_t(u32, ctx->arg.threads, ctx->conf.pairs, 8);
	ctx->arg.threads = n;
	err = ulp_connect(ctx);
	first = ctx->nlanes;
	for (i = 0; !err && i < n; i++) {
		struct ulp_qp *qp = &ctx->qa[i % ctx->conf.pairs];
		struct ulp_lane *lane = ulp_add_lane(ctx, qp, false);

		if (!lane)
			return -ENOMEM;
		lane->next = repost;
		lane->step = i;
		lane->left = count;
	}
	for (i = first; !err && i < ctx->nlanes; i++)
		repost(ctx->lanes[i]);
	return err;
}

static int ulp_case_repost(struct ulp_ctx *ctx)
{
	u32 i, count = ctx->arg.count ? : 64;
	int err = start_repost(ctx, count);

	for (i = 0; !err && i < ctx->nlanes; i++) {
		struct ulp_lane *lane = ctx->lanes[i];

		if (!lane->next ||
		    ulp_wait(ctx, READ_ONCE(lane->nsig_done) == count))
			continue;
		err = -ETIMEDOUT;
		ulp_fail(ctx, "lane %u: %u of %u completions came", lane->id,
			 lane->nsig_done, count);
	}
	return err;
}

/* To ERR, while completion handlers go on posting. */
static int ulp_case_errpost(struct ulp_ctx *ctx)
{
	struct ulp_lane *lane;
	u32 i;
	int err;

	ctx->verify = ULP_VERIFY_NONE;
	err = start_repost(ctx, ULP_MAX_RECS / 16);
	if (err)
		return err;
	lane = ctx->lanes[ctx->nlanes - 1];
	if (!ulp_wait(ctx, READ_ONCE(lane->nsig_done) > ctx->arg.after))
		return -ETIMEDOUT;
	for (i = 0; !err && i < ctx->conf.pairs; i++)
		err = ulp_modify_qp(ctx, &ctx->qa[i], IB_QPS_ERR);
	/* each lane ends with a request that was flushed */
	for (i = 0; !err && i < ctx->nlanes; i++) {
		lane = ctx->lanes[i];
		if (lane->next && !ulp_wait(ctx, READ_ONCE(lane->flushing)))
			err = -ETIMEDOUT;
	}
	if (err)
		ulp_fail(ctx, "lane %u: nothing was flushed", lane->id);
	return err;
}

struct ulp_irq {
	struct irq_work work;
	struct ulp_lane *lane;
	u32 i;
	u32 n;
};

static void post_in_irq(struct irq_work *work)
{
	struct ulp_irq *irq = container_of(work, struct ulp_irq, work);
	struct ulp_op op = ulp_make_op(irq->lane->ctx, ulp_get_opcode(irq->lane->ctx),
				       irq->i, irq->n, irq->lane->ctx->arg.len);

	ulp_post(irq->lane, &op);
}

/* Posts from hard interrupts. */
static int ulp_case_hardirq(struct ulp_ctx *ctx)
{
	struct ulp_irq irq = {
		.work = IRQ_WORK_INIT_HARD(post_in_irq),
		.n = min(ctx->arg.count ? : 16, ctx->arg.depth),
	};
	int err = ulp_connect(ctx);

	if (err)
		return err;
	irq.lane = ctx->qa[0].send;
	for (irq.i = 0; irq.i < irq.n; irq.i++) {
		irq_work_queue(&irq.work);
		irq_work_sync(&irq.work);
	}
	return ulp_wait_pair(ctx, 0);
}

/*
 * Rounds of the same messages until somebody writes "stop", or the device
 * leaves, or the writer gets a signal.
 */
static int ulp_case_traffic(struct ulp_ctx *ctx)
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

static bool ulp_layer_read(struct ulp_ctx *ctx, struct riso_test_seen *seen)
{
	void (*read)(struct riso_test_seen *seen) = symbol_get(riso_test_layer_read);

	if (!read) {
		ulp_fail(ctx, "riso_test_layer is not loaded");
		return false;
	}
	read(seen);
	symbol_put(riso_test_layer_read);
	return true;
}

static bool ulp_layer_refuse(struct ulp_ctx *ctx, int error, unsigned int num)
{
	void (*set)(int error, unsigned int num) = symbol_get(riso_test_layer_refuse);

	if (!set) {
		ulp_fail(ctx, "riso_test_layer is not loaded");
		return false;
	}
	set(error, num);
	symbol_put(riso_test_layer_refuse);
	return true;
}

static int ulp_layer_hold(struct ulp_ctx *ctx, const struct ib_cq *cq)
{
	int (*hold)(const struct ib_cq *cq) = symbol_get(riso_test_layer_hold);
	int ret;

	if (!hold) {
		ulp_fail(ctx, "riso_test_layer is not loaded");
		return -ENOENT;
	}
	ret = hold(cq);
	symbol_put(riso_test_layer_hold);
	return ret;
}

/*
 * Messages that have all arrived while nobody polled: whatever looked for their
 * completions meanwhile has them.
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
	return err ? : ulp_post(lane, &send) ? : ulp_wait_lane(ctx->qb[0].recv);
}

/* One message more, and its completion. */
static int run_one(struct ulp_ctx *ctx, u32 i)
{
	struct ulp_op op = ulp_make_op(ctx, ulp_get_opcode(ctx), i, 4 * i, ctx->arg.len);

	op.flags = IB_SEND_SIGNALED;
	return ulp_post(ctx->qa[0].send, &op) ? : ulp_wait_lane(ctx->qa[0].send);
}

/* A ULP that asks for an event and does not look at the answer gets it. */
static int ulp_case_arm(struct ulp_ctx *ctx)
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
static int ulp_case_purge(struct ulp_ctx *ctx)
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
	ulp_await_silence();
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

/* A reply goes with the data that it is for. */
static int ulp_case_reply(struct ulp_ctx *ctx)
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
static int ulp_case_fulldrain(struct ulp_ctx *ctx)
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
static int ulp_case_unknown(struct ulp_ctx *ctx)
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
static int ulp_case_surrender(struct ulp_ctx *ctx)
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
static int ulp_case_partial(struct ulp_ctx *ctx)
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

/* SENDs that a queue pair may have waiting when it ends */
#define ULP_ENDING	40

static void ulp_init_ending(struct ib_qp_init_attr *attr, struct ib_cq *cq)
{
	*attr = (struct ib_qp_init_attr) {
		.cap = {
			.max_send_wr = ULP_ENDING,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
	};
}

/* Without a peer: what is sent goes nowhere. */
static int ulp_open_ending(struct ulp_ctx *ctx, struct ulp_qp *qp, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr;
	int err;

	ulp_init_ending(&attr, cq);
	qp->ep = &ctx->a;
	qp->peer = &ctx->qb[0];
	qp->qp = ib_create_qp(ctx->a.pd, &attr);
	if (IS_ERR(qp->qp))
		return PTR_ERR(qp->qp);
	err = ulp_modify_qp(ctx, qp, IB_QPS_INIT) ? :
	      ulp_modify_qp(ctx, qp, IB_QPS_RTR) ? :
	      ulp_modify_qp(ctx, qp, IB_QPS_RTS);
	if (err)
		ib_destroy_qp(qp->qp);
	return err;
}

/* the port of the listener, and the longest that each step of a connection takes */
#define ULP_CM_PORT	7471
#define ULP_CM_MS	10000

struct ulp_cm {
	struct ulp_ctx *ctx;
	struct ib_cq *cq;
	struct rdma_cm_id *id;
	struct rdma_cm_id *peer;
	struct completion done;
	int status;
	u32 round;
};

/* A request that was sent twice may come once more, in a later round. */
static bool cm_expects(const struct ulp_cm *cm, const struct rdma_conn_param *param)
{
	u32 round;

	if (cm->peer || param->private_data_len < sizeof(round))
		return false;
	memcpy(&round, param->private_data, sizeof(round));
	return round == cm->round;
}

static int cm_accept(struct ulp_cm *cm, struct rdma_cm_id *id, struct ib_cq *cq)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ib_qp_init_attr attr;
	int err;

	ulp_init_ending(&attr, cq);
	err = rdma_create_qp(id, cm->ctx->b.pd, &attr) ? : rdma_accept(id, &param);
	if (!err)
		cm->peer = id;
	else if (id->qp)
		rdma_destroy_qp(id);
	return err;
}

static int cm_handle_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ulp_cm *cm = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (!cm_expects(cm, &event->param.conn))
			return -ESTALE;
		return cm_accept(cm, id, cm->ctx->qb[0].scq->cq);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* of the peer's own: only ours counts */
		if (id != cm->id)
			return 0;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		cm->status = event->status ? : -ECONNABORTED;
	}
	complete(&cm->done);
	return 0;
}

static int cm_wait(struct ulp_cm *cm)
{
	if (!wait_for_completion_timeout(&cm->done, msecs_to_jiffies(ULP_CM_MS)))
		return -ETIMEDOUT;
	return cm->status;
}

static void cm_fill_addr(struct sockaddr_in *sin, const union ib_gid *gid, u16 port)
{
	*sin = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};
	memcpy(&sin->sin_addr, gid->raw + 12, sizeof(sin->sin_addr));
}

static int cm_connect(struct ulp_cm *cm)
{
	struct rdma_conn_param param = {
		.private_data = &cm->round,
		.private_data_len = sizeof(cm->round),
		.rnr_retry_count = 7,
		.retry_count = 7,
	};
	struct sockaddr_in src, dst;
	struct ib_qp_init_attr attr;
	int err;

	cm_fill_addr(&src, &cm->ctx->a.gid, 0);
	cm_fill_addr(&dst, &cm->ctx->b.gid, ULP_CM_PORT);
	ulp_init_ending(&attr, cm->cq);
	init_completion(&cm->done);
	cm->status = 0;
	cm->peer = NULL;
	cm->id = rdma_create_id(&init_net, cm_handle_event, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(cm->id))
		return PTR_ERR(cm->id);
	err = rdma_resolve_addr(cm->id, (struct sockaddr *)&src,
				(struct sockaddr *)&dst, ULP_CM_MS) ? :
	      cm_wait(cm) ? :
	      rdma_resolve_route(cm->id, ULP_CM_MS) ? : cm_wait(cm) ? :
	      rdma_create_qp(cm->id, cm->ctx->a.pd, &attr) ? :
	      rdma_connect(cm->id, &param) ? : cm_wait(cm);
	return err;
}

static void cm_close(struct ulp_cm *cm)
{
	if (cm->id->qp)
		rdma_destroy_qp(cm->id);
	rdma_destroy_id(cm->id);
	if (!cm->peer)
		return;
	rdma_destroy_qp(cm->peer);
	rdma_destroy_id(cm->peer);
}

static int post_ending(struct ulp_ctx *ctx, struct ib_qp *qp, u32 n)
{
	const struct ib_send_wr *bad;
	struct ib_sge sge = {
		.addr = ctx->a.src.dma + ULP_BASE,
		.length = ctx->arg.len,
		.lkey = ctx->a.pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err = 0;

	while (!err && n--)
		err = ib_post_send(qp, &wr, &bad);
	return err;
}

/* One round. Says in @held whether something still waited when the queue pair ended. */
static int end_one(struct ulp_ctx *ctx, struct ulp_cm *cm, u32 round, bool *held)
{
	struct riso_test_seen before, waiting, after;
	u32 n = 1 + round % ULP_ENDING;
	u32 way = round % 3;
	struct ulp_qp qp = {};
	int err;

	cm->round = round;
	err = way == 2 ? cm_connect(cm) : ulp_open_ending(ctx, &qp, cm->cq);
	if (err && way == 2)
		cm_close(cm);
	if (err)
		return err;
	ulp_layer_read(ctx, &before);
	err = post_ending(ctx, way == 2 ? cm->id->qp : qp.qp, n);
	ulp_layer_read(ctx, &waiting);
	if (way == 0)
		err = err ? : ulp_modify_qp(ctx, &qp, IB_QPS_ERR);
	else if (way == 2)
		err = err ? : rdma_disconnect(cm->id);
	if (way == 2)
		cm_close(cm);
	else
		ib_destroy_qp(qp.qp);
	ulp_layer_read(ctx, &after);
	*held = waiting.sends - before.sends < n;
	if (after.sends - before.sends != n || after.late_sends != before.late_sends)
		ulp_fail(ctx, "round %u: of %u SENDs %llu were given before the end, %llu after",
			 round, n, after.sends - before.sends,
			 after.late_sends - before.late_sends);
	return err;
}

/* What was accepted is given to the device before a queue pair ends. */
static int ulp_case_end(struct ulp_ctx *ctx)
{
	struct riso_test_seen seen;
	struct ulp_cm cm = { .ctx = ctx };
	struct rdma_cm_id *listener;
	struct sockaddr_in sin;
	u32 i, n = ctx->arg.count ? : 30, waited = 0;
	bool held;
	int err;

	ctx->verify = ULP_VERIFY_NONE;
	err = ulp_connect(ctx);
	if (err || !ulp_layer_read(ctx, &seen))
		return err ? : -EIO;
	cm.cq = ib_alloc_cq(ctx->a.dev, ctx, 4 * ULP_ENDING, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cm.cq))
		return PTR_ERR(cm.cq);
	listener = rdma_create_id(&init_net, cm_handle_event, &cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener)) {
		err = PTR_ERR(listener);
		goto free_cq;
	}
	cm_fill_addr(&sin, &ctx->b.gid, ULP_CM_PORT);
	err = rdma_bind_addr(listener, (struct sockaddr *)&sin) ? :
	      rdma_listen(listener, 8);
	for (i = 0; !err && i < n && !ulp_is_hopeless(ctx); i++) {
		err = end_one(ctx, &cm, i, &held);
		waited += held;
		cond_resched();
	}
	if (err)
		ulp_fail(ctx, "round %u failed with %d", i, err);
	else if (waited < n / 2)
		ulp_fail(ctx, "something waited in %u of %u rounds only", waited, n);
	rdma_destroy_id(listener);
free_cq:
	ib_free_cq(cm.cq);
	return err;
}

/* the longest that the case waits for the poll */
#define ULP_HELD_MS	5000

struct ulp_poller {
	struct work_struct work;
	struct ib_cq *cq;
	struct ib_cqe cqe;
	struct ib_wc wc;
	int found;
};

/* Waits until the poll that is held up has come so far. */
static int wait_held(struct ulp_ctx *ctx, const struct ib_cq *cq, int far)
{
	unsigned long end = jiffies + msecs_to_jiffies(ULP_HELD_MS);
	int come;

	while ((come = ulp_layer_hold(ctx, cq)) < far && time_before(jiffies, end))
		usleep_range(1000, 2000);
	if (come >= far)
		return 0;
	ulp_fail(ctx, "the poll that is held up has come as far as %d", come);
	return -ETIMEDOUT;
}

static void poll_once(struct work_struct *work)
{
	struct ulp_poller *p = container_of(work, struct ulp_poller, work);

	p->found = ib_poll_cq(p->cq, 1, &p->wc);
}

/* A governed queue pair comes, fails and goes, and the CQ is polled empty. */
static int fail_one(struct ulp_ctx *ctx, struct ulp_poller *p)
{
	const struct ib_send_wr *bad;
	struct ulp_qp qp = {};
	struct ib_sge sge = {
		.addr = ctx->a.src.dma + ULP_BASE,
		.length = ctx->arg.len,
		.lkey = ctx->a.pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &p->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ib_wc wc;
	int err;

	err = ulp_open_ending(ctx, &qp, p->cq);
	if (err)
		return err;
	/* in error before: nothing goes over the wire */
	err = ulp_modify_qp(ctx, &qp, IB_QPS_ERR) ? : ib_post_send(qp.qp, &wr, &bad) ? :
	      wait_held(ctx, p->cq, 2);
	ib_destroy_qp(qp.qp);
	while (ib_poll_cq(p->cq, 1, &wc) > 0)
		ulp_fail(ctx, "there was one more completion");
	return err;
}

/*
 * All this happens while somebody polls a CQ that nobody governed when he began. What he
 * has found meanwhile is still the completion that was asked for.
 */
static int ulp_case_stale(struct ulp_ctx *ctx)
{
	struct ib_cq_init_attr attr = { .cqe = 4 * ULP_ENDING };
	struct ulp_poller p = {};
	int err;

	ctx->verify = ULP_VERIFY_NONE;
	err = ulp_connect(ctx);
	if (err)
		return err;
	p.cq = ib_create_cq(ctx->a.dev, NULL, ulp_cq_event, NULL, &attr);
	if (IS_ERR(p.cq))
		return PTR_ERR(p.cq);
	INIT_WORK_ONSTACK(&p.work, poll_once);
	ulp_layer_hold(ctx, p.cq);
	queue_work(system_unbound_wq, &p.work);
	err = wait_held(ctx, p.cq, 1) ? : fail_one(ctx, &p);
	/* longer than a grace period that waits for nobody */
	msleep(ULP_ON_THE_WIRE_MS);
	ulp_layer_hold(ctx, NULL);
	flush_work(&p.work);
	destroy_work_on_stack(&p.work);
	if (!err && (p.found != 1 || p.wc.wr_cqe != &p.cqe))
		ulp_fail(ctx, "%d completions were found, not the one that was asked for",
			 p.found);
	ib_destroy_cq(p.cq);
	return err;
}

static const struct ulp_case cases[] = {
	{ "size", ulp_case_size, "messages of one size" },
	{ "sge", ulp_case_sge, "1 to max SGEs of odd lengths" },
	{ "chain", ulp_case_chain, "WRITE, READ and SEND in one chain" },
	{ "fence", ulp_case_fence, "READ, then fenced WRITE or SEND of it" },
	{ "inline", ulp_case_inline, "inline data between large requests" },
	{ "regmr", ulp_case_regmr, "REG_MR and invalidation between data" },
	{ "atomic", ulp_case_atomic, "atomics between data" },
	{ "exactcq", ulp_case_exactcq, "a CQ of exactly the needed depth" },
	{ "announce", ulp_case_announce, "data is there before its SEND" },
	{ "lazy", ulp_case_lazy, "nobody polls before the peer has all" },
	{ "depth", ulp_case_depth, "a queue full of large messages" },
	{ "remacc", ulp_case_remacc, "remote access error in mid-message" },
	{ "locprot", ulp_case_locprot, "bad key in the last SGE" },
	{ "rnr", ulp_case_rnr, "SEND without a receive" },
	{ "drain", ulp_case_drain, "ib_drain_qp with messages waiting" },
	{ "err", ulp_case_err, "modify to ERR with messages waiting" },
	{ "reset", ulp_case_reset, "modify to RESET and use again" },
	{ "destroy", ulp_case_destroy, "destroy with messages waiting" },
	{ "peergone", ulp_case_peergone, "the peer's QP goes away" },
	{ "badstate", ulp_case_badstate, "post in states that refuse" },
	{ "overpost", ulp_case_overpost, "more than the queue holds" },
	{ "cpus", ulp_case_cpus, "threads on several CPUs, QPs" },
	{ "repost", ulp_case_repost, "posts from completion handlers" },
	{ "errpost", ulp_case_errpost, "modify to ERR meanwhile" },
	{ "hardirq", ulp_case_hardirq, "posts from hard interrupts" },
	{ "onecq", ulp_case_onecq, "several QPs on one CQ, both ways" },
	{ "srq", ulp_case_srq, "a shared receive queue" },
	{ "traffic", ulp_case_traffic, "traffic until \"stop\"" },
	{ "arm", ulp_case_arm, "the answer to req_notify_cq is ignored" },
	{ "purge", ulp_case_purge, "completions go with their QP" },
	{ "reply", ulp_case_reply, "a WRITE and its SEND, one chunk" },
	{ "fulldrain", ulp_case_fulldrain, "ib_drain_sq, the queue being full" },
	{ "unknown", ulp_case_unknown, "an operation of the device's own" },
	{ "surrender", ulp_case_surrender, "the same, while pieces are out" },
	{ "end", ulp_case_end, "SENDs wait when their QP ends" },
	{ "partial", ulp_case_partial, "a chain of which a part is refused" },
	{ "stale", ulp_case_stale, "a completion outlives its QP in a poll" },
};

/* The idle pair of another owner, which a rule can make a latency flow. */
static int lat_on(const struct ulp_args *arg)
{
	struct ulp_ctx *ctx;
	int err;

	if (lat)
		return -EEXIST;
	ctx = ulp_alloc_ctx(arg, ULP_LAT_NAME);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	err = ulp_connect(ctx);
	if (err) {
		ulp_finish(ctx);
		ulp_free_ctx(ctx);
		return err;
	}
	lat = ctx;
	return 0;
}

static void lat_off(void)
{
	if (!lat)
		return;
	ulp_finish(lat);
	if (lat->failed)
		pr_err("latency pair: %s", lat->log);
	ulp_free_ctx(lat);
	lat = NULL;
}

static int run_case(const struct ulp_case *tc, const struct ulp_args *arg)
{
	struct ulp_ctx *ctx;
	int err;

	ctx = ulp_alloc_ctx(arg, KBUILD_MODNAME);
	if (IS_ERR(ctx)) {
		scnprintf(ulp_result, ULP_LOG_SIZE, "FAIL %s: setup failed\n",
			  tc->name);
		return PTR_ERR(ctx);
	}
	err = tc->fn(ctx);
	ulp_finish(ctx);
	if (!ctx->failed && !err)
		ulp_verify(ctx);
	if (ctx->failed)
		err = -EIO;
	scnprintf(ulp_result, ULP_LOG_SIZE,
		  "%s %s: %d, requests %d, completions %d, bytes %lld\n%s",
		  err ? "FAIL" : "PASS", tc->name, err,
		  atomic_read(&ctx->nrecs), atomic_read(&ctx->ncomp),
		  (long long)atomic64_read(&ctx->bytes), ctx->log);
	ulp_free_ctx(ctx);
	return err;
}

static const char * const cqmode_name[] = {
	[ULP_CQ_WQ]		= "wq",
	[ULP_CQ_UNBOUND]	= "unbound",
	[ULP_CQ_SOFTIRQ]	= "softirq",
	[ULP_CQ_WORK]		= "work",
	[ULP_CQ_TASKLET]	= "tasklet",
};

static const char * const mutation_name[] = {
	[ULP_MUT_NONE]		= "none",
	[ULP_MUT_BYTE]		= "byte",
	[ULP_MUT_GUARD]		= "guard",
	[ULP_MUT_SWALLOW]	= "swallow",
	[ULP_MUT_DUP]		= "dup",
	[ULP_MUT_STATUS]	= "status",
	[ULP_MUT_OPCODE]	= "opcode",
	[ULP_MUT_LEN]		= "len",
	[ULP_MUT_ORDER]		= "order",
};

static int parse_arg(struct ulp_args *arg, char *key, const char *val)
{
	const struct {
		const char *key;
		u32 *val;
	} num[] = {
		{ "after", &arg->after },
		{ "len", &arg->len },
		{ "count", &arg->count },
		{ "depth", &arg->depth },
		{ "sge", &arg->sge },
		{ "qps", &arg->qps },
		{ "threads", &arg->threads },
		{ "rdatomic", &arg->rdatomic },
		{ "batch", &arg->batch },
		{ "signal", &arg->signal },
		{ "timeout", &arg->timeout },
	};
	int i;

	if (!strcmp(key, "op"))
		return strscpy(arg->op, val, sizeof(arg->op)) < 0 ? -EINVAL : 0;
	if (!strcmp(key, "odd"))
		return kstrtobool(val, &arg->odd);
	if (!strcmp(key, "sigall"))
		return kstrtobool(val, &arg->sigall);
	if (!strcmp(key, "cq")) {
		i = match_string(cqmode_name, ARRAY_SIZE(cqmode_name), val);
		if (i >= 0)
			arg->cq = i;
		return min(i, 0);
	}
	if (!strcmp(key, "mutate")) {
		i = match_string(mutation_name, ARRAY_SIZE(mutation_name), val);
		if (i >= 0)
			arg->mutate = i;
		return min(i, 0);
	}
	for (i = 0; i < ARRAY_SIZE(num); i++)
		if (!strcmp(key, num[i].key))
			return kstrtou32(val, 0, num[i].val);
	return -EINVAL;
}

static int ulp_parse_args(struct ulp_args *arg, char *line)
{
	char *word;
	int err;

	word = strsep(&line, "\n ");
	if (strscpy(arg->name, word, sizeof(arg->name)) < 0)
		return -EINVAL;
	while ((word = strsep(&line, "\n "))) {
		char *key = strsep(&word, "=");

		if (!*key)
			continue;
		err = word ? parse_arg(arg, key, word) : -EINVAL;
		if (err)
			return err;
	}
	if (arg->len > ULP_BUF_SIZE - 4 * ULP_BASE ||
	    arg->depth < 2 || arg->depth > 1023 ||
	    arg->count > arg->depth * 64 ||
	    !arg->timeout || arg->timeout > 600 || !arg->rdatomic)
		return -EINVAL;
	return 0;
}

static int run_line(char *line)
{
	struct ulp_args arg = {
		.op = "write",
		.len = 100003,
		.depth = 62,
		.sge = 4,
		.qps = 1,
		.threads = 4,
		.rdatomic = 16,
		.batch = ULP_MAX_BATCH,
		.signal = 2,
		.timeout = 60,
	};
	int i, err;

	err = ulp_parse_args(&arg, line);
	if (err) {
		scnprintf(ulp_result, ULP_LOG_SIZE, "FAIL: bad arguments\n");
		return err;
	}
	if (!strcmp(arg.name, "lat-on"))
		return lat_on(&arg);
	if (!strcmp(arg.name, "lat-off")) {
		lat_off();
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (!strcmp(arg.name, cases[i].name))
			return run_case(&cases[i], &arg);
	scnprintf(ulp_result, ULP_LOG_SIZE, "FAIL: no case %s\n", arg.name);
	return -ENOENT;
}

static ssize_t run_write(struct file *file, const char __user *ubuf, size_t len,
			 loff_t *ppos)
{
	char *line;
	int err;

	if (len > SZ_4K)
		return -EINVAL;
	line = memdup_user_nul(ubuf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	if (!strcmp(strim(line), "stop")) {
		WRITE_ONCE(ulp_stop, true);
		wake_up_all(&ulp_wq);
		mutex_lock(&case_lock);
		WRITE_ONCE(ulp_stop, false);
		mutex_unlock(&case_lock);
		err = 0;
	} else {
		mutex_lock(&case_lock);
		err = run_line(strim(line));
		mutex_unlock(&case_lock);
	}
	kfree(line);
	return err ? : len;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
	.llseek = noop_llseek,
};

static int result_show(struct seq_file *s, void *unused)
{
	mutex_lock(&case_lock);
	seq_puts(s, ulp_result);
	mutex_unlock(&case_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int cases_show(struct seq_file *s, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		seq_printf(s, "%-10s %s\n", cases[i].name, cases[i].help);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cases);

static struct ib_client client;

static int add_one(struct ib_device *dev)
{
	struct ulp_dev *rdev;

	rdev = kzalloc(sizeof(*rdev), GFP_KERNEL);
	if (!rdev)
		return -ENOMEM;
	rdev->dev = dev;
	mutex_lock(&ulp_devs_lock);
	list_add_tail(&rdev->node, &ulp_devs);
	mutex_unlock(&ulp_devs_lock);
	ib_set_client_data(dev, &client, rdev);
	return 0;
}

/* The case that uses the device has to end before it goes. */
static void remove_one(struct ib_device *dev, void *client_data)
{
	struct ulp_dev *rdev = client_data;
	bool used;

	mutex_lock(&ulp_devs_lock);
	list_del(&rdev->node);
	used = rdev->users;
	mutex_unlock(&ulp_devs_lock);
	if (used) {
		WRITE_ONCE(ulp_leaving, dev);
		wake_up_all(&ulp_wq);
		mutex_lock(&case_lock);
		if (lat && (lat->a.dev == dev || lat->b.dev == dev))
			lat_off();
		WRITE_ONCE(ulp_leaving, NULL);
		mutex_unlock(&case_lock);
	}
	kfree(rdev);
}

static struct ib_client client = {
	.name = KBUILD_MODNAME,
	.add = add_one,
	.remove = remove_one,
};

static int __init ulp_init(void)
{
	int err;

	err = ulp_alloc_bufs();
	if (err)
		goto free;
	err = ib_register_client(&client);
	if (err)
		goto free;
	dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("run", 0200, dir, NULL, &run_fops);
	debugfs_create_file("result", 0400, dir, NULL, &result_fops);
	debugfs_create_file("cases", 0400, dir, NULL, &cases_fops);
	return 0;
free:
	ulp_free_bufs();
	return err;
}

static void __exit ulp_exit(void)
{
	debugfs_remove_recursive(dir);
	mutex_lock(&case_lock);
	lat_off();
	mutex_unlock(&case_lock);
	ib_unregister_client(&client);
	ulp_free_bufs();
}

module_init(ulp_init);
module_exit(ulp_exit);

MODULE_DESCRIPTION("RDMA kernel ULP that checks every byte and completion");
MODULE_LICENSE("GPL");
