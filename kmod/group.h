/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups and tenants. See group.c.
 */
#ifndef RISO_GROUP_H
#define RISO_GROUP_H

#include "flow.h"

enum {
	/* A walk under RCU lets others run after 32 flows or groups. */
	RISO_RCU_VISITS = 32,
};

/**
 * riso_group_pass_over - let others run while a walk passes over flows or groups
 * @visits: how many it has looked at
 *
 * Context: under RCU, may sleep.
 */
static inline void riso_group_pass_over(int *visits)
{
	if (++*visits % RISO_RCU_VISITS)
		return;
	rcu_read_unlock();
	cond_resched();
	rcu_read_lock();
}

struct riso_group *riso_group_get(struct riso_dev *rd, const struct riso_flow *f);
void riso_group_put(struct riso_dev *rd, struct riso_group *g);
void riso_group_share_all(struct riso_dev *rd);
void riso_group_count_active(struct riso_dev *rd, u32 *groups);

#endif /* RISO_GROUP_H */
