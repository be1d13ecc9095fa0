/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs. Process context.
 */
#ifndef RISO_TEST_ULP_QP_H
#define RISO_TEST_ULP_QP_H

#include "ulp.h"

int ulp_modify_qp(struct ulp_ctx *ctx, struct ulp_qp *qp,
		  enum ib_qp_state state);
int ulp_raise_pair(struct ulp_ctx *ctx, struct ulp_qp *qa, struct ulp_qp *qb,
		   enum ib_qp_state to);
int ulp_create_side(struct ulp_ctx *ctx, struct ulp_ep *ep, struct ulp_qp *qps,
		    struct ulp_qp *peers, struct ib_srq **srqp);
void ulp_await_silence(void);
void ulp_destroy_qp(struct ulp_ctx *ctx, struct ulp_qp *qp);

#endif /* RISO_TEST_ULP_QP_H */
