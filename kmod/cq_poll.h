/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Polls of CQs, by the ULP and by the reaper. See cq_poll.c.
 */
#ifndef RISO_CQ_POLL_H
#define RISO_CQ_POLL_H

#include <rdma/ib_verbs.h>

struct riso_cq;
struct riso_dev;

int riso_cq_poll(struct riso_cq *c, int num, int found, struct ib_wc *wc);
void riso_cq_bury(struct riso_cq *c);
bool riso_cq_reap_one(struct riso_cq *c);
bool riso_cq_reap(struct riso_dev *rd);

#endif /* RISO_CQ_POLL_H */
