/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues. The operations of the device may be called in any context, except
 * that creating and destroying sleep. All else runs under nr_engine.lock.
 */
#ifndef NULLRDMA_CQ_H
#define NULLRDMA_CQ_H

#include "nullrdma.h"

int nr_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, TEST_CREATE_CQ_ARG *arg);
int nr_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int nr_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int nr_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

struct nr_cqe *nr_next_cqe(struct nr_cq *cq);
void nr_add_cqe(struct nr_cq *cq, struct nr_cqe *cqe, bool solicited, u64 t);
void nr_purge_cq(struct nr_cq *cq, const struct nr_qp *qp);
void nr_fire_cq(struct nr_cq *cq);

#endif /* NULLRDMA_CQ_H */
