// SPDX-License-Identifier: GPL-2.0
/*
 * What tools/rdma-isolate top makes of two samples of what the kernel says, how it
 * shows that, and what it draws on a terminal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/genetlink.h>

#include "nl.h"
#include "term.h"
#include "top.h"

#define MS UINT64_C(1000000)

/* A message as the kernel would send it */
static struct nlmsghdr *message;

static void begin(uint16_t dev_attr, const char *dev)
{
	static char buf[1024];

	message = mnl_nlmsg_put_header(buf);
	mnl_nlmsg_put_extra_header(message, sizeof(struct genlmsghdr));
	mnl_attr_put_strz(message, dev_attr, dev);
}

static void u32(uint16_t attr, uint32_t val)
{
	mnl_attr_put_u32(message, attr, val);
}

static void u64(uint16_t attr, uint64_t val)
{
	mnl_attr_put_u64(message, attr, val);
}

static void add_dev(struct top_sample *sample, const char *name, uint32_t index)
{
	begin(RDMA_ISOLATE_A_DEV_DEV, name);
	u32(RDMA_ISOLATE_A_DEV_INDEX, index);
	u32(RDMA_ISOLATE_A_DEV_STATE, RISO_DEV_ENABLE);
	u64(RDMA_ISOLATE_A_DEV_MAX_RATE, 50000000);
	u32(RDMA_ISOLATE_A_DEV_TARGET99_NS, RDMA_ISOLATE_AUTO);
	nl_event_attrs(message, &name_set_dev, top_read_dev, sample);
}

static void add_budget(struct top_sample *sample, const char *dev)
{
	begin(RDMA_ISOLATE_A_BUDGET_DEV, dev);
	u64(RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, 37500000);
	nl_event_attrs(message, &name_set_budget, top_read_budget, sample);
}

static void add_agent(struct top_sample *sample, const char *dev)
{
	begin(RDMA_ISOLATE_A_BUDGET_DEV, dev);
	u64(RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, 37500000);
	u64(RDMA_ISOLATE_A_BUDGET_LEASE_NS, 800 * MS);
	u32(RDMA_ISOLATE_A_BUDGET_AGENT_PID, 77);
	u32(RDMA_ISOLATE_A_BUDGET_CTRL_STATE, RISO_CTRL_STATE_TRACKING);
	u32(RDMA_ISOLATE_A_BUDGET_TARGET99_NS, 20000);
	u64(RDMA_ISOLATE_A_BUDGET_CURRENT99_NS, 17500);
	u32(RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS, 1);
	u32(RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS, 2);
	u32(RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS, 3);
	nl_event_attrs(message, &name_set_budget, top_read_budget, sample);
}

static void add_group(struct top_sample *sample, const char *dev, uint32_t id,
		      uint64_t used_ns, uint64_t bytes, uint64_t stall_ns)
{
	begin(RDMA_ISOLATE_A_GROUP_DEV, dev);
	u32(RDMA_ISOLATE_A_GROUP_ID, id);
	u64(RDMA_ISOLATE_A_GROUP_USED_NS, used_ns);
	u64(RDMA_ISOLATE_A_GROUP_TX_BYTES, bytes / 4);
	u64(RDMA_ISOLATE_A_GROUP_RX_BYTES, bytes - bytes / 4);
	u64(RDMA_ISOLATE_A_GROUP_STALL_NS, stall_ns);
	u32(RDMA_ISOLATE_A_GROUP_PID, 1000 + id);
	mnl_attr_put_strz(message, RDMA_ISOLATE_A_GROUP_COMM, "a\033[2Jb\xff");
	nl_event_attrs(message, &name_set_group, top_read_group, sample);
}

static void add_flow(struct top_sample *sample, const char *dev,
		     uint32_t group, uint32_t class)
{
	begin(RDMA_ISOLATE_A_FLOW_DEV, dev);
	u32(RDMA_ISOLATE_A_FLOW_GROUP, group);
	u32(RDMA_ISOLATE_A_FLOW_CLASS, class);
	nl_event_attrs(message, &name_set_flow, top_read_flow, sample);
}

static void add_path(struct top_sample *sample, const char *dev, const char *peer, uint32_t dir,
		     uint64_t limit, uint64_t lease_ns, uint64_t bytes, uint64_t waits)
{
	begin(RDMA_ISOLATE_A_PATH_DEV, dev);
	mnl_attr_put_strz(message, RDMA_ISOLATE_A_PATH_PEER, peer);
	u32(RDMA_ISOLATE_A_PATH_DIR, dir);
	u64(RDMA_ISOLATE_A_PATH_RATE, limit);
	u64(RDMA_ISOLATE_A_PATH_LEASE_NS, lease_ns);
	u64(RDMA_ISOLATE_A_PATH_BYTES, bytes);
	u64(RDMA_ISOLATE_A_PATH_WAITS, waits);
	nl_event_attrs(message, &name_set_path, top_read_path, sample);
}

static void expect_path(const struct top_path *path, const char *peer, uint32_t dir,
			uint64_t used, uint64_t rate, uint64_t waited)
{
	assert_string_equal(path->peer, peer);
	assert_int_equal(path->dir, dir);
	assert_int_equal(path->used, used);
	assert_int_equal(path->rate, rate);
	assert_int_equal(path->waited, waited);
}

static void expect_group(const struct top_group *group, uint32_t id,
			 uint64_t share, uint64_t rate, uint64_t wait)
{
	assert_int_equal(group->id, id);
	assert_int_equal(group->share, share);
	assert_int_equal(group->rate, rate);
	assert_int_equal(group->wait, wait);
}

static void differences(void **state)
{
	struct top_sample old = { .when_ns = 1000 * MS };
	struct top_sample new = { .when_ns = 1500 * MS };
	(void)state;

	add_dev(&old, "rxe0", 4);
	add_group(&old, "rxe0", 1, 500 * MS, 1000, 7 * MS);
	add_group(&old, "rxe0", 2, 900 * MS, UINT64_C(1) << 60, 0);
	add_group(&old, "rxe0", 5, 70 * MS, 4000, 100 * MS);
	add_dev(&new, "rxe0", 4);
	add_group(&new, "rxe0", 1, 600 * MS, 2000, 12 * MS);
	add_group(&new, "rxe0", 2, 1200 * MS,
		  (UINT64_C(1) << 60) + 50000000000, 500 * MS);
	add_group(&new, "rxe0", 5, 70 * MS, 4000, 100 * MS);
	top_compare(&old, &new);

	assert_int_equal(new.interval_ns, 500 * MS);
	expect_group(&new.devs[0].groups[0], 2, 7500, 100000000000, 10000);
	expect_group(&new.devs[0].groups[1], 1, 2500, 2000, 100);
	expect_group(&new.devs[0].groups[2], 5, 0, 0, 0);
	top_free(&old);
	top_free(&new);
}

/* The next sample finds groups by their ids, though the last was sorted by shares. */
static void again(void **state)
{
	struct top_sample samples[3] = {
		{ .when_ns = 0 }, { .when_ns = 1000 * MS },
		{ .when_ns = 2000 * MS },
	};
	unsigned int i;
	(void)state;

	for (i = 0; i < 3; i++) {
		add_dev(&samples[i], "rxe0", 0);
		add_group(&samples[i], "rxe0", 1, i * MS, 10 * i, 0);
		add_group(&samples[i], "rxe0", 2, 3 * i * MS, 30 * i, 0);
		add_group(&samples[i], "rxe0", 3, 4 * i * MS, 40 * i, 0);
		if (i)
			top_compare(&samples[i - 1], &samples[i]);
	}
	expect_group(&samples[2].devs[0].groups[0], 3, 5000, 40, 0);
	expect_group(&samples[2].devs[0].groups[1], 2, 3750, 30, 0);
	expect_group(&samples[2].devs[0].groups[2], 1, 1250, 10, 0);
	for (i = 0; i < 3; i++)
		top_free(&samples[i]);
}

/* Groups come, go, and are given back what they did not use. */
static void come_and_go(void **state)
{
	struct top_sample old = { .when_ns = 1000 * MS };
	struct top_sample new = { .when_ns = 2000 * MS };
	(void)state;

	add_dev(&old, "rxe0", 4);
	add_group(&old, "rxe0", 1, 500 * MS, 1000, 0);
	add_group(&old, "rxe0", 2, 900 * MS, 3000, 9 * MS);
	add_dev(&new, "rxe0", 4);
	add_group(&new, "rxe0", 2, 800 * MS, 2000, 8 * MS);
	add_group(&new, "rxe0", 3, 10 * MS, 5000, 200 * MS);
	top_compare(&old, &new);

	assert_int_equal(new.devs[0].n, 2);
	expect_group(&new.devs[0].groups[0], 3, 10000, 5000, 2000);
	expect_group(&new.devs[0].groups[1], 2, 0, 0, 0);
	top_free(&old);
	top_free(&new);
}

/*
 * A device that got another name is the same, another with its name is not: there
 * the ids begin again.
 */
static void devices(void **state)
{
	struct top_sample old = { .when_ns = 1000 * MS };
	struct top_sample new = { .when_ns = 2000 * MS };
	(void)state;

	add_dev(&old, "rxe0", 4);
	add_group(&old, "rxe0", 1, 500 * MS, 1000, 0);
	add_dev(&old, "rxe1", 5);
	add_group(&old, "rxe1", 1, 500 * MS, 1000, 0);
	add_dev(&new, "isl0", 4);
	add_group(&new, "isl0", 1, 500 * MS, 1700, 0);
	add_dev(&new, "rxe1", 6);
	add_group(&new, "rxe1", 1, 500 * MS, 1700, 0);
	add_group(&new, "rxe9", 1, 500 * MS, 1700, 0);
	top_compare(&old, &new);

	assert_int_equal(new.n, 2);
	expect_group(&new.devs[0].groups[0], 1, 0, 700, 0);
	expect_group(&new.devs[1].groups[0], 1, 10000, 1700, 0);
	top_free(&old);
	top_free(&new);
}

/*
 * Paths are the same by peer and direction, in whatever order the kernel tells of them. One that
 * has come has used all of it since, one that was set anew counts from 0.
 */
static void paths(void **state)
{
	struct top_sample old = { .when_ns = 1000 * MS };
	struct top_sample new = { .when_ns = 1500 * MS };
	const struct top_path *path;
	(void)state;

	add_dev(&old, "rxe0", 4);
	add_path(&old, "rxe0", "::2", RISO_PATH_TX, 8000, 0, 1000, 5);
	add_path(&old, "rxe0", "::1", RISO_PATH_RX, 8000, 0, 500, 2);
	add_path(&old, "rxe0", "::1", RISO_PATH_TX, 8000, 0, 70000, 9);
	add_dev(&new, "rxe0", 4);
	add_path(&new, "rxe0", "::1", RISO_PATH_TX, 8000, 0, 70000, 9);
	add_path(&new, "rxe0", "::1", RISO_PATH_RX, 8000, 0, 400, 1);
	add_path(&new, "rxe0", "::2", RISO_PATH_TX, 8000, 0, 3000, 8);
	add_path(&new, "rxe0", "::3", RISO_PATH_TX, 0, 0, 1000, 0);
	add_path(&new, "rxe9", "::3", RISO_PATH_TX, 0, 0, 1000, 0);
	top_compare(&old, &new);

	path = new.devs[0].paths;
	assert_int_equal(new.devs[0].num_paths, 4);
	expect_path(path++, "::2", RISO_PATH_TX, 5000, 4000, 3);
	expect_path(path++, "::3", RISO_PATH_TX, 0, 2000, 0);
	expect_path(path++, "::1", RISO_PATH_TX, 0, 0, 0);
	expect_path(path, "::1", RISO_PATH_RX, 0, 0, 0);
	top_free(&old);
	top_free(&new);
}

static void parts(void **state)
{
	(void)state;

	assert_int_equal(top_part(0, 0), 0);
	assert_int_equal(top_part(5, 0), 0);
	assert_int_equal(top_part(1, 3), 3333);
	assert_int_equal(top_part(4, 3), 10000);
	assert_int_equal(top_part(UINT64_MAX / 2, UINT64_MAX), 5000);
}

static void expect_screen(const struct top_sample *sample, unsigned int rows,
			  const char *want)
{
	char *got = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&got, &len);

	assert_non_null(file);
	top_print(file, sample, rows);
	fclose(file);
	assert_string_equal(got, want);
	free(got);
}

static void expect_json(const struct top_sample *sample, const char *want)
{
	struct printer out = { .json = true, .stream = true };
	char *got = NULL;
	size_t len = 0;

	out.file = open_memstream(&got, &len);
	assert_non_null(out.file);
	top_print_json(&out, sample);
	fclose(out.file);
	assert_string_equal(got, want);
	free(got);
}

#define HEADING "  GROUP    SHARE        RATE     WAIT  CLASS       WHO\n"

#define GROUP_2 "{\"id\":2,\"who\":\"a\\u001b[2Jb\\u00ff pid 1002\",\"class\":\"throughput\",\"share\":75.00,\"rate\":0,\"wait\":100.00}"
#define GROUP_1 "{\"id\":1,\"who\":\"a\\u001b[2Jb\\u00ff pid 1001\",\"class\":\"latency+bandwidth\",\"share\":25.00,\"rate\":12500000,\"wait\":3.50}"
#define GROUP_12 "{\"id\":12,\"who\":\"a\\u001b[2Jb\\u00ff pid 1012\",\"share\":0.00,\"rate\":0,\"wait\":0.00}"
#define RXE0 "{\"dev\":\"rxe0\",\"interval_ns\":1000000000,\"state\":\"enable\",\"max_rate\":50000000,\"safe_util\":37500000,\"target99_ns\":20000,\"current99_ns\":17500,\"ctrl_state\":\"tracking\",\"agent_pid\":77,\"lease_ns\":800000000,\"latency_groups\":1,\"bandwidth_groups\":2,\"throughput_groups\":3,\"group\":["
#define RXE1 "{\"dev\":\"rxe1\",\"interval_ns\":1000000000,\"state\":\"enable\",\"max_rate\":50000000,\"safe_util\":37500000,\"target99_ns\":\"auto\",\"current99_ns\":0,\"ctrl_state\":\"none\",\"agent_pid\":0,\"lease_ns\":0,\"latency_groups\":0,\"bandwidth_groups\":0,\"throughput_groups\":0,\"group\":[]"

static void shown(void **state)
{
	struct top_sample old = {};
	struct top_sample new = { .when_ns = 1000 * MS };
	(void)state;

	add_dev(&new, "rxe0", 0);
	add_agent(&new, "rxe0");
	add_group(&new, "rxe0", 1, 100 * MS, 12500000, 35 * MS);
	add_group(&new, "rxe0", 2, 300 * MS, 0, 1000 * MS);
	add_group(&new, "rxe0", 12, 0, 0, 0);
	add_flow(&new, "rxe0", 1, RISO_CLASS_BANDWIDTH);
	add_flow(&new, "rxe0", 2, RISO_CLASS_THROUGHPUT);
	add_flow(&new, "rxe0", 1, RISO_CLASS_LATENCY);
	/* of a newer kernel, and of a group that is not there */
	add_flow(&new, "rxe0", 12, 99);
	add_flow(&new, "rxe0", 13, RISO_CLASS_LATENCY);
	add_dev(&new, "rxe1", 1);
	add_budget(&new, "rxe1");
	top_compare(&old, &new);

	expect_screen(&new, 2,
		      "rxe0 enable: SafeUtil 300mbit of MaxRate 400mbit, 75.00% [###############.....]\n"
		      "  Current99 17.5us of Target99 20us, tracking; agent 77, lease 800ms; groups L 1 B 2 T 3\n"
		      HEADING
		      "      2   75.00%        0bit  100.00%  throughput  a?[2Jb? pid 1002\n"
		      "      1   25.00%     100mbit    3.50%  latency+bandwidth  a?[2Jb? pid 1001\n"
		      "\n"
		      "rxe1 enable: SafeUtil 300mbit of MaxRate 400mbit, 75.00% [###############.....]\n"
		      "  Current99 - of Target99 auto; no agent; groups L 0 B 0 T 0\n"
		      HEADING "\n");
	expect_json(&new, RXE0 GROUP_2 "," GROUP_1 "," GROUP_12 "]}\n" RXE1 "}\n");
	top_free(&new);
}

#define PATH_TX "{\"peer\":\"::ffff:10.0.0.3\",\"dir\":\"tx\",\"used\":100.00,\"rate\":12500000,\"limit\":12500000,\"waits\":42,\"lease_ns\":800000000}"
#define PATH_RX "{\"peer\":\"::ffff:10.0.0.3\",\"dir\":\"rx\",\"used\":0.00,\"rate\":125000,\"limit\":0,\"waits\":0,\"lease_ns\":0}"
#define PATH_NEW "{\"peer\":\"::ffff:10.0.0.4\",\"dir\":7,\"used\":0.00,\"rate\":0,\"limit\":12500000,\"waits\":0,\"lease_ns\":0}"
#define PATHS "    DIR     USED        RATE       LIMIT    WAITS  LEASE       PEER\n"

static void shown_paths(void **state)
{
	struct top_sample old = {};
	struct top_sample new = { .when_ns = 1000 * MS, .has_paths = true };
	(void)state;

	add_dev(&new, "rxe0", 0);
	add_agent(&new, "rxe0");
	add_group(&new, "rxe0", 12, 0, 0, 0);
	add_path(&new, "rxe0", "::ffff:10.0.0.3", RISO_PATH_TX, 12500000, 800 * MS, 12500000, 42);
	add_path(&new, "rxe0", "::ffff:10.0.0.3", RISO_PATH_RX, 0, 0, 125000, 0);
	add_path(&new, "rxe0", "::ffff:10.0.0.4", 7, 12500000, 0, 0, 0);
	add_dev(&new, "rxe1", 1);
	add_budget(&new, "rxe1");
	top_compare(&old, &new);

	expect_screen(&new, 2,
		      "rxe0 enable: SafeUtil 300mbit of MaxRate 400mbit, 75.00% [###############.....]\n"
		      "  Current99 17.5us of Target99 20us, tracking; agent 77, lease 800ms; groups L 1 B 2 T 3\n"
		      HEADING
		      "     12    0.00%        0bit    0.00%  -           a?[2Jb? pid 1012\n"
		      PATHS
		      "     tx  100.00%     100mbit     100mbit       42  800ms       ::ffff:10.0.0.3\n"
		      "     rx    0.00%       1mbit         off        0  -           ::ffff:10.0.0.3\n"
		      "\n"
		      "rxe1 enable: SafeUtil 300mbit of MaxRate 400mbit, 75.00% [###############.....]\n"
		      "  Current99 - of Target99 auto; no agent; groups L 0 B 0 T 0\n"
		      HEADING "\n");
	expect_json(&new, RXE0 GROUP_12 "],\"path\":[" PATH_TX "," PATH_RX "," PATH_NEW "]}\n"
		    RXE1 ",\"path\":[]}\n");
	top_free(&new);
}

/* Each table gets as many rows as the others, unless it has fewer. */
static void rows(void **state)
{
	struct top_dev devs[] = { { .n = 2 }, { .n = 10 } };
	struct top_sample sample = { .devs = devs, .n = 2 };
	const unsigned int fixed = TOP_LINES + 2 * TOP_DEV_LINES;
	(void)state;

	assert_int_equal(top_rows(&sample, 0), 0);
	assert_int_equal(top_rows(&sample, fixed), 0);
	assert_int_equal(top_rows(&sample, fixed + 1), 0);
	assert_int_equal(top_rows(&sample, fixed + 2), 1);
	assert_int_equal(top_rows(&sample, fixed + 4), 2);
	assert_int_equal(top_rows(&sample, fixed + 7), 5);
	assert_true(top_rows(&sample, fixed + 12) >= 10);

	devs[0].num_paths = 3;
	assert_int_equal(top_rows(&sample, fixed + TOP_PATH_LINES + 2), 0);
	assert_int_equal(top_rows(&sample, fixed + TOP_PATH_LINES + 3), 1);
	assert_int_equal(top_rows(&sample, fixed + TOP_PATH_LINES + 8), 3);
	assert_true(top_rows(&sample, fixed + TOP_PATH_LINES + 15) >= 10);
}

static void expect_drawn(const char *text, unsigned int lines,
			 unsigned int columns, const char *want)
{
	char *got = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&got, &len);

	assert_non_null(file);
	term_draw(file, text, lines, columns);
	fclose(file);
	assert_string_equal(got, want);
	free(got);
}

static void drawn(void **state)
{
	(void)state;

	expect_drawn("", 3, 80, "\033[H\033[J");
	expect_drawn("a\n\nbcd\n", 24, 80,
		     "\033[H\033[Ka\n\033[K\n\033[Kbcd\n\033[J");
	/* too wide, and too many to leave the last line empty */
	expect_drawn("abcd\nefghi\nj\n", 3, 4,
		     "\033[H\033[Kabcd\n\033[Kefgh\n\033[J");
	expect_drawn("a\n", 1, 1, "\033[H\033[J");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(differences),
		cmocka_unit_test(again),
		cmocka_unit_test(come_and_go),
		cmocka_unit_test(devices),
		cmocka_unit_test(paths),
		cmocka_unit_test(parts),
		cmocka_unit_test(shown),
		cmocka_unit_test(shown_paths),
		cmocka_unit_test(rows),
		cmocka_unit_test(drawn),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}
