// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try probe.c, the end of the reference flow that measures, and the words of its
 * log.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_cm.h"
#include "probe.h"

#define CLOCK_MASK UINT64_C(0xffffffffffff)

static uint64_t measured;
static unsigned int samples;

static void on_sample(struct probe *p, uint64_t ns)
{
	(void)p;
	measured = ns;
	samples++;
}

static void happens(struct probe *p, enum rdma_cm_event_type type, bool heard)
{
	struct cm_event e = { .type = type, .id = p->id, .heard = heard, .hello.slot_rkey = 7 };

	p->user.event(&p->user, &e);
}

static void connects(struct probe *p)
{
	happens(p, RDMA_CM_EVENT_ADDR_RESOLVED, false);
	happens(p, RDMA_CM_EVENT_ROUTE_RESOLVED, false);
	happens(p, RDMA_CM_EVENT_ESTABLISHED, true);
	assert_true(p->ready);
}

/* What the log says has no words of librdmacm in it, and those of the agent where it can. */
static void plain_words(void **state)
{
	static const struct {
		struct cm_event e;
		const char *why;
	} cases[] = {
		{ { .type = RDMA_CM_EVENT_ADDR_ERROR, .status = -19 },
		  "no host has this address, or there is no route to it" },
		{ { .type = RDMA_CM_EVENT_UNREACHABLE }, "no answer" },
		{ { .type = RDMA_CM_EVENT_REJECTED, .status = 8 },
		  "nobody listens there; is rdma-isolated running?" },
		{ { .type = RDMA_CM_EVENT_REJECTED, .status = 28, .heard = true },
		  "refused, the agent there says why in its log" },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(cm_why(&cases[i].e), cases[i].why);
	for (i = RDMA_CM_EVENT_ADDR_RESOLVED; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++) {
		struct cm_event e = { .type = i };

		assert_null(strstr(cm_why(&e), "RDMA_CM"));
	}
}

static void start(struct probe *p)
{
	memset(p, 0, sizeof(*p));
	p->done.fd = -1;
	p->dev = fake_device.name;
	p->sample = on_sample;
	p->peer.v4.sin_family = AF_INET;
	p->peer.v4.sin_addr.s_addr = htonl(0xc0000201);
	samples = 0;
	assert_int_equal(probe_open(p), 0);
}

/* Posted, and seen after so long, by the event that was asked for */
static void one(struct probe *p, uint64_t ns)
{
	probe_send(p, fake.now);
	fake.now += ns;
	fake.done = true;
	assert_true(fake.armed);
	fake.armed = false;
	p->done.ready(&p->done);
}

/* A record goes over the same queue pair, and no latency is measured with it. */
static void says_a_record(void **state)
{
	struct peer_record r = { 0 };
	struct probe p;

	(void)state;
	start(&p);
	assert_int_equal(probe_say(&p, &r, NULL), ENOTCONN);
	connects(&p);
	assert_int_equal(probe_say(&p, &r, NULL), 0);
	assert_int_equal(fake.records, 1);
	assert_int_equal(probe_say(&p, &r, NULL), EBUSY);
	fake.done_wr_id = TALK_WR_ID;
	fake.done = true;
	assert_true(fake.armed);
	p.done.ready(&p.done);
	assert_int_equal(samples, 0);
	fake.done_wr_id = 0;
	one(&p, 5000);
	assert_int_equal(samples, 1);
	assert_int_equal(probe_say(&p, &r, NULL), 0);
	/* A peer that does not get it has gone. */
	fake.done_wr_id = TALK_WR_ID;
	fake.done = true;
	fake.status = IBV_WC_RETRY_EXC_ERR;
	p.done.ready(&p.done);
	assert_false(p.ready);
	assert_int_equal(probe_say(&p, &r, NULL), ENOTCONN);
	probe_close(&p);
}

/* Who spins for reference messages asks for an event for a record. */
static void says_while_it_spins(void **state)
{
	struct peer_record r = { 0 };
	struct probe p;
	int i;

	(void)state;
	start(&p);
	p.spin_ns = 5000;
	connects(&p);
	for (i = 0; i < 3; i++) {
		fake.armed = false;
		assert_int_equal(probe_say(&p, &r, NULL), 0);
		assert_true(fake.armed);
		fake.done_wr_id = TALK_WR_ID;
		fake.done = true;
		p.done.ready(&p.done);
	}
	assert_int_equal(fake.records, 3);
	assert_int_equal(samples, 0);
	fake.done_wr_id = 0;
	probe_close(&p);
}

static void by_our_clock(void **state)
{
	struct probe p;

	(void)state;
	start(&p);
	connects(&p);
	assert_false(fake.stamps);
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: connected");
	one(&p, 70000);
	assert_int_equal(samples, 1);
	assert_int_equal(measured, 70000);

	/* Until it has completed none is sent. */
	probe_send(&p, fake.now);
	probe_send(&p, fake.now);
	assert_int_equal(fake.posts, 2);
	probe_close(&p);
	assert_int_equal(p.sent, 2);
	assert_int_equal(p.lost, 1);
}

/* However late it is seen. The clock of the device may start anew between. */
static void by_its_clock(void **state)
{
	struct probe p;

	(void)state;
	fake.clock_mask = CLOCK_MASK;
	start(&p);
	connects(&p);
	assert_true(fake.stamps);
	assert_string_equal(fake.log,
			    "fake0: peer 192.0.2.1: connected, the device stamps completions");

	fake.ticks = 1000000;
	fake.stamp = fake.ticks + 625;
	one(&p, 70000);
	assert_int_equal(measured, 4000);

	fake.ticks = CLOCK_MASK - 24;
	fake.stamp = 600;
	one(&p, 70000);
	assert_int_equal(measured, 4000);

	/* as long as it takes for a 64 bit product to overflow */
	fake.ticks = 0;
	fake.stamp = UINT64_C(1) << 47;
	one(&p, 2 * (fake.stamp / FAKE_KHZ * MS));
	assert_int_equal(measured, (UINT64_C(1) << 47) / FAKE_KHZ * MS +
			 (UINT64_C(1) << 47) % FAKE_KHZ * MS / FAKE_KHZ);
	assert_int_equal(samples, 3);
	probe_close(&p);
}

/* Later than it was seen, and before it was posted */
static void with_a_clock_that_is_wrong(void **state)
{
	struct probe p;

	(void)state;
	fake.clock_mask = UINT64_MAX;
	start(&p);
	connects(&p);
	assert_true(fake.stamps);
	fake.ticks = 1000000;
	fake.stamp = fake.ticks + FAKE_KHZ / 10;
	one(&p, MS / 10);
	assert_int_equal(measured, MS / 10);
	one(&p, MS / 10 - 1);
	assert_int_equal(measured, MS / 10 - 1);
	fake.stamp = fake.ticks - 1;
	one(&p, 70000);
	assert_int_equal(measured, 70000);
	/* What 64 bits would leave of it is less. */
	fake.stamp = fake.ticks + UINT64_C(18446744073710) * FAKE_KHZ;
	one(&p, MS);
	assert_int_equal(measured, MS);
	probe_close(&p);
}

/* A device may refuse a queue pair on a CQ that stamps. */
static void without_stamps(void **state)
{
	struct probe p;

	(void)state;
	fake.clock_mask = CLOCK_MASK;
	fake.no_stamped_qp = true;
	start(&p);
	connects(&p);
	assert_false(fake.stamps);
	assert_int_equal(fake.cqs, 1);
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: connected");
	one(&p, 70000);
	assert_int_equal(measured, 70000);
	probe_close(&p);
}

static void with_a_clock_of_no_use(void **state)
{
	struct probe p;

	(void)state;
	fake.clock_mask = CLOCK_MASK;
	fake.clock_broken = true;
	start(&p);
	connects(&p);
	assert_false(fake.stamps);
	one(&p, 70000);
	assert_int_equal(measured, 70000);

	/* or of none from some time on */
	fake.clock_broken = false;
	happens(&p, RDMA_CM_EVENT_DISCONNECTED, false);
	fake_run_until(SEC);
	connects(&p);
	assert_true(fake.stamps);
	fake.clock_broken = true;
	probe_send(&p, fake.now);
	assert_false(p.ready);
	assert_int_equal(fake.posts, 1);
	assert_string_equal(fake.log,
			    "fake0: peer 192.0.2.1: cannot post: Input/output error");
	fake_run_until(2 * SEC);
	connects(&p);
	assert_false(fake.stamps);
	probe_close(&p);
}

/* What completes while it looks; anything later is waited for. */
static void spins(void **state)
{
	struct probe p;

	(void)state;
	start(&p);
	p.spin_ns = 5000;
	fake.step = 100;
	connects(&p);
	fake.done = true;
	probe_send(&p, fake.now);
	assert_int_equal(samples, 1);
	assert_int_equal(measured, 100);
	one(&p, 70000);
	assert_int_equal(samples, 2);
	assert_in_range(measured, 70000 + 5000, 70000 + 5000 + 4 * 100);
	probe_close(&p);
}

/* Tried again, with pauses of 0.1 s to 5 s, and logged once for each cause */
static void comes_back(void **state)
{
	uint64_t pause = 100 * MS, at = 0;
	struct probe p;
	int i;

	(void)state;
	start(&p);
	connects(&p);
	probe_send(&p, fake.now);
	fake.done = true;
	fake.status = IBV_WC_RETRY_EXC_ERR;
	p.done.ready(&p.done);
	assert_int_equal(samples, 0);
	assert_int_equal(p.lost, 1);
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: retries");
	fake.status = IBV_WC_SUCCESS;
	for (i = 0; i < 10; i++) {
		assert_null(p.id);
		fake_run_until(at + pause - 1);
		assert_null(p.id);
		at += pause;
		fake_run_until(at);
		assert_non_null(p.id);
		happens(&p, RDMA_CM_EVENT_REJECTED, false);
		pause = pause * 2 < 5 * SEC ? pause * 2 : 5 * SEC;
	}
	assert_string_equal(fake.log,
			    "fake0: peer 192.0.2.1: refused, the agent there says why in its log");
	assert_int_equal(fake.logged, 3);
	fake_run_until(at + pause);
	happens(&p, RDMA_CM_EVENT_ADDR_RESOLVED, false);
	happens(&p, RDMA_CM_EVENT_ROUTE_RESOLVED, false);
	happens(&p, RDMA_CM_EVENT_ESTABLISHED, false);
	assert_false(p.ready);
	assert_string_equal(fake.log, "fake0: peer 192.0.2.1: not an agent");
	at += pause + 5 * SEC;
	fake_run_until(at);
	connects(&p);

	/* One that worked is tried again soon. */
	happens(&p, RDMA_CM_EVENT_DISCONNECTED, false);
	assert_null(p.id);
	fake_run_until(at + 100 * MS);
	assert_non_null(p.id);
	probe_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(says_a_record, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(says_while_it_spins, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(by_our_clock, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(by_its_clock, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(with_a_clock_of_no_use, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(with_a_clock_that_is_wrong, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(without_stamps, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(spins, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test(plain_words),
		cmocka_unit_test_setup_teardown(comes_back, fake_set_up,
						fake_nothing_is_left),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_probe", tests, NULL, NULL);
}
