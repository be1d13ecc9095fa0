/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Contexts. See ctx.c.
 */
#ifndef SHIM_CTX_H
#define SHIM_CTX_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "registry.h"

struct shim_member;

/**
 * struct shim_ctx - an open device of the program
 * @m: this process on the device
 * @context: context of the program
 * @plain: no queue pair of the context is governed
 * @ops: functions of the provider
 * @create_qp_ex: the provider's verbs_context.create_qp_ex
 * @create_cq_ex: the provider's verbs_context.create_cq_ex
 * @alloc_parent_domain: the provider's verbs_context.alloc_parent_domain
 * @max_qp_wr: most work requests of a send queue of the device
 * @max_cqe: most entries of a CQ of the device
 * @tagged: the sum of shim_cq.tagged; changes under shim_member.lock, read without it
 */
struct shim_ctx {
	struct shim_member *m;
	struct ibv_context *context;
	bool plain;
	struct ibv_context_ops ops;
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
	struct ibv_pd *
	(*alloc_parent_domain)(struct ibv_context *context,
			       struct ibv_parent_domain_init_attr *attr);
	int max_qp_wr;
	int max_cqe;
	uint32_t tagged;
};

struct ibv_context *shim_govern_ctx(struct ibv_context *context);
struct ibv_context *shim_open_device(struct ibv_device *device);
struct ibv_context *shim_import_device(int cmd_fd);
int shim_close_device(struct ibv_context *context);

/**
 * shim_find_ctx - find what is known of a context
 * @context: the context
 *
 * Return: what is known, or NULL.
 */
static inline struct shim_ctx *shim_find_ctx(const struct ibv_context *context)
{
	return shim_map_find(&shim_ctxs, context);
}

#endif /* SHIM_CTX_H */
