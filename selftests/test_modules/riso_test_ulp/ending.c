// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs outside the ledger, which a case opens only to end them.
 *
 * Owns no state and takes no lock. ulp_init_ending() may run in any context.
 * ulp_open_ending() sleeps.
 */

#include <linux/err.h>

#include "../verbs.h"
#include "ending.h"
#include "qp.h"

void ulp_init_ending(struct ib_qp_init_attr *attr, struct ib_cq *cq)
{
	test_init_qp(attr, cq, ULP_ENDING);
}

/* Without a peer: what is sent goes nowhere. */
int ulp_open_ending(struct ulp_ctx *ctx, struct ulp_qp *qp, struct ib_cq *cq)
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
