// SPDX-License-Identifier: GPL-2.0
/*
 * What other hosts may send to a receiver (userspace/lib/pool.c): properties of the grants, and a
 * model in lock step of 2 to 64 senders, each with a latency flow of its own, one link and its
 * receiver.
 *
 *	test_pool [SEED]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "minmax.h"
#include "pool.h"
#include "random.h"

#define LINK UINT64_C(50000000)
#define MS UINT64_C(1000000)
#define ALONE UINT64_C(60000)
#define TARGET (5 * ALONE)
#define UNBOUNDED SPLIT_UNBOUNDED

enum {
	MANY = 2000,
	CHUNK = 4096,
	SENDERS = 64,
	/* Of the model: a record each 20 ms */
	TICK_MS = 20,
	WINDOW_MS = 125,
};

/**
 * struct model - hosts that send to one
 * @pool: the receiver's
 * @s: the senders
 * @want: what each would send, bytes per second
 * @used: what each has sent
 * @num: how many
 * @latency: groups of latency flows
 * @cause: something else makes messages late
 * @ns: time
 * @waits_ns: what waits for the link
 * @late_ns: 99th percentile in the last tick
 */
struct model {
	struct pool pool;
	struct split_sender s[SENDERS];
	uint64_t want[SENDERS];
	uint64_t used[SENDERS];
	uint32_t num;
	uint32_t latency;
	bool cause;
	uint64_t ns;
	uint64_t waits_ns;
	uint64_t late_ns;
};

/* Its link is a queue that is longer the fuller it is. */
static void model_send(struct model *m)
{
	uint64_t sum = 0;
	uint64_t load;
	uint32_t i;

	for (i = 0; i < m->num; i++) {
		m->used[i] = min_u64(m->want[i], m->s[i].grant);
		sum += m->used[i];
	}
	load = sum * 1000 / LINK;
	if (load >= 1000) {
		m->waits_ns += (load - 1000) * TICK_MS * MS / 1000;
		m->waits_ns = min_u64(m->waits_ns, 100 * MS);
		/* What the link does not carry is not sent. */
		for (i = 0; i < m->num; i++)
			m->used[i] = m->used[i] * 1000 / load;
	} else {
		m->waits_ns -= min_u64(m->waits_ns, (1000 - load) * TICK_MS * MS / 1000);
	}
	m->late_ns = ALONE + m->waits_ns +
		     ALONE * load / max_u64(1050 - min_u64(load, 1000), 50) / 8;
	if (m->cause)
		m->late_ns += 2 * TARGET;
}

static void model_tick(struct model *m)
{
	struct pool_view v = {
		.now_ns = m->ns, .latency = m->latency,
		.current99_ns = m->late_ns, .target99_ns = TARGET, .window_ns = WINDOW_MS * MS,
	};
	uint64_t pool;
	uint32_t i;

	for (i = 0; i < m->num; i++) {
		v.used += m->used[i];
		v.groups += m->s[i].groups;
		m->s[i].demand = split_demand(m->used[i], m->want[i] > m->used[i], CHUNK);
	}
	pool = pool_step(&m->pool, LINK, &v);
	pool_grant(SPLIT_LAW_MAXMIN, m->s, m->num, pool, m->latency);
	model_send(m);
	m->ns += TICK_MS * MS;
}

static void model_begin(struct model *m, uint32_t num)
{
	uint32_t i;

	*m = (struct model) { .num = num, .latency = num, .ns = MS };
	pool_init(&m->pool, LINK);
	for (i = 0; i < num; i++) {
		m->s[i].groups = 1;
		m->s[i].grant = LINK;
		m->want[i] = UNBOUNDED;
	}
	model_send(m);
}

static void model_run(struct model *m, unsigned int ms)
{
	unsigned int i;

	for (i = 0; i < ms / TICK_MS; i++)
		model_tick(m);
}

static uint64_t sum_used(const struct model *m)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < m->num; i++)
		sum += m->used[i];
	return sum;
}

/* Jain's index of those who would send all that there is */
static double find_jain(const struct model *m)
{
	double sum = 0, squares = 0;
	uint32_t num = 0;
	uint32_t i;

	for (i = 0; i < m->num; i++) {
		if (m->want[i] != UNBOUNDED)
			continue;
		sum += m->used[i];
		squares += (double)m->used[i] * m->used[i];
		num++;
	}
	return sum * sum / (num * squares);
}

/* The share of ticks in a while that meet the target, in percent */
static unsigned int find_met(struct model *m, unsigned int ms)
{
	unsigned int i, met = 0, ticks = ms / TICK_MS;

	for (i = 0; i < ticks; i++) {
		model_tick(m);
		met += m->late_ns <= TARGET;
	}
	return met * 100 / ticks;
}

/* Nobody ends with a cause that is not local, and the link is used. */
static void all_meet_their_target(void **state)
{
	static const uint32_t nums[] = { 2, 4, 8, 16, 64 };
	struct model m;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(nums) / sizeof(*nums); i++) {
		model_begin(&m, nums[i]);
		model_run(&m, 2000);
		assert_in_range(find_met(&m, 20000), 90, 100);
		assert_true(m.pool.state.mode == AIMD_TRACKING ||
			    m.pool.state.mode == AIMD_MISSED);
		assert_in_range(sum_used(&m), LINK / 100 * 80, LINK);
		assert_true(find_jain(&m) > 0.999);
	}
}

/* What idle senders leave others use, and shares are right soon after one begins or ends. */
static void idle_ones_cost_nothing(void **state)
{
	struct model m;
	uint32_t i;

	(void)state;
	model_begin(&m, 8);
	for (i = 0; i < 8; i += 2)
		m.want[i] = 0;
	model_run(&m, 10000);
	assert_in_range(sum_used(&m), LINK / 100 * 80, LINK);
	assert_true(find_jain(&m) > 0.999);
	m.want[0] = UNBOUNDED;
	model_run(&m, 60);
	assert_true(find_jain(&m) > 0.999);
	m.want[1] = 0;
	model_run(&m, 60);
	assert_true(find_jain(&m) > 0.999);
	assert_in_range(sum_used(&m), LINK / 100 * 75, LINK);
}

/* The pool is all that the link has, whatever is late, while nobody fills it. */
static void another_cause(void **state)
{
	struct model m;
	uint32_t i;

	(void)state;
	model_begin(&m, 4);
	for (i = 0; i < 4; i++)
		m.want[i] = LINK / 10;
	m.cause = true;
	model_run(&m, 10000);
	assert_int_equal(m.pool.safe, LINK);
	assert_int_equal(m.pool.state.mode, AIMD_TRACKING);
	assert_int_equal(sum_used(&m), LINK / 10 * 4);
}

static void no_latency_flow(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, 4);
	m.latency = 0;
	model_run(&m, 1000);
	assert_int_equal(m.pool.safe, LINK);
	assert_in_range(sum_used(&m), LINK / 100 * 99, LINK);
}

/* All of a pool is granted, and no more. */
static void all_is_granted(void **state)
{
	struct split_sender s[SENDERS];
	uint64_t pool, sum, weights;
	unsigned int n;
	uint32_t num, i;

	(void)state;
	for (n = 0; n < MANY; n++) {
		num = 1 + random_to(SENDERS - 1);
		pool = random_to(1000000000) * (uint64_t)(1 + random_to(1000));
		weights = 0;
		for (i = 0; i < num; i++) {
			s[i].groups = random_to(4);
			s[i].demand = random_to(2) ? UNBOUNDED : random_to(1000000000);
			weights += s[i].groups;
		}
		pool_grant(SPLIT_LAW_MAXMIN, s, num, pool, 1);
		sum = 0;
		for (i = 0; i < num; i++) {
			sum += s[i].grant;
			assert_true(s[i].groups || !s[i].grant);
		}
		assert_true(sum <= pool);
		assert_true(!weights || sum + 2 * num >= pool);
	}
}

static void as_the_paper(void **state)
{
	struct split_sender s[] = { { .groups = 1 }, { .groups = 3 } };

	(void)state;
	pool_grant(SPLIT_LAW_PAPER, s, 2, 1000, 1);
	assert_int_equal(s[0].grant, 200);
	assert_int_equal(s[1].grant, 600);
}

static void is_filled(void **state)
{
	(void)state;
	assert_true(pool_is_filled(90, 100));
	assert_false(pool_is_filled(89, 100));
	assert_true(pool_is_filled(UINT64_MAX, UINT64_MAX));
	assert_true(pool_is_filled(0, 0));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_meet_their_target),
		cmocka_unit_test(idle_ones_cost_nothing),
		cmocka_unit_test(another_cause),
		cmocka_unit_test(no_latency_flow),
		cmocka_unit_test(all_is_granted),
		cmocka_unit_test(as_the_paper),
		cmocka_unit_test(is_filled),
	};

	random_begin(argc, argv);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
