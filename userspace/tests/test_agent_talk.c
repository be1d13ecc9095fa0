// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try talk.c: two ends whose queue pairs write to each other's memory at once, or half
 * of it, or not at all.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "talk.h"

enum { PLENTY = 2 * RECORD_BYTES };

static const uint8_t key[RECORD_KEY] = "the key of both";
static const uint8_t other_key[RECORD_KEY] = "the key of somebody else";
static const uint8_t host[16] = { 0xfe, 0x80, [15] = 1 };
static const uint8_t other_host[16] = { 0xfe, 0x80, [15] = 2 };

static unsigned int mrs;
/* Bytes of a WRITE that arrive, and the error of its post */
static uint32_t arrive;
static int post_err;
static struct ibv_context context;
static struct ibv_qp qp = { .context = &context };

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	(void)pd;
	(void)iova;
	(void)access;
	assert_non_null(mr);
	mr->addr = addr;
	mr->length = len;
	mr->lkey = ++mrs;
	mr->rkey = mr->lkey;
	return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, 0, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	mrs--;
	free(mr);
	return 0;
}

static int post(struct ibv_qp *on, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ibv_sge *sge = wr->sg_list;

	(void)on;
	(void)bad;
	assert_int_equal(wr->wr_id, TALK_WR_ID);
	assert_int_equal(sge->length, RECORD_BYTES);
	if (!post_err)
		memcpy((void *)(uintptr_t)wr->wr.rdma.remote_addr,
		       (void *)(uintptr_t)sge->addr,
		       sge->length < arrive ? sge->length : arrive);
	return post_err;
}

/* Any time */
#define NOW UINT64_C(1000000000)

static struct talk here, there;

/* As the messages do that agents send when they connect */
static void connect_ends(void)
{
	struct talk_place place;

	assert_null(talk_open(&here, NULL));
	assert_null(talk_open(&there, NULL));
	talk_tell_place(&there, &place);
	talk_learn_place(&here, &place);
	talk_tell_place(&here, &place);
	talk_learn_place(&there, &place);
}

static void disconnect_ends(void)
{
	talk_close(&here);
	talk_close(&there);
	assert_int_equal(mrs, 0);
}

static int setup(void **state)
{
	(void)state;
	context.ops.post_send = post;
	arrive = PLENTY;
	post_err = 0;
	connect_ends();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	disconnect_ends();
	return 0;
}

static int say(uint64_t may_send)
{
	struct peer_record r = { .may_send = may_send, .lease_ns = NOW };

	memcpy(r.to, host, sizeof(r.to));
	return talk_say(&here, &qp, &r, key, NOW);
}

/* The other end has that as news. */
static void expect_heard(uint64_t may_send)
{
	uint64_t before = there.heard;

	assert_null(talk_hear(&there, host, key, NOW));
	assert_true(there.heard > before);
	assert_int_equal(there.last.may_send, may_send);
}

/* What is wrong is told the second time. */
static void expect_no_news(const uint8_t *to, const uint8_t *with, bool is_wrong)
{
	uint64_t before = there.heard;

	there.doubted = false;
	assert_null(talk_hear(&there, to, with, NOW));
	assert_int_equal(!!talk_hear(&there, to, with, NOW), is_wrong);
	assert_int_equal(there.heard, before);
}

static void heard_once(void **state)
{
	(void)state;
	expect_no_news(host, key, false);
	assert_int_equal(say(1000), 0);
	expect_heard(1000);
	expect_no_news(host, key, false);
	assert_int_equal(say(2000), EBUSY);
	talk_said(&here);
	assert_int_equal(say(2000), 0);
	expect_heard(2000);
}

/* The one that is lost is not needed: the next one has all. */
static void one_is_lost(void **state)
{
	(void)state;
	arrive = 0;
	assert_int_equal(say(1000), 0);
	talk_said(&here);
	expect_no_news(host, key, false);
	arrive = PLENTY;
	assert_int_equal(say(2000), 0);
	expect_heard(2000);
}

static void half_is_there(void **state)
{
	(void)state;
	arrive = RECORD_BYTES / 2;
	assert_int_equal(say(1000), 0);
	talk_said(&here);
	expect_no_news(host, key, true);
	arrive = PLENTY;
	assert_int_equal(say(2000), 0);
	expect_heard(2000);
}

static void not_for_us(void **state)
{
	(void)state;
	assert_int_equal(say(1000), 0);
	expect_no_news(other_host, key, true);
	expect_no_news(host, other_key, true);
	expect_no_news(host, NULL, true);
	expect_heard(1000);
}

/* What was written on an earlier connection is not heard on a later one. */
static void replayed(void **state)
{
	uint8_t seen[RECORD_BYTES];

	(void)state;
	assert_int_equal(say(1000), 0);
	expect_heard(1000);
	memcpy(seen, there.slot, sizeof(seen));
	talk_said(&here);
	assert_int_equal(say(2000), 0);
	expect_heard(2000);
	memcpy(there.slot, seen, sizeof(seen));
	expect_no_news(host, key, false);
	disconnect_ends();
	connect_ends();
	memcpy(there.slot, seen, sizeof(seen));
	expect_no_news(host, key, true);
	assert_int_equal(say(3000), 0);
	expect_heard(3000);
}

/* It holds until its lease ends, which is no longer than ten seconds. */
static void holds_for_a_while(void **state)
{
	struct peer_record r = { .lease_ns = 1000 * NOW };

	(void)state;
	assert_false(talk_holds(&there, NOW));
	assert_int_equal(say(1000), 0);
	expect_heard(1000);
	assert_true(talk_holds(&there, NOW));
	assert_true(talk_holds(&there, 2 * NOW - 1));
	assert_false(talk_holds(&there, 2 * NOW));
	talk_said(&here);
	memcpy(r.to, host, sizeof(r.to));
	assert_int_equal(talk_say(&here, &qp, &r, key, NOW), 0);
	assert_null(talk_hear(&there, host, key, NOW));
	assert_true(talk_holds(&there, NOW + TALK_LEASE_MAX - 1));
	assert_false(talk_holds(&there, NOW + TALK_LEASE_MAX));
}

static void cannot_say(void **state)
{
	const struct talk_place nowhere = { 0 };

	(void)state;
	post_err = ENOMEM;
	assert_int_equal(say(1000), ENOMEM);
	post_err = 0;
	/* It is not out, and its sequence was not used. */
	assert_int_equal(say(2000), 0);
	assert_int_equal(here.said, 1);
	expect_heard(2000);
	talk_said(&here);
	talk_learn_place(&here, &nowhere);
	assert_int_equal(say(3000), ENOTCONN);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(heard_once, setup, teardown),
		cmocka_unit_test_setup_teardown(one_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(half_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(not_for_us, setup, teardown),
		cmocka_unit_test_setup_teardown(replayed, setup, teardown),
		cmocka_unit_test_setup_teardown(holds_for_a_while, setup, teardown),
		cmocka_unit_test_setup_teardown(cannot_say, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_talk", tests, NULL, NULL);
}
