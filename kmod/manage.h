/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a managed flow has, and where it counts. See manage.c.
 */
#ifndef RISO_MANAGE_H
#define RISO_MANAGE_H

#include "flow.h"

int riso_manage_make_ready(struct riso_flow *f);
void riso_manage_make_bare(struct riso_flow *f);
void riso_manage_set_mode(struct riso_flow *f, enum riso_flow_mode mode);
void riso_manage_tally(struct riso_flow *f, bool gone);
void riso_manage_count_latency(struct riso_flow *f, bool latency);
void riso_manage_join_group(struct riso_flow *f);
void riso_manage_count_sender(struct riso_flow *f, bool sends);
void riso_manage_set_shim(struct riso_flow *f, bool shim);
void riso_manage_surrender(struct riso_flow *f);
void riso_manage_refresh_all(struct riso_dev *rd);
u32 riso_manage_settle_all(struct riso_dev *rd);
void riso_manage_bare_all(struct riso_dev *rd);

#endif /* RISO_MANAGE_H */
