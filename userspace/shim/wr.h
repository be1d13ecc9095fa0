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
 * @lock: held in between
 * @direct: they go straight to the provider
 * @open: they do not, and are not complete; under the lock of the member
 * @num: how many, behind the records that are held
 * @err: the first that was wrong
 */
struct shim_build {
	pthread_mutex_t lock;
	bool direct;
	bool open;
	uint32_t num;
	int err;
};

void shim_wr_swap(struct shim_qp *f, struct ibv_qp_ex *qp);

#endif /* SHIM_WR_H */
