// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a program posts and the shim holds: order, flags, keys, memory windows, chains,
 * and the completions that a program asks for.
 */
#include <errno.h>

#include "post.h"
#include "prog.h"
#include "tests.h"

/* A SEND, a WRITE with immediate and inline data go whole, behind what is held. */
static void whole_and_in_order(void **state)
{
	static const int opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct prog *p = *state;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++)
		assert_int_equal(prog_post(p->qp, opcodes[i], 50 + i,
					   opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD ?
					   8 : 5 * FAKE_CHUNK, IBV_SEND_SIGNALED |
					   IBV_SEND_FENCE), 0);
	assert_int_equal(p->qp->posted, 0);
	prog_pump(p, 50, ARRAY_SIZE(opcodes));
	assert_int_equal(p->qp->posted, 5 + 1 + 1 + 5 + 1);
	for (i = 0; i < p->qp->posted; i++) {
		bool first = i == 0 || (i >= 5 && i <= 7) || i == 12;

		assert_int_equal(!!(p->qp->sq[i].wr.send_flags & IBV_SEND_FENCE),
				 first);
	}
	assert_int_equal(fake_len(&p->qp->sq[5].wr), 5 * FAKE_CHUNK);
}

/* What has no data, and a SEND that invalidates, too; they keep their keys. */
static void keys_in_order(void **state)
{
	static const int opcodes[] = { IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV };
	struct prog *p = *state;
	struct ibv_sge sge = { .addr = (uintptr_t)prog_local, .length = 3 * FAKE_CHUNK };
	struct ibv_send_wr *bad;
	uint64_t before;
	uint32_t i;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 0, 2 * FAKE_CHUNK, 0), 0);
	before = fake_kernel.u.path[0].want;
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_send_wr wr = {
			.wr_id = i,
			.opcode = opcodes[i],
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
			.invalidate_rkey = 70 + i,
			.sg_list = i ? &sge : NULL,
			/* Nobody looks at it where there are no data. */
			.num_sge = i ? 1 : FAKE_SGES + 1,
		};

		assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, &wr, &bad), 0);
	}
	assert_int_equal(fake_kernel.u.path[0].want - before,
			 fake_cost(0) + fake_cost(3 * FAKE_CHUNK));
	assert_int_equal(p->qp->posted, 0);
	prog_pump(p, 0, ARRAY_SIZE(opcodes));
	assert_int_equal(p->qp->posted, 2 + ARRAY_SIZE(opcodes));
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		const struct ibv_send_wr *wr = &p->qp->sq[2 + i].wr;

		assert_int_equal(wr->opcode, opcodes[i]);
		assert_int_equal(wr->invalidate_rkey, 70 + i);
		assert_true(wr->send_flags & IBV_SEND_FENCE);
		assert_int_equal(fake_len(wr), i ? 3 * FAKE_CHUNK : 0);
	}
}

static int bind(struct prog *p, struct ibv_mw *mw, uint64_t wr_id)
{
	struct ibv_mw_bind how = {
		.wr_id = wr_id,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return ibv_bind_mw(&p->qp->ex.qp_base, mw, &how);
}

/* It changes the window at once, so what is held goes out before it. */
static void binds(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct ibv_mw mw = { .context = fake_ctx, .type = IBV_MW_TYPE_1 };
	const struct ibv_send_wr *wr;
	uint32_t i;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(bind(p, &mw, 2), 0);
	assert_int_equal(p->qp->posted, 4);
	assert_int_equal(fake_len(&p->qp->sq[2].wr), 6 * FAKE_CHUNK);
	wr = &p->qp->sq[3].wr;
	assert_int_equal(wr->opcode, IBV_WR_BIND_MW);
	assert_ptr_equal(wr->bind_mw.mw, &mw);
	assert_int_equal(wr->bind_mw.bind_info.mw_access_flags,
			 IBV_ACCESS_REMOTE_WRITE);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	prog_expect_none(p);
	fake_check_books();

	/* What does not go out, or a provider that will not, leaves all as it was. */
	fake_kernel.now += 20 * MSEC;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
	p->qp->refuse = EAGAIN;
	assert_int_equal(bind(p, &mw, 4), ENOMEM);
	p->qp->refuse = 0;
	prog_pump(p, 3, 1);
	p->qp->refuse = EINVAL;
	assert_int_equal(bind(p, &mw, 4), EINVAL);
	p->qp->refuse = 0;
	assert_int_equal(p->qp->posted, 5);
	assert_int_equal(f->sq.signaled, 0);

	/* It is one of those that the program may have. */
	for (i = 0; i < PROG_DEPTH; i++)
		assert_int_equal(bind(p, &mw, 4 + i), 0);
	assert_int_equal(bind(p, &mw, 99), ENOMEM);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 99, 8, 0), ENOMEM);
	assert_int_equal(p->qp->posted, 5 + PROG_DEPTH);
	prog_pump(p, 4, PROG_DEPTH);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
}

/* Straight to the provider, with the completion that it was not told of. */
static void binds_direct(void **state)
{
	struct prog *p = *state;
	struct ibv_mw mw = { .context = fake_ctx, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind how = { .wr_id = 1 };

	prog_choose(p, RISO_CLASS_LATENCY);
	assert_int_equal(ibv_bind_mw(&p->qp->ex.qp_base, &mw, &how), 0);
	assert_int_equal(how.send_flags, 0);
	assert_int_equal(p->qp->sq[0].wr.wr_id, 1);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

static void unsignaled(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	for (i = 0; i < 100; i++) {
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 900 + i,
					   3 * FAKE_CHUNK + 5,
					   i % 4 == 3 ? IBV_SEND_SIGNALED : 0), 0);
		if (i % 4 == 3) {
			uint64_t id = 900 + i;

			prog_pump(p, id, 1);
			prog_expect_none(p);
		}
	}
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
	assert_int_equal(fake_kernel.u.path[0].want, 0);
}

static void sig_all(void **state)
{
	struct prog *p = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t i;

	assert_int_equal(p->attr.sq_sig_all, 1);
	assert_int_equal(p->qp->init.sq_sig_all, 0);
	assert_int_equal(shim_query_qp(&p->qp->ex.qp_base, &attr, 0, &init), 0);
	assert_int_equal(init.sq_sig_all, 1);
	for (i = 0; i < PROG_DEPTH; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, i,
					   3 * FAKE_CHUNK, 0), 0);
	prog_pump(p, 0, PROG_DEPTH);
	prog_expect_none(p);
	/* Also when it goes straight to the provider. */
	fake_kernel.class_id = RISO_CLASS_LATENCY;
	fake_kernel.k.classes++;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 5, MB, 0), 0);
	fake_run(p->qp, 1);
	prog_expect(p, 5, IBV_WC_SUCCESS);
}

/* A chain: what fits is taken, and the first that does not is named. */
static void chain(void **state)
{
	struct prog *p = *state;
	/* One more than a work request may have */
	struct ibv_sge sges[FAKE_SGES + 1] = {
		{ .addr = (uintptr_t)prog_local, .length = 64 }
	};
	struct ibv_send_wr wr[PROG_DEPTH + 2] = {};
	struct ibv_send_wr *bad = NULL;
	uint32_t i, k;

	for (k = 0; k < 2; k++) {
		fake_kernel.k.mode = k ? RISO_USER_OPEN : RISO_USER_PACED;
		for (i = 0; i < ARRAY_SIZE(wr); i++) {
			wr[i].wr_id = i;
			wr[i].next = i + 1 < ARRAY_SIZE(wr) ? &wr[i + 1] : NULL;
			wr[i].sg_list = sges;
			wr[i].num_sge = 1;
			wr[i].opcode = IBV_WR_SEND;
			wr[i].send_flags = IBV_SEND_SIGNALED;
		}
		assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr[PROG_DEPTH]);
		prog_pump(p, 0, PROG_DEPTH);
		wr[3].num_sge = FAKE_SGES + 1;
		assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[3]);
		prog_pump(p, 0, 3);
		prog_expect_none(p);
	}
	/* A batch is one doorbell. */
	wr[3].num_sge = 1;
	wr[SHIM_BATCH - 1].next = NULL;
	i = p->qp->doorbells;
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), 0);
	assert_int_equal(p->qp->doorbells, i + 1);
	prog_pump(p, 0, SHIM_BATCH);
}

/* A chain that goes straight is one doorbell, and the one that is refused is the program's. */
static void sig_all_chain(void **state)
{
	struct prog *p = *state;
	struct ibv_send_wr wr[40] = {};
	struct ibv_send_wr *bad = NULL;
	uint32_t i;

	prog_choose(p, RISO_CLASS_LATENCY);
	for (i = 0; i < ARRAY_SIZE(wr); i++) {
		wr[i].wr_id = i;
		wr[i].next = i + 1 < ARRAY_SIZE(wr) ? &wr[i + 1] : NULL;
		wr[i].opcode = IBV_WR_SEND;
	}
	p->qp->refuse = ENOMEM;
	p->qp->refuse_from = 35;
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[35]);
	assert_int_equal(wr[0].send_flags, 0);
	assert_int_equal(p->qp->posted, 35);
	p->qp->refuse = 0;
	fake_run(p->qp, UINT32_MAX);
	for (i = 0; i < 35; i++)
		prog_expect(p, i, IBV_WC_SUCCESS);
	p->qp->doorbells = 0;
	wr[7].next = NULL;
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), 0);
	assert_int_equal(p->qp->doorbells, 1);
	assert_int_equal(p->qp->posted, 43);
	/* As rxe does whose device has gone */
	fake_verbs.names_none = true;
	p->qp->refuse = EIO;
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), EIO);
	assert_ptr_equal(bad, &wr[0]);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(whole_and_in_order),
	PROG_TEST(keys_in_order),
	PROG_TEST(binds),
	PROG_TEST_SIG_ALL(binds_direct),
	PROG_TEST(unsignaled),
	PROG_TEST_SIG_ALL(sig_all),
	PROG_TEST(chain),
	PROG_TEST_SIG_ALL(sig_all_chain),
};

const struct prog_tests prog_record_tests = { tests, ARRAY_SIZE(tests) };
