// SPDX-License-Identifier: GPL-2.0
/*
 * What is made of measurements, by tables of rates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/rdma_isolate.h>

#include "aimd.h"
#include "calibrate.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))

#define G UINT64_C(1000000000)
#define M UINT64_C(1000000)

/* More than the chunk of auto at slow rates, so that it is told which size was chosen */
#define SMALLEST	8192
/* Index of a size: auto is as good */
#define AUTO		CALIBRATE_SIZES

/* Rates of 8k, 16k and so on, up to the first 0; which of them is the chunk */
static const struct {
	const char *what;
	uint64_t rate;
	uint64_t of_size[CALIBRATE_SIZES + 1];
	unsigned int chunk;
	bool enough;
} tables[] = {
	{ "slower the smaller", 1000, { 200, 400, 800, 950, 990, 1000 }, 3, true },
	{ "just not enough", 1000, { 200, 400, 800, 949, 950, 1000 }, 4, true },
	{ "the smallest does", 1000, { 960, 990, 1000, 1000 }, 0, true },
	{ "the largest alone", 1000,
	  { 8, 16, 32, 64, 128, 256, 512, 1000 }, 7, true },
	{ "none does: the best", 1000, { 200, 700, 600, 500 }, 1, false },
	{ "none does: of the same the smallest", 1000, { 300, 300, 300 }, 0, false },
	{ "more than MaxRate", 1000, { 100, 1200, 1000 }, 1, true },
	{ "a dip behind it", 1000, { 100, 980, 500, 990 }, 1, true },
	{ "one size", 1000, { 10 }, 0, false },
	{ "not a multiple of 100", 199, { 188, 189, 190 }, 2, true },
	{ "a chunk of 8 KB takes less than 10 us", 900 * M, { 900 * M }, AUTO, true },
	{ "and more than that", 800 * M, { 800 * M }, 0, true },
	{ "fast, as large as auto", 125 * G / 10,
	  { 1 * G, 2 * G, 4 * G, 12 * G, 12500 * M }, AUTO, true },
	{ "fast, larger than auto", 125 * G / 10,
	  { 1 * G, 2 * G, 4 * G, 8 * G, 12500 * M }, 4, true },
	{ "fast, none does", 125 * G / 10, { 1 * G, 2 * G }, 1, false },
	{ "fastest", 125 * G,
	  { 1 * G, 2 * G, 4 * G, 8 * G, 16 * G, 32 * G, 120 * G, 125 * G }, AUTO, true },
};

static void chunks(void **state)
{
	unsigned int i, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(tables); i++) {
		struct calibrate_seen seen = { .rate = tables[i].rate };
		struct calibrate_advice advice;
		uint64_t chunk;

		for (n = 0; n < CALIBRATE_SIZES && tables[i].of_size[n]; n++) {
			seen.size[n].bytes = SMALLEST << n;
			seen.size[n].rate = tables[i].of_size[n];
		}
		seen.num = n;
		advice = calibrate_advise(&seen);
		chunk = tables[i].chunk == AUTO ? RDMA_ISOLATE_AUTO : SMALLEST << tables[i].chunk;
		if (advice.chunk != chunk || advice.enough != tables[i].enough)
			fail_msg("%s: %ju, %d", tables[i].what,
				 (uintmax_t)advice.chunk, advice.enough);
	}
}

static void rates(void **state)
{
	static const uint64_t table[][2] = {
		/* of 8 Mbit/s and so on: three digits, down */
		{ 1000000, 1000000 },
		{ 1009999, 1008750 },
		{ 12345678901, 12337500000 },
		{ 12049999999, 12037500000 },
		{ 12499999999, 12487500000 },
		{ 12500000000, 12500000000 },
		{ 124999, 124875 },
		/* and in range */
		{ 1, RDMA_ISOLATE_RATE_MIN },
		{ 100001, 100000 },
		{ UINT64_C(1000000000001), RDMA_ISOLATE_RATE_MAX },
		{ UINT64_C(2000000000000), RDMA_ISOLATE_RATE_MAX },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct calibrate_seen seen = { .rate = table[i][0], .num = 1 };

		assert_int_equal(calibrate_advise(&seen).max_rate, table[i][1]);
	}
}

static void safe_utils(void **state)
{
	static const uint64_t table[][2] = {
		/* 97 %, in three digits of bits, down */
		{ 12250000000, 11875000000 },
		{ 49500000, 48000000 },
		{ RDMA_ISOLATE_RATE_MAX, RDMA_ISOLATE_RATE_MAX / 100 * 97 },
		/* and in range */
		{ RDMA_ISOLATE_RATE_MIN, RDMA_ISOLATE_RATE_MIN },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct calibrate_seen seen = { .rate = table[i][0], .num = 1 };

		assert_int_equal(calibrate_safe_util(table[i][0]), table[i][1]);
		assert_int_equal(calibrate_advise(&seen).safe_util, table[i][1]);
	}
}

static void ops(void **state)
{
	static const uint64_t table[][2] = {
		{ 1, 1 }, { 999, 999 }, { 1000, 1000 }, { 1009, 1000 }, { 12345, 12300 },
		{ 9999999, 9990000 }, { 0, 0 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct calibrate_seen seen = { .ops = table[i][0], .num = 1 };

		assert_int_equal(calibrate_advise(&seen).max_ops, table[i][1]);
	}
}

static void targets(void **state)
{
	static const uint64_t table[][2] = {
		{ 1000, AIMD_TARGET_TIMES * 1000 },
		{ 1001, AIMD_TARGET_TIMES * 1000 + 1000 },
		{ 3 * M, AIMD_TARGET_TIMES * 3 * M },
		{ 0, 1 },
		{ RDMA_ISOLATE_TARGET99_MAX, RDMA_ISOLATE_TARGET99_MAX },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct calibrate_seen seen = { .p99_ns = table[i][0], .num = 1 };

		assert_int_equal(calibrate_advise(&seen).target99_ns, table[i][1]);
	}
}

static void depths(void **state)
{
	static const struct {
		uint64_t wire, rate, rtt;
		unsigned int depth;
	} table[] = {
		/* a path that holds less than a piece, one, and several */
		{ 4170, 50 * M, 80000, 2 },
		{ 4000, 50 * M, 80000, 3 },
		{ 4000, 12500 * M, 3200, 12 },
		{ 1 << 20, 12500 * M, 3200, 2 },
		/* nothing known of it */
		{ 1024, 0, 3200, 2 },
		{ 1024, 12500 * M, 0, 2 },
		/* bounded, and far from what overflows */
		{ 1000, 1000 * M, 1022000, CALIBRATE_DEPTH },
		{ 1000, 1000 * M, 1021000, CALIBRATE_DEPTH - 1 },
		{ 1, 1000 * G, UINT64_MAX, CALIBRATE_DEPTH },
		{ 1, UINT64_C(1) << 40, 1 << 24, CALIBRATE_DEPTH },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(table); i++)
		assert_int_equal(calibrate_depth(table[i].wire, table[i].rate,
						 table[i].rtt), table[i].depth);
}

/* What small messages take on a quiet host differs little. */
static void noise(void **state)
{
	struct calibrate_seen seen = { .p50_ns = 290000, .p99_ns = 2900000, .num = 1 };

	(void)state;
	assert_false(calibrate_advise(&seen).noisy);
	seen.p99_ns++;
	assert_true(calibrate_advise(&seen).noisy);
	seen.p99_ns = seen.p50_ns;
	assert_false(calibrate_advise(&seen).noisy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks),
		cmocka_unit_test(rates),
		cmocka_unit_test(safe_utils),
		cmocka_unit_test(ops),
		cmocka_unit_test(targets),
		cmocka_unit_test(depths),
		cmocka_unit_test(noise),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("calibrate", tests, NULL, NULL);
}
