// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Errors: the provider refuses a work request, at once or later, or a work request fails.
 * The program hears of each error once. What follows is flushed.
 */
#include <errno.h>

#include "post.h"
#include "prog.h"
#include "tests.h"

/* What the provider refuses in the call is refused by the call, and not charged. */
static void refused_at_once(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.mode = RISO_USER_OPEN;
	p->qp->refuse = EINVAL;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), EINVAL);
	p->qp->refuse = ENOMEM;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), ENOMEM);
	assert_int_equal(fake_kernel.u.path[0].posted, 0);
	assert_int_equal(fake_kernel.u.path[0].want, 0);
	p->qp->refuse = 0;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, 1);
	prog_expect(p, 2, IBV_WC_SUCCESS);
}

/* What it refuses later completes with an error, and so does what follows. */
static void refused_later(void **state)
{
	struct prog *p = *state;

	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, 0), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	p->qp->refuse = EIO;
	fake_grant(RISO_USER_TX, MB);
	prog_expect_none(p);
	prog_expect(p, 1, IBV_WC_LOC_QP_OP_ERR);
	prog_expect(p, 2, IBV_WC_WR_FLUSH_ERR);
	prog_expect_none(p);
	assert_true(p->qp->err);
}

/* The provider tells of it, so that there is an event. */
static void refused_event(void **state)
{
	struct prog *p = *state;
	uint64_t i;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, 1, 8 * FAKE_CHUNK, 0), 0);
	for (i = 2; i < 5; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, i, 8, 0), 0);
	p->qp->refuse = EINVAL;
	p->qp->refuse_len = true;
	prog_arm(p);
	fake_grant(RISO_USER_RX, MB);
	fake_grant(RISO_USER_TX, MB);
	prog_drive(p);
	assert_true(p->qp->err);
	assert_int_equal(p->qp->posted, 4);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, 1);
	prog_expect(p, 1, IBV_WC_LOC_QP_OP_ERR);
	for (i = 2; i < 5; i++)
		prog_expect(p, i, IBV_WC_WR_FLUSH_ERR);
	prog_expect_none(p);
	for (i = 0; i < RISO_USER_DIRS; i++) {
		assert_int_equal(fake_kernel.u.path[i].want, 0);
		assert_int_equal(fake_kernel.u.path[i].posted, fake_kernel.u.path[i].done);
	}
}

/* A message is refused from one of its pieces on. */
static void post_refused(struct prog *p, uint32_t from)
{
	p->qp->refuse = EINVAL;
	p->qp->refuse_from = from;
	p->qp->refuse_len = true;
	fake_grant(RISO_USER_TX, MB);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1,
				   (SHIM_BATCH + 4) * FAKE_CHUNK, 0), 0);
}

/* A message of which a part is out is not the caller's any more. */
static void expect_refused(struct prog *p)
{
	assert_true(p->qp->err);
	p->qp->refuse = 0;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, 0), 0);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_LOC_QP_OP_ERR);
	prog_expect(p, 2, IBV_WC_WR_FLUSH_ERR);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
}

static void refused_midway(void **state)
{
	post_refused(*state, SHIM_BATCH / 2);
	expect_refused(*state);
}

static void refused_first_of_batch(void **state)
{
	struct prog *p = *state;

	post_refused(p, SHIM_BATCH);
	/* The next batch has room then. */
	fake_run(p->qp, UINT32_MAX);
	prog_expect_none(p);
	expect_refused(p);
}

/* It refuses whatever comes after an error. What was out completes once, and no more. */
static void refused_in_error(void **state)
{
	struct prog *p = *state;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 3 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	p->qp->refuse = EINVAL;
	p->qp->err = true;
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_WR_FLUSH_ERR);
	prog_expect(p, 2, IBV_WC_WR_FLUSH_ERR);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
}

/* The second call of post_send and all that follow are refused. */
static struct fake_qp *refuser;

static void refuse_second(void)
{
	if (refuser->doorbells && ++fake_verbs.calls == 2)
		refuser->refuse = EINVAL;
}

/* A post that fails does not complete, and one that completes has not failed. */
static void refused_or_completed(void **state)
{
	struct prog *p = *state;
	struct ibv_wc wc;
	int err, num = 0;

	fake_grant(RISO_USER_TX, fake_cost(8));
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	p->qp->fail_at = 0;
	fake_run(p->qp, 1);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	refuser = p->qp;
	fake_verbs.calls = 0;
	fake_verbs.at_call = refuse_second;
	err = prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 3 * FAKE_CHUNK, IBV_SEND_SIGNALED);
	fake_verbs.at_call = NULL;
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	while (prog_poll_one(p, &wc) > 0)
		num += wc.wr_id == 2;
	assert_int_equal(num, err ? 0 : 1);
}

/* The first error of a message is told, once; what follows is flushed. */
static void error_in_the_middle(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	p->qp->fail_at = 3;
	for (i = 0; i < 4; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, i, 16 * FAKE_CHUNK,
					   i & 1 ? 0 : IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 6 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 0, IBV_WC_REM_ACCESS_ERR);
	prog_expect_none(p);
	fake_run(p->qp, UINT32_MAX);
	for (i = 1; i < 4; i++)
		prog_expect(p, i, IBV_WC_WR_FLUSH_ERR);
	prog_expect_none(p);
	/* The rest of the first was not posted, the others were not cut. */
	assert_int_equal(p->qp->posted, 6 + 3);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
	/* And who posts later hears of it. */
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 9, MB, 0), 0);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 9, IBV_WC_WR_FLUSH_ERR);
}

/* The rest of a message that has failed is all that is held. */
static void error_at_the_end(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);

	p->qp->fail_at = 0;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1,
				   2 * SHIM_SLOTS * FAKE_CHUNK, IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, SHIM_SLOTS * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, SHIM_SLOTS);
	assert_int_equal(prog_post(other, IBV_WR_RDMA_WRITE, 2, 3 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	/* The other has its turn all the same. */
	fake_run(p->qp, UINT32_MAX);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect(p, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(f->ctx->m->num_busy, 1);
	assert_int_equal(p->qp->posted, SHIM_SLOTS);
	assert_int_equal(other->posted, 1);
	shim_destroy_qp(&other->ex.qp_base);
	assert_int_equal(f->ctx->m->num_busy, 0);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(refused_at_once),
	PROG_TEST(refused_later),
	PROG_TEST(refused_event),
	PROG_TEST(refused_midway),
	PROG_TEST(refused_first_of_batch),
	PROG_TEST(refused_in_error),
	PROG_TEST(refused_or_completed),
	PROG_TEST(error_in_the_middle),
	PROG_TEST(error_at_the_end),
};

const struct prog_tests prog_error_tests = { tests, ARRAY_SIZE(tests) };
