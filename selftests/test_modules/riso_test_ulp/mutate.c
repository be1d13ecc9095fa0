// SPDX-License-Identifier: GPL-2.0
/*
 * The way of a completion to the ledger, and the errors that a case may put into it
 * there.
 *
 * The checker proves itself with these errors: it must find each of them.
 *
 * Owns the completion that &struct ulp_cq saves. Only the handlers of that CQ use it,
 * and one of them runs at a time, so no lock protects it. Completions come in any
 * context.
 */

#include "ledger.h"
#include "mutate.h"
#include "ulp.h"

static void mutate_wc(struct ulp_cq *cq, struct ulp_lane *lane,
		      struct ulp_rec *rec, const struct ib_wc *orig)
{
	struct ulp_ctx *ctx = lane->ctx;
	struct ib_wc wc = *orig;
	bool now;

	/* the first two belong to the registrations */
	now = atomic_inc_return(&ctx->nmut) == 3;
	if (!now && !cq->has_saved) {
		ulp_account_wc(lane, rec, &wc);
		return;
	}
	switch (ctx->arg.mutate) {
	case ULP_MUT_SWALLOW:
		return;
	case ULP_MUT_DUP:
		ulp_account_wc(lane, rec, &wc);
		break;
	case ULP_MUT_STATUS:
		wc.status = IB_WC_LOC_LEN_ERR;
		break;
	case ULP_MUT_OPCODE:
		wc.opcode = IB_WC_MASKED_FETCH_ADD;
		break;
	case ULP_MUT_LEN:
		wc.byte_len++;
		break;
	case ULP_MUT_ORDER:
		if (now) {
			cq->saved = wc;
			cq->saved_rec = rec;
			cq->has_saved = true;
			return;
		}
		ulp_account_wc(lane, rec, &wc);
		wc = cq->saved;
		rec = cq->saved_rec;
		cq->has_saved = false;
		break;
	default:
		break;
	}
	ulp_account_wc(lane, rec, &wc);
}

void ulp_complete_rec(struct ulp_cq *cq, struct ulp_lane *lane,
		      struct ulp_rec *rec, const struct ib_wc *wc)
{
	atomic_inc(&lane->ctx->ncomp);
	if (lane->ctx->arg.mutate > ULP_MUT_GUARD && !lane->recv &&
	    lane->qp->ep == &lane->ctx->a && !READ_ONCE(lane->ctx->quiet)) {
		mutate_wc(cq, lane, rec, wc);
		return;
	}
	ulp_account_wc(lane, rec, wc);
}

void ulp_complete_cqe(struct ib_cq *ibcq, struct ib_wc *wc)
{
	struct ulp_rec *rec = container_of(wc->wr_cqe, struct ulp_rec, cqe);

	ulp_complete_rec(ibcq->cq_context, rec->lane, rec, wc);
}
