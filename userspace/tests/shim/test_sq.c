// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Room in send queues: how many work requests a program may have, how many chunks are
 * out, and what goes straight to the provider.
 */
#include <errno.h>

#include "prog.h"
#include "tests.h"

static void told_what_was_asked(void **state)
{
	struct prog *p = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(p->attr.cap.max_send_wr, PROG_DEPTH);
	assert_int_equal(p->qp->depth, PROG_DEPTH + SHIM_SLOTS);
	assert_int_equal(shim_query_qp(&p->qp->ex.qp_base, &attr, 0, &init), 0);
	assert_int_equal(attr.cap.max_send_wr, PROG_DEPTH);
	assert_int_equal(init.cap.max_send_wr, PROG_DEPTH);
}

/* As many as the program asked for, and again as soon as it has polled. */
static void depth(struct prog *p, uint32_t len)
{
	uint32_t i, round;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < PROG_DEPTH; i++)
			assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, i, len,
						   i == PROG_DEPTH / 2 ||
						   i == PROG_DEPTH - 1 ?
						   IBV_SEND_SIGNALED : 0), 0);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 99, len, 0), ENOMEM);
		prog_pump(p, PROG_DEPTH / 2, 1);
		if (fake_kernel.k.mode == RISO_USER_OPEN) {
			prog_expect(p, PROG_DEPTH - 1, IBV_WC_SUCCESS);
			continue;
		}
		for (i = 0; i <= PROG_DEPTH / 2; i++)
			assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 50, len,
						   0), 0);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 99, len, 0), ENOMEM);
		prog_pump(p, PROG_DEPTH - 1, 1);
		for (i = PROG_DEPTH / 2 + 1; i < PROG_DEPTH; i++)
			assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 60, len,
						   i == PROG_DEPTH - 1 ?
						   IBV_SEND_SIGNALED : 0), 0);
		prog_pump(p, 60, 1);
	}
}

static void depth_paced(void **state)
{
	depth(*state, 10 * FAKE_CHUNK);
}

static void depth_open(void **state)
{
	struct prog *p = *state;
	uint32_t i, round;

	fake_kernel.k.mode = RISO_USER_OPEN;
	for (round = 0; round < 5; round++) {
		for (i = 0; i < PROG_DEPTH; i++)
			assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, i, MB,
						   i == PROG_DEPTH / 2 ||
						   i == PROG_DEPTH - 1 ?
						   IBV_SEND_SIGNALED : 0), 0);
		fake_run(p->qp, UINT32_MAX);
		prog_expect(p, PROG_DEPTH / 2, IBV_WC_SUCCESS);
		prog_expect(p, PROG_DEPTH - 1, IBV_WC_SUCCESS);
		prog_expect_none(p);
	}
	assert_int_equal(p->qp->posted, 5 * PROG_DEPTH);
	/* All that followed the first signaled one went straight. */
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
	assert_int_equal(fake_kernel.u.path[0].posted, (PROG_DEPTH / 2 + 1) * fake_cost(MB));
	assert_int_equal(fake_kernel.u.path[0].posted + fake_kernel.u.passed[0].bytes[0],
			 5 * PROG_DEPTH * fake_cost(MB));
	assert_int_equal(fake_kernel.u.path[0].debt, 0);
}

static void slots_bound(void **state)
{
	struct prog *p = *state;
	uint32_t most = 0;
	uint64_t gb = 1ULL << 30;
	struct ibv_wc wc;
	int n = 0;

	/* The provider does not move these. */
	struct ibv_sge sge = { .addr = (uintptr_t)prog_local, .length = gb };
	struct ibv_send_wr wr = {
		.wr_id = 42,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, &wr, &bad), 0);
	while (!n) {
		fake_grant(RISO_USER_TX, 64 * fake_cost(FAKE_CHUNK));
		/* What it points to is not there: only the start is looked at. */
		while (p->qp->run != p->qp->posted) {
			p->qp->sq[p->qp->run % FAKE_SQ].wr.num_sge = 0;
			if (p->qp->posted - p->qp->run > most)
				most = p->qp->posted - p->qp->run;
			fake_run(p->qp, 1);
		}
		n = prog_poll_one(p, &wc);
	}
	assert_int_equal(wc.wr_id, 42);
	assert_int_equal(p->qp->posted, gb / FAKE_CHUNK);
	assert_int_equal(most, SHIM_SLOTS);
	assert_true(p->cq->most <= SHIM_SLOTS);
	fake_check_books();
}

static void window_bound(void **state)
{
	struct prog *p = *state;
	uint32_t window, i;

	for (window = 1; window <= 5; window++) {
		fake_kernel.k.window = window * fake_cost(FAKE_CHUNK);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 9, 64 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		for (i = 0; p->qp->run != p->qp->posted || i < 2; i++) {
			fake_grant(RISO_USER_TX, 64 * fake_cost(FAKE_CHUNK));
			prog_expect_none(p);
			assert_true(p->qp->posted - p->qp->run <= window);
			assert_true(fake_kernel.u.path[0].posted -
				    fake_kernel.u.path[0].done <= fake_kernel.k.window);
			if (p->qp->posted % 64 == 0 && i)
				break;
			fake_run(p->qp, 1);
		}
		prog_pump(p, 9, 1);
	}
	assert_int_equal(p->qp->posted, 5 * 64);
}

/* Unsignaled from an open time fill the window; one piece may go all the same. */
static void never_stuck(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	fake_kernel.k.mode = RISO_USER_OPEN;
	for (i = 0; i < PROG_DEPTH - 1; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, i, MB, 0), 0);
	fake_run(p->qp, UINT32_MAX);
	fake_kernel.k.mode = RISO_USER_PACED;
	fake_kernel.granted[RISO_USER_RX] += fake_kernel.u.path[RISO_USER_RX].posted;
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, 33, MB,
				   IBV_SEND_SIGNALED), 0);
	prog_pump(p, 33, 1);
	assert_int_equal(fake_kernel.u.path[1].posted, fake_kernel.u.path[1].done);
}

/* A device whose send queue has hardly more entries than the program wants */
static void setup_tight(struct prog *p)
{
	fake_verbs.max_qp_wr = PROG_DEPTH + 4;
	prog_setup_as(p, 0);
	assert_int_equal(p->qp->depth, PROG_DEPTH + 4);
}

/* What went straight to the provider takes room there when the flow is held again. */
static void direct_takes_room(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	setup_tight(p);
	prog_choose(p, RISO_CLASS_LATENCY);
	for (i = 0; i < PROG_DEPTH / 2; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, i, 8, 0), 0);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 20, 15 * FAKE_CHUNK, 0), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 21, 8, IBV_SEND_SIGNALED), 0);
	prog_pump(p, 21, 1);
}

/* Pieces that are out leave less room than the program knows of. */
static void pieces_take_room(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	setup_tight(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 0, 12 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 12 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 12);
	prog_choose(p, RISO_CLASS_LATENCY);
	for (i = 1; i < PROG_DEPTH; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, i, 8,
					   IBV_SEND_SIGNALED), 0);
	prog_pump(p, 0, PROG_DEPTH);
	/* It goes straight again. */
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 77, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->sq[p->qp->posted - 1].wr.wr_id, 77);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 77, IBV_WC_SUCCESS);
}

/* What went straight and completed leaves room. */
static void latency_makes_room(void **state)
{
	struct prog *p = *state;
	uint64_t i;

	fake_kernel.k.mode = RISO_USER_OPEN;
	for (i = 1; i < PROG_DEPTH; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, i, 8, 0), 0);
	prog_choose(p, RISO_CLASS_LATENCY);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, PROG_DEPTH, IBV_WC_SUCCESS);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	for (i = 1; i < PROG_DEPTH; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, i, 8, 0), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, PROG_DEPTH, IBV_WC_SUCCESS);
}

/* The next READs go out before the last one that there may be completes. */
static void reads_overlap(void **state)
{
	struct prog *p = *state;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_RX, 16 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 4);
	fake_run(p->qp, 3);
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 7);
	prog_pump(p, 1, 1);
}

/* A CQ is not active any more once the last piece of before class latency has completed. */
static void pieces_end_in_latency(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 4 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 4 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	prog_choose(p, RISO_CLASS_LATENCY);
	assert_true(c->active);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect_none(p);
	assert_false(c->active);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(told_what_was_asked),
	PROG_TEST(depth_paced),
	PROG_TEST(depth_open),
	PROG_TEST(slots_bound),
	PROG_TEST(window_bound),
	PROG_TEST(never_stuck),
	PROG_TEST_EMPTY(direct_takes_room),
	PROG_TEST_EMPTY(pieces_take_room),
	PROG_TEST(pieces_end_in_latency),
	PROG_TEST(latency_makes_room),
	PROG_TEST(reads_overlap),
};

const struct prog_tests prog_sq_tests = { tests, ARRAY_SIZE(tests) };
