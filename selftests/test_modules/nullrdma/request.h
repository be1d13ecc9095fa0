/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a requester does with its messages: starts them, and ends them in their order. All
 * of it runs under nr_engine.lock.
 */
#ifndef NULLRDMA_REQUEST_H
#define NULLRDMA_REQUEST_H

#include "nullrdma.h"

bool nr_may_start(const struct nr_wqe *wqe);
bool nr_start(struct nr_wqe *wqe, u64 t);
void nr_end_request(struct nr_wqe *wqe, enum ib_wc_status status, u64 t);
void nr_complete(struct nr_qp *qp, u64 t);
void nr_flush_send(struct nr_qp *qp, u64 t);
void nr_flush_recv(struct nr_qp *qp, u64 t);
void nr_fail_qp(struct nr_qp *qp, u64 t);
void nr_begin_gap(struct nr_wqe *wqe, enum nr_gap gap, u64 until, u64 t);
void nr_end_gap(struct nr_qp *qp, u64 t);
void nr_forget_gap(struct nr_qp *qp);

#endif /* NULLRDMA_REQUEST_H */
