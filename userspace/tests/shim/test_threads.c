// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that post, poll and change the class at once: real threads, and threads that
 * take turns in random order.
 */
#include <string.h>
#include <unistd.h>

#include "coop.h"
#include "prog.h"
#include "tests.h"

/* Threads with a queue pair each, one CQ, the helper, and a kernel that grants. */
enum {
	THREADS = 4,
	MESSAGES = 300,
};

struct worker {
	struct fake_qp *qp;
	uint32_t posted;
	uint32_t done;
};

static uint32_t all_done;

static void *work(void *arg)
{
	struct worker *w = arg;
	struct ibv_wc wc[3];
	int n;

	while (__atomic_load_n(&all_done, __ATOMIC_RELAXED) < THREADS * MESSAGES) {
		if (w->posted < MESSAGES &&
		    !prog_post(w->qp, w->posted % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
			       w->posted, (w->posted % 9) * FAKE_CHUNK / 2,
			       IBV_SEND_SIGNALED))
			w->posted++;
		fake_run(w->qp, 3);
		n = ibv_poll_cq(w->qp->ex.qp_base.send_cq, 3, wc);
		if (n > 0)
			__atomic_add_fetch(&all_done, n, __ATOMIC_RELAXED);
		if (w->posted % 64 == 63)
			usleep(100);
	}
	return NULL;
}

static void threads(void **state)
{
	struct prog *p = *state;
	struct worker w[THREADS] = {};
	pthread_t thread[THREADS];
	uint32_t i, done;

	fake_kernel.run_helper = true;
	for (i = 0; i < THREADS; i++) {
		w[i].qp = prog_make_qp(p, p->cq, 0);
		pthread_create(&thread[i], NULL, work, &w[i]);
	}
	while ((done = __atomic_load_n(&all_done, __ATOMIC_RELAXED)) <
	       THREADS * MESSAGES) {
		__atomic_store_n(&fake_kernel.k.mode, done % 5 == 4 ? RISO_USER_OPEN :
				 RISO_USER_PACED, __ATOMIC_RELAXED);
		for (i = 0; i < RISO_USER_DIRS; i++)
			if (__atomic_load_n(&fake_kernel.u.path[i].taken, __ATOMIC_ACQUIRE) ==
			    fake_kernel.k.path[i].seq)
				fake_grant(i, 4 * fake_cost(FAKE_CHUNK));
		__atomic_add_fetch(&fake_kernel.now, 1000, __ATOMIC_RELAXED);
		usleep(10);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].posted, MESSAGES);
		shim_destroy_qp(&w[i].qp->ex.qp_base);
	}
}

/*
 * One thread posts, one polls, and the device is closed and opened many times meanwhile: each
 * completion that was asked for comes once, and in order, whichever way its work request went.
 */
enum { SWITCHES = 10000, ASKED_EACH = 3 };

static struct {
	struct prog *p;
	bool stop;
	bool ended;		/* nothing more is posted */
	uint64_t posted;	/* work requests so far */
	uint64_t next;		/* wr_id of the completion that comes next */
	bool wrong;
} switching;

static void *switch_post(void *arg)
{
	uint64_t i = 0;

	(void)arg;
	while (!__atomic_load_n(&switching.stop, __ATOMIC_RELAXED) || i % ASKED_EACH) {
		if (!prog_post(switching.p->qp, i % 4 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, i,
			       i % 7 * FAKE_CHUNK / 2,
			       i % ASKED_EACH == ASKED_EACH - 1 ? IBV_SEND_SIGNALED : 0))
			__atomic_store_n(&switching.posted, ++i, __ATOMIC_RELEASE);
		fake_run(switching.p->qp, i % 3);
	}
	return NULL;
}

static void *switch_poll(void *arg)
{
	struct ibv_wc wc[4];
	int n, i;

	(void)arg;
	while (!__atomic_load_n(&switching.ended, __ATOMIC_ACQUIRE) ||
	       switching.next < __atomic_load_n(&switching.posted, __ATOMIC_ACQUIRE)) {
		fake_run(switching.p->qp, 2);
		n = ibv_poll_cq(ibv_cq_ex_to_cq(&switching.p->cq->cq), 4, wc);
		for (i = 0; i < n; i++) {
			if (wc[i].wr_id != switching.next || wc[i].status != IBV_WC_SUCCESS) {
				switching.wrong = true;
				return NULL;
			}
			switching.next += ASKED_EACH;
		}
	}
	return NULL;
}

static void grant_when_taken(void)
{
	if (__atomic_load_n(&fake_kernel.u.path[RISO_USER_TX].taken, __ATOMIC_ACQUIRE) ==
	    fake_kernel.k.path[RISO_USER_TX].seq)
		fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	__atomic_add_fetch(&fake_kernel.now, 1000, __ATOMIC_RELAXED);
}

static void switches(void **state)
{
	pthread_t poster, poller;
	uint64_t straight;
	uint32_t i;

	memset(&switching, 0, sizeof(switching));
	switching.p = *state;
	switching.next = ASKED_EACH - 1;
	fake_kernel.run_helper = true;
	pthread_create(&poster, NULL, switch_post, NULL);
	pthread_create(&poller, NULL, switch_poll, NULL);
	for (i = 0; i < SWITCHES || i % 2; i++) {
		uint64_t was = __atomic_load_n(&switching.posted, __ATOMIC_RELAXED);

		__atomic_store_n(&fake_kernel.k.mode, i % 2 ? RISO_USER_PACED : RISO_USER_OPEN,
				 __ATOMIC_RELEASE);
		/* Until something was posted in the new mode */
		while (__atomic_load_n(&switching.posted, __ATOMIC_RELAXED) < was + i % 8 &&
		       !__atomic_load_n(&switching.wrong, __ATOMIC_RELAXED))
			grant_when_taken();
	}
	__atomic_store_n(&fake_kernel.k.mode, RISO_USER_OPEN, __ATOMIC_RELEASE);
	__atomic_store_n(&switching.stop, true, __ATOMIC_RELAXED);
	pthread_join(poster, NULL);
	__atomic_store_n(&switching.ended, true, __ATOMIC_RELEASE);
	pthread_join(poller, NULL);
	assert_false(switching.wrong);
	assert_int_equal(switching.next, switching.posted + ASKED_EACH - 1);
	straight = fake_kernel.u.passed[0].bytes[RISO_USER_TX];
	assert_true(straight && fake_kernel.u.path[RISO_USER_TX].posted);
}

/*
 * Two threads poll one CQ, one posts, and one changes the class, from before there is a
 * queue pair on: each wr_id comes once, and in order if one of them polls alone. The
 * send queue is so short that slots are soon used again.
 */
enum {
	RACES = 400,
	RACE_MESSAGES = 60,
	RACE_DEPTH = 2,
	RACE_POLLS = 20000,
};

static struct {
	struct prog p;
	uint32_t pollers;
	uint32_t num;		/* completions so far */
	uint8_t times[RACE_MESSAGES];
	bool wrong;
} race;

static void race_poll(void)
{
	struct ibv_wc wc[2];
	uint32_t polls;
	int n, i;

	for (polls = 0; race.num < RACE_MESSAGES && polls < RACE_POLLS; polls++) {
		n = ibv_poll_cq(ibv_cq_ex_to_cq(&race.p.cq->cq), 1 + polls % 2, wc);
		for (i = 0; i < n; i++) {
			if (wc[i].wr_id >= RACE_MESSAGES ||
			    race.times[wc[i].wr_id]++ ||
			    (race.pollers == 1 && wc[i].wr_id != race.num))
				race.wrong = true;
			race.num++;
		}
		coop_yield();
	}
}

static void race_post(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ibv_cq_ex_to_cq(&race.p.cq->cq),
		.recv_cq = ibv_cq_ex_to_cq(&race.p.cq->cq),
		.cap = { .max_send_wr = RACE_DEPTH, .max_send_sge = FAKE_SGES },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_pd pd = { .context = fake_ctx };
	uint32_t i, tries = 0;

	race.p.qp = (struct fake_qp *)shim_create_qp(&pd, &attr);
	for (i = 0; i < RACE_MESSAGES && tries < RACE_POLLS; tries++) {
		if (!prog_post(race.p.qp, i % 3 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i,
			       i % 5 * FAKE_CHUNK / 2, IBV_SEND_SIGNALED))
			i++;
		fake_run(race.p.qp, 1);
		coop_yield();
	}
}

static void race_change(void)
{
	struct fake_qp *qp;
	uint32_t i;

	for (i = 0; race.num < RACE_MESSAGES && i < RACE_POLLS; i++) {
		qp = race.p.qp;
		fake_kernel.now += 1000;
		fake_kernel.k.mode = i / 8 % 2 ? RISO_USER_PACED : RISO_USER_OPEN;
		fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK));
		if (qp && i % 16 == 0) {
			fake_kernel.class_id = i / 16 % 2 ? RISO_CLASS_LATENCY :
							    RISO_CLASS_BANDWIDTH;
			shim_set_class(&qp->ex.qp_base, fake_kernel.class_id);
		}
		if (qp)
			fake_run(qp, 2);
		coop_yield();
	}
}

static void race_thread(unsigned int thread)
{
	if (thread == 0)
		race_post();
	else if (thread == 1)
		race_change();
	else
		race_poll();
}

static void polls_and_classes(void **state)
{
	uint64_t n;

	(void)state;
	for (n = 1; n <= RACES; n++) {
		memset(&race, 0, sizeof(race));
		race.pollers = 1 + n % 2;
		fake_verbs.max_qp_wr = RACE_DEPTH;
		fake_kernel.class_id = n % 4 < 2 ? RISO_CLASS_LATENCY :
						   RISO_CLASS_BANDWIDTH;
		fake_ctx = shim_open_device(&fake_verbs.device);
		race.p.cq = prog_make_cq(2 * PROG_DEPTH);
		coop_run(n, race_thread, 2 + race.pollers);
		if (race.wrong || race.num != RACE_MESSAGES)
			fail_msg("seed %ju: %u completions, %s", (uintmax_t)n, race.num,
				 race.wrong ? "wrong" : "too few");
		shim_destroy_qp(&race.p.qp->ex.qp_base);
		shim_destroy_cq(ibv_cq_ex_to_cq(&race.p.cq->cq));
		shim_close_device(fake_ctx);
		while (fake_kernel.helpers)
			fake_kernel.helper(fake_kernel.helps[--fake_kernel.helpers]);
	}
	fake_ctx = NULL;
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(threads),
	PROG_TEST(switches),
	PROG_TEST_EMPTY(polls_and_classes),
};

const struct prog_tests prog_threads_tests = { tests, ARRAY_SIZE(tests) };
