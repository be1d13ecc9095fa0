/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts of what went straight to the provider. See passed.c.
 */
#ifndef RISO_PASSED_H
#define RISO_PASSED_H

#include "arbiter.h"

struct riso_passed __percpu *riso_passed_alloc(void);
void riso_passed_sum(const struct riso_passed __percpu *passed, struct riso_passed *sum);

#endif /* RISO_PASSED_H */
