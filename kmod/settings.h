/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which settings are in force. See settings.c.
 */
#ifndef RISO_SETTINGS_H
#define RISO_SETTINGS_H

#include "dev.h"

void riso_settings_init(struct riso_dev *rd);
void riso_settings_believe_rate(struct riso_dev *rd, u64 rate);
void riso_settings_forget_rate(struct riso_dev *rd);
bool riso_settings_follow_port(struct riso_dev *rd, u64 rate);
void riso_settings_own(struct riso_dev *rd, const struct riso_cfg *cfg);
int riso_settings_lend(struct riso_dev *rd, const struct riso_change *chg,
		       struct netlink_ext_ack *extack);
void riso_settings_budget(struct riso_dev *rd, struct riso_budget *budget);
void riso_settings_fill_budget(struct riso_dev *rd, struct riso_budget *budget);
void riso_settings_tell_ctrl(struct riso_dev *rd);

#endif /* RISO_SETTINGS_H */
