// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try what steer.c lends at which latency, and which target it finds. steer.c has
 * its law and its windows here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_steer.h"

/* The target is met up to 60 % of MaxRate. */
static uint64_t has_a_knee(unsigned int peer)
{
	(void)peer;
	return fake_in_force() > FAKE_MAX_RATE / 10 * 6 ? 2 * FAKE_TARGET : 10 * US;
}

/* Chunks of less than 16 KB cost too much, whatever is sent. */
static uint64_t needs_larger_chunks(unsigned int peer)
{
	(void)peer;
	return fake_chunk_in_force() < 16384 ? 2 * FAKE_TARGET : 10 * US;
}

/* No latency flow: MaxRate, and no message; renewed in time */
static void opens(void **state)
{
	(void)state;
	fake_start(0, 1, 1);
	fake_run(10 * SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_OPEN);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	assert_int_equal(fake.lent.lease_ns, SEC);
	assert_in_range(fake.sets, 30, 32);
	assert_int_equal(fake.peers[0]->sent, 0);

	/* and none where it does not steer */
	fake_groups(1, 1, 1);
	fake.ctrl = RISO_CTRL_MANUAL;
	fake_run(10 * SEC);
	fake.ctrl = RISO_CTRL_AUTO;
	fake.enabled = false;
	fake_run(10 * SEC);
	assert_in_range(fake.sets, 30, 32);
	assert_int_equal(fake.peers[0]->sent, 0);
}

/* As much as meets the target */
static void steers(void **state)
{
	(void)state;
	fake.latency = has_a_knee;
	fake_start(1, 0, 1);
	fake_run(10 * SEC);
	assert_in_range(fake.lent.safe_util, FAKE_MAX_RATE / 100 * 51,
			FAKE_MAX_RATE / 100 * 61);
	assert_int_equal(fake.lent.target99_ns, FAKE_TARGET);
	assert_in_range(fake.lent.current99_ns, 10 * US, 2 * FAKE_TARGET + FAKE_TARGET / 32);
	assert_in_range(fake.peers[0]->sent, 10 * SEC / FAKE_PERIOD / 10 * 9,
			10 * SEC / FAKE_PERIOD / 10 * 11);
}

/* The same where the answer is there before the tick has ended */
static void steers_spinning(void **state)
{
	fake_conf.spin_ns = 2 * FAKE_TARGET;
	steers(state);
}

/* Not before the short window can have forgotten */
static void at_the_pace_of_the_short_window(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 1; i <= 2; i++) {
		fake_set_up(NULL);
		fake_conf.short_window = 200 * i;
		fake.latency = fake_always_long;
		fake_start(9, 1, 0);
		fake_run(SEC);
		assert_in_range(fake.least_gap_ns, i * 125 * MS, i * 125 * MS + 10 * MS);
		if (i == 1)
			fake_all_ends(NULL);
	}
}

static void unattainable(uint64_t what, uint64_t delta_ns, uint64_t util)
{
	fake_dev.unattainable = what;
	fake_dev.delta_ns = delta_ns;
	fake.latency = fake_half_as_long;
	fake_start(1, 1, 0);
	fake_run(delta_ns);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	fake_run(SEC / 2);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_UNATTAINABLE);
	assert_int_equal(fake.lent.safe_util, util);
}

static void keeps(void **state)
{
	(void)state;
	unattainable(CONF_KEEP, 2 * SEC, FAKE_MAX_RATE / 2);
}

static void gives_up(void **state)
{
	(void)state;
	unattainable(CONF_GIVE_UP, 8 * SEC, FAKE_MAX_RATE);
}

static void not_local(uint64_t what, uint64_t util)
{
	fake_dev.not_local = what;
	fake.latency = fake_always_long;
	fake_start(1, 1, 0);
	fake_run(5 * SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NOT_LOCAL);
	assert_int_equal(fake.lent.safe_util, util);
}

/* What another host is the cause of is told to it, and nothing is taken from those here. */
static void elsewhere(void **state)
{
	(void)state;
	fake.latency = fake_always_long;
	fake.elsewhere[0] = true;
	fake_start(1, 1, 0);
	fake_run(5 * SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	assert_true(fake.noted[0].current99_ns > fake.noted[0].target99_ns);
	assert_int_equal(fake.noted[0].target99_ns, FAKE_TARGET);
	/* Whoever is to blame, that is what messages take. */
	assert_true(fake.lent.current99_ns > FAKE_TARGET);
}

/* A host without latency flows keeps those of others short, and what they miss steers it. */
static void for_another_host(void **state)
{
	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	fake.peer_latency = 2;
	fake.complaint_util = FAKE_MAX_RATE / 10 * 8;
	fake_start(0, 2, 0);
	fake_run(10 * SEC);
	assert_int_equal(fake.lent.peer_latency, 2);
	assert_int_equal(fake.peers[0]->sent, 0);
	assert_in_range(fake.lent.safe_util, FAKE_MAX_RATE / 10 * 7, FAKE_MAX_RATE / 100 * 85);
	fake.peer_latency = 0;
	fake_run(SEC);
	assert_int_equal(fake.lent.peer_latency, 0);
	assert_int_equal(fake.lent.safe_util, FAKE_OWN_UTIL);
}

/* What others may read nobody may send. */
static void reserves(void **state)
{
	(void)state;
	fake.reserved = FAKE_MAX_RATE / 4;
	fake_start(1, 1, 0);
	fake_run(5 * SEC);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE - FAKE_MAX_RATE / 4);
	fake.reserved = 2 * FAKE_MAX_RATE;
	fake_run(SEC);
	assert_int_equal(fake.lent.safe_util, RDMA_ISOLATE_RATE_MIN);
}

static void recovers(void **state)
{
	(void)state;
	not_local(CONF_RECOVER, FAKE_MAX_RATE);
}

static void stays(void **state)
{
	(void)state;
	not_local(CONF_STAY, FAKE_MAX_RATE / 2);
}

static void chooses_chunk(void **state)
{
	(void)state;
	fake.latency = needs_larger_chunks;
	fake_start(1, 1, 0);
	fake_run(5 * SEC);
	assert_int_equal(fake.lent.chunk, 2 * FAKE_AUTO_CHUNK);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	/* one line for the chunks, and one for the state */
	assert_int_equal(fake.logged, 2);
	fake_groups(0, 1, 0);
	fake_run(SEC);
	assert_int_equal(fake.lent.chunk, RDMA_ISOLATE_AUTO);
}

/* The operator sets a size while another one is lent. */
static void gives_way_to_chunk(void **state)
{
	static const uint32_t chunks[] = { 0, 4096, 65536 };
	unsigned int i;

	(void)state;
	fake.latency = needs_larger_chunks;
	fake_start(1, 1, 0);
	for (i = 0; i < 3; i++) {
		fake.chunk = RDMA_ISOLATE_AUTO;
		fake.lease_end = 0;
		steer_look(fake_st);
		fake_run(15 * SEC);
		assert_int_equal(fake.lent.chunk, 2 * FAKE_AUTO_CHUNK);
		fake.chunk = chunks[i];
		fake.lease_end = 0;
		steer_look(fake_st);
		fake_run(SEC);
		assert_int_equal(fake.lent.chunk, chunks[i]);
	}
}

/* What the operator has set, and chunks that are off */
static void keeps_chunk(void **state)
{
	static const uint32_t chunks[] = { 0, FAKE_AUTO_CHUNK };
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		fake_set_up(NULL);
		fake.chunk = chunks[i];
		fake.latency = needs_larger_chunks;
		fake_start(1, 1, 0);
		for (int n = 0; n < 50; n++) {
			fake_run(SEC / 10);
			assert_int_equal(fake.lent.chunk, chunks[i]);
		}
		/* The operator sets another one: it is in force, and the agent hears of it. */
		fake.chunk = 16384;
		fake.lease_end = 0;
		steer_look(fake_st);
		fake_run(SEC);
		assert_int_equal(fake.lent.chunk, 16384);
		if (!i)
			fake_all_ends(NULL);
	}
}

/* Messages that were sent in this time, per second */
static uint64_t sends(uint64_t ns)
{
	uint64_t before = fake.peers[0]->sent;

	fake_run(ns);
	return (fake.peers[0]->sent - before) * SEC / ns;
}

/* Few messages where there is no bulk, and as many as it takes at once when some comes */
static void calm(void **state)
{
	(void)state;
	fake_start(1, 0, 0);
	assert_in_range(sends(2 * SEC), 35, 45);
	assert_in_range(fake.lent.current99_ns, 10 * US, 11 * US);
	fake_groups(1, 1, 0);
	fake.latency = fake_always_long;
	fake_run(30 * MS);
	/* 2000, unless the host is busy */
	assert_in_range(sends(SEC / 10), 500, 2200);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	/* What was measured then is forgotten when there is something to tell. */
	fake_groups(1, 0, 0);
	fake.latency = fake_short_one;
	fake_run(SEC / 2);
	assert_true(fake.lent.current99_ns > FAKE_TARGET);
	fake_run(3 * SEC / 2);
	assert_in_range(fake.lent.current99_ns, 10 * US, 11 * US);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	assert_in_range(sends(SEC), 35, 45);
}

/* Nobody has anything to send: a late message changes nothing, and is one of many soon. */
static uint64_t stalls_once(unsigned int peer)
{
	static uint64_t at;

	(void)peer;
	if (!at)
		at = fake.now;
	return fake.now - at < 25 * MS ? 20 * MS : 10 * US;
}

static void calm_stall(void **state)
{
	(void)state;
	fake_start(1, 0, 0);
	fake_run(3 * SEC);
	fake.latency = stalls_once;
	fake_run(3 * SEC);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	assert_int_equal(fake.lent.chunk, RDMA_ISOLATE_AUTO);
	fake_groups(1, 1, 0);
	fake_run(SEC);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	assert_int_equal(fake.lent.chunk, RDMA_ISOLATE_AUTO);
	/* Nothing is known of a device without latency flows. */
	fake_groups(0, 1, 0);
	fake_run(2 * SEC);
	assert_int_equal(fake.lent.current99_ns, 0);
}

/* The target is found first. */
static void calm_when_target_is_known(void **state)
{
	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	fake_start(1, 0, 0);
	assert_in_range(sends(10 * SEC), 1800, 2200);
	fake_run(SEC);
	assert_in_range(sends(SEC), 35, 45);
}

/* It halves at each sample, and asks nobody whether that helps. */
static void paper(void **state)
{
	(void)state;
	fake_conf.law = CONF_LAW_PAPER;
	fake.latency = fake_always_long;
	fake_start(3, 1, 0);
	fake_run(60 * MS);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE / 4);
	fake_run(4 * SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE / 4);
}

/* It has a second to connect. */
static void no_peer(void **state)
{
	(void)state;
	fake_groups(1, 1, 1);
	fake_st = steer_open(&fake_nl, &fake_conf, &fake_dev);
	fake_run(SEC - 10 * MS);
	assert_int_equal(fake.sets, 0);
	fake_run(30 * MS);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NO_PEER);
	assert_int_equal(fake.lent.safe_util, FAKE_OWN_UTIL);
	fake_connect_all();
	fake_run(SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
}

/* What is out counts as it is, until nobody believes in an answer any more. */
static void hangs(void **state)
{
	(void)state;
	fake_start(1, 1, 0);
	fake_run(SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	fake.hangs = true;
	fake_run(300 * MS);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	assert_true(fake.lent.safe_util < FAKE_MAX_RATE / 10 * 9);
	fake_run(SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NO_PEER);
	assert_int_equal(fake.lent.safe_util, FAKE_OWN_UTIL);
}

/* What was measured before a pause says nothing of now. */
static void forgets(void **state)
{
	(void)state;
	fake.latency = fake_always_long;
	fake_start(1, 1, 0);
	fake_run(SEC);
	fake_groups(0, 1, 0);
	fake_run(3 * SEC);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	fake_groups(1, 1, 0);
	fake.latency = fake_short_one;
	steer_look(fake_st);
	fake_run(SEC / 2);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	assert_in_range(fake.lent.current99_ns, 10 * US, 11 * US);
}

static uint64_t second_is_long(unsigned int peer)
{
	return peer ? 3 * FAKE_TARGET : 10 * US;
}

static uint64_t first_is_long(unsigned int peer)
{
	return peer ? 10 * US : 3 * FAKE_TARGET;
}

/* Enough for the 99th of the short window, and for nothing else */
static uint64_t first_has_spikes(unsigned int peer)
{
	static unsigned int i;

	return !peer && ++i % 40 == 0 ? 3 * FAKE_TARGET : 10 * US;
}

/* The worst counts, and only what is its own: no peer misses the target in the end. */
static void two_peers(void **state)
{
	uint64_t less_ns, util;

	(void)state;
	fake_dev.n_peers = 2;
	fake_start(1, 1, 0);
	fake_run(4 * SEC);
	assert_int_equal(fake.less_ns, 0);
	fake.latency = second_is_long;
	fake_run(110 * MS);
	assert_true(fake.less_ns);
	fake.latency = fake_short_one;
	fake_run(400 * MS);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	assert_in_range(fake.lent.current99_ns, 3 * FAKE_TARGET, 4 * FAKE_TARGET);
	less_ns = fake.less_ns;
	util = fake.lent.safe_util;
	fake.latency = first_has_spikes;
	fake_run(200 * MS);
	fake.latency = fake_short_one;
	fake_run(SEC);
	assert_int_equal(fake.less_ns, less_ns);
	assert_true(fake.lent.safe_util > util);
	fake.latency = first_is_long;
	fake_run(30 * MS);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	assert_in_range(fake.peers[1]->sent, fake.peers[0]->sent - 1,
			fake.peers[0]->sent + 1);
}

/* Nothing is known of the target but when there is nothing else. */
static void finds_a_target(void **state)
{
	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	fake_dev.not_local = CONF_STAY;
	fake_start(1, 1, 0);
	fake_run(SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NONE);
	assert_int_equal(fake.lent.safe_util, FAKE_OWN_UTIL);
	fake_groups(1, 0, 0);
	fake_run(SEC);
	assert_in_range(fake.lent.target99_ns, 40 * US, 41 * US);
	fake_groups(1, 0, 1);
	fake.latency = fake_always_long;
	fake_run(SEC / 2);
	assert_in_range(fake.lent.target99_ns, 40 * US, 41 * US);
	assert_true(fake.lent.safe_util < FAKE_MAX_RATE);
}

static uint64_t wakes_up_late(unsigned int peer)
{
	(void)peer;
	return fake.now % (20 * MS) < MS ? 100 * FAKE_TARGET : 10 * US;
}

/* Not even when that is what was measured last before bulk comes */
static void keeps_the_target(void **state)
{
	unsigned int i;

	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	fake_start(1, 0, 0);
	for (i = 0; i < 2; i++) {
		fake_groups(1, 0, 0);
		fake.latency = fake_short_one;
		fake_run(SEC);
		fake.latency = wakes_up_late;
		fake_run(400 * MS);
		assert_true(fake.lent.current99_ns > 10 * FAKE_TARGET);
		fake_groups(1, 1, 0);
		fake_run(SEC);
		assert_in_range(fake.lent.target99_ns, 40 * US, 41 * US);
	}
	/* It is another one when it is so for long. */
	fake_groups(1, 0, 0);
	fake.latency = fake_always_long;
	fake_run(11 * SEC);
	assert_in_range(fake.lent.target99_ns, 12 * FAKE_TARGET,
			12 * FAKE_TARGET + 12 * FAKE_TARGET / 128);
}

/* Others fill the link, so it takes ever longer; which is no reason to expect that. */
static uint64_t beside_others(unsigned int peer)
{
	(void)peer;
	return 10 * US + (fake.shared ? fake.now % SEC / 10000 : 0);
}

static void keeps_the_target_beside_others(void **state)
{
	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	fake.latency = beside_others;
	fake_start(1, 0, 0);
	fake_run(5 * SEC);
	assert_in_range(fake.lent.target99_ns, 40 * US, 41 * US);
	fake.shared = true;
	fake_run(30 * SEC);
	assert_true(fake.noted[0].current99_ns > 50 * US);
	assert_in_range(fake.noted[0].target99_ns, 40 * US, 41 * US);
	assert_in_range(fake.lent.target99_ns, 40 * US, 41 * US);
	/* What it finds when they have gone counts. */
	fake.shared = false;
	fake.latency = fake_always_long;
	fake_run(11 * SEC);
	assert_in_range(fake.lent.target99_ns, 12 * FAKE_TARGET,
			12 * FAKE_TARGET + 12 * FAKE_TARGET / 128);
}

/* Longer than a period for one of them */
static uint64_t takes_a_while(unsigned int peer)
{
	return peer ? 700 * US : 100 * US;
}

/* What it takes to read lists is not what a message takes. */
static void reads_lists_between_messages(void **state)
{
	(void)state;
	fake_dev.n_peers = 2;
	fake.target99 = 800 * US;
	fake.latency = takes_a_while;
	fake.list_ns = 3 * MS;
	fake_start(1, 1, 0);
	fake_run(10 * SEC);
	assert_in_range(fake.lists, 400, 500);
	assert_int_equal(fake.lists_while_out, 0);
	assert_in_range(fake.noted[0].current99_ns, 100 * US, 101 * US);
	assert_in_range(fake.noted[1].current99_ns, 700 * US, 706 * US);
	assert_int_equal(fake.lent.safe_util, FAKE_MAX_RATE);
	/* Nor when the module tells of something */
	while (!fake.peers[1]->posted_ns)
		fake_run(50 * US);
	fake.lists = 0;
	steer_look(fake_st);
	fake_run(50 * US);
	assert_int_equal(fake.lists, 0);
	fake_run(2 * MS);
	assert_int_equal(fake.lists, 1);
	assert_int_equal(fake.lists_while_out, 0);
}

/* They are read 10 ms late, and then though a message is out. */
static void waits_for_no_message_for_long(void **state)
{
	(void)state;
	fake.list_ns = 100 * US;
	fake_start(1, 1, 0);
	fake_run(SEC);
	fake.hangs = true;
	fake_run(50 * MS);
	fake.lists = 0;
	fake.lists_while_out = 0;
	fake_run(SEC);
	assert_in_range(fake.lists, SEC / (33 * MS), SEC / (29 * MS));
	assert_int_equal(fake.lists_while_out, fake.lists);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_CASE(opens),
		FAKE_CASE(steers),
		FAKE_CASE(steers_spinning),
		FAKE_CASE(at_the_pace_of_the_short_window),
		FAKE_CASE(keeps),
		FAKE_CASE(gives_up),
		FAKE_CASE(elsewhere),
		FAKE_CASE(for_another_host),
		FAKE_CASE(reserves),
		FAKE_CASE(recovers),
		FAKE_CASE(stays),
		FAKE_CASE(chooses_chunk),
		FAKE_CASE(keeps_chunk),
		FAKE_CASE(gives_way_to_chunk),
		FAKE_CASE(calm),
		FAKE_CASE(calm_stall),
		FAKE_CASE(calm_when_target_is_known),
		FAKE_CASE(paper),
		FAKE_CASE(no_peer),
		FAKE_CASE(hangs),
		FAKE_CASE(forgets),
		FAKE_CASE(two_peers),
		FAKE_CASE(finds_a_target),
		FAKE_CASE(keeps_the_target),
		FAKE_CASE(keeps_the_target_beside_others),
		FAKE_CASE(reads_lists_between_messages),
		FAKE_CASE(waits_for_no_message_for_long),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_steer", tests, NULL, NULL);
}
