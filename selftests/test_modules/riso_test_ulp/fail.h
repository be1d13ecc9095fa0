/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures of a case, and whether the case goes on.
 *
 * ulp_wait() sleeps. All else may be used in any context.
 */
#ifndef RISO_TEST_ULP_FAIL_H
#define RISO_TEST_ULP_FAIL_H

#include <linux/compiler.h>
#include <linux/wait.h>

#include "ulp.h"

/* Set without case_lock: a running case gives up. */
extern bool ulp_stop;
extern struct ib_device *ulp_leaving;

/* Woken at each completion, each failure and each request to end. */
extern wait_queue_head_t ulp_wq;

__printf(2, 3)
void ulp_fail(struct ulp_ctx *ctx, const char *fmt, ...);
bool ulp_is_hopeless(struct ulp_ctx *ctx);

#define ulp_wait(ctx, cond)						\
({									\
	struct ulp_ctx *_c = (ctx);					\
	bool _ok;							\
									\
	wait_event_timeout(ulp_wq,					\
			   (_ok = (cond)) || ulp_is_hopeless(_c),	\
			   _c->timeout);				\
	_ok;								\
})

#endif /* RISO_TEST_ULP_FAIL_H */
