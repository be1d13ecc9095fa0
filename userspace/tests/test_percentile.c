// SPDX-License-Identifier: GPL-2.0
/*
 * userspace/lib/percentile.c against a sort of the same samples: the answer is never
 * below the sample of the nearest rank and above it by less than 1/128, wherever the
 * window stands.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "percentile.h"
#include "random.h"

enum { LONGEST = 10000 };

static struct percentile window;

static uint64_t uniform(void)
{
	return random_u64() % 100000;
}

static uint64_t lognormal(void)
{
	double normal = sqrt(-2 * log(random_unit())) * cos(2 * M_PI * random_unit());

	return 5000 * exp(normal);
}

static uint64_t spikes(void)
{
	return random_u64() % 50 ? 2000 + random_u64() % 100
				 : 1000000 + random_u64() % 5000000;
}

static uint64_t constant(void)
{
	return 1234567;
}

/* Every power of two as often as every other, beyond the longest that is told apart */
static uint64_t any(void)
{
	return random_u64() >> random_u64() % 64;
}

static uint64_t (*const kinds[])(void) = { uniform, lognormal, spikes, constant, any };

static const uint32_t ranks[] = {
	0, 1, 10000, PERCENTILE_P50, 900000, PERCENTILE_P99, PERCENTILE_P99_9, 999900,
	PERCENTILE_MAX,
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* @exact is what the answer stands for */
static void assert_near(uint64_t answer, uint64_t exact)
{
	if (exact > PERCENTILE_MAX_NS)
		exact = PERCENTILE_MAX_NS;
	assert_true(answer >= exact);
	assert_true(answer <= PERCENTILE_MAX_NS);
	assert_true((answer - exact) * 128 < exact || answer == exact);
}

/* Compares every rank with the @num samples that end in front of @end. */
static void check(const uint64_t *all, size_t end, uint32_t num)
{
	static uint64_t sorted[LONGEST];
	unsigned int i;

	memcpy(sorted, all + end - num, num * sizeof(*sorted));
	qsort(sorted, num, sizeof(*sorted), compare);
	assert_int_equal(percentile_count(&window), num);
	for (i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
		uint64_t below = (uint64_t)num * ranks[i];
		size_t rank = below / 1000000 + (below % 1000000 != 0);

		assert_near(percentile_get(&window, ranks[i]),
			    sorted[rank ? rank - 1 : 0]);
	}
}

/* Slides a window of @size past @rounds times as many samples of each kind. */
static void slide(uint32_t size, unsigned int rounds, size_t every)
{
	uint64_t *all = calloc((size_t)rounds * size, sizeof(*all));
	size_t i, kind, end = (size_t)rounds * size;

	assert_non_null(all);
	for (kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
		seed = 88172645463325252 + kind;
		assert_int_equal(percentile_init(&window, size), 0);
		for (i = 0; i < end; i++) {
			all[i] = kinds[kind]();
			percentile_add(&window, all[i]);
			if ((i + 1) % every == 0)
				check(all, i + 1, i + 1 < size ? i + 1 : size);
		}
		check(all, end, size);
		percentile_free(&window);
	}
	free(all);
}

static void exact(void **state)
{
	(void)state;
	slide(1, 50, 1);
	slide(2, 50, 1);
	slide(3, 50, 1);
	slide(200, 30, 7);
	slide(LONGEST, 4, 3777);
}

/* What came before the window's samples leaves no trace, whatever it was. */
static void forgets(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(percentile_init(&window, 200), 0);
	for (i = 0; i < 200; i++)
		percentile_add(&window, UINT64_MAX);
	for (i = 0; i < 198; i++)
		percentile_add(&window, 100);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99), 100);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99_9), PERCENTILE_MAX_NS);
	percentile_add(&window, 100);
	percentile_add(&window, 100);
	assert_int_equal(percentile_get(&window, PERCENTILE_MAX), 100);
	/* Three of 200 are enough for the 99th. */
	percentile_add(&window, 200);
	percentile_add(&window, 200);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99), 100);
	percentile_add(&window, 200);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99), 200);

	percentile_reset(&window);
	assert_int_equal(percentile_count(&window), 0);
	assert_int_equal(percentile_get(&window, PERCENTILE_MAX), 0);
	percentile_add(&window, 7);
	assert_int_equal(percentile_get(&window, PERCENTILE_MAX), 7);
	percentile_free(&window);
}

static void few(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(percentile_init(&window, LONGEST), 0);
	for (i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
		assert_int_equal(percentile_get(&window, ranks[i]), 0);
	percentile_add(&window, 30);
	for (i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
		assert_int_equal(percentile_get(&window, ranks[i]), 30);
	percentile_add(&window, 10);
	assert_int_equal(percentile_get(&window, 0), 10);
	assert_int_equal(percentile_get(&window, PERCENTILE_P50), 10);
	assert_int_equal(percentile_get(&window, PERCENTILE_P50 + 1), 30);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99), 30);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99_9), 30);
	assert_int_equal(percentile_get(&window, UINT32_MAX), 30);
	/* 999 samples have no 99.9th but the largest, 1000 have. */
	for (i = 2; i < 999; i++)
		percentile_add(&window, 20);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99_9), 30);
	percentile_add(&window, 20);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99_9), 20);
	percentile_free(&window);
}

/* One sample at each side of each power of two, and those that are clamped */
static void edges(void **state)
{
	unsigned int bit;
	int off;

	(void)state;
	assert_int_equal(percentile_init(&window, 1), 0);
	percentile_add(&window, 0);
	assert_int_equal(percentile_get(&window, PERCENTILE_P99), 0);
	for (bit = 0; bit < 64; bit++) {
		for (off = -2; off <= 2; off++) {
			uint64_t ns = (UINT64_C(1) << bit) + off;

			percentile_add(&window, ns);
			assert_near(percentile_get(&window, PERCENTILE_P99), ns);
			if (ns < 256)
				assert_int_equal(percentile_get(&window, 0), ns);
		}
	}
	percentile_add(&window, PERCENTILE_MAX_NS);
	assert_int_equal(percentile_get(&window, 0), PERCENTILE_MAX_NS);
	percentile_add(&window, UINT64_MAX);
	assert_int_equal(percentile_get(&window, 0), PERCENTILE_MAX_NS);
	assert_int_equal(percentile_count(&window), 1);
	percentile_free(&window);
}

static void refused(void **state)
{
	(void)state;
	assert_int_equal(percentile_init(&window, 0), -EINVAL);
	percentile_free(&window);
	percentile_free(&window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact),
		cmocka_unit_test(forgets),
		cmocka_unit_test(few),
		cmocka_unit_test(edges),
		cmocka_unit_test(refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("percentile", tests, NULL, NULL);
}
