/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings of a device: what is allowed. See config.c.
 */
#ifndef RISO_CONFIG_H
#define RISO_CONFIG_H

#include "dev.h"

u64 riso_config_read_port(struct ib_device *ibdev);
u64 riso_config_guess(const struct riso_dev *rd);
bool riso_config_follow_port(struct riso_cfg *cfg, u64 rate);
struct riso_cfg riso_config_begin(u64 rate);
int riso_config_merge(struct riso_cfg *cfg, const struct riso_change *chg, u64 guess,
		      struct netlink_ext_ack *extack);

#endif /* RISO_CONFIG_H */
