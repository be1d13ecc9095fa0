/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues, and who polls them.
 *
 * ulp_create_cq(), ulp_destroy_cq() and ulp_reap_cq() sleep.
 */
#ifndef RISO_TEST_ULP_CQ_H
#define RISO_TEST_ULP_CQ_H

#include "ulp.h"

bool ulp_poll_empty(struct ulp_cq *cq);
void ulp_poll_cq(struct ulp_cq *cq);
void ulp_kick_cq(struct ulp_cq *cq);
void ulp_cq_event(struct ib_event *event, void *context);
bool ulp_uses_wr_id(enum ulp_cqmode mode);
struct ulp_cq *ulp_create_cq(struct ulp_ctx *ctx, struct ulp_ep *ep,
			     u32 nr_cqe);
void ulp_destroy_cq(struct ulp_cq *cq);
void ulp_reap_cq(struct ulp_cq *cq);

#endif /* RISO_TEST_ULP_CQ_H */
