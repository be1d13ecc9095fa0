// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs that go to ERR or RESET or are destroyed, and devices that are closed.
 */
#include <stdlib.h>
#include <string.h>

#include "member.h"
#include "prog.h"
#include "random.h"
#include "reap.h"
#include "tests.h"

static void flush(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	for (i = 0; i < PROG_DEPTH; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, i,
					   16 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, 100 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, SHIM_SLOTS);
	prog_modify(p, IBV_QPS_ERR);
	fake_run(p->qp, UINT32_MAX);
	for (i = 0; i < PROG_DEPTH; i++)
		prog_expect(p, i, IBV_WC_WR_FLUSH_ERR);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.u.path[0].want, 0);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
}

/* What the device has it sends before it tells that the send queue is drained. */
static void drained(void **state)
{
	struct prog *p = *state;
	uint32_t posted;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK, 0), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 4 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	posted = p->qp->posted;
	prog_modify(p, IBV_QPS_SQD);
	assert_true(p->qp->posted > posted);
	assert_int_equal(fake_verbs.given, 1);
	assert_int_equal(fake_kernel.u.path[0].want, 0);
	prog_modify(p, IBV_QPS_RTS);
	prog_pump(p, 2, 1);
	prog_expect_none(p);
}

static void reset(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB,
					   IBV_SEND_SIGNALED), 0);
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 64, 0), 0);
		fake_grant(RISO_USER_TX, 4 * fake_cost(FAKE_CHUNK));
		prog_expect_none(p);
		/* These completions stay in the CQ over the reset. */
		fake_run(p->qp, 2);
		prog_modify(p, IBV_QPS_RESET);
		prog_modify(p, IBV_QPS_RTS);
		assert_int_equal(fake_kernel.u.path[0].want, 0);
		assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, 20 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		prog_pump(p, 3, 1);
		prog_expect_none(p);
	}
}

/*
 * What post_send has taken the provider has before the queue pair goes, or is moved to
 * ERR, as rdma_disconnect() does it, or to RESET. In any state that it may be in, also
 * with a send queue that has no room for chunks and a CQ that nobody polls.
 */
enum { TEARDOWNS = 10000 };

static uint32_t post_some_sends(struct fake_qp *qp)
{
	uint32_t num = random_to(PROG_DEPTH) + 1;
	uint32_t sends = 0, i;
	int opcode;

	for (i = 0; i < num; i++) {
		opcode = random_to(3) ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
		if (prog_post(qp, opcode, i, random_to(8 * FAKE_CHUNK),
			      random_to(2) ? IBV_SEND_SIGNALED : 0))
			break;
		sends += opcode == IBV_WR_SEND;
		if (!random_to(4))
			fake_grant(RISO_USER_TX, random_to(8 * FAKE_CHUNK));
		if (!random_to(4))
			fake_run(qp, random_to(20));
	}
	return sends;
}

static void tear_down_once(struct prog *p)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_ERR, IBV_QPS_RESET };
	struct fake_cq *cq = prog_make_cq(2 * PROG_DEPTH);
	struct fake_qp *qp;
	uint32_t sends, how = random_to(3);
	struct ibv_qp_attr attr;

	fake_verbs.max_qp_wr = random_to(2) ? 1024 : PROG_DEPTH;
	qp = prog_make_qp(p, cq, random_to(2));
	if (random_to(2))
		ibv_req_notify_cq(ibv_cq_ex_to_cq(&cq->cq), random_to(2));
	sends = post_some_sends(qp);
	/* The device works on. */
	fake_verbs.runs_on = qp;
	if (how < ARRAY_SIZE(states)) {
		attr.qp_state = states[how];
		assert_int_equal(shim_modify_qp(&qp->ex.qp_base, &attr, IBV_QP_STATE), 0);
		assert_int_equal(fake_verbs.given, sends);
	}
	fake_verbs.runs_on = how < ARRAY_SIZE(states) ? NULL : qp;
	assert_int_equal(shim_destroy_qp(&qp->ex.qp_base), 0);
	assert_true(how < ARRAY_SIZE(states) || fake_verbs.given == sends);
	fake_verbs.runs_on = NULL;
	assert_false(cq->overflow);
	shim_destroy_cq(ibv_cq_ex_to_cq(&cq->cq));
	assert_int_equal(fake_kernel.u.path[0].want, 0);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
	fake_kernel.now += 20 * MSEC;
}

static void torn_down(void **state)
{
	uint32_t i;

	seed = 1;
	for (i = 0; i < TEARDOWNS; i++)
		tear_down_once(*state);
}

/* Queue pairs that are destroyed or reset take along what waits for the program. */
static void purged(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	struct fake_cqe *e;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		fake_kernel.now += 20 * MSEC;
		/* A receive, a completion, and one of the other, all reaped. */
		e = &p->cq->ring[p->cq->tail++ % FAKE_CQ];
		memset(e, 0, sizeof(*e));
		e->wc.qp_num = other->ex.qp_base.qp_num;
		e->wc.wr_id = 5;
		assert_int_equal(prog_post(other, IBV_WR_SEND, 6, 8,
					   IBV_SEND_SIGNALED), 0);
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 7, 8,
					   IBV_SEND_SIGNALED), 0);
		fake_grant(RISO_USER_TX, 2 * fake_cost(8));
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 8, 8,
					   IBV_SEND_SIGNALED), 0);
		fake_run(other, UINT32_MAX);
		fake_run(p->qp, UINT32_MAX);
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 9, 8,
					   IBV_SEND_SIGNALED), 0);
		assert_int_equal(p->cq->head, p->cq->tail);
		if (i) {
			shim_destroy_qp(&other->ex.qp_base);
		} else {
			struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

			shim_modify_qp(&other->ex.qp_base, &attr, IBV_QP_STATE);
		}
		prog_pump(p, 7, 3);
		prog_expect_none(p);
	}
}

/* One that was lost with its queue pair is not followed by those that the CQ still has. */
static void lost_to_the_end(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	uint64_t id;
	int i;

	for (i = 0; i < 2; i++) {
		fake_grant(RISO_USER_TX, 4 * fake_cost(8));
		for (id = 1; id <= 4; id++)
			assert_int_equal(prog_post(other, IBV_WR_SEND, id, 8,
						   IBV_SEND_SIGNALED), 0);
		fake_run(other, 3);
		/* The first one waits in the soft ring. */
		shim_comp_reap_most(c, 1);
		if (i)
			shim_destroy_qp(&other->ex.qp_base);
		else
			shim_modify_qp(&other->ex.qp_base, &attr, IBV_QP_STATE);
		prog_expect_none(p);
	}
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 5, 8, IBV_SEND_SIGNALED), 0);
	prog_pump(p, 5, 1);
}

/* Another flow gets the number before the soft ring is purged of the one that had it. */
static void number_reused(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct fake_qp *old = p->qp;

	fake_verbs.next_qpn = old->ex.qp_base.qp_num;
	p->qp = prog_make_qp(p, p->cq, 0);
	fake_grant(RISO_USER_TX, fake_cost(8));
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, 1);
	shim_comp_reap_most(c, 1);
	assert_int_equal(p->cq->head, p->cq->tail);
	shim_destroy_qp(&old->ex.qp_base);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

/* The completion of a destroyed queue pair is told as that of the program. */
static void destroyed(void **state)
{
	struct prog *p = *state;
	struct ibv_wc wc;

	fake_kernel.k.mode = RISO_USER_OPEN;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 77, 64, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, 1);
	shim_destroy_qp(&p->qp->ex.qp_base);
	p->qp = NULL;
	assert_int_equal(prog_poll_one(p, &wc), 1);
	assert_int_equal(wc.wr_id, 77);
	prog_expect_none(p);
}

/* The CQ is gone, and another thread gets its address at once. */
static int create_in_place(struct ibv_cq *cq)
{
	fake_verbs.reused = (struct fake_cq *)cq;
	assert_ptr_equal(prog_make_cq(PROG_DEPTH), cq);
	return 0;
}

static void address_passed_on(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c;

	shim_destroy_qp(&p->qp->ex.qp_base);
	fake_verbs.at_destroy = create_in_place;
	assert_int_equal(shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq)), 0);
	fake_verbs.at_destroy = NULL;
	c = shim_map_find(&shim_cqs, p->cq);
	assert_non_null(c);
	assert_int_equal(c->asked, PROG_DEPTH);
	p->qp = prog_make_qp(p, p->cq, 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	prog_pump(p, 1, 1);
}

/* The new one has what the shim does not know. */
static int create_alone_in_place(struct ibv_cq *cq)
{
	struct ibv_cq_init_attr_ex init = { .cqe = PROG_DEPTH, .comp_mask = 1 << 20 };

	fake_verbs.reused = (struct fake_cq *)cq;
	assert_ptr_equal(ibv_create_cq_ex(fake_ctx, &init), cq);
	assert_null(shim_map_find(&shim_cqs, cq));
	return 0;
}

static void address_passed_alone(void **state)
{
	struct prog *p = *state;

	shim_destroy_qp(&p->qp->ex.qp_base);
	fake_verbs.at_destroy = create_alone_in_place;
	assert_int_equal(shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq)), 0);
	fake_verbs.at_destroy = NULL;
	p->qp = prog_make_qp(p, p->cq, 0);
	assert_null(shim_map_find(&shim_qps, p->qp));
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
}

/* Who closes the device with queue pairs on it leaves nothing to the helper. */
static void closed_early(void **state)
{
	struct prog *p = *state;
	struct ibv_context *other;
	struct shim_qp *f;
	struct shim_member *m;

	f = shim_map_find(&shim_qps, p->qp);
	m = f->ctx->m;
	other = fake_ctx;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, 0), 0);
	assert_int_equal(m->num_busy, 1);
	m = shim_member_get(&fake_verbs.device);
	assert_int_equal(shim_close_device(other), 0);
	fake_ctx = NULL;
	assert_int_equal(m->num_busy, 0);
	assert_int_equal(m->held, 0);
	assert_null(shim_map_find(&shim_qps, p->qp));
	assert_null(shim_map_find(&shim_cqs, p->cq));
	shim_member_put(m);
	free(p->qp);
	free(p->cq);
	p->qp = NULL;
	p->cq = NULL;
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(flush),
	PROG_TEST(drained),
	PROG_TEST(reset),
	PROG_TEST(torn_down),
	PROG_TEST(purged),
	PROG_TEST(lost_to_the_end),
	PROG_TEST(number_reused),
	PROG_TEST(destroyed),
	PROG_TEST(address_passed_on),
	PROG_TEST(address_passed_alone),
	PROG_TEST(closed_early),
};

const struct prog_tests prog_teardown_tests = { tests, ARRAY_SIZE(tests) };
