/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way of a completion to the ledger. Any context.
 */
#ifndef RISO_TEST_ULP_MUTATE_H
#define RISO_TEST_ULP_MUTATE_H

struct ib_cq;
struct ib_wc;
struct ulp_cq;
struct ulp_lane;
struct ulp_rec;

void ulp_complete_rec(struct ulp_cq *cq, struct ulp_lane *lane,
		      struct ulp_rec *rec, const struct ib_wc *wc);
void ulp_complete_cqe(struct ib_cq *ibcq, struct ib_wc *wc);

#endif /* RISO_TEST_ULP_MUTATE_H */
