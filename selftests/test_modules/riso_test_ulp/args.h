/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arguments of a case. Any context.
 */
#ifndef RISO_TEST_ULP_ARGS_H
#define RISO_TEST_ULP_ARGS_H

struct ulp_args;

int ulp_parse_args(struct ulp_args *arg, char *line);

#endif /* RISO_TEST_ULP_ARGS_H */
