// SPDX-License-Identifier: GPL-2.0
/*
 * Who may send how much to one receiver (userspace/lib/split.c): properties of the split with
 * random senders, and a model of 2 to 64 senders and a receiver in lock step.
 *
 *	test_split [SEED]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "minmax.h"
#include "random.h"
#include "split.h"

enum {
	MANY = 20000,
	GBIT = 125000000,
	CHUNK = 4096,
	/* The model: a record every 10 ms */
	TICKS_TO_SETTLE = 5,
	/* Hosts of a model: with more, what idle ones may begin with is a part that shows. */
	MODEL_SENDERS = 64,
};

static uint64_t sum_grants(const struct split_sender *s, uint32_t num)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < num; i++)
		sum += s[i].grant;
	return sum;
}

static uint64_t random_rate(void)
{
	switch (random_to(4)) {
	case 0:
		return 0;
	case 1:
		return SPLIT_UNBOUNDED;
	case 2:
		return random_to(1000);
	default:
		return random_to(100 * UINT64_C(1000000000));
	}
}

static uint32_t make_senders(struct split_sender *s)
{
	uint32_t num = 1 + random_to(SPLIT_SENDERS);
	uint32_t i;

	for (i = 0; i < num; i++)
		s[i] = (struct split_sender) {
			.groups = random_to(3) ? 1 + random_to(8) : random_to(2) * UINT32_MAX,
			.demand = random_rate(),
		};
	return num;
}

static uint64_t random_pool(void)
{
	return random_to(4) ? random_to(UINT64_C(1000000000000) + 1) : random_to(100);
}

/* What all demand who have a weight, at most the pool */
static uint64_t find_wanted(const struct split_sender *s, uint32_t num, uint64_t pool)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < num; i++)
		if (s[i].groups)
			sum += min_u64(s[i].demand, pool - sum);
	return sum;
}

/* The sum is never above the pool, and no demand is left while some of the pool is. */
static void uses_the_pool(void **state)
{
	struct split_sender s[SPLIT_SENDERS];
	uint64_t pool;
	uint32_t num, i, k;

	(void)state;
	for (k = 0; k < MANY; k++) {
		num = make_senders(s);
		pool = random_pool();
		split_grant(SPLIT_LAW_MAXMIN, s, num, pool, 0);
		assert_int_equal(sum_grants(s, num), find_wanted(s, num, pool));
		for (i = 0; i < num; i++) {
			assert_true(s[i].grant <= s[i].demand);
			assert_true(s[i].groups || !s[i].grant);
		}
	}
}

/* Who gets less than it demands gets as much for each group as anybody does. */
static void is_fair(void **state)
{
	struct split_sender s[SPLIT_SENDERS];
	uint32_t num, i, j, k;

	(void)state;
	for (k = 0; k < MANY / 10; k++) {
		num = make_senders(s);
		split_grant(SPLIT_LAW_MAXMIN, s, num, random_pool(), 0);
		for (i = 0; i < num; i++) {
			if (!s[i].groups || s[i].grant == s[i].demand)
				continue;
			for (j = 0; j < num; j++)
				assert_true((unsigned __int128)s[j].grant * s[i].groups <=
					    (unsigned __int128)(s[i].grant + num) * s[j].groups +
					    (unsigned __int128)num * s[i].groups);
		}
	}
}

/* More for all makes it less for nobody, and who demands more does not get less. */
static void is_monotone(void **state)
{
	struct split_sender s[SPLIT_SENDERS], more[SPLIT_SENDERS];
	uint64_t pool;
	uint32_t num, i, k;

	(void)state;
	for (k = 0; k < MANY; k++) {
		num = make_senders(s);
		pool = random_pool();
		memcpy(more, s, sizeof(s));
		split_grant(SPLIT_LAW_MAXMIN, s, num, pool, 0);
		split_grant(SPLIT_LAW_MAXMIN, more, num, pool + random_pool(), 0);
		for (i = 0; i < num; i++)
			assert_true(more[i].grant + num >= s[i].grant);
		memcpy(more, s, sizeof(s));
		i = random_to(num);
		if (more[i].demand < SPLIT_UNBOUNDED)
			more[i].demand += random_to(SPLIT_UNBOUNDED - more[i].demand);
		split_grant(SPLIT_LAW_MAXMIN, more, num, pool, 0);
		assert_true(more[i].grant + num >= s[i].grant);
	}
}

/* In which order senders are does not matter. */
static void is_free_of_order(void **state)
{
	struct split_sender s[SPLIT_SENDERS], other[SPLIT_SENDERS], swap;
	uint32_t at[SPLIT_SENDERS];
	uint64_t pool;
	uint32_t num, i, j, k, was;

	(void)state;
	for (k = 0; k < MANY; k++) {
		num = make_senders(s);
		pool = random_pool();
		memcpy(other, s, sizeof(s));
		for (i = 0; i < num; i++)
			at[i] = i;
		for (i = num - 1; i; i--) {
			j = random_to(i + 1);
			swap = other[i], other[i] = other[j], other[j] = swap;
			was = at[i], at[i] = at[j], at[j] = was;
		}
		split_grant(SPLIT_LAW_MAXMIN, s, num, pool, 0);
		split_grant(SPLIT_LAW_MAXMIN, other, num, pool, 0);
		for (i = 0; i < num; i++)
			assert_true(other[i].grant <= s[at[i]].grant + num &&
				    s[at[i]].grant <= other[i].grant + num);
	}
}

/* The paper's rule: a part for each group, used or not; the guarantee for latency groups stays. */
static void follows_the_paper(void **state)
{
	struct split_sender s[] = {
		{ .groups = 1, .demand = SPLIT_UNBOUNDED },
		{ .groups = 2, .demand = 0 },
	};

	(void)state;
	split_grant(SPLIT_LAW_PAPER, s, 2, 400, 1);
	assert_int_equal(s[0].grant, 100);
	assert_int_equal(s[1].grant, 200);
	split_grant(SPLIT_LAW_PAPER, s, 0, 400, 0);
}

static void keeps_the_guarantee(void **state)
{
	(void)state;
	assert_int_equal(split_pool(10, 1000, 0, 3), 1000);
	assert_int_equal(split_pool(10, 1000, 1, 3), 750);
	assert_int_equal(split_pool(900, 1000, 1, 3), 900);
	assert_int_equal(split_pool(2000, 1000, 1, 3), 1000);
	assert_int_equal(split_pool(10, 1000, UINT32_MAX, UINT32_MAX), 500);
	assert_int_equal(split_pool(10, 1000, 1, 0), 10);
}

static void demands_what_it_uses(void **state)
{
	(void)state;
	assert_true(split_demand(1, true, CHUNK) == SPLIT_UNBOUNDED);
	assert_int_equal(split_demand(0, false, CHUNK), 200 * CHUNK);
	assert_int_equal(split_demand(1000, false, CHUNK), 1250 + 200 * CHUNK);
}

/* A sender of the model would like to send @wants, and tells each 10 ms what it did. */
struct model {
	struct split_sender s[SPLIT_SENDERS];
	uint64_t wants[SPLIT_SENDERS];
	uint32_t num;
};

/* One tick: all send under the grants that they have and tell; the receiver splits. Returns use. */
static uint64_t model_tick(struct model *m, uint64_t pool)
{
	uint64_t used, sum = 0;
	uint32_t i;

	for (i = 0; i < m->num; i++) {
		used = min_u64(m->wants[i], m->s[i].grant);
		m->s[i].demand = split_demand(used, m->wants[i] > used, CHUNK);
		sum += used;
	}
	assert_true(sum <= pool);
	split_grant(SPLIT_LAW_MAXMIN, m->s, m->num, pool, 1);
	return sum;
}

static void model_settle(struct model *m, uint64_t pool)
{
	uint32_t i;

	for (i = 0; i < TICKS_TO_SETTLE; i++)
		model_tick(m, pool);
}

/* Jain's index of those who would like all there is */
static double find_jain(const struct model *m)
{
	double sum = 0, squares = 0, x;
	uint32_t num = 0;
	uint32_t i;

	for (i = 0; i < m->num; i++) {
		if (m->wants[i] != SPLIT_UNBOUNDED)
			continue;
		x = (double)m->s[i].grant / m->s[i].groups;
		sum += x;
		squares += x * x;
		num++;
	}
	return sum * sum / (num * squares);
}

/* Half of the senders idle, one joins, one leaves: all of the pool is used, in equal parts. */
static void model_uses_the_pool(void **state)
{
	uint64_t pool = 10 * (uint64_t)GBIT;
	struct model m;
	uint32_t num, i;

	(void)state;
	for (num = 2; num <= MODEL_SENDERS; num++) {
		m = (struct model) { .num = num };
		for (i = 0; i < num; i++) {
			m.s[i].groups = 1 + random_to(3);
			m.wants[i] = i % 2 ? 0 : SPLIT_UNBOUNDED;
		}
		model_settle(&m, pool);
		assert_true(model_tick(&m, pool) >= pool / 100 * 95);
		assert_true(find_jain(&m) > 0.999);
		m.wants[1] = SPLIT_UNBOUNDED;
		model_settle(&m, pool);
		assert_true(model_tick(&m, pool) >= pool / 100 * 95);
		assert_true(find_jain(&m) > 0.999);
		m.wants[0] = 0;
		model_settle(&m, pool);
		assert_true(model_tick(&m, pool) >= pool / 100 * 95);
	}
}

/* One that tells of no use, though it sends, gets no more than two chunks in 10 ms and its part. */
static void model_liars_gain_nothing(void **state)
{
	uint64_t pool = 10 * (uint64_t)GBIT;
	struct model m = { .num = 8 };
	uint32_t i;

	(void)state;
	for (i = 0; i < m.num; i++) {
		m.s[i].groups = 1;
		m.wants[i] = SPLIT_UNBOUNDED;
	}
	m.wants[7] = 0;
	model_settle(&m, pool);
	assert_true(m.s[7].grant <= split_demand(0, false, CHUNK));
	for (i = 0; i < 7; i++)
		assert_true(m.s[i].grant >= pool / 8);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(uses_the_pool),
	cmocka_unit_test(is_fair),
	cmocka_unit_test(is_monotone),
	cmocka_unit_test(is_free_of_order),
	cmocka_unit_test(follows_the_paper),
	cmocka_unit_test(keeps_the_guarantee),
	cmocka_unit_test(demands_what_it_uses),
	cmocka_unit_test(model_uses_the_pool),
	cmocka_unit_test(model_liars_gain_nothing),
};

int main(int argc, char **argv)
{
	random_begin(argc, argv);
	return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
