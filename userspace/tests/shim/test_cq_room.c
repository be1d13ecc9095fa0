// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Room in CQs: many queue pairs share the entries that a CQ has for chunks. The CQ does
 * not overflow, and each queue pair gets on.
 */
#include <errno.h>

#include "prog.h"
#include "tests.h"

/*
 * Many queue pairs share what a CQ that cannot be resized has to spare, however little
 * that is; each gets on, and the CQ never overflows.
 */
static void share_entries(struct prog *p, int spare)
{
	enum { QPS = 48, EACH = 80 };
	struct fake_qp *qp[QPS];
	uint32_t i, left = QPS, rounds;
	struct ibv_wc wc;
	int n;

	fake_verbs.no_resize = 1;
	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(QPS);
	prog_grow_cq(p->cq, QPS + spare);
	for (i = 0; i < QPS; i++) {
		qp[i] = prog_make_qp(p, p->cq, 0);
		assert_non_null(shim_map_find(&shim_qps, qp[i]));
		/* The last one is asked for, and chunks in between are seen by nobody. */
		assert_int_equal(prog_post(qp[i], IBV_WR_RDMA_WRITE, i, EACH * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
	}
	p->qp = qp[0];
	for (rounds = 0; left && rounds < 100000; rounds++) {
		fake_grant(RISO_USER_TX, QPS * SHIM_SLOTS * fake_cost(FAKE_CHUNK));
		prog_drive(p);
		for (i = 0; i < QPS; i++)
			fake_run(qp[i], 1 + rounds % SHIM_SLOTS);
		/* Nobody polls for a while. */
		if (rounds % 8)
			continue;
		while ((n = prog_poll_one(p, &wc))) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			left--;
		}
	}
	assert_int_equal(left, 0);
	assert_true(p->cq->most <= (uint32_t)(QPS + spare));
	assert_false(p->cq->overflow);
	for (i = 0; i < QPS; i++) {
		assert_int_equal(qp[i]->posted, EACH);
		shim_destroy_qp(&qp[i]->ex.qp_base);
	}
	shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
	shim_close_device(fake_ctx);
	while (fake_kernel.helpers)
		fake_kernel.helper(fake_kernel.helps[--fake_kernel.helpers]);
	p->cq = NULL;
	p->qp = NULL;
	fake_ctx = NULL;
	fake_kernel.now += 20 * MSEC;
}

static void shared_entries(void **state)
{
	share_entries(*state, 128);
	share_entries(*state, 8);
}

/* Those that have posted much in a large CQ get on in a small one. */
static void chunks_in_smaller(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	struct ibv_wc wc;
	uint32_t i, num = 0;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(other, IBV_WR_RDMA_WRITE, 2, 64 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 20 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 10);
	assert_int_equal(other->posted, 10);
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq),
					fake_verbs.max_cqe), 0);
	for (i = 0; i < 1000 && num < 2; i++) {
		fake_grant(RISO_USER_TX, 64 * fake_cost(FAKE_CHUNK));
		prog_drive(p);
		fake_run(p->qp, UINT32_MAX);
		fake_run(other, UINT32_MAX);
		while (prog_poll_one(p, &wc)) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			num++;
		}
	}
	assert_int_equal(num, 2);
	shim_destroy_qp(&other->ex.qp_base);
}

/*
 * A program that gives its CQ entries for what it wants to hear of, and no more, has room
 * for all that succeeds.
 */
static void few_entries(void **state)
{
	enum { SILENT = 8, HEARD = 12, SPARE = 8 };
	struct prog *p = *state;
	struct fake_qp *qp[SILENT + HEARD];
	struct ibv_wc wc;
	uint32_t i, rounds, heard = 0;

	fake_verbs.no_resize = 1;
	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(HEARD);
	p->cq->cq.cqe = HEARD + SPARE;
	for (i = 0; i < ARRAY_SIZE(qp); i++)
		qp[i] = prog_make_qp(p, p->cq, 0);
	p->qp = qp[0];
	prog_reap_nothing(p);
	for (i = 0; i < SILENT; i++)
		assert_int_equal(prog_post(qp[i], IBV_WR_SEND, i, 64 * KB, 0), 0);
	for (rounds = 0; rounds < 100 && heard < HEARD; rounds++) {
		fake_grant(RISO_USER_TX, 2 * MB);
		prog_drive(p);
		for (i = 0; i < ARRAY_SIZE(qp); i++)
			fake_run(qp[i], UINT32_MAX);
		for (i = SILENT; i < ARRAY_SIZE(qp) && !rounds; i++)
			assert_int_equal(prog_post(qp[i], IBV_WR_RDMA_WRITE, i,
						   2 * FAKE_CHUNK, IBV_SEND_SIGNALED), 0);
		/* Nobody polls for a while. */
		while (rounds % 8 == 7 && prog_poll_one(p, &wc))
			heard++;
	}
	assert_int_equal(heard, HEARD);
	assert_false(p->cq->overflow);
	p->qp = NULL;
	for (i = 0; i < ARRAY_SIZE(qp); i++) {
		assert_int_equal(qp[i]->posted, i < SILENT ? 1 : 2);
		shim_destroy_qp(&qp[i]->ex.qp_base);
	}
}

/* Those that have ended with messages that nobody hears of leave room to others. */
static void idle_leave_room(void **state)
{
	enum { IDLE = 20, EACH = 2 };
	struct prog *p = *state;
	struct fake_qp *idle[IDLE];
	uint32_t i, rounds;

	fake_verbs.no_resize = 1;
	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(2 * IDLE);
	p->cq->cq.cqe = 2 * IDLE + SHIM_SLOTS;
	p->qp = prog_make_qp(p, p->cq, 0);
	for (i = 0; i < IDLE; i++) {
		idle[i] = prog_make_qp(p, p->cq, 0);
		assert_int_equal(prog_post(idle[i], IBV_WR_RDMA_WRITE, i,
					   EACH * FAKE_CHUNK, 0), 0);
	}
	for (rounds = 0; rounds < 100; rounds++) {
		fake_grant(RISO_USER_TX, 100 * fake_cost(FAKE_CHUNK));
		prog_drive(p);
		for (i = 0; i < IDLE; i++)
			fake_run(idle[i], UINT32_MAX);
		prog_expect_none(p);
	}
	for (i = 0; i < IDLE; i++)
		assert_int_equal(idle[i]->posted, EACH);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 99, MB,
				   IBV_SEND_SIGNALED), 0);
	prog_drive(p);
	assert_true(p->qp->posted >= SHIM_SLOTS / 2);
	for (i = 0; i < IDLE; i++)
		shim_destroy_qp(&idle[i]->ex.qp_base);
}

/*
 * Also where a CQ is crowded, few chunks have a completion of their own, and others are with
 * the device when these are known to be complete.
 */
static void few_hidden_crowded(void **state)
{
	enum { QPS = 16, EACH = 256 };
	struct prog *p = *state;
	struct fake_qp *qp[QPS];
	uint32_t i, cqes, rounds, left = QPS;
	struct ibv_wc wc;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(QPS);
	for (i = 0; i < QPS; i++)
		qp[i] = prog_make_qp(p, p->cq, 0);
	for (i = 0; i < QPS; i++)
		assert_int_equal(prog_post(qp[i], IBV_WR_RDMA_WRITE, i, EACH * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
	p->qp = qp[0];
	for (rounds = 0; rounds < 10000 && left; rounds++) {
		fake_grant(RISO_USER_TX, QPS * SHIM_SLOTS * fake_cost(FAKE_CHUNK));
		prog_drive(p);
		for (i = 0; i < QPS; i++) {
			assert_true(qp[i]->posted == EACH ||
				    qp[i]->posted - qp[i]->run > SHIM_SLOTS / 8);
			fake_run(qp[i], 1);
		}
		while (prog_poll_one(p, &wc))
			left--;
	}
	assert_int_equal(left, 0);
	cqes = p->cq->tail;
	assert_true(cqes <= EACH * QPS / 8);
	for (i = 0; i < QPS; i++)
		shim_destroy_qp(&qp[i]->ex.qp_base);
	p->qp = NULL;
}

/*
 * One that has much out of which nothing was asked a completion for gets on beside others
 * that hang, and so does one that begins then.
 */
static void others_hang(void **state)
{
	struct prog *p = *state;
	struct fake_qp *late, *hangs[12];
	uint64_t i;

	fake_verbs.no_resize = 1;
	shim_destroy_qp(&p->qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	p->cq->cq.cqe = 3 * PROG_DEPTH;
	for (i = 0; i < ARRAY_SIZE(hangs); i++)
		hangs[i] = prog_make_qp(p, p->cq, 0);
	late = prog_make_qp(p, p->cq, 0);
	p->qp = prog_make_qp(p, p->cq, 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 4 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 4);
	for (i = 0; i < ARRAY_SIZE(hangs); i++)
		assert_int_equal(prog_post(hangs[i], IBV_WR_RDMA_WRITE, 2,
					   64 * FAKE_CHUNK, IBV_SEND_SIGNALED), 0);
	fake_kernel.now += 20 * MSEC;
	fake_grant(RISO_USER_TX, 400 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	prog_pump(p, 1, 1);
	shim_destroy_qp(&p->qp->ex.qp_base);
	p->qp = late;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, 64 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	prog_pump(p, 3, 1);
	for (i = 0; i < ARRAY_SIZE(hangs); i++) {
		assert_true(hangs[i]->posted && hangs[i]->posted < 64);
		hangs[i]->err = true;
		fake_run(hangs[i], UINT32_MAX);
	}
	assert_false(p->cq->overflow);
	for (i = 0; i < ARRAY_SIZE(hangs); i++)
		shim_destroy_qp(&hangs[i]->ex.qp_base);
}

/* Another thread resizes the CQ while the provider takes a part of a batch only. */
static struct shim_cq *shrunk;

static void shrink_at_second(void)
{
	if (++fake_verbs.calls == 2)
		__atomic_store_n(&shrunk->spare, SHIM_SPARE, __ATOMIC_RELAXED);
}

/* What it has taken counts as posted, all of it, and is not posted for a second time. */
static void entries_change(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	uint32_t spare = f->cq->spare;

	shrunk = f->cq;
	fake_grant(RISO_USER_TX, MB);
	p->qp->refuse = ENOMEM;
	p->qp->refuse_from = 14;
	fake_verbs.calls = 0;
	fake_verbs.at_call = shrink_at_second;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 30 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_verbs.at_call = NULL;
	assert_true(fake_verbs.calls >= 2);
	assert_int_equal(p->qp->posted, 14);
	assert_int_equal(f->sq.slot, 14);
	p->qp->refuse = 0;
	f->cq->spare = spare;
	prog_pump(p, 1, 1);
	assert_int_equal(p->qp->posted, 30);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST_EMPTY(shared_entries),
	PROG_TEST(chunks_in_smaller),
	PROG_TEST_EMPTY(few_entries),
	PROG_TEST_EMPTY(idle_leave_room),
	PROG_TEST_EMPTY(few_hidden_crowded),
	PROG_TEST(others_hang),
	PROG_TEST(entries_change),
};

const struct prog_tests prog_cq_room_tests = { tests, ARRAY_SIZE(tests) };
