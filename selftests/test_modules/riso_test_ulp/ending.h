/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs outside the ledger, which a case opens only to end them. Process context.
 */
#ifndef RISO_TEST_ULP_ENDING_H
#define RISO_TEST_ULP_ENDING_H

#include "ulp.h"

/* SENDs that a queue pair may have waiting when it ends */
#define ULP_ENDING	40

void ulp_init_ending(struct ib_qp_init_attr *attr, struct ib_cq *cq);
int ulp_open_ending(struct ulp_ctx *ctx, struct ulp_qp *qp, struct ib_cq *cq);

#endif /* RISO_TEST_ULP_ENDING_H */
