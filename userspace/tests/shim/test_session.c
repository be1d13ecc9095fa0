// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that take turns. While a provider keeps its lock of an extended CQ over a session none
 * of them waits for ever, and what one of them polls comes in order whatever the others do.
 */
#include <string.h>

#include "coop.h"
#include "event.h"
#include "prog.h"
#include "tests.h"

/*
 * A provider keeps its lock of an extended CQ over a session. Meanwhile the program posts
 * there and creates queue pairs, and others do that, too, arm the CQ, resize it, look for
 * news, poll it, and make it active.
 */
enum { SESSIONS = 200, SESSION_ROUNDS = 20 };

static struct {
	struct prog p;
	uint32_t left;
} session;

static void session_create_one(void)
{
	struct prog q = {};

	q.qp = prog_make_qp(&q, session.p.cq, 0);
	shim_destroy_qp(&q.qp->ex.qp_base);
}

/* As before a fork, whose child would have no turn here */
static void session_lock_sizes(void)
{
	pthread_mutex_lock(&shim_size_lock);
	pthread_mutex_unlock(&shim_size_lock);
}

static void session_poll(void)
{
	struct ibv_cq_ex *cq = &session.p.cq->cq;
	struct ibv_poll_cq_attr attr = {};
	uint32_t i;

	for (i = 0; i < SESSION_ROUNDS && !fake_verbs.deadlock; i++) {
		fake_receive(session.p.cq);
		if (ibv_start_poll(cq, &attr))
			continue;
		prog_post(session.p.qp, IBV_WR_SEND, i, 8, 0);
		coop_yield();
		if (i % 2)
			session_create_one();
		else
			session_lock_sizes();
		prog_post(session.p.qp, IBV_WR_RDMA_WRITE, i, 2 * FAKE_CHUNK,
			  IBV_SEND_SIGNALED);
		if (!ibv_next_poll(cq))
			coop_yield();
		ibv_end_poll(cq);
		fake_run(session.p.qp, UINT32_MAX);
	}
	session.left--;
}

static void session_arm(void)
{
	while (session.left) {
		prog_arm(&session.p);
		coop_yield();
	}
}

static void session_news(void)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, session.p.cq);
	struct ibv_wc wc;

	while (session.left) {
		shim_comp_is_news(c);
		coop_yield();
		prog_poll_one(&session.p, &wc);
	}
}

static void session_change(void)
{
	uint32_t i = 0;

	while (session.left) {
		fake_kernel.now += 1000;
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		fake_kernel.class_id = i++ % 2 ? RISO_CLASS_LATENCY : RISO_CLASS_BANDWIDTH;
		shim_set_class(&session.p.qp->ex.qp_base, fake_kernel.class_id);
		coop_yield();
	}
}

static void session_create(void)
{
	while (session.left) {
		session_create_one();
		coop_yield();
	}
}

static void session_resize(void)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(&session.p.cq->cq);
	uint32_t i = 0;

	while (session.left) {
		shim_resize_cq(cq, (2 + i++ % 2) * PROG_DEPTH);
		coop_yield();
	}
}

static void (*const session_does[])(void) = {
	session_poll, session_arm, session_news, session_change, session_create,
	session_resize,
};

static void session_thread(unsigned int thread)
{
	session_does[thread]();
}

static void sessions_keep_lock(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 2 * PROG_DEPTH };
	uint64_t n;

	(void)state;
	fake_kernel.class_id = RISO_CLASS_LATENCY;
	fake_ctx = shim_open_device(&fake_verbs.device);
	session.p.cq = (struct fake_cq *)ibv_create_cq_ex(fake_ctx, &init);
	session.p.qp = prog_make_qp(&session.p, session.p.cq, 0);
	fake_verbs.keeps_lock = true;
	for (n = 1; n <= SESSIONS && !fake_verbs.deadlock; n++) {
		session.left = 1;
		coop_run(n, session_thread, ARRAY_SIZE(session_does));
	}
	if (fake_verbs.deadlock)
		fail_msg("seed %ju", (uintmax_t)n - 1);
	shim_destroy_qp(&session.p.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&session.p.cq->cq));
}

/* One thread polls, one gets events, and the class changes while receives complete. */
enum { ORDERS = 400, ORDER_RECEIVES = 200 };

static struct {
	struct prog p;
	uint64_t come;
	uint64_t next;
	bool wrong;
} order;

static bool order_goes_on(void)
{
	coop_yield();
	return !order.wrong && order.next < ORDER_RECEIVES;
}

static void order_poll(void)
{
	struct ibv_wc wc;

	while (order_goes_on())
		if (prog_poll_one(&order.p, &wc))
			order.wrong |= wc.wr_id != order.next++;
}

static void order_news(void)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, order.p.cq);

	while (order_goes_on())
		shim_comp_is_news(c);
}

static void order_change(void)
{
	uint32_t i = 0;

	while (order_goes_on()) {
		fake_kernel.class_id = i++ % 2 ? RISO_CLASS_LATENCY : RISO_CLASS_BANDWIDTH;
		shim_set_class(&order.p.qp->ex.qp_base, fake_kernel.class_id);
	}
}

static void order_receive(void)
{
	struct fake_cq *cq = order.p.cq;

	while (order_goes_on())
		if (order.come < ORDER_RECEIVES)
			cq->ring[cq->tail++ % FAKE_CQ] = (struct fake_cqe) {
				.wc = { .wr_id = order.come++, .opcode = IBV_WC_RECV },
			};
}

static void (*const order_does[])(void) = {
	order_poll, order_news, order_change, order_receive,
};

static void order_thread(unsigned int thread)
{
	order_does[thread]();
}

static void receives_in_order(void **state)
{
	uint64_t n;

	(void)state;
	for (n = 1; n <= ORDERS && !order.wrong; n++) {
		memset(&order, 0, sizeof(order));
		fake_kernel.class_id = RISO_CLASS_LATENCY;
		fake_ctx = shim_open_device(&fake_verbs.device);
		order.p.cq = prog_make_cq(2 * PROG_DEPTH);
		order.p.qp = prog_make_qp(&order.p, order.p.cq, 0);
		coop_run(n, order_thread, ARRAY_SIZE(order_does));
		shim_destroy_qp(&order.p.qp->ex.qp_base);
		shim_destroy_cq(ibv_cq_ex_to_cq(&order.p.cq->cq));
		shim_close_device(fake_ctx);
		fake_ctx = NULL;
	}
	if (order.wrong)
		fail_msg("seed %ju", (uintmax_t)n - 1);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST_EMPTY(sessions_keep_lock),
	PROG_TEST_EMPTY(receives_in_order),
};

const struct prog_tests prog_session_tests = { tests, ARRAY_SIZE(tests) };
