// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work requests that a program builds with ibv_wr_*.
 */
#include <errno.h>
#include <string.h>

#include "prog.h"
#include "tests.h"

static void builders(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp = prog_make_qp_ex(p);
	struct ibv_qp_ex *ex = &qp->ex;
	struct fake_qp *plain = p->qp;
	struct ibv_data_buf buf[2] = {
		{ .addr = prog_local, .length = 10 },
		{ .addr = prog_local + 10, .length = 20 },
	};
	uint32_t i;

	p->qp = qp;
	prog_fill(prog_local);
	memset(prog_remote, 0, PROG_LARGEST);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, 5, (uintptr_t)prog_remote);
	ibv_wr_set_sge(ex, 6, (uintptr_t)prog_local, 3 * FAKE_CHUNK + 1);
	ex->wr_id = 2;
	ibv_wr_rdma_write(ex, 5, (uintptr_t)prog_remote + MB);
	ibv_wr_set_inline_data_list(ex, 2, buf);
	ex->wr_id = 3;
	ibv_wr_send(ex);
	assert_int_equal(qp->posted, 0);
	assert_int_equal(ibv_wr_complete(ex), 0);
	memset(buf, 0, sizeof(buf));
	prog_pump(p, 1, 3);
	assert_memory_equal(prog_local, prog_remote, 3 * FAKE_CHUNK + 1);
	assert_int_equal(prog_remote[3 * FAKE_CHUNK + 1], 0);
	assert_memory_equal(prog_local, prog_remote + MB, 30);
	assert_int_equal(qp->posted, 6);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	prog_expect_none(p);
	assert_int_equal(prog_post(qp, IBV_WR_SEND, 4, 64, IBV_SEND_SIGNALED), 0);
	prog_pump(p, 4, 1);
	assert_int_equal(qp->posted, 7);

	/* Too many, and too long: nothing of the batch is posted. */
	ibv_wr_start(ex);
	for (i = 0; i <= PROG_DEPTH; i++)
		ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, prog_local, FAKE_INLINE + 1);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	fake_grant(RISO_USER_TX, MB);
	prog_expect_none(p);
	assert_int_equal(qp->posted, 7);

	/* Straight to the provider. */
	fake_kernel.class_id = RISO_CLASS_LATENCY;
	fake_kernel.k.classes++;
	ibv_wr_start(ex);
	ex->wr_id = 9;
	ibv_wr_send(ex);
	assert_int_equal(qp->num_built, 1);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(qp->posted, 8);
	fake_run(qp, UINT32_MAX);
	prog_expect(p, 9, IBV_WC_SUCCESS);
	shim_destroy_qp(&qp->ex.qp_base);
	p->qp = plain;
}

static void build_two(struct ibv_qp_ex *ex)
{
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_send(ex);
	ex->wr_id = 2;
	ibv_wr_send(ex);
}

/* One that is refused: with the first all are, behind it the others are out. */
static void builders_refused(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp = prog_make_qp_ex(p);
	struct fake_qp *plain = p->qp;

	p->qp = qp;
	fake_grant(RISO_USER_TX, MB);
	qp->refuse = EINVAL;
	build_two(&qp->ex);
	assert_int_equal(ibv_wr_complete(&qp->ex), EINVAL);
	prog_expect_none(p);
	assert_false(qp->err);
	qp->refuse_from = 1;
	build_two(&qp->ex);
	assert_int_equal(ibv_wr_complete(&qp->ex), 0);
	assert_int_equal(qp->posted, 1);
	fake_run(qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect(p, 2, IBV_WC_LOC_QP_OP_ERR);
	prog_expect_none(p);
	shim_destroy_qp(&qp->ex.qp_base);
	p->qp = plain;
}

static void build_keys(struct ibv_qp_ex *ex, struct ibv_mw *mw)
{
	struct ibv_mw_bind_info info = { .addr = 4711 };

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_bind_mw(ex, mw, 51, &info);
	memset(&info, 0, sizeof(info));
	ex->wr_id = 2;
	ibv_wr_local_inv(ex, 52);
	ex->wr_id = 3;
	ibv_wr_send_inv(ex, 53);
	assert_int_equal(ibv_wr_complete(ex), 0);
}

static void expect_keys(struct fake_qp *qp, const struct ibv_mw *mw)
{
	const struct fake_wr *w = &qp->sq[qp->posted - 3];

	assert_int_equal(w[0].wr.opcode, IBV_WR_BIND_MW);
	assert_ptr_equal(w[0].wr.bind_mw.mw, mw);
	assert_int_equal(w[0].wr.bind_mw.rkey, 51);
	assert_int_equal(w[0].wr.bind_mw.bind_info.addr, 4711);
	assert_int_equal(w[1].wr.opcode, IBV_WR_LOCAL_INV);
	assert_int_equal(w[1].wr.invalidate_rkey, 52);
	assert_int_equal(w[2].wr.opcode, IBV_WR_SEND_WITH_INV);
	assert_int_equal(w[2].wr.invalidate_rkey, 53);
}

/* The same through ibv_wr_*, held and straight to the provider. */
static void builders_keys(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp = prog_make_qp_ex(p);
	struct fake_qp *plain = p->qp;
	struct ibv_mw mw = {};
	uint32_t i;

	p->qp = qp;
	build_keys(&qp->ex, &mw);
	assert_int_equal(qp->posted, 0);
	assert_int_equal(qp->num_built, 0);
	prog_pump(p, 1, 3);
	assert_int_equal(qp->posted, 3);
	expect_keys(qp, &mw);
	fake_kernel.class_id = RISO_CLASS_LATENCY;
	fake_kernel.k.classes++;
	build_keys(&qp->ex, &mw);
	assert_int_equal(qp->num_built, 3);
	assert_int_equal(qp->posted, 6);
	expect_keys(qp, &mw);
	fake_run(qp, UINT32_MAX);
	for (i = 1; i <= 3; i++)
		prog_expect(p, i, IBV_WC_SUCCESS);
	shim_destroy_qp(&qp->ex.qp_base);
	p->qp = plain;
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(builders),
	PROG_TEST(builders_refused),
	PROG_TEST(builders_keys),
};

const struct prog_tests prog_wr_tests = { tests, ARRAY_SIZE(tests) };
