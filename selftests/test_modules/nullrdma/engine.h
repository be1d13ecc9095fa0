/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine: what wakes it, and what it does in which order.
 */
#ifndef NULLRDMA_ENGINE_H
#define NULLRDMA_ENGINE_H

#include "nullrdma.h"

void nr_init_engine(void);
void nr_stop_engine(void);
void nr_kick(void);
void nr_await_handler(const void *owner);
void nr_read_bells(struct nr_end *end);
void nr_raise(struct nr_qp *qp, enum ib_event_type event);
void nr_flush_posted(struct nr_qp *qp);

#endif /* NULLRDMA_ENGINE_H */
