// SPDX-License-Identifier: GPL-2.0
/*
 * Who is taken to post around the shim, by what is seen at some looks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "around.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { LOOKS = 8 };

/* "told:psn" at each look, "-" where the core did not answer; at which look it is seen, 0 never */
static const struct {
	const char *what;
	bool shim;
	const char *look[LOOKS];
	unsigned int seen;
} cases[] = {
	{ "idle without the shim", false, { "0:7", "0:7", "0:7", "0:7" }, 0 },
	{ "sends without the shim", false, { "0:7", "0:8", "0:9" }, 3 },
	{ "sends once only", false, { "0:7", "0:8", "0:8", "0:9", "0:9" }, 0 },
	{ "number goes back", false, { "0:7", "0:3", "0:0" }, 3 },
	{ "number wraps", false, { "0:16777215", "0:0", "0:16777215" }, 3 },
	{ "one look without an answer", false, { "0:7", "0:8", "-", "0:9", "0:10", "0:11" }, 6 },
	{ "never answers", false, { "-", "-", "-", "-" }, 0 },
	{ "idle with the shim", true, { "50:7", "50:7", "50:7", "50:7" }, 0 },
	{ "tells of all", true, { "0:7", "5:8", "9:9", "20:12", "21:13" }, 0 },
	{ "never told of anything", true, { "0:7", "0:8", "0:9" }, 3 },
	{ "what was told takes long to send", true, { "90:7", "90:8", "90:9", "90:10" }, 0 },
	{ "told of, sent over long, then idle", true,
	  { "0:1", "90:7", "90:8", "90:9", "90:9", "90:9" }, 0 },
	{ "was idle after it had told", true, { "90:7", "90:7", "90:8", "90:9" }, 4 },
	{ "tells a look late", true, { "90:7", "90:7", "90:8", "91:9", "91:10", "91:11" }, 0 },
	{ "stays seen", true, { "0:1", "0:2", "0:3", "0:4", "0:5" }, 3 },
};

static void step(struct around_look *last, struct around_look *now, bool shim, const char *text)
{
	char *end;

	now->flow = calloc(1, sizeof(*now->flow));
	now->n = 1;
	now->flow->qpn = 17;
	now->flow->group = 2;
	now->flow->shim = shim;
	now->flow->answered = *text != '-';
	if (now->flow->answered) {
		now->flow->told = strtoul(text, &end, 10);
		now->flow->psn = strtoul(end + 1, NULL, 10);
	}
	around_compare(last, now);
	around_clear(last);
	*last = *now;
}

static void each_case(void **state)
{
	unsigned int i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct around_look last = { }, now = { };
		unsigned int seen = 0;

		for (k = 0; k < LOOKS && cases[i].look[k]; k++) {
			step(&last, &now, cases[i].shim, cases[i].look[k]);
			if (!seen && around_is_seen(last.flow))
				seen = k + 1;
		}
		if (seen != cases[i].seen)
			fail_msg("%s: seen at look %u, not %u", cases[i].what, seen,
				 cases[i].seen);
		around_clear(&last);
	}
}

/* The number of a queue pair that is gone is another's, or the program uses the shim now. */
static void another(void **state)
{
	struct around_flow before = { .qpn = 17, .group = 2, .answered = true, .psn = 1,
				      .settled = true, .strikes = 1 };
	struct around_flow is = { .qpn = 17, .group = 2, .answered = true, .psn = 5 };
	struct around_look last = { &before, 1 }, now = { &is, 1 };

	(void)state;
	around_compare(&last, &now);
	assert_true(around_is_seen(&is));
	is.group = 3;
	around_compare(&last, &now);
	assert_int_equal(is.strikes, 0);
	is.group = 2;
	is.shim = true;
	around_compare(&last, &now);
	assert_int_equal(is.strikes, 0);
	is.shim = false;
	is.index = 1;
	around_compare(&last, &now);
	assert_int_equal(is.strikes, 0);
}

static void order(void **state)
{
	struct around_flow flow[] = {
		{ .index = 1, .qpn = 5 }, { .index = 0, .qpn = 9 }, { .index = 1, .qpn = 2 },
		{ .index = 0, .qpn = 0xffffff },
	};
	struct around_look look = { flow, ARRAY_SIZE(flow) }, none = { };
	size_t i;

	(void)state;
	around_sort(&look);
	around_sort(&none);
	assert_int_equal(flow[0].qpn, 9);
	assert_int_equal(flow[3].qpn, 5);
	for (i = 0; i < look.n; i++)
		assert_ptr_equal(around_find(&look, flow[i].index, flow[i].qpn), &flow[i]);
	assert_null(around_find(&look, 0, 5));
	assert_null(around_find(&none, 0, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_case),
		cmocka_unit_test(another),
		cmocka_unit_test(order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
