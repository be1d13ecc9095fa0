/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The model: what a device that splits nothing would have written. Process context,
 * when the queue pairs are gone.
 */
#ifndef RISO_TEST_ULP_MODEL_H
#define RISO_TEST_ULP_MODEL_H

struct ulp_ctx;

void ulp_verify(struct ulp_ctx *ctx);

#endif /* RISO_TEST_ULP_MODEL_H */
