// SPDX-License-Identifier: GPL-2.0
/*
 * What the agent of a host that sends tells its peers, and what follows from what they answer
 * (userspace/agent/exchange.c and survey.c), with the module, the clock and the other agents of
 * fake_exchange.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_exchange.h"

static void tells_who_sends(void **state)
{
	(void)state;
	fake_add_flow(fake_peer_name[0], 1, RISO_CLASS_BANDWIDTH);
	fake_add_flow(fake_peer_name[0], 1, RISO_CLASS_BANDWIDTH);
	fake_add_flow(fake_peer_name[0], 2, RISO_CLASS_THROUGHPUT);
	fake_add_flow(fake_peer_name[0], 3, RISO_CLASS_LATENCY);
	fake_add_flow(fake_peer_name[1], 3, RISO_CLASS_LATENCY);
	fake_add_flow("10.0.0.7", 4, RISO_CLASS_BANDWIDTH);
	/* The reference flow, and one that cannot send */
	fake_add_flow(fake_peer_name[1], 5, RISO_CLASS_LATENCY);
	fake.flow[fake.flows - 1].pid = getpid();
	fake_add_flow(fake_peer_name[1], 6, RISO_CLASS_BANDWIDTH);
	fake.flow[fake.flows - 1].state = FAKE_RTS - 1;
	/* One that sends no longer */
	fake_add_flow(fake_peer_name[1], 7, RISO_CLASS_BANDWIDTH);
	fake.group[7].used_ns = SEC;
	fake_answers(0, RECORD_UNLIMITED, false);
	fake_run(FAKE_LEASE / 2, 0, 0);
	fake.group[1].used_ns += MS;
	fake.group[2].used_ns += MS;
	fake.group[6].used_ns += MS;
	fake_answers(0, RECORD_UNLIMITED, false);
	fake_run(FAKE_LEASE * 3 / 4, 0, 0);
	assert_int_equal(fake.said[0].bulk_to, 2);
	assert_int_equal(fake.said[0].latency_to, 1);
	assert_int_equal(fake.said[1].bulk_to, 0);
	assert_int_equal(fake.said[1].latency_to, 1);
	assert_int_equal(fake.said[0].to[15], 2);
	assert_int_equal(fake.said[0].lease_ns, FAKE_LEASE);
}

/* What is used is known once there is a limit. */
static void tells_what_is_used(void **state)
{
	(void)state;
	fake_answers(0, FAKE_RATE, true);
	fake_run(SEC / 2, 10000000, 10000000);
	assert_in_range(fake.said[0].used_to, 9800000, 10000000);
	assert_false(fake.said[0].wants_to);
	fake.path[0][RISO_PATH_TX].waits += 7;
	fake_run(2 * FAKE_STEP, 10000000, 10000000);
	assert_false(fake.said[0].wants_to);
	fake.path[0][RISO_PATH_TX].waits += 7;
	fake_run(FAKE_STEP, 10000000, 10000000);
	assert_true(fake.said[0].wants_to);
}

/* Nothing if nothing is sent; what is as it was is told three times in a lease. */
static void tells_no_more_than_needed(void **state)
{
	(void)state;
	fake_run(FAKE_LEASE, 0, 0);
	assert_int_equal(fake.num_said, 0);
	fake_add_flow(fake_peer_name[0], 0, RISO_CLASS_LATENCY);
	fake_add_flow(fake_peer_name[1], 0, RISO_CLASS_LATENCY);
	fake_run(3 * FAKE_LEASE, 0, 0);
	assert_in_range(fake.num_said, FAKE_PEERS * 8, FAKE_PEERS * 10);
	fake.num_said = 0;
	fake_conf.lease_ns = 60 * SEC;
	fake_run(30 * SEC, 0, 0);
	assert_in_range(fake.num_said, FAKE_PEERS * 8, FAKE_PEERS * 10);
	assert_int_equal(fake.said[0].lease_ns, TALK_LEASE_MAX);
	fake_conf.lease_ns = 30 * MS;
	fake_view.bulk = 1;
	assert_int_equal(fake_step(), fake.now + 10 * MS);
	fake_conf.lease_ns = FAKE_LEASE;
}

static void lists_flows_seldom(void **state)
{
	(void)state;
	/* Nobody is there to tell, or there is nothing to tell. */
	fake.probe[0].ready = false;
	fake.probe[1].ready = false;
	fake_run(SEC, 0, 0);
	assert_int_equal(fake.listed, 0);
	fake.probe[0].ready = true;
	fake.probe[1].ready = true;
	fake_view.bulk = 0;
	fake_run(SEC, 0, 0);
	assert_int_equal(fake.listed, 0);
	fake_view.bulk = 1;
	fake_run(SEC, 0, 0);
	assert_in_range(fake.listed, 9, 11);
}

static void keeps_to_what_it_may(void **state)
{
	const struct fake_path *p = &fake.path[0][RISO_PATH_TX];

	(void)state;
	fake_step();
	assert_int_equal(fake.sets, 0);
	fake_answers(0, FAKE_RATE / 4, true);
	fake_step();
	assert_int_equal(p->rate, FAKE_RATE / 4);
	assert_int_equal(p->cut, 1);
	assert_false(fake.path[0][RISO_PATH_RX].there);
	assert_int_equal(fake.sets, 1);
	/* Nothing new, until it is renewed */
	fake_run(FAKE_LEASE / 4, 0, 0);
	assert_int_equal(fake.sets, 1);
	fake_run(FAKE_LEASE / 4, 0, 0);
	assert_int_equal(fake.sets, 2);
	/* Less than a 64th is nothing new; without latency flows there is no limit. */
	fake_answers(0, FAKE_RATE / 4 - FAKE_RATE / 400, true);
	fake_step();
	assert_int_equal(fake.sets, 2);
	fake_answers(0, RECORD_UNLIMITED, false);
	fake_step();
	assert_int_equal(fake.sets, 3);
	assert_false(p->there);
	fake_run(FAKE_LEASE / 2, 0, 0);
	assert_int_equal(fake.sets, 3);
	fake_answers(0, 1, true);
	fake_step();
	assert_int_equal(p->rate, RDMA_ISOLATE_RATE_MIN);
	/* The agent there has died: nothing is renewed. */
	fake.sets = 0;
	fake.now += FAKE_LEASE;
	fake_run(FAKE_LEASE, 0, 0);
	assert_int_equal(fake.sets, 0);
}

static void leaves_an_operators_limit(void **state)
{
	(void)state;
	fake.path[0][RISO_PATH_TX] = (struct fake_path) { .rate = 7000000, .there = true };
	fake_answers(0, FAKE_RATE / 4, true);
	fake_run(FAKE_LEASE, 0, 0);
	assert_int_equal(fake.path[0][RISO_PATH_TX].rate, 7000000);
	fake_answers(0, RECORD_UNLIMITED, false);
	fake_run(FAKE_LEASE / 2, 0, 0);
	assert_int_equal(fake.path[0][RISO_PATH_TX].rate, 7000000);
	assert_int_equal(fake.sets, 0);
}

static void module_says_no(void **state)
{
	(void)state;
	fake.refuses[0] = true;
	fake_answers(0, FAKE_RATE / 4, true);
	fake_run(SEC / 2, 0, 0);
	assert_int_equal(fake.sets, 1);
	fake.refuses[0] = false;
	fake_run(SEC / 2, 0, 0);
	fake_answers(0, FAKE_RATE / 4, true);
	fake_step();
	assert_int_equal(fake.path[0][RISO_PATH_TX].rate, FAKE_RATE / 4);
}

/*
 * What a miss is held against, while so much is sent and the peer finds what comes in too much or
 * not
 */
static void blames(bool heard, bool full, bool not_local, uint64_t all, bool complains,
		   bool elsewhere)
{
	unsigned int i;

	fake_add_flow(fake_peer_name[0], 0, RISO_CLASS_BANDWIDTH);
	fake_view.safe_util = FAKE_RATE / 2;
	exchange_note(fake_ex, 0, 900000, 300000, not_local);
	for (i = 0; i < 2; i++) {
		if (heard)
			fake_answers(0, FAKE_RATE, full);
		fake_run(SEC / 2, 1000, all);
	}
	assert_int_equal(exchange_is_elsewhere(fake_ex, 0, fake.now), elsewhere);
	assert_false(exchange_is_elsewhere(fake_ex, 1, fake.now));
	assert_int_equal(fake.said[0].misses, complains);
	assert_int_equal(fake.said[0].current99_ns, 900000);
	assert_int_equal(fake.said[0].target99_ns, 300000);
	assert_false(fake.said[1].misses);
}

static void blames_the_peer(void **state)
{
	(void)state;
	blames(true, true, false, FAKE_RATE / 2 / 10 * 8, true, true);
}

/* The peer is told, but as long as it does nothing this host has to find out. */
static void asks_the_peer(void **state)
{
	(void)state;
	blames(true, false, false, FAKE_RATE / 2 / 10 * 8, true, false);
}

static void blames_itself(void **state)
{
	(void)state;
	blames(true, true, false, FAKE_RATE / 2 / 100 * 95, false, false);
}

/* It has found out that it does not matter what is sent here. */
static void was_not_local(void **state)
{
	(void)state;
	blames(true, true, true, FAKE_RATE / 2 / 100 * 95, true, false);
}

static void blames_nobody_without_an_agent(void **state)
{
	(void)state;
	blames(false, false, false, FAKE_RATE / 2 / 10 * 8, true, false);
}

/* The limits of one peer are not those of another. */
static void one_is_refused(void **state)
{
	unsigned int i;

	(void)state;
	fake.refuses[0] = true;
	for (i = 0; i < 10; i++) {
		fake_answers(0, FAKE_RATE / 4, true);
		fake_answers(1, FAKE_RATE / 4, true);
		fake_step();
		assert_int_equal(fake.path[1][RISO_PATH_TX].rate, FAKE_RATE / 4);
		fake.now += FAKE_STEP;
	}
	/* One of each, and for the first peer not again */
	assert_int_equal(fake.sets, 2);
}

/* For so long, when it is due; what is sent to the first peer, and read, in bytes per second */
static void live(uint64_t ns, uint64_t sent, uint64_t read)
{
	uint64_t end = fake.now + ns, due = 0;

	for (; fake.now < end; fake.now += FAKE_STEP) {
		/* What it may is the same as ever. */
		fake_answers(0, FAKE_RATE / 2, true);
		if (fake.now >= due)
			due = fake_step();
		fake.path[0][RISO_PATH_TX].bytes += sent * FAKE_STEP / SEC;
		fake.path[0][RISO_PATH_TX].waits += !!sent;
		fake.group[0].used_ns += FAKE_STEP * (sent + read) / FAKE_RATE;
		fake.group[0].read += read * FAKE_STEP / SEC;
	}
}

static void begins(uint64_t sent, uint64_t read)
{
	fake_add_flow(fake_peer_name[0], 0, RISO_CLASS_BANDWIDTH);
	live(SEC, sent, read);
	assert_int_equal(fake.said[0].bulk_to, 1);
}

/* The peer is told that it is over, and nothing more; nor is the module asked for that. */
static void ends(void)
{
	fake_view.bulk = 0;
	fake.num_said = 0;
	live(SEC, 0, 0);
	/* What was sent until then, and that it is over */
	assert_in_range(fake.num_said, 1, 2);
	assert_int_equal(fake.said[0].bulk_to, 0);
	assert_int_equal(fake.said[0].used_to, 0);
	assert_false(fake.said[0].wants_to);
	fake.num_said = 0;
	fake.asked = 0;
	fake.sets = 0;
	live(60 * SEC, 0, 0);
	assert_int_equal(fake.num_said, 0);
	assert_int_equal(fake.asked, 0);
	assert_int_equal(fake.sets, 0);
}

static void tells_the_end(void **state)
{
	(void)state;
	begins(FAKE_RATE / 2, 0);
	fake.flows = 0;
	ends();
}

/* Its flows are there, but nothing has been posted for a second. */
static void tells_that_it_idles(void **state)
{
	(void)state;
	begins(FAKE_RATE / 2, 0);
	live(SEC, 0, 0);
	ends();
}

/* It looks often while something is read here, and no longer. */
static void reads_no_more(void **state)
{
	(void)state;
	begins(0, FAKE_RATE / 2);
	fake_view.bulk = 0;
	assert_int_equal(fake_step(), fake.now + FAKE_STEP);
	assert_true(exchange_is_shared(fake_ex, fake.now));
	fake.probe[0].talk.last_ns = 0;
	fake.flows = 0;
	fake_run(5 * SEC, 0, 0);
	assert_int_equal(fake_step(), fake.now + FAKE_LEASE / 3);
	assert_false(exchange_is_shared(fake_ex, fake.now));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FAKE_CASE(tells_who_sends),
		FAKE_CASE(tells_what_is_used),
		FAKE_CASE(tells_no_more_than_needed),
		FAKE_CASE(lists_flows_seldom),
		FAKE_CASE(keeps_to_what_it_may),
		FAKE_CASE(leaves_an_operators_limit),
		FAKE_CASE(module_says_no),
		FAKE_CASE(blames_the_peer),
		FAKE_CASE(asks_the_peer),
		FAKE_CASE(blames_itself),
		FAKE_CASE(was_not_local),
		FAKE_CASE(blames_nobody_without_an_agent),
		FAKE_CASE(one_is_refused),
		FAKE_CASE(tells_the_end),
		FAKE_CASE(tells_that_it_idles),
		FAKE_CASE(reads_no_more),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_exchange", tests, NULL, NULL);
}
