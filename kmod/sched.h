/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The scheduler: which flow posts next. See sched.c.
 */
#ifndef RISO_SCHED_H
#define RISO_SCHED_H

#include "flow.h"

/* The provider may have what was posted. */
#define RISO_SCHED_PASS	1

int riso_sched_post(struct riso_flow *f, const struct ib_send_wr *wr);
void riso_sched_run(struct riso_dev *rd);
void riso_sched_arm(struct riso_dev *rd, u64 now);
int riso_sched_rounds(void);
void riso_sched_go(struct riso_dev *rd, struct riso_flow *first, int rounds,
		   unsigned long *flags, u64 now);
void riso_sched_refresh(struct riso_flow *f);
void riso_sched_unstick(struct riso_flow *f, u64 now);
void riso_sched_forget(struct riso_flow *f);

#endif /* RISO_SCHED_H */
