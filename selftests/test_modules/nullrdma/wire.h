/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire of an end: who sends when. All of it runs under nr_engine.lock.
 */
#ifndef NULLRDMA_WIRE_H
#define NULLRDMA_WIRE_H

#include "nullrdma.h"

void nr_init_wire(struct nr_end *end);
void nr_set_wire(struct nr_end *end, u32 mbps, u32 delay_ns, u64 t);
void nr_queue_request(struct nr_wqe *wqe, u64 now);
void nr_queue_answer(struct nr_wqe *wqe, u64 t);
void nr_resume(struct nr_qp *qp, u64 t);
void nr_take_back(struct nr_qp *qp, u32 from, u64 t);
void nr_advance_wire(struct nr_end *end, u64 now);
void nr_plan_end(struct nr_end *end);
void nr_settle_wires(u64 t);

#endif /* NULLRDMA_WIRE_H */
