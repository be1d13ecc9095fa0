// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Classes: what a program asks for, what the kernel gives, and when either changes.
 */
#include <errno.h>
#include <stdlib.h>

#include "prog.h"
#include "tests.h"

static void latency_passes(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);

	fake_kernel.class_id = RISO_CLASS_LATENCY;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	/* What is held goes out first, then all goes straight. */
	fake_kernel.k.classes++;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, MB,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(p->qp->sq[1].wr.wr_id, 2);
	fake_run(p->qp, 2);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	/* Nothing there has to be translated, nor is a lock needed. */
	assert_false(c->active);
	/* And back, by the program's own wish. */
	prog_choose(p, RISO_CLASS_BANDWIDTH);
	assert_true(c->active);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, MB,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	prog_pump(p, 3, 1);
	fake_kernel.register_err = EPERM;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_LATENCY), EPERM);
	assert_int_equal(shim_over_target(&p->qp->ex.qp_base), 0);
	fake_kernel.k.over_target = 1;
	assert_int_equal(shim_over_target(&p->qp->ex.qp_base), 1);
	fake_kernel.k.over_target = 0;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 4, MB,
				   IBV_SEND_SIGNALED), 0);
	prog_pump(p, 4, 1);
}

/* What no rule allows is asked for again when the rules have changed. */
static void wish_kept(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f;

	setenv("RDMA_ISOLATE_CLASS", "latency", 1);
	fake_kernel.register_err = EPERM;
	assert_int_equal(prog_setup_as(p, 0), 0);
	unsetenv("RDMA_ISOLATE_CLASS");
	f = shim_map_find(&shim_qps, p->qp);
	assert_int_equal(fake_kernel.wish, RISO_CLASS_BY_RULE);
	assert_false(shim_qp_is_direct(f));
	fake_kernel.register_err = 0;
	fake_kernel.class_id = RISO_CLASS_LATENCY;
	fake_kernel.k.classes++;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.wish, RISO_CLASS_LATENCY);
	assert_true(shim_qp_is_direct(f));
	/* A wish that was refused to its caller is none. */
	fake_kernel.register_err = EPERM;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_THROUGHPUT),
			 EPERM);
	assert_true(shim_qp_is_direct(f));
	fake_kernel.register_err = 0;
	fake_kernel.k.classes++;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.wish, RISO_CLASS_LATENCY);
	/* One that was granted takes the place of the former. */
	fake_kernel.class_id = RISO_CLASS_BANDWIDTH;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_THROUGHPUT), 0);
	fake_kernel.k.classes++;
	fake_kernel.k.mode = RISO_USER_OPEN;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.wish, RISO_CLASS_THROUGHPUT);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	prog_expect(p, 3, IBV_WC_SUCCESS);
}

/* The program may ask for classes that there are, and for nothing else. */
static void no_class(void **state)
{
	static const uint32_t wrong[] = { RISO_CLASS_BY_RULE, RISO_CLASS_BANDWIDTH + 1 };
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct ibv_pd pd = { .context = fake_ctx };
	struct ibv_qp_init_attr attr = p->attr;
	struct ibv_qp *other;
	uint32_t i;

	attr.qp_type = IBV_QPT_UD;
	other = shim_create_qp(&pd, &attr);
	prog_choose(p, RISO_CLASS_THROUGHPUT);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(shim_set_class(&p->qp->ex.qp_base, wrong[i]), EINVAL);
		assert_int_equal(shim_set_class(other, wrong[i]), EINVAL);
	}
	assert_int_equal(f->class_wish, RISO_CLASS_THROUGHPUT);
	assert_int_equal(shim_set_class(other, RISO_CLASS_LATENCY), EOPNOTSUPP);
	shim_destroy_qp(other);
}

/* Another class is heeded by who polls, without a post */
static void class_by_poll(void **state)
{
	struct prog *p = *state;
	int asked;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB,
				   IBV_SEND_SIGNALED), 0);
	asked = fake_kernel.registers;
	prog_expect_none(p);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.registers, asked);
	fake_kernel.class_id = RISO_CLASS_LATENCY;
	fake_kernel.k.classes++;
	prog_expect_none(p);
	assert_int_equal(fake_kernel.registers, asked + 1);
	assert_int_equal(p->qp->posted, 1);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.registers, asked + 1);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

/* Or by the helper */
static void class_by_helper(void **state)
{
	struct prog *p = *state;

	fake_kernel.run_helper = true;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	__atomic_store_n(&fake_kernel.class_id, RISO_CLASS_LATENCY, __ATOMIC_RELAXED);
	__atomic_add_fetch(&fake_kernel.k.classes, 1, __ATOMIC_RELEASE);
	prog_wait_posted(p, 1);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

/* Nobody waits for a device whose end is seen when a class is asked for. */
static void gone_for_class(void **state)
{
	struct prog *p = *state;

	fake_kernel.register_err = ENODEV;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_THROUGHPUT),
			 ENODEV);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

/* Posts and polls one after the other: the CQ is not active in the end. */
static void expect_inactive_soon(struct prog *p)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	uint32_t i;

	for (i = 0; i < 10; i++) {
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED), 0);
		fake_run(p->qp, 1);
		prog_expect(p, i, IBV_WC_SUCCESS);
		fake_kernel.now += MSEC;
	}
	assert_false(c->active);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
}

/* One of class latency passes when what it had out without a completion is done. */
static void latency_with_silent_out(void **state)
{
	struct prog *p = *state;

	fake_grant(RISO_USER_TX, MB);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, 0), 0);
	prog_drive(p);
	prog_choose(p, RISO_CLASS_LATENCY);
	fake_run(p->qp, 2);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	expect_inactive_soon(p);
}

/* The flow leaves with a work request out, as the device is open, and that is paced again then. */
static void leave_while_paced(struct prog *p)
{
	fake_kernel.k.mode = RISO_USER_OPEN;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	fake_kernel.k.mode = RISO_USER_PACED;
}

/* The device is paced for a moment, while the last one completes that was governed. */
static void opens_again(void **state)
{
	struct prog *p = *state;

	leave_while_paced(p);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	fake_kernel.k.mode = RISO_USER_OPEN;
	expect_inactive_soon(p);
}

/* A flow that leaves is reset while the device is paced for a moment. */
static void leaving_and_reset(void **state)
{
	struct prog *p = *state;

	leave_while_paced(p);
	prog_modify(p, IBV_QPS_RESET);
	prog_modify(p, IBV_QPS_RTS);
	prog_expect_none(p);
	fake_kernel.k.mode = RISO_USER_OPEN;
	expect_inactive_soon(p);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(latency_passes),
	PROG_TEST_EMPTY(wish_kept),
	PROG_TEST(no_class),
	PROG_TEST(class_by_poll),
	PROG_TEST(class_by_helper),
	PROG_TEST(gone_for_class),
	PROG_TEST(latency_with_silent_out),
	PROG_TEST(opens_again),
	PROG_TEST(leaving_and_reset),
};

const struct prog_tests prog_class_tests = { tests, ARRAY_SIZE(tests) };
