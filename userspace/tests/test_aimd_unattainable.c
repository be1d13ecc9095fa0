// SPDX-License-Identifier: GPL-2.0
/*
 * These cases miss a target that the laws of userspace/lib/aimd.c cannot meet. One case starts
 * the agent again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aimd.h"
#include "aimd_law.h"

static void gives_up(void **state)
{
	unsigned int law;

	(void)state;
	for (law = 0; law < 2; law++) {
		struct aimd_output out;
		uint64_t since;

		law_begin(law, 2, 2, 2);
		law_params.give_up = true;
		/* The floor has half the latency: local, but not enough. */
		since = law_input.now_ns + LAW_PERIOD;
		do {
			out = law_step(law_aimd.safe_util == LAW_MAX_RATE ? 6 * LAW_TARGET :
				       3 * LAW_TARGET);
			assert_true(law_input.now_ns < 10 * SECOND);
		} while (!(out.events & AIMD_EV_GAVE_UP));
		assert_int_equal(law_input.now_ns - since, law_params.delta_ns + LAW_PERIOD);
		assert_int_equal(out.mode, AIMD_UNATTAINABLE);
		assert_int_equal(out.safe_util, LAW_MAX_RATE);
		/* Equal and smaller L/(B+T), and a met target, change nothing. */
		law_input.l = 4;
		law_input.b = 6;
		assert_int_equal(law_step(6 * LAW_TARGET).mode, AIMD_UNATTAINABLE);
		law_input.t = 3;
		assert_int_equal(law_step(0).mode, AIMD_UNATTAINABLE);
		law_input.l = 1;
		out = law_step(6 * LAW_TARGET);
		assert_int_equal(out.safe_util, LAW_MAX_RATE);
		assert_int_equal(out.events, 0);
		/* Larger than it was: the law is back. */
		law_input.l = 5;
		out = law_step(6 * LAW_TARGET);
		assert_int_equal(out.events, AIMD_EV_RESUMED | AIMD_EV_DECREASE |
				 AIMD_EV_MODE);
		assert_int_equal(out.mode, AIMD_MISSED);
		assert_true(out.safe_util < LAW_MAX_RATE);
		/* Or there are no latency flows any more. */
		do
			out = law_step(law_aimd.safe_util == LAW_MAX_RATE ? 6 * LAW_TARGET :
				       3 * LAW_TARGET);
		while (!(out.events & AIMD_EV_GAVE_UP));
		law_input.l = 0;
		assert_int_equal(law_step(0).events, AIMD_EV_RESUMED | AIMD_EV_MODE);
		assert_int_equal(law_step(0).events, 0);
	}
}

/* At the floor, which has half the latency */
static void until_unattainable(void)
{
	uint64_t since = law_input.now_ns;

	while (law_step(law_aimd.safe_util == LAW_MAX_RATE ? 6 * LAW_TARGET :
			3 * LAW_TARGET).mode != AIMD_UNATTAINABLE)
		assert_true(law_input.now_ns - since < 10 * SECOND);
}

/* It does not come and go with a latency that lies at the target. */
static void stays_unattainable(void **state)
{
	unsigned int law, i;
	uint64_t since;

	(void)state;
	for (law = 0; law < 2; law++) {
		law_begin(law, 2, 2, 2);
		until_unattainable();
		for (i = 0; i < 100; i++) {
			law_input.now_ns += law_params.delta_ns / 2;
			assert_int_equal(law_step(i % 2 ? LAW_TARGET : 3 * LAW_TARGET).mode,
					 AIMD_UNATTAINABLE);
		}
		/* Met for as long */
		since = law_input.now_ns;
		law_step(3 * LAW_TARGET);
		while (law_step(LAW_TARGET).mode == AIMD_UNATTAINABLE)
			assert_true(law_input.now_ns - since <=
				    law_params.delta_ns + LAW_PERIOD);
		assert_int_equal(law_aimd.mode, AIMD_TRACKING);
		assert_int_equal(law_input.now_ns - since,
				 law_params.delta_ns + 2 * LAW_PERIOD);
		/* Or L/(B+T) is larger, which is another floor; not if it is smaller. */
		until_unattainable();
		law_input.b = 9;
		assert_int_equal(law_step(3 * LAW_TARGET).mode, AIMD_UNATTAINABLE);
		law_input.b = 1;
		assert_int_equal(law_step(3 * LAW_TARGET).mode, AIMD_MISSED);
	}
}

/* Slight misses take long to the floor, and nothing is given up before that. */
static void not_before_the_floor(void **state)
{
	struct aimd_output out;
	uint64_t before;

	(void)state;
	law_begin(AIMD_LAW_DEFAULT, 2, 2, 2);
	law_params.give_up = true;
	law_params.delta_ns = SECOND / 10;
	do {
		before = law_aimd.safe_util;
		law_input.now_ns += LAW_PERIOD;
		law_input.current99_ns = 2 * LAW_TARGET;
		law_input.short99_ns = 2 * LAW_TARGET;
		law_input.short95_ns = LAW_TARGET;
		out = aimd_step(&law_aimd, &law_params, &law_input);
		assert_true(law_input.now_ns < 10 * SECOND);
	} while (!(out.events & AIMD_EV_GAVE_UP));
	assert_int_equal(before, aimd_floor(&law_params, &law_input));
}

/* Nobody gains by giving up when nothing is shaped. */
static void alone(void **state)
{
	unsigned int i;

	(void)state;
	law_begin(AIMD_LAW_PAPER, 1, 0, 0);
	law_params.give_up = true;
	for (i = 0; i < 12000; i++)
		assert_true(law_step(2 * LAW_TARGET).safe_util >= 1);
	assert_int_equal(law_aimd.safe_util, 1);
	assert_int_equal(law_aimd.mode, AIMD_UNATTAINABLE);
	assert_false(law_aimd.ignore);
}

/* An agent that is started again stays where the one before was. */
static void resumes(void **state)
{
	uint64_t found = LAW_MAX_RATE / 10 * 6, before;
	int i;

	(void)state;
	law_begin(AIMD_LAW_DEFAULT, 1, 1, 0);
	aimd_resume(&law_aimd, found, 0);
	law_input.have_samples = false;
	assert_int_equal(aimd_step(&law_aimd, &law_params, &law_input).safe_util, found);
	assert_int_equal(law_aimd.mode, AIMD_TRACKING);
	law_input.have_samples = true;
	for (i = 0; i < 10; i++) {
		before = law_aimd.safe_util;
		law_input.now_ns += law_params.window_ns;
		law_input.short95_ns = LAW_TARGET / 4;
		law_input.short99_ns = LAW_TARGET / 2;
		law_input.current99_ns = LAW_TARGET / 2;
		aimd_step(&law_aimd, &law_params, &law_input);
		assert_in_range(law_aimd.safe_util, before + 1, before + LAW_MAX_RATE / 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resumes),
		cmocka_unit_test(gives_up),
		cmocka_unit_test(stays_unattainable),
		cmocka_unit_test(not_before_the_floor),
		cmocka_unit_test(alone),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("aimd_unattainable", tests, NULL, NULL);
}
