/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The operations of an ib_device that are replaced, and how.
 */
#ifndef RISO_HOOK_H
#define RISO_HOOK_H

#include <linux/types.h>

struct riso_dev;

/* Devices by index, for the hooks alone. */
extern struct riso_dev *riso_hook_devs[];

int riso_hook_attach(struct riso_dev *rd);
void riso_hook_detach(struct riso_dev *rd);
bool riso_hook_is_covered(const struct riso_dev *rd);
int riso_hook_start(struct riso_dev *rd);
void riso_hook_stop(struct riso_dev *rd);

#endif /* RISO_HOOK_H */
