// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The rate of a port, by what adapters are sold as.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/port.h"

#define GBIT 125000000ULL

static void known(void **state)
{
	static const struct {
		uint32_t speed;
		int lanes;
		uint64_t gbit;
	} ports[] = {
		{ 1, 4, 10 },		/* SDR x4 */
		{ 4, 4, 40 },		/* QDR x4, 40 Gbit/s Ethernet */
		{ 4, 1, 10 },		/* 10 Gbit/s Ethernet */
		{ 8, 4, 40 },		/* FDR10 x4 */
		{ 16, 4, 56 },		/* FDR x4 */
		{ 32, 1, 25 },		/* 25 Gbit/s Ethernet */
		{ 32, 4, 100 },		/* EDR x4 */
		{ 64, 4, 200 },		/* HDR x4 */
		{ 128, 4, 400 },	/* NDR x4 */
		{ 256, 4, 800 },	/* XDR x4 */
		{ 256, 8, 1600 },	/* XDR x8 */
		{ 512, 4, 1600 },	/* what may follow */
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
		assert_int_equal(riso_port_rate(ports[i].speed, ports[i].lanes),
				 ports[i].gbit * GBIT);
	/* The highest of several */
	assert_int_equal(riso_port_rate(1 | 2 | 32, 4), 100 * GBIT);
}

static void nonsense(void **state)
{
	(void)state;
	assert_int_equal(riso_port_rate(0, 4), 0);
	assert_int_equal(riso_port_rate(32, 0), 0);
	assert_int_equal(riso_port_rate(32, -22), 0);
	assert_int_equal(riso_port_rate(32, 13), 0);
	assert_int_equal(riso_port_rate(1u << 31, 4), 0);
	assert_int_equal(riso_port_rate(UINT32_MAX, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
