/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of CQs. See event.c.
 */
#ifndef SHIM_EVENT_H
#define SHIM_EVENT_H

#include <stdbool.h>
#include <infiniband/verbs.h>

struct shim_cq;

int shim_req_notify_cq(struct ibv_cq *cq, int solicited_only);
bool shim_comp_is_news(struct shim_cq *c);
int shim_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		      void **cq_context);

#endif /* SHIM_EVENT_H */
