/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is counted and measured while a device is observed.
 */
#ifndef RISO_OBSERVE_H
#define RISO_OBSERVE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "measure.h"

struct riso_dev;
struct riso_flow;
struct riso_watch;

/**
 * enum riso_seen - what is counted of traffic
 * @RISO_SEEN_WRS: work requests
 * @RISO_SEEN_TX: payload sent, bytes
 * @RISO_SEEN_RX: payload fetched, bytes
 * @RISO_SEEN_SIZE: messages of the first size class, and so on
 * @RISO_SEEN_MAX: how many counters
 */
enum riso_seen {
	RISO_SEEN_WRS,
	RISO_SEEN_TX,
	RISO_SEEN_RX,
	RISO_SEEN_SIZE,
	RISO_SEEN_MAX = RISO_SEEN_SIZE + RISO_SIZES,
};

/**
 * struct riso_traffic - counts of a flow or device, by &enum riso_seen
 * @n: the counters
 */
struct riso_traffic {
	u64 n[RISO_SEEN_MAX];
};

/**
 * struct riso_observed - what a device has of each CPU
 * @traffic: of all its flows
 * @times: from post to completion, by class and bucket
 */
struct riso_observed {
	struct riso_traffic traffic;
	u64 times[RISO_CLASSES][RDMA_ISOLATE_BUCKETS];
};

int riso_observe_post(struct riso_dev *rd, struct riso_flow *f,
		      struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr);
void riso_observe_polled(struct riso_dev *rd, const struct ib_cq *cq,
			 const struct ib_wc *wc, int num);
void riso_observe_update(struct riso_dev *rd);
struct riso_traffic __percpu *riso_observe_flow(struct riso_flow *f,
						struct riso_traffic __percpu *spare);
void riso_observe_reset(struct riso_flow *f);
void riso_observe_free(struct riso_flow *f);
void riso_observe_sum(struct riso_flow *f, struct riso_traffic *sum);
void riso_observe_total(struct riso_dev *rd, struct riso_traffic *sum);
void riso_observe_times(struct riso_dev *rd, enum riso_class class, u64 *times);

#endif /* RISO_OBSERVE_H */
