// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The page of grants of kmod/core, as the kernel writes it and a process reads it: the numbers,
 * and a reader that runs while grants are overwritten.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/grantring.h"

/* As many as a test on one processor needs for the reader to be interrupted in between */
enum { ROUNDS = 20000000 };

static struct riso_kpath page;

static struct riso_grant grant_of(uint32_t seq)
{
	return (struct riso_grant) {
		.seq = seq,
		.bytes = 3 * (uint64_t)seq,
		.not_after = 5 * (uint64_t)seq + 1,
	};
}

static void give(uint32_t seq)
{
	struct riso_grant g = grant_of(seq);

	riso_grantring_write(&page, &g);
}

static int takes(uint32_t taken, uint32_t expected)
{
	struct riso_grant g, is = grant_of(expected);
	uint32_t n = riso_grantring_read(&page, taken, &g);

	return n == expected && (n == taken || !memcmp(&g, &is, offsetof(struct riso_grant, pad)));
}

/* Each in turn; who comes late gets the last two; nobody gets one twice. */
static void numbers(void **state)
{
	uint32_t seq = UINT32_MAX - 3, before = 0;
	int i;

	(void)state;
	memset(&page, 0, sizeof(page));
	assert_true(takes(0, 0));
	give(1);
	assert_true(takes(0, 1) && takes(1, 1));
	give(2);
	assert_true(takes(0, 1) && takes(1, 2) && takes(2, 2));
	give(3);
	give(4);
	give(5);
	assert_true(takes(1, 4) && takes(4, 5) && takes(5, 5));
	/* There is no number 0. */
	assert_int_equal(riso_grantring_follow(0), 1);
	assert_int_equal(riso_grantring_follow(UINT32_MAX), 1);
	memset(&page, 0, sizeof(page));
	for (i = 0; i < 8; i++) {
		give(seq);
		if (before)
			assert_true(takes(before, seq));
		before = seq;
		seq = riso_grantring_follow(seq);
	}
}

/* Who comes late finds the last two, with number 0 left out between them. */
static void late_at_the_wrap(void **state)
{
	(void)state;
	memset(&page, 0, sizeof(page));
	give(UINT32_MAX - 1);
	give(1);
	assert_true(takes(UINT32_MAX, 1) && takes(UINT32_MAX - 1, 1) && takes(1, 1));
	give(2);
	assert_true(takes(UINT32_MAX, 1) && takes(1, 2));
}

static void *write_grants(void *arg)
{
	uint32_t seq;

	for (seq = 1; seq <= ROUNDS; seq++)
		give(seq);
	return arg;
}

/* What is read of a grant is all of one grant, and later ones follow. */
static void overwritten(void **state)
{
	uint32_t taken = 0, n;
	pthread_t writer;
	struct riso_grant g;

	(void)state;
	memset(&page, 0, sizeof(page));
	assert_int_equal(pthread_create(&writer, NULL, write_grants, NULL), 0);
	while (taken != ROUNDS) {
		n = riso_grantring_read(&page, taken, &g);
		if (n == taken)
			continue;
		assert_true(n > taken && g.seq == n);
		assert_true(g.bytes == 3 * (uint64_t)n && g.not_after == 5 * (uint64_t)n + 1);
		taken = n;
	}
	assert_int_equal(pthread_join(writer, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(late_at_the_wrap),
		cmocka_unit_test(overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
