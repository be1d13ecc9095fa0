// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Processes that fork, also in the middle of a call, and threads that are cancelled.
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "poller.h"
#include "prog.h"
#include "reap.h"
#include "tests.h"

/* A child goes on as though there were no shim; the parent notices nothing. */
static void forked(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	uint64_t want, id;
	int status;
	pid_t pid;

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	want = fake_kernel.u.path[0].want;
	pid = fork();
	if (!pid) {
		bool ok = shim_qp_is_direct(f) && fake_kernel.closed == fake_kernel.opened &&
			  f->ctx->m->kpage != &fake_kernel.k;

		prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, MB, IBV_SEND_SIGNALED);
		id = p->qp->sq[0].wr.wr_id;
		ok = ok && p->qp->posted == 1 && id == 2 &&
		     fake_kernel.u.path[0].want == want;
		/* What it opens anew is governed; here it has the address of the first. */
		shim_map_del(&shim_ctxs, fake_ctx);
		fake_ctx = shim_open_device(&fake_verbs.device);
		prog_make_qp(p, prog_make_cq(2 * PROG_DEPTH), 0);
		_exit(ok && fake_kernel.attached == 2 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fake_kernel.u.path[0].want, want);
	prog_pump(p, 1, 1);
}

/* What a child tells the device of a queue pair */
static int count_states(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	fake_verbs.calls += !!(mask & IBV_QP_STATE);
	return fake_modify_qp(qp, attr, mask);
}

/* A child closes the device, and moves no queue pair of the parent to ERR. */
static void close_in_child(void)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		fake_verbs.calls = 0;
		shim_real.modify_qp = count_states;
		_exit(shim_close_device(fake_ctx) || fake_verbs.calls);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* It may do so in the middle of a message, whose first piece has completed. */
static void closed_by_child_midway(void **state)
{
	struct prog *p = *state;

	fake_kernel.k.window = 2 * fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 16 * fake_cost(FAKE_CHUNK));
	prog_arm(p);
	prog_expect_none(p);
	fake_run(p->qp, 1);
	prog_help(p);
	close_in_child();
	prog_pump(p, 1, 1);
}

/*
 * A child may close what it does not need, also while the parent sleeps and has completions
 * that wait, and pieces out. It moves no queue pair of the parent to ERR.
 */
static void closed_by_child(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);

	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 16 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	prog_arm(p);
	fake_run(p->qp, 1);
	shim_lock(&c->ctx->m->lock);
	shim_comp_reap(c);
	shim_unlock(&c->ctx->m->lock);
	assert_int_not_equal(c->soft_head, c->soft_tail);
	close_in_child();
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_pump(p, 2, 1);
}

static bool is_any(void *value, void *arg)
{
	(void)value;
	(void)arg;
	return true;
}

/* All is as it was when the call was interrupted. */
static bool is_untouched(void)
{
	struct shim_ctx *c = shim_map_find(&shim_ctxs, fake_ctx);
	struct shim_cq *cq = shim_map_search(&shim_cqs, is_any, NULL);

	if (c->m->fd < 0)
		return false;
	return prog_is_locked(&c->m->lock) || prog_is_locked(&cq->resize) ||
	       prog_is_locked(&shim_class_lock);
}

/* A signal handler that comes in the middle of a call may start another program. */
static bool looks, was_free;

/* A handler of a program may wait for a lock under which another of its threads posts. */
static void prepare_program(void)
{
	struct shim_ctx *c = shim_map_find(&shim_ctxs, fake_ctx);

	if (looks)
		was_free = !prog_is_locked(&c->m->lock) && !prog_is_locked(&shim_class_lock);
}

void prog_handle_forks(void)
{
	pthread_atfork(prepare_program, NULL, NULL);
}

static void forked_after_the_program(void **state)
{
	pid_t pid;

	(void)state;
	looks = true;
	pid = fork();
	if (!pid)
		_exit(0);
	looks = false;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(was_free);
}

static void fork_inside(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(is_untouched() ? 3 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_true(is_untouched());
	fake_verbs.calls++;
}

static void forked_inside(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	int status;
	pid_t pid;

	fake_kernel.k.mode = RISO_USER_OPEN;
	fake_verbs.calls = 0;
	fake_verbs.at_call = fork_inside;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq), 3 * PROG_DEPTH), 0);
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_BANDWIDTH), 0);
	assert_int_equal(fake_verbs.calls, 3);
	fake_verbs.at_call = NULL;
	/* And one that comes elsewhere is not taken for such a one. */
	pid = fork();
	if (!pid)
		_exit(shim_qp_is_direct(f) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

/* A signal handler that calls in the middle of a call is refused, and does not wait for ever. */
static struct prog *handled;

static void call_inside(void)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(&handled->cq->cq);
	struct ibv_wc wc;

	assert_int_equal(prog_post(handled->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), EDEADLK);
	assert_int_equal(prog_poll_one(handled, &wc), -EDEADLK);
	assert_int_equal(ibv_req_notify_cq(cq, 0), EDEADLK);
	assert_true(shim_is_nested());
	fake_verbs.calls++;
}

static void called_inside(void **state)
{
	struct prog *p = *state;

	fake_verbs.calls = 0;
	fake_verbs.at_call = call_inside;
	handled = p;
	fake_grant(RISO_USER_TX, MB);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	fake_verbs.at_call = NULL;
	assert_true(fake_verbs.calls > 0);
	assert_false(shim_is_nested());
	prog_pump(p, 1, 1);
}

/* A child may complete what its parent began, and finds its own wr_id in the completion. */
static void finished_by_child(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp = prog_make_qp_ex(p);
	struct ibv_wc wc = {};
	int status;
	pid_t pid;

	ibv_wr_start(&qp->ex);
	qp->ex.wr_id = 7;
	qp->ex.wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(&qp->ex);
	pid = fork();
	if (!pid) {
		bool ok = !ibv_wr_complete(&qp->ex) && qp->posted == 1;

		fake_run(qp, 1);
		ok = ok && prog_poll_one(p, &wc) == 1 && wc.wr_id == 7;
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ibv_wr_abort(&qp->ex);
	shim_destroy_qp(&qp->ex.qp_base);
	assert_int_equal(status, 0);
}

static bool cancelable(void)
{
	int now;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &now);
	pthread_setcancelstate(now, NULL);
	return now == PTHREAD_CANCEL_ENABLE;
}

static void count_kept(void)
{
	fake_verbs.calls += !cancelable();
}

/* Who is cancelled leaves nothing locked: that waits until the call is over. */
static void kept_from_cancel(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp = prog_make_qp_ex(p);

	fake_kernel.k.mode = RISO_USER_OPEN;
	fake_verbs.calls = 0;
	fake_verbs.at_call = count_kept;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake_verbs.calls, 1);
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq), 3 * PROG_DEPTH), 0);
	assert_int_equal(fake_verbs.calls, 2);
	fake_kernel.class_id = RISO_CLASS_LATENCY;
	assert_int_equal(shim_set_class(&qp->ex.qp_base, RISO_CLASS_LATENCY), 0);
	assert_int_equal(fake_verbs.calls, 3);
	/* Straight to the provider, under the lock that is held from the start. */
	ibv_wr_start(&qp->ex);
	assert_true(cancelable());
	ibv_wr_send(&qp->ex);
	assert_int_equal(ibv_wr_complete(&qp->ex), 0);
	assert_int_equal(fake_verbs.calls, 4);
	assert_true(cancelable());
	shim_destroy_qp(&qp->ex.qp_base);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(forked),
	PROG_TEST(closed_by_child),
	PROG_TEST(closed_by_child_midway),
	PROG_TEST(forked_after_the_program),
	PROG_TEST(forked_inside),
	PROG_TEST(called_inside),
	PROG_TEST(finished_by_child),
	PROG_TEST(kept_from_cancel),
};

const struct prog_tests prog_fork_tests = { tests, ARRAY_SIZE(tests) };
