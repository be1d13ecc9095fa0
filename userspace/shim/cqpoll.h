/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program's ibv_poll_cq(). See cqpoll.c.
 */
#ifndef SHIM_CQPOLL_H
#define SHIM_CQPOLL_H

#include <infiniband/verbs.h>

int shim_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);

#endif /* SHIM_CQPOLL_H */
