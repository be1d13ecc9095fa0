// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the test programs share, from opening the device to polling for completions.
 */
#include <stdlib.h>
#include <unistd.h>

#include "guard.h"
#include "helper.h"
#include "member.h"
#include "post.h"
#include "prog.h"
#include "reap.h"

/* Seconds after which the end of a test is taken for one that never comes */
enum { TEARDOWN = 60 };

uint8_t *prog_local, *prog_remote;

/* For the inline functions of verbs.h. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return shim_create_qp(pd, attr);
}

struct fake_cq *prog_make_cq(int cqe)
{
	return (struct fake_cq *)shim_create_cq(fake_ctx, cqe, NULL, NULL, 0);
}

struct fake_qp *prog_make_qp(struct prog *p, struct fake_cq *cq, int sig_all)
{
	struct ibv_pd pd = { .context = fake_ctx };
	struct ibv_qp_attr attr = {
		.path_mtu = IBV_MTU_1024,
		.max_rd_atomic = 4,
		.qp_state = IBV_QPS_RTS,
	};
	struct ibv_qp *qp;

	p->attr = (struct ibv_qp_init_attr) {
		.send_cq = ibv_cq_ex_to_cq(&cq->cq),
		.recv_cq = ibv_cq_ex_to_cq(&cq->cq),
		.cap = {
			.max_send_wr = PROG_DEPTH,
			.max_send_sge = FAKE_SGES,
			.max_inline_data = FAKE_INLINE,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = sig_all,
	};
	qp = shim_create_qp(&pd, &p->attr);
	if (!qp)
		return NULL;
	assert_int_equal(shim_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU |
					IBV_QP_MAX_QP_RD_ATOMIC), 0);
	return (struct fake_qp *)qp;
}

int prog_setup_as(struct prog *p, int sig_all)
{
	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	p->qp = prog_make_qp(p, p->cq, sig_all);
	return p->qp ? 0 : -1;
}

static void reset_fake(void)
{
	fake_verbs_reset();
	fake_kernel_reset();
	unsetenv("RDMA_ISOLATE_SPIN_US");
}

int prog_setup(void **state)
{
	struct prog *p = calloc(1, sizeof(*p));

	*state = p;
	reset_fake();
	return prog_setup_as(p, 0);
}

int prog_setup_sig_all(void **state)
{
	struct prog *p = calloc(1, sizeof(*p));

	*state = p;
	reset_fake();
	return prog_setup_as(p, 1);
}

int prog_setup_empty(void **state)
{
	*state = calloc(1, sizeof(struct prog));
	reset_fake();
	return 0;
}

int prog_teardown(void **state)
{
	struct prog *p = *state;
	bool overflow = p->cq && p->cq->overflow;
	int i;

	/* A test that failed in a call of the provider has left its locks. */
	alarm(TEARDOWN);
	if (p->qp)
		shim_destroy_qp(&p->qp->ex.qp_base);
	if (p->cq)
		shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
	if (fake_ctx)
		shim_close_device(fake_ctx);
	fake_ctx = NULL;
	free(p);
	while (fake_kernel.helpers)
		fake_kernel.helper(fake_kernel.helps[--fake_kernel.helpers]);
	/* The helper may be the last to let go. */
	for (i = 0; i < 10000; i++) {
		if (__atomic_load_n(&fake_kernel.closed, __ATOMIC_ACQUIRE) ==
		    fake_kernel.opened)
			break;
		usleep(100);
	}
	alarm(0);
	assert_int_equal(fake_kernel.opened, fake_kernel.closed);
	return overflow ? -1 : 0;
}

int prog_post(struct fake_qp *qp, int opcode, uint64_t wr_id, uint32_t len,
	      unsigned int flags)
{
	struct ibv_sge sge = { .addr = (uintptr_t)prog_local, .length = len };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = flags,
		.wr.rdma.remote_addr = (uintptr_t)prog_remote,
	};
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(&qp->ex.qp_base, &wr, &bad);

	if (err)
		assert_ptr_equal(bad, &wr);
	return err;
}

int prog_poll_one(struct prog *p, struct ibv_wc *wc)
{
	return ibv_poll_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1, wc);
}

/* What the helper does now and then. */
void prog_drive(struct prog *p)
{
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);

	shim_lock(&f->ctx->m->lock);
	shim_queue_drive(f->ctx->m);
	shim_unlock_and_drive(f->ctx->m);
}

/* A round of the helper that looks at the program's CQ */
void prog_help(struct prog *p)
{
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);

	shim_lock(&f->ctx->m->lock);
	f->cq->unseen++;
	shim_comp_reap(f->cq);
	shim_queue_drive(f->ctx->m);
	shim_unlock_and_drive(f->ctx->m);
}

/* The kernel gives it what it asks for. */
void prog_choose(struct prog *p, uint32_t class_id)
{
	fake_kernel.class_id = class_id;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, class_id), 0);
}

void prog_arm(struct prog *p)
{
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 0), 0);
}

void prog_expect(struct prog *p, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(prog_poll_one(p, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qp_num, p->qp->ex.qp_base.qp_num);
}

void prog_expect_none(struct prog *p)
{
	struct ibv_wc wc;

	assert_int_equal(prog_poll_one(p, &wc), 0);
}

/* Grant, run and poll until @num completions have come, in order from @wr_id on. */
void prog_pump(struct prog *p, uint64_t wr_id, uint32_t num)
{
	struct ibv_wc wc;
	uint32_t rounds;

	for (rounds = 0; num && rounds < 100000; rounds++) {
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		fake_grant(RISO_USER_RX, fake_cost(FAKE_CHUNK));
		fake_run(p->qp, UINT32_MAX);
		while (prog_poll_one(p, &wc)) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, wr_id++);
			num--;
		}
		fake_check_books();
		fake_kernel.now += 1000;
	}
	assert_int_equal(num, 0);
}

void prog_fill(uint8_t *data)
{
	uint32_t i;

	for (i = 0; i <= PROG_LARGEST; i++)
		data[i] = i * 2654435761U >> 24;
}

void prog_modify(struct prog *p, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = { .qp_state = to };

	assert_int_equal(shim_modify_qp(&p->qp->ex.qp_base, &attr, IBV_QP_STATE), 0);
}

bool prog_is_locked(pthread_mutex_t *lock)
{
	if (pthread_mutex_trylock(lock))
		return true;
	pthread_mutex_unlock(lock);
	return false;
}

void prog_wait_posted(struct prog *p, uint32_t num)
{
	uint32_t posted = 0, i;

	for (i = 0; i < 10000 && posted != num; i++) {
		usleep(100);
		pthread_mutex_lock(&fake_verbs.lock);
		posted = p->qp->posted;
		pthread_mutex_unlock(&fake_verbs.lock);
	}
	assert_int_equal(posted, num);
}

void prog_grow_cq(struct fake_cq *cq, int asked)
{
	cq->cq.cqe = asked;
}

/* From here on only who polls finds what has completed. */
void prog_reap_nothing(struct prog *p)
{
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1), 0);
	prog_expect_none(p);
}

struct fake_qp *prog_make_qp_ex(struct prog *p)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.recv_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.cap = {
			.max_send_wr = PROG_DEPTH,
			.max_send_sge = FAKE_SGES,
			.max_inline_data = FAKE_INLINE,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(fake_ctx, &attr);
	struct ibv_qp_attr mod = { .path_mtu = IBV_MTU_1024 };

	assert_non_null(qp);
	assert_int_equal(attr.cap.max_send_wr, PROG_DEPTH);
	shim_modify_qp(qp, &mod, IBV_QP_PATH_MTU);
	return (struct fake_qp *)qp;
}

int prog_group_setup(void **state)
{
	(void)state;
	fake_verbs_install();
	fake_kernel_install();
	prog_local = calloc(1, PROG_LARGEST + 1);
	prog_remote = calloc(1, PROG_LARGEST + 1);
	return prog_local && prog_remote ? 0 : -1;
}
