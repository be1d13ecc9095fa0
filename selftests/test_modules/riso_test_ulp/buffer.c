// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that lives as long as the module: the buffers of both sides, the patterns that
 * they hold at first, the models, and the text of the last result.
 *
 * main.c's case_lock protects all of it, except while the module is loaded or unloaded.
 * The devices write to the buffers while a case runs. Everything here runs in process
 * context, and may sleep.
 */

#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "buffer.h"
#include "ulp.h"

/* the sources and destinations of both sides */
static void *bufs[4];
void *ulp_patterns[4];
static void *models[2];
char *ulp_result;

static void fill_pattern(void *p, size_t len, u64 seed)
{
	u64 *word = p;
	size_t i;

	for (i = 0; i < len / sizeof(*word); i++) {
		u64 x = (seed << 40 | i) * 0x9e3779b97f4a7c15ULL;

		word[i] = x ^ (x >> 29);
	}
}

static int map_buf(struct ulp_ep *ep, struct ulp_buf *buf, u32 i)
{
	void *va = bufs[i];

	memcpy(va, ulp_patterns[i], ULP_BUF_SIZE);
	buf->dma = ib_dma_map_single(ep->dev, va, ULP_BUF_SIZE,
				     DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(ep->dev, buf->dma))
		return -EIO;
	buf->va = va;
	return 0;
}

void ulp_unmap_buf(struct ulp_ep *ep, struct ulp_buf *buf)
{
	if (buf->va)
		ib_dma_unmap_single(ep->dev, buf->dma, ULP_BUF_SIZE,
				    DMA_BIDIRECTIONAL);
}

/* Patterns in all buffers, and the model of what is to become of them. */
int ulp_setup_bufs(struct ulp_ctx *ctx)
{
	int err;

	err = map_buf(&ctx->a, &ctx->a.src, 0) ? :
	      map_buf(&ctx->a, &ctx->a.dst, 1) ? :
	      map_buf(&ctx->b, &ctx->b.src, 2) ? :
	      map_buf(&ctx->b, &ctx->b.dst, 3);
	ctx->a.model = models[0];
	ctx->b.model = models[1];
	memcpy(ctx->a.model, ulp_patterns[1], ULP_BUF_SIZE);
	memcpy(ctx->b.model, ulp_patterns[3], ULP_BUF_SIZE);
	return err;
}

void ulp_free_bufs(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bufs); i++) {
		free_pages((unsigned long)bufs[i], get_order(ULP_BUF_SIZE));
		vfree(ulp_patterns[i]);
	}
	for (i = 0; i < ARRAY_SIZE(models); i++)
		vfree(models[i]);
	kfree(ulp_result);
}

int ulp_alloc_bufs(void)
{
	bool ok = true;
	int i;

	for (i = 0; i < ARRAY_SIZE(bufs); i++) {
		bufs[i] = (void *)__get_free_pages(GFP_KERNEL |
						   __GFP_RETRY_MAYFAIL,
						   get_order(ULP_BUF_SIZE));
		ulp_patterns[i] = vmalloc(ULP_BUF_SIZE);
		if (ulp_patterns[i])
			fill_pattern(ulp_patterns[i], ULP_BUF_SIZE, i + 1);
		ok = ok && bufs[i] && ulp_patterns[i];
	}
	for (i = 0; i < ARRAY_SIZE(models); i++) {
		models[i] = vmalloc(ULP_BUF_SIZE);
		ok = ok && models[i];
	}
	ulp_result = kzalloc(ULP_LOG_SIZE, GFP_KERNEL);
	return ok && ulp_result ? 0 : -ENOMEM;
}
