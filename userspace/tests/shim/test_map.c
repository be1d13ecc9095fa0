// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table that leads from an object of libibverbs to that of the shim.
 */
#include "map.h"
#include "prog.h"
#include "tests.h"

/* The place of one that went is free: who looks up 0, the tag of a receive, finds none. */
static void nothing_at_0(void **state)
{
	static struct shim_map map = SHIM_MAP_INIT;
	uintptr_t key = 16;

	assert_int_equal(shim_map_add(&map, (void *)key, state), 0);
	do
		key += 16;
	while (shim_map_hash(map.table, key));
	assert_int_equal(shim_map_add(&map, (void *)key, state), 0);
	assert_ptr_equal(shim_map_find(&map, (void *)key), state);
	shim_map_del(&map, (void *)key);
	assert_null(shim_map_find(&map, NULL));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(nothing_at_0),
};

const struct prog_tests prog_map_tests = { tests, ARRAY_SIZE(tests) };
