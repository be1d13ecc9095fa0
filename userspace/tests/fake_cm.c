// SPDX-License-Identifier: GPL-2.0
/*
 * The event loop, the functions of cm.c, librdmacm and libibverbs of fake_cm.h.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cm.h"
#include "fake_cm.h"
#include "loop.h"

#define START (100 * SEC)

struct fake_cm fake;
struct ibv_device fake_device = { .name = "fake0" };
static struct ibv_cq_ex cq;
static struct ibv_comp_channel channel = { .fd = -1 };

/* --- the loop --- */

uint64_t now_ns(void)
{
	return fake.now += fake.step;
}

int loop_add(struct source *s)
{
	(void)s;
	return 0;
}

void loop_remove(struct source *s)
{
	s->fd = -1;
}

int timer_open(struct source *s, void (*ready)(struct source *s))
{
	int i = 0;

	while (fake.timers[i])
		i++;
	assert_in_range(i, 0, FAKE_TIMERS - 1);
	fake.timers[i] = s;
	fake.at[i] = 0;
	s->ready = ready;
	return 0;
}

static int timer_of(struct source *s)
{
	int i;

	for (i = 0; i < FAKE_TIMERS; i++)
		if (fake.timers[i] == s)
			return i;
	fail_msg("no such timer");
	return 0;
}

void timer_close(struct source *s)
{
	fake.timers[timer_of(s)] = NULL;
}

void timer_set(struct source *s, uint64_t at_ns)
{
	fake.at[timer_of(s)] = at_ns;
}

bool timer_fired(struct source *s)
{
	(void)s;
	return true;
}

/* Until @ns from the start; each timer at its time */
void fake_run_until(uint64_t ns)
{
	int i, next;

	for (;;) {
		next = -1;
		for (i = 0; i < FAKE_TIMERS; i++)
			if (fake.timers[i] && fake.at[i] && fake.at[i] <= START + ns &&
			    (next < 0 || fake.at[i] < fake.at[next]))
				next = i;
		if (next < 0)
			break;
		fake.now = fake.at[next];
		fake.at[next] = 0;
		fake.timers[next]->ready(fake.timers[next]);
	}
	fake.now = START + ns;
}

void log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fake.log, sizeof(fake.log), fmt, ap);
	va_end(ap);
	fake.logged++;
}

/* --- what cm.c does --- */

struct rdma_cm_id *cm_id(struct cm_user *user)
{
	struct rdma_cm_id *id = calloc(1, sizeof(*id));

	assert_non_null(id);
	id->context = user;
	id->verbs = &fake.verbs.context;
	fake.ids++;
	fake.last_id = id;
	return id;
}

bool cm_is_called(struct ibv_context *ctx, const char *name)
{
	return !strcmp(ctx->device->name, name);
}

bool cm_source(const char *dev, const union conf_addr *dst, union conf_addr *src)
{
	assert_string_equal(dev, fake_device.name);
	*src = *dst;
	return !fake.no_address;
}

void cm_say(struct cm_hello *h, uint64_t addr, uint32_t rkey, const struct talk_place *place)
{
	memset(h, 0, sizeof(*h));
	h->addr = addr;
	h->rkey = rkey;
	if (!place)
		return;
	h->slot_addr = place->addr;
	h->slot_rkey = place->rkey;
}

void cm_place(const struct cm_hello *h, struct talk_place *place)
{
	*place = (struct talk_place) { .addr = h->slot_addr, .rkey = h->slot_rkey };
}

const char *cm_wrong(const struct cm_event *e)
{
	return e->heard ? fake.wrong : "not an agent";
}

/* --- librdmacm --- */

int rdma_destroy_id(struct rdma_cm_id *id)
{
	fake.ids--;
	free(id);
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int ms)
{
	(void)id;
	(void)src;
	(void)dst;
	(void)ms;
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)id;
	(void)ms;
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	static struct ibv_pd own;

	assert_null(pd);
	if (fake.stamps && fake.no_stamped_qp) {
		errno = EOPNOTSUPP;
		return -1;
	}
	id->qp = calloc(1, sizeof(*id->qp));
	assert_non_null(id->qp);
	id->qp->context = id->verbs;
	id->qp->send_cq = attr->send_cq;
	id->pd = &own;
	fake.qps++;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	fake.qps--;
	free(id->qp);
	id->qp = NULL;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	/* 7 would be for ever. */
	assert_in_range(param->retry_count, 1, 6);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	(void)param;
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	(void)id;
	assert_non_null(data);
	assert_int_equal(len, sizeof(struct cm_hello));
	fake.rejected++;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	errno = ENODEV;
	return fake.no_address ? -1 : 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)id;
	(void)backlog;
	fake.listening = true;
	return 0;
}

/* --- libibverbs --- */

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "retries" : "status";
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	(void)attr;
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	(void)ctx;
	return &channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *chan)
{
	assert_ptr_equal(chan, &channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
			     struct ibv_comp_channel *chan, int vector)
{
	(void)cqe;
	(void)context;
	(void)chan;
	(void)vector;
	cq.context = ctx;
	fake.stamps = false;
	fake.cqs++;
	return ibv_cq_ex_to_cq(&cq);
}

int ibv_destroy_cq(struct ibv_cq *c)
{
	assert_ptr_equal(c, ibv_cq_ex_to_cq(&cq));
	fake.cqs--;
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	(void)iova;
	(void)access;
	assert_non_null(mr);
	mr->pd = pd;
	mr->addr = addr;
	mr->length = len;
	fake.mrs++;
	return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, 0, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	fake.mrs--;
	free(mr);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *chan, struct ibv_cq **c, void **context)
{
	assert_ptr_equal(chan, &channel);
	*c = ibv_cq_ex_to_cq(&cq);
	*context = NULL;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *c, unsigned int num)
{
	(void)c;
	assert_int_equal(num, 1);
}

static int fake_notify(struct ibv_cq *c, int solicited)
{
	(void)c;
	(void)solicited;
	fake.armed = true;
	return 0;
}

static int fake_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	assert_int_equal(wr->opcode, IBV_WR_RDMA_WRITE);
	fake.posts++;
	fake.asked += !wr->num_sge;
	fake.records += wr->wr_id == TALK_WR_ID;
	return 0;
}

static int fake_poll(struct ibv_cq *c, int num, struct ibv_wc *wc)
{
	(void)c;
	assert_int_equal(num, 1);
	if (!fake.done)
		return 0;
	fake.done = false;
	wc->status = fake.status;
	wc->wr_id = fake.done_wr_id;
	return 1;
}

static int fake_start_poll(struct ibv_cq_ex *c, struct ibv_poll_cq_attr *attr)
{
	(void)attr;
	if (!fake.done)
		return ENOENT;
	fake.done = false;
	c->status = fake.status;
	c->wr_id = fake.done_wr_id;
	return 0;
}

static uint64_t fake_read_stamp(struct ibv_cq_ex *c)
{
	(void)c;
	return fake.stamp;
}

static void fake_end_poll(struct ibv_cq_ex *c)
{
	(void)c;
}

static struct ibv_cq_ex *fake_create_cq_ex(struct ibv_context *ctx,
					   struct ibv_cq_init_attr_ex *attr)
{
	assert_int_equal(attr->wc_flags, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	assert_ptr_equal(attr->channel, &channel);
	ibv_create_cq(ctx, attr->cqe, NULL, attr->channel, 0);
	cq.start_poll = fake_start_poll;
	cq.end_poll = fake_end_poll;
	cq.read_completion_ts = fake_read_stamp;
	fake.stamps = true;
	return &cq;
}

static int fake_query_device_ex(struct ibv_context *ctx,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t size)
{
	(void)ctx;
	(void)input;
	(void)size;
	attr->completion_timestamp_mask = fake.clock_mask;
	attr->hca_core_clock = fake.clock_mask ? FAKE_KHZ : 0;
	return 0;
}

static int fake_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	(void)ctx;
	if (fake.clock_broken)
		return EOPNOTSUPP;
	values->raw_clock.tv_nsec = fake.ticks;
	return 0;
}

int fake_set_up(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.now = START;
	fake.verbs.sz = sizeof(fake.verbs);
	fake.verbs.query_device_ex = fake_query_device_ex;
	fake.verbs.query_rt_values = fake_query_rt_values;
	fake.verbs.create_cq_ex = fake_create_cq_ex;
	fake.verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	fake.verbs.context.device = &fake_device;
	fake.verbs.context.ops.post_send = fake_post;
	fake.verbs.context.ops.poll_cq = fake_poll;
	fake.verbs.context.ops.req_notify_cq = fake_notify;
	return 0;
}

int fake_nothing_is_left(void **state)
{
	(void)state;
	return fake.ids || fake.qps || fake.cqs || fake.mrs;
}
