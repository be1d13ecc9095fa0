/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The scheduler: which flow posts next. See sched.c.
 */
#ifndef RISO_SCHED_H
#define RISO_SCHED_H

#include "flow.h"

void riso_sched_run(struct riso_dev *rd);
void riso_sched_wake(struct riso_flow *f);
void riso_sched_remove(struct riso_flow *f);
void riso_sched_refresh(struct riso_flow *f);
void riso_sched_unstick(struct riso_flow *f, u64 now);
void riso_sched_forget(struct riso_flow *f);
bool riso_sched_is_sparse(struct riso_flow *f, u64 now);

#endif /* RISO_SCHED_H */
