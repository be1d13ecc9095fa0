// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Room in CQs for queue pairs that fail: all that is out completes then, also work
 * requests that are not signaled.
 */
#include <string.h>

#include "prog.h"
#include "tests.h"

/*
 * Queue pairs that fail complete all that is out, also what nobody asked a completion for.
 * A program that gives its CQ an entry for each of its work requests loses none of them,
 * into however many chunks they are cut.
 */
enum { FAIL_QPS = 64, FAIL_WRS = 4 };

struct failing {
	struct prog p;
	struct fake_qp *qp[FAIL_QPS];
	uint32_t qps, wrs;
	bool seen[FAIL_QPS * FAIL_WRS];
};

/* All that is posted under grants is with the provider, and nothing has completed. */
static void begin_failing(struct failing *t, uint32_t qps, uint32_t wrs, int spare,
			  unsigned int flags)
{
	uint32_t i, k;

	memset(t, 0, sizeof(*t));
	t->qps = qps;
	t->wrs = wrs;
	t->p.cq = prog_make_cq(qps * wrs);
	fake_verbs.no_resize = spare;
	if (spare)
		t->p.cq->cq.cqe = qps * wrs + spare;
	for (i = 0; i < qps; i++) {
		t->qp[i] = prog_make_qp(&t->p, t->p.cq, 0);
		assert_non_null(shim_map_find(&shim_qps, t->qp[i]));
	}
	for (i = 0; i < qps; i++)
		for (k = 0; k < wrs; k++)
			assert_int_equal(prog_post(t->qp[i], IBV_WR_RDMA_WRITE,
						   i * wrs + k, MB, flags), 0);
	t->p.qp = t->qp[0];
	for (i = 0; i < 4; i++) {
		fake_grant(RISO_USER_TX, FAIL_QPS * SHIM_SLOTS * fake_cost(FAKE_CHUNK));
		prog_drive(&t->p);
	}
	/* Each has one piece out at least, with the entry that the program has for it. */
	for (i = 0; i < qps; i++)
		assert_true(t->qp[i]->posted || !(flags & IBV_SEND_SIGNALED));
}

static uint32_t see_failed(struct failing *t)
{
	uint32_t num = 0;
	struct ibv_wc wc;

	while (prog_poll_one(&t->p, &wc)) {
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
		assert_true(wc.wr_id < t->qps * t->wrs);
		assert_false(t->seen[wc.wr_id]);
		t->seen[wc.wr_id] = true;
		num++;
	}
	return num;
}

static void forget_failing(struct failing *t)
{
	uint32_t i;

	assert_false(t->p.cq->overflow);
	for (i = 0; i < t->qps; i++)
		shim_destroy_qp(&t->qp[i]->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&t->p.cq->cq));
	fake_verbs.no_resize = 0;
	fake_kernel.now += 20 * MSEC;
}

static void end_failing(struct failing *t)
{
	uint32_t i, num = 0, rounds;

	assert_false(t->p.cq->overflow);
	for (rounds = 0; rounds < 1000; rounds++) {
		num += see_failed(t);
		if (num == t->qps * t->wrs &&
		    fake_kernel.u.path[0].posted == fake_kernel.u.path[0].done)
			break;
		for (i = 0; i < t->qps; i++)
			fake_run(t->qp[i], UINT32_MAX);
	}
	assert_int_equal(num, t->qps * t->wrs);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
	forget_failing(t);
}

static const struct {
	uint32_t qps, wrs;
	int spare;	/* of a CQ that cannot be resized, 0 for one that can */
} failures[] = {
	{ 16, 1, 0 }, { 16, 4, 0 }, { 64, 4, 0 }, { 16, 1, 128 }, { 64, 4, 32 },
	{ 64, 1, 8 }, { 1, 1, 8 },
};

/* The peer is gone: all run into their timeouts. */
static void fail_at_once(void **state)
{
	struct failing t;
	uint32_t i, k, n;

	(void)state;
	for (n = 0; n < 2 * ARRAY_SIZE(failures); n++) {
		k = n / 2;
		begin_failing(&t, failures[k].qps, failures[k].wrs, failures[k].spare,
			      n % 2 ? IBV_SEND_SIGNALED : 0);
		for (i = 0; i < t.qps; i++)
			t.qp[i]->fail_at = 0;
		for (i = 0; i < t.qps; i++)
			fake_run(t.qp[i], UINT32_MAX);
		end_failing(&t);
	}
}

static void count_calls(void)
{
	fake_verbs.calls++;
}

/*
 * The program moves each to ERR before it polls. What a drain gives to the provider has
 * room, too, so that no call waits for a peer that is gone.
 */
static void fail_in_turn(void **state)
{
	struct failing t;
	uint32_t i, k, n;

	(void)state;
	for (n = 0; n < 2 * ARRAY_SIZE(failures); n++) {
		k = n / 2;
		begin_failing(&t, failures[k].qps, failures[k].wrs, failures[k].spare,
			      n % 2 ? IBV_SEND_SIGNALED : 0);
		fake_verbs.calls = 0;
		fake_verbs.at_call = count_calls;
		for (i = 0; i < t.qps; i++) {
			t.p.qp = t.qp[i];
			prog_modify(&t.p, IBV_QPS_ERR);
			fake_run(t.qp[i], UINT32_MAX);
		}
		fake_verbs.at_call = NULL;
		assert_true(fake_verbs.calls < 64 * FAIL_QPS);
		end_failing(&t);
	}
}

/* Eight queue pairs have as many chunks out as each may have. */
static void chunks_out(void **state)
{
	struct failing t;
	uint32_t i;

	(void)state;
	begin_failing(&t, 8, 1, 0, 0);
	for (i = 0; i < t.qps; i++) {
		assert_int_equal(t.qp[i]->posted, SHIM_SLOTS);
		t.qp[i]->err = true;
		fake_run(t.qp[i], UINT32_MAX);
	}
	end_failing(&t);
}

/*
 * A program that is told of a message has its entry again, and may fill it. What is out of
 * the message has none then.
 */
static void told_early(void **state)
{
	struct failing t;
	struct fake_qp *late;
	struct ibv_wc wc[4];
	uint32_t i, k;

	(void)state;
	begin_failing(&t, 4, 1, 20, IBV_SEND_SIGNALED);
	late = prog_make_qp(&t.p, t.p.cq, 0);
	t.p.cq->cq.cqe++;
	prog_reap_nothing(&t.p);
	for (i = 0; i < t.qps; i++) {
		assert_true(t.qp[i]->posted >= 5);
		t.qp[i]->err = true;
	}
	for (k = 0; k < SHIM_SLOTS; k++)
		for (i = 0; i < t.qps; i++)
			fake_run(t.qp[i], 1);
	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(&t.p.cq->cq), 4, wc), 4);
	for (i = 0; i < t.qps; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(prog_post(t.qp[i], IBV_WR_SEND, i, 8,
					   IBV_SEND_SIGNALED), 0);
		fake_run(t.qp[i], 1);
	}
	assert_int_equal(prog_post(late, IBV_WR_RDMA_WRITE, 9, MB, IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, SHIM_SLOTS * fake_cost(FAKE_CHUNK));
	prog_drive(&t.p);
	assert_true(late->posted > 1);
	late->err = true;
	fake_run(late, UINT32_MAX);
	shim_destroy_qp(&late->ex.qp_base);
	forget_failing(&t);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(fail_at_once),
	PROG_TEST(fail_in_turn),
	PROG_TEST(chunks_out),
	PROG_TEST(told_early),
};

const struct prog_tests prog_cq_fail_tests = { tests, ARRAY_SIZE(tests) };
