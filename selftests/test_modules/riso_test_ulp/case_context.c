// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of contexts: posts from several CPUs at once, from completion handlers and from
 * hard interrupts.
 *
 * A case runs in process context under main.c's case_lock. thread_fn() runs in threads
 * of the case, repost() in completion handlers of any context, and post_in_irq() in
 * hard interrupts. Each of them posts to a lane of its own.
 */

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "case.h"
#include "ctx.h"
#include "fail.h"
#include "lane.h"
#include "message.h"
#include "qp.h"
#include "wr.h"

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
int ulp_case_cpus(struct ulp_ctx *ctx)
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

int ulp_case_repost(struct ulp_ctx *ctx)
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
int ulp_case_errpost(struct ulp_ctx *ctx)
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
int ulp_case_hardirq(struct ulp_ctx *ctx)
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
