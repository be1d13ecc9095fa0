/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lanes: the ledger's records of what one context posts to one queue.
 *
 * ulp_add_lane(), ulp_wait_lane() and ulp_wait_flush() sleep. All else may be used in
 * any context.
 */
#ifndef RISO_TEST_ULP_LANE_H
#define RISO_TEST_ULP_LANE_H

#include "ulp.h"

struct ulp_lane *ulp_add_lane(struct ulp_ctx *ctx, struct ulp_qp *qp,
			      bool recv);
struct ulp_rec *ulp_append_rec(struct ulp_lane *lane, const struct ulp_op *op,
			       bool recv);
void ulp_drop_rec(struct ulp_rec *rec);
bool ulp_signaled_done(struct ulp_lane *lane);
bool ulp_all_done(struct ulp_lane *lane);
int ulp_wait_lane(struct ulp_lane *lane);
int ulp_wait_flush(struct ulp_lane *lane);
void ulp_forget_recs(struct ulp_lane *lane, u32 keep);

#endif /* RISO_TEST_ULP_LANE_H */
