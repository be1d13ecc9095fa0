/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A provider that completes at once what it is given, and a kernel beside it.
 */
#ifndef RISO_TEST_NULL_H
#define RISO_TEST_NULL_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <linux/rdma_isolate_user.h>

/**
 * struct null_end - a queue pair with a CQ of its own
 * @qp: the queue pair
 * @cq: the CQ
 */
struct null_end {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
};

/* Opens the device twice, with the shim and without. */
void null_start(void);

/**
 * null_make - make a queue pair and its CQ
 * @e: filled in
 * @shim: with the shim
 * @class_id: the class that the kernel gives
 */
void null_make(struct null_end *e, bool shim, uint32_t class_id);

/**
 * null_set_mode - have processes post in another way
 * @mode: enum riso_user_mode
 */
void null_set_mode(uint32_t mode);

/**
 * null_keep_grants - give grants only by null_grant()
 * @keep: so; otherwise whoever asks gets plenty
 */
void null_keep_grants(bool keep);

/**
 * null_pace - give grants at the pace of a link of 10 Gbit/s
 * @pace: so; otherwise plenty
 *
 * Return: how often the present thread has called the kernel since the last time, if it has called
 * this then.
 */
uint32_t null_pace(bool pace);

/**
 * null_grant - give a grant
 * @bytes: cost bytes
 */
void null_grant(uint64_t bytes);

#endif /* RISO_TEST_NULL_H */
