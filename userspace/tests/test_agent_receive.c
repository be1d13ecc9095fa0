// SPDX-License-Identifier: GPL-2.0
/*
 * What the agent of a host that receives tells its callers, and what follows from what they tell
 * (userspace/agent/exchange.c and hear.c), with the module, the clock and the other agents of
 * fake_exchange.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_exchange.h"

static void without_latency_no_limit(void **state)
{
	(void)state;
	fake_tells(0, (struct peer_record) {
		.bulk_to = 2, .used_to = FAKE_RATE, .wants_to = true,
	});
	fake_step();
	assert_true(fake.guest[0].told.may_send == RECORD_UNLIMITED);
	assert_true(fake.guest[0].told.may_read == RECORD_UNLIMITED);
	assert_false(fake.guest[0].told.cut);
	assert_int_equal(fake.guest[0].told.to[15], 9);
	assert_int_equal(exchange_latency(fake_ex), 0);
}

static void splits_what_comes_in(void **state)
{
	(void)state;
	fake_tells(0, (struct peer_record) { .bulk_to = 1, .used_to = 1000000, .wants_to = true });
	fake_tells(1, (struct peer_record) { .bulk_to = 3, .used_to = 1000000, .wants_to = true });
	fake_tells(2, (struct peer_record) { .latency_to = 2 });
	fake_step();
	assert_int_equal(exchange_latency(fake_ex), 2);
	assert_true(fake.guest[0].told.cut && fake.guest[1].told.cut);
	assert_in_range(fake_may_send(0) + fake_may_send(1) + fake_may_send(2),
			FAKE_RATE - FAKE_GUESTS, FAKE_RATE);
	/* What one may begin with who has never sent */
	assert_in_range(fake.guest[2].told.may_send, 1, FAKE_RATE / 16);
	assert_in_range(fake_may_send(1) / 1000, fake_may_send(0) * 3 / 1000 - 1,
			fake_may_send(0) * 3 / 1000 + 1);
	/* What one does not want others have. */
	fake_tells(1, (struct peer_record) { .bulk_to = 3 });
	fake_step();
	assert_true(fake.guest[0].told.may_send > FAKE_RATE / 2);
	/* Nor is one counted whose lease has ended, or who came by another device. */
	fake.now += FAKE_LEASE;
	fake_tells(0, (struct peer_record) { .bulk_to = 1, .latency_to = 1, .wants_to = true });
	fake_tells(1, (struct peer_record) { .bulk_to = 3, .latency_to = 1, .wants_to = true });
	fake.guest_id[1].verbs = &fake.other;
	fake_step();
	assert_int_equal(exchange_latency(fake_ex), 1);
	assert_in_range(fake.guest[0].told.may_send, FAKE_RATE - 1, FAKE_RATE);
}

/* With the law of the paper each group has the same, latency groups as well, whatever it sends. */
static void splits_as_the_paper(void **state)
{
	(void)state;
	fake_conf.law = CONF_LAW_PAPER;
	fake_tells(0, (struct peer_record) { .bulk_to = 1, .used_to = 1000000, .wants_to = true });
	fake_tells(1, (struct peer_record) { .bulk_to = 3 });
	fake_tells(2, (struct peer_record) { .latency_to = 2 });
	fake_step();
	assert_in_range(fake_may_send(0), FAKE_RATE / 7 - FAKE_GUESTS, FAKE_RATE / 7);
	assert_in_range(fake_may_send(1), FAKE_RATE / 7 * 3 - FAKE_GUESTS, FAKE_RATE / 7 * 3 + 3);
}

/* Those who send too much have less until the target of the one who complains is met. */
static void heeds_complaints(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		bool late = fake.guest[0].told.may_send > FAKE_RATE / 10 * 8;

		fake_tells(0, (struct peer_record) {
			.bulk_to = 1, .used_to = fake_may_send(0), .wants_to = true,
		});
		fake_tells(1, (struct peer_record) {
			.latency_to = 1, .misses = late,
			.current99_ns = late ? 600000 : 100000, .target99_ns = 300000,
		});
		fake_step();
		fake.now += FAKE_STEP;
	}
	assert_in_range(fake_may_send(0), FAKE_RATE / 2, FAKE_RATE / 10 * 9);
}

static void hears_that_it_sends_too_much(void **state)
{
	struct aimd_input in = { .current99_ns = 0 };

	(void)state;
	fake_tells(0, (struct peer_record) {
		.latency_to = 1, .misses = true, .current99_ns = 600000, .target99_ns = 300000,
	});
	fake_run(SEC / 2, 0, FAKE_RATE);
	assert_int_equal(exchange_target(fake_ex), 300000);
	assert_true(exchange_complain(fake_ex, 100000, &in));
	assert_int_equal(in.short99_ns, 200000);
	assert_int_equal(in.short95_ns, 200000);
	/* It is not this host that fills its link. */
	fake_tells(0, fake.guest[0].last);
	fake_run(SEC / 2, 0, FAKE_RATE / 4);
	in = (struct aimd_input) { 0 };
	assert_true(exchange_complain(fake_ex, 100000, &in));
	assert_in_range(in.short99_ns, 0, 50000);
	/* Nobody is there. */
	fake.now += FAKE_LEASE;
	fake_step();
	assert_false(exchange_complain(fake_ex, 100000, &in));
	assert_int_equal(exchange_target(fake_ex), 0);
}

static void reserves_for_readers(void **state)
{
	(void)state;
	fake_tells(0, (struct peer_record) {
		.latency_to = 1, .bulk_from = 1, .used_from = FAKE_RATE / 10, .wants_from = true,
	});
	fake_run(SEC / 2, 0, FAKE_RATE / 10 * 6);
	assert_int_equal(exchange_reserved(fake_ex), FAKE_RATE / 8);
	assert_true(fake.guest[0].told.may_read < FAKE_RATE);
	assert_true(fake.guest[0].told.may_read >= FAKE_RATE / 8);
	/* Without latency flows there is no need. */
	fake_tells(0, (struct peer_record) { .bulk_from = 1, .used_from = FAKE_RATE / 10 });
	fake_step();
	assert_int_equal(exchange_reserved(fake_ex), 0);
	assert_true(fake.guest[0].told.may_read == RECORD_UNLIMITED);
}

/* What this host reads itself has its part of what comes in, and no more. */
static void reads_too(void **state)
{
	unsigned int i;

	(void)state;
	fake_view.latency = 1;
	for (i = 0; i < 50; i++) {
		fake_tells(0, (struct peer_record) {
			.bulk_to = 4, .used_to = 1000000, .wants_to = true,
		});
		fake_step();
		fake.now += FAKE_STEP;
		fake.group[0].read += FAKE_RATE * FAKE_STEP / SEC;
		fake.group[0].used_ns += FAKE_STEP;
	}
	assert_in_range(fake_may_send(0), FAKE_RATE / 100 * 79, FAKE_RATE / 100 * 81);
}

/* Those who may begin do not hide that the one who sends fills the link. */
static void idle_ones_hide_nothing(void **state)
{
	unsigned int i, n;

	(void)state;
	for (n = 0; n < 50; n++) {
		for (i = 1; i < FAKE_GUESTS; i++)
			fake_tells(i, (struct peer_record) {
				.latency_to = 1, .misses = true,
				.current99_ns = 3000000, .target99_ns = 300000,
			});
		fake_tells(0, (struct peer_record) {
			.bulk_to = 1, .wants_to = true,
			.used_to = fake_may_send(0),
		});
		fake_step();
		if (n == 5)
			assert_true(fake.guest[0].told.misses);
		fake.now += FAKE_STEP;
		if (fake.guest[0].told.may_send < FAKE_RATE / 10 * 7)
			return;
	}
	fail_msg("it may send %ju", (uintmax_t)fake.guest[0].told.may_send);
}

/* Whatever a host says it has no more than 16 groups would have. */
static void liars_have_a_part(void **state)
{
	(void)state;
	fake_tells(0, (struct peer_record) {
		.latency_to = 65535, .bulk_to = 65535, .bulk_from = 65535,
		.used_from = RECORD_UNLIMITED, .used_to = RECORD_UNLIMITED,
		.wants_to = true, .wants_from = true,
	});
	fake_tells(1, (struct peer_record) { .bulk_to = 1, .wants_to = true });
	fake_run(FAKE_LEASE / 2, 0, FAKE_RATE);
	assert_int_equal(exchange_latency(fake_ex), 16);
	assert_in_range(fake.guest[1].told.may_send, FAKE_RATE / 18, FAKE_RATE / 16);
	assert_in_range(FAKE_RATE - exchange_reserved(fake_ex), FAKE_RATE / 20, FAKE_RATE);
}

static void logs_what_is_wrong_once(void **state)
{
	(void)state;
	fake.wrong = "not a record";
	fake_run(SEC, 0, 0);
	assert_int_equal(fake.logged, 1);
}

/*
 * Nobody sends: as seldom as leases need it. A host with latency flows, or whose callers have some,
 * looks often whether they begin to send, but asks the module no more often.
 */
static void rests(void **state)
{
	(void)state;
	fake_view.bulk = 0;
	assert_int_equal(fake_step(), fake.now + FAKE_LEASE / 3);
	fake_tells(0, (struct peer_record) { .bulk_to = 1 });
	assert_int_equal(fake_step(), fake.now + FAKE_STEP);
	fake_tells(0, (struct peer_record) { .bulk_to = 0 });
	fake_step();
	assert_int_equal(fake_step(), fake.now + FAKE_LEASE / 3);
	fake_tells(0, (struct peer_record) { .latency_to = 1 });
	assert_int_equal(fake_step(), fake.now + FAKE_STEP);
	fake.asked = 0;
	fake_run(FAKE_LEASE * 9 / 10, 0, 0);
	assert_in_range(fake.asked, 2, 4);
	fake_tells(0, (struct peer_record) { .latency_to = 1, .bulk_to = 1 });
	fake.asked = 0;
	fake_run(FAKE_LEASE / 2, 0, 0);
	assert_in_range(fake.asked, FAKE_LEASE / 2 / FAKE_STEP, FAKE_LEASE / 2 / FAKE_STEP + 1);
	fake_view.bulk = 1;
	assert_int_equal(fake_step(), fake.now + FAKE_STEP);
}

/* A host that connects anew is one host, and what it told before is forgotten. */
static void counts_a_host_once(void **state)
{
	unsigned int i;

	(void)state;
	fake_tells(0, (struct peer_record) { .latency_to = 2, .bulk_to = 1, .wants_to = true });
	for (i = 1; i < FAKE_GUESTS; i++) {
		fake_guest_comes_from(i, "10.0.0.9");
		fake_tells(i, (struct peer_record) {
			.latency_to = 16, .bulk_to = 16, .bulk_from = 16, .wants_to = true,
			.wants_from = true, .used_from = FAKE_RATE, .misses = true,
			.current99_ns = SEC, .target99_ns = 1000,
		});
	}
	fake_step();
	assert_int_equal(exchange_latency(fake_ex), 2);
	assert_int_equal(exchange_target(fake_ex), 0);
	assert_int_equal(exchange_reserved(fake_ex), 0);
	assert_in_range(fake_may_send(0), FAKE_RATE - 1, FAKE_RATE);
	assert_int_equal(fake.guest[1].told_ns, 0);
	/* As long as the newest connection has told nothing, the one before counts. */
	fake.guest[0].last_ns = 0;
	fake_step();
	assert_int_equal(exchange_latency(fake_ex), 16);
	/* What goes to another address of this host is told over a connection of its own. */
	fake_guest_goes_to(2, "10.1.0.1");
	fake_step();
	assert_int_equal(exchange_latency(fake_ex), 32);
}

/* --- who can be helped --- */

#define TARGET UINT64_C(300000)

/*
 * Guest 1 has late messages while guest 0 sends more than 8/10 of the link, and for @window_ns
 * after that.
 */
struct victim {
	uint64_t window_ns;
	uint64_t over_ns;
};

static bool is_late(struct victim *v)
{
	if (fake_may_send(0) > FAKE_RATE / 10 * 8)
		v->over_ns = fake.now;
	return v->over_ns && fake.now - v->over_ns < v->window_ns;
}

/*
 * For so long, guest 0 sends all that it may. Returns for how much of that, in percent, it may have
 * more than guest 1 can stand.
 */
static unsigned int contend(struct victim *v, uint64_t told_ns, uint64_t ns)
{
	uint64_t end = fake.now + ns;
	unsigned int n, over = 0;
	bool late;

	for (n = 0; fake.now < end; n++, fake.now += FAKE_STEP) {
		over += fake_may_send(0) > FAKE_RATE / 10 * 8;
		late = is_late(v);
		fake_tells(0, (struct peer_record) {
			.bulk_to = 1, .used_to = fake_may_send(0), .wants_to = true,
		});
		fake_tells(1, (struct peer_record) {
			.latency_to = 1, .misses = late, .window_ns = told_ns,
			.current99_ns = late ? 2 * TARGET : TARGET / 3, .target99_ns = TARGET,
		});
		/* Guest 2, if there is one, tells the same as ever. */
		fake.guest[2].last_ns = fake.now;
		fake_step();
	}
	return over * 100 / n;
}

/* Guest 2 has late messages whatever is sent here. */
static void culprit_comes(void)
{
	fake_tells(2, (struct peer_record) {
		.latency_to = 1, .misses = true, .window_ns = 100 * MS,
		.current99_ns = 10 * TARGET, .target99_ns = TARGET,
	});
}

static void helps_who_can_be_helped(void **state)
{
	struct victim v = { .window_ns = 100 * MS };

	(void)state;
	fake_step();
	culprit_comes();
	assert_in_range(contend(&v, v.window_ns, 5 * SEC), 0, 20);
	/* The other one is tried again, and costs little. */
	assert_in_range(contend(&v, v.window_ns, 60 * SEC), 0, 4);
	assert_int_equal(fake.guest[1].excused.span_ns, 0);
	assert_int_equal(fake.guest[0].excused.span_ns, 0);
}

/* After 10 s, then after twice as long, up to 5 min */
static void tries_again_later(void **state)
{
	static const unsigned int pauses[] = { 10, 20, 40, 80, 160, 300, 300 };
	struct victim v = { .window_ns = 100 * MS };
	const struct talk_excuse *e = &fake.guest[2].excused;
	uint64_t until_ns;
	unsigned int i;

	(void)state;
	culprit_comes();
	for (i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
		contend(&v, v.window_ns, 3 * SEC);
		assert_int_equal(e->span_ns, pauses[i] * SEC);
		until_ns = e->until_ns;
		contend(&v, v.window_ns, until_ns - fake.now - SEC / 2);
		assert_int_equal(e->until_ns, until_ns);
		contend(&v, v.window_ns, SEC / 2);
	}
	/* When it could be helped for long it begins anew. */
	fake.guest[2].last.misses = false;
	contend(&v, v.window_ns, until_ns + 301 * SEC - fake.now);
	culprit_comes();
	contend(&v, v.window_ns, 3 * SEC);
	assert_int_equal(e->span_ns, 10 * SEC);
}

/* If nobody else misses nothing is held back; it is of no use. */
static void gives_up_on_one(void **state)
{
	struct victim v = { .window_ns = 0 };
	struct aimd_input in = { .current99_ns = 0 };

	(void)state;
	fake_view.safe_util = FAKE_RATE;
	culprit_comes();
	contend(&v, 100 * MS, 5 * SEC);
	assert_in_range(contend(&v, 100 * MS, 30 * SEC), 95, 100);
	assert_int_equal(fake.guest[2].excused.span_ns, 0);
	/* What it misses still counts for what is sent here. */
	fake_run(SEC / 2, 0, FAKE_RATE);
	assert_true(exchange_complain(fake_ex, TARGET, &in));
	assert_int_equal(in.short99_ns, 10 * TARGET);
}

/* With it goes what was found out. */
static void culprit_leaves(void **state)
{
	struct victim v = { .window_ns = 0 };

	(void)state;
	culprit_comes();
	contend(&v, 100 * MS, 5 * SEC);
	assert_in_range(contend(&v, 100 * MS, SEC), 95, 100);
	fake.guests = 2;
	contend(&v, 100 * MS, SEC / 10);
	v.window_ns = 100 * MS;
	contend(&v, v.window_ns, SEC);
	assert_in_range(contend(&v, v.window_ns, 5 * SEC), 0, 5);
}

/* A decision is not judged before what a caller has measured can have forgotten what was before. */
static void waits_for_a_window(void **state)
{
	struct victim v = { .window_ns = 300 * MS };

	(void)state;
	assert_in_range(contend(&v, v.window_ns, 10 * SEC), 0, 10);
	assert_in_range(contend(&v, v.window_ns, 50 * SEC), 0, 1);
}

/* But not for ever, whatever it tells. */
static void waits_for_no_liar(void **state)
{
	struct victim v = { .window_ns = 300 * MS };

	(void)state;
	assert_in_range(contend(&v, 3600 * SEC, 10 * SEC), 10, 30);
	assert_in_range(contend(&v, 3600 * SEC, 50 * SEC), 0, 1);
}

/*
 * A host with latency flows of its own that measures nothing goes by what its callers say, also
 * when that is good; else what it sends would never be more again.
 */
static void says_that_targets_are_met(void **state)
{
	struct aimd_input in = { .have_samples = false };

	(void)state;
	fake_view.latency = 1;
	fake_tells(0, (struct peer_record) {
		.latency_to = 1, .current99_ns = TARGET / 3, .target99_ns = TARGET,
	});
	fake_run(SEC / 2, 0, FAKE_RATE);
	assert_true(exchange_complain(fake_ex, TARGET, &in));
	assert_in_range(in.short99_ns, 1, TARGET / 2);
	/* What it has measured itself counts. */
	in = (struct aimd_input) { .short99_ns = 2 * TARGET, .have_samples = true };
	assert_false(exchange_complain(fake_ex, TARGET, &in));
	assert_int_equal(in.short99_ns, 2 * TARGET);
}

/* What messages take is not what they take alone while others send here, or read. */
static void tells_whether_it_is_alone(void **state)
{
	(void)state;
	fake_view.latency = 1;
	fake_view.bulk = 0;
	fake_tells(0, (struct peer_record) { .latency_to = 1 });
	fake_step();
	assert_false(exchange_is_shared(fake_ex, fake.now));
	fake_tells(0, (struct peer_record) { .latency_to = 1, .bulk_to = 1 });
	fake_step();
	assert_true(exchange_is_shared(fake_ex, fake.now));
	fake_tells(0, (struct peer_record) { .latency_to = 1 });
	fake_step();
	assert_false(exchange_is_shared(fake_ex, fake.now));
	/* Nor while others send to a peer. */
	fake_answers(1, FAKE_RATE, true);
	fake_step();
	assert_true(exchange_is_shared(fake_ex, fake.now));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FAKE_CASE(without_latency_no_limit),
		FAKE_CASE(splits_what_comes_in),
		FAKE_CASE(splits_as_the_paper),
		FAKE_CASE(heeds_complaints),
		FAKE_CASE(hears_that_it_sends_too_much),
		FAKE_CASE(reserves_for_readers),
		FAKE_CASE(reads_too),
		FAKE_CASE(idle_ones_hide_nothing),
		FAKE_CASE(liars_have_a_part),
		FAKE_CASE(logs_what_is_wrong_once),
		FAKE_CASE(rests),
		FAKE_CASE(counts_a_host_once),
		FAKE_CASE(helps_who_can_be_helped),
		FAKE_CASE(tries_again_later),
		FAKE_CASE(gives_up_on_one),
		FAKE_CASE(culprit_leaves),
		FAKE_CASE(waits_for_a_window),
		FAKE_CASE(waits_for_no_liar),
		FAKE_CASE(says_that_targets_are_met),
		FAKE_CASE(tells_whether_it_is_alone),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_receive", tests, NULL, NULL);
}
