// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try what steer.c takes over from another agent, and what it leaves to the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_steer.h"

/* One that has died has left that. */
static void leaves(uint64_t safe_util, uint64_t target99_ns)
{
	fake.lent = (struct fake_lent) {
		.safe_util = safe_util, .target99_ns = target99_ns, .pid = FAKE_OTHER,
		.chunk = RDMA_ISOLATE_AUTO,
	};
	fake.lease_end = fake.now + SEC;
}

/* A living one is followed without a word, until it is no more. */
static void does_not_push(void **state)
{
	unsigned int i;

	(void)state;
	fake.alive = true;
	fake_start(1, 1, 0);
	leaves(FAKE_MAX_RATE / 10 * 7, FAKE_TARGET);
	for (i = 0; i < 100; i++) {
		fake.lease_end = fake.now + SEC;
		fake_run(SEC / 10);
	}
	assert_int_equal(fake.sets, 1);
	fake.lent.safe_util = FAKE_MAX_RATE / 10 * 6;
	fake_run(SEC / 10 * 9 - 10 * MS);
	assert_int_equal(fake.sets, 1);
	fake_run(SEC / 5);
	assert_in_range(fake.first.safe_util, FAKE_MAX_RATE / 10 * 6,
			FAKE_MAX_RATE / 100 * 61);
	assert_int_equal(fake.lent.pid, getpid());

	/* Another one came while this was stopped. */
	fake.now += 2 * SEC;
	leaves(FAKE_MAX_RATE / 10 * 7, FAKE_TARGET);
	fake.sets = 0;
	fake_run(SEC - 10 * MS);
	assert_in_range(fake.sets, 1, 2);
	fake_run(SEC / 5);
	assert_int_equal(fake.lent.pid, getpid());
}

static void takes_over(void **state)
{
	(void)state;
	leaves(FAKE_MAX_RATE / 10 * 6, 4 * 20 * US);
	fake.target99 = RDMA_ISOLATE_AUTO;
	fake_start(1, 1, 0);
	fake_run(SEC / 5);
	assert_int_equal(fake.first.safe_util, FAKE_MAX_RATE / 10 * 6);
	assert_in_range(fake.first.target99_ns, 80 * US, 81 * US);
	assert_int_equal(fake.lent.pid, getpid());
}

/* With the chunks of the one before, but none where the operator has set some */
static void takes_over_chunk(void **state)
{
	(void)state;
	leaves(FAKE_MAX_RATE / 10 * 6, FAKE_TARGET);
	fake.lent.chunk = 16384;
	fake_start(1, 1, 0);
	fake_run(SEC / 5);
	assert_int_equal(fake.first.chunk, 16384);
	fake_all_ends(NULL);

	fake_set_up(NULL);
	leaves(FAKE_MAX_RATE / 10 * 6, FAKE_TARGET);
	fake_start(1, 1, 0);
	fake_run(SEC / 5);
	assert_int_equal(fake.first.chunk, RDMA_ISOLATE_AUTO);
	fake_all_ends(NULL);

	fake_set_up(NULL);
	leaves(FAKE_MAX_RATE / 10 * 6, FAKE_TARGET);
	fake.lent.chunk = 16384;
	fake.chunk = 4096;
	fake_start(1, 1, 0);
	fake_run(SEC / 5);
	assert_int_equal(fake.first.chunk, 4096);
}

static void gives_back(void **state)
{
	(void)state;
	fake_start(1, 1, 0);
	fake_run(SEC);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	steer_give_back(fake_st);
	steer_close(fake_st);
	assert_int_equal(fake.lent.lease_ns, RDMA_ISOLATE_LEASE_MIN);
	assert_int_equal(fake.lent.safe_util, FAKE_OWN_UTIL);
	assert_int_equal(fake.lent.chunk, RDMA_ISOLATE_AUTO);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NONE);
	/* nothing if nothing was lent */
	fake.sets = 0;
	fake.enabled = false;
	fake_start(1, 1, 0);
	fake_run(SEC);
	steer_give_back(fake_st);
	steer_close(fake_st);
	assert_int_equal(fake.sets, 0);
}

/* Or it is left to the next one, with the target that was found. */
static void goes_on(void **state)
{
	struct fake_lent last;

	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	fake_dev.not_local = CONF_STAY;
	fake_start(1, 0, 0);
	fake_run(SEC);
	fake_groups(1, 1, 0);
	fake.latency = fake_half_as_long;
	fake_run(3 * SEC);
	last = fake.lent;
	assert_int_equal(last.safe_util, FAKE_MAX_RATE / 2);
	steer_close(fake_st);
	memset(&fake.first, 0, sizeof(fake.first));
	fake_conf.law = CONF_LAW_PAPER;
	fake_start(1, 1, 0);
	fake_run(SEC / 10);
	assert_int_equal(fake.first.safe_util, last.safe_util);
	assert_int_equal(fake.first.target99_ns, last.target99_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_CASE(does_not_push),
		FAKE_CASE(takes_over),
		FAKE_CASE(takes_over_chunk),
		FAKE_CASE(goes_on),
		cmocka_unit_test_setup(gives_back, fake_set_up),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_lease", tests, NULL, NULL);
}
