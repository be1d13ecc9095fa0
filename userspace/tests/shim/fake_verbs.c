// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device of the fake provider and its contexts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_cq.h"
#include "fake_qp.h"
#include "fake_verbs.h"
#include "fake_wr.h"
#include "shim.h"

struct fake_verbs fake_verbs = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct ibv_context *fake_ctx;

void fake_syscall(void)
{
	if (fake_verbs.at_call)
		fake_verbs.at_call();
}

static struct ibv_pd *
fake_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr)
{
	(void)context;
	fake_verbs.domain_asked = *attr;
	return &fake_verbs.domain;
}

static struct ibv_context *fake_open_device(struct ibv_device *device)
{
	struct verbs_context *v = fake_ctx ? &fake_verbs.second : &fake_verbs.v;

	memset(v, 0, sizeof(*v));
	v->sz = sizeof(*v);
	v->create_qp_ex = fake_create_qp_ex;
	v->create_cq_ex = fake_create_cq_ex;
	v->alloc_parent_domain = fake_alloc_parent_domain;
	v->context.device = device;
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.post_send = fake_post_send;
	v->context.ops.bind_mw = fake_bind_mw;
	v->context.ops.poll_cq = fake_verbs.lacks_poll ? NULL : fake_poll_cq;
	v->context.ops.req_notify_cq = fake_req_notify_cq;
	return &v->context;
}

static struct ibv_context *fake_import_device(int cmd_fd)
{
	assert_int_equal(cmd_fd, 5);
	return fake_open_device(&fake_verbs.device);
}

static int fake_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

static const char *fake_get_device_name(struct ibv_device *device)
{
	return device->name;
}

static int fake_query_device(struct ibv_context *context,
			     struct ibv_device_attr *attr)
{
	(void)context;
	attr->max_qp_wr = fake_verbs.max_qp_wr;
	attr->max_cqe = fake_verbs.max_cqe;
	return 0;
}

void fake_verbs_install(void)
{
	shim_real = (struct shim_real) {
		.open_device = fake_open_device,
		.import_device = fake_import_device,
		.close_device = fake_close_device,
		.get_device_name = fake_get_device_name,
		.query_device = fake_query_device,
		.create_qp = fake_create_qp,
		.destroy_qp = fake_destroy_qp,
		.modify_qp = fake_modify_qp,
		.query_qp = fake_query_qp,
		.qp_to_qp_ex = fake_qp_to_qp_ex,
		.create_cq = fake_create_cq,
		.resize_cq = fake_resize_cq,
		.destroy_cq = fake_destroy_cq,
		.get_cq_event = fake_get_cq_event,
		.ack_cq_events = fake_ack_cq_events,
	};
}

void fake_verbs_reset(void)
{
	fake_verbs.max_qp_wr = 1024;
	fake_verbs.max_cqe = 4096;
	fake_verbs.no_resize = 0;
	fake_verbs.names_none = false;
	fake_verbs.next_qpn = 17;
	fake_verbs.at_call = NULL;
	fake_verbs.at_resized = NULL;
	fake_verbs.keeps_lock = false;
	fake_verbs.at_destroy = NULL;
	fake_verbs.reused = NULL;
	fake_verbs.older = false;
	fake_verbs.deadlock = false;
	snprintf(fake_verbs.device.name, sizeof(fake_verbs.device.name), "fake0");
	snprintf(fake_verbs.device.dev_name, sizeof(fake_verbs.device.dev_name),
		 "uverbs0");
}
