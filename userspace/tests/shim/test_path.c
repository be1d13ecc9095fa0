// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Paths: what goes to a peer with a limit has grants of its own.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prog.h"
#include "record.h"
#include "tests.h"

enum {
	/* Path of the peer with a limit */
	LIMITED = RISO_USER_DIRS,
	CHUNKS = 8,
};

/* From here on the kernel holds a direction to the limit of a peer, for who asks. */
static void limit(int dir)
{
	fake_kernel.k.path[LIMITED].chunk = FAKE_CHUNK;
	fake_kernel.k.paths = LIMITED + 1;
	fake_kernel.path[dir] = LIMITED;
	fake_kernel.k.classes++;
}

static void unlimit(int dir)
{
	fake_kernel.path[dir] = dir;
	fake_kernel.k.classes++;
}

/* A completion of a queue pair */
static void expect_of(struct prog *p, struct fake_qp *qp, uint64_t wr_id)
{
	struct fake_qp *own = p->qp;

	p->qp = qp;
	prog_expect(p, wr_id, IBV_WC_SUCCESS);
	p->qp = own;
}

static void post(struct fake_qp *qp, uint64_t wr_id)
{
	assert_int_equal(prog_post(qp, IBV_WR_RDMA_WRITE, wr_id, CHUNKS * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
}

/* While the device is open what goes to the peer is held, cut and paid for; what else does not. */
static void held_though_open(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);

	fake_kernel.k.mode = RISO_USER_OPEN;
	post(other, 1);
	assert_int_equal(other->posted, 1);
	limit(RISO_USER_TX);
	post(p->qp, 2);
	assert_int_equal(p->qp->posted, 0);
	assert_int_equal(fake_kernel.u.path[LIMITED].want, CHUNKS * fake_cost(FAKE_CHUNK));
	assert_int_equal(fake_kernel.u.path[RISO_USER_TX].want, 0);
	unlimit(RISO_USER_TX);
	post(other, 3);
	assert_int_equal(other->posted, 2);
	fake_grant(LIMITED, 3 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 3);
	fake_grant(LIMITED, CHUNKS * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, CHUNKS);
	assert_int_equal(fake_kernel.u.path[LIMITED].posted, CHUNKS * fake_cost(FAKE_CHUNK));
	fake_run(other, UINT32_MAX);
	fake_run(p->qp, UINT32_MAX);
	expect_of(p, other, 1);
	expect_of(p, other, 3);
	expect_of(p, p->qp, 2);
	fake_check_books();
}

/* What is held goes out once the limit has ended. */
static void ends(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.mode = RISO_USER_OPEN;
	limit(RISO_USER_TX);
	post(p->qp, 1);
	assert_int_equal(p->qp->posted, 0);
	unlimit(RISO_USER_TX);
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake_kernel.u.path[LIMITED].want, 0);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	post(p->qp, 2);
	assert_true(fake_kernel.u.passed[0].bytes[RISO_USER_TX] +
		    fake_kernel.u.passed[1].bytes[RISO_USER_TX]);
	fake_run(p->qp, 1);
	prog_expect(p, 2, IBV_WC_SUCCESS);
}

/* Grants of one path are none of another, whatever waits there. */
static void grants_apart(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);

	post(other, 1);
	limit(RISO_USER_TX);
	post(p->qp, 2);
	fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(other->posted, 2);
	assert_int_equal(p->qp->posted, 0);
	fake_grant(LIMITED, 4 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(other->posted, 2);
	assert_int_equal(p->qp->posted, 4);
	fake_grant(RISO_USER_TX, MB);
	fake_grant(LIMITED, MB);
	prog_drive(p);
	fake_run(other, UINT32_MAX);
	fake_run(p->qp, UINT32_MAX);
	expect_of(p, other, 1);
	expect_of(p, p->qp, 2);
	fake_check_books();
}

/* What is held when a limit comes waits for that. */
static void comes_while_held(void **state)
{
	struct prog *p = *state;

	post(p->qp, 1);
	fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 2);
	limit(RISO_USER_TX);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.u.path[RISO_USER_TX].want, 0);
	assert_int_equal(fake_kernel.u.path[LIMITED].want, 6 * fake_cost(FAKE_CHUNK));
	fake_grant(RISO_USER_TX, MB);
	prog_drive(p);
	assert_int_equal(p->qp->posted, 2);
	fake_grant(LIMITED, MB);
	prog_drive(p);
	assert_int_equal(p->qp->posted, CHUNKS);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	assert_int_equal(fake_kernel.u.path[RISO_USER_TX].posted, 2 * fake_cost(FAKE_CHUNK));
	assert_int_equal(fake_kernel.u.path[RISO_USER_TX].done, 2 * fake_cost(FAKE_CHUNK));
	assert_int_equal(fake_kernel.u.path[LIMITED].done, 6 * fake_cost(FAKE_CHUNK));
	fake_check_books();
}

/* Only READs are held to a limit of what is read from the peer. */
static void one_direction(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.mode = RISO_USER_OPEN;
	limit(RISO_USER_RX);
	post(p->qp, 1);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, 2, 4 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	fake_grant(LIMITED, MB);
	prog_drive(p);
	assert_int_equal(p->qp->posted, 5);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	fake_check_books();
}

/* Small messages wait, too, and longer than a second if nothing is granted. */
static void small_waits(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.sparse = 2 * fake_cost(FAKE_CHUNK);
	limit(RISO_USER_TX);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	fake_kernel.now += 2000 * MSEC;
	prog_drive(p);
	assert_int_equal(p->qp->posted, 0);
	fake_grant(LIMITED, fake_cost(64));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake_kernel.u.path[LIMITED].debt, 0);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	/* But not for ever. */
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 2, 64, IBV_SEND_SIGNALED), 0);
	fake_kernel.now += 61000ULL * MSEC;
	prog_drive(p);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, 1);
	prog_expect(p, 2, IBV_WC_SUCCESS);
}

/* When the device is gone no limit holds. */
static void gone_with_limit(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.mode = RISO_USER_OPEN;
	limit(RISO_USER_TX);
	post(p->qp, 1);
	assert_int_equal(p->qp->posted, 0);
	fake_kernel.register_err = ENODEV;
	fake_kernel.k.classes++;
	prog_expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

/* ---- review ---- */
#include "ctx.h"
#include "member.h"

static void opens_once(void)
{
	fake_kernel.k.mode = RISO_USER_OPEN;
}

static void closes_once(void)
{
	fake_kernel.k.mode = RISO_USER_PACED;
}

static struct shim_qp *flow_of(struct fake_qp *qp)
{
	return shim_map_find(&shim_qps, qp);
}

/* The device opens while the provider takes a part of a batch: nothing of the message is lost. */
static void opens_in_post(void **state)
{
	struct prog *p = *state;

	/* What has gone straight before makes the first piece have a completion. */
	fake_kernel.k.mode = RISO_USER_OPEN;
	post(p->qp, 0);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 0, IBV_WC_SUCCESS);
	fake_kernel.k.mode = RISO_USER_PACED;
	prog_fill(prog_local);
	memset(prog_remote, 0, CHUNKS * FAKE_CHUNK);
	fake_grant(RISO_USER_TX, MB);
	p->qp->refuse = ENOMEM;
	p->qp->refuse_from = 3;
	fake_verbs.at_call = opens_once;
	post(p->qp, 1);
	fake_verbs.at_call = NULL;
	p->qp->refuse = 0;
	prog_drive(p);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	assert_memory_equal(prog_local, prog_remote, CHUNKS * FAKE_CHUNK);
}

/* It closes then, where the flow has a limit for READs only: nothing is posted twice. */
static void closes_in_post(void **state)
{
	struct prog *p = *state;
	struct ibv_sge sge = { .addr = (uintptr_t)prog_local, .length = FAKE_CHUNK };
	struct shim_qp *f = flow_of(p->qp);
	struct ibv_send_wr wr[4], *bad;
	int i;

	fake_kernel.k.mode = RISO_USER_OPEN;
	limit(RISO_USER_RX);
	for (i = 0; i < 4; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i,
			.next = i < 3 ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
	/* Something is out, so that a refusal is waited for. */
	post(p->qp, 9);
	p->qp->refuse = ENOMEM;
	p->qp->refuse_from = p->qp->posted + 2;
	fake_verbs.at_call = closes_once;
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), 0);
	fake_verbs.at_call = NULL;
	assert_int_equal(p->qp->posted, 3);
	assert_int_equal(shim_queue_len(f), 2);
	assert_int_equal(f->ctx->m->held, 2);
}

/* A part of a piece is paid when the limit comes: it is paid anew, on the new path. */
static void paid_in_part(void **state)
{
	struct prog *p = *state;

	post(p->qp, 1);
	fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK) + 1000);
	prog_drive(p);
	assert_int_equal(p->qp->posted, 2);
	limit(RISO_USER_TX);
	prog_expect_none(p);
	assert_int_equal(fake_kernel.u.path[LIMITED].want, 6 * fake_cost(FAKE_CHUNK));
	fake_grant(LIMITED, MB);
	prog_drive(p);
	assert_int_equal(p->qp->posted, CHUNKS);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	assert_int_equal(fake_kernel.u.path[RISO_USER_TX].posted,
			 fake_kernel.u.path[RISO_USER_TX].done);
	fake_check_books();
}

static void paid_and_reset(void **state)
{
	struct prog *p = *state;

	post(p->qp, 1);
	fake_grant(RISO_USER_TX, 1000);
	prog_drive(p);
	limit(RISO_USER_TX);
	prog_expect_none(p);
	prog_modify(p, IBV_QPS_RESET);
	fake_check_books();
}

/* Nobody pays with debt where grants come, though a turn of all takes more than a second. */
static void line_is_long(void **state)
{
	struct fake_qp *qp[6];
	struct prog *p = *state;
	uint32_t i, t, sum;

	fake_kernel.k.mode = RISO_USER_OPEN;
	limit(RISO_USER_TX);
	for (i = 0; i < ARRAY_SIZE(qp); i++) {
		qp[i] = prog_make_qp(p, p->cq, 0);
		post(qp[i], i);
	}
	for (t = 1; t <= 20; t++) {
		fake_kernel.now += 300 * MSEC;
		fake_grant(LIMITED, fake_cost(FAKE_CHUNK));
		prog_drive(p);
		for (sum = 0, i = 0; i < ARRAY_SIZE(qp); i++) {
			fake_run(qp[i], UINT32_MAX);
			sum += qp[i]->posted;
		}
		assert_int_equal(sum, t);
	}
}

/* Who waits for room wants no grant, though the device is open. */
static void waits_for_room(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);
	uint64_t cost = fake_cost(FAKE_CHUNK);

	fake_kernel.k.mode = RISO_USER_OPEN;
	fake_kernel.k.window = 2 * cost;
	limit(RISO_USER_TX);
	fake_grant(LIMITED, 4 * cost);
	post(p->qp, 1);
	fake_kernel.now += 20 * MSEC;
	post(other, 2);
	prog_drive(p);
	assert_int_equal(fake_kernel.u.path[LIMITED].want, CHUNKS * cost);
}

static void ask_again(struct ibv_qp *qp)
{
	assert_int_equal(shim_set_class(qp, RISO_CLASS_BANDWIDTH), 0);
}

/* A limit that comes or goes ends in order what is being built. */
static void while_built(void **state)
{
	struct prog *p = *state;
	struct fake_qp *plain = p->qp, *qp = prog_make_qp_ex(p);
	struct ibv_qp_ex *ex = &qp->ex;
	struct shim_qp *f = flow_of(qp);

	p->qp = qp;
	fake_kernel.k.mode = RISO_USER_OPEN;
	post(qp, 77);
	assert_true(shim_qp_is_direct(f));
	fake_run(qp, UINT32_MAX);
	prog_expect(p, 77, IBV_WC_SUCCESS);
	ibv_wr_start(ex);
	limit(RISO_USER_TX);
	ask_again(&ex->qp_base);
	assert_false(shim_qp_is_direct(f));
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(qp->posted, 2);
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ibv_wr_send(ex);
	unlimit(RISO_USER_TX);
	ask_again(&ex->qp_base);
	assert_false(shim_qp_is_direct(f));
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(qp->posted, 3);
	assert_true(shim_qp_is_direct(f));
	fake_run(qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	fake_kernel.k.mode = RISO_USER_PACED;
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ibv_wr_send(ex);
	limit(RISO_USER_TX);
	ask_again(&ex->qp_base);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(qp->posted, 3);
	fake_grant(LIMITED, MB);
	prog_drive(p);
	fake_run(qp, UINT32_MAX);
	prog_expect(p, 3, IBV_WC_SUCCESS);
	shim_destroy_qp(&ex->qp_base);
	p->qp = plain;
}

/* Without a helper nothing waits for a limit; with one that comes later it does. */
static void no_helper(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp;

	fake_kernel.k.mode = RISO_USER_OPEN;
	limit(RISO_USER_TX);
	fake_kernel.thread_err = EAGAIN;
	post(p->qp, 1);
	post(p->qp, 2);
	assert_int_equal(p->qp->posted, 2);
	fake_kernel.thread_err = 0;
	qp = prog_make_qp(p, p->cq, 0);
	post(qp, 3);
	post(p->qp, 4);
	assert_int_equal(qp->posted, 0);
	assert_int_equal(p->qp->posted, 2);
	fake_grant(LIMITED, MB);
	prog_drive(p);
	fake_run(p->qp, UINT32_MAX);
	fake_run(qp, UINT32_MAX);
	expect_of(p, p->qp, 1);
	expect_of(p, p->qp, 2);
	expect_of(p, p->qp, 4);
	expect_of(p, qp, 3);
	shim_destroy_qp(&qp->ex.qp_base);
}

/* The program sleeps: the helper posts under grants, and all of it when the limit has ended. */
static void by_helper(void **state)
{
	struct prog *p = *state;

	fake_kernel.run_helper = true;
	fake_kernel.k.mode = RISO_USER_OPEN;
	limit(RISO_USER_TX);
	post(p->qp, 1);
	fake_grant_until(LIMITED, 3 * fake_cost(FAKE_CHUNK), UINT64_MAX);
	prog_wait_posted(p, 3);
	__atomic_store_n(&fake_kernel.path[RISO_USER_TX], RISO_USER_TX, __ATOMIC_RELEASE);
	__atomic_add_fetch(&fake_kernel.k.classes, 1, __ATOMIC_RELEASE);
	prog_wait_posted(p, 4);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	limit(RISO_USER_TX);
	post(p->qp, 2);
	assert_int_equal(p->qp->posted, 4);
	fake_kernel.wait_err = ENODEV;
	prog_wait_posted(p, 5);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 2, IBV_WC_SUCCESS);
}

static void forked_with_limit(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = flow_of(p->qp);
	int status;
	pid_t pid;

	fake_kernel.k.mode = RISO_USER_OPEN;
	limit(RISO_USER_TX);
	post(p->qp, 1);
	fake_grant(LIMITED, 2 * fake_cost(FAKE_CHUNK) + 1000);
	prog_drive(p);
	assert_int_equal(p->qp->posted, 2);
	pid = fork();
	if (!pid) {
		bool ok = shim_qp_is_direct(f);

		post(p->qp, 2);
		_exit(ok && p->qp->posted == 3 && !f->ctx->m->held ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fake_grant(LIMITED, MB);
	prog_drive(p);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	fake_check_books();
}

/* Who asks again and is told the same keeps its place in line. */
static void keeps_its_turn(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = prog_make_qp(p, p->cq, 0);

	post(p->qp, 1);
	post(other, 2);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK) / 2);
	prog_drive(p);
	ask_again(&p->qp->ex.qp_base);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 1);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(held_though_open),
	PROG_TEST(ends),
	PROG_TEST(grants_apart),
	PROG_TEST(comes_while_held),
	PROG_TEST(one_direction),
	PROG_TEST(small_waits),
	PROG_TEST(gone_with_limit),
	PROG_TEST(opens_in_post),
	PROG_TEST(closes_in_post),
	PROG_TEST(paid_in_part),
	PROG_TEST(paid_and_reset),
	PROG_TEST(line_is_long),
	PROG_TEST(waits_for_room),
	PROG_TEST(while_built),
	PROG_TEST(no_helper),
	PROG_TEST(by_helper),
	PROG_TEST(forked_with_limit),
	PROG_TEST(keeps_its_turn),
};

const struct prog_tests prog_path_tests = { tests, ARRAY_SIZE(tests) };
