// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try serve.c, the end of the reference flow that is measured with.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_cm.h"
#include "serve.h"

enum {
	PLACES = 256,
	/* Memory of each guest for records, one way and the other */
	SLOTS = 2,
};

static struct rdma_cm_id *listener;

/* A new id has the context of the listener, whose event it is. */
static void hears(struct rdma_cm_id *to, enum rdma_cm_event_type type,
		  struct rdma_cm_id *id, bool heard)
{
	struct cm_event e = { .type = type, .id = id, .heard = heard, .hello.slot_rkey = 7 };
	struct cm_user *user = to->context;

	user->event(user, &e);
}

static void listen_on(void)
{
	union conf_addr any = { .sa.sa_family = AF_INET6 };

	assert_int_equal(serve_open(&any), 0);
	assert_true(fake.listening);
	listener = fake.last_id;
}

static struct rdma_cm_id *comes(bool heard)
{
	struct rdma_cm_id *id = cm_id(listener->context);

	hears(listener, RDMA_CM_EVENT_CONNECT_REQUEST, id, heard);
	return id;
}

static void leaves(struct rdma_cm_id *id)
{
	hears(id, RDMA_CM_EVENT_DISCONNECTED, id, false);
}

static void refuses(void **state)
{
	struct rdma_cm_id *guest;
	int i;

	(void)state;
	listen_on();
	for (i = 0; i < 3; i++)
		comes(false);
	assert_int_equal(fake.rejected, 3);
	assert_int_equal(fake.logged, 1);
	assert_string_equal(fake.log, "a connection is refused: not an agent");
	assert_int_equal(fake.ids, 1);

	/* It is news after a minute, not when another one was accepted. */
	guest = comes(true);
	assert_int_equal(fake.rejected, 3);
	assert_int_equal(fake.mrs, 1 + SLOTS);
	fake_run_until(59 * SEC);
	comes(false);
	assert_int_equal(fake.logged, 1);
	fake_run_until(61 * SEC);
	comes(false);
	assert_int_equal(fake.logged, 2);
	leaves(guest);
	assert_int_equal(fake.mrs, 0);

	/* Two reasons in turn are news once each. */
	fake.wrong = "an agent of another version";
	for (i = 0; i < 10; i++)
		comes(i % 2);
	assert_int_equal(fake.rejected, 15);
	assert_int_equal(fake.logged, 3);
	serve_close();
}

/* Whoever is there answers; who does not has lost its place ten seconds later. */
static void the_silent_lose_their_places(void **state)
{
	int i;

	(void)state;
	listen_on();
	for (i = 0; i < PLACES; i++)
		comes(true);
	assert_int_equal(fake.qps, PLACES);
	assert_int_equal(fake.mrs, 1 + PLACES * SLOTS);
	assert_int_equal(fake.rejected, 0);

	comes(true);
	assert_int_equal(fake.rejected, 1);
	assert_string_equal(fake.log, "a connection is refused: too many connections");
	assert_int_equal(fake.asked, PLACES);

	/* One has answered, and is asked again; one cannot be reached. */
	fake_run_until(5 * SEC);
	fake.done = true;
	comes(true);
	assert_int_equal(fake.asked, PLACES + 1);
	fake.done = true;
	fake.status = IBV_WC_RETRY_EXC_ERR;
	comes(true);
	assert_int_equal(fake.qps, PLACES - 1);
	comes(true);
	assert_int_equal(fake.qps, PLACES);
	assert_int_equal(fake.rejected, 3);

	/* At ten seconds to the nanosecond there is time. */
	fake_run_until(10 * SEC);
	comes(true);
	assert_int_equal(fake.qps, PLACES);
	fake_run_until(10 * SEC + 1);
	comes(true);
	assert_int_equal(fake.rejected, 5);
	assert_in_range(fake.qps, 1, 3);
	comes(true);
	assert_int_equal(fake.rejected, 5);
	serve_close();
}

static unsigned int talks;

static void say_something(void *arg, struct rdma_cm_id *id, struct talk *talk)
{
	struct peer_record r = { 0 };

	assert_non_null(id);
	assert_int_equal(talk_say(talk, id->qp, &r, NULL, 1), *(int *)arg);
	talks++;
}

/* Each guest is told a record, and another one once that has arrived. */
static void tells_guests(void **state)
{
	int wants;

	(void)state;
	talks = 0;
	listen_on();
	comes(true);
	wants = 0;
	serve_talk(say_something, &wants);
	wants = EBUSY;
	serve_talk(say_something, &wants);
	fake.done = true;
	fake.done_wr_id = TALK_WR_ID;
	wants = 0;
	serve_talk(say_something, &wants);
	assert_int_equal(fake.records, 2);
	/* One that cannot be reached any more is not asked. */
	fake.done = true;
	fake.status = IBV_WC_RETRY_EXC_ERR;
	serve_talk(say_something, &wants);
	assert_int_equal(talks, 3);
	assert_int_equal(fake.qps, 0);
	serve_close();
}

/* Tried each second, until it is back */
static void the_device_goes(void **state)
{
	struct rdma_cm_id *guest;

	(void)state;
	listen_on();
	guest = comes(true);
	fake.listening = false;
	fake.no_address = true;
	hears(listener, RDMA_CM_EVENT_DEVICE_REMOVAL, listener, false);
	hears(guest, RDMA_CM_EVENT_DEVICE_REMOVAL, guest, false);
	assert_int_equal(fake.ids, 0);
	assert_string_equal(fake.log, "the device that is listened at has gone");

	fake_run_until(30 * SEC);
	assert_int_equal(fake.ids, 0);
	assert_int_equal(fake.logged, 1);
	fake.no_address = false;
	fake_run_until(31 * SEC - 1);
	assert_false(fake.listening);
	fake_run_until(31 * SEC);
	assert_true(fake.listening);
	assert_string_equal(fake.log, "it is back, and listened at");
	listener = fake.last_id;
	comes(true);
	assert_int_equal(fake.rejected, 0);
	assert_int_equal(fake.qps, 1);
	serve_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refuses, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(the_silent_lose_their_places, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(tells_guests, fake_set_up,
						fake_nothing_is_left),
		cmocka_unit_test_setup_teardown(the_device_goes, fake_set_up,
						fake_nothing_is_left),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_serve", tests, NULL, NULL);
}
