/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program polls. See cqpoll.c.
 */
#ifndef SHIM_CQPOLL_H
#define SHIM_CQPOLL_H

#include <stdbool.h>
#include <infiniband/verbs.h>

struct shim_cq;

int shim_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
void shim_end_poll(struct shim_cq *c, bool shown);

#endif /* SHIM_CQPOLL_H */
