// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages that the shim cuts into chunks: all bytes arrive, the lengths are right, and
 * each chunk costs what the kernel would charge for it.
 */
#include <errno.h>
#include <string.h>

#include "grant.h"
#include "prog.h"
#include "tests.h"

static const uint32_t sizes[] = {
	0, 1, FAKE_CHUNK - 1, FAKE_CHUNK, FAKE_CHUNK + 1, MB, PROG_LARGEST,
};

/* Each size in one to four elements: the bytes arrive, and no others do. */
static void bytes(struct prog *p, int opcode)
{
	const uint8_t *from = opcode == IBV_WR_RDMA_READ ? prog_remote : prog_local;
	uint8_t *to = opcode == IBV_WR_RDMA_READ ? prog_local : prog_remote;
	struct ibv_send_wr *bad;
	uint32_t i, num, k;
	uint64_t id = 7;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (num = 1; num <= FAKE_SGES; num++) {
			struct ibv_sge sge[FAKE_SGES];
			struct ibv_send_wr wr = {
				.wr_id = id,
				.sg_list = sge,
				.num_sge = num,
				.opcode = opcode,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma.remote_addr = (uintptr_t)prog_remote,
			};
			uint8_t *at = prog_local;
			uint32_t chunks = sizes[i] ?
				(sizes[i] + FAKE_CHUNK - 1) / FAKE_CHUNK : 1;
			uint32_t before = p->qp->posted;

			for (k = 0; k < num; k++) {
				sge[k].addr = (uintptr_t)at;
				sge[k].length = sizes[i] / num +
						(k < sizes[i] % num);
				at += sge[k].length;
			}
			memset(to, 0xa5, PROG_LARGEST + 1);
			assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, &wr,
						       &bad), 0);
			/* It is the program's again. */
			memset(sge, 0xff, sizeof(sge));
			prog_pump(p, id++, 1);
			assert_int_equal(p->qp->posted - before, chunks);
			assert_memory_equal(from, to, sizes[i]);
			assert_int_equal(to[sizes[i]], 0xa5);
		}
	}
}

static void write_bytes(void **state)
{
	prog_fill(prog_local);
	bytes(*state, IBV_WR_RDMA_WRITE);
}

static void read_bytes(void **state)
{
	prog_fill(prog_remote);
	bytes(*state, IBV_WR_RDMA_READ);
}

static void read_byte_len(void **state)
{
	struct prog *p = *state;
	struct ibv_wc wc;
	int n = 0;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, 1, MB, IBV_SEND_SIGNALED), 0);
	while (!n) {
		fake_grant(RISO_USER_RX, 8 * fake_cost(FAKE_CHUNK));
		n = prog_poll_one(p, &wc);
		/* No more than max_rd_atomic; the last of them has a completion. */
		assert_true(p->qp->posted - p->qp->run <= 4);
		assert_true(n || p->qp->posted == MB / FAKE_CHUNK ||
			    p->qp->sq[p->qp->posted - 1].wr.send_flags &
			    IBV_SEND_SIGNALED);
		fake_run(p->qp, UINT32_MAX);
	}
	assert_int_equal(wc.byte_len, MB);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
}

static void inline_data(void **state)
{
	struct prog *p = *state;

	prog_fill(prog_local);
	memset(prog_remote, 0, FAKE_INLINE);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_INLINE,
				   IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_INLINE + 1,
				   IBV_SEND_INLINE), EINVAL);
	memset(prog_local, 0xee, FAKE_INLINE);
	prog_pump(p, 1, 1);
	prog_fill(prog_local);
	assert_memory_equal(prog_local, prog_remote, FAKE_INLINE);
}

/* WRITEs 1 MB with an immediate; how many work requests that takes. */
static uint32_t write_imm(struct prog *p, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)prog_local, .length = MB };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		.imm_data = 0x01020304,
		.wr.rdma.remote_addr = (uintptr_t)prog_remote,
	};
	uint32_t before = p->qp->posted;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memset(prog_remote, 0, MB);
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, &wr, &bad), 0);
	/* One completion, and it takes what a whole message may cost. */
	fake_grant(RISO_USER_TX, 2 * fake_cost(MB));
	prog_pump(p, wr_id, 1);
	assert_int_equal(prog_poll_one(p, &wc), 0);
	assert_memory_equal(prog_local, prog_remote, MB);
	return p->qp->posted - before;
}

/* The last piece tells the peer, and no other. */
static void expect_told_last(const struct fake_qp *qp, uint32_t num)
{
	const struct ibv_send_wr *wr;
	uint32_t i;

	for (i = qp->posted - num; i != qp->posted; i++) {
		wr = &qp->sq[i % FAKE_SQ].wr;
		if (i + 1 == qp->posted) {
			assert_int_equal(wr->opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
			assert_int_equal(wr->imm_data, 0x01020304);
			assert_true(wr->send_flags & IBV_SEND_SOLICITED);
		} else {
			assert_int_equal(wr->opcode, IBV_WR_RDMA_WRITE);
			assert_false(wr->send_flags & IBV_SEND_SOLICITED);
		}
	}
}

/* Those with an immediate are cut as long as the rule allows it. */
static void imm(void **state)
{
	struct prog *p = *state;

	prog_fill(prog_local);
	assert_int_equal(write_imm(p, 1), 1);
	expect_told_last(p->qp, 1);
	fake_kernel.register_flags = RISO_REGISTER_CUT_IMM;
	fake_kernel.k.classes++;
	assert_int_equal(write_imm(p, 2), MB / FAKE_CHUNK);
	expect_told_last(p->qp, MB / FAKE_CHUNK);
	fake_kernel.register_flags = 0;
	fake_kernel.k.classes++;
	assert_int_equal(write_imm(p, 3), 1);
}

/* What fits into a chunk, and what is inline, is as it was. */
static void imm_whole(void **state)
{
	struct prog *p = *state;

	fake_kernel.register_flags = RISO_REGISTER_CUT_IMM;
	fake_kernel.k.classes++;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE_WITH_IMM, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	prog_pump(p, 1, 1);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0,
				   IBV_SEND_SIGNALED), 0);
	prog_pump(p, 2, 1);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE_WITH_IMM, 3, FAKE_INLINE,
				   IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
	prog_pump(p, 3, 1);
	assert_int_equal(p->qp->posted, 3);
	assert_int_equal(p->qp->sq[0].wr.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	/* A SEND is never cut. */
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND_WITH_IMM, 4, 2 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	prog_pump(p, 4, 1);
	assert_int_equal(p->qp->posted, 4);
}

/* A message costs what it would cost a user of the kernel. */
static void costs(void **state)
{
	static const uint32_t mtus[] = { 256, 1024, 4096 };
	uint32_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(mtus); i++)
		for (k = 0; k < ARRAY_SIZE(sizes); k++)
			assert_int_equal(shim_cost(sizes[k], mtus[i],
						   RISO_PACKET_HEADER, 0),
					 riso_piece_wire(sizes[k], mtus[i]));
	assert_int_equal(shim_cost(1, 1024, RISO_PACKET_HEADER, 0), 1 + 58 + 16);
	assert_int_equal(shim_cost(1, 1024, RISO_PACKET_HEADER, 76), 76);
}

/* Chunks fill their packets, as those of users of the kernel do. */
static void chunks_rounded(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.path[0].chunk = 3 * FAKE_MTU + 1;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 6 * FAKE_MTU,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.u.path[0].want,
			 fake_cost(4 * FAKE_MTU) + fake_cost(2 * FAKE_MTU));
	prog_pump(p, 1, 1);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(fake_len(&p->qp->sq[0].wr), 4 * FAKE_MTU);
	assert_int_equal(fake_len(&p->qp->sq[1].wr), 2 * FAKE_MTU);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(write_bytes),
	PROG_TEST(read_bytes),
	PROG_TEST(read_byte_len),
	PROG_TEST(inline_data),
	PROG_TEST(imm),
	PROG_TEST(imm_whole),
	PROG_TEST_EMPTY(costs),
	PROG_TEST(chunks_rounded),
};

const struct prog_tests prog_cut_tests = { tests, ARRAY_SIZE(tests) };
