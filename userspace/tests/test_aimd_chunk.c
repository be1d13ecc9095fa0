// SPDX-License-Identifier: GPL-2.0
/*
 * These cases let the law of userspace/lib/aimd.c choose the size of chunks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aimd.h"
#include "aimd_law.h"

/* At LAW_MAX_RATE one of them takes a tenth of the target. */
#define CHUNK UINT32_C(8192)
#define TARGET (10 * SECOND * CHUNK / LAW_MAX_RATE)

/* The size of chunks that is in force */
static uint32_t chunk(void)
{
	return law_aimd.chunk ? law_aimd.chunk : CHUNK;
}

/* The next step, when the short window has forgotten */
static struct aimd_output window(uint64_t latency)
{
	law_input.now_ns += law_params.window_ns;
	return law_step(latency);
}

/* Half of MaxRate is the floor, and the target is missed there. */
static void miss_at_floor(void)
{
	law_begin(AIMD_LAW_DEFAULT, 1, 1, 0);
	law_params.target99_ns = TARGET;
	law_params.choose_chunk = true;
	law_input.chunk = CHUNK;
	while (law_aimd.safe_util > LAW_MAX_RATE / 2)
		window(4 * TARGET);
	assert_int_equal(law_aimd.chunk, 0);
}

/* Small chunks cost the processor: from 32 KB on the target is met. */
static void larger(void **state)
{
	struct aimd_output out;

	(void)state;
	miss_at_floor();
	out = window(4 * TARGET);
	assert_int_equal(out.chunk, 2 * CHUNK);
	assert_int_equal(out.safe_util, LAW_MAX_RATE / 2);
	assert_int_equal(out.events, 0);
	/* Not before the window has forgotten the smaller ones */
	assert_int_equal(law_step(4 * TARGET).chunk, 2 * CHUNK);
	assert_int_equal(law_step(0).chunk, 2 * CHUNK);
	/* This helps, so it goes on. */
	out = window(3 * TARGET);
	assert_int_equal(out.events, AIMD_EV_CHUNK);
	assert_int_equal(out.chunk, 4 * CHUNK);
	out = window(TARGET / 2);
	assert_int_equal(out.events, AIMD_EV_CHUNK | AIMD_EV_MODE);
	assert_int_equal(out.chunk, 4 * CHUNK);
	/* It stays, and SafeUtil comes back: it missed with the smaller ones. */
	window(TARGET / 2);
	assert_true(window(TARGET / 2).safe_util > LAW_MAX_RATE / 10 * 7);
	assert_int_equal(law_aimd.chunk, 4 * CHUNK);
	/* Without latency flows there is nothing to choose. */
	law_input.l = 0;
	out = law_step(0);
	assert_int_equal(out.chunk, 0);
	assert_int_equal(out.safe_util, LAW_MAX_RATE);
}

/* Messages wait for large ones: smaller ones are tried when larger ones do not help. */
static void smaller(void **state)
{
	(void)state;
	miss_at_floor();
	assert_int_equal(window(4 * TARGET).chunk, 2 * CHUNK);
	assert_int_equal(window(5 * TARGET).chunk, 0);
	/* The window has to forget the larger ones. */
	assert_int_equal(law_step(4 * TARGET).chunk, 0);
	assert_int_equal(window(4 * TARGET).chunk, CHUNK / 2);
	assert_int_equal(window(TARGET / 2).chunk, CHUNK / 2);
	assert_int_equal(law_aimd.mode, AIMD_TRACKING);
}

/* Neither helps: all is as before, then SafeUtil is put to the test. */
static void neither(void **state)
{
	struct aimd_output out;
	uint64_t since;

	(void)state;
	miss_at_floor();
	assert_int_equal(window(4 * TARGET).chunk, 2 * CHUNK);
	assert_int_equal(window(4 * TARGET).chunk, 0);
	assert_int_equal(window(4 * TARGET).chunk, CHUNK / 2);
	/* A fifth is no help, as it may be chance. */
	assert_int_equal(window(4 * TARGET * 4 / 5 + 1).chunk, 0);
	since = law_input.now_ns;
	out = window(4 * TARGET);
	assert_int_equal(out.events, AIMD_EV_TEST);
	assert_int_equal(out.safe_util, LAW_MAX_RATE);
	assert_int_equal(window(8 * TARGET).safe_util, LAW_MAX_RATE / 2);
	while (!law_aimd.chunk)
		window(law_aimd.safe_util > LAW_MAX_RATE / 2 ? 8 * TARGET : 4 * TARGET);
	assert_in_range(law_input.now_ns - since, law_params.retest_ns,
			law_params.retest_ns + 3 * law_params.window_ns);
	assert_int_equal(law_aimd.chunk, 2 * CHUNK);
}

/* A chunk takes half of the target at most, and is of 4 KB at least. */
static void bounds(void **state)
{
	(void)state;
	miss_at_floor();
	law_params.target99_ns = 4 * SECOND * CHUNK / LAW_MAX_RATE + 1;
	assert_int_equal(window(4 * TARGET).chunk, 2 * CHUNK);
	miss_at_floor();
	law_params.target99_ns = 4 * SECOND * CHUNK / LAW_MAX_RATE - 1;
	assert_int_equal(window(4 * TARGET).chunk, CHUNK / 2);
	assert_int_equal(window(2 * TARGET).chunk, CHUNK / 2);
	assert_int_equal(law_aimd.test, AIMD_TEST_MAX);
}

/* What the operator has set stays, and chunks that are off. */
static void not_to_be_chosen(void **state)
{
	unsigned int i;

	(void)state;
	miss_at_floor();
	law_params.choose_chunk = false;
	for (i = 0; i < 200; i++)
		assert_int_equal(window(4 * TARGET).chunk, 0);
	miss_at_floor();
	law_input.chunk = 0;
	for (i = 0; i < 200; i++)
		assert_int_equal(window(4 * TARGET).chunk, 0);
}

/* What was right beside some programs may be wrong beside others: it looks again. */
static void looks_again(void **state)
{
	unsigned int n;

	(void)state;
	miss_at_floor();
	while (chunk() != 4096)
		window(chunk() > 4096 ? 4 * TARGET : TARGET / 2);
	for (n = 0; n < 60; n++)
		window(TARGET / 2);
	assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE);
	for (n = 0; n < 200 && chunk() != 2 * CHUNK; n++)
		window(chunk() < 2 * CHUNK ? 3 * TARGET * 2 * CHUNK / chunk() : TARGET / 2);
	assert_int_equal(chunk(), 2 * CHUNK);
	/* The target is another one now, and such chunks take more than half of it. */
	law_params.target99_ns = TARGET / 10;
	for (n = 0; n < 200 && chunk() != CHUNK; n++)
		window(chunk() > CHUNK ? TARGET : TARGET / 20);
	assert_int_equal(chunk(), CHUNK);
}

/* A trial that is not over says nothing when others begin to send, or nobody sends any more. */
static void trial_interrupted(void **state)
{
	(void)state;
	miss_at_floor();
	assert_int_equal(window(4 * TARGET).chunk, 2 * CHUNK);
	law_input.b = 2;
	assert_int_equal(law_step(TARGET / 2).chunk, 0);
	miss_at_floor();
	assert_int_equal(window(4 * TARGET).chunk, 2 * CHUNK);
	law_input.b = 0;
	assert_int_equal(law_step(TARGET / 2).chunk, 0);
	miss_at_floor();
	assert_int_equal(window(4 * TARGET).chunk, 2 * CHUNK);
	law_input.have_samples = false;
	assert_int_equal(law_step(0).chunk, 0);
}

/*
 * Whatever is sent, one size is the best by far: it is found, and SafeUtil is what it would be
 * had that size been set.
 */
static void finds_best(void **state)
{
	static const uint32_t best[] = { 4096, 2 * CHUNK, 4 * CHUNK };
	unsigned int i, n;

	(void)state;
	for (i = 0; i < sizeof(best) / sizeof(*best); i++) {
		miss_at_floor();
		for (n = 0; n < 40; n++) {
			uint64_t times = chunk() > best[i] ? chunk() / best[i] :
							     best[i] / chunk();

			window(TARGET / 2 * times * times);
		}
		assert_int_equal(chunk(), best[i]);
		assert_int_equal(law_aimd.mode, AIMD_TRACKING);
		assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(larger),
		cmocka_unit_test(smaller),
		cmocka_unit_test(neither),
		cmocka_unit_test(bounds),
		cmocka_unit_test(not_to_be_chosen),
		cmocka_unit_test(looks_again),
		cmocka_unit_test(trial_interrupted),
		cmocka_unit_test(finds_best),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("aimd_chunk", tests, NULL, NULL);
}
