// SPDX-License-Identifier: GPL-2.0
/*
 * The record that agents write to each other (userspace/lib/peer_record.c).
 *
 *	test_peer_record [SEED]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "peer_record.h"

static const uint8_t key[RECORD_KEY] = "the key of both";
static const uint8_t other_key[RECORD_KEY] = "the key of somebody else";
static const uint8_t host[16] = { 0xfe, 0x80, [15] = 1 };
static const uint8_t other_host[16] = { 0xfe, 0x80, [15] = 2 };

static const struct peer_record sample = {
	.to = { 0xfe, 0x80, [15] = 1 },
	.epoch = 0x123456789abcdef0,
	.seq = 7,
	.latency_to = 1,
	.bulk_to = 2,
	.latency_from = 3,
	.bulk_from = 65535,
	.used_to = 5000,
	.used_from = UINT64_C(4000000000000),
	.may_send = RECORD_UNLIMITED,
	.may_read = 0,
	.wants_to = true,
	.misses = true,
	.window_ns = 125000000,
	.current99_ns = 12345000,
	.target99_ns = 50000,
	.lease_ns = 1000000000,
};

static const char *why;

static bool reads(const uint8_t *bytes, const uint8_t *with, struct peer_record *r)
{
	return peer_record_read(bytes, with, host, sample.epoch, 0, r, &why);
}

static void round_trip(void **state)
{
	uint8_t bytes[RECORD_BYTES];
	struct peer_record r;

	(void)state;
	peer_record_write(&sample, key, bytes);
	assert_true(reads(bytes, key, &r));
	assert_null(why);
	assert_memory_equal(&r, &sample, sizeof(r));
	peer_record_write(&sample, NULL, bytes);
	assert_true(reads(bytes, NULL, &r));
	assert_memory_equal(&r, &sample, sizeof(r));
}

/* What does not fit is told as the largest that does, and what is little is not nothing. */
static void saturates(void **state)
{
	struct peer_record r = sample;
	uint8_t bytes[RECORD_BYTES];

	(void)state;
	r.bulk_to = UINT32_MAX;
	r.used_to = 1;
	r.may_read = UINT64_C(4294967295001);
	r.current99_ns = UINT64_MAX;
	peer_record_write(&r, key, bytes);
	assert_true(reads(bytes, key, &r));
	assert_int_equal(r.bulk_to, 65535);
	assert_int_equal(r.used_to, 1000);
	assert_true(r.may_read == RECORD_UNLIMITED);
	assert_int_equal(r.current99_ns, UINT64_C(4294967295000));
}

static void expect_wrong(const uint8_t *bytes, const uint8_t *with, const uint8_t *to,
			 uint64_t epoch, const char *what)
{
	struct peer_record r;

	assert_false(peer_record_read(bytes, with, to, epoch, 0, &r, &why));
	if (what)
		assert_string_equal(why, what);
	else
		assert_null(why);
}

static void refuses(void **state)
{
	const char *damaged = "a record that is damaged, or of an agent with another key";
	uint8_t bytes[RECORD_BYTES] = {};

	(void)state;
	expect_wrong(bytes, key, host, sample.epoch, NULL);
	peer_record_write(&sample, key, bytes);
	expect_wrong(bytes, other_key, host, sample.epoch, damaged);
	expect_wrong(bytes, NULL, host, sample.epoch, damaged);
	expect_wrong(bytes, key, other_host, sample.epoch, "a record for another host");
	expect_wrong(bytes, key, host, sample.epoch + 1, "a record of another connection");
	bytes[4]++;
	expect_wrong(bytes, key, host, sample.epoch, "a record of another version");
	bytes[0]++;
	expect_wrong(bytes, key, host, sample.epoch, "not a record");
}

/* Any bit that is wrong makes it none. */
static void notices_each_bit(void **state)
{
	uint8_t bytes[RECORD_BYTES];
	struct peer_record r;
	uint32_t i;

	(void)state;
	peer_record_write(&sample, NULL, bytes);
	for (i = 0; i < 8 * RECORD_BYTES; i++) {
		bytes[i / 8] ^= 1 << i % 8;
		assert_false(reads(bytes, NULL, &r));
		assert_non_null(why);
		bytes[i / 8] ^= 1 << i % 8;
	}
	assert_true(reads(bytes, NULL, &r));
}

/* Whoever looks while it is being written sees the one of before, or none. */
static void notices_half_a_record(void **state)
{
	uint8_t before[RECORD_BYTES], after[RECORD_BYTES], bytes[RECORD_BYTES];
	struct peer_record next = sample, r;
	uint32_t at;

	(void)state;
	next.seq = UINT64_C(0x0808080808080808);
	next.epoch = sample.epoch;
	next.used_to = 77000;
	peer_record_write(&sample, key, before);
	peer_record_write(&next, key, after);
	for (at = 1; at < RECORD_BYTES; at++) {
		memcpy(bytes, after, at);
		memcpy(bytes + at, before + at, RECORD_BYTES - at);
		if (reads(bytes, key, &r))
			assert_true(!memcmp(bytes, before, RECORD_BYTES) ||
				    !memcmp(bytes, after, RECORD_BYTES));
	}
}

/* What has been seen is no news, nor is what was written before it. */
static void refuses_replays(void **state)
{
	uint8_t bytes[RECORD_BYTES];
	struct peer_record r;

	(void)state;
	peer_record_write(&sample, key, bytes);
	assert_true(peer_record_read(bytes, key, host, sample.epoch, sample.seq - 1, &r, &why));
	assert_false(peer_record_read(bytes, key, host, sample.epoch, sample.seq, &r, &why));
	assert_null(why);
	assert_false(peer_record_read(bytes, key, host, sample.epoch, UINT64_MAX, &r, &why));
}

/* Garbage is none. */
static void refuses_garbage(void **state)
{
	uint8_t bytes[RECORD_BYTES];
	struct peer_record r;
	uint32_t i, k;

	(void)state;
	for (k = 0; k < 100000; k++) {
		for (i = 0; i < RECORD_BYTES; i++)
			bytes[i] = random_u64();
		assert_false(reads(bytes, random_to(2) ? key : NULL, &r));
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(round_trip),
	cmocka_unit_test(saturates),
	cmocka_unit_test(refuses),
	cmocka_unit_test(notices_each_bit),
	cmocka_unit_test(notices_half_a_record),
	cmocka_unit_test(refuses_replays),
	cmocka_unit_test(refuses_garbage),
};

int main(int argc, char **argv)
{
	random_begin(argc, argv);
	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
