/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The operations of an ib_device: how hooks take their place, and leave it. See ops.c.
 */
#ifndef RISO_OPS_H
#define RISO_OPS_H

#include <linux/types.h>

struct riso_dev;

int riso_ops_attach(struct riso_dev *rd);
void riso_ops_detach(struct riso_dev *rd);
bool riso_ops_is_covered(const struct riso_dev *rd);
int riso_ops_start(struct riso_dev *rd);
void riso_ops_stop(struct riso_dev *rd);

#endif /* RISO_OPS_H */
