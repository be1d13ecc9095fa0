// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: what the program opens and closes.
 *
 * Owns what is in the map of contexts, and the pointers that the shim swaps in struct ibv_context.
 * Posting and polling are inline functions over these pointers, so no exported function
 * sees them.
 *
 * Opening adds a context to the map before the program knows the context. Closing removes
 * it before the provider frees it, and forgets the queue pairs and CQs that the program has
 * left there. So everybody reads the map without a lock.
 *
 * Everything here runs in threads of the program, and calls the provider without a lock of
 * the shim.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "cqpoll.h"
#include "ctx.h"
#include "drain.h"
#include "event.h"
#include "member.h"
#include "qp.h"
#include "send.h"
#include "shim.h"

enum {
	/* Of struct ibv_parent_domain_init_attr, what is behind its first members */
	HAS_MORE = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	/* And what else it may say: IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC */
	KNOWN_ATTR = HAS_MORE | 1 << 2,
};

/*
 * The helper posts besides the program, so there is no domain of a single thread. Other threads
 * may use what the program asks for, so the provider gets a copy. What has more than the shim
 * knows cannot be copied.
 */
static struct ibv_pd *
alloc_parent_domain(struct ibv_context *context,
		    struct ibv_parent_domain_init_attr *attr)
{
	struct shim_ctx *ctx = shim_find_ctx(context);
	struct ibv_parent_domain_init_attr own = {};

	if (!attr->td)
		return ctx->alloc_parent_domain(context, attr);
	if (attr->comp_mask & ~KNOWN_ATTR) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	memcpy(&own, attr, attr->comp_mask & HAS_MORE ? sizeof(own) :
	       offsetof(struct ibv_parent_domain_init_attr, alloc));
	own.td = NULL;
	return ctx->alloc_parent_domain(context, &own);
}

/* Swap the functions of a context that is not known to the program yet. */
static void swap(struct shim_ctx *ctx)
{
	struct ibv_context *context = ctx->context;
	struct verbs_context *v;

	ctx->ops = context->ops;
	v = verbs_get_ctx_op(context, create_qp_ex);
	if (v) {
		ctx->create_qp_ex = v->create_qp_ex;
		v->create_qp_ex = shim_create_qp_ex;
	}
	if (ctx->plain)
		return;
	context->ops.post_send = shim_post_send;
	context->ops.poll_cq = shim_poll_cq;
	context->ops.req_notify_cq = shim_req_notify_cq;
	if (ctx->ops.bind_mw)
		context->ops.bind_mw = shim_bind_mw;
	v = verbs_get_ctx_op(context, create_cq_ex);
	if (v) {
		ctx->create_cq_ex = v->create_cq_ex;
		v->create_cq_ex = shim_create_cq_ex;
	}
	v = verbs_get_ctx_op(context, alloc_parent_domain);
	if (v) {
		ctx->alloc_parent_domain = v->alloc_parent_domain;
		v->alloc_parent_domain = alloc_parent_domain;
	}
}

/* The provider was told that there is one thread, and takes no locks. */
static bool single_threaded(void)
{
	const char *env = getenv("MLX5_SINGLE_THREADED");

	if (!env || strcmp(env, "1"))
		return false;
	shim_debug("not shared: MLX5_SINGLE_THREADED is set");
	return true;
}

/* There is nothing to post or to poll with, so it is not for the shim. */
static bool lacks_functions(const struct ibv_context *context)
{
	if (context->ops.post_send && context->ops.poll_cq && context->ops.req_notify_cq)
		return false;
	shim_warn("%s: not shared: its provider lacks a function",
		  shim_real.get_device_name(context->device));
	return true;
}

/**
 * shim_govern_ctx - take part with a context that was opened
 * @context: the context, which the program does not know yet, or NULL
 *
 * If that fails the program has the context as it is. errno stays as it is.
 *
 * Return: @context.
 */
struct ibv_context *shim_govern_ctx(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	struct shim_ctx *ctx;
	int saved = errno;

	if (!context)
		goto restore_errno;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		goto restore_errno;
	ctx->context = context;
	ctx->plain = single_threaded() || lacks_functions(context);
	if (shim_real.query_device(context, &attr))
		goto free_ctx;
	ctx->max_qp_wr = attr.max_qp_wr;
	ctx->max_cqe = attr.max_cqe;
	ctx->m = shim_member_get(context->device);
	if (!ctx->m)
		goto free_ctx;
	if (shim_map_add(&shim_ctxs, context, ctx))
		goto put_member;
	swap(ctx);
	goto restore_errno;

put_member:
	shim_member_put(ctx->m);
free_ctx:
	free(ctx);
restore_errno:
	errno = saved;
	return context;
}

/**
 * shim_open_device - ibv_open_device()
 * @device: the device
 *
 * Return: the context, or NULL and errno.
 */
struct ibv_context *shim_open_device(struct ibv_device *device)
{
	return shim_govern_ctx(shim_real.open_device(device));
}

/**
 * shim_import_device - ibv_import_device()
 * @cmd_fd: the file of a context
 *
 * An older libibverbs does not have it, but the program finds ours.
 *
 * Return: the context, or NULL and errno.
 */
struct ibv_context *shim_import_device(int cmd_fd)
{
	if (!shim_real.import_device) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return shim_govern_ctx(shim_real.import_device(cmd_fd));
}

static bool flow_of_ctx(void *value, void *arg)
{
	return ((struct shim_qp *)value)->ctx == arg;
}

static bool cq_of_ctx(void *value, void *arg)
{
	return ((struct shim_cq *)value)->ctx == arg;
}

/* What the program has not destroyed goes with the context. */
static void forget_objects(struct shim_ctx *ctx)
{
	struct shim_qp *f;
	struct shim_cq *c;

	while ((f = shim_map_search(&shim_qps, flow_of_ctx, ctx))) {
		shim_queue_drain(f, true);
		shim_del_flow(f);
		shim_forget_flow(f, f->qp->qp_num);
	}
	while ((c = shim_map_search(&shim_cqs, cq_of_ctx, ctx))) {
		shim_map_del(&shim_cqs, c->cq);
		shim_comp_bury(c);
		shim_free_cq(c);
	}
}

/**
 * shim_close_device - ibv_close_device()
 * @context: the context
 *
 * Return: 0, or -1 and errno.
 */
int shim_close_device(struct ibv_context *context)
{
	struct shim_ctx *ctx = shim_find_ctx(context);
	int err;

	if (!ctx)
		return shim_real.close_device(context);
	forget_objects(ctx);
	shim_map_del(&shim_ctxs, context);
	err = shim_real.close_device(context);
	if (err) {
		shim_map_add(&shim_ctxs, context, ctx);
		return err;
	}
	shim_member_put(ctx->m);
	free(ctx);
	return 0;
}
