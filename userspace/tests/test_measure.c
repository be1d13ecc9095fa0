// SPDX-License-Identifier: GPL-2.0
/*
 * The classes of kmod/measure.h, and its ring of posts: whatever is lost or
 * overtaken, a completion is never taken for that of another post.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure.h"

static void sizes(void **state)
{
	static const uint64_t last[] = {
		64, 256, 1024, 4096, 16384, 65536, 262144, 1048576,
	};
	unsigned int i;

	(void)state;
	assert_int_equal(RISO_SIZES, sizeof(last) / sizeof(*last) + 1);
	assert_int_equal(riso_size_of(0), RISO_SIZE_64);
	for (i = 0; i < RISO_SIZES - 1; i++) {
		assert_int_equal(riso_size_of(last[i] - 1), i);
		assert_int_equal(riso_size_of(last[i]), i);
		assert_int_equal(riso_size_of(last[i] + 1), i + 1);
	}
	assert_int_equal(riso_size_of(UINT32_MAX), RISO_SIZE_MORE);
	assert_int_equal(riso_size_of(UINT64_MAX), RISO_SIZE_MORE);
}

static void buckets(void **state)
{
	uint64_t us = 1;
	unsigned int i;

	(void)state;
	assert_int_equal(riso_bucket_of(0), 0);
	for (i = 0; i < RDMA_ISOLATE_BUCKETS - 1; i++, us *= 2) {
		assert_int_equal(riso_bucket_of(1000 * us - 1), i);
		assert_int_equal(riso_bucket_of(1000 * us), i + 1);
	}
	assert_int_equal(riso_bucket_of(UINT64_MAX), RDMA_ISOLATE_BUCKETS - 1);
}

enum { ROOM = 8 };

static struct riso_post memory[ROOM];

/* Empty, and with counters that are about to begin anew */
static struct riso_posts ring(void)
{
	return (struct riso_posts) {
		.ring = memory, .num = ROOM,
		.head = UINT32_MAX - 2, .tail = UINT32_MAX - 2,
	};
}

static void in_order(void **state)
{
	struct riso_posts p = ring();
	uint64_t i, j;

	(void)state;
	assert_int_equal(riso_posts_take(&p, 0), 0);
	for (i = 1; i < 100; i += ROOM) {
		for (j = i; j < i + ROOM; j++)
			riso_posts_add(&p, 1000 + j, j);
		for (j = i; j < i + ROOM; j++)
			assert_int_equal(riso_posts_take(&p, 1000 + j), j);
	}
	assert_int_equal(p.head, p.tail);
}

static void one_id(void **state)
{
	struct riso_posts p = ring();
	uint64_t i;

	(void)state;
	for (i = 1; i <= ROOM; i++)
		riso_posts_add(&p, 7, i);
	for (i = 1; i <= ROOM; i++)
		assert_int_equal(riso_posts_take(&p, 7), i);
	assert_int_equal(riso_posts_take(&p, 7), 0);
}

static void of_nobody(void **state)
{
	struct riso_posts p = ring();

	(void)state;
	riso_posts_add(&p, 1, 10);
	riso_posts_add(&p, 2, 20);
	assert_int_equal(riso_posts_take(&p, 3), 0);
	assert_int_equal(riso_posts_take(&p, 1), 10);
	assert_int_equal(riso_posts_take(&p, 1), 0);
	assert_int_equal(riso_posts_take(&p, 2), 20);
}

static void overtaken(void **state)
{
	struct riso_posts p = ring();

	(void)state;
	riso_posts_add(&p, 1, 10);
	riso_posts_add(&p, 2, 20);
	riso_posts_add(&p, 3, 30);
	assert_int_equal(riso_posts_take(&p, 2), 20);
	assert_int_equal(riso_posts_take(&p, 1), 0);
	assert_int_equal(riso_posts_take(&p, 2), 0);
	assert_int_equal(riso_posts_take(&p, 3), 30);
}

/* What was dropped, or overran the ring, completes later and is of nobody. */
static void dropped(void **state)
{
	struct riso_posts p = ring();
	uint64_t i;

	(void)state;
	riso_posts_add(&p, 1, 10);
	riso_posts_drop(&p);
	riso_posts_add(&p, 2, 20);
	assert_int_equal(riso_posts_take(&p, 1), 0);
	assert_int_equal(riso_posts_take(&p, 2), 20);

	for (i = 1; i <= ROOM + 1; i++)
		riso_posts_add(&p, i, i);
	for (i = 1; i <= ROOM; i++)
		assert_int_equal(riso_posts_take(&p, i), 0);
	assert_int_equal(riso_posts_take(&p, ROOM + 1), ROOM + 1);
	assert_int_equal(p.head, p.tail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(buckets),
		cmocka_unit_test(in_order),
		cmocka_unit_test(one_id),
		cmocka_unit_test(of_nobody),
		cmocka_unit_test(overtaken),
		cmocka_unit_test(dropped),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}
