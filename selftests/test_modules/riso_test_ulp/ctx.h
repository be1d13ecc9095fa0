/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The context of a case from the beginning to the end. Process context, under main.c's
 * case_lock.
 */
#ifndef RISO_TEST_ULP_CTX_H
#define RISO_TEST_ULP_CTX_H

struct ulp_args;
struct ulp_ctx;

int ulp_connect(struct ulp_ctx *ctx);
void ulp_finish(struct ulp_ctx *ctx);
void ulp_free_ctx(struct ulp_ctx *ctx);
struct ulp_ctx *ulp_alloc_ctx(const struct ulp_args *arg, const char *pd_name);

#endif /* RISO_TEST_ULP_CTX_H */
