/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of CQs. See cq_arm.c.
 */
#ifndef RISO_CQ_ARM_H
#define RISO_CQ_ARM_H

#include <rdma/ib_verbs.h>

struct riso_cq;

int riso_cq_notify(struct riso_cq *c, enum ib_cq_notify_flags flags);
bool riso_cq_make_loud(struct riso_cq *c);
void riso_cq_check_quiet(struct riso_cq *c);

#endif /* RISO_CQ_ARM_H */
