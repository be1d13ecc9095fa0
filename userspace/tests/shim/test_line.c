// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whose turn it is among flows that hold something, and that a device which is open no longer
 * holds them again.
 */
#include <string.h>

#include "prog.h"
#include "tests.h"

enum { MANY = 64 };

/* What is posted while the device is open goes straight, and what comes after waits. */
static void closes_again(void **state)
{
	struct prog *p = *state;
	uint32_t round;

	for (round = 0; round < 3; round++) {
		uint32_t before = p->qp->posted;

		fake_kernel.k.mode = RISO_USER_OPEN;
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, IBV_SEND_SIGNALED), 0);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, MB, IBV_SEND_SIGNALED), 0);
		assert_int_equal(p->qp->posted, before + 2);
		fake_kernel.k.mode = RISO_USER_PACED;
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, 4 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		assert_int_equal(p->qp->posted, before + 2);
		fake_run(p->qp, UINT32_MAX);
		prog_expect(p, 1, IBV_WC_SUCCESS);
		prog_expect(p, 2, IBV_WC_SUCCESS);
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		prog_expect_none(p);
		assert_int_equal(p->qp->posted, before + 3);
		assert_int_equal(fake_len(&p->qp->sq[(before + 2) % FAKE_SQ].wr), FAKE_CHUNK);
		fake_grant(RISO_USER_TX, 3 * fake_cost(FAKE_CHUNK));
		prog_expect_none(p);
		fake_run(p->qp, UINT32_MAX);
		prog_expect(p, 3, IBV_WC_SUCCESS);
	}
}

/* A queue pair in error gives the device what it holds, though another one is before it. */
static void error_jumps(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(other, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	p->qp->fail_at = 0;
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(other->posted, 0);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 3, IBV_WC_WR_FLUSH_ERR);
	shim_destroy_qp(&other->ex.qp_base);
}

/* A poll that finds a grant for one costs the same, however many wait. */
static void looks_at_few(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp[MANY];
	uint32_t i, posted, most = 0, least = UINT32_MAX;
	int clocks;

	fake_verbs.max_cqe = 64 * MANY;
	shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq), MANY);
	for (i = 0; i < MANY; i++) {
		qp[i] = prog_make_qp(p, p->cq, 0);
		assert_int_equal(prog_post(qp[i], IBV_WR_RDMA_WRITE, i, 8 * FAKE_CHUNK, 0), 0);
	}
	for (i = 0; i < 2 * MANY; i++) {
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		clocks = fake_kernel.clocks;
		prog_expect_none(p);
		assert_true(fake_kernel.clocks - clocks <= 4);
	}
	/* And each of them had as many turns. */
	for (i = 0; i < MANY; i++) {
		posted = qp[i]->posted;
		most = posted > most ? posted : most;
		least = posted < least ? posted : least;
		shim_destroy_qp(&qp[i]->ex.qp_base);
	}
	assert_int_equal(least, 2);
	assert_int_equal(most, 2);
}

static int (*real_post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

/* As if another thread had polled the completion, and used the memory for something else */
static int post_and_reuse(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int err = real_post(qp, wr, bad_wr);

	memset(wr, 0xff, sizeof(*wr));
	return err;
}

/* What the provider has is not looked at any more. */
static void posted_is_gone(void **state)
{
	struct prog *p = *state;
	struct shim_ctx *ctx = ((struct shim_qp *)shim_map_find(&shim_qps, p->qp))->ctx;
	uint64_t before;

	fake_kernel.k.mode = RISO_USER_OPEN;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, IBV_SEND_SIGNALED), 0);
	real_post = ctx->ops.post_send;
	ctx->ops.post_send = post_and_reuse;
	before = fake_kernel.u.passed[0].bytes[RISO_USER_TX];
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, MB, IBV_SEND_SIGNALED), 0);
	ctx->ops.post_send = real_post;
	assert_int_equal(fake_kernel.u.passed[0].bytes[RISO_USER_TX] - before, fake_cost(MB));
}

/* Flows that need not wait for room any more want grants again, though they are not the first. */
static void back_in_line_wants(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp[4];
	uint32_t i;

	fake_kernel.k.window = 2 * fake_cost(FAKE_CHUNK);
	for (i = 0; i < 4; i++) {
		qp[i] = prog_make_qp(p, p->cq, 0);
		fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK));
		assert_int_equal(prog_post(qp[i], IBV_WR_RDMA_WRITE, i, 16 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		prog_expect_none(p);
		assert_int_equal(qp[i]->posted, 2);
	}
	assert_int_equal(fake_kernel.u.path[RISO_USER_TX].want, 0);
	for (i = 0; i < 4; i++)
		fake_run(qp[i], UINT32_MAX);
	prog_expect_none(p);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.u.path[RISO_USER_TX].want, 4 * 14 * fake_cost(FAKE_CHUNK));
	for (i = 0; i < 4; i++)
		shim_destroy_qp(&qp[i]->ex.qp_base);
}

/* What is tried before its turn is not paid for with a grant that is void. */
static void void_before_turn(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);

	fake_kernel.k.sparse = 0;
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK, IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(other, IBV_WR_RDMA_READ, 2, FAKE_CHUNK, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	fake_kernel.now += 50 * MSEC;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, FAKE_CHUNK, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	shim_destroy_qp(&other->ex.qp_base);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(closes_again),
	PROG_TEST(error_jumps),
	PROG_TEST(looks_at_few),
	PROG_TEST(posted_is_gone),
	PROG_TEST(back_in_line_wants),
	PROG_TEST(void_before_turn),
};

const struct prog_tests prog_line_tests = { tests, ARRAY_SIZE(tests) };
