// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: the ledger's records of what one context posts to one queue, and waiting for
 * them.
 *
 * &ulp_lane.lock protects the records, the cursor and the counters. Records are added
 * and taken back in any context, hard interrupts included. Lanes are made, and waited
 * for, in process context.
 */

#include <linux/kernel.h>
#include <linux/slab.h>

#include "cq.h"
#include "fail.h"
#include "lane.h"
#include "mutate.h"

#define ULP_PENDING	((enum ib_wc_status)~0)

struct ulp_lane *ulp_add_lane(struct ulp_ctx *ctx, struct ulp_qp *qp, bool recv)
{
	struct ulp_lane *lane;

	if (ctx->nlanes == ULP_MAX_LANES)
		return NULL;
	lane = kzalloc(sizeof(*lane), GFP_KERNEL);
	if (!lane)
		return NULL;
	lane->ctx = ctx;
	lane->qp = qp;
	lane->recv = recv;
	lane->id = ctx->nlanes;
	spin_lock_init(&lane->lock);
	INIT_LIST_HEAD(&lane->recs);
	lane->cursor = &lane->recs;
	lane->replay = &lane->recs;
	ctx->lanes[ctx->nlanes++] = lane;
	return lane;
}

static u64 make_wr_id(struct ulp_lane *lane, struct ulp_rec *rec)
{
	static const u64 odd[] = {
		0, 1, 2, ~0ULL, 3, 0x8000000000000000ULL, ~0ULL, 0xffffffffULL,
	};

	if (!ulp_uses_wr_id(lane->ctx->arg.cq))
		return rec->op.hidden ? 0 : (uintptr_t)&rec->cqe;
	if (!lane->ctx->arg.odd)
		return (u64)(lane->id + 1) << 32 | rec->idx;
	/* every third one looks like a pointer */
	if (rec->idx % 3 == 2)
		return (uintptr_t)rec;
	return odd[rec->idx % ARRAY_SIZE(odd)];
}

struct ulp_rec *ulp_append_rec(struct ulp_lane *lane, const struct ulp_op *op,
			       bool recv)
{
	struct ulp_ctx *ctx = lane->ctx;
	struct ulp_rec *rec;
	unsigned long flags;
	int i;

	i = atomic_inc_return(&ctx->nrecs) - 1;
	if (i >= ULP_MAX_RECS) {
		ulp_fail(ctx, "more than %d work requests", ULP_MAX_RECS);
		return NULL;
	}
	rec = &ctx->recs[i];
	rec->cqe.done = ulp_complete_cqe;
	rec->lane = lane;
	rec->op = *op;
	rec->recv = recv;
	rec->signaled = recv || ctx->arg.sigall ||
			(op->flags & IB_SEND_SIGNALED);
	rec->status = ULP_PENDING;

	spin_lock_irqsave(&lane->lock, flags);
	rec->idx = lane->posted;
	rec->wr_id = make_wr_id(lane, rec);
	list_add_tail(&rec->node, &lane->recs);
	WRITE_ONCE(lane->posted, lane->posted + 1);
	WRITE_ONCE(lane->nsig, lane->nsig + rec->signaled);
	spin_unlock_irqrestore(&lane->lock, flags);
	return rec;
}

void ulp_drop_rec(struct ulp_rec *rec)
{
	struct ulp_lane *lane = rec->lane;
	unsigned long flags;

	spin_lock_irqsave(&lane->lock, flags);
	if (rec->status != ULP_PENDING || lane->cursor == &rec->node)
		ulp_fail(lane->ctx, "lane %u: request %u was refused and completed",
			 lane->id, rec->idx);
	list_del(&rec->node);
	rec->dropped = true;
	WRITE_ONCE(lane->posted, lane->posted - 1);
	WRITE_ONCE(lane->nsig, lane->nsig - rec->signaled);
	spin_unlock_irqrestore(&lane->lock, flags);
}

bool ulp_signaled_done(struct ulp_lane *lane)
{
	return READ_ONCE(lane->nsig_done) == READ_ONCE(lane->nsig);
}

bool ulp_all_done(struct ulp_lane *lane)
{
	return READ_ONCE(lane->matched) == READ_ONCE(lane->posted);
}

/* All signaled ones have completed. */
int ulp_wait_lane(struct ulp_lane *lane)
{
	if (ulp_wait(lane->ctx, ulp_signaled_done(lane)))
		return 0;
	if (!ulp_is_hopeless(lane->ctx))
		ulp_fail(lane->ctx, "lane %u: %u of %u completions came",
			 lane->id, lane->nsig_done, lane->nsig);
	return -ETIMEDOUT;
}

/* After an error every one has completed, signaled or not. */
int ulp_wait_flush(struct ulp_lane *lane)
{
	if (ulp_wait(lane->ctx, ulp_all_done(lane)))
		return 0;
	if (!ulp_is_hopeless(lane->ctx))
		ulp_fail(lane->ctx, "lane %u: completions came up to request %u of %u",
			 lane->id, lane->matched, lane->posted);
	return -ETIMEDOUT;
}

/* Forget what is done, so that the ledger never gets full. */
void ulp_forget_recs(struct ulp_lane *lane, u32 keep)
{
	unsigned long flags;

	spin_lock_irqsave(&lane->lock, flags);
	INIT_LIST_HEAD(&lane->recs);
	lane->cursor = &lane->recs;
	atomic_set(&lane->ctx->nrecs, keep);
	spin_unlock_irqrestore(&lane->lock, flags);
}
