/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What follows from the description of a work request alone. Any context.
 */
#ifndef RISO_TEST_ULP_OP_H
#define RISO_TEST_ULP_OP_H

#include <linux/types.h>

struct ulp_op;
struct ulp_rec;

u32 ulp_count_sges(const struct ulp_op *op);
u32 ulp_find_cut(const struct ulp_op *op, u32 i);
bool ulp_is_atomic(const struct ulp_op *op);
bool ulp_is_local(const struct ulp_op *op);
bool ulp_is_send(const struct ulp_op *op);
bool ulp_fills_local(const struct ulp_rec *rec);

#endif /* RISO_TEST_ULP_OP_H */
