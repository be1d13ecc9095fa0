// SPDX-License-Identifier: GPL-2.0
/*
 * What riso_test_layer has seen and what it is told to do, if it is loaded.
 *
 * A reference to its symbol keeps it loaded during a call. Takes no lock. Runs in
 * process context.
 */

#include <linux/errno.h>
#include <linux/module.h>

#include "../riso_test_layer.h"
#include "fail.h"
#include "layer.h"

bool ulp_layer_read(struct ulp_ctx *ctx, struct riso_test_seen *seen)
{
	void (*read)(struct riso_test_seen *seen) = symbol_get(riso_test_layer_read);

	if (!read) {
		ulp_fail(ctx, "riso_test_layer is not loaded");
		return false;
	}
	read(seen);
	symbol_put(riso_test_layer_read);
	return true;
}

bool ulp_layer_refuse(struct ulp_ctx *ctx, int error, unsigned int num)
{
	void (*set)(int error, unsigned int num) = symbol_get(riso_test_layer_refuse);

	if (!set) {
		ulp_fail(ctx, "riso_test_layer is not loaded");
		return false;
	}
	set(error, num);
	symbol_put(riso_test_layer_refuse);
	return true;
}

bool ulp_layer_withhold(struct ulp_ctx *ctx)
{
	void (*withhold)(void) = symbol_get(riso_test_layer_withhold);

	if (!withhold) {
		ulp_fail(ctx, "riso_test_layer is not loaded");
		return false;
	}
	withhold();
	symbol_put(riso_test_layer_withhold);
	return true;
}

int ulp_layer_hold(struct ulp_ctx *ctx, const struct ib_cq *cq)
{
	int (*hold)(const struct ib_cq *cq) = symbol_get(riso_test_layer_hold);
	int ret;

	if (!hold) {
		ulp_fail(ctx, "riso_test_layer is not loaded");
		return -ENOENT;
	}
	ret = hold(cq);
	symbol_put(riso_test_layer_hold);
	return ret;
}
