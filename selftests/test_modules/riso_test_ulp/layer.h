/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What riso_test_layer has seen and what it is told to do. Process context.
 */
#ifndef RISO_TEST_ULP_LAYER_H
#define RISO_TEST_ULP_LAYER_H

#include <linux/types.h>

#include "../riso_test_layer.h"

struct ib_cq;
struct ulp_ctx;

bool ulp_layer_read(struct ulp_ctx *ctx, struct riso_test_seen *seen);
bool ulp_layer_refuse(struct ulp_ctx *ctx, int error, unsigned int num);
bool ulp_layer_withhold(struct ulp_ctx *ctx);
int ulp_layer_hold(struct ulp_ctx *ctx, const struct ib_cq *cq);

#endif /* RISO_TEST_ULP_LAYER_H */
