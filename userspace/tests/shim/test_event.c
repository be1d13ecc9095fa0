// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events: a program that sleeps hears of what has completed, and of few chunks besides.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "channel.h"
#include "event.h"
#include "member.h"
#include "prog.h"
#include "shim.h"
#include "tests.h"

/* A completion comes, and its event is on its way. */
static void receive_before_event(struct prog *p)
{
	fake_receive(p->cq);
	p->cq->armed = false;
}

/* The program sleeps: the event of its completion comes now, and no other. */
static void event_comes(void)
{
	fake_verbs.at_sleep = NULL;
	channel_prog->cq->events++;
}

static void chunks_complete(void)
{
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(channel_prog);
	fake_run(channel_prog->qp, 1);
}

static void *polls_receive(void *unused)
{
	struct ibv_wc wc;

	assert_int_equal(prog_poll_one(channel_prog, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	return unused;
}

/* A completion, an event for it, and another thread is the first to poll. */
static void is_polled_elsewhere(void)
{
	struct fake_cq *cq = channel_prog->cq;
	pthread_t thread;

	cq->ring[cq->tail++ % FAKE_CQ] = (struct fake_cqe) {
		.wc = { .wr_id = 5, .opcode = IBV_WC_RECV },
	};
	cq->events += cq->armed;
	cq->armed = false;
	assert_int_equal(pthread_create(&thread, NULL, polls_receive, NULL), 0);
	pthread_join(thread, NULL);
	/* Not for a second time */
	fake_verbs.at_sleep = NULL;
}

/* Who sleeps may wait for what another one has polled. */
static void event_of_another(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	fake_verbs.at_sleep = is_polled_elsewhere;
	prog_arm(p);
	prog_expect_none(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	channel_expect(&channel);
	channel_close();
}

/*
 * Who sleeps for an event sleeps on when a chunk has completed; who was woken up by poll()
 * is not held for long, though he slept for one before.
 */
static void events_of_chunks(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	static const char many[32];
	char c;

	channel_open(p, &channel);
	fake_verbs.at_sleep = chunks_complete;
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	/* Woken up by poll() */
	assert_int_equal(write(channel_ends[1], many, 1), 1);
	chunks_complete();
	channel_expect(&channel);
	prog_expect_none(p);
	prog_arm(p);
	/* As one that does not sleep */
	assert_int_equal(fcntl(channel_ends[0], F_SETFL, O_NONBLOCK), 0);
	channel_expect(&channel);
	prog_expect_none(p);
	prog_arm(p);
	assert_int_equal(fcntl(channel_ends[0], F_SETFL, 0), 0);
	/* Asleep */
	channel_expect(&channel);
	assert_int_equal(p->qp->run, 16);
	assert_true(p->cq->taken > 4);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect_none(p);
	/* It finds that of the first chunk, and others come soon. */
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(write(channel_ends[1], many, sizeof(many)), sizeof(many));
	chunks_complete();
	channel_expect(&channel);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	while (poll(&(struct pollfd) { .fd = channel_ends[0], .events = POLLIN }, 1, 0) > 0)
		assert_int_equal(read(channel_ends[0], &c, 1), 1);
	/* Woken up by poll() again */
	fake_verbs.at_sleep = NULL;
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, 4 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(write(channel_ends[1], many, 1), 1);
	chunks_complete();
	channel_expect(&channel);
	prog_expect_none(p);
	prog_pump(p, 3, 1);
	channel_close();
}

static void rest_completes(void)
{
	int i;

	fake_verbs.at_sleep = channel_receive;
	fake_grant(RISO_USER_TX, 16 * fake_cost(FAKE_CHUNK));
	for (i = 0; i < 2; i++) {
		prog_drive(channel_prog);
		fake_run(channel_prog->qp, UINT32_MAX);
	}
}

/* Who sleeps for a receive is not told of the last chunk of a message without a completion. */
static void event_of_unsignaled(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	channel_open(p, &channel);
	channel_know(p, &channel);
	fake_kernel.k.window = 4 * fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 3 * FAKE_CHUNK, 0), 0);
	fake_verbs.at_sleep = rest_completes;
	channel_expect(&channel);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	channel_close();
}

/* While nothing is paced, who arms and does not poll is told at once of what is there. */
static void armed_without_poll(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	p->cq->cq.channel = &channel;
	prog_arm(p);
	prog_expect_none(p);
	channel_receive();
	channel_expect(&channel);
	prog_arm(p);
	channel_expect(&channel);
	channel_close();
}

/* A program that sleeps measures its path as one that polls does. */
static void sleeper_measures_path(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct ibv_comp_channel channel;
	struct fake_qp *holds = prog_make_qp(p, p->cq, 0);

	channel_open(p, &channel);
	p->cq->cq.channel = &channel;
	fake_kernel.k.rate = 12500000000ULL;
	fake_grant(RISO_USER_TX, fake_cost(1000));
	prog_arm(p);
	prog_expect_none(p);
	fake_kernel.now += MSEC;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 1000, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(prog_post(holds, IBV_WR_RDMA_WRITE, 2, 16 * FAKE_CHUNK, 0), 0);
	fake_kernel.now += MSEC;
	fake_run(p->qp, 1);
	channel_expect(&channel);
	prog_arm(p);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	assert_true(f->path.rtt_min != RISO_NEVER);
	assert_int_equal(shim_destroy_qp(&holds->ex.qp_base), 0);
	channel_close();
}

/*
 * Who has armed the CQ and polls its completion before the event has come may wait for that event.
 * There is no other.
 */
static void event_after_poll(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;
	uint32_t rounds;

	channel_open(p, &channel);
	p->cq->cq.channel = &channel;
	/* Something is held. */
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	for (rounds = 0; rounds < 3; rounds++) {
		prog_arm(p);
		/* It may look several times until then. */
		if (rounds)
			prog_expect_none(p);
		receive_before_event(p);
		assert_int_equal(prog_poll_one(p, &wc), 1);
		fake_verbs.at_sleep = event_comes;
		channel_expect(&channel);
	}
	channel_close();
}

/* Who sleeps is not told of the first chunk, as its message has a completion still to come. */
static void event_of_first_chunk(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	fake_verbs.at_sleep = chunks_complete;
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	channel_expect(&channel);
	assert_int_equal(p->qp->run, 16);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	channel_close();
}

static void last_completes(void)
{
	fake_run(channel_prog->qp, 1);
}

/* Who finds the event of a chunk after all of its message is out is not told of it either. */
static void event_of_chunk_late(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 2 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_run(p->qp, 1);
	prog_help(p);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(p->cq->events, 1);
	/* That event, and one while it is held */
	assert_int_equal(write(channel_ends[1], "..", 2), 2);
	fake_verbs.at_sleep = last_completes;
	channel_expect(&channel);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	channel_close();
}

/* What was there when the program was told of an event has no other one, whatever that was for. */
static void no_event_for_older(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	channel_open(p, &channel);
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	p->cq->cq.channel = &channel;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	prog_arm(p);
	receive_before_event(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	fake_receive(p->cq);
	fake_verbs.at_sleep = event_comes;
	channel_expect(&channel);
	prog_arm(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_verbs.at_sleep = chunks_complete;
	fake_run(p->qp, 1);
	channel_expect(&channel);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	channel_close();
}

/* What it polled while nothing was paced may have an event on its way, and nothing else comes. */
static void event_from_before(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	channel_open(p, &channel);
	prog_choose(p, RISO_CLASS_LATENCY);
	prog_expect_none(p);
	assert_false(c->active);
	prog_arm(p);
	receive_before_event(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK, 0), 0);
	fake_verbs.at_sleep = event_comes;
	channel_expect(&channel);
	channel_close();
}

/* What is to come raises no event, as the program has armed the CQ for solicited ones. */
static void solicited_event_from_before(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	channel_open(p, &channel);
	prog_choose(p, RISO_CLASS_LATENCY);
	prog_expect_none(p);
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1), 0);
	receive_before_event(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	channel_post_large(p, p->qp, 1);
	fake_verbs.at_sleep = event_comes;
	channel_expect(&channel);
	channel_close();
}

/* Who waits for any event still does after it has armed for solicited ones, too. */
static void armed_for_both(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	channel_know(p, &channel);
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1), 0);
	prog_expect_none(p);
	channel_post_large(p, p->qp, 1);
	fake_verbs.at_sleep = chunks_complete;
	channel_expect(&channel);
	assert_int_equal(p->cq->solicited, 0);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect_none(p);
	/* After its event that is over. */
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1), 0);
	assert_int_equal(p->cq->solicited, 1);
	channel_close();
}

/* It arms twice, and in between the helper takes what the first event is for. */
static void event_of_first_arm(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	channel_open(p, &channel);
	p->cq->cq.channel = &channel;
	channel_post_large(p, p->qp, 1);
	prog_arm(p);
	receive_before_event(p);
	p->cq->events++;
	channel_expect(&channel);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_arm(p);
	receive_before_event(p);
	prog_help(p);
	prog_arm(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	fake_verbs.at_sleep = event_comes;
	channel_expect(&channel);
	channel_close();
}

static void two_events(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;
	uint32_t i;

	channel_open(p, &channel);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	for (i = 0; i < 2; i++) {
		prog_arm(p);
		receive_before_event(p);
		assert_int_equal(prog_poll_one(p, &wc), 1);
	}
	for (i = 0; i < 2; i++) {
		fake_verbs.at_sleep = event_comes;
		channel_expect(&channel);
	}
	channel_close();
}

static void *gets_event(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (!shim_get_cq_event(channel, &cq, &context))
		shim_real.ack_cq_events(cq, 1);
	return NULL;
}

/* A thread that is cancelled takes no event along. */
static void cancelled_while_held(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	pthread_t thread;

	channel_open(p, &channel);
	prog_arm(p);
	channel_post_large(p, p->qp, 1);
	assert_int_equal(p->cq->events, 1);
	assert_int_equal(write(channel_ends[1], "", 1), 1);
	assert_int_equal(pthread_create(&thread, NULL, gets_event, &channel), 0);
	while (!__atomic_load_n(&p->cq->taken, __ATOMIC_RELAXED))
		sched_yield();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	assert_int_equal(p->cq->acked, p->cq->taken);
	channel_close();
}

/* It is held once for each message. */
static void held_once(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	channel_open(p, &channel);
	prog_arm(p);
	channel_post_large(p, p->qp, 1);
	assert_int_equal(write(channel_ends[1], "", 1), 1);
	channel_expect(&channel);
	prog_expect_none(p);
	/* One that is held would look for the event that there seems to be. */
	prog_arm(p);
	fake_run(p->qp, 1);
	assert_int_equal(write(channel_ends[1], "..", 2), 2);
	channel_expect(&channel);
	prog_expect_none(p);
	channel_close();
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(event_of_another),
	PROG_TEST(event_after_poll),
	PROG_TEST(event_of_first_chunk),
	PROG_TEST(event_of_chunk_late),
	PROG_TEST(no_event_for_older),
	PROG_TEST(event_from_before),
	PROG_TEST(solicited_event_from_before),
	PROG_TEST(armed_for_both),
	PROG_TEST(event_of_first_arm),
	PROG_TEST(two_events),
	PROG_TEST(cancelled_while_held),
	PROG_TEST(held_once),
	PROG_TEST(events_of_chunks),
	PROG_TEST(event_of_unsignaled),
	PROG_TEST(armed_without_poll),
	PROG_TEST(sleeper_measures_path),
};

const struct prog_tests prog_event_tests = { tests, ARRAY_SIZE(tests) };
