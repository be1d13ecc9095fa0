// SPDX-License-Identifier: GPL-2.0
/*
 * What tools/rdma-isolate prints, as text and as JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/rdma_isolate.h>

#include "print.h"

typedef void (*print_fn)(struct printer *out);

static void expect(print_fn print, bool json, bool pretty, const char *want)
{
	struct printer out = { .json = json, .pretty = pretty };
	char *got = NULL;
	size_t len = 0;

	out.file = open_memstream(&got, &len);
	assert_non_null(out.file);
	print_begin(&out);
	print(&out);
	print_end(&out);
	fclose(out.file);
	assert_string_equal(got, want);
	free(got);
}

static void print_nothing(struct printer *out)
{
	(void)out;
}

static void nothing(void **state)
{
	(void)state;
	expect(print_nothing, false, false, "");
	expect(print_nothing, true, false, "[]\n");
	expect(print_nothing, true, true, "[]\n");
}

static void print_two(struct printer *out)
{
	print_object_begin(out);
	print_string(out, "dev", "name", "rxe0");
	print_number(out, "max-rate", "max_rate", FMT_RATE, NULL, 50000000);
	print_object_end(out);
	print_object_begin(out);
	print_string(out, "dev", "name", "rxe1");
	print_object_end(out);
}

static void two_objects(void **state)
{
	(void)state;
	expect(print_two, false, false, "dev rxe0 max-rate 400mbit\ndev rxe1\n");
	expect(print_two, false, true,
	       "dev rxe0\n    max-rate 400mbit\ndev rxe1\n");
	expect(print_two, true, false,
	       "[{\"name\":\"rxe0\",\"max_rate\":50000000},{\"name\":\"rxe1\"}]\n");
	expect(print_two, true, true,
	       "[\n    {\n        \"name\": \"rxe0\",\n        \"max_rate\": 50000000\n    },\n    {\n        \"name\": \"rxe1\"\n    }\n]\n");
}

struct format_sample {
	enum format format;
	const struct name_enum *words;
	uint64_t val;
	const char *text;
	const char *json;
};

static const struct format_sample *format_sample;

static void print_sample(struct printer *out)
{
	print_object_begin(out);
	print_number(out, "k", "k", format_sample->format,
		     format_sample->words, format_sample->val);
	print_object_end(out);
}

static void formats(void **state)
{
	static const struct format_sample samples[] = {
		{ FMT_COUNT, NULL, 0, "k 0\n", "[{\"k\":0}]\n" },
		{
			FMT_COUNT, NULL, UINT64_MAX,
			"k 18446744073709551615\n",
			"[{\"k\":18446744073709551615}]\n"
		},
		{ FMT_COUNT_OFF, NULL, 0, "k off\n", "[{\"k\":0}]\n" },
		{ FMT_COUNT_OFF, NULL, 5, "k 5\n", "[{\"k\":5}]\n" },
		{
			FMT_COUNT_AUTO, NULL, RDMA_ISOLATE_AUTO, "k auto\n",
			"[{\"k\":\"auto\"}]\n"
		},
		{ FMT_SIZE, NULL, 0, "k off\n", "[{\"k\":0}]\n" },
		{ FMT_SIZE, NULL, 4096, "k 4k\n", "[{\"k\":4096}]\n" },
		{
			FMT_SIZE_AUTO, NULL, RDMA_ISOLATE_AUTO, "k auto\n",
			"[{\"k\":\"auto\"}]\n"
		},
		{ FMT_TIME, NULL, 1500, "k 1.5us\n", "[{\"k\":1500}]\n" },
		{ FMT_BOOL, NULL, 1, "k yes\n", "[{\"k\":true}]\n" },
		{ FMT_BOOL, NULL, 0, "k no\n", "[{\"k\":false}]\n" },
		{
			FMT_WORD, &name_class, RISO_CLASS_BANDWIDTH,
			"k bandwidth\n", "[{\"k\":\"bandwidth\"}]\n"
		},
		/* of a newer kernel */
		{ FMT_WORD, &name_class, 99, "k 99\n", "[{\"k\":99}]\n" },
		{
			FMT_WHY, &name_reason, RISO_REASON_BEFORE_LOAD,
			"k \"created before load, reconnect\"\n",
			"[{\"k\":\"before-load\"}]\n"
		},
		{
			FMT_WHY, &name_reason, RISO_REASON_NONE,
			"\n", "[{\"k\":\"none\"}]\n"
		},
		{ FMT_QP_TYPE, NULL, 2, "k RC\n", "[{\"k\":\"RC\"}]\n" },
		{ FMT_QP_TYPE, NULL, 7, "k 7\n", "[{\"k\":7}]\n" },
		{ FMT_QP_TYPE, NULL, 255, "k 255\n", "[{\"k\":255}]\n" },
		{ FMT_QP_STATE, NULL, 3, "k RTS\n", "[{\"k\":\"RTS\"}]\n" },
	};
	size_t i;
	(void)state;

	for (i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		format_sample = &samples[i];
		expect(print_sample, false, false, samples[i].text);
		expect(print_sample, true, false, samples[i].json);
	}
}

struct string_sample {
	const char *val;
	const char *text;
	const char *json;
};

static const char *string_val;

static void print_val(struct printer *out)
{
	print_object_begin(out);
	print_string(out, "k", "k", string_val);
	print_object_end(out);
}

/* A task may give itself any name. */
static void strings(void **state)
{
	static const struct string_sample samples[] = {
		{ "a-b", "k a-b\n", "[{\"k\":\"a-b\"}]\n" },
		{ "", "k \"\"\n", "[{\"k\":\"\"}]\n" },
		{ "a b", "k \"a b\"\n", "[{\"k\":\"a b\"}]\n" },
		{ "\"", "k \"\\\"\"\n", "[{\"k\":\"\\\"\"}]\n" },
		{ "\\", "k \"\\\\\"\n", "[{\"k\":\"\\\\\"}]\n" },
		{ "\n", "k \"\\u000a\"\n", "[{\"k\":\"\\u000a\"}]\n" },
		{ "\033[2J", "k \"\\u001b[2J\"\n", "[{\"k\":\"\\u001b[2J\"}]\n" },
		{ "\x7f", "k \"\\u007f\"\n", "[{\"k\":\"\\u007f\"}]\n" },
		{ "\xc3\xa9", "k \"\xc3\xa9\"\n", "[{\"k\":\"\xc3\xa9\"}]\n" },
		{ "\xc2\x9b", "k \"\\u009b\"\n", "[{\"k\":\"\\u009b\"}]\n" },
		/* no UTF-8: cut off, too long, a surrogate, beyond the last */
		{ "\xc3", "k \"\\u00c3\"\n", "[{\"k\":\"\\u00c3\"}]\n" },
		{ "\xff", "k \"\\u00ff\"\n", "[{\"k\":\"\\u00ff\"}]\n" },
		{
			"\xc0\x80", "k \"\\u00c0\\u0080\"\n",
			"[{\"k\":\"\\u00c0\\u0080\"}]\n"
		},
		{
			"\xed\xa0\x80", "k \"\\u00ed\\u00a0\\u0080\"\n",
			"[{\"k\":\"\\u00ed\\u00a0\\u0080\"}]\n"
		},
		{
			"\xf4\x90\x80\x80",
			"k \"\\u00f4\\u0090\\u0080\\u0080\"\n",
			"[{\"k\":\"\\u00f4\\u0090\\u0080\\u0080\"}]\n"
		},
	};
	size_t i;
	(void)state;

	for (i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		string_val = samples[i].val;
		expect(print_val, false, false, samples[i].text);
		expect(print_val, true, false, samples[i].json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),
		cmocka_unit_test(two_objects),
		cmocka_unit_test(formats),
		cmocka_unit_test(strings),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("print", tests, NULL, NULL);
}
