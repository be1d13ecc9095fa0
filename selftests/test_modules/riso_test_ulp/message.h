/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The messages of a case.
 *
 * ulp_post_recv_for(), ulp_wait_pair() and ulp_post_many() sleep. All else may be used
 * in any context.
 */
#ifndef RISO_TEST_ULP_MESSAGE_H
#define RISO_TEST_ULP_MESSAGE_H

#include "ulp.h"

enum ib_wr_opcode ulp_get_opcode(struct ulp_ctx *ctx);
u32 ulp_find_place(u32 i, u32 n, u32 len);
bool ulp_overlap(u32 n, u32 len);
struct ulp_op ulp_make_op(struct ulp_ctx *ctx, enum ib_wr_opcode opcode, u32 i,
			  u32 n, u32 len);
int ulp_post_recv_for(struct ulp_qp *qp, const struct ulp_op *op, u32 i, u32 n);
int ulp_wait_pair(struct ulp_ctx *ctx, u32 i);
int ulp_post_many(struct ulp_ctx *ctx, enum ib_wc_status status);

#endif /* RISO_TEST_ULP_MESSAGE_H */
