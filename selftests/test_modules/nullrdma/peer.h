/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the peer does with a message that arrives. It runs under nr_engine.lock.
 */
#ifndef NULLRDMA_PEER_H
#define NULLRDMA_PEER_H

#include "nullrdma.h"

void nr_arrive(struct nr_wqe *wqe, u64 t);

#endif /* NULLRDMA_PEER_H */
