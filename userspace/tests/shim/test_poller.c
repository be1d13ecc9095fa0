// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads poll a CQ without a lock where the shim governs nothing that may complete.
 */
#include <errno.h>
#include <unistd.h>

#include "comp.h"
#include "member.h"
#include "poller.h"
#include "prog.h"
#include "reap.h"
#include "soft.h"
#include "tests.h"

/* The lock that count_locked() looks at */
static pthread_mutex_t *watched;

static void count_locked(void)
{
	fake_verbs.calls += prog_is_locked(watched);
}

static void expect_unlocked_poll(struct prog *p, struct shim_cq *c, bool unlocked)
{
	assert_int_equal(c->active, !unlocked);
	watched = &c->session;
	fake_verbs.calls = 0;
	fake_verbs.at_call = count_locked;
	prog_expect_none(p);
	fake_verbs.at_call = NULL;
	assert_int_equal(fake_verbs.calls, !unlocked);
}

/* A CQ is polled without a lock unless something is governed there that may complete. */
static void unlocked_polls(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct fake_qp *other;

	expect_unlocked_poll(p, c, false);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	prog_choose(p, RISO_CLASS_LATENCY);
	assert_int_equal(p->qp->posted, 2);
	expect_unlocked_poll(p, c, false);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	assert_true(c->active);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	expect_unlocked_poll(p, c, true);
	/* One that is gone, and what it left behind */
	fake_kernel.class_id = RISO_CLASS_BANDWIDTH;
	other = prog_make_qp(p, p->cq, 0);
	expect_unlocked_poll(p, c, false);
	fake_kernel.k.mode = RISO_USER_OPEN;
	assert_int_equal(prog_post(other, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
	fake_run(other, 1);
	shim_destroy_qp(&other->ex.qp_base);
	assert_true(c->active);
	p->cq->head = p->cq->tail;
	expect_unlocked_poll(p, c, false);
	expect_unlocked_poll(p, c, true);
	/* One that is refused */
	fake_kernel.register_err = ENODEV;
	other = prog_make_qp(p, p->cq, 0);
	expect_unlocked_poll(p, c, true);
	shim_destroy_qp(&other->ex.qp_base);
	expect_unlocked_poll(p, c, true);
}

/* Who has the last completion in hand has the lock: nobody polls past it without. */
static void active_to_the_last(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct shim_soft e = {};

	fake_kernel.k.mode = RISO_USER_OPEN;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	prog_choose(p, RISO_CLASS_LATENCY);
	fake_run(p->qp, 1);
	assert_int_equal(fake_poll_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1, &e.wc), 1);
	assert_true(shim_comp_translate(&e));
	assert_true(c->active);
	shim_cq_update(c);
	assert_false(c->active);
}

/* Polled with the lock, though nothing is governed there. */
static void expect_locked_poll(struct prog *p)
{
	watched = &((struct shim_cq *)shim_map_find(&shim_cqs, p->cq))->session;
	fake_verbs.calls = 0;
	fake_verbs.at_call = count_locked;
	prog_expect_none(p);
	fake_verbs.at_call = NULL;
	assert_int_equal(fake_verbs.calls, 1);
}

static void *poll_locked(void *arg)
{
	expect_locked_poll(arg);
	return NULL;
}

/* Where membarrier() is refused, to a new thread or from some time on, for ever. */
static void barrier_refused(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	pthread_t thread;

	prog_choose(p, RISO_CLASS_LATENCY);
	expect_unlocked_poll(p, c, true);
	fake_kernel.no_barrier = true;
	assert_int_equal(pthread_create(&thread, NULL, poll_locked, p), 0);
	pthread_join(thread, NULL);
	expect_locked_poll(p);
	assert_false(c->active);
	shim_polls = SHIM_POLLS_FREE;
	expect_unlocked_poll(p, c, true);
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	fake_kernel.no_barrier = false;
	prog_choose(p, RISO_CLASS_LATENCY);
	assert_false(c->active);
	expect_locked_poll(p);
	shim_polls = SHIM_POLLS_FREE;
}

/* Does a poll that finds nothing take the lock of the member? Then it has something to do. */
static bool has_something(struct prog *p)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	uint64_t looked = c->looked_ns;

	__atomic_add_fetch(&fake_kernel.now, 1, __ATOMIC_RELAXED);
	prog_expect_none(p);
	return c->looked_ns != looked;
}

/* Two that find nothing do not wait for each other, and what is to be done is done. */
static void calm_polls(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct shim_member *m = c->ctx->m;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 4 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_true(has_something(p));
	assert_false(has_something(p));
	/* Once in each time of 100 us, in which the member counts who polls */
	__atomic_add_fetch(&fake_kernel.now, SHIM_POLL_NS, __ATOMIC_RELAXED);
	assert_true(has_something(p));
	assert_false(has_something(p));
	prog_arm(p);
	assert_true(has_something(p));
	assert_false(c->armed);
	assert_false(has_something(p));
	pthread_mutex_lock(&m->lock);
	c->unseen = 1;
	shim_cq_set_calm(c, 0);
	pthread_mutex_unlock(&m->lock);
	assert_true(has_something(p));
	assert_int_equal(c->unseen, 0);
	assert_false(has_something(p));
	/* News of the kernel, and what the provider has completed */
	fake_grant(RISO_USER_TX, 4 * fake_cost(FAKE_CHUNK));
	assert_true(has_something(p));
	assert_int_equal(p->qp->posted, 4);
	assert_false(has_something(p));
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	/* What was kept for the program while it did not look */
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 8, IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, fake_cost(8));
	assert_true(has_something(p));
	fake_run(p->qp, UINT32_MAX);
	pthread_mutex_lock(&m->lock);
	shim_comp_reap_most(c, UINT32_MAX);
	pthread_mutex_unlock(&m->lock);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	prog_expect_none(p);
}

/* The helper leaves a CQ to the program that polls it just now. */
static void reaps_beside_poll(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	fake_run(p->qp, UINT32_MAX);
	pthread_mutex_lock(&c->session);
	pthread_mutex_lock(&c->ctx->m->lock);
	shim_comp_reap_most(c, UINT32_MAX);
	assert_true(c->soft_head == c->soft_tail);
	pthread_mutex_unlock(&c->ctx->m->lock);
	pthread_mutex_unlock(&c->session);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

static struct fake_qp *gone;

static void destroy_inside(void)
{
	fake_verbs.at_call = NULL;
	assert_int_equal(shim_destroy_qp(&gone->ex.qp_base), 0);
}

/* A queue pair goes while a poll that has not the member's lock finds nothing of it yet. */
static void goes_beside_poll(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);

	gone = prog_make_qp(p, p->cq, 0);
	fake_grant(RISO_USER_TX, 2 * fake_cost(8));
	assert_int_equal(prog_post(gone, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(gone->posted, 1);
	prog_expect_none(p);
	fake_verbs.at_call = destroy_inside;
	prog_expect_none(p);
	assert_null(fake_verbs.at_call);
	assert_false(LIST_EMPTY(&c->zombies));
	prog_expect_none(p);
	assert_true(LIST_EMPTY(&c->zombies));
}

static struct prog *handled;

static void poll_inside(void)
{
	fake_kernel.at_barrier = NULL;
	prog_expect_none(handled);
}

static void *poll_first(void *arg)
{
	fake_kernel.at_barrier = poll_inside;
	prog_expect_none(arg);
	assert_null(fake_kernel.at_barrier);
	shim_pollers_wait();
	return NULL;
}

/* A signal handler polls while its thread is about to be known. */
static void polls_in_first(void **state)
{
	pthread_t thread;

	handled = *state;
	prog_choose(handled, RISO_CLASS_LATENCY);
	alarm(20);
	assert_int_equal(pthread_create(&thread, NULL, poll_first, handled), 0);
	pthread_join(thread, NULL);
	alarm(0);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(unlocked_polls),
	PROG_TEST(active_to_the_last),
	PROG_TEST(barrier_refused),
	PROG_TEST(polls_in_first),
	PROG_TEST(calm_polls),
	PROG_TEST(reaps_beside_poll),
	PROG_TEST(goes_beside_poll),
};

const struct prog_tests prog_poller_tests = { tests, ARRAY_SIZE(tests) };
