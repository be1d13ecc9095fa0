// SPDX-License-Identifier: GPL-2.0
/*
 * For LD_PRELOAD, behind the verbs shim: takes functions from the contexts of a provider.
 *
 *	MANGLE	which, see below
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

static void mangle(struct ibv_context *context, const char *what)
{
	struct verbs_context *v = verbs_get_ctx(context);

	if (!strcmp(what, "post_send"))
		context->ops.post_send = NULL;
	else if (!strcmp(what, "poll_cq"))
		context->ops.poll_cq = NULL;
	else if (!strcmp(what, "req_notify_cq"))
		context->ops.req_notify_cq = NULL;
	else if (!strcmp(what, "bind_mw"))
		context->ops.bind_mw = NULL;
	else if (!strcmp(what, "extensions"))
		context->abi_compat = NULL;
	else if (!strcmp(what, "create_qp_ex") && v)
		v->create_qp_ex = NULL;
	else if (!strcmp(what, "create_cq_ex") && v)
		v->create_cq_ex = NULL;
	else if (!strcmp(what, "alloc_parent_domain") && v)
		v->alloc_parent_domain = NULL;
	else
		abort();
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	typeof(ibv_open_device) *open_device =
		dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1");
	struct ibv_context *context = open_device ? open_device(device) : NULL;
	const char *what = getenv("MANGLE");

	if (context && what)
		mangle(context, what);
	return context;
}
