// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger's check of completions against what was posted.
 *
 * A lane's ledger has one record per work request, in the order in which they were
 * posted. Each signaled one completes exactly once and in order. An unsignaled one does
 * not complete. After the first error every one completes.
 *
 * &ulp_lane.lock protects the records, the cursor and the counters of a lane.
 * Completions come in any context, with interrupts on or off.
 */

#include <linux/wait.h>

#include "fail.h"
#include "ledger.h"
#include "op.h"
#include "ulp.h"

static enum ib_wc_opcode get_wc_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RESERVED1:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	default:
		return IB_WC_SEND;
	}
}

/*
 * The request that a completion belongs to. One that is too early is looked
 * for behind those that should have come first.
 */
static struct ulp_rec *find_rec(struct ulp_lane *lane, struct ulp_rec *rec,
				const struct ib_wc *wc)
{
	struct ulp_rec *missing = NULL;
	struct list_head *p;

	for (p = lane->cursor->next; p != &lane->recs; p = p->next) {
		struct ulp_rec *r = list_entry(p, struct ulp_rec, node);

		if (rec ? r == rec :
		    r->wr_id == wc->wr_id &&
		    (r->signaled || wc->status != IB_WC_SUCCESS)) {
			if (missing)
				ulp_fail(lane->ctx, "lane %u: request %u completed, but %u is next",
					 lane->id, r->idx, missing->idx);
			return r;
		}
		if (!missing && !r->op.hidden &&
		    (r->signaled || lane->flushing))
			missing = r;
	}
	ulp_fail(lane->ctx,
		 "lane %u: completion of wr_id %#llx (%s) that nothing waits for, %u of %u were seen",
		 lane->id, wc->wr_id, ib_wc_status_msg(wc->status),
		 lane->matched, lane->posted);
	return NULL;
}

static void check_status(struct ulp_lane *lane, struct ulp_rec *rec,
			 const struct ib_wc *wc)
{
	enum ib_wc_status want = IB_WC_SUCCESS;

	switch (rec->op.expect) {
	case ULP_EXP_OK:
		break;
	case ULP_EXP_STATUS:
		want = rec->op.status;
		break;
	case ULP_EXP_FLUSH:
		want = IB_WC_WR_FLUSH_ERR;
		break;
	case ULP_EXP_ANY:
		if (lane->flushing)
			want = IB_WC_WR_FLUSH_ERR;
		else if (wc->status != IB_WC_SUCCESS)
			want = rec->op.status ? : IB_WC_WR_FLUSH_ERR;
		break;
	case ULP_EXP_ERROR:
		if (wc->status != IB_WC_SUCCESS)
			want = wc->status;
		else
			want = IB_WC_GENERAL_ERR;
		break;
	case ULP_EXP_END:
		want = wc->status;
		break;
	}
	if (wc->status != want)
		ulp_fail(lane->ctx, "lane %u: request %u ended with '%s', not with '%s'",
			 lane->id, rec->idx, ib_wc_status_msg(wc->status),
			 ib_wc_status_msg(want));
}

static void check_success(struct ulp_lane *lane, struct ulp_rec *rec,
			  const struct ib_wc *wc)
{
	if (!rec->signaled)
		ulp_fail(lane->ctx, "lane %u: completion of the unsignaled request %u",
			 lane->id, rec->idx);
	if (rec->recv) {
		rec->opcode = wc->opcode;
		rec->byte_len = wc->byte_len;
		rec->wc_flags = wc->wc_flags;
		if (wc->wc_flags & IB_WC_WITH_IMM)
			rec->wc_ex = be32_to_cpu(wc->ex.imm_data);
		else
			rec->wc_ex = wc->ex.invalidate_rkey;
		return;
	}
	if (wc->opcode != get_wc_opcode(rec->op.opcode))
		ulp_fail(lane->ctx, "lane %u: request %u has opcode %d, not %d",
			 lane->id, rec->idx, wc->opcode,
			 get_wc_opcode(rec->op.opcode));
	if (ulp_fills_local(rec) && wc->byte_len != rec->op.len)
		ulp_fail(lane->ctx, "lane %u: request %u has byte_len %u, not %u",
			 lane->id, rec->idx, wc->byte_len, rec->op.len);
	atomic64_add(rec->op.len, &lane->ctx->bytes);
}

void ulp_account_wc(struct ulp_lane *lane, struct ulp_rec *rec,
		    const struct ib_wc *wc)
{
	void (*next)(struct ulp_lane *lane) = NULL;
	struct ulp_ctx *ctx = lane->ctx;
	unsigned long flags;
	struct list_head *p;

	spin_lock_irqsave(&lane->lock, flags);
	if (lane->closed) {
		ulp_fail(ctx, "lane %u: completion of wr_id %#llx (%s) after the end",
			 lane->id, wc->wr_id, ib_wc_status_msg(wc->status));
		goto out;
	}
	rec = find_rec(lane, rec, wc);
	if (!rec)
		goto out;

	/* those passed over were unsignaled, and are done */
	for (p = lane->cursor->next; p != &rec->node; p = p->next)
		list_entry(p, struct ulp_rec, node)->status =
			lane->flushing ? IB_WC_WR_FLUSH_ERR : IB_WC_SUCCESS;
	lane->cursor = &rec->node;
	rec->status = wc->status;

	if (wc->qp != lane->qp->gone)
		ulp_fail(ctx, "lane %u: request %u completed for another QP",
			 lane->id, rec->idx);
	check_status(lane, rec, wc);
	if (wc->status == IB_WC_SUCCESS)
		check_success(lane, rec, wc);
	else
		lane->flushing = true;

	if (rec->signaled)
		WRITE_ONCE(lane->nsig_done, lane->nsig_done + 1);
	WRITE_ONCE(lane->matched, rec->idx + 1);
	if (wc->status == IB_WC_SUCCESS && !ctx->quiet)
		next = lane->next;
out:
	spin_unlock_irqrestore(&lane->lock, flags);
	if (next)
		next(lane);
	wake_up_all(&ulp_wq);
}
