/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a verbs program may ask of the shim librdma_isolate.so.
 *
 * The functions are weak, so a program neither links with the shim nor needs it:
 *
 *	if (rdma_isolate_set_class)
 *		err = rdma_isolate_set_class(qp, RISO_CLASS_LATENCY);
 *
 * Without the shim the addresses are NULL.
 */
#ifndef RDMA_ISOLATE_SHIM_H
#define RDMA_ISOLATE_SHIM_H

#include <linux/rdma_isolate.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_qp;

/**
 * rdma_isolate_set_class - choose the class of a queue pair
 * @qp: an RC queue pair
 * @class_id: how it shall be treated
 *
 * Return: 0; EINVAL for what is no class; EPERM when no rule lets this program choose that
 * class; ENODEV when the device is gone; EOPNOTSUPP for a queue pair that takes no part.
 */
int rdma_isolate_set_class(struct ibv_qp *qp, enum riso_class class_id)
	__attribute__((weak));

/**
 * rdma_isolate_over_target - do latency flows wait longer than they should?
 * @qp: an RC queue pair
 *
 * For a program that can do something about it, before it sends: choose another device,
 * or tell its user.
 *
 * Return: 1 while the agent that steers the device of @qp finds its 99th percentile above
 * the target; 0 if not, or if nobody knows.
 */
int rdma_isolate_over_target(struct ibv_qp *qp) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif /* RDMA_ISOLATE_SHIM_H */
