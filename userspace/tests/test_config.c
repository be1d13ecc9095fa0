// SPDX-License-Identifier: GPL-2.0
/*
 * How tools/rdma-isolate takes lines apart, and which rules it keeps when a file wants
 * others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "batch.h"
#include "config.h"

/* The words of a line, each in brackets, or what is wrong with it */
static void expect_words(const char *line, const char *want)
{
	char buf[256], got[256] = "";
	struct words words;
	const char *wrong;
	int i;

	snprintf(buf, sizeof(buf), "%s", line);
	wrong = words_split(buf, &words);
	for (i = 0; !wrong && i < words.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "[%s]",
			 words.word[i]);
	assert_string_equal(wrong ? wrong : got, want);
	if (!wrong)
		assert_null(words.word[words.n]);
}

static void lines(void **state)
{
	(void)state;
	expect_words("", "");
	expect_words("\n", "");
	expect_words("  # nothing\n", "");
	expect_words("a", "[a]");
	expect_words("dev set dev rxe0\n", "[dev][set][dev][rxe0]");
	expect_words(" \ta  b\t\r\n", "[a][b]");
	expect_words("a #b c\n", "[a]");
	expect_words("a b#c\n", "[a][b#c]");
	expect_words("comm \"a b\" uid 7\n", "[comm][a b][uid][7]");
	expect_words("\"\" b\n", "[][b]");
	expect_words("\"a # b\"\n", "[a # b]");
	expect_words("\"a\\\"b\" \"\\\\\"\n", "[a\"b][\\]");
	expect_words("\"a\\nb\"\n", "[a\nb]");
	expect_words("a\\b\n", "[a\\b]");
	expect_words("a\"b c\"d e\n", "[ab cd][e]");
	expect_words("a \"b\n", "a \" is missing");
	expect_words("\"a\\\"\n", "a \" is missing");
}

static void too_many_words(void **state)
{
	char line[2 * WORDS_MAX + 3] = "";
	struct words words;
	int i;

	(void)state;
	for (i = 0; i < WORDS_MAX; i++)
		strcat(line, "x ");
	assert_null(words_split(line, &words));
	assert_int_equal(words.n, WORDS_MAX);
	for (i = 0, *line = 0; i <= WORDS_MAX; i++)
		strcat(line, "x ");
	assert_string_equal(words_split(line, &words), "too many words");
}

enum { RULES = 8 };

/* Rules that differ by one letter */
static void make_rules(struct items *rules, struct item *item,
		       const char *letters)
{
	*rules = (struct items) { .n = strlen(letters), .item = item };
	memset(item, 0, RULES * sizeof(*item));
	for (; *letters; letters++, item++) {
		item->id = item - rules->item + 1;
		item->set[1].given = true;
		item->set[1].text[0] = *letters;
	}
}

/* Which stay, and which are added, when now is to become then */
static void expect_plan(const char *now_letters, const char *then_letters,
			const char *keep, const char *add)
{
	struct item now_item[RULES], then_item[RULES];
	struct items now, then;
	char got[RULES + 1] = "";
	bool kept[RULES];
	struct rule_plan plan = { .keep = kept };
	unsigned int i;

	make_rules(&now, now_item, now_letters);
	make_rules(&then, then_item, then_letters);
	rule_plan(&now, &then, &plan);
	for (i = 0; i < now.n; i++)
		if (kept[i])
			strncat(got, now_letters + i, 1);
	assert_string_equal(got, keep);
	assert_string_equal(then_letters + plan.add, add);
}

static void plans(void **state)
{
	(void)state;
	expect_plan("", "", "", "");
	expect_plan("", "ab", "", "ab");
	expect_plan("ab", "", "", "");
	expect_plan("abc", "abc", "abc", "");
	expect_plan("abc", "ac", "ac", "");
	expect_plan("abc", "abcd", "abc", "d");
	expect_plan("abc", "acd", "ac", "d");
	/* the order counts: b comes behind c now */
	expect_plan("abc", "acb", "ac", "b");
	expect_plan("abc", "dabc", "", "dabc");
	expect_plan("aab", "ab", "ab", "");
	expect_plan("ab", "aab", "a", "ab");
}

static void same(void **state)
{
	struct item a = { }, b = { };

	(void)state;
	a.id = 1;
	a.line = 2;
	assert_true(item_same(&a, &b));
	a.set[ARGS_MAX - 1].given = true;
	assert_false(item_same(&a, &b));
	b.set[ARGS_MAX - 1].given = true;
	assert_true(item_same(&a, &b));
	b.set[ARGS_MAX - 1].number = 1;
	assert_false(item_same(&a, &b));
	a.set[ARGS_MAX - 1].number = 1;
	a.set[0].text[0] = 'x';
	assert_false(item_same(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(too_many_words),
		cmocka_unit_test(plans),
		cmocka_unit_test(same),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
