// SPDX-License-Identifier: GPL-2.0
/*
 * The context of a case from the beginning to the end: allocated, connected, finished,
 * freed.
 *
 * Owns the two parameters that name the devices. Runs in process context under main.c's
 * case_lock, and sleeps.
 */

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "buffer.h"
#include "cq.h"
#include "ctx.h"
#include "endpoint.h"
#include "lane.h"
#include "mr.h"
#include "qp.h"
#include "wr.h"

static char *dev_a = "rxe0";
module_param(dev_a, charp, 0444);
MODULE_PARM_DESC(dev_a, "device of the active side (default rxe0)");

static char *dev_b = "rxe1";
module_param(dev_b, charp, 0444);
MODULE_PARM_DESC(dev_b, "device of the passive side (default rxe1)");

int ulp_connect(struct ulp_ctx *ctx)
{
	u32 i;
	int err;

	err = ulp_create_side(ctx, &ctx->a, ctx->qa, ctx->qb, &ctx->srq_a) ? :
	      ulp_create_side(ctx, &ctx->b, ctx->qb, ctx->qa, &ctx->srq_b);
	for (i = 0; !err && i < ctx->conf.pairs; i++)
		err = ulp_raise_pair(ctx, &ctx->qa[i], &ctx->qb[i],
				     ctx->conf.state);
	if (err || ctx->conf.state != IB_QPS_RTS)
		return err;

	ctx->a.mr_src = ulp_alloc_mr(ctx, &ctx->a, &ctx->a.src, 0, ULP_BUF_SIZE);
	ctx->a.mr_dst = ulp_alloc_mr(ctx, &ctx->a, &ctx->a.dst, 0, ULP_BUF_SIZE);
	ctx->b.mr_src = ulp_alloc_mr(ctx, &ctx->b, &ctx->b.src, 0, ULP_BUF_SIZE);
	ctx->b.mr_dst = ulp_alloc_mr(ctx, &ctx->b, &ctx->b.dst, 0, ULP_BUF_SIZE);
	return ulp_reg_mr(ctx->qa[0].send, ctx->a.mr_src) ? :
	       ulp_reg_mr(ctx->qa[0].send, ctx->a.mr_dst) ? :
	       ulp_reg_mr(ctx->qb[0].send, ctx->b.mr_src) ? :
	       ulp_reg_mr(ctx->qb[0].send, ctx->b.mr_dst);
}

/*
 * The last request of a queue must be flushed, and nothing but the ledger's
 * may come before it.
 */
static void drain_qp(struct ulp_ctx *ctx, struct ulp_qp *qp)
{
	const struct ulp_op op = {
		.opcode = IB_WR_RDMA_WRITE,
		.flags = IB_SEND_SIGNALED,
		.expect = ULP_EXP_FLUSH,
	};

	if (!qp->qp || qp->state < IB_QPS_RTS)
		return;
	if (ulp_modify_qp(ctx, qp, IB_QPS_ERR))
		return;
	if (!ulp_post(qp->send, &op))
		ulp_wait_flush(qp->send);
	/* a message that was on its way may still have come to this one */
	if (!qp->srq && !ulp_post_recv(qp->recv, 0, 0, 0, ULP_EXP_ERROR))
		ulp_wait_flush(qp->recv);
}

/* Ends all traffic and looks at what it left. */
void ulp_finish(struct ulp_ctx *ctx)
{
	u32 i;

	/* what is missing already will hardly come */
	if (READ_ONCE(ctx->failed))
		ctx->timeout = min_t(unsigned long, ctx->timeout, 2 * HZ);
	WRITE_ONCE(ctx->quiet, true);
	for (i = 0; i < ctx->conf.pairs; i++) {
		drain_qp(ctx, &ctx->qa[i]);
		drain_qp(ctx, &ctx->qb[i]);
	}
	ulp_await_silence();
	for (i = 0; i < ctx->conf.pairs; i++) {
		ulp_destroy_qp(ctx, &ctx->qa[i]);
		ulp_destroy_qp(ctx, &ctx->qb[i]);
	}
	for (i = 0; i < ctx->ncqs; i++)
		ulp_reap_cq(ctx->cqs[i]);
}

void ulp_free_ctx(struct ulp_ctx *ctx)
{
	u32 i;

	for (i = 0; i < ctx->ncqs; i++)
		ulp_destroy_cq(ctx->cqs[i]);
	if (ctx->srq_a)
		ib_destroy_srq(ctx->srq_a);
	if (ctx->srq_b)
		ib_destroy_srq(ctx->srq_b);
	for (i = 0; i < ctx->nmrs; i++)
		ulp_dereg_mr(ctx->mrs[i]);
	ulp_free_ep(&ctx->a);
	ulp_free_ep(&ctx->b);
	for (i = 0; i < ctx->nlanes; i++)
		kfree(ctx->lanes[i]);
	kvfree(ctx->recs);
	kvfree(ctx);
}

struct ulp_ctx *ulp_alloc_ctx(const struct ulp_args *arg, const char *pd_name)
{
	struct ulp_ctx *ctx;
	int err;

	ctx = kvzalloc(sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	ctx->arg = *arg;
	ctx->timeout = (unsigned long)arg->timeout * HZ;
	ctx->conf.pairs = 1;
	ctx->conf.timeout = 18;
	ctx->conf.retry = 7;
	ctx->conf.rnr_retry = 7;
	ctx->conf.state = IB_QPS_RTS;
	spin_lock_init(&ctx->log_lock);
	ctx->recs = kvcalloc(ULP_MAX_RECS, sizeof(*ctx->recs), GFP_KERNEL);
	err = !ctx->recs ? -ENOMEM :
	      ulp_setup_ep(&ctx->a, &ctx->b, dev_a, pd_name) ? :
	      ulp_setup_ep(&ctx->b, &ctx->a, dev_b, pd_name) ? :
	      ulp_setup_bufs(ctx);
	if (err) {
		ulp_free_ctx(ctx);
		return ERR_PTR(err);
	}
	return ctx;
}
