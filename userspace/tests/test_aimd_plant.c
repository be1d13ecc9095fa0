// SPDX-License-Identifier: GPL-2.0
/*
 * These cases play the laws of userspace/lib/aimd.c on devices whose latency does, does not, or
 * does not enough depend on SafeUtil. Time is simulated, and seeds are fixed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aimd.h"
#include "aimd_law.h"
#include "percentile.h"
#include "random.h"

static double random_normal(void)
{
	double a = random_unit();
	double b = random_unit();

	return sqrt(-2 * log(a)) * cos(2 * M_PI * b);
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
	double use = (double)law_aimd.safe_util / LAW_MAX_RATE, latency = 0.3 * LAW_TARGET;

	if (p->capacity) {
		p->queue += (use / p->capacity - 1) * LAW_PERIOD;
		p->queue = fmin(fmax(p->queue, 0), 50.0 * LAW_TARGET);
	}
	latency += p->queue + p->smooth * LAW_TARGET * use * use;
	latency *= exp(p->noise * random_normal());
	if (p->spike && random_u64() % p->spike == 0)
		latency += 50 * LAW_TARGET;
	return latency;
}

/* Runs for @seconds; mean, cv and beyond are of those after the first @skip. */
static struct result play(struct plant *p, double limit, unsigned int seconds,
			  unsigned int skip)
{
	uint64_t start = law_input.now_ns, n = 0;
	double sum = 0, squares = 0, beyond = 0;
	struct result r = { .fell_ns = SECOND };

	while (law_input.now_ns < start + seconds * SECOND) {
		uint64_t latency = sample(p);
		double use;

		percentile_add(&long_window, latency);
		percentile_add(&short_window, latency);
		law_input.now_ns += LAW_PERIOD;
		law_input.current99_ns = percentile_get(&long_window, PERCENTILE_P99);
		law_input.short99_ns = percentile_get(&short_window, PERCENTILE_P99);
		law_input.short95_ns = percentile_get(&short_window, 950000);
		use = (double)aimd_step(&law_aimd, &law_params, &law_input).safe_util /
		      LAW_MAX_RATE;
		if (use <= limit && r.fell_ns == SECOND)
			r.fell_ns = law_input.now_ns - start;
		if (law_input.now_ns < start + skip * SECOND)
			continue;
		n++;
		sum += use;
		squares += use * use;
		beyond += latency > LAW_TARGET;
	}
	r.mean = sum / n;
	r.cv = sqrt(fmax(0, squares / n - r.mean * r.mean)) / r.mean;
	r.beyond = beyond / n;
	r.long99 = percentile_get(&long_window, PERCENTILE_P99);
	return r;
}

static void begin_plant(enum aimd_law law, uint32_t l, uint32_t b)
{
	law_begin(law, l, b, 0);
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
			.queue = 50.0 * LAW_TARGET,
		};
		struct result r;

		begin_plant(AIMD_LAW_DEFAULT, cases[i].l, 1);
		r = play(&p, capacity, 30, 5);
		assert_true(r.fell_ns < (capacity > 0.9 ? SECOND / 10 : SECOND));
		assert_true(r.mean > 0.95 * capacity);
		assert_true(r.cv < 0.03);
		assert_true(r.beyond < 0.01);
		assert_true(r.long99 <= LAW_TARGET);
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
	assert_true(r.long99 <= LAW_TARGET);
	end_plant();
}

/* The paper's law meets the target as well, for less and less steadily. */
static void paper_knee(void **state)
{
	struct plant p = { .capacity = 0.94, .noise = 0.1, .queue = 50.0 * LAW_TARGET };
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
	assert_true(law_aimd.safe_util < 0.4 * LAW_MAX_RATE);
	law_input.l = 0;
	assert_int_equal(law_step(LAW_TARGET).safe_util, LAW_MAX_RATE);
	assert_int_equal(law_aimd.mode, AIMD_OPEN);
	/* Two more groups that send raise the floor at once. */
	law_input.l = 3;
	play(&p, 1, 5, 0);
	assert_true(law_aimd.safe_util < 0.4 * LAW_MAX_RATE);
	law_input.b = 3;
	assert_true(law_step(50 * LAW_TARGET).safe_util >= LAW_MAX_RATE / 2);
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
		{ { .noise = 0.1, .queue = 50.0 * LAW_TARGET }, 1, 1, 0.99 },
		{ { .noise = 0.4, .queue = 50.0 * LAW_TARGET }, 1, 1, 0.98 },
		{ { .noise = 0.2, .queue = 50.0 * LAW_TARGET }, 9, 1, 0.985 },
		{ { .noise = 0.2, .queue = 50.0 * LAW_TARGET }, 1, 8, 0.99 },
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
		assert_int_equal(law_aimd.mode, AIMD_NOT_LOCAL);
		/* It ends: noticed within seconds. */
		p = (struct plant) { .noise = 0.1 };
		r = play(&p, 1, 7, 0);
		assert_int_equal(law_aimd.mode, AIMD_TRACKING);
		end_plant();
	}

	/* It becomes local: noticed at the next test. */
	begin_plant(AIMD_LAW_DEFAULT, 1, 1);
	play(&(struct plant) { .noise = 0.1, .queue = 50.0 * LAW_TARGET }, 1, 5, 0);
	assert_int_equal(law_aimd.mode, AIMD_NOT_LOCAL);
	play(&(struct plant) { .capacity = 0.8, .noise = 0.1 }, 1, 12, 0);
	assert_int_equal(law_aimd.mode, AIMD_TRACKING);
	assert_true(law_aimd.safe_util < 0.81 * LAW_MAX_RATE);
	end_plant();

	/* The other choice: at the floor */
	begin_plant(AIMD_LAW_DEFAULT, 1, 1);
	law_params.stay = true;
	play(&(struct plant) { .noise = 0.1, .queue = 50.0 * LAW_TARGET }, 1, 20, 0);
	assert_int_equal(law_aimd.mode, AIMD_NOT_LOCAL);
	assert_int_equal(law_aimd.safe_util, LAW_MAX_RATE / 2);
	r = play(&(struct plant) { .noise = 0.1, .spike = 67 }, 1, 10, 0);
	assert_true(r.mean < 0.5001 && r.cv < 0.001);
	play(&(struct plant) { .noise = 0.1 }, 1, 15, 0);
	assert_int_equal(law_aimd.mode, AIMD_TRACKING);
	assert_true(law_aimd.safe_util > 0.9 * LAW_MAX_RATE);
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
		assert_int_equal(law_aimd.mode, AIMD_UNATTAINABLE);
		assert_true(fabs(r.mean - (double)b / (l + b)) < 0.01);
		end_plant();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knee),
		cmocka_unit_test(spikes),
		cmocka_unit_test(slope),
		cmocka_unit_test(paper_knee),
		cmocka_unit_test(changes),
		cmocka_unit_test(not_local),
		cmocka_unit_test(unattainable),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("aimd_plant", tests, NULL, NULL);
}
