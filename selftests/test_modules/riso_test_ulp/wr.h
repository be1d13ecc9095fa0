/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work requests as the verbs take them.
 *
 * ulp_post(), and ulp_post_chain() of one request, may be called in any context. All
 * else sleeps.
 */
#ifndef RISO_TEST_ULP_WR_H
#define RISO_TEST_ULP_WR_H

#include "ulp.h"

int ulp_post_chain(struct ulp_lane *lane, const struct ulp_op *ops, u32 n,
		   u32 *accepted);
int ulp_post(struct ulp_lane *lane, const struct ulp_op *op);
int ulp_post_recv(struct ulp_lane *lane, u32 off, u32 len, u32 nsge,
		  enum ulp_expect expect);

#endif /* RISO_TEST_ULP_WR_H */
