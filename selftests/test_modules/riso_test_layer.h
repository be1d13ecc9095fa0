/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What riso_test_layer knows of the work requests that its provider was given.
 */
#ifndef RISO_TEST_LAYER_H
#define RISO_TEST_LAYER_H

#include <linux/types.h>

struct ib_cq;

/**
 * struct riso_test_seen - what the provider was given by kernel RC queue pairs
 * @posts: calls of post_send
 * @refused: those of them that were refused
 * @preemptible: those of them that the scheduler might have interrupted
 * @sends: SENDs given to a queue pair that could still send them
 * @late_sends: SENDs given to one in error
 * @notifies: calls of req_notify_cq
 * @dying: changes and posts of a queue pair that was just being destroyed
 */
struct riso_test_seen {
	u64 posts;
	u64 refused;
	u64 preemptible;
	u64 sends;
	u64 late_sends;
	u64 notifies;
	u64 dying;
};

void riso_test_layer_read(struct riso_test_seen *seen);
void riso_test_layer_refuse(int error, unsigned int num);
void riso_test_layer_withhold(void);
int riso_test_layer_hold(const struct ib_cq *cq);

#endif /* RISO_TEST_LAYER_H */
