// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table that leads from an object of libibverbs to that of the shim.
 */
#include "prog.h"
#include "registry.h"
#include "slot.h"
#include "tests.h"

/* The place of one that went is free: who looks up 0, the tag of a receive, finds none. */
static void nothing_at_0(void **state)
{
	struct shim_slots s = { .num = 1 };
	uintptr_t key = 16;

	(void)state;
	assert_int_equal(shim_map_add(&shim_tags, (void *)key, &s), 0);
	shim_map_del(&shim_tags, (void *)key);
	do
		key += 16;
	while (shim_map_hash(shim_tags.table, key));
	assert_int_equal(shim_map_add(&shim_tags, (void *)key, &s), 0);
	assert_ptr_equal(shim_map_find(&shim_tags, (void *)key), &s);
	shim_map_del(&shim_tags, (void *)key);
	assert_null(shim_find_tag(0));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(nothing_at_0),
};

const struct prog_tests prog_map_tests = { tests, ARRAY_SIZE(tests) };
