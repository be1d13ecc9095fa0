// SPDX-License-Identifier: GPL-2.0
/*
 * How tools/rdma-isolate takes lines apart, which rules it keeps when a file wants
 * others, and what it makes of the files of a directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "batch.h"
#include "config_apply.h"
#include "config_file.h"
#include "config_item.h"
#include "printed.h"
#include "units.h"

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

/* Items that differ by one letter of this argument */
static void make_items(struct items *items, struct item *item,
		       unsigned int arg, const char *letters)
{
	*items = (struct items) { .n = strlen(letters), .item = item };
	memset(item, 0, RULES * sizeof(*item));
	for (; *letters; letters++, item++) {
		item->id = item - items->item + 1;
		item->set[arg].given = true;
		item->set[arg].text[0] = *letters;
	}
}

static void expect_letters(const struct items *items, unsigned int arg,
			   const char *want)
{
	char got[RULES + 1] = "";
	unsigned int i;

	for (i = 0; i < items->n; i++)
		strncat(got, items->item[i].set[arg].text, 1);
	assert_string_equal(got, want);
}

enum { DEV_ARG = 0, RULE_ARG = 1 };

static void make_rules(struct items *rules, struct item *item,
		       const char *letters)
{
	make_items(rules, item, RULE_ARG, letters);
}

/* Which stay, and which are added, when now is to become then */
static void expect_plan(const char *now_letters, const char *then_letters,
			const char *keep, const char *add)
{
	struct item now_item[RULES], then_item[RULES];
	struct items now, then;
	char got[RULES + 1] = "";
	bool kept[RULES];
	struct rule_plan plan = { .settled = kept };
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

/* Which are added when rules of a directory join those of now */
static void expect_missing(const char *now_letters, const char *then_letters,
			   const char *want)
{
	struct item now_item[RULES], then_item[RULES];
	struct items now, then;

	make_rules(&now, now_item, now_letters);
	make_rules(&then, then_item, then_letters);
	rules_missing(&now, &then);
	expect_letters(&then, RULE_ARG, want);
	/* and then nothing is */
	rules_missing(&then, &then);
	expect_letters(&then, RULE_ARG, "");
}

static void missing(void **state)
{
	(void)state;
	expect_missing("", "", "");
	expect_missing("ab", "", "");
	expect_missing("", "ab", "ab");
	expect_missing("ab", "ba", "");
	expect_missing("ab", "cbd", "cd");
	expect_missing("a", "bab", "b");
	expect_missing("", "aab", "ab");
}

static void expect_present(const char *now_letters, const char *then_letters,
			   const char *dev, const char *want)
{
	struct item now_item[RULES], then_item[RULES];
	struct items now, then;

	make_items(&now, now_item, DEV_ARG, now_letters);
	make_items(&then, then_item, DEV_ARG, then_letters);
	devs_present(&now, &then, dev);
	expect_letters(&then, DEV_ARG, want);
}

static void present(void **state)
{
	(void)state;
	expect_present("", "ab", NULL, "");
	expect_present("ab", "", NULL, "");
	expect_present("bca", "abd", NULL, "ab");
	expect_present("ab", "ab", "b", "b");
	expect_present("ab", "ab", "c", "");
	expect_present("a", "ab", "b", "");
}

static char dir[32];

static void put(const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_dir(void **state)
{
	(void)state;
	/* mkdtemp() wants six of these at the end */
	snprintf(dir, sizeof(dir), "/tmp/test_config.%s", "XXXXXX");
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static uint64_t dev_number(const struct item *dev, const char *key)
{
	unsigned int i;

	for (i = 0; strcmp(dev_set_verb->args[i].key, key); i++)
		;
	assert_true(dev->set[i].given);
	return dev->set[i].number;
}

/* By name, those that end in .conf; what is said last about a device counts. */
static void files_of_a_directory(void **state)
{
	struct config config;

	(void)state;
	put("20-b.conf", "# of b\nrule add ulp b class latency\n"
	    "dev set dev d chunk-bytes 8k\n");
	put("10-a.conf", "rule add ulp a class latency weight 100\n"
	    "dev set dev d chunk-bytes 4k max-rate 1gbit\n"
	    "dev set dev e mode enable\n");
	put("30-c.conf~", "nonsense\n");
	put(".40-d.conf", "nonsense\n");
	put("50-e", "nonsense\n");
	put("60-f.conf", "");
	assert_int_equal(config_read_dir(dir, &config), CMD_DONE);
	expect_letters(&config.rules, RULE_ARG, "ab");
	expect_letters(&config.devs, DEV_ARG, "de");
	assert_int_equal(dev_number(config.devs.item, "chunk-bytes"), 8192);
	assert_int_equal(dev_number(config.devs.item, "max-rate"), 125000000);
	assert_non_null(strstr(config.rules.item[1].file, "/20-b.conf"));
	assert_int_equal(config.rules.item[1].line, 2);
	assert_non_null(strstr(config.devs.item[0].file, "/20-b.conf"));
	assert_int_equal(config.devs.item[0].line, 3);
	config_free(&config);
}

/* A file is left out as a whole; the others are not. */
static void good_files_count(void **state)
{
	struct config config;

	(void)state;
	put("10-a.conf", "rule add ulp a class latency\n");
	put("20-b.conf", "rule add ulp b class latency\ndev show\n");
	put("30-c.conf", "rule add ulp c class latency\n"
	    "dev set dev d max-rate 1gbit\n");
	put("40-d.conf", "rule add ulp d class latency\n"
	    "dev set dev d safe-util 2gbit\n");
	put("50-e.conf", "rule add ulp e class latencies\n");
	assert_int_equal(config_read_dir(dir, &config), CMD_USAGE);
	expect_letters(&config.rules, RULE_ARG, "ac");
	expect_letters(&config.devs, DEV_ARG, "d");
	assert_int_equal(dev_number(config.devs.item, "max-rate"), 125000000);
	assert_int_equal(config.left[0], CONFIG_TAKEN);
	assert_int_equal(config.left[1], CONFIG_WRONG);
	assert_int_equal(config.left[2], CONFIG_TAKEN);
	assert_int_equal(config.left[3], CONFIG_WRONG);
	assert_int_equal(config.left[4], CONFIG_WRONG);
	config_free(&config);
}

/* What a dump of the file prints */
static void expect_dump(const struct config *config, const char *want)
{
	FILE *file = tmpfile();
	char got[256];

	assert_non_null(file);
	config_print_items(file, "dev set", dev_set_verb->args, &config->devs);
	read_printed(file, got, sizeof(got));
	assert_string_equal(got, want);
}

/* A number stands for it that is no rate, and the kernel alone knows what it is. */
static void auto_of_a_rate(void **state)
{
	struct config config;

	(void)state;
	put("10-a.conf", "dev set dev d max-rate 1gbit chunk-bytes auto\n");
	put("20-b.conf", "dev set dev d max-rate auto safe-util 2gbit\n");
	assert_int_equal(config_read_dir(dir, &config), CMD_DONE);
	assert_int_equal(dev_number(config.devs.item, "max-rate"), RDMA_ISOLATE_RATE_AUTO);
	assert_int_equal(dev_number(config.devs.item, "chunk-bytes"), RDMA_ISOLATE_AUTO);
	expect_dump(&config, "dev set dev d max-rate auto safe-util 2gbit chunk-bytes auto\n");
	config_free(&config);
	/* the largest number of 32 bits is a rate */
	put("20-b.conf", "dev set dev d max-rate 4294967295B/s\n");
	assert_int_equal(config_read_dir(dir, &config), CMD_DONE);
	expect_dump(&config, "dev set dev d max-rate 34359.73836mbit chunk-bytes auto\n");
	config_free(&config);
}

static void nothing_to_do(void **state)
{
	(void)state;
	assert_int_equal(config_apply("/nonexistent", NULL), CMD_DONE);
	assert_int_equal(config_apply(dir, NULL), CMD_DONE);
	put("a.conf", "# nothing yet\n\n");
	assert_int_equal(config_apply(dir, "d"), CMD_DONE);
}

/* Status and message of a directory; the message begins behind its name. */
static void expect_refused(int want_status, const char *want)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	char got[512], begin[64];
	int status;

	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	status = config_apply(dir, NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	read_printed(file, got, sizeof(got));
	snprintf(begin, sizeof(begin), "rdma-isolate: %s/", dir);
	if (strncmp(got, begin, strlen(begin)) ||
	    strncmp(got + strlen(begin), want, strlen(want)))
		fail_msg("\"%s\" is no message of \"%s\"", got, want);
	assert_int_equal(status, want_status);
}

#define ALLOWED_IN_FILES "one of: dev, flow, group, rule, statistic, explain, doctor\n"

/* The kernel is not asked: there is none. */
static void wrong_files(void **state)
{
	char name[64];

	(void)state;
	put("10-a.conf", "rule add ulp a class latency\n");
	put("20-b.conf", "\ndev set dev d chunk-bytes 1\n");
	expect_refused(CMD_USAGE, "20-b.conf:2: chunk-bytes \"1\": must be "
		       SIZE_ALLOWED ", 1024 to 1048576; or auto; or off\n");
	put("20-b.conf", "dev set dev d max-rate 9tbit\n");
	expect_refused(CMD_USAGE, "20-b.conf:1: max-rate \"9tbit\": must be ");
	put("20-b.conf", "dev set dev d max-rate 0\n");
	expect_refused(CMD_USAGE, "20-b.conf:1: max-rate \"0\": must be ");
	put("20-b.conf", "dev set dev d safe-util 0\n");
	expect_refused(CMD_USAGE, "20-b.conf:1: safe-util \"0\": must be ");
	put("20-b.conf", "dev set dev d max-rates 9\n");
	expect_refused(CMD_USAGE, "20-b.conf:1: unknown word \"max-rates\"");
	put("20-b.conf", "dev show\n");
	expect_refused(CMD_USAGE, "20-b.conf:1: only dev set and rule add");
	put("20-b.conf", "unload\n");
	expect_refused(CMD_USAGE, "20-b.conf:1: unload may not stand here, one of: dev, flow, ");
	put("20-b.conf", "rdma-isolate dev set dev d\n");
	expect_refused(CMD_USAGE, "20-b.conf:1: unknown object \"rdma-isolate\", "
		       ALLOWED_IN_FILES);
	put("20-b.conf", "dev set dev d mode disable timeout 1s\n");
	expect_refused(CMD_USAGE, "20-b.conf:1: timeout may not stand here");
	put("20-b.conf", "dev set dev d safe-util 2gbit\n");
	put("30-c.conf", "# less than before\ndev set dev d max-rate 1gbit\n");
	expect_refused(CMD_USAGE, "30-c.conf:2: safe-util of d may not be above its max-rate\n");
	put("30-c.conf", "rule add comm \"a\n");
	expect_refused(CMD_USAGE, "30-c.conf:1: a \" is missing\n");
	snprintf(name, sizeof(name), "%s/00-d.conf", dir);
	assert_int_equal(mkdir(name, 0700), 0);
	expect_refused(CMD_REFUSED, "00-d.conf: Is a directory\n");
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

#define WITH_DIR(test) \
	cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(too_many_words),
		cmocka_unit_test(plans),
		cmocka_unit_test(same),
		cmocka_unit_test(missing),
		cmocka_unit_test(present),
		WITH_DIR(files_of_a_directory),
		WITH_DIR(good_files_count),
		WITH_DIR(auto_of_a_rate),
		WITH_DIR(nothing_to_do),
		WITH_DIR(wrong_files),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
