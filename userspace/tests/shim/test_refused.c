// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs that the shim does not govern: they work as if there were no shim, and the
 * kernel hears the reason.
 */
#include <errno.h>
#include <stdlib.h>

#include "fake_wr.h"
#include "prog.h"
#include "tests.h"

/* As if there were no shim */
static void no_kernel(void **state)
{
	struct prog *p = *state;

	fake_kernel.open_err = ENOENT;
	fake_ctx = shim_open_device(&fake_verbs.device);
	assert_ptr_equal(fake_ctx->ops.post_send, fake_post_send);
	assert_ptr_equal(fake_ctx->ops.poll_cq, fake_poll_cq);
	assert_ptr_equal(fake_verbs.v.create_qp_ex, fake_create_qp_ex);
	p->cq = prog_make_cq(PROG_DEPTH);
	assert_int_equal(p->cq->cq.cqe, PROG_DEPTH);
	p->qp = prog_make_qp(p, p->cq, 1);
	assert_int_equal(p->qp->depth, PROG_DEPTH);
	assert_int_equal(p->qp->init.sq_sig_all, 1);
	assert_int_equal(fake_kernel.reported, 0);
}

static void expect_straight(struct prog *p, struct fake_qp *qp, uint64_t wr_id)
{
	uint32_t posted = qp->posted;
	struct ibv_wc wc;

	assert_int_equal(prog_post(qp, IBV_WR_RDMA_WRITE, wr_id, 2 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(qp->posted, posted + 1);
	assert_int_equal(qp->sq[posted].wr.wr_id, wr_id);
	fake_run(qp, 1);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
}

/* A device is attached with the first queue pair that can be governed, and only then. */
static void attached_late(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	assert_int_equal(fake_kernel.opened, fake_kernel.closed);
	assert_int_equal(fake_kernel.attached, 0);
	p->qp = prog_make_qp(p, p->cq, 0);
	other = prog_make_qp(p, p->cq, 0);
	assert_int_equal(fake_kernel.opened, fake_kernel.closed + 1);
	assert_int_equal(fake_kernel.attached, 1);
	assert_int_equal(fake_kernel.reported, 0);
	shim_destroy_qp(&other->ex.qp_base);
}

/* Who is refused goes straight to the provider, and is asked for with the next one. */
static void refused_place(void **state)
{
	static const struct {
		int open, attach, map, reason;
		uint32_t version;
	} cases[] = {
		{ .attach = EDQUOT },
		{ .attach = EUSERS },
		{ .attach = EBUSY, .reason = RISO_REASON_SHIM_LIMIT },
		{ .attach = EPROTONOSUPPORT, .reason = RISO_REASON_SHIM_LIMIT },
		{ .version = 1, .reason = RISO_REASON_SHIM_LIMIT },
		{ .map = ENOMEM, .reason = RISO_REASON_MEMORY },
		{ .open = EMFILE },
	};
	struct prog *p = *state;
	struct fake_qp *first;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_kernel.reported = 0;
		/* Grants are void by then. */
		fake_kernel.now += 20 * MSEC;
		fake_ctx = shim_open_device(&fake_verbs.device);
		p->cq = prog_make_cq(2 * PROG_DEPTH);
		fake_kernel.open_err = cases[i].open;
		fake_kernel.attach_err = cases[i].attach;
		fake_kernel.map_err = cases[i].map;
		fake_kernel.k.version = RISO_USER_VERSION + cases[i].version;
		first = prog_make_qp(p, p->cq, i % 2);
		assert_non_null(first);
		if (cases[i].reason) {
			assert_int_equal(fake_kernel.reported, first->ex.qp_base.qp_num);
			assert_int_equal(fake_kernel.reason, cases[i].reason);
		} else {
			assert_int_equal(fake_kernel.reported, 0);
		}
		expect_straight(p, first, 1);
		assert_int_equal(shim_set_class(&first->ex.qp_base,
						RISO_CLASS_LATENCY), EOPNOTSUPP);
		/* It can be governed now, and so can the first. */
		fake_kernel.open_err = 0;
		fake_kernel.attach_err = 0;
		fake_kernel.map_err = 0;
		fake_kernel.k.version = RISO_USER_VERSION;
		expect_straight(p, first, 2);
		fake_kernel.attached = 0;
		p->qp = prog_make_qp(p, p->cq, 0);
		assert_int_equal(fake_kernel.attached, 1);
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 3, 8,
					   IBV_SEND_SIGNALED), 0);
		assert_int_equal(p->qp->posted, 0);
		assert_int_equal(prog_post(first, IBV_WR_SEND, 4, 8, 0), 0);
		assert_int_equal(first->posted, 2);
		prog_pump(p, 3, 1);
		shim_destroy_qp(&first->ex.qp_base);
		shim_destroy_qp(&p->qp->ex.qp_base);
		shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
		shim_close_device(fake_ctx);
		while (fake_kernel.helpers)
			fake_kernel.helper(fake_kernel.helps[--fake_kernel.helpers]);
		assert_int_equal(fake_kernel.opened, fake_kernel.closed);
	}
	p->qp = NULL;
	p->cq = NULL;
	fake_ctx = NULL;
}

/* The last queue pair is as it would be without the shim, and the kernel knows why. */
static void expect_told(struct fake_qp *qp, uint32_t reason)
{
	assert_non_null(qp);
	assert_null(shim_map_find(&shim_qps, qp));
	assert_int_equal(fake_kernel.reported, qp->ex.qp_base.qp_num);
	assert_int_equal(fake_kernel.reason, reason);
	assert_int_equal(qp->depth, PROG_DEPTH);
	fake_kernel.reported = 0;
	shim_destroy_qp(&qp->ex.qp_base);
}

static void told_single_thread(void **state)
{
	struct prog *p = *state;

	setenv("MLX5_SINGLE_THREADED", "1", 1);
	fake_ctx = shim_open_device(&fake_verbs.device);
	unsetenv("MLX5_SINGLE_THREADED");
	assert_ptr_equal(fake_ctx->ops.post_send, fake_post_send);
	assert_ptr_equal(fake_ctx->ops.poll_cq, fake_poll_cq);
	p->cq = prog_make_cq(PROG_DEPTH);
	assert_int_equal(p->cq->cq.cqe, PROG_DEPTH);
	expect_told(prog_make_qp(p, p->cq, 1), RISO_REASON_SHIM_LIMIT);
	expect_told(prog_make_qp_ex(p), RISO_REASON_SHIM_LIMIT);
}

static void told_no_room(void **state)
{
	struct prog *p = *state;

	fake_verbs.no_resize = 1;
	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(PROG_DEPTH);
	prog_grow_cq(p->cq, PROG_DEPTH + SHIM_SPARE - 1);
	expect_told(prog_make_qp(p, p->cq, 1), RISO_REASON_NO_CQ_ROOM);
	prog_grow_cq(p->cq, PROG_DEPTH + SHIM_SPARE);
	p->qp = prog_make_qp(p, p->cq, 1);
	assert_non_null(shim_map_find(&shim_qps, p->qp));
	assert_int_equal(fake_kernel.reported, 0);
}

/* One that the provider gives more than there is memory for */
static void told_no_memory(void **state)
{
	struct prog *p = *state;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(PROG_DEPTH);
	fake_verbs.inline_given = INT32_MAX - 4096;
	fake_verbs.depth_given = INT32_MAX;
	expect_told(prog_make_qp(p, p->cq, 1), RISO_REASON_MEMORY);
	fake_verbs.inline_given = 0;
	fake_verbs.depth_given = 0;
}

/* A queue pair for what ibv_post_send() does not know, and one that sends nothing */
static void told_by_kind(void **state)
{
	struct prog *p = *state;
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.recv_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.cap = { .max_send_wr = PROG_DEPTH },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = 1ULL << 40,
	};
	struct ibv_qp_init_attr attr = {
		.send_cq = ex.send_cq,
		.recv_cq = ex.send_cq,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_pd pd = { .context = fake_ctx };
	struct ibv_qp *qp;

	expect_told((struct fake_qp *)ibv_create_qp_ex(fake_ctx, &ex),
		    RISO_REASON_UNKNOWN_OPCODE);
	qp = shim_create_qp(&pd, &attr);
	assert_int_equal(fake_kernel.reported, qp->qp_num);
	assert_int_equal(fake_kernel.reason, RISO_REASON_SHIM_LIMIT);
	fake_kernel.reported = 0;
	shim_destroy_qp(qp);
	/* Nobody expects others to be governed. */
	attr.qp_type = IBV_QPT_UD;
	qp = shim_create_qp(&pd, &attr);
	assert_int_equal(fake_kernel.reported, 0);
	shim_destroy_qp(qp);
}

static void ready(struct fake_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	assert_int_equal(shim_modify_qp(&qp->ex.qp_base, &attr, IBV_QP_STATE), 0);
}

/* What a vendor's library has created is seen when it is made ready, and told once. */
static void told_vendors(void **state)
{
	struct prog *p = *state;
	struct ibv_cq *cq = fake_create_cq(fake_ctx, PROG_DEPTH, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = p->attr;
	struct fake_qp *qp;

	attr.cap.max_send_wr = PROG_DEPTH;
	qp = fake_new_qp(&attr);
	ready(qp);
	assert_int_equal(fake_kernel.reported, qp->ex.qp_base.qp_num);
	fake_kernel.reported = 0;
	ready(qp);
	assert_int_equal(fake_kernel.reported, 0);
	fake_kernel.reported = qp->ex.qp_base.qp_num;
	expect_told(qp, RISO_REASON_SHIM_LIMIT);
	/* And its CQs are none of ours. */
	attr.send_cq = cq;
	qp = (struct fake_qp *)shim_create_qp(&fake_verbs.domain, &attr);
	ready(qp);
	expect_told(qp, RISO_REASON_SHIM_LIMIT);
	free(cq);
}

/* There is a thread with the first queue pair after that: the old ones register again. */
static void thread_at_once(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other;

	fake_kernel.thread_err = EAGAIN;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 2 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.reason, RISO_REASON_NO_THREAD);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	fake_kernel.thread_err = 0;
	other = prog_make_qp(p, p->cq, 0);
	shim_destroy_qp(&other->ex.qp_base);
	fake_kernel.wish = 0;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.wish, RISO_CLASS_BY_RULE);
	fake_kernel.granted[RISO_USER_TX] += fake_kernel.u.path[RISO_USER_TX].posted;
	prog_pump(p, 2, 1);
}

/* Without a thread nothing waits; with the next queue pair there may be one. */
static void told_no_thread(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct fake_qp *other;

	fake_kernel.thread_err = EAGAIN;
	fake_kernel.wish = 0;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 2 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake_kernel.reported, p->qp->ex.qp_base.qp_num);
	assert_int_equal(fake_kernel.reason, RISO_REASON_NO_THREAD);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	/* Not for each post */
	fake_kernel.reported = 0;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.reported, 0);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	other = prog_make_qp(p, p->cq, 0);
	assert_int_equal(fake_kernel.reported, other->ex.qp_base.qp_num);
	assert_int_equal(fake_kernel.reason, RISO_REASON_NO_THREAD);
	shim_destroy_qp(&other->ex.qp_base);
	assert_int_equal(fake_kernel.wish, 0);

	fake_kernel.thread_err = 0;
	other = prog_make_qp(p, p->cq, 0);
	shim_destroy_qp(&other->ex.qp_base);
	fake_kernel.wish = 0;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.wish, RISO_CLASS_BY_RULE);
	assert_false(f->alone);
	assert_int_equal(p->qp->posted, 2);
	fake_kernel.granted[RISO_USER_TX] += fake_kernel.u.path[RISO_USER_TX].posted;
	prog_pump(p, 3, 1);
}

/* A queue pair that is refused is asked for again with the next one. */
static void told_refused(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other;
	int asked;

	fake_kernel.register_err = ENOMEM;
	other = prog_make_qp(p, p->cq, 0);
	assert_int_equal(fake_kernel.reported, other->ex.qp_base.qp_num);
	assert_int_equal(fake_kernel.reason, RISO_REASON_MEMORY);
	expect_straight(p, other, 1);
	asked = fake_kernel.registers;
	expect_straight(p, other, 2);
	assert_int_equal(fake_kernel.registers, asked);
	fake_kernel.register_err = 0;
	shim_destroy_qp(&prog_make_qp(p, p->cq, 0)->ex.qp_base);
	assert_int_equal(prog_post(other, IBV_WR_SEND, 3, 8, 0), 0);
	assert_int_equal(other->posted, 2);
	shim_destroy_qp(&other->ex.qp_base);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST_EMPTY(no_kernel),
	PROG_TEST_EMPTY(told_single_thread),
	PROG_TEST_EMPTY(told_no_room),
	PROG_TEST_EMPTY(told_no_memory),
	PROG_TEST(told_by_kind),
	PROG_TEST(told_vendors),
	PROG_TEST(told_no_thread),
	PROG_TEST(thread_at_once),
	PROG_TEST(told_refused),
	PROG_TEST_EMPTY(attached_late),
	PROG_TEST_EMPTY(refused_place),
};

const struct prog_tests prog_refused_tests = { tests, ARRAY_SIZE(tests) };
