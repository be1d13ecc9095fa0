// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Grants and what they pay for: what a program wants, takes, spends and owes. Several
 * queue pairs share a grant. The kernel may stop to pace.
 */
#include <errno.h>

#include "grant.h"
#include "prog.h"
#include "tests.h"

static void grants_spent_exactly(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.u.path[0].want, 64 * fake_cost(FAKE_CHUNK));
	assert_int_equal(p->qp->posted, 0);
	/* Odd sizes: what is left pays for a part of the next. */
	for (i = 1; i <= 64; i++) {
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK) / 2 + 1);
		prog_expect_none(p);
		assert_int_equal(fake_kernel.u.path[0].taken, fake_kernel.k.path[0].seq);
		assert_int_equal(fake_kernel.u.path[0].posted,
				 i * (fake_cost(FAKE_CHUNK) / 2 + 1));
		assert_int_equal(p->qp->posted, i * (fake_cost(FAKE_CHUNK) / 2 + 1) /
				 fake_cost(FAKE_CHUNK));
		assert_int_equal(fake_kernel.u.path[0].want,
				 64 * fake_cost(FAKE_CHUNK) -
				 fake_kernel.u.path[0].posted);
		fake_run(p->qp, UINT32_MAX);
	}
	assert_int_equal(fake_kernel.u.path[0].debt, 0);
	prog_pump(p, 1, 1);
	assert_int_equal(fake_kernel.u.path[0].posted, 64 * fake_cost(FAKE_CHUNK));
	assert_int_equal(fake_kernel.u.path[0].done, 64 * fake_cost(FAKE_CHUNK));
}

/* As the kernel does: grants for what is wanted, and for nothing else. */
static void grant_wanted(struct prog *p, uint64_t wr_id)
{
	uint64_t want;
	struct ibv_wc wc;
	uint32_t rounds;

	for (rounds = 0; rounds < 10000; rounds++) {
		want = fake_kernel.u.path[0].want;
		if (want)
			fake_grant(RISO_USER_TX, want < 5000 ? want : 5000);
		fake_run(p->qp, UINT32_MAX);
		if (prog_poll_one(p, &wc))
			break;
		fake_kernel.now += 1000;
	}
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(fake_kernel.u.path[0].debt, 0);
	assert_int_equal(fake_kernel.u.path[0].want, 0);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
	fake_check_books();
}

/* What is held costs more, or is cut smaller, than when it was posted. */
static void repriced(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	fake_kernel.k.path[0].chunk = 128 * KB;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, MB,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 100 * KB);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.u.path[0].posted, 100 * KB);
	fake_kernel.k.path[0].chunk = 1000;
	grant_wanted(p, 1);
	for (i = 0; i < PROG_DEPTH; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 64,
					   i == PROG_DEPTH - 1 ? IBV_SEND_SIGNALED : 0),
				 0);
	fake_kernel.k.op_bytes = 1000;
	grant_wanted(p, 2);
}

/* A message that is not cut and costs more than a grant is paid for in parts. */
static void large_send(void **state)
{
	struct prog *p = *state;

	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, MB, IBV_SEND_SIGNALED), 0);
	prog_pump(p, 1, 1);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake_kernel.u.path[0].debt, 0);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_cost(MB));
	assert_int_equal(fake_kernel.u.path[0].done, fake_cost(MB));
}

/* It could not use a grant: it asks again when there is room. */
static void full_wants_nothing(void **state)
{
	struct prog *p = *state;
	uint32_t left;

	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.u.path[0].want, 8 * fake_cost(FAKE_CHUNK));
	for (left = 7; left; left--) {
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		prog_expect_none(p);
		assert_int_equal(p->qp->posted, 8 - left);
		assert_int_equal(fake_kernel.u.path[0].want, 0);
		fake_run(p->qp, 1);
		prog_expect_none(p);
		assert_int_equal(fake_kernel.u.path[0].want, left * fake_cost(FAKE_CHUNK));
		fake_check_books();
	}
	prog_pump(p, 1, 1);
	assert_int_equal(fake_kernel.u.path[0].posted, 8 * fake_cost(FAKE_CHUNK));
	assert_int_equal(fake_kernel.u.path[0].want, 0);
}

static void void_grants(void **state)
{
	struct prog *p = *state;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant_until(RISO_USER_TX, MB, fake_kernel.now);
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 0);
	assert_int_equal(fake_kernel.u.path[0].taken, 1);
	/* Taken, and void before it could be spent. */
	fake_kernel.k.window = fake_cost(FAKE_CHUNK);
	fake_grant_until(RISO_USER_TX, 4 * fake_cost(FAKE_CHUNK), fake_kernel.now + 10);
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_kernel.now += 10;
	fake_run(p->qp, 1);
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake_kernel.u.path[0].want, 7 * fake_cost(FAKE_CHUNK));
	/* Two are missed, only the later ones are there. */
	fake_grant_until(RISO_USER_TX, 1, fake_kernel.now);
	fake_grant_until(RISO_USER_TX, 1, fake_kernel.now);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(fake_kernel.u.path[0].taken, 5);
	/* A second without any. */
	fake_kernel.now += 999 * MSEC;
	fake_run(p->qp, 1);
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 2);
	fake_kernel.now += MSEC;
	prog_drive(p);
	assert_int_equal(p->qp->posted, 3);
	assert_int_equal(fake_kernel.u.path[0].debt, fake_cost(FAKE_CHUNK));
}

static void sparse(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.sparse = fake_cost(FAKE_CHUNK) + fake_cost(64);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake_kernel.u.path[0].debt, fake_cost(FAKE_CHUNK));
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	/* The slice is spent; and who has something held is not sparse. */
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 3, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	fake_kernel.now += MSEC;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 4, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	prog_pump(p, 1, 4);
	/* One more than a chunk is not sparse. */
	fake_kernel.now += 20 * MSEC;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 5, FAKE_CHUNK + 1,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 4);
	prog_pump(p, 5, 1);
}

/* A small message goes at once beside the program's own bulk on another queue pair. */
static void sparse_beside_bulk(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);

	fake_kernel.k.sparse = 2 * fake_cost(64);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * FAKE_CHUNK, 0), 0);
	assert_int_equal(p->qp->posted, 0);
	assert_int_equal(prog_post(other, IBV_WR_SEND, 2, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(other->posted, 1);
	assert_int_equal(fake_kernel.u.path[0].debt, fake_cost(64));
	/* Behind the bulk it would be out of order. */
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 3, 64, 0), 0);
	assert_int_equal(p->qp->posted, 0);
	assert_int_equal(prog_post(other, IBV_WR_SEND, 4, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(other->posted, 2);
	/* The slice is spent; what is held now is not fresh in the next one. */
	assert_int_equal(prog_post(other, IBV_WR_SEND, 5, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(other->posted, 2);
	fake_kernel.now += MSEC;
	prog_drive(p);
	assert_int_equal(other->posted, 2);
	assert_int_equal(fake_kernel.u.path[0].debt, 2 * fake_cost(64));
	shim_destroy_qp(&other->ex.qp_base);
}

static void open_and_paced(void **state)
{
	struct prog *p = *state;
	uint64_t id = 0;
	uint32_t i, n = 0;
	struct ibv_wc wc;

	for (i = 0; i < 200; i++) {
		fake_kernel.k.mode = i % 7 < 4 ? RISO_USER_PACED : RISO_USER_OPEN;
		if (!prog_post(p->qp, i % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, n,
			       (i % 5) * FAKE_CHUNK + i, IBV_SEND_SIGNALED))
			n++;
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		fake_run(p->qp, i % 4);
		while (prog_poll_one(p, &wc))
			assert_int_equal(wc.wr_id, id++);
	}
	/* OPEN lets go of all that is held. */
	fake_kernel.k.mode = RISO_USER_OPEN;
	for (i = 0; i < 4; i++) {
		while (prog_poll_one(p, &wc))
			assert_int_equal(wc.wr_id, id++);
		fake_run(p->qp, UINT32_MAX);
	}
	assert_int_equal(id, n);
	assert_int_equal(fake_kernel.u.path[0].want, 0);
	assert_int_equal(fake_kernel.u.path[0].posted, fake_kernel.u.path[0].done);
}

static void close_device(void)
{
	fake_kernel.k.mode = RISO_USER_PACED;
}

/* The device is open when a batch begins, and the provider takes a part of it. */
static void paced_midway(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	for (i = 0; i < 6; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, i, FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	p->qp->refuse = ENOMEM;
	p->qp->refuse_from = 3;
	fake_kernel.k.mode = RISO_USER_OPEN;
	fake_verbs.at_call = close_device;
	prog_drive(p);
	fake_verbs.at_call = NULL;
	assert_int_equal(fake_kernel.k.mode, RISO_USER_PACED);
	assert_int_equal(p->qp->posted, 3);
	/* What it took was free when it was given it. */
	assert_int_equal(fake_kernel.u.path[0].posted, 3 * fake_cost(FAKE_CHUNK));
	assert_int_equal(fake_kernel.u.path[0].debt, 0);
	fake_kernel.granted[RISO_USER_TX] += fake_kernel.u.path[0].posted;
	p->qp->refuse = 0;
	prog_pump(p, 0, 6);
	assert_int_equal(fake_kernel.u.path[0].debt, 0);
}

/* Two flows take turns. */
static void turns(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	uint32_t i;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(other, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	for (i = 1; i <= 8; i++) {
		fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK));
		prog_expect_none(p);
		assert_int_equal(p->qp->posted, i);
		assert_int_equal(other->posted, i);
		if (i == 8)
			break;
		fake_run(p->qp, UINT32_MAX);
		fake_run(other, UINT32_MAX);
	}
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	shim_destroy_qp(&other->ex.qp_base);
}

/* The kernel forgets who wants nothing, and is told again. */
static void asks_again(void **state)
{
	struct prog *p = *state;
	int waits;

	waits = fake_kernel.waits;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.waits, ++waits);
	/* It wants more than before, which the kernel sees. */
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.waits, waits);
	fake_grant(RISO_USER_TX, 16 * fake_cost(FAKE_CHUNK));
	prog_expect_none(p);
	assert_int_equal(fake_kernel.u.path[0].want, 0);
	assert_int_equal(fake_kernel.waits, waits);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 3, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_kernel.u.path[0].want, 8 * fake_cost(FAKE_CHUNK));
	assert_int_equal(fake_kernel.waits, waits + 1);
	prog_pump(p, 1, 3);
}

/* What is posted when what is out completes after @delay ns, and is seen @late ns after that */
static uint32_t count_out(struct prog *p, uint64_t delay, uint64_t late)
{
	uint32_t posted = p->qp->posted;

	fake_kernel.now += delay;
	prog_expect_none(p);
	fake_kernel.now += late;
	fake_run(p->qp, UINT32_MAX);
	prog_expect_none(p);
	return p->qp->posted - posted;
}

/* A path that is long may be full, by more pieces and by larger ones; and it is measured anew. */
static void long_path(void **state)
{
	const uint64_t chunk = fake_cost(FAKE_CHUNK);
	/* A byte takes ten nanoseconds. */
	const uint64_t chunk_ns = 10 * chunk;
	struct prog *p = *state;
	uint64_t posted;
	uint32_t out, i;

	fake_kernel.k.window = 2 * chunk;
	fake_kernel.k.rate = 100000000;
	fake_grant_until(RISO_USER_TX, 1ULL << 40, UINT64_MAX);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, PROG_LARGEST,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	/* What waits in a queue when the device becomes shaped tells nothing of the path. */
	assert_int_equal(count_out(p, 2000 * chunk_ns, 0), 2);
	out = count_out(p, 11 * chunk_ns, 0);
	assert_in_range(out, 12, 15);
	/* Of a hundred chunks there is no room for so many. */
	assert_int_equal(count_out(p, 2000000000, 0), 1);
	/* What is seen late tells nothing. */
	assert_in_range(count_out(p, 0, 101 * chunk_ns), 12, 15);
	assert_int_equal(count_out(p, 2000000000, 0), 1);
	/* What is posted grows until it fills the path. */
	for (i = 0; i < 12; i++) {
		posted = fake_kernel.u.path[0].posted;
		out = count_out(p, 41 * chunk_ns, 0);
		posted = fake_kernel.u.path[0].posted - posted;
		assert_in_range(out, 1, SHIM_SLOTS);
		assert_true(posted < 62 * chunk);
	}
	assert_true(posted > 40 * chunk);
	prog_modify(p, IBV_QPS_ERR);
}

/* Where others have most of the rate the delay is theirs: pieces stay as small as they are. */
static void shared_path(void **state)
{
	const uint64_t chunk = fake_cost(FAKE_CHUNK);
	struct prog *p = *state;
	uint32_t i;

	fake_kernel.k.window = 1000 * chunk;
	fake_kernel.k.rate = 1000000000;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, PROG_LARGEST,
				   IBV_SEND_SIGNALED), 0);
	for (i = 0; i < 400; i++) {
		fake_kernel.now += 20 * chunk;
		prog_expect_none(p);
		fake_grant(RISO_USER_TX, chunk);
		prog_expect_none(p);
		if (i % 3 == 2)
			fake_run(p->qp, UINT32_MAX);
	}
	assert_in_range(p->qp->posted, 300, 400);
	for (i = 100; i < p->qp->posted; i++)
		assert_int_equal(fake_len(&p->qp->sq[i].wr), FAKE_CHUNK);
	prog_modify(p, IBV_QPS_ERR);
}

/* The kernel may write its page at any time, also while the provider has a batch. */
static void page_changes(void **state)
{
	struct prog *p = *state;
	uint64_t sum = 0;
	uint32_t i;

	fake_grant(RISO_USER_TX, 1ULL << 40);
	p->qp->refuse = ENOMEM;
	p->qp->refuse_from = 3;
	p->qp->chunk_then = 2 * FAKE_CHUNK;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 3);
	p->qp->refuse = 0;
	prog_pump(p, 1, 1);
	for (i = 0; i < p->qp->posted; i++) {
		assert_int_equal(p->qp->sq[i].wr.wr.rdma.remote_addr,
				 p->qp->sq[0].wr.wr.rdma.remote_addr + sum);
		sum += fake_len(&p->qp->sq[i].wr);
	}
	assert_int_equal(sum, 16 * FAKE_CHUNK);
	assert_in_range(p->qp->posted, 9, 10);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(full_wants_nothing),
	PROG_TEST(grants_spent_exactly),
	PROG_TEST(repriced),
	PROG_TEST(large_send),
	PROG_TEST(void_grants),
	PROG_TEST(sparse),
	PROG_TEST(sparse_beside_bulk),
	PROG_TEST(open_and_paced),
	PROG_TEST(paced_midway),
	PROG_TEST(turns),
	PROG_TEST(asks_again),
	PROG_TEST(long_path),
	PROG_TEST(shared_path),
	PROG_TEST(page_changes),
};

const struct prog_tests prog_pay_tests = { tests, ARRAY_SIZE(tests) };
