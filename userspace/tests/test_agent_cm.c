// SPDX-License-Identifier: GPL-2.0
/*
 * Both ends of the reference flow, probe.c and serve.c, on a device that does what the
 * test says, at a time that the test says.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe.h"
#include "serve.h"

enum { PLACES = 256, TIMERS = 4, KHZ = 156250 };

#define CLOCK_MASK UINT64_C(0xffffffffffff)
#define START (100 * SEC)

/* What is there, and what was done. */
static struct {
	uint64_t now;
	uint64_t step;
	struct source *timers[TIMERS];
	uint64_t at[TIMERS];
	unsigned int ids;
	struct rdma_cm_id *last_id;
	unsigned int qps;
	unsigned int cqs;
	unsigned int mrs;
	bool listening;
	bool no_address;
	unsigned int rejected;
	unsigned int posts;
	unsigned int asked;
	char log[512];
	unsigned int logged;
	/* the device */
	uint64_t clock_mask;
	bool clock_broken;
	uint64_t ticks;
	uint64_t stamp;
	bool stamps;
	bool no_stamped_qp;
	bool armed;
	bool done;
	enum ibv_wc_status status;
	struct verbs_context verbs;
} fake;

static struct ibv_device device = { .name = "fake0" };
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
	assert_in_range(i, 0, TIMERS - 1);
	fake.timers[i] = s;
	fake.at[i] = 0;
	s->ready = ready;
	return 0;
}

static int timer_of(struct source *s)
{
	int i;

	for (i = 0; i < TIMERS; i++)
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
static void run_until(uint64_t ns)
{
	int i, next;

	for (;;) {
		next = -1;
		for (i = 0; i < TIMERS; i++)
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
	assert_string_equal(dev, device.name);
	*src = *dst;
	return !fake.no_address;
}

void cm_say(struct cm_hello *h, uint64_t addr, uint32_t rkey)
{
	memset(h, 0, sizeof(*h));
	h->addr = addr;
	h->rkey = rkey;
}

const char *cm_wrong(const struct cm_event *e)
{
	return e->heard ? NULL : "not an agent";
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
	return 1;
}

static int fake_start_poll(struct ibv_cq_ex *c, struct ibv_poll_cq_attr *attr)
{
	(void)attr;
	if (!fake.done)
		return ENOENT;
	fake.done = false;
	c->status = fake.status;
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
	attr->hca_core_clock = fake.clock_mask ? KHZ : 0;
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

static int set_up(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.now = START;
	fake.verbs.sz = sizeof(fake.verbs);
	fake.verbs.query_device_ex = fake_query_device_ex;
	fake.verbs.query_rt_values = fake_query_rt_values;
	fake.verbs.create_cq_ex = fake_create_cq_ex;
	fake.verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	fake.verbs.context.device = &device;
	fake.verbs.context.ops.post_send = fake_post;
	fake.verbs.context.ops.poll_cq = fake_poll;
	fake.verbs.context.ops.req_notify_cq = fake_notify;
	return 0;
}

static int nothing_is_left(void **state)
{
	(void)state;
	return fake.ids || fake.qps || fake.cqs || fake.mrs;
}

/* --- the one that measures --- */

static uint64_t measured;
static unsigned int samples;

static void on_sample(struct probe *p, uint64_t ns)
{
	(void)p;
	measured = ns;
	samples++;
}

static void happens(struct probe *p, enum rdma_cm_event_type type, bool heard)
{
	struct cm_event e = { .type = type, .id = p->id, .heard = heard };

	p->user.event(&p->user, &e);
}

static void connects(struct probe *p)
{
	happens(p, RDMA_CM_EVENT_ADDR_RESOLVED, false);
	happens(p, RDMA_CM_EVENT_ROUTE_RESOLVED, false);
	happens(p, RDMA_CM_EVENT_ESTABLISHED, true);
	assert_true(p->ready);
}

/* What the log says has no words of librdmacm in it, and those of the agent where it can. */
static void plain_words(void **state)
{
	static const struct {
		struct cm_event e;
		const char *why;
	} cases[] = {
		{ { .type = RDMA_CM_EVENT_ADDR_ERROR, .status = -19 },
		  "no host has this address, or there is no route to it" },
		{ { .type = RDMA_CM_EVENT_UNREACHABLE }, "no answer" },
		{ { .type = RDMA_CM_EVENT_REJECTED, .status = 8 },
		  "nobody listens there; is rdma-isolated running?" },
		{ { .type = RDMA_CM_EVENT_REJECTED, .status = 28, .heard = true },
		  "refused, the agent there says why in its log" },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(cm_why(&cases[i].e), cases[i].why);
	for (i = RDMA_CM_EVENT_ADDR_RESOLVED; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++) {
		struct cm_event e = { .type = i };

		assert_null(strstr(cm_why(&e), "RDMA_CM"));
	}
}

static void start(struct probe *p)
{
	memset(p, 0, sizeof(*p));
	p->done.fd = -1;
	p->dev = device.name;
	p->sample = on_sample;
	p->peer.v4.sin_family = AF_INET;
	p->peer.v4.sin_addr.s_addr = htonl(0xc0000201);
	samples = 0;
	assert_int_equal(probe_open(p), 0);
}

/* Posted, and seen after so long, by the event that was asked for */
static void one(struct probe *p, uint64_t ns)
{
	probe_send(p, fake.now);
	fake.now += ns;
	fake.done = true;
	assert_true(fake.armed);
	fake.armed = false;
	p->done.ready(&p->done);
}

static void by_our_clock(void **state)
{
	struct probe p;

	(void)state;
	start(&p);
	connects(&p);
	assert_false(fake.stamps);
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: connected");
	one(&p, 70000);
	assert_int_equal(samples, 1);
	assert_int_equal(measured, 70000);

	/* Until it has completed none is sent. */
	probe_send(&p, fake.now);
	probe_send(&p, fake.now);
	assert_int_equal(fake.posts, 2);
	probe_close(&p);
	assert_int_equal(p.sent, 2);
	assert_int_equal(p.lost, 1);
}

/* However late it is seen. The clock of the device may start anew between. */
static void by_its_clock(void **state)
{
	struct probe p;

	(void)state;
	fake.clock_mask = CLOCK_MASK;
	start(&p);
	connects(&p);
	assert_true(fake.stamps);
	assert_string_equal(fake.log,
			    "fake0: peer 192.0.2.1: connected, the device stamps completions");

	fake.ticks = 1000000;
	fake.stamp = fake.ticks + 625;
	one(&p, 70000);
	assert_int_equal(measured, 4000);

	fake.ticks = CLOCK_MASK - 24;
	fake.stamp = 600;
	one(&p, 70000);
	assert_int_equal(measured, 4000);

	/* as long as it takes for a 64 bit product to overflow */
	fake.ticks = 0;
	fake.stamp = UINT64_C(1) << 47;
	one(&p, 2 * (fake.stamp / KHZ * MS));
	assert_int_equal(measured, (UINT64_C(1) << 47) / KHZ * MS +
			 (UINT64_C(1) << 47) % KHZ * MS / KHZ);
	assert_int_equal(samples, 3);
	probe_close(&p);
}

/* Later than it was seen, and before it was posted */
static void with_a_clock_that_is_wrong(void **state)
{
	struct probe p;

	(void)state;
	fake.clock_mask = UINT64_MAX;
	start(&p);
	connects(&p);
	assert_true(fake.stamps);
	fake.ticks = 1000000;
	fake.stamp = fake.ticks + KHZ / 10;
	one(&p, MS / 10);
	assert_int_equal(measured, MS / 10);
	one(&p, MS / 10 - 1);
	assert_int_equal(measured, MS / 10 - 1);
	fake.stamp = fake.ticks - 1;
	one(&p, 70000);
	assert_int_equal(measured, 70000);
	/* What 64 bits would leave of it is less. */
	fake.stamp = fake.ticks + UINT64_C(18446744073710) * KHZ;
	one(&p, MS);
	assert_int_equal(measured, MS);
	probe_close(&p);
}

/* A device may refuse a queue pair on a CQ that stamps. */
static void without_stamps(void **state)
{
	struct probe p;

	(void)state;
	fake.clock_mask = CLOCK_MASK;
	fake.no_stamped_qp = true;
	start(&p);
	connects(&p);
	assert_false(fake.stamps);
	assert_int_equal(fake.cqs, 1);
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: connected");
	one(&p, 70000);
	assert_int_equal(measured, 70000);
	probe_close(&p);
}

static void with_a_clock_of_no_use(void **state)
{
	struct probe p;

	(void)state;
	fake.clock_mask = CLOCK_MASK;
	fake.clock_broken = true;
	start(&p);
	connects(&p);
	assert_false(fake.stamps);
	one(&p, 70000);
	assert_int_equal(measured, 70000);

	/* or of none from some time on */
	fake.clock_broken = false;
	happens(&p, RDMA_CM_EVENT_DISCONNECTED, false);
	run_until(SEC);
	connects(&p);
	assert_true(fake.stamps);
	fake.clock_broken = true;
	probe_send(&p, fake.now);
	assert_false(p.ready);
	assert_int_equal(fake.posts, 1);
	assert_string_equal(fake.log,
			    "fake0: peer 192.0.2.1: cannot post: Input/output error");
	run_until(2 * SEC);
	connects(&p);
	assert_false(fake.stamps);
	probe_close(&p);
}

/* What completes while it looks; anything later is waited for. */
static void spins(void **state)
{
	struct probe p;

	(void)state;
	start(&p);
	p.spin_ns = 5000;
	fake.step = 100;
	connects(&p);
	fake.done = true;
	probe_send(&p, fake.now);
	assert_int_equal(samples, 1);
	assert_int_equal(measured, 100);
	one(&p, 70000);
	assert_int_equal(samples, 2);
	assert_in_range(measured, 70000 + 5000, 70000 + 5000 + 4 * 100);
	probe_close(&p);
}

/* Tried again, with pauses of 0.1 s to 5 s, and logged once for each cause */
static void comes_back(void **state)
{
	uint64_t pause = 100 * MS, at = 0;
	struct probe p;
	int i;

	(void)state;
	start(&p);
	connects(&p);
	probe_send(&p, fake.now);
	fake.done = true;
	fake.status = IBV_WC_RETRY_EXC_ERR;
	p.done.ready(&p.done);
	assert_int_equal(samples, 0);
	assert_int_equal(p.lost, 1);
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: retries");
	fake.status = IBV_WC_SUCCESS;
	for (i = 0; i < 10; i++) {
		assert_null(p.id);
		run_until(at + pause - 1);
		assert_null(p.id);
		at += pause;
		run_until(at);
		assert_non_null(p.id);
		happens(&p, RDMA_CM_EVENT_REJECTED, false);
		pause = pause * 2 < 5 * SEC ? pause * 2 : 5 * SEC;
	}
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: refused, the agent there says why in its log");
	assert_int_equal(fake.logged, 3);
	run_until(at + pause);
	happens(&p, RDMA_CM_EVENT_ADDR_RESOLVED, false);
	happens(&p, RDMA_CM_EVENT_ROUTE_RESOLVED, false);
	happens(&p, RDMA_CM_EVENT_ESTABLISHED, false);
	assert_false(p.ready);
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: not an agent");
	at += pause + 5 * SEC;
	run_until(at);
	connects(&p);

	/* One that worked is tried again soon. */
	happens(&p, RDMA_CM_EVENT_DISCONNECTED, false);
	assert_null(p.id);
	run_until(at + 100 * MS);
	assert_non_null(p.id);
	probe_close(&p);
}

/* --- the one that is measured with --- */

static struct rdma_cm_id *listener;

/* A new id has the context of the listener, whose event it is. */
static void hears(struct rdma_cm_id *to, enum rdma_cm_event_type type,
		  struct rdma_cm_id *id, bool heard)
{
	struct cm_event e = { .type = type, .id = id, .heard = heard };
	struct cm_user *user = to->context;

	user->event(user, &e);
}

static void listen_on(void)
{
	union conf_addr any = { .sa.sa_family = AF_INET6 };

	assert_int_equal(serve_open(&any), 0);
	assert_true(fake.listening);
	listener = fake.last_id;
}

static struct rdma_cm_id *comes(bool heard)
{
	struct rdma_cm_id *id = cm_id(listener->context);

	hears(listener, RDMA_CM_EVENT_CONNECT_REQUEST, id, heard);
	return id;
}

static void leaves(struct rdma_cm_id *id)
{
	hears(id, RDMA_CM_EVENT_DISCONNECTED, id, false);
}

static void refuses(void **state)
{
	struct rdma_cm_id *guest;
	int i;

	(void)state;
	listen_on();
	for (i = 0; i < 3; i++)
		comes(false);
	assert_int_equal(fake.rejected, 3);
	assert_int_equal(fake.logged, 1);
	assert_string_equal(fake.log, "a connection is refused: not an agent");
	assert_int_equal(fake.ids, 1);

	/* What is between makes it news. */
	guest = comes(true);
	assert_int_equal(fake.rejected, 3);
	assert_int_equal(fake.mrs, 1);
	comes(false);
	assert_int_equal(fake.logged, 2);
	leaves(guest);
	assert_int_equal(fake.mrs, 0);
	serve_close();
}

/* Whoever is there answers; who does not has lost its place ten seconds later. */
static void the_silent_lose_their_places(void **state)
{
	int i;

	(void)state;
	listen_on();
	for (i = 0; i < PLACES; i++)
		comes(true);
	assert_int_equal(fake.qps, PLACES);
	assert_int_equal(fake.mrs, 1);
	assert_int_equal(fake.rejected, 0);

	comes(true);
	assert_int_equal(fake.rejected, 1);
	assert_string_equal(fake.log, "a connection is refused: too many connections");
	assert_int_equal(fake.asked, PLACES);

	/* One has answered, and is asked again; one cannot be reached. */
	run_until(5 * SEC);
	fake.done = true;
	comes(true);
	assert_int_equal(fake.asked, PLACES + 1);
	fake.done = true;
	fake.status = IBV_WC_RETRY_EXC_ERR;
	comes(true);
	assert_int_equal(fake.qps, PLACES - 1);
	comes(true);
	assert_int_equal(fake.qps, PLACES);
	assert_int_equal(fake.rejected, 3);

	/* At ten seconds to the nanosecond there is time. */
	run_until(10 * SEC);
	comes(true);
	assert_int_equal(fake.qps, PLACES);
	run_until(10 * SEC + 1);
	comes(true);
	assert_int_equal(fake.rejected, 5);
	assert_in_range(fake.qps, 1, 3);
	comes(true);
	assert_int_equal(fake.rejected, 5);
	serve_close();
}

/* Tried each second, until it is back */
static void the_device_goes(void **state)
{
	struct rdma_cm_id *guest;

	(void)state;
	listen_on();
	guest = comes(true);
	fake.listening = false;
	fake.no_address = true;
	hears(listener, RDMA_CM_EVENT_DEVICE_REMOVAL, listener, false);
	hears(guest, RDMA_CM_EVENT_DEVICE_REMOVAL, guest, false);
	assert_int_equal(fake.ids, 0);
	assert_string_equal(fake.log, "the device that is listened at has gone");

	run_until(30 * SEC);
	assert_int_equal(fake.ids, 0);
	assert_int_equal(fake.logged, 1);
	fake.no_address = false;
	run_until(31 * SEC - 1);
	assert_false(fake.listening);
	run_until(31 * SEC);
	assert_true(fake.listening);
	assert_string_equal(fake.log, "it is back, and listened at");
	listener = fake.last_id;
	comes(true);
	assert_int_equal(fake.rejected, 0);
	assert_int_equal(fake.qps, 1);
	serve_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_our_clock, set_up, nothing_is_left),
		cmocka_unit_test_setup_teardown(by_its_clock, set_up, nothing_is_left),
		cmocka_unit_test_setup_teardown(with_a_clock_of_no_use, set_up,
						nothing_is_left),
		cmocka_unit_test_setup_teardown(with_a_clock_that_is_wrong, set_up,
						nothing_is_left),
		cmocka_unit_test_setup_teardown(without_stamps, set_up, nothing_is_left),
		cmocka_unit_test_setup_teardown(spins, set_up, nothing_is_left),
		cmocka_unit_test(plain_words),
		cmocka_unit_test_setup_teardown(comes_back, set_up, nothing_is_left),
		cmocka_unit_test_setup_teardown(refuses, set_up, nothing_is_left),
		cmocka_unit_test_setup_teardown(the_silent_lose_their_places, set_up,
						nothing_is_left),
		cmocka_unit_test_setup_teardown(the_device_goes, set_up, nothing_is_left),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_cm", tests, NULL, NULL);
}
