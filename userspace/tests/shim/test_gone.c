// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A queue pair goes while a program sleeps for an event of it.
 */
#include <unistd.h>

#include "channel.h"
#include "prog.h"
#include "shim.h"
#include "tests.h"

static struct fake_qp *destroyed;

static void is_destroyed(void)
{
	fake_verbs.at_sleep = NULL;
	fake_verbs.runs_on = destroyed;
	assert_int_equal(shim_destroy_qp(&destroyed->ex.qp_base), 0);
	fake_verbs.runs_on = NULL;
}

/* Who sleeps on for the end of a message is woken up if that goes with its queue pair. */
static void asleep_and_destroyed(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	destroyed = prog_make_qp(p, p->cq, 0);
	prog_arm(p);
	channel_post_large(p, destroyed, 2);
	assert_int_equal(write(channel_ends[1], "..", 2), 2);
	fake_verbs.at_sleep = is_destroyed;
	channel_expect(&channel);
	assert_true(p->cq->taken > 1);
	prog_expect_none(p);
	channel_close();
}

/* Who has armed, has polled and sleeps is woken up, too. */
static void polled_and_destroyed(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	destroyed = prog_make_qp(p, p->cq, 0);
	prog_arm(p);
	prog_expect_none(p);
	channel_post_large(p, destroyed, 2);
	fake_verbs.at_sleep = is_destroyed;
	channel_expect(&channel);
	channel_close();
}

/* So is one while another queue pair holds something, in another CQ. */
static void destroyed_beside_another(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct fake_cq *other = prog_make_cq(2 * PROG_DEPTH);
	struct fake_qp *holds = prog_make_qp(p, other, 0);

	channel_open(p, &channel);
	destroyed = prog_make_qp(p, p->cq, 0);
	channel_know(p, &channel);
	channel_post_large(p, destroyed, 2);
	assert_int_equal(prog_post(holds, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK, 0), 0);
	fake_verbs.at_sleep = is_destroyed;
	channel_expect(&channel);
	channel_close();
}

static struct fake_qp *idle;

static void both_are_destroyed(void)
{
	assert_int_equal(shim_destroy_qp(&idle->ex.qp_base), 0);
	is_destroyed();
}

/* So is one when an idle queue pair goes before. */
static void destroyed_after_another(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	idle = prog_make_qp(p, p->cq, 0);
	destroyed = prog_make_qp(p, p->cq, 0);
	prog_arm(p);
	channel_post_large(p, destroyed, 2);
	fake_verbs.at_sleep = both_are_destroyed;
	channel_expect(&channel);
	channel_close();
}

static void fails_and_is_destroyed(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	fake_verbs.at_sleep = NULL;
	assert_int_equal(shim_modify_qp(&destroyed->ex.qp_base, &attr, IBV_QP_STATE), 0);
	fake_run(destroyed, UINT32_MAX);
	prog_help(channel_prog);
	assert_int_equal(shim_destroy_qp(&destroyed->ex.qp_base), 0);
}

/* The event of a completion that went with its queue pair is told, while another one holds. */
static void event_of_gone(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	destroyed = prog_make_qp(p, p->cq, 0);
	channel_know(p, &channel);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	assert_int_equal(prog_post(destroyed, IBV_WR_RDMA_WRITE, 1, 100,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(destroyed->posted, 1);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK, 0), 0);
	prog_expect_none(p);
	fake_verbs.at_sleep = fails_and_is_destroyed;
	channel_expect(&channel);
	channel_close();
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(asleep_and_destroyed),
	PROG_TEST(polled_and_destroyed),
	PROG_TEST(destroyed_beside_another),
	PROG_TEST(destroyed_after_another),
	PROG_TEST(event_of_gone),
};

const struct prog_tests prog_gone_tests = { tests, ARRAY_SIZE(tests) };
