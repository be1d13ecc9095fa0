// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The states of a queue pair: the table of transitions, and what a step does besides.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prog.h"
#include "soft.h"
#include "state.h"
#include "tests.h"

/* Short names, for a table with one state a line; NO is an impossible event. */
enum {
	NO = SHIM_QP_NEW,
	GONE = SHIM_QP_GONE,
	QUEUED = SHIM_QP_QUEUED,
	QUEUED_J = SHIM_QP_QUEUED_JOINING,
	HOLDING = SHIM_QP_HOLDING,
	HOLDING_J = SHIM_QP_HOLDING_JOINING,
	LEAVING = SHIM_QP_LEAVING,
	DIRECT_J = SHIM_QP_DIRECT_JOINING,
	DIRECT = SHIM_QP_DIRECT,
};

static const uint8_t expected[SHIM_QP_STATES][SHIM_ON_EVENTS] = {
	/*	       JOIN	  GOVERN   HOLD       EMPTY     PASS	   CLEAR     DETACH */
	[NO] =	      { QUEUED_J,  NO,	    NO,	       NO,	 DIRECT,   NO,	     GONE },
	[GONE] =      { NO,	   NO,	    NO,	       NO,	 NO,	   NO,	     NO },
	[QUEUED] =    { QUEUED_J,  NO,	    HOLDING,   NO,	 LEAVING,  NO,	     GONE },
	[QUEUED_J] =  { NO,	   QUEUED,  HOLDING_J, NO,	 DIRECT_J, NO,	     NO },
	[HOLDING] =   { HOLDING_J, NO,	    NO,	       QUEUED,	 NO,	   NO,	     NO },
	[HOLDING_J] = { NO,	   HOLDING, NO,	       QUEUED_J, NO,	   NO,	     NO },
	[LEAVING] =   { DIRECT_J,  NO,	    HOLDING,   NO,	 LEAVING,  DIRECT,   GONE },
	[DIRECT_J] =  { NO,	   QUEUED,  NO,	       NO,	 DIRECT_J, DIRECT_J, NO },
	[DIRECT] =    { DIRECT_J,  NO,	    HOLDING,   NO,	 DIRECT,   DIRECT,   GONE },
};

static void each_transition(void **state)
{
	int from, event;

	(void)state;
	for (from = 0; from < SHIM_QP_STATES; from++)
		for (event = 0; event < SHIM_ON_EVENTS; event++)
			assert_int_equal(shim_get_next_state(from, event),
					 expected[from][event]);
}

static void each_state(void **state)
{
	static const struct {
		bool direct, tagged, holds;
	} is[SHIM_QP_STATES] = {
		[QUEUED] = { .tagged = true },
		[QUEUED_J] = { .tagged = true },
		[HOLDING] = { .tagged = true, .holds = true },
		[HOLDING_J] = { .tagged = true, .holds = true },
		[LEAVING] = { .direct = true, .tagged = true },
		[DIRECT_J] = { .direct = true, .tagged = true },
		[DIRECT] = { .direct = true },
	};
	int s;

	(void)state;
	for (s = 0; s < SHIM_QP_STATES; s++) {
		assert_int_equal(shim_state_is_direct(s), is[s].direct);
		assert_int_equal(shim_state_is_tagged(s), is[s].tagged);
		assert_int_equal(shim_state_holds(s), is[s].holds);
	}
}

/* Add to @reached what follows in one step. */
static uint32_t add_next(uint32_t reached, enum shim_qp_state from)
{
	enum shim_qp_state to;
	int event;

	for (event = 0; event < SHIM_ON_EVENTS; event++) {
		to = shim_get_next_state(from, event);
		if (to != SHIM_QP_NEW)
			reached |= 1U << to;
	}
	return reached;
}

/* The states that may follow one, and itself */
static uint32_t states_behind(enum shim_qp_state first)
{
	uint32_t reached = 1U << first;
	int round, s;

	for (round = 0; round < SHIM_QP_STATES; round++)
		for (s = 0; s < SHIM_QP_STATES; s++)
			if (reached & (1U << s))
				reached = add_next(reached, s);
	return reached;
}

/* Each state comes after a new one, and a gone one after each. */
static void no_dead_end(void **state)
{
	int s;

	(void)state;
	assert_int_equal(states_behind(SHIM_QP_NEW), (1U << SHIM_QP_STATES) - 1);
	for (s = 0; s < SHIM_QP_STATES; s++)
		assert_true(states_behind(s) & (1U << GONE));
}

/* Take one step from a state; what the flow and its CQ count must agree with it. */
static void expect_step(struct shim_qp *f, enum shim_qp_state from, enum shim_qp_event event)
{
	enum shim_qp_state to = expected[from][event];
	bool stops = shim_state_is_direct(from) && !shim_state_is_direct(to);

	f->state = from;
	f->cq->tagged = shim_state_is_tagged(from);
	f->ctx->tagged = shim_state_is_tagged(from);
	shim_cq_update(f->cq);
	f->accepted = 3;
	f->finished = 1;
	f->sq.direct = false;
	shim_qp_step(f, event);
	assert_int_equal(f->state, to);
	assert_int_equal(shim_qp_is_direct(f), shim_state_is_direct(to));
	assert_int_equal(shim_qp_holds(f), shim_state_holds(to));
	assert_int_equal(f->cq->tagged, shim_state_is_tagged(to));
	assert_int_equal(f->ctx->tagged, shim_state_is_tagged(to));
	/* Its caller makes the CQ inactive. */
	assert_int_equal(f->cq->active, shim_state_is_tagged(from) || shim_state_is_tagged(to));
	assert_int_equal(f->finished, stops ? 3 : 1);
	assert_int_equal(f->sq.direct, stops);
}

static void each_step(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	enum shim_qp_state before = f->state;
	uint32_t tagged = f->cq->tagged;
	int from, event;

	assert_int_equal(before, QUEUED);
	for (from = 0; from < SHIM_QP_STATES; from++)
		for (event = 0; event < SHIM_ON_EVENTS; event++)
			if (expected[from][event] != NO)
				expect_step(f, from, event);
	f->state = before;
	f->cq->tagged = tagged;
	f->ctx->tagged = tagged;
	f->accepted = 0;
	f->finished = 0;
	f->sq.direct = false;
	shim_cq_update(f->cq);
}

/* Here an impossible event fails an assertion. */
static void impossible_step(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	int from, event, status;
	pid_t pid;

	for (from = 0; from < SHIM_QP_STATES; from++) {
		for (event = 0; event < SHIM_ON_EVENTS; event++) {
			if (expected[from][event] != NO)
				continue;
			pid = fork();
			if (!pid) {
				signal(SIGABRT, SIG_DFL);
				close(STDERR_FILENO);
				f->state = from;
				shim_qp_step(f, event);
				_exit(0);
			}
			assert_int_equal(waitpid(pid, &status, 0), pid);
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		}
	}
}

/* What a program does leads through the states as the picture says. */
static void way_of_program(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);

	assert_int_equal(f->state, QUEUED);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, IBV_SEND_SIGNALED), 0);
	assert_int_equal(f->state, HOLDING);
	/* A latency flow may post at once, and passes when its pieces are complete. */
	prog_choose(p, RISO_CLASS_LATENCY);
	prog_pump(p, 1, 1);
	assert_int_equal(f->state, DIRECT);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	assert_int_equal(f->state, QUEUED);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	prog_choose(p, RISO_CLASS_LATENCY);
	/* It went whole, so calls pass while it is out. */
	assert_int_equal(f->state, LEAVING);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	assert_int_equal(f->state, QUEUED);
	prog_pump(p, 2, 1);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_transition),
	cmocka_unit_test(each_state),
	cmocka_unit_test(no_dead_end),
	PROG_TEST(each_step),
	PROG_TEST(impossible_step),
	PROG_TEST(way_of_program),
};

const struct prog_tests prog_state_tests = { tests, ARRAY_SIZE(tests) };
