/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ledger's check of completions against what was posted. Any context.
 */
#ifndef RISO_TEST_ULP_LEDGER_H
#define RISO_TEST_ULP_LEDGER_H

struct ib_wc;
struct ulp_lane;
struct ulp_rec;

void ulp_account_wc(struct ulp_lane *lane, struct ulp_rec *rec,
		    const struct ib_wc *wc);

#endif /* RISO_TEST_ULP_LEDGER_H */
