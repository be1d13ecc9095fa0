// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sizes of CQs: the entries that the shim adds to those that the program asks for, also
 * while the program resizes a CQ.
 */
#include <errno.h>

#include "prog.h"
#include "tests.h"

/* A flow that comes while a resize fails has entries for what nobody sees all the same. */
static void comes_while_resized(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	c = shim_map_find(&shim_cqs, p->cq);
	pthread_mutex_lock(&c->resize);
	p->qp = prog_make_qp(p, p->cq, 0);
	pthread_mutex_unlock(&c->resize);
	assert_true(c->spare >= SHIM_SPARE);
}

/* A provider that makes powers of two is not made to double what was asked for. */
static void cq_sizes(void **state)
{
	static const struct {
		int asked, made;
	} cases[] = {
		{ 1, 129 }, { 200, 255 }, { 900, 1023 }, { 991, 1023 }, { 992, 1120 },
		{ 1023, 1151 }, { 1024, 1152 }, { 1100, 1228 },
	};
	struct fake_cq *cq;
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		cq = prog_make_cq(cases[i].asked);
		assert_int_equal(cq->cq.cqe, cases[i].made);
		shim_destroy_cq(ibv_cq_ex_to_cq(&cq->cq));
	}
}

/* With what the real one could get, or as if there were no shim. */
static void limits(void **state)
{
	struct prog *p = *state;
	struct prog more = {};
	struct fake_qp *qp[8];
	uint32_t i;

	fake_ctx = shim_open_device(&fake_verbs.device);
	fake_verbs.max_qp_wr = PROG_DEPTH;
	p->cq = prog_make_cq(PROG_DEPTH);
	for (i = 0; i < 8; i++) {
		qp[i] = prog_make_qp(&more, p->cq, 0);
		assert_non_null(qp[i]);
		assert_int_equal(qp[i]->depth, PROG_DEPTH);
		assert_int_equal(more.attr.cap.max_send_wr, PROG_DEPTH);
	}
	assert_true(p->cq->cq.cqe >= PROG_DEPTH + 8 * SHIM_SLOTS);
	assert_non_null(shim_map_find(&shim_qps, qp[7]));
	/* What was asked for comes on top of what is ours. */
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq), 100), 0);
	assert_int_equal(p->cq->cq.cqe, 100 + 8 * SHIM_SLOTS);
	for (i = 0; i < 8; i++)
		shim_destroy_qp(&qp[i]->ex.qp_base);
}

/* A larger CQ has room for more that waits for who does not poll. */
static void resized(void **state)
{
	enum { MANY = 512 };
	struct ibv_pd pd = { .context = fake_ctx };
	struct ibv_qp_init_attr attr;
	struct prog q = {};
	uint64_t i;

	(void)state;
	fake_kernel.run_helper = true;
	q.cq = prog_make_cq(PROG_DEPTH);
	q.qp = prog_make_qp(&q, q.cq, 0);
	shim_destroy_qp(&q.qp->ex.qp_base);
	attr = q.attr;
	attr.cap.max_send_wr = MANY;
	q.qp = (struct fake_qp *)shim_create_qp(&pd, &attr);
	assert_non_null(q.qp);
	fake_kernel.k.window = 4 * fake_cost(FAKE_CHUNK);
	/* What it holds stays in order. */
	for (i = 0; i < 2 * PROG_DEPTH; i++) {
		assert_int_equal(prog_post(q.qp, IBV_WR_SEND, i, FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		prog_wait_posted(&q, i + 1);
		fake_run(q.qp, 1);
	}
	prog_expect(&q, 0, IBV_WC_SUCCESS);
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&q.cq->cq), 2 * MANY), 0);
	for (; i < MANY; i++) {
		assert_int_equal(prog_post(q.qp, IBV_WR_SEND, i, FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		fake_grant(RISO_USER_TX, 4 * fake_cost(FAKE_CHUNK));
		prog_wait_posted(&q, i + 1);
		fake_run(q.qp, UINT32_MAX);
	}
	for (i = 1; i < MANY; i++)
		prog_expect(&q, i, IBV_WC_SUCCESS);
	prog_expect_none(&q);
	/* As large as the device can, also with our own entries. */
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&q.cq->cq),
					fake_verbs.max_cqe), 0);
	assert_int_equal(q.cq->cq.cqe, fake_verbs.max_cqe);
	assert_int_not_equal(shim_resize_cq(ibv_cq_ex_to_cq(&q.cq->cq),
					    fake_verbs.max_cqe + 1), 0);
	assert_int_not_equal(shim_resize_cq(ibv_cq_ex_to_cq(&q.cq->cq), INT32_MAX), 0);
	assert_false(q.cq->overflow);
	shim_destroy_qp(&q.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&q.cq->cq));
}

static struct prog comer;

static void flow_comes(void)
{
	fake_verbs.at_call = NULL;
	fake_verbs.at_resized = NULL;
	comer.qp = prog_make_qp(&comer, comer.cq, 0);
}

/* A flow has the entries for its chunks that it counts on. */
static void expect_room(const struct shim_cq *c)
{
	assert_true(c->cq->cqe >= c->asked + SHIM_SLOTS);
	assert_int_equal(c->spare, c->cq->cqe - c->asked);
}

/* The first flow of a CQ may come while that is resized, and has room for all of it. */
static void resized_meanwhile(void **state)
{
	struct shim_cq *c;

	(void)state;
	comer.cq = prog_make_cq(PROG_DEPTH);
	c = shim_map_find(&shim_cqs, comer.cq);
	fake_verbs.at_call = flow_comes;
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&comer.cq->cq),
					8 * PROG_DEPTH), 0);
	assert_non_null(shim_map_find(&shim_qps, comer.qp));
	assert_int_equal(c->asked, 8 * PROG_DEPTH);
	assert_true(c->soft_num >= 8 * PROG_DEPTH + SHIM_SLOTS);
	expect_room(c);
	shim_destroy_qp(&comer.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&comer.cq->cq));
}

/* Also when the CQ is smaller already, and what the program has asked for is not known. */
static void resized_smaller(void **state)
{
	struct shim_cq *c;

	(void)state;
	comer.cq = prog_make_cq(8 * PROG_DEPTH);
	c = shim_map_find(&shim_cqs, comer.cq);
	fake_verbs.at_resized = flow_comes;
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&comer.cq->cq), PROG_DEPTH), 0);
	assert_non_null(shim_map_find(&shim_qps, comer.qp));
	assert_int_equal(c->asked, PROG_DEPTH);
	expect_room(c);
	shim_destroy_qp(&comer.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&comer.cq->cq));
}

/* And when it keeps its size. */
static void resized_in_vain(void **state)
{
	struct shim_cq *c;

	(void)state;
	comer.cq = prog_make_cq(PROG_DEPTH);
	c = shim_map_find(&shim_cqs, comer.cq);
	fake_verbs.at_call = flow_comes;
	fake_verbs.no_resize = 1;
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&comer.cq->cq),
					8 * PROG_DEPTH), EINVAL);
	assert_non_null(shim_map_find(&shim_qps, comer.qp));
	assert_int_equal(c->asked, PROG_DEPTH);
	expect_room(c);
	shim_destroy_qp(&comer.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&comer.cq->cq));
}

static const struct CMUnitTest tests[] = {
	PROG_TEST_EMPTY(comes_while_resized),
	PROG_TEST(cq_sizes),
	PROG_TEST_EMPTY(limits),
	PROG_TEST(resized),
	PROG_TEST(resized_meanwhile),
	PROG_TEST(resized_smaller),
	PROG_TEST(resized_in_vain),
};

const struct prog_tests prog_cq_size_tests = { tests, ARRAY_SIZE(tests) };
