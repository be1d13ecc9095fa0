// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events: a program that sleeps hears of what has completed, and of few chunks besides.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "event.h"
#include "member.h"
#include "prog.h"
#include "shim.h"
#include "tests.h"

static struct prog *sleeper;

static int ends[2];

/* The program has a channel with the file @ends[0]. */
static void open_channel(struct prog *p, struct ibv_comp_channel *channel)
{
	assert_int_equal(pipe(ends), 0);
	*channel = (struct ibv_comp_channel) { .context = fake_ctx, .fd = ends[0] };
	fake_verbs.from = p->cq;
	sleeper = p;
}

static void close_channel(void)
{
	fake_verbs.at_sleep = NULL;
	close(ends[0]);
	close(ends[1]);
}

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
	sleeper->cq->events++;
}

static void chunks_complete(void)
{
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(sleeper);
	fake_run(sleeper->qp, 1);
}

static void expect_event(struct ibv_comp_channel *channel)
{
	struct fake_cq *cq = sleeper->cq;
	struct ibv_cq *got;
	void *context;

	assert_int_equal(shim_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, cq);
	shim_real.ack_cq_events(got, 1);
	assert_int_equal(cq->acked, cq->taken);
}

static void *polls_receive(void *unused)
{
	struct ibv_wc wc;

	assert_int_equal(prog_poll_one(sleeper, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	return unused;
}

/* A completion, an event for it, and another thread is the first to poll. */
static void is_polled_elsewhere(void)
{
	struct fake_cq *cq = sleeper->cq;
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

	open_channel(p, &channel);
	fake_verbs.at_sleep = is_polled_elsewhere;
	prog_arm(p);
	prog_expect_none(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	expect_event(&channel);
	close_channel();
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

	open_channel(p, &channel);
	fake_verbs.at_sleep = chunks_complete;
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	/* Woken up by poll() */
	assert_int_equal(write(ends[1], many, 1), 1);
	chunks_complete();
	expect_event(&channel);
	prog_expect_none(p);
	prog_arm(p);
	/* As one that does not sleep */
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	expect_event(&channel);
	prog_expect_none(p);
	prog_arm(p);
	assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
	/* Asleep */
	expect_event(&channel);
	assert_int_equal(p->qp->run, 16);
	assert_true(p->cq->taken > 4);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect_none(p);
	/* It finds that of the first chunk, and others come soon. */
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(write(ends[1], many, sizeof(many)), sizeof(many));
	chunks_complete();
	expect_event(&channel);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	while (poll(&(struct pollfd) { .fd = ends[0], .events = POLLIN }, 1, 0) > 0)
		assert_int_equal(read(ends[0], &c, 1), 1);
	/* Woken up by poll() again */
	fake_verbs.at_sleep = NULL;
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, 4 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(write(ends[1], many, 1), 1);
	chunks_complete();
	expect_event(&channel);
	prog_expect_none(p);
	prog_pump(p, 3, 1);
	close_channel();
}

/* A message of which the first chunk has completed; as many as @out are out at a time. */
static void post_large(struct prog *p, struct fake_qp *qp, uint32_t out)
{
	fake_kernel.k.window = out * fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_run(qp, 1);
}

static struct fake_qp *destroyed;

static void is_destroyed(void)
{
	fake_verbs.at_sleep = NULL;
	fake_verbs.runs_on = destroyed;
	assert_int_equal(shim_destroy_qp(&destroyed->ex.qp_base), 0);
	fake_verbs.runs_on = NULL;
}

/* Who sleeps on for the end of a message is woken up if that goes with its queue pair. */
static void asleep_and_destroyed(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
	destroyed = prog_make_qp(p, p->cq, 0);
	prog_arm(p);
	post_large(p, destroyed, 2);
	assert_int_equal(write(ends[1], "..", 2), 2);
	fake_verbs.at_sleep = is_destroyed;
	expect_event(&channel);
	assert_true(p->cq->taken > 1);
	prog_expect_none(p);
	close_channel();
}

static void receives(void)
{
	struct fake_cq *cq = sleeper->cq;

	fake_verbs.at_sleep = NULL;
	fake_receive(cq);
	cq->events += cq->armed;
	cq->armed = false;
}

/* The program was told of an event, and has armed the CQ again and found nothing. */
static void know(struct prog *p, struct ibv_comp_channel *channel)
{
	struct ibv_wc wc;

	prog_arm(p);
	prog_expect_none(p);
	receives();
	expect_event(channel);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_arm(p);
	prog_expect_none(p);
	assert_int_equal(p->cq->events, p->cq->taken);
}

/* Who has armed, has polled and sleeps is woken up, too. */
static void polled_and_destroyed(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
	destroyed = prog_make_qp(p, p->cq, 0);
	prog_arm(p);
	prog_expect_none(p);
	post_large(p, destroyed, 2);
	fake_verbs.at_sleep = is_destroyed;
	expect_event(&channel);
	close_channel();
}

/* So is one while another queue pair holds something, in another CQ. */
static void destroyed_beside_another(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct fake_cq *other = prog_make_cq(2 * PROG_DEPTH);
	struct fake_qp *holds = prog_make_qp(p, other, 0);

	open_channel(p, &channel);
	destroyed = prog_make_qp(p, p->cq, 0);
	know(p, &channel);
	post_large(p, destroyed, 2);
	assert_int_equal(prog_post(holds, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK, 0), 0);
	fake_verbs.at_sleep = is_destroyed;
	expect_event(&channel);
	close_channel();
}

static struct fake_qp *idle;

static void both_are_destroyed(void)
{
	assert_int_equal(shim_destroy_qp(&idle->ex.qp_base), 0);
	is_destroyed();
}

/* So is one when an idle queue pair goes before. */
static void destroyed_after_another(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
	idle = prog_make_qp(p, p->cq, 0);
	destroyed = prog_make_qp(p, p->cq, 0);
	prog_arm(p);
	post_large(p, destroyed, 2);
	fake_verbs.at_sleep = both_are_destroyed;
	expect_event(&channel);
	close_channel();
}

static void fails_and_is_destroyed(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	fake_verbs.at_sleep = NULL;
	assert_int_equal(shim_modify_qp(&destroyed->ex.qp_base, &attr, IBV_QP_STATE), 0);
	fake_run(destroyed, UINT32_MAX);
	prog_help(sleeper);
	assert_int_equal(shim_destroy_qp(&destroyed->ex.qp_base), 0);
}

/* The event of a completion that went with its queue pair is told, while another one holds. */
static void event_of_gone(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
	destroyed = prog_make_qp(p, p->cq, 0);
	know(p, &channel);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	assert_int_equal(prog_post(destroyed, IBV_WR_RDMA_WRITE, 1, 100,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(destroyed->posted, 1);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK, 0), 0);
	prog_expect_none(p);
	fake_verbs.at_sleep = fails_and_is_destroyed;
	expect_event(&channel);
	close_channel();
}

static void rest_completes(void)
{
	int i;

	fake_verbs.at_sleep = receives;
	fake_grant(RISO_USER_TX, 16 * fake_cost(FAKE_CHUNK));
	for (i = 0; i < 2; i++) {
		prog_drive(sleeper);
		fake_run(sleeper->qp, UINT32_MAX);
	}
}

/* Who sleeps for a receive is not told of the last chunk of a message without a completion. */
static void event_of_unsignaled(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	open_channel(p, &channel);
	know(p, &channel);
	fake_kernel.k.window = 4 * fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 3 * FAKE_CHUNK, 0), 0);
	fake_verbs.at_sleep = rest_completes;
	expect_event(&channel);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	close_channel();
}

/* While nothing is paced, who arms and does not poll is told at once of what is there. */
static void armed_without_poll(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
	p->cq->cq.channel = &channel;
	prog_arm(p);
	prog_expect_none(p);
	receives();
	expect_event(&channel);
	prog_arm(p);
	expect_event(&channel);
	close_channel();
}

/* A program that sleeps measures its path as one that polls does. */
static void sleeper_measures_path(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct ibv_comp_channel channel;
	struct fake_qp *holds = prog_make_qp(p, p->cq, 0);

	open_channel(p, &channel);
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
	expect_event(&channel);
	prog_arm(p);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	assert_true(f->path.rtt_min != RISO_NEVER);
	assert_int_equal(shim_destroy_qp(&holds->ex.qp_base), 0);
	close_channel();
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

	open_channel(p, &channel);
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
		expect_event(&channel);
	}
	close_channel();
}

/* Who sleeps is not told of the first chunk, as its message has a completion still to come. */
static void event_of_first_chunk(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
	fake_verbs.at_sleep = chunks_complete;
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	expect_event(&channel);
	assert_int_equal(p->qp->run, 16);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	close_channel();
}

static void last_completes(void)
{
	fake_run(sleeper->qp, 1);
}

/* Who finds the event of a chunk after all of its message is out is not told of it either. */
static void event_of_chunk_late(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
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
	assert_int_equal(write(ends[1], "..", 2), 2);
	fake_verbs.at_sleep = last_completes;
	expect_event(&channel);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	close_channel();
}

/* What was there when the program was told of an event has no other one, whatever that was for. */
static void no_event_for_older(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	open_channel(p, &channel);
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	p->cq->cq.channel = &channel;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	prog_arm(p);
	receive_before_event(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	fake_receive(p->cq);
	fake_verbs.at_sleep = event_comes;
	expect_event(&channel);
	prog_arm(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_verbs.at_sleep = chunks_complete;
	fake_run(p->qp, 1);
	expect_event(&channel);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	close_channel();
}

/* What it polled while nothing was paced may have an event on its way, and nothing else comes. */
static void event_from_before(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	open_channel(p, &channel);
	prog_choose(p, RISO_CLASS_LATENCY);
	prog_expect_none(p);
	assert_false(c->active);
	prog_arm(p);
	receive_before_event(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK, 0), 0);
	fake_verbs.at_sleep = event_comes;
	expect_event(&channel);
	close_channel();
}

/* What is to come raises no event, as the program has armed the CQ for solicited ones. */
static void solicited_event_from_before(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	open_channel(p, &channel);
	prog_choose(p, RISO_CLASS_LATENCY);
	prog_expect_none(p);
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1), 0);
	receive_before_event(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	post_large(p, p->qp, 1);
	fake_verbs.at_sleep = event_comes;
	expect_event(&channel);
	close_channel();
}

/* Who waits for any event still does after it has armed for solicited ones, too. */
static void armed_for_both(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
	know(p, &channel);
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1), 0);
	prog_expect_none(p);
	post_large(p);
	fake_verbs.at_sleep = chunks_complete;
	expect_event(&channel);
	assert_int_equal(p->cq->solicited, 0);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect_none(p);
	/* After its event that is over. */
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1), 0);
	assert_int_equal(p->cq->solicited, 1);
	close_channel();
}

/* It arms twice, and in between the helper takes what the first event is for. */
static void event_of_first_arm(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;

	open_channel(p, &channel);
	p->cq->cq.channel = &channel;
	post_large(p, p->qp, 1);
	prog_arm(p);
	receive_before_event(p);
	p->cq->events++;
	expect_event(&channel);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_arm(p);
	receive_before_event(p);
	prog_help(p);
	prog_arm(p);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	fake_verbs.at_sleep = event_comes;
	expect_event(&channel);
	close_channel();
}

static void two_events(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;
	struct ibv_wc wc;
	uint32_t i;

	open_channel(p, &channel);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	for (i = 0; i < 2; i++) {
		prog_arm(p);
		receive_before_event(p);
		assert_int_equal(prog_poll_one(p, &wc), 1);
	}
	for (i = 0; i < 2; i++) {
		fake_verbs.at_sleep = event_comes;
		expect_event(&channel);
	}
	close_channel();
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

	open_channel(p, &channel);
	prog_arm(p);
	post_large(p, p->qp, 1);
	assert_int_equal(p->cq->events, 1);
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_int_equal(pthread_create(&thread, NULL, gets_event, &channel), 0);
	while (!__atomic_load_n(&p->cq->taken, __ATOMIC_RELAXED))
		sched_yield();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	assert_int_equal(p->cq->acked, p->cq->taken);
	close_channel();
}

/* It is held once for each message. */
static void held_once(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel;

	open_channel(p, &channel);
	prog_arm(p);
	post_large(p, p->qp, 1);
	assert_int_equal(write(ends[1], "", 1), 1);
	expect_event(&channel);
	prog_expect_none(p);
	/* One that is held would look for the event that there seems to be. */
	prog_arm(p);
	fake_run(p->qp, 1);
	assert_int_equal(write(ends[1], "..", 2), 2);
	expect_event(&channel);
	prog_expect_none(p);
	close_channel();
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
	PROG_TEST(asleep_and_destroyed),
	PROG_TEST(polled_and_destroyed),
	PROG_TEST(destroyed_beside_another),
	PROG_TEST(destroyed_after_another),
	PROG_TEST(event_of_gone),
	PROG_TEST(event_of_unsignaled),
	PROG_TEST(armed_without_poll),
	PROG_TEST(sleeper_measures_path),
};

const struct prog_tests prog_event_tests = { tests, ARRAY_SIZE(tests) };
