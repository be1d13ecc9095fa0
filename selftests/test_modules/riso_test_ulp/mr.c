// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: allocated, registered by a work request, and deregistered.
 *
 * Owns the list of a case's own regions in &struct ulp_ctx, which the case alone
 * changes. Runs in process context, and sleeps.
 */

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/scatterlist.h>

#include "fail.h"
#include "lane.h"
#include "mr.h"
#include "wr.h"

/* all of a buffer fits into one region */
#define ULP_MR_PAGE	SZ_64K
#define ULP_MR_PAGES	(ULP_BUF_SIZE / ULP_MR_PAGE)

struct ib_mr *ulp_alloc_mr(struct ulp_ctx *ctx, struct ulp_ep *ep,
			   struct ulp_buf *buf, u32 off, u32 len)
{
	struct scatterlist sg;
	struct ib_mr *mr;
	int n;

	mr = ib_alloc_mr(ep->pd, IB_MR_TYPE_MEM_REG, ULP_MR_PAGES);
	if (IS_ERR(mr)) {
		ulp_fail(ctx, "ib_alloc_mr failed with %ld", PTR_ERR(mr));
		return NULL;
	}
	sg_init_one(&sg, buf->va + off, len);
	n = ib_dma_map_sg(ep->dev, &sg, 1, DMA_BIDIRECTIONAL) == 1 ?
		ib_map_mr_sg(mr, &sg, 1, NULL, ULP_MR_PAGE) : 0;
	ib_dma_unmap_sg(ep->dev, &sg, 1, DMA_BIDIRECTIONAL);
	if (n != 1) {
		ulp_fail(ctx, "ib_map_mr_sg returned %d", n);
		ib_dereg_mr(mr);
		return NULL;
	}
	return mr;
}

/* An MR of a case, freed with the context. */
struct ib_mr *ulp_alloc_case_mr(struct ulp_ctx *ctx, struct ulp_ep *ep,
				struct ulp_buf *buf, u32 off, u32 len)
{
	struct ib_mr *mr = NULL;

	if (ctx->nmrs < ARRAY_SIZE(ctx->mrs))
		mr = ulp_alloc_mr(ctx, ep, buf, off, len);
	if (mr)
		ctx->mrs[ctx->nmrs++] = mr;
	return mr;
}

int ulp_reg_mr(struct ulp_lane *lane, struct ib_mr *mr)
{
	const struct ulp_op op = {
		.opcode = IB_WR_REG_MR,
		.flags = IB_SEND_SIGNALED,
		.mr = mr,
	};

	if (!mr)
		return -ENOMEM;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return ulp_post(lane, &op) ? : ulp_wait_lane(lane);
}

void ulp_dereg_mr(struct ib_mr *mr)
{
	if (mr)
		WARN_ON(ib_dereg_mr(mr));
}
