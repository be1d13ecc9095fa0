// SPDX-License-Identifier: GPL-2.0
/*
 * What tools/rdma-isolate sends to make a MaxRate again what it was: a number that somebody
 * has set, or auto. The kernel is one of the test's own, with one device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/genetlink.h>

#include "config_apply.h"
#include "config_file.h"
#include "config_item.h"
#include "config_read.h"
#include "fake_nl.h"
#include "printed.h"

#define PORT UINT64_C(1250000000)

/* Settings of the device */
struct device {
	bool calibrated;
	uint32_t believed_from;
	uint64_t max_rate;
	uint64_t safe_util;
};

static const struct device guess = { false, RISO_BELIEVED_FROM_PORT, PORT, PORT };
static const struct device number = { true, RISO_BELIEVED_FROM_SET, 50000000, 48000000 };

/* What the device has, and what was set last: NULL if nothing was */
static struct device device;
static const struct nlattr *set_rate, *set_util;

static void reply_device(const struct name_set *set, nl_reply_fn reply, void *data)
{
	char buf[1024];
	struct nlmsghdr *nlh = fake_nl_message(buf, RDMA_ISOLATE_CMD_DEV_GET);

	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_DEV_DEV, "d");
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_DEV_STATE, RISO_DEV_IDLE);
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_DEV_MAX_RATE, device.max_rate);
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_DEV_SAFE_UTIL, device.safe_util);
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_DEV_CALIBRATED, device.calibrated);
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_DEV_BELIEVED_FROM, device.believed_from);
	nl_event_attrs(nlh, set, reply, data);
}

int __wrap_nl_send(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data)
{
	const struct nlmsghdr *nlh = fake_nl_request();
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;

	(void)nl;
	if (genl->cmd == RDMA_ISOLATE_CMD_DEV_GET)
		reply_device(set, reply, data);
	if (genl->cmd != RDMA_ISOLATE_CMD_DEV_SET)
		return 0;
	mnl_attr_for_each(attr, nlh, sizeof(*genl)) {
		if (mnl_attr_get_type(attr) == RDMA_ISOLATE_A_DEV_MAX_RATE)
			set_rate = attr;
		if (mnl_attr_get_type(attr) == RDMA_ISOLATE_A_DEV_SAFE_UTIL)
			set_util = attr;
	}
	return 0;
}

static void restore(const struct device *before, const struct device *now)
{
	struct config config;

	device = *before;
	assert_int_equal(config_read(&config), CMD_DONE);
	device = *now;
	set_rate = NULL;
	set_util = NULL;
	config_restore(&config);
	config_free(&config);
}

static void expect_set(uint64_t max_rate, uint64_t safe_util)
{
	assert_non_null(set_rate);
	assert_int_equal(mnl_attr_get_u64(set_rate), max_rate);
	assert_non_null(set_util);
	assert_int_equal(mnl_attr_get_u64(set_util), safe_util);
}

static void a_guess(void **state)
{
	const struct device same_number = { true, RISO_BELIEVED_FROM_SET, PORT, PORT };

	(void)state;
	restore(&guess, &number);
	expect_set(RDMA_ISOLATE_RATE_AUTO, RDMA_ISOLATE_RATE_AUTO);
	restore(&guess, &same_number);
	expect_set(RDMA_ISOLATE_RATE_AUTO, RDMA_ISOLATE_RATE_AUTO);
}

static void a_number(void **state)
{
	const struct device exceeded = { true, RISO_BELIEVED_FROM_DELIVERED, 50000000, 50000000 };

	(void)state;
	restore(&number, &guess);
	expect_set(number.max_rate, number.safe_util);
	restore(&exceeded, &guess);
	expect_set(exceeded.max_rate, RDMA_ISOLATE_RATE_AUTO);
}

/* The port has told another speed meanwhile, and SafeUtil has followed. */
static void a_guess_that_has_changed(void **state)
{
	const struct device faster = { false, RISO_BELIEVED_FROM_DELIVERED, 2 * PORT, 2 * PORT };
	const struct device less = { false, RISO_BELIEVED_FROM_PORT, PORT, PORT / 2 };

	(void)state;
	restore(&guess, &faster);
	assert_null(set_rate);
	assert_null(set_util);
	restore(&less, &faster);
	assert_null(set_rate);
	assert_non_null(set_util);
	assert_int_equal(mnl_attr_get_u64(set_util), PORT / 2);
	restore(&guess, &less);
	assert_null(set_rate);
	assert_non_null(set_util);
	assert_int_equal(mnl_attr_get_u64(set_util), RDMA_ISOLATE_RATE_AUTO);
}

/* Nobody has set it, but the kernel would refuse auto beside this SafeUtil. */
static void a_guess_above_the_port(void **state)
{
	const struct device above = { false, RISO_BELIEVED_FROM_SET, 4 * PORT, 2 * PORT };

	(void)state;
	restore(&above, &number);
	expect_set(4 * PORT, 2 * PORT);
}

/* What a file with this line would change */
static void expect_open(const struct device *now, const char *line, int want)
{
	char name[] = "/tmp/test_restore.XXXXXX";
	int fd = mkstemp(name);
	struct config then = { };

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%s\n", line) > 0);
	assert_int_equal(config_read_file(name, &then), CMD_DONE);
	device = *now;
	assert_int_equal(config_count_open(&then), want);
	config_free(&then);
	remove(name);
	close(fd);
}

static void of_a_file(void **state)
{
	const struct device held = { false, RISO_BELIEVED_FROM_SET, 4 * PORT, 2 * PORT };

	(void)state;
	expect_open(&guess, "dev set dev d max-rate auto", 0);
	expect_open(&number, "dev set dev d max-rate auto", 1);
	/* The number is the same, but now somebody has said so. */
	expect_open(&guess, "dev set dev d max-rate 10gbit", 1);
	expect_open(&number, "dev set dev d max-rate 400mbit", 0);
	/* One that a SafeUtil holds above the port is no number of anybody. */
	expect_open(&held, "dev set dev d max-rate 40gbit", 1);
	/* SafeUtil that follows is the number of MaxRate. */
	expect_open(&guess, "dev set dev d safe-util auto", 0);
	expect_open(&guess, "dev set dev d safe-util 10gbit", 0);
	expect_open(&guess, "dev set dev d safe-util 9gbit", 1);
	expect_open(&number, "dev set dev d safe-util auto", 1);
	/* What it does not name stays. */
	expect_open(&guess, "dev set dev d mode disable", 0);
	expect_open(&number, "dev set dev d mode disable", 0);
}

static void expect_dump(const struct device *now, const char *want)
{
	FILE *file = tmpfile();
	char got[256];

	assert_non_null(file);
	device = *now;
	assert_int_equal(config_dump(file), CMD_DONE);
	read_printed(file, got, sizeof(got));
	assert_string_equal(got, want);
}

static void in_a_dump(void **state)
{
	const struct device less = { false, RISO_BELIEVED_FROM_PORT, PORT, PORT / 2 };

	(void)state;
	expect_dump(&guess, "dev set dev d mode disable max-rate auto safe-util auto\n");
	expect_dump(&less, "dev set dev d mode disable max-rate auto safe-util 5gbit\n");
	expect_dump(&number, "dev set dev d mode disable max-rate 400mbit safe-util 384mbit\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_guess),
		cmocka_unit_test(a_number),
		cmocka_unit_test(a_guess_that_has_changed),
		cmocka_unit_test(a_guess_above_the_port),
		cmocka_unit_test(of_a_file),
		cmocka_unit_test(in_a_dump),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("restore", tests, NULL, NULL);
}
