/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ibv_wr_* functions. See wr.c.
 */
#ifndef SHIM_WR_H
#define SHIM_WR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct shim_qp;

/**
 * struct shim_build - work requests between ibv_wr_start() and ibv_wr_complete()
 * @lock: held from ibv_wr_start() to ibv_wr_complete() or ibv_wr_abort()
 * @direct: the work requests go straight to the provider; under @lock
 * @open: the work requests become records, and are not complete; under shim_member.lock
 * @opcode: that of the work request which is being built, if it goes straight; under @lock
 * @num: number of records that were staged behind those that are held; under @lock
 * @err: error of the first work request that was wrong, 0 if all are right; under @lock
 */
struct shim_build {
	pthread_mutex_t lock;
	bool direct;
	bool open;
	uint32_t opcode;
	uint32_t num;
	int err;
};

void shim_wr_swap(struct shim_qp *f, struct ibv_qp_ex *qp);

#endif /* SHIM_WR_H */
