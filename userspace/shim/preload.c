// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the library exports: the functions of libibverbs that are to be seen, and
 * dlopen().
 *
 * The functions carry the versions of libibverbs (shim.map), so references to those
 * are bound to us when we are preloaded, and also when a program looks them up in a
 * handle of ours: dlopen() gives one to who asks for libibverbs. What we do not have
 * is found in libibverbs itself, which we are linked with.
 *
 * The table of the real functions is filled once and read without a lock after.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

#define EXPORT __attribute__((visibility("default")))

static void *(*real_dlopen)(const char *name, int flags);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool filled;

#define REAL(name, version)						\
	(riso_real.name = dlvsym(RTLD_NEXT, "ibv_" #name, "IBVERBS_" version))

static void fill_real(void)
{
	REAL(open_device, "1.1");
	REAL(import_device, "1.10");
	REAL(close_device, "1.1");
	REAL(get_device_name, "1.1");
	REAL(query_device, "1.1");
	REAL(create_qp, "1.1");
	REAL(destroy_qp, "1.1");
	REAL(modify_qp, "1.1");
	REAL(query_qp, "1.1");
	REAL(qp_to_qp_ex, "1.6");
	REAL(create_cq, "1.1");
	REAL(resize_cq, "1.1");
	REAL(destroy_cq, "1.1");
	REAL(get_cq_event, "1.1");
	REAL(ack_cq_events, "1.1");
	__atomic_store_n(&filled, true, __ATOMIC_RELEASE);
}

static void init(void)
{
	if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE))
		pthread_once(&once, fill_real);
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	init();
	return riso_open_device(device);
}

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	init();
	return riso_import_device(cmd_fd);
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	init();
	return riso_close_device(context);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr)
{
	init();
	return riso_create_qp(pd, attr);
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	init();
	return riso_destroy_qp(qp);
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	init();
	return riso_modify_qp(qp, attr, mask);
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr)
{
	init();
	return riso_query_qp(qp, attr, mask, init_attr);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
				    void *cq_context,
				    struct ibv_comp_channel *channel,
				    int comp_vector)
{
	init();
	return riso_create_cq(context, cqe, cq_context, channel, comp_vector);
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	init();
	return riso_resize_cq(cq, cqe);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	init();
	return riso_destroy_cq(cq);
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context)
{
	init();
	return riso_get_cq_event(channel, cq, cq_context);
}

EXPORT int rdma_isolate_set_class(struct ibv_qp *qp, enum riso_class class_id)
{
	return riso_set_class(qp, class_id);
}

EXPORT int rdma_isolate_over_target(struct ibv_qp *qp)
{
	return riso_over_target(qp);
}

/* Also by the name of the file that libibverbs.so.1 is a link to. */
static bool is_verbs(const char *name)
{
	static const char verbs[] = "libibverbs.so";
	const size_t len = sizeof(verbs) - 1;
	const char *base;

	if (!name)
		return false;
	base = strrchr(name, '/');
	base = base ? base + 1 : name;
	return !strncmp(base, verbs, len) && (!base[len] || base[len] == '.');
}

static const char *own_path(void)
{
	Dl_info info;

	return dladdr(&riso_real, &info) ? info.dli_fname : NULL;
}

/* A tail call: the real one looks at who called it. */
EXPORT void *dlopen(const char *name, int flags)
{
	const char *own;

	if (!__atomic_load_n(&real_dlopen, __ATOMIC_RELAXED))
		__atomic_store_n(&real_dlopen, dlsym(RTLD_NEXT, "dlopen"),
				 __ATOMIC_RELAXED);
	if (is_verbs(name)) {
		own = own_path();
		if (own)
			name = own;
	}
	return real_dlopen(name, flags);
}
