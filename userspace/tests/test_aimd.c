// SPDX-License-Identifier: GPL-2.0
/*
 * userspace/lib/aimd.c: Pseudocode 1, what both laws guarantee for any input, and what
 * they make of devices whose latency does, does not, or does not enough depend on
 * SafeUtil. Those are played in simulated time, with fixed seeds.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aimd.h"
#include "percentile.h"
#include "random.h"

#define MAX_RATE UINT64_C(5000000000)
#define TARGET UINT64_C(10000)
#define PERIOD UINT64_C(500000)
#define SECOND UINT64_C(1000000000)

static double random_normal(void)
{
	double a = random_unit();
	double b = random_unit();

	return sqrt(-2 * log(a)) * cos(2 * M_PI * b);
}

static struct aimd_params params;
static struct aimd_state aimd;
static struct aimd_input input;

static void begin(enum aimd_law law, uint32_t l, uint32_t b, uint32_t t)
{
	aimd_defaults(&params, MAX_RATE, TARGET);
	params.law = law;
	aimd_init(&aimd, &params);
	input = (struct aimd_input) {
		.now_ns = SECOND, .l = l, .b = b, .t = t, .have_samples = true,
	};
}

/* One step, a period later, with the same reading in both windows */
static struct aimd_output step(uint64_t latency)
{
	input.now_ns += PERIOD;
	input.current99_ns = latency;
	input.short99_ns = latency;
	input.short95_ns = latency;
	return aimd_step(&aimd, &params, &input);
}

static void paper(void **state)
{
	uint64_t expect;
	unsigned int i;

	(void)state;
	begin(AIMD_LAW_PAPER, 0, 3, 1);
	/* Lines 2 and 3, whatever the latency is */
	assert_int_equal(step(100 * TARGET).safe_util, MAX_RATE);
	/* Lines 5 and 6: MaxRate / 2, / 4, / 8, and (3 + 1) / (36 + 3 + 1) of it */
	input.l = 36;
	assert_int_equal(step(TARGET + 1).safe_util, 2500000000);
	assert_int_equal(step(100 * TARGET).safe_util, 1250000000);
	assert_int_equal(step(TARGET + 1).safe_util, 625000000);
	assert_int_equal(step(TARGET + 1).safe_util, 500000000);
	assert_int_equal(step(TARGET + 1).safe_util, 500000000);
	/* Line 8: the target itself is no miss */
	assert_int_equal(step(TARGET).safe_util, 501000000);
	assert_int_equal(step(0).safe_util, 502000000);
	/* It reads the long window, and neither waits nor looks at the clock. */
	input.current99_ns = TARGET + 1;
	input.short99_ns = 0;
	assert_int_equal(aimd_step(&aimd, &params, &input).safe_util, 500000000);
	input.current99_ns = 0;
	input.short99_ns = TARGET + 1;
	params.paper_step = 7;
	assert_int_equal(aimd_step(&aimd, &params, &input).safe_util, 500000007);
	/* Up to MaxRate */
	params.paper_step = 400000000;
	for (i = 0, expect = 500000007; i < 20; i++) {
		expect += 400000000;
		if (expect > MAX_RATE)
			expect = MAX_RATE;
		assert_int_equal(step(TARGET).safe_util, expect);
	}
	assert_int_equal(expect, MAX_RATE);
	/* Line 3 again */
	step(TARGET + 1);
	input.l = 0;
	assert_int_equal(step(TARGET + 1).safe_util, MAX_RATE);
}

static void floors(void **state)
{
	static const uint32_t counts[] = { 0, 1, 2, 7, 100, 65535, (1U << 30) - 1 };
	static const uint64_t rates[] = { 1, 1000, MAX_RATE, 1000000000000 };
	enum { N = sizeof(counts) / sizeof(*counts) };
	unsigned int law, i, n, rate;

	(void)state;
	for (n = 0; n < 2 * N * N * N * 4; n++) {
		unsigned __int128 exact;
		uint64_t floor, sum;

		law = n % 2;
		rate = n / 2 % 4;
		begin(law, counts[n / 8 % N], counts[n / 8 / N % N],
		      counts[n / 8 / N / N % N]);
		params.max_rate = rates[rate];
		aimd_init(&aimd, &params);
		sum = (uint64_t)input.l + input.b + input.t;
		exact = (unsigned __int128)rates[rate] * ((uint64_t)input.b + input.t);
		floor = sum ? (uint64_t)(exact / sum) : rates[rate];
		if (!floor)
			floor = 1;
		assert_int_equal(aimd_floor(&params, &input), floor);
		params.retest_ns = 100 * SECOND;
		aimd.test_ns = UINT64_MAX;
		for (i = 0; i < 60; i++) {
			input.now_ns += params.window_ns;
			assert_true(step(50 * TARGET).safe_util >= floor);
		}
		assert_int_equal(aimd.safe_util, input.l ? floor : rates[rate]);
		/* One group more of the others, and one less: at once */
		input.b++;
		input.have_samples = false;
		assert_true(step(0).safe_util >= aimd_floor(&params, &input));
		input.l = 0;
		assert_int_equal(step(0).safe_util, rates[rate]);
	}
}

/* One decrease in each window, and no increase within it */
static void once(void **state)
{
	uint64_t last, at = 0;
	unsigned int i, falls = 0;

	(void)state;
	begin(AIMD_LAW_DEFAULT, 9, 1, 0);
	last = MAX_RATE;
	for (i = 0; i < 4000; i++) {
		struct aimd_output out = step(i % 3 ? 3 * TARGET : TARGET / 2);

		if (out.safe_util != last && at)
			assert_true(input.now_ns - at >= params.window_ns);
		assert_int_equal(!!(out.events & AIMD_EV_DECREASE), out.safe_util < last);
		if (out.safe_util < last) {
			at = input.now_ns;
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
	begin(AIMD_LAW_DEFAULT, 99, 1, 0);
	assert_int_equal(step(TARGET + 1).safe_util, MAX_RATE / 1000 * 975);
	begin(AIMD_LAW_DEFAULT, 99, 1, 0);
	assert_int_equal(step(TARGET * 3 / 2).safe_util, MAX_RATE / 1000 * 950);
	begin(AIMD_LAW_DEFAULT, 99, 1, 0);
	assert_int_equal(step(50 * TARGET).safe_util, MAX_RATE / 1000 * 900);
	input.now_ns += params.window_ns;
	assert_int_equal(step(50 * TARGET).safe_util, MAX_RATE / 1000 * 720);
	input.now_ns += params.window_ns;
	assert_int_equal(step(50 * TARGET).safe_util, MAX_RATE / 1000 * 432);
	input.now_ns += params.window_ns;
	assert_int_equal(step(50 * TARGET).safe_util, MAX_RATE / 1000 * 216);
	/* Not between 95 % and the target; then a quarter of the way */
	input.now_ns += params.window_ns;
	assert_int_equal(step(TARGET / 100 * 95).safe_util, MAX_RATE / 1000 * 216);
	assert_int_equal(step(TARGET / 100 * 95 - 1).safe_util, MAX_RATE / 1000 * 270);
	assert_int_equal(step(0).safe_util, MAX_RATE / 1000 * 270);
	/* No samples, no change */
	input.now_ns += params.window_ns;
	input.have_samples = false;
	assert_int_equal(step(0).safe_util, MAX_RATE / 1000 * 270);
	assert_int_equal(step(50 * TARGET).safe_util, MAX_RATE / 1000 * 270);
}

/* Three samples are no miss, unless more of the short or of the long window agree. */
static void evidence(void **state)
{
	(void)state;
	begin(AIMD_LAW_DEFAULT, 1, 1, 0);
	input.short99_ns = 50 * TARGET;
	input.current99_ns = TARGET;
	input.short95_ns = TARGET;
	assert_int_equal(aimd_step(&aimd, &params, &input).mode, AIMD_TRACKING);
	assert_int_equal(aimd.safe_util, MAX_RATE);
	input.current99_ns++;
	assert_int_equal(aimd_step(&aimd, &params, &input).mode, AIMD_MISSED);
	assert_int_equal(aimd.safe_util, MAX_RATE / 1000 * 975);
	/* A slight one, seldom */
	input.now_ns += 2 * params.window_ns - 1;
	aimd_step(&aimd, &params, &input);
	assert_int_equal(aimd.safe_util, MAX_RATE / 1000 * 975);
	input.now_ns++;
	aimd_step(&aimd, &params, &input);
	assert_int_equal(aimd.safe_util, MAX_RATE / 100000 * 92625);
	/* One that is not does not wait so long. */
	input.current99_ns = 0;
	input.short95_ns++;
	input.now_ns += params.window_ns;
	aimd_step(&aimd, &params, &input);
	assert_int_equal(aimd.safe_util, MAX_RATE / 100000 * 74100);
	/* What the long window remembers is no miss either. */
	input.current99_ns = 50 * TARGET;
	input.short99_ns = TARGET;
	assert_int_equal(aimd_step(&aimd, &params, &input).mode, AIMD_TRACKING);
}

/* The next step, when the short window has forgotten */
static struct aimd_output window(uint64_t latency)
{
	input.now_ns += params.window_ns;
	return step(latency);
}

/* At the floor: is it local? It is, the same again later and later. */
static void test_local(void **state)
{
	struct aimd_output out;
	unsigned int i;

	(void)state;
	begin(AIMD_LAW_DEFAULT, 9, 1, 0);
	step(50 * TARGET);
	while (aimd.safe_util > MAX_RATE / 10)
		window(50 * TARGET);
	assert_int_equal(step(50 * TARGET).events, 0);
	out = window(40 * TARGET);
	assert_int_equal(out.events, AIMD_EV_TEST);
	assert_int_equal(out.safe_util, MAX_RATE);
	/* Not before the window is of this SafeUtil */
	assert_int_equal(step(0).mode, AIMD_MISSED);
	assert_int_equal(step(10 * TARGET).safe_util, MAX_RATE);
	out = window(60 * TARGET);
	assert_int_equal(out.events, AIMD_EV_DECREASE);
	assert_int_equal(out.mode, AIMD_MISSED);
	assert_int_equal(out.safe_util, MAX_RATE / 10);
	for (i = 0; i < 7; i++)
		assert_int_equal(window(40 * TARGET).events, 0);
	assert_int_equal(window(40 * TARGET).events, AIMD_EV_TEST);
	window(60 * TARGET);
	for (i = 0; i < 31; i++)
		assert_int_equal(window(40 * TARGET).events & AIMD_EV_TEST, 0);
	assert_int_equal(window(40 * TARGET).events, AIMD_EV_TEST);
	window(60 * TARGET);
	/* After that many misses half is cut, when the floor allows it. */
	for (i = 0; i < 70; i++)
		window(40 * TARGET);
	input.l = 99;
	window(40 * TARGET);
	assert_int_equal(aimd.safe_util, MAX_RATE / 20);
	/* All is forgotten when the target is met. */
	assert_true(aimd.wait_ns > 8 * params.window_ns);
	window(0);
	assert_int_equal(aimd.wait_ns, 8 * params.window_ns);
}

/* It is not: MaxRate, until it doubles or both windows meet the target for long. */
static void test_not_local(void **state)
{
	struct aimd_output out;
	unsigned int i;

	(void)state;
	begin(AIMD_LAW_DEFAULT, 1, 1, 0);
	step(50 * TARGET);
	window(0);
	input.b = 99;
	assert_int_equal(step(TARGET).safe_util, MAX_RATE / 100 * 99);
	/* The first miss at a floor is fresh; its window has to fill. */
	assert_int_equal(step(50 * TARGET).events, AIMD_EV_MODE);
	assert_int_equal(step(50 * TARGET).events, 0);
	assert_int_equal(window(45 * TARGET).events, AIMD_EV_TEST);
	out = window(50 * TARGET);
	assert_int_equal(out.events, AIMD_EV_MODE);
	assert_int_equal(out.mode, AIMD_NOT_LOCAL);
	assert_int_equal(out.safe_util, MAX_RATE);
	assert_int_equal(window(100 * TARGET).events, 0);
	out = step(100 * TARGET + 2);
	assert_int_equal(out.events, AIMD_EV_TEST | AIMD_EV_DECREASE);
	assert_int_equal(out.safe_util, MAX_RATE / 100 * 99);
	out = window(90 * TARGET);
	assert_int_equal(out.mode, AIMD_NOT_LOCAL);
	assert_int_equal(out.safe_util, MAX_RATE);

	input.current99_ns = 2 * TARGET;
	input.short99_ns = 0;
	input.short95_ns = 0;
	for (i = 0; i < 20; i++) {
		input.now_ns += params.window_ns;
		out = aimd_step(&aimd, &params, &input);
		assert_int_equal(out.mode, AIMD_NOT_LOCAL);
	}
	for (i = 0; i < 7; i++)
		assert_int_equal(window(TARGET).mode, AIMD_NOT_LOCAL);
	assert_int_equal(window(TARGET).mode, AIMD_TRACKING);
}

/* Whatever comes in */
static void anything(void **state)
{
	unsigned int round, i;

	(void)state;
	seed = 88172645463325252;
	for (round = 0; round < 400; round++) {
		uint64_t fell = 0, last;

		begin(round % 2, 1, 1, 1);
		params.max_rate = 1 + random_u64() % (UINT64_C(1) << random_u64() % 40);
		params.target99_ns = 1 + random_u64() % 100000000000;
		params.keep_permille = 501 + random_u64() % 499;
		params.step_permille = 1 + random_u64() % 100;
		params.give_up = random_u64() % 2;
		params.stay = random_u64() % 2;
		params.retest_ns = SECOND * (random_u64() % 10);
		aimd_init(&aimd, &params);
		last = aimd.safe_util;
		for (i = 0; i < 500; i++) {
			struct aimd_output out;

			input.now_ns += random_u64() >> (30 + random_u64() % 20);
			if (random_u64() % 10 == 0) {
				input.l = random_u64() % 4;
				input.b = random_u64() % 9;
				input.t = random_u64() % 3;
			}
			input.have_samples = random_u64() % 8;
			input.current99_ns = random_u64() >> random_u64() % 64;
			input.short99_ns = random_u64() >> random_u64() % 64;
			input.short95_ns = random_u64() >> random_u64() % 64;
			out = aimd_step(&aimd, &params, &input);
			assert_true(out.safe_util <= params.max_rate);
			assert_true(out.safe_util >= aimd_floor(&params, &input));
			assert_int_equal(out.mode == AIMD_OPEN, !input.l);
			if (!input.l || aimd.ignore)
				assert_int_equal(out.safe_util, params.max_rate);
			if (out.mode == AIMD_NOT_LOCAL)
				assert_int_equal(params.law, AIMD_LAW_DEFAULT);
			if (params.law == AIMD_LAW_DEFAULT && out.safe_util < last) {
				assert_true(out.events & AIMD_EV_DECREASE);
				assert_true(!fell ||
					    input.now_ns - fell >= params.window_ns);
				fell = input.now_ns;
			}
			if (out.events & (AIMD_EV_RESUMED | AIMD_EV_MODE) &&
			    aimd.down_ns == 0)
				fell = 0;
			last = out.safe_util;
		}
	}
}

static void gives_up(void **state)
{
	unsigned int law;

	(void)state;
	for (law = 0; law < 2; law++) {
		struct aimd_output out;
		uint64_t since;

		begin(law, 2, 2, 2);
		params.give_up = true;
		/* The floor has half the latency: local, but not enough. */
		since = input.now_ns + PERIOD;
		do {
			out = step(aimd.safe_util == MAX_RATE ? 6 * TARGET : 3 * TARGET);
			assert_true(input.now_ns < 10 * SECOND);
		} while (!(out.events & AIMD_EV_GAVE_UP));
		assert_int_equal(input.now_ns - since, params.delta_ns + PERIOD);
		assert_int_equal(out.mode, AIMD_UNATTAINABLE);
		assert_int_equal(out.safe_util, MAX_RATE);
		/* Equal and smaller L/(B+T), and a met target, change nothing. */
		input.l = 4;
		input.b = 6;
		assert_int_equal(step(6 * TARGET).mode, AIMD_UNATTAINABLE);
		input.t = 3;
		assert_int_equal(step(0).mode, AIMD_UNATTAINABLE);
		input.l = 1;
		out = step(6 * TARGET);
		assert_int_equal(out.safe_util, MAX_RATE);
		assert_int_equal(out.events, 0);
		/* Larger than it was: the law is back. */
		input.l = 5;
		out = step(6 * TARGET);
		assert_int_equal(out.events, AIMD_EV_RESUMED | AIMD_EV_DECREASE |
				 AIMD_EV_MODE);
		assert_int_equal(out.mode, AIMD_MISSED);
		assert_true(out.safe_util < MAX_RATE);
		/* Or there are no latency flows any more. */
		do
			out = step(aimd.safe_util == MAX_RATE ? 6 * TARGET : 3 * TARGET);
		while (!(out.events & AIMD_EV_GAVE_UP));
		input.l = 0;
		assert_int_equal(step(0).events, AIMD_EV_RESUMED | AIMD_EV_MODE);
		assert_int_equal(step(0).events, 0);
	}
}

/* At the floor, which has half the latency */
static void until_unattainable(void)
{
	uint64_t since = input.now_ns;

	while (step(aimd.safe_util == MAX_RATE ? 6 * TARGET : 3 * TARGET).mode !=
	       AIMD_UNATTAINABLE)
		assert_true(input.now_ns - since < 10 * SECOND);
}

/* It does not come and go with a latency that lies at the target. */
static void stays_unattainable(void **state)
{
	unsigned int law, i;
	uint64_t since;

	(void)state;
	for (law = 0; law < 2; law++) {
		begin(law, 2, 2, 2);
		until_unattainable();
		for (i = 0; i < 100; i++) {
			input.now_ns += params.delta_ns / 2;
			assert_int_equal(step(i % 2 ? TARGET : 3 * TARGET).mode,
					 AIMD_UNATTAINABLE);
		}
		/* Met for as long */
		since = input.now_ns;
		step(3 * TARGET);
		while (step(TARGET).mode == AIMD_UNATTAINABLE)
			assert_true(input.now_ns - since <= params.delta_ns + PERIOD);
		assert_int_equal(aimd.mode, AIMD_TRACKING);
		assert_int_equal(input.now_ns - since, params.delta_ns + 2 * PERIOD);
		/* Or L/(B+T) is larger, which is another floor; not if it is smaller. */
		until_unattainable();
		input.b = 9;
		assert_int_equal(step(3 * TARGET).mode, AIMD_UNATTAINABLE);
		input.b = 1;
		assert_int_equal(step(3 * TARGET).mode, AIMD_MISSED);
	}
}

/* Slight misses take long to the floor, and nothing is given up before that. */
static void not_before_the_floor(void **state)
{
	struct aimd_output out;
	uint64_t before;

	(void)state;
	begin(AIMD_LAW_DEFAULT, 2, 2, 2);
	params.give_up = true;
	params.delta_ns = SECOND / 10;
	do {
		before = aimd.safe_util;
		input.now_ns += PERIOD;
		input.current99_ns = 2 * TARGET;
		input.short99_ns = 2 * TARGET;
		input.short95_ns = TARGET;
		out = aimd_step(&aimd, &params, &input);
		assert_true(input.now_ns < 10 * SECOND);
	} while (!(out.events & AIMD_EV_GAVE_UP));
	assert_int_equal(before, aimd_floor(&params, &input));
}

/* Nobody gains by giving up when nothing is shaped. */
static void alone(void **state)
{
	unsigned int i;

	(void)state;
	begin(AIMD_LAW_PAPER, 1, 0, 0);
	params.give_up = true;
	for (i = 0; i < 12000; i++)
		assert_true(step(2 * TARGET).safe_util >= 1);
	assert_int_equal(aimd.safe_util, 1);
	assert_int_equal(aimd.mode, AIMD_UNATTAINABLE);
	assert_false(aimd.ignore);
}

/*
 * A device in front of which a queue grows as long as more is sent than it carries, up
 * to what windows let out; a latency that grows with use; noise; and what others do.
 */
struct plant {
	/* What it carries, part of MaxRate; the queue's limit is 50 targets */
	double capacity;
	/* Latency at MaxRate, in targets, of what grows with use squared */
	double smooth;
	/* Sigma of the factor on all of that */
	double noise;
	/* Of every so many samples one is 50 targets longer, 0 for none */
	unsigned int spike;
	double queue;
};

struct result {
	/* Since when SafeUtil was not above limit, SECOND when never */
	uint64_t fell_ns;
	/* Part of MaxRate, and the coefficient of variation */
	double mean;
	double cv;
	/* Part of the samples that were above the target */
	double beyond;
	uint64_t long99;
};

static struct percentile long_window, short_window;

static uint64_t sample(struct plant *p)
{
	double use = (double)aimd.safe_util / MAX_RATE, latency = 0.3 * TARGET;

	if (p->capacity) {
		p->queue += (use / p->capacity - 1) * PERIOD;
		p->queue = fmin(fmax(p->queue, 0), 50.0 * TARGET);
	}
	latency += p->queue + p->smooth * TARGET * use * use;
	latency *= exp(p->noise * random_normal());
	if (p->spike && random_u64() % p->spike == 0)
		latency += 50 * TARGET;
	return latency;
}

/* Runs for @seconds; mean, cv and beyond are of those after the first @skip. */
static struct result play(struct plant *p, double limit, unsigned int seconds,
			  unsigned int skip)
{
	uint64_t start = input.now_ns, n = 0;
	double sum = 0, squares = 0, beyond = 0;
	struct result r = { .fell_ns = SECOND };

	while (input.now_ns < start + seconds * SECOND) {
		uint64_t latency = sample(p);
		double use;

		percentile_add(&long_window, latency);
		percentile_add(&short_window, latency);
		input.now_ns += PERIOD;
		input.current99_ns = percentile_get(&long_window, PERCENTILE_P99);
		input.short99_ns = percentile_get(&short_window, PERCENTILE_P99);
		input.short95_ns = percentile_get(&short_window, 950000);
		use = (double)aimd_step(&aimd, &params, &input).safe_util / MAX_RATE;
		if (use <= limit && r.fell_ns == SECOND)
			r.fell_ns = input.now_ns - start;
		if (input.now_ns < start + skip * SECOND)
			continue;
		n++;
		sum += use;
		squares += use * use;
		beyond += latency > TARGET;
	}
	r.mean = sum / n;
	r.cv = sqrt(fmax(0, squares / n - r.mean * r.mean)) / r.mean;
	r.beyond = beyond / n;
	r.long99 = percentile_get(&long_window, PERCENTILE_P99);
	return r;
}

static void begin_plant(enum aimd_law law, uint32_t l, uint32_t b)
{
	begin(law, l, b, 0);
	seed = 88172645463325252;
	assert_int_equal(percentile_init(&long_window, 10000), 0);
	assert_int_equal(percentile_init(&short_window, 200), 0);
}

static void end_plant(void)
{
	percentile_free(&long_window);
	percentile_free(&short_window);
}

/* A full queue at first, and a target that is met below some part of MaxRate */
static void knee(void **state)
{
	static const struct {
		double capacity;
		double noise;
		uint32_t l;
	} cases[] = {
		{ 0.94, 0.1, 1 }, { 0.94, 0.3, 1 }, { 0.94, 0.1, 9 },
		{ 0.6, 0.1, 1 }, { 0.6, 0.3, 9 }, { 0.2, 0.1, 9 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double capacity = cases[i].capacity;
		struct plant p = {
			.capacity = capacity, .noise = cases[i].noise,
			.queue = 50.0 * TARGET,
		};
		struct result r;

		begin_plant(AIMD_LAW_DEFAULT, cases[i].l, 1);
		r = play(&p, capacity, 30, 5);
		assert_true(r.fell_ns < (capacity > 0.9 ? SECOND / 10 : SECOND));
		assert_true(r.mean > 0.95 * capacity);
		assert_true(r.cv < 0.03);
		assert_true(r.beyond < 0.01);
		assert_true(r.long99 <= TARGET);
		end_plant();
	}
}

/* One of 200 samples is far above a target that the 99th meets: no reason to send less. */
static void spikes(void **state)
{
	struct plant p = { .noise = 0.1, .spike = 200 };
	struct result r;

	(void)state;
	begin_plant(AIMD_LAW_DEFAULT, 1, 1);
	r = play(&p, 1, 30, 5);
	assert_true(r.mean > 0.99);
	end_plant();

	p.capacity = 0.94;
	begin_plant(AIMD_LAW_DEFAULT, 9, 1);
	r = play(&p, 1, 60, 5);
	assert_true(r.mean > 0.95 * 0.94);
	assert_true(r.cv < 0.05);
	assert_true(r.beyond < 0.01);
	end_plant();
}

/* Latency that grows with use, without a knee: the target is met up to 94 %. */
static void slope(void **state)
{
	struct plant p = { .smooth = 0.7 / (0.94 * 0.94) };
	struct result r;

	(void)state;
	begin_plant(AIMD_LAW_DEFAULT, 1, 1);
	r = play(&p, 0.94, 30, 5);
	assert_true(r.fell_ns < SECOND / 2);
	assert_true(r.mean > 0.9 && r.mean < 0.945);
	assert_true(r.cv < 0.03);
	end_plant();

	/* Noise of 20 % leaves less for the same 99th. */
	p.noise = 0.2;
	begin_plant(AIMD_LAW_DEFAULT, 1, 1);
	r = play(&p, 1, 30, 5);
	assert_true(r.cv < 0.1);
	assert_true(r.long99 <= TARGET);
	end_plant();
}

/* The paper's law meets the target as well, for less and less steadily. */
static void paper_knee(void **state)
{
	struct plant p = { .capacity = 0.94, .noise = 0.1, .queue = 50.0 * TARGET };
	struct result r;

	(void)state;
	begin_plant(AIMD_LAW_PAPER, 1, 1);
	r = play(&p, 0.94, 30, 5);
	assert_true(r.fell_ns < SECOND / 10);
	assert_true(r.mean > 0.5 && r.mean < 0.85);
	assert_true(r.cv > 0.1);
	assert_true(r.beyond < 0.015);
	end_plant();
}

/* Less room, more room, no latency flows, more groups */
static void changes(void **state)
{
	struct plant p = { .capacity = 0.94, .noise = 0.1 };
	struct result r;

	(void)state;
	begin_plant(AIMD_LAW_DEFAULT, 3, 1);
	play(&p, 1, 5, 0);
	p.capacity = 0.5;
	r = play(&p, 0.5, 10, 5);
	assert_true(r.fell_ns < SECOND);
	assert_true(r.mean > 0.475 && r.mean <= 0.5 && r.cv < 0.03);
	p.capacity = 0.94;
	r = play(&p, 1, 10, 7);
	assert_true(r.mean > 0.95 * 0.94);
	/* Open at once */
	p.capacity = 0.3;
	play(&p, 1, 5, 0);
	assert_true(aimd.safe_util < 0.4 * MAX_RATE);
	input.l = 0;
	assert_int_equal(step(TARGET).safe_util, MAX_RATE);
	assert_int_equal(aimd.mode, AIMD_OPEN);
	/* Two more groups that send raise the floor at once. */
	input.l = 3;
	play(&p, 1, 5, 0);
	assert_true(aimd.safe_util < 0.4 * MAX_RATE);
	input.b = 3;
	assert_true(step(50 * TARGET).safe_util >= MAX_RATE / 2);
	end_plant();
}

/* The latency is another's: at MaxRate again after seconds, and most of the time. */
static void not_local(void **state)
{
	static const struct {
		struct plant plant;
		uint32_t l;
		uint32_t b;
		double share;
	} cases[] = {
		{ { .noise = 0.1, .queue = 50.0 * TARGET }, 1, 1, 0.99 },
		{ { .noise = 0.4, .queue = 50.0 * TARGET }, 1, 1, 0.98 },
		{ { .noise = 0.2, .queue = 50.0 * TARGET }, 9, 1, 0.985 },
		{ { .noise = 0.2, .queue = 50.0 * TARGET }, 1, 8, 0.99 },
		/* The short window sees the one now and then, the other always. */
		{ { .noise = 0.1, .spike = 67 }, 1, 1, 0.9 },
		{ { .noise = 0.1, .spike = 20 }, 1, 1, 0.99 },
	};
	struct result r;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct plant p = cases[i].plant;

		begin_plant(AIMD_LAW_DEFAULT, cases[i].l, cases[i].b);
		r = play(&p, 1, 65, 5);
		assert_true(r.mean >= cases[i].share);
		assert_int_equal(aimd.mode, AIMD_NOT_LOCAL);
		/* It ends: noticed within seconds. */
		p = (struct plant) { .noise = 0.1 };
		r = play(&p, 1, 7, 0);
		assert_int_equal(aimd.mode, AIMD_TRACKING);
		end_plant();
	}

	/* It becomes local: noticed at the next test. */
	begin_plant(AIMD_LAW_DEFAULT, 1, 1);
	play(&(struct plant) { .noise = 0.1, .queue = 50.0 * TARGET }, 1, 5, 0);
	assert_int_equal(aimd.mode, AIMD_NOT_LOCAL);
	play(&(struct plant) { .capacity = 0.8, .noise = 0.1 }, 1, 12, 0);
	assert_int_equal(aimd.mode, AIMD_TRACKING);
	assert_true(aimd.safe_util < 0.81 * MAX_RATE);
	end_plant();

	/* The other choice: at the floor */
	begin_plant(AIMD_LAW_DEFAULT, 1, 1);
	params.stay = true;
	play(&(struct plant) { .noise = 0.1, .queue = 50.0 * TARGET }, 1, 20, 0);
	assert_int_equal(aimd.mode, AIMD_NOT_LOCAL);
	assert_int_equal(aimd.safe_util, MAX_RATE / 2);
	r = play(&(struct plant) { .noise = 0.1, .spike = 67 }, 1, 10, 0);
	assert_true(r.mean < 0.5001 && r.cv < 0.001);
	play(&(struct plant) { .noise = 0.1 }, 1, 15, 0);
	assert_int_equal(aimd.mode, AIMD_TRACKING);
	assert_true(aimd.safe_util > 0.9 * MAX_RATE);
	end_plant();
}

/* SafeUtil matters, but the floor is not low enough: the guarantee is kept. */
static void unattainable(void **state)
{
	static const uint32_t groups[][2] = { { 1, 1 }, { 1, 3 }, { 4, 1 } };
	unsigned int i, law;

	(void)state;
	for (i = 0; i < 6; i++) {
		struct plant p = { .smooth = 50, .noise = 0.2 };
		uint32_t l = groups[i / 2][0], b = groups[i / 2][1];
		struct result r;

		law = i % 2;
		begin_plant(law, l, b);
		r = play(&p, 1, 65, 5);
		assert_int_equal(aimd.mode, AIMD_UNATTAINABLE);
		assert_true(fabs(r.mean - (double)b / (l + b)) < 0.01);
		end_plant();
	}
}

/* An agent that is started again stays where the one before was. */
static void resumes(void **state)
{
	uint64_t found = MAX_RATE / 10 * 6, before;
	int i;

	(void)state;
	begin(AIMD_LAW_DEFAULT, 1, 1, 0);
	aimd_resume(&aimd, found);
	input.have_samples = false;
	assert_int_equal(aimd_step(&aimd, &params, &input).safe_util, found);
	assert_int_equal(aimd.mode, AIMD_TRACKING);
	input.have_samples = true;
	for (i = 0; i < 10; i++) {
		before = aimd.safe_util;
		input.now_ns += params.window_ns;
		input.short95_ns = TARGET / 4;
		input.short99_ns = TARGET / 2;
		input.current99_ns = TARGET / 2;
		aimd_step(&aimd, &params, &input);
		assert_in_range(aimd.safe_util, before + 1, before + MAX_RATE / 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paper),
		cmocka_unit_test(resumes),
		cmocka_unit_test(floors),
		cmocka_unit_test(once),
		cmocka_unit_test(cuts),
		cmocka_unit_test(evidence),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_not_local),
		cmocka_unit_test(anything),
		cmocka_unit_test(gives_up),
		cmocka_unit_test(stays_unattainable),
		cmocka_unit_test(not_before_the_floor),
		cmocka_unit_test(alone),
		cmocka_unit_test(knee),
		cmocka_unit_test(spikes),
		cmocka_unit_test(slope),
		cmocka_unit_test(paper_knee),
		cmocka_unit_test(changes),
		cmocka_unit_test(not_local),
		cmocka_unit_test(unattainable),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("aimd", tests, NULL, NULL);
}
