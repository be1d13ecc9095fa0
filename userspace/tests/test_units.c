// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers with units, as tools/rdma-isolate reads and writes them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "units.h"

typedef bool (*parse_fn)(const char *text, uint64_t *val);
typedef const char *(*format_fn)(uint64_t val, char *buf);

struct sample {
	const char *text;
	uint64_t val;
};

static void check_good(parse_fn parse, const struct sample *s)
{
	uint64_t val;

	for (; s->text; s++) {
		val = ~s->val;
		if (!parse(s->text, &val) || val != s->val)
			fail_msg("%s is %ju, not %ju", s->text, (uintmax_t)val,
				 (uintmax_t)s->val);
	}
}

static void check_bad(parse_fn parse, const char * const *text)
{
	uint64_t val;

	for (; *text; text++)
		if (parse(*text, &val))
			fail_msg("\"%s\" is taken as %ju", *text,
				 (uintmax_t)val);
}

static void check_format(format_fn format, const struct sample *s)
{
	char buf[UNITS_LEN];

	for (; s->text; s++)
		assert_string_equal(format(s->val, buf), s->text);
}

/* What is printed can be given back. */
static void check_round_trip(parse_fn parse, format_fn format)
{
	char buf[UNITS_LEN];
	uint64_t val, back;
	int shift, add;

	for (shift = 0; shift < 64; shift++) {
		for (add = -3; add <= 3; add++) {
			val = (UINT64_C(1) << shift) + add;
			/* what is below 1 or was 0 is no rate */
			if (!val || val > UINT64_MAX - 8)
				continue;
			if (!parse(format(val, buf), &back) || back != val)
				fail_msg("%ju is shown as %s", (uintmax_t)val,
					 buf);
		}
	}
}

static void rates(void **state)
{
	static const struct sample good[] = {
		{ "400mbit", 50000000 },
		{ "400Mbit", 50000000 },
		{ "100gbit", UINT64_C(12500000000) },
		{ "1tbit", UINT64_C(125000000000) },
		{ "8bit", 1 },
		{ "15bit", 1 },
		{ "0.008kbit", 1 },
		{ "48MB/s", 48000000 },
		{ "48.75MB/s", 48750000 },
		{ "1kB/s", 1000 },
		{ "1KB/s", 1000 },
		{ "1KiB/s", 1024 },
		{ "2MiB/s", 2097152 },
		{ "3GiB/s", UINT64_C(3221225472) },
		{ "7B/s", 7 },
		{ "18446744073709551615B/s", UINT64_MAX },
		{ }
	};
	static const char * const bad[] = {
		"", "400", "mbit", "-1mbit", "+1mbit", " 1mbit", "1 mbit",
		"1mbit ", "0mbit", "7bit", "0B/s", "1mb", "1mB", "1mb/s",
		"1.mbit", ".5mbit", "1.0000001gbit", "0.5bit", "1,5mbit",
		"0x10mbit", "1e3mbit", "18446744073709551616B/s",
		"18446744073709551615kbit", "99999999999999999999mbit",
		"auto", "off", NULL
	};
	static const struct sample shown[] = {
		{ "8bit", 1 },
		{ "8kbit", 1000 },
		{ "400mbit", 50000000 },
		{ "390mbit", 48750000 },
		{ "100gbit", UINT64_C(12500000000) },
		{ "2.5gbit", 312500000 },
		{ "2133.333328mbit", 266666666 },
		{ "0bit", 0 },
		{ "18446744073709551615B/s", UINT64_MAX },
		{ }
	};
	static const struct sample shortened[] = {
		{ "0bit", 0 },
		{ "8bit", 1 },
		{ "400mbit", 50000000 },
		{ "2.133gbit", 266666666 },
		{ "999.992kbit", 124999 },
		{ "7.999tbit", UINT64_C(999999999999) },
		{ "18446744073709551615B/s", UINT64_MAX },
		{ }
	};
	(void)state;

	check_good(rate_parse, good);
	check_bad(rate_parse, bad);
	check_format(rate_format, shown);
	check_format(rate_format_short, shortened);
	check_round_trip(rate_parse, rate_format);
}

/* What an error says is allowed is taken, and the reverse. */
static void rates_allowed(void **state)
{
	static const char * const units[] = {
		" bit", "kbit", "mbit", "gbit", "tbit", " B/s", "kB/s", "MB/s",
		"GB/s", "TB/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s",
	};
	char text[16];
	uint64_t val;
	size_t i;
	(void)state;

	for (i = 0; i < sizeof(units) / sizeof(*units); i++) {
		snprintf(text, sizeof(text), "8%s", units[i] + (units[i][0] == ' '));
		if (!rate_parse(text, &val) || !strstr(RATE_ALLOWED, units[i]))
			fail_msg("%s is not taken, or not said to be", text);
	}
}

static void sizes(void **state)
{
	static const struct sample good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "4k", 4096 },
		{ "4K", 4096 },
		{ "4KiB", 4096 },
		{ "1.5k", 1536 },
		{ "1m", 1048576 },
		{ "2g", UINT64_C(2147483648) },
		{ "10B", 10 },
		{ "18446744073709551615", UINT64_MAX },
		{ }
	};
	static const char * const bad[] = {
		"", "k", "-4k", "4kb", "4MB", "1.3", "1.0001k", "4k ",
		"18446744073709551616", "17179869184g", NULL
	};
	static const struct sample shown[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "1023", 1023 },
		{ "1k", 1024 },
		{ "1025", 1025 },
		{ "64k", 65536 },
		{ "1m", 1048576 },
		{ "1025k", 1049600 },
		{ "4g", UINT64_C(4294967296) },
		{ }
	};
	(void)state;

	check_good(size_parse, good);
	check_bad(size_parse, bad);
	check_format(size_format, shown);
	check_round_trip(size_parse, size_format);
}

static void times(void **state)
{
	static const struct sample good[] = {
		{ "0s", 0 },
		{ "200us", 200000 },
		{ "1.5ms", 1500000 },
		{ "10s", UINT64_C(10000000000) },
		{ "2min", UINT64_C(120000000000) },
		{ "7ns", 7 },
		{ }
	};
	static const char * const bad[] = {
		"", "10", "10m", "10S", "1.5ns", "-1s", "s",
		"99999999999999999999s", "18446744073709551615us", NULL
	};
	static const struct sample shown[] = {
		{ "0ns", 0 },
		{ "999ns", 999 },
		{ "200us", 200000 },
		{ "1.234ms", 1234567 },
		{ "10s", UINT64_C(10000000000) },
		{ "90s", UINT64_C(90000000000) },
		{ }
	};
	(void)state;

	check_good(time_parse, good);
	check_bad(time_parse, bad);
	check_format(time_format, shown);
}

static void counts(void **state)
{
	static const struct sample good[] = {
		{ "0", 0 },
		{ "100000", 100000 },
		{ "18446744073709551615", UINT64_MAX },
		{ }
	};
	static const char * const bad[] = {
		"", "-1", "1k", "1.5", "0x1", "18446744073709551616", NULL
	};
	(void)state;

	check_good(count_parse, good);
	check_bad(count_parse, bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates),
		cmocka_unit_test(rates_allowed),
		cmocka_unit_test(sizes),
		cmocka_unit_test(times),
		cmocka_unit_test(counts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
