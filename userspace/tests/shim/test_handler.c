// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Signal handlers that call in the middle of another call. They are refused, and do not wait for
 * ever. The fake provider and the fake kernel call them where a signal could come.
 */
#include <errno.h>
#include <unistd.h>

#include "member.h"
#include "prog.h"
#include "tests.h"

/* Seconds after which a call that waits for ever ends the test program */
enum { FOR_EVER = 20 };

static struct prog *handled;
static struct fake_qp *handled_ex;

/* What the call in the handler has returned */
static int got;

static void arm_inside(void)
{
	fake_verbs.at_call = NULL;
	got = ibv_req_notify_cq(ibv_cq_ex_to_cq(&handled->cq->cq), 0);
}

/* It does not end the naps of the helper, as that takes the lock, too. */
static void arm_in_handler(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);

	handled = p;
	got = 0;
	f->ctx->m->naps = true;
	fake_grant(RISO_USER_TX, MB);
	fake_verbs.at_call = arm_inside;
	alarm(FOR_EVER);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(got, EDEADLK);
	assert_true(f->ctx->m->naps);
	alarm(0);
	prog_arm(p);
	assert_false(f->ctx->m->naps);
	prog_pump(p, 1, 1);
}

/* All that a handler may build: nothing of it gets anywhere. */
static void build_inside(void)
{
	struct ibv_qp_ex *ex = &handled_ex->ex;
	struct ibv_data_buf buf = { .addr = prog_local, .length = 8 };
	struct ibv_sge sge = { .addr = (uintptr_t)prog_local, .length = 8 };

	fake_verbs.at_call = NULL;
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 6, sge.addr, sge.length);
	ibv_wr_rdma_write(ex, 5, (uintptr_t)prog_remote);
	ibv_wr_set_sge_list(ex, 1, &sge);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 1, &buf);
	got = ibv_wr_complete(ex);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	fake_verbs.calls++;
}

static void expect_one(struct prog *p, uint64_t wr_id, uint32_t posted)
{
	struct ibv_qp_ex *ex = &handled_ex->ex;

	fake_verbs.calls = 0;
	got = 0;
	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 6, (uintptr_t)prog_local, 8);
	fake_verbs.at_call = build_inside;
	alarm(FOR_EVER);
	assert_int_equal(ibv_wr_complete(ex), 0);
	alarm(0);
	assert_int_equal(fake_verbs.calls, 1);
	assert_int_equal(got, EDEADLK);
	assert_int_equal(handled_ex->posted, posted);
	fake_run(handled_ex, UINT32_MAX);
	prog_expect(p, wr_id, IBV_WC_SUCCESS);
	prog_expect_none(p);
}

/* What it interrupts posts no more and no less for it, whether the queue pair is paced or not. */
static void build_in_handler(void **state)
{
	struct prog *p = *state;
	struct fake_qp *plain = p->qp;

	handled_ex = prog_make_qp_ex(p);
	p->qp = handled_ex;
	fake_grant(RISO_USER_TX, MB);
	expect_one(p, 1, 1);
	fake_kernel.class_id = RISO_CLASS_LATENCY;
	fake_kernel.k.classes++;
	expect_one(p, 3, 2);
	expect_one(p, 4, 3);
	shim_destroy_qp(&handled_ex->ex.qp_base);
	p->qp = plain;
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(arm_in_handler),
	PROG_TEST(build_in_handler),
};

const struct prog_tests prog_handler_tests = { tests, ARRAY_SIZE(tests) };
