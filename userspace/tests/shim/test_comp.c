// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions: how few the shim adds for itself, what it costs to poll for them, and that
 * the shim leaves alone what is not its own.
 */
#include <string.h>

#include "prog.h"
#include "tests.h"

/* Completions that nobody sees are few, as each may wake the program. */
static void few_hidden(void **state)
{
	struct prog *p = *state;
	uint32_t i, seen = 0;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * FAKE_CHUNK, 0), 0);
	for (i = 1; i <= 64; i++) {
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		prog_expect_none(p);
		assert_int_equal(p->qp->posted, i);
		fake_run(p->qp, UINT32_MAX);
		seen += p->cq->tail - p->cq->head;
	}
	assert_int_equal(seen, 64 / (SHIM_SLOTS / 2));
}

/* Nor do they fill the CQ of a program that posts and does not poll. */
static void few_hidden_open(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel = { .context = fake_ctx };
	struct ibv_qp_init_attr attr = p->attr;
	struct ibv_pd pd = { .context = fake_ctx };
	struct fake_qp *qp;
	uint64_t i;

	attr.cap.max_send_wr = 512;
	qp = (struct fake_qp *)shim_create_qp(&pd, &attr);
	assert_non_null(qp);
	attr.send_cq->channel = &channel;
	assert_int_equal(prog_post(qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(qp, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, fake_cost(8));
	prog_drive(p);
	assert_int_equal(fake_run(qp, 1), 1);
	/* The first is kept for the program now, which has not polled yet. */
	assert_int_equal(prog_post(qp, IBV_WR_SEND, 3, 8, 0), 0);
	assert_int_equal(p->cq->head, p->cq->tail);
	fake_kernel.k.mode = RISO_USER_OPEN;
	for (i = 4; i < 400; i++)
		assert_int_equal(prog_post(qp, IBV_WR_SEND, i, 8, 0), 0);
	assert_int_equal(qp->posted, 399);
	fake_run(qp, UINT32_MAX);
	assert_true(p->cq->tail - p->cq->head <= SHIM_SLOTS);
	shim_destroy_qp(&qp->ex.qp_base);
}

/* Polling for what is held reads the clock once while there is no news. */
static void polls_cheaply(void **state)
{
	struct prog *p = *state;
	uint32_t i;
	int clocks;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, SHIM_SLOTS * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, SHIM_SLOTS / 2 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, SHIM_SLOTS / 2);
	clocks = fake_kernel.clocks;
	for (i = 0; i < 100; i++)
		prog_expect_none(p);
	assert_int_equal(fake_kernel.clocks, clocks + 100);
	fake_run(p->qp, UINT32_MAX);
	prog_expect_none(p);
	assert_true(fake_kernel.clocks > clocks + 101);
	assert_int_equal(fake_kernel.u.path[0].done,
			 SHIM_SLOTS / 2 * fake_cost(FAKE_CHUNK));
	fake_kernel.k.mode = RISO_USER_OPEN;
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, SHIM_SLOTS / 2 + 1);
	prog_pump(p, 1, 1);
}

/* Who posts and does not poll makes way, too. */
static void post_reaps(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 64 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, 1);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	prog_pump(p, 1, 2);
}

/* Receives, and whatever else is in the CQ, are left alone. */
static void not_ours(void **state)
{
	struct prog *p = *state;
	struct fake_cqe *e;
	uint64_t i;

	for (i = 0; i < 100; i++) {
		e = &p->cq->ring[p->cq->tail++ % FAKE_CQ];
		memset(e, 0, sizeof(*e));
		e->wc.wr_id = i < 50 ? i * 8 : (uintptr_t)prog_local + i * 32;
		e->wc.qp_num = p->qp->ex.qp_base.qp_num;
		e->wc.opcode = IBV_WC_RECV;
		e->wc.status = i % 2 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR;
	}
	for (i = 0; i < 100; i++)
		prog_expect(p, i < 50 ? i * 8 : (uintptr_t)prog_local + i * 32,
			    i % 2 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	p->cq->overflow = false;
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(few_hidden),
	PROG_TEST(few_hidden_open),
	PROG_TEST(polls_cheaply),
	PROG_TEST(post_reaps),
	PROG_TEST(not_ours),
};

const struct prog_tests prog_comp_tests = { tests, ARRAY_SIZE(tests) };
