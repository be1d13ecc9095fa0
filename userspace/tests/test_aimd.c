// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try Pseudocode 1 of userspace/lib/aimd.c, and what both laws guarantee for any
 * input.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aimd.h"
#include "aimd_law.h"
#include "random.h"

static void paper(void **state)
{
	uint64_t expect;
	unsigned int i;

	(void)state;
	law_begin(AIMD_LAW_PAPER, 0, 3, 1);
	/* Lines 2 and 3, whatever the latency is */
	assert_int_equal(law_step(100 * LAW_TARGET).safe_util, LAW_MAX_RATE);
	/* Lines 5 and 6: MaxRate / 2, / 4, / 8, and (3 + 1) / (36 + 3 + 1) of it */
	law_input.l = 36;
	assert_int_equal(law_step(LAW_TARGET + 1).safe_util, 2500000000);
	assert_int_equal(law_step(100 * LAW_TARGET).safe_util, 1250000000);
	assert_int_equal(law_step(LAW_TARGET + 1).safe_util, 625000000);
	assert_int_equal(law_step(LAW_TARGET + 1).safe_util, 500000000);
	assert_int_equal(law_step(LAW_TARGET + 1).safe_util, 500000000);
	/* Line 8: the target itself is no miss */
	assert_int_equal(law_step(LAW_TARGET).safe_util, 501000000);
	assert_int_equal(law_step(0).safe_util, 502000000);
	/* It reads the long window, and neither waits nor looks at the clock. */
	law_input.current99_ns = LAW_TARGET + 1;
	law_input.short99_ns = 0;
	assert_int_equal(aimd_step(&law_aimd, &law_params, &law_input).safe_util,
			 500000000);
	law_input.current99_ns = 0;
	law_input.short99_ns = LAW_TARGET + 1;
	law_params.paper_step = 7;
	assert_int_equal(aimd_step(&law_aimd, &law_params, &law_input).safe_util,
			 500000007);
	/* Up to MaxRate */
	law_params.paper_step = 400000000;
	for (i = 0, expect = 500000007; i < 20; i++) {
		expect += 400000000;
		if (expect > LAW_MAX_RATE)
			expect = LAW_MAX_RATE;
		assert_int_equal(law_step(LAW_TARGET).safe_util, expect);
	}
	assert_int_equal(expect, LAW_MAX_RATE);
	/* Line 3 again */
	law_step(LAW_TARGET + 1);
	law_input.l = 0;
	assert_int_equal(law_step(LAW_TARGET + 1).safe_util, LAW_MAX_RATE);
}

static void floors(void **state)
{
	static const uint32_t counts[] = { 0, 1, 2, 7, 100, 65535, (1U << 30) - 1 };
	static const uint64_t rates[] = { 1, 1000, LAW_MAX_RATE, 1000000000000 };
	enum { N = sizeof(counts) / sizeof(*counts) };
	unsigned int law, i, n, rate;

	(void)state;
	for (n = 0; n < 2 * N * N * N * 4; n++) {
		unsigned __int128 exact;
		uint64_t floor, sum;

		law = n % 2;
		rate = n / 2 % 4;
		law_begin(law, counts[n / 8 % N], counts[n / 8 / N % N],
			  counts[n / 8 / N / N % N]);
		law_params.max_rate = rates[rate];
		aimd_init(&law_aimd, &law_params);
		sum = (uint64_t)law_input.l + law_input.b + law_input.t;
		exact = (unsigned __int128)rates[rate] *
			((uint64_t)law_input.b + law_input.t);
		floor = sum ? (uint64_t)(exact / sum) : rates[rate];
		if (!floor)
			floor = 1;
		assert_int_equal(aimd_floor(&law_params, &law_input), floor);
		law_params.retest_ns = 100 * SECOND;
		law_aimd.test_ns = UINT64_MAX;
		for (i = 0; i < 60; i++) {
			law_input.now_ns += law_params.window_ns;
			assert_true(law_step(50 * LAW_TARGET).safe_util >= floor);
		}
		/* The default law holds nobody back where nobody sends. */
		if (!law_input.l || (law && !law_input.b && !law_input.t))
			floor = rates[rate];
		assert_int_equal(law_aimd.safe_util, floor);
		/* One group more of the others, and one less: at once */
		law_input.b++;
		law_input.have_samples = false;
		assert_true(law_step(0).safe_util >= aimd_floor(&law_params, &law_input));
		law_input.l = 0;
		assert_int_equal(law_step(0).safe_util, rates[rate]);
	}
}

/* One decrease in each window, and no increase within it */
static void once(void **state)
{
	uint64_t last, at = 0;
	unsigned int i, falls = 0;

	(void)state;
	law_begin(AIMD_LAW_DEFAULT, 9, 1, 0);
	last = LAW_MAX_RATE;
	for (i = 0; i < 4000; i++) {
		struct aimd_output out = law_step(i % 3 ? 3 * LAW_TARGET : LAW_TARGET / 2);

		if (out.safe_util != last && at)
			assert_true(law_input.now_ns - at >= law_params.window_ns);
		assert_int_equal(!!(out.events & AIMD_EV_DECREASE), out.safe_util < last);
		if (out.safe_util < last) {
			at = law_input.now_ns;
			falls++;
		}
		last = out.safe_util;
	}
	assert_true(falls > 4);
}

/* A little above the target costs less than far above; in a row costs more and more. */
static void cuts(void **state)
{
	(void)state;
	law_begin(AIMD_LAW_DEFAULT, 99, 1, 0);
	assert_int_equal(law_step(LAW_TARGET + 1).safe_util, LAW_MAX_RATE / 1000 * 975);
	law_begin(AIMD_LAW_DEFAULT, 99, 1, 0);
	assert_int_equal(law_step(LAW_TARGET * 3 / 2).safe_util, LAW_MAX_RATE / 1000 * 950);
	law_begin(AIMD_LAW_DEFAULT, 99, 1, 0);
	assert_int_equal(law_step(50 * LAW_TARGET).safe_util, LAW_MAX_RATE / 1000 * 900);
	law_input.now_ns += law_params.window_ns;
	assert_int_equal(law_step(50 * LAW_TARGET).safe_util, LAW_MAX_RATE / 1000 * 720);
	law_input.now_ns += law_params.window_ns;
	assert_int_equal(law_step(50 * LAW_TARGET).safe_util, LAW_MAX_RATE / 1000 * 432);
	law_input.now_ns += law_params.window_ns;
	assert_int_equal(law_step(50 * LAW_TARGET).safe_util, LAW_MAX_RATE / 1000 * 216);
	/* Not between 95 % and the target; then a quarter of the way */
	law_input.now_ns += law_params.window_ns;
	assert_int_equal(law_step(LAW_TARGET / 100 * 95).safe_util,
			 LAW_MAX_RATE / 1000 * 216);
	assert_int_equal(law_step(LAW_TARGET / 100 * 95 - 1).safe_util,
			 LAW_MAX_RATE / 1000 * 270);
	assert_int_equal(law_step(0).safe_util, LAW_MAX_RATE / 1000 * 270);
	/* No samples, no change */
	law_input.now_ns += law_params.window_ns;
	law_input.have_samples = false;
	assert_int_equal(law_step(0).safe_util, LAW_MAX_RATE / 1000 * 270);
	assert_int_equal(law_step(50 * LAW_TARGET).safe_util, LAW_MAX_RATE / 1000 * 270);
}

/* Three samples are no miss, unless more of the short or of the long window agree. */
static void evidence(void **state)
{
	(void)state;
	law_begin(AIMD_LAW_DEFAULT, 1, 1, 0);
	law_input.short99_ns = 50 * LAW_TARGET;
	law_input.current99_ns = LAW_TARGET;
	law_input.short95_ns = LAW_TARGET;
	assert_int_equal(aimd_step(&law_aimd, &law_params, &law_input).mode, AIMD_TRACKING);
	assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE);
	law_input.current99_ns++;
	assert_int_equal(aimd_step(&law_aimd, &law_params, &law_input).mode, AIMD_MISSED);
	assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE / 1000 * 975);
	/* A slight one, seldom */
	law_input.now_ns += 2 * law_params.window_ns - 1;
	aimd_step(&law_aimd, &law_params, &law_input);
	assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE / 1000 * 975);
	law_input.now_ns++;
	aimd_step(&law_aimd, &law_params, &law_input);
	assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE / 100000 * 92625);
	/* One that is not does not wait so long. */
	law_input.current99_ns = 0;
	law_input.short95_ns++;
	law_input.now_ns += law_params.window_ns;
	aimd_step(&law_aimd, &law_params, &law_input);
	assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE / 100000 * 74100);
	/* What the long window remembers is no miss either. */
	law_input.current99_ns = 50 * LAW_TARGET;
	law_input.short99_ns = LAW_TARGET;
	assert_int_equal(aimd_step(&law_aimd, &law_params, &law_input).mode, AIMD_TRACKING);
}

/* The next step, when the short window has forgotten */
static struct aimd_output window(uint64_t latency)
{
	law_input.now_ns += law_params.window_ns;
	return law_step(latency);
}

/* At the floor: is it local? It is, the same again later and later. */
static void test_local(void **state)
{
	struct aimd_output out;
	unsigned int i;

	(void)state;
	law_begin(AIMD_LAW_DEFAULT, 9, 1, 0);
	law_step(50 * LAW_TARGET);
	while (law_aimd.safe_util > LAW_MAX_RATE / 10)
		window(50 * LAW_TARGET);
	assert_int_equal(law_step(50 * LAW_TARGET).events, 0);
	out = window(40 * LAW_TARGET);
	assert_int_equal(out.events, AIMD_EV_TEST);
	assert_int_equal(out.safe_util, LAW_MAX_RATE);
	/* Not before the window is of this SafeUtil */
	assert_int_equal(law_step(0).mode, AIMD_MISSED);
	assert_int_equal(law_step(10 * LAW_TARGET).safe_util, LAW_MAX_RATE);
	out = window(60 * LAW_TARGET);
	assert_int_equal(out.events, AIMD_EV_DECREASE);
	assert_int_equal(out.mode, AIMD_MISSED);
	assert_int_equal(out.safe_util, LAW_MAX_RATE / 10);
	for (i = 0; i < 7; i++)
		assert_int_equal(window(40 * LAW_TARGET).events, 0);
	assert_int_equal(window(40 * LAW_TARGET).events, AIMD_EV_TEST);
	window(60 * LAW_TARGET);
	for (i = 0; i < 31; i++)
		assert_int_equal(window(40 * LAW_TARGET).events & AIMD_EV_TEST, 0);
	assert_int_equal(window(40 * LAW_TARGET).events, AIMD_EV_TEST);
	window(60 * LAW_TARGET);
	/* After that many misses half is cut, when the floor allows it. */
	for (i = 0; i < 70; i++)
		window(40 * LAW_TARGET);
	law_input.l = 99;
	window(40 * LAW_TARGET);
	assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE / 20);
	/* All is forgotten when the target is met. */
	assert_true(law_aimd.wait_ns > 8 * law_params.window_ns);
	window(0);
	assert_int_equal(law_aimd.wait_ns, 8 * law_params.window_ns);
}

/* It is not: MaxRate, until it doubles or both windows meet the target for long. */
static void test_not_local(void **state)
{
	struct aimd_output out;
	unsigned int i;

	(void)state;
	law_begin(AIMD_LAW_DEFAULT, 1, 1, 0);
	law_step(50 * LAW_TARGET);
	window(0);
	law_input.b = 99;
	assert_int_equal(law_step(LAW_TARGET).safe_util, LAW_MAX_RATE / 100 * 99);
	/* The first miss at a floor is fresh; its window has to fill. */
	assert_int_equal(law_step(50 * LAW_TARGET).events, AIMD_EV_MODE);
	assert_int_equal(law_step(50 * LAW_TARGET).events, 0);
	assert_int_equal(window(45 * LAW_TARGET).events, AIMD_EV_TEST);
	out = window(50 * LAW_TARGET);
	assert_int_equal(out.events, AIMD_EV_MODE);
	assert_int_equal(out.mode, AIMD_NOT_LOCAL);
	assert_int_equal(out.safe_util, LAW_MAX_RATE);
	assert_int_equal(window(100 * LAW_TARGET).events, 0);
	out = law_step(100 * LAW_TARGET + 2);
	assert_int_equal(out.events, AIMD_EV_TEST | AIMD_EV_DECREASE);
	assert_int_equal(out.safe_util, LAW_MAX_RATE / 100 * 99);
	out = window(90 * LAW_TARGET);
	assert_int_equal(out.mode, AIMD_NOT_LOCAL);
	assert_int_equal(out.safe_util, LAW_MAX_RATE);

	law_input.current99_ns = 2 * LAW_TARGET;
	law_input.short99_ns = 0;
	law_input.short95_ns = 0;
	for (i = 0; i < 20; i++) {
		law_input.now_ns += law_params.window_ns;
		out = aimd_step(&law_aimd, &law_params, &law_input);
		assert_int_equal(out.mode, AIMD_NOT_LOCAL);
	}
	for (i = 0; i < 7; i++)
		assert_int_equal(window(LAW_TARGET).mode, AIMD_NOT_LOCAL);
	assert_int_equal(window(LAW_TARGET).mode, AIMD_TRACKING);
}

/* Whatever comes in */
static void anything(void **state)
{
	unsigned int round, i;

	(void)state;
	seed = 88172645463325252;
	for (round = 0; round < 400; round++) {
		uint64_t fell = 0, last;

		law_begin(round % 2, 1, 1, 1);
		law_params.max_rate = 1 + random_u64() % (UINT64_C(1) << random_u64() % 40);
		law_params.target99_ns = 1 + random_u64() % 100000000000;
		law_params.keep_permille = 501 + random_u64() % 499;
		law_params.step_permille = 1 + random_u64() % 100;
		law_params.give_up = random_u64() % 2;
		law_params.stay = random_u64() % 2;
		law_params.retest_ns = SECOND * (random_u64() % 10);
		aimd_init(&law_aimd, &law_params);
		last = law_aimd.safe_util;
		for (i = 0; i < 500; i++) {
			struct aimd_output out;

			law_input.now_ns += random_u64() >> (30 + random_u64() % 20);
			if (random_u64() % 10 == 0) {
				law_input.l = random_u64() % 4;
				law_input.b = random_u64() % 9;
				law_input.t = random_u64() % 3;
			}
			law_input.have_samples = random_u64() % 8;
			law_input.current99_ns = random_u64() >> random_u64() % 64;
			law_input.short99_ns = random_u64() >> random_u64() % 64;
			law_input.short95_ns = random_u64() >> random_u64() % 64;
			out = aimd_step(&law_aimd, &law_params, &law_input);
			assert_true(out.safe_util <= law_params.max_rate);
			assert_true(out.safe_util >= aimd_floor(&law_params, &law_input));
			assert_int_equal(out.mode == AIMD_OPEN, !law_input.l);
			if (!law_input.l || law_aimd.ignore)
				assert_int_equal(out.safe_util, law_params.max_rate);
			if (out.mode == AIMD_NOT_LOCAL)
				assert_int_equal(law_params.law, AIMD_LAW_DEFAULT);
			if (law_params.law == AIMD_LAW_DEFAULT && out.safe_util < last) {
				assert_true(out.events & AIMD_EV_DECREASE);
				assert_true(!fell ||
					    law_input.now_ns - fell >= law_params.window_ns);
				fell = law_input.now_ns;
			}
			if (out.events & (AIMD_EV_RESUMED | AIMD_EV_MODE) &&
			    law_aimd.down_ns == 0)
				fell = 0;
			last = out.safe_util;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paper),
		cmocka_unit_test(floors),
		cmocka_unit_test(once),
		cmocka_unit_test(cuts),
		cmocka_unit_test(evidence),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_not_local),
		cmocka_unit_test(anything),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("aimd", tests, NULL, NULL);
}
