// SPDX-License-Identifier: GPL-2.0
/*
 * What completions and posts tell of a device: its speed, and the cover for late completions
 * (kmod/core/estimate.h, pacer.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/estimate.h"
#include "core/pacer.h"
#include "random.h"

/* A piece that was posted when the device had been dry for a while completes. */
static void complete_covered(struct riso_estimate *e, uint64_t own_ns, uint64_t dry_ns)
{
	riso_estimate_dry(e, own_ns, dry_ns);
	riso_estimate_rest(e, own_ns);
}

/* A window that lets the device run dry grows until little is lost, and shrinks again. */
static void covers_completions(void **state)
{
	struct riso_estimate e = {};
	int dry = 0;
	int i;

	(void)state;
	complete_covered(&e, 40000, 3000);
	assert_int_equal(e.cover, 3000 - 40);
	/* As little may be the rate. */
	riso_estimate_dry(&e, 40000, 1250);
	assert_int_equal(e.cover, 3000 - 40);
	/* One completion in 256 is late by a millisecond: that is not covered. */
	for (i = 0; i < 100000; i++)
		complete_covered(&e, 40000, i % 256 ? 0 : 1000000);
	assert_true(e.cover <= 4000);
	/* They are late by up to 40 us: hardly any of them finds the device dry. */
	for (i = 0; i < 100000; i++) {
		uint64_t late = random_to(40000);

		dry += late > e.cover;
		complete_covered(&e, 40000, late > e.cover ? late - e.cover : 0);
	}
	assert_true(dry < 6000 && e.cover > 35000);
	/* All of them are, by far more than there may be. */
	for (i = 0; i < 1000; i++)
		riso_estimate_dry(&e, 40000, 1000000);
	assert_int_equal(e.cover, 64000);
	for (i = 0; i < 100000; i++)
		riso_estimate_rest(&e, 40000);
	assert_int_equal(e.cover, 0);
	/* Short pieces come more often: they let it shrink more slowly. */
	e.cover = 64000;
	for (i = 0; i < 1000; i++)
		riso_estimate_rest(&e, 4000);
	assert_int_equal(e.cover, 54000);
}

/* When a device has sent all is known by what was posted, and not later than its load says. */
static void runs_dry(void **state)
{
	struct riso_pacer p = {};

	(void)state;
	riso_pacer_fill(&p, 10000, 1000000);
	riso_pacer_fill(&p, 10000, 1005000);
	assert_int_equal(riso_pacer_dry(&p, 1020000), 0);
	assert_int_equal(riso_pacer_dry(&p, 1023000), 3000);
	riso_pacer_fill(&p, 10000, 1023000);
	assert_int_equal(riso_pacer_dry(&p, 1034000), 1000);
	p.load = 5000;
	riso_pacer_settle(&p, 1000000000, 1024000);
	assert_int_equal(riso_pacer_dry(&p, 1030000), 1000);
	/* What was not taken is not there. */
	riso_pacer_fill(&p, 10000, 1030000);
	riso_pacer_refund(&p, 0, 4000);
	assert_int_equal(riso_pacer_dry(&p, 1037000), 1000);
	riso_pacer_refund(&p, 0, 2000000);
	assert_int_equal(p.empty_ns, 0);
}

/*
 * For @ms a piece of 30 KB completes each @gap_ns. It began to leave @late_ns after the one before
 * had completed, or could have long before if that is 0.
 */
static uint64_t complete_pieces(struct riso_estimate *e, uint64_t now, unsigned int ms,
				uint64_t gap_ns, uint64_t late_ns)
{
	uint64_t since_ns = late_ns ? gap_ns - late_ns : 2 * gap_ns;
	uint64_t end = now + ms * 1000000ULL;

	for (; now < end; now += gap_ns) {
		e->done += 30000;
		riso_estimate_complete(e, riso_time_of(30000, riso_estimate_speed(e, 3000000000)),
				       now - since_ns, now);
	}
	return now;
}

/* What a device delivers that has little to do is not what it can. */
static void learns_speed(void **state)
{
	struct riso_estimate e;
	uint64_t now = 1000000000;

	(void)state;
	riso_estimate_restart(&e);
	now = complete_pieces(&e, now, 100, 500000, 488000);
	assert_int_equal(riso_estimate_speed(&e, 3000000000), 3000000000);
	assert_true(e.rate > 50000000 && e.rate < 70000000);
	/* One that always has something is as fast as that. */
	complete_pieces(&e, now, 100, 20000, 0);
	assert_true(riso_estimate_speed(&e, 3000000000) > 1450000000);
	assert_true(riso_estimate_speed(&e, 3000000000) < 1550000000);
}

/* On a long path nobody knows whether the device is full. What it delivers is its speed so far. */
static void learns_far_speed(void **state)
{
	struct riso_estimate e;
	uint64_t now = 1000000000;
	int i;

	(void)state;
	riso_estimate_restart(&e);
	for (i = 0; i < 100; i++) {
		e.slack = true;
		now = complete_pieces(&e, now, 1, 20000, 0);
	}
	assert_true(riso_estimate_speed(&e, 3000000000) > 1450000000);
	assert_true(riso_estimate_speed(&e, 3000000000) < 1550000000);
	assert_true(e.ceiling == RISO_NEVER);
	/* On a path that has become longer it is too little: what is delivered later tells. */
	now = complete_pieces(&e, now, 100, 11000, 9000);
	assert_true(riso_estimate_speed(&e, 3000000000) > 2600000000);
	/* A device that is full for sure has a ceiling. */
	complete_pieces(&e, now, 100, 20000, 0);
	assert_true(e.ceiling > 1450000000 && e.ceiling < 1550000000);
}

/* A device that waits for less than an eighth of a piece is full, but may be faster. */
static void waits_little(void **state)
{
	struct riso_estimate e;
	uint64_t now = 1000000000;

	(void)state;
	riso_estimate_restart(&e);
	now = complete_pieces(&e, now, 100, 20000, 2000);
	assert_true(e.ceiling == RISO_NEVER);
	complete_pieces(&e, now, 100, 20000, 1000);
	assert_true(e.ceiling > 1450000000 && e.ceiling < 1550000000);
	assert_int_equal(e.peak, 0);
}

/* The cover is what leaves meanwhile, also where processes hide the speed. */
static void covers_bytes(void **state)
{
	struct riso_estimate e = { .cover = 50000 };

	(void)state;
	assert_int_equal(riso_estimate_covered(&e, true, 1000000000), 50000);
	e.rate_prev = 400000000;
	assert_int_equal(riso_estimate_covered(&e, true, 1000000000), 25000);
	assert_int_equal(riso_estimate_covered(&e, false, 1000000000), 50000);
	e.rate = 600000000;
	assert_int_equal(riso_estimate_covered(&e, true, 1000000000), 37500);
	e.rate = 900000000;
	assert_int_equal(riso_estimate_covered(&e, true, 1000000000), 50000);
	e.peak = 900000000;
	e.rate = 400000000;
	assert_int_equal(riso_estimate_covered(&e, true, 1000000000), 45000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(covers_completions),
		cmocka_unit_test(runs_dry),
		cmocka_unit_test(learns_speed),
		cmocka_unit_test(learns_far_speed),
		cmocka_unit_test(waits_little),
		cmocka_unit_test(covers_bytes),
	};

	random_begin(argc, argv);
	return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}
