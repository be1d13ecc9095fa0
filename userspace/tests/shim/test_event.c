// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arming a CQ and events: a program that sleeps hears of what has completed, and of few
 * chunks besides.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "event.h"
#include "guard.h"
#include "helper.h"
#include "member.h"
#include "post.h"
#include "prog.h"
#include "reap.h"
#include "shim.h"
#include "tests.h"

/* A round of the helper */
static void help(struct prog *p)
{
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);

	shim_lock(&f->ctx->m->lock);
	f->cq->unseen++;
	shim_comp_reap(f->cq);
	shim_queue_drive(f->ctx->m);
	shim_unlock_and_drive(f->ctx->m);
}

/* What a program posts that has armed, and computes, goes on as grants come. */
static void armed_computes(void **state)
{
	struct prog *p = *state;
	uint32_t rounds, i, events;

	for (i = 0; i < 2; i++) {
		prog_arm(p);
		if (i)
			prog_expect_none(p);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 64 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		for (rounds = 0; rounds < 128 / SHIM_SLOTS; rounds++) {
			fake_grant(RISO_USER_TX, SHIM_SLOTS * fake_cost(FAKE_CHUNK));
			help(p);
			fake_run(p->qp, UINT32_MAX);
		}
		assert_int_equal(p->qp->posted, 128 * (i + 1));
		/* There is one more in the CQ, which raises an event. */
		events = p->cq->events;
		prog_arm(p);
		assert_int_equal(p->cq->events, events + 1);
		prog_expect(p, 1, IBV_WC_SUCCESS);
		prog_expect(p, 2, IBV_WC_SUCCESS);
		fake_kernel.now += 20 * MSEC;
	}
}

/*
 * Who arms, and sleeps without another poll, hears of what was taken when a piece of what
 * is held has completed, the next one.
 */
static void armed(void **state)
{
	struct prog *p = *state;
	uint32_t events;

	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	help(p);
	assert_int_equal(p->cq->head, p->cq->tail);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	events = p->cq->events;
	prog_arm(p);
	assert_int_equal(p->cq->events, events);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	help(p);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, events + 1);
	/* Only that one. */
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	help(p);
	assert_int_equal(p->qp->posted, 4);
	assert_false(p->qp->sq[3].wr.send_flags & IBV_SEND_SIGNALED);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	/* Nor any for who has polled since. */
	prog_arm(p);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	help(p);
	assert_int_equal(p->qp->posted, 5);
	assert_false(p->qp->sq[4].wr.send_flags & IBV_SEND_SIGNALED);
}

/* Nothing of ours raises a solicited event: one is taken for which there was one. */
static void armed_solicited(void **state)
{
	struct prog *p = *state;
	struct ibv_cq *cq = ibv_cq_ex_to_cq(&p->cq->cq);

	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	fake_receive(p->cq);
	fake_receive(p->cq);
	/* It has polled, and is not armed any more. */
	help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 3);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 1);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 2);
}

static void count_unlocked(void)
{
	struct shim_ctx *c = shim_map_find(&shim_ctxs, fake_ctx);

	if (pthread_mutex_trylock(&c->m->lock))
		return;
	pthread_mutex_unlock(&c->m->lock);
	fake_verbs.calls++;
}

/* It leaves class latency, and hears of what is taken. */
static void expect_left(struct prog *p)
{
	uint32_t events;

	prog_choose(p, RISO_CLASS_BANDWIDTH);
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_run(p->qp, UINT32_MAX);
	events = p->cq->events;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	prog_arm(p);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, events + 1);
	prog_pump(p, 1, 2);
}

/* Class latency arms without a lock. */
static void latency_arms(void **state)
{
	struct prog *p = *state;

	prog_choose(p, RISO_CLASS_LATENCY);
	fake_verbs.calls = 0;
	fake_verbs.at_call = count_unlocked;
	prog_arm(p);
	fake_verbs.at_call = NULL;
	assert_int_equal(fake_verbs.calls, 1);
	expect_left(p);
}

static void latency_arms_no_more(void **state)
{
	struct prog *p = *state;

	prog_arm(p);
	prog_choose(p, RISO_CLASS_LATENCY);
	prog_expect_none(p);
	expect_left(p);
}

/* What was taken before is told when the last that is held has completed. */
static void armed_late(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel = {};

	p->cq->cq.channel = &channel;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, 0), 0);
	fake_grant(RISO_USER_TX, MB);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 3, 8, 0), 0);
	assert_int_equal(p->qp->posted, 3);
	prog_arm(p);
	assert_int_equal(p->cq->events, 0);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect_none(p);
}

/* The program that waits for events */
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

static void count_call(void)
{
	fake_verbs.calls++;
}

/* One takes a completion of the first queue pair, and has armed; the second one holds. */
static uint32_t sleep_beside(struct prog *p, struct fake_qp *other)
{
	uint32_t events;

	prog_arm(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(other, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	help(p);
	assert_int_equal(p->cq->head, p->cq->tail);
	events = p->cq->events;
	prog_arm(p);
	assert_int_equal(p->cq->events, events);
	return events;
}

/* Who sleeps is woken up although the queue pair that would do so is destroyed. */
static void armed_and_destroyed(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	uint32_t events = sleep_beside(p, other);

	fake_verbs.runs_on = other;
	assert_int_equal(shim_destroy_qp(&other->ex.qp_base), 0);
	fake_verbs.runs_on = NULL;
	assert_int_equal(p->cq->events, events + 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
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
	fake_kernel.k.window = 2 * fake_cost(FAKE_CHUNK);
	prog_arm(p);
	assert_int_equal(prog_post(destroyed, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_run(destroyed, 1);
	assert_int_equal(write(ends[1], "..", 2), 2);
	fake_verbs.at_sleep = is_destroyed;
	expect_event(&channel);
	assert_true(p->cq->taken > 1);
	prog_expect_none(p);
	close_channel();
}

/* One that is put into error brings its events by itself: that does not wait. */
static void armed_and_in_error(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	sleep_beside(p, other);
	fake_verbs.calls = 0;
	fake_verbs.at_call = count_call;
	assert_int_equal(shim_modify_qp(&other->ex.qp_base, &attr, IBV_QP_STATE), 0);
	fake_verbs.at_call = NULL;
	assert_true(fake_verbs.calls < 10);
	fake_verbs.runs_on = other;
	shim_destroy_qp(&other->ex.qp_base);
	fake_verbs.runs_on = NULL;
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
	help(p);
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

/* A message of which the first chunk has completed */
static void post_large(struct prog *p)
{
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_run(p->qp, 1);
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
	post_large(p);
	fake_verbs.at_sleep = event_comes;
	expect_event(&channel);
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
	post_large(p);
	prog_arm(p);
	receive_before_event(p);
	p->cq->events++;
	expect_event(&channel);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_arm(p);
	receive_before_event(p);
	help(p);
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
	post_large(p);
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
	post_large(p);
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
	PROG_TEST(armed_computes),
	PROG_TEST(armed),
	PROG_TEST(armed_solicited),
	PROG_TEST(armed_late),
	PROG_TEST(latency_arms),
	PROG_TEST(latency_arms_no_more),
	PROG_TEST(event_of_another),
	PROG_TEST(event_after_poll),
	PROG_TEST(event_of_first_chunk),
	PROG_TEST(event_of_chunk_late),
	PROG_TEST(no_event_for_older),
	PROG_TEST(event_from_before),
	PROG_TEST(solicited_event_from_before),
	PROG_TEST(event_of_first_arm),
	PROG_TEST(two_events),
	PROG_TEST(cancelled_while_held),
	PROG_TEST(held_once),
	PROG_TEST(events_of_chunks),
	PROG_TEST(armed_and_destroyed),
	PROG_TEST(asleep_and_destroyed),
	PROG_TEST(armed_and_in_error),
};

const struct prog_tests prog_event_tests = { tests, ARRAY_SIZE(tests) };
