// SPDX-License-Identifier: GPL-2.0
/*
 * Failures of a case, and whether the case goes on.
 *
 * Owns the wait queue on which cases wait, and the two requests to end that come from
 * outside: "stop", and a device that leaves.
 *
 * &ulp_ctx.log_lock protects the log and its length. Everything here may run in any
 * context, hard interrupts included, except ulp_wait(), which sleeps.
 */

#include <linux/kernel.h>
#include <linux/stdarg.h>

#include "fail.h"

bool ulp_stop;
struct ib_device *ulp_leaving;
DECLARE_WAIT_QUEUE_HEAD(ulp_wq);

void ulp_fail(struct ulp_ctx *ctx, const char *fmt, ...)
{
	unsigned long flags;
	va_list args;

	spin_lock_irqsave(&ctx->log_lock, flags);
	va_start(args, fmt);
	ctx->log_len += vscnprintf(ctx->log + ctx->log_len,
				   ULP_LOG_SIZE - ctx->log_len, fmt, args);
	va_end(args);
	ctx->log_len += scnprintf(ctx->log + ctx->log_len,
				  ULP_LOG_SIZE - ctx->log_len, "\n");
	WRITE_ONCE(ctx->failed, true);
	spin_unlock_irqrestore(&ctx->log_lock, flags);
	wake_up_all(&ulp_wq);
}

static bool is_stopped(struct ulp_ctx *ctx)
{
	struct ib_device *dev = READ_ONCE(ulp_leaving);

	return READ_ONCE(ulp_stop) || dev == ctx->a.dev || dev == ctx->b.dev;
}

/* Waiting makes no sense any more, except for the end of the teardown. */
bool ulp_is_hopeless(struct ulp_ctx *ctx)
{
	return !READ_ONCE(ctx->quiet) &&
	       (READ_ONCE(ctx->failed) || is_stopped(ctx));
}
