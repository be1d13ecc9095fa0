/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory regions. Process context.
 */
#ifndef RISO_TEST_ULP_MR_H
#define RISO_TEST_ULP_MR_H

#include "ulp.h"

struct ib_mr *ulp_alloc_mr(struct ulp_ctx *ctx, struct ulp_ep *ep,
			   struct ulp_buf *buf, u32 off, u32 len);
struct ib_mr *ulp_alloc_case_mr(struct ulp_ctx *ctx, struct ulp_ep *ep,
				struct ulp_buf *buf, u32 off, u32 len);
int ulp_reg_mr(struct ulp_lane *lane, struct ib_mr *mr);
void ulp_dereg_mr(struct ib_mr *mr);

#endif /* RISO_TEST_ULP_MR_H */
