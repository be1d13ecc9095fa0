// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arming a CQ: what was taken on behalf of a program that sleeps raises an event.
 */
#include <pthread.h>

#include "member.h"
#include "post.h"
#include "prog.h"
#include "shim.h"
#include "tests.h"

/* What a program posts that has armed, and computes, goes on as grants come. */
static void armed_computes(void **state)
{
	struct prog *p = *state;
	uint32_t rounds, i, events;

	for (i = 0; i < 2; i++) {
		prog_arm(p);
		if (i)
			prog_expect_none(p);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 64 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		for (rounds = 0; rounds < 128 / SHIM_SLOTS; rounds++) {
			fake_grant(RISO_USER_TX, SHIM_SLOTS * fake_cost(FAKE_CHUNK));
			prog_help(p);
			fake_run(p->qp, UINT32_MAX);
		}
		assert_int_equal(p->qp->posted, 128 * (i + 1));
		/* There is one more in the CQ, which raises an event. */
		events = p->cq->events;
		prog_arm(p);
		assert_int_equal(p->cq->events, events + 1);
		prog_expect(p, 1, IBV_WC_SUCCESS);
		prog_expect(p, 2, IBV_WC_SUCCESS);
		fake_kernel.now += 20 * MSEC;
	}
}

/*
 * Who arms, and sleeps without another poll, hears of what was taken when a piece of what
 * is held has completed, the next one.
 */
static void armed(void **state)
{
	struct prog *p = *state;
	uint32_t events;

	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_help(p);
	assert_int_equal(p->cq->head, p->cq->tail);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	events = p->cq->events;
	prog_arm(p);
	assert_int_equal(p->cq->events, events);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_help(p);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, events + 1);
	/* Only that one. */
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_help(p);
	assert_int_equal(p->qp->posted, 4);
	assert_false(p->qp->sq[3].wr.send_flags & IBV_SEND_SIGNALED);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	/* Nor any for who has polled since. */
	prog_arm(p);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_help(p);
	assert_int_equal(p->qp->posted, 5);
	assert_false(p->qp->sq[4].wr.send_flags & IBV_SEND_SIGNALED);
}

/* Nothing of ours raises a solicited event: one is taken for which there was one. */
static void armed_solicited(void **state)
{
	struct prog *p = *state;
	struct ibv_cq *cq = ibv_cq_ex_to_cq(&p->cq->cq);

	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	fake_receive(p->cq);
	fake_receive(p->cq);
	/* It has polled, and is not armed any more. */
	prog_help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 3);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	prog_help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 1);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	prog_help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 2);
}

static void count_unlocked(void)
{
	struct shim_ctx *c = shim_map_find(&shim_ctxs, fake_ctx);

	if (pthread_mutex_trylock(&c->m->lock))
		return;
	pthread_mutex_unlock(&c->m->lock);
	fake_verbs.calls++;
}

/* It leaves class latency, and hears of what is taken. */
static void expect_left(struct prog *p)
{
	uint32_t events;

	prog_choose(p, RISO_CLASS_BANDWIDTH);
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_run(p->qp, UINT32_MAX);
	events = p->cq->events;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	prog_arm(p);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, events + 1);
	prog_pump(p, 1, 2);
}

/* Class latency arms without a lock. */
static void latency_arms(void **state)
{
	struct prog *p = *state;

	prog_choose(p, RISO_CLASS_LATENCY);
	fake_verbs.calls = 0;
	fake_verbs.at_call = count_unlocked;
	prog_arm(p);
	fake_verbs.at_call = NULL;
	assert_int_equal(fake_verbs.calls, 1);
	expect_left(p);
}

static void latency_arms_no_more(void **state)
{
	struct prog *p = *state;

	prog_arm(p);
	prog_choose(p, RISO_CLASS_LATENCY);
	prog_expect_none(p);
	expect_left(p);
}

/* What was taken before is told when the last that is held has completed. */
static void armed_late(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel = {};

	p->cq->cq.channel = &channel;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, 0), 0);
	fake_grant(RISO_USER_TX, MB);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 3, 8, 0), 0);
	assert_int_equal(p->qp->posted, 3);
	prog_arm(p);
	assert_int_equal(p->cq->events, 0);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect_none(p);
}

/* The program that waits for events */
static void count_call(void)
{
	fake_verbs.calls++;
}

/* One takes a completion of the first queue pair, and has armed; the second one holds. */
static uint32_t sleep_beside(struct prog *p, struct fake_qp *other)
{
	uint32_t events;

	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(other, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	prog_help(p);
	assert_int_equal(p->cq->head, p->cq->tail);
	events = p->cq->events;
	prog_arm(p);
	assert_int_equal(p->cq->events, events);
	return events;
}

/* Who sleeps is woken up although the queue pair that would do so is destroyed. */
static void armed_and_destroyed(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	uint32_t events = sleep_beside(p, other);

	fake_verbs.runs_on = other;
	assert_int_equal(shim_destroy_qp(&other->ex.qp_base), 0);
	fake_verbs.runs_on = NULL;
	assert_int_equal(p->cq->events, events + 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

/* One that is put into error brings its events by itself: that does not wait. */
static void armed_and_in_error(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	sleep_beside(p, other);
	fake_verbs.calls = 0;
	fake_verbs.at_call = count_call;
	assert_int_equal(shim_modify_qp(&other->ex.qp_base, &attr, IBV_QP_STATE), 0);
	fake_verbs.at_call = NULL;
	assert_true(fake_verbs.calls < 10);
	fake_verbs.runs_on = other;
	shim_destroy_qp(&other->ex.qp_base);
	fake_verbs.runs_on = NULL;
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(armed_computes),
	PROG_TEST(armed),
	PROG_TEST(armed_solicited),
	PROG_TEST(armed_late),
	PROG_TEST(latency_arms),
	PROG_TEST(latency_arms_no_more),
	PROG_TEST(armed_and_destroyed),
	PROG_TEST(armed_and_in_error),
};

const struct prog_tests prog_arm_tests = { tests, ARRAY_SIZE(tests) };
