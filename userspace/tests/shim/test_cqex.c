// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Extended CQs, and their sessions from ibv_start_poll() to ibv_end_poll().
 */
#include <errno.h>

#include "prog.h"
#include "tests.h"

/* It asks an extended CQ for nothing, and then for all that ibv_poll_cq() tells. */
static void polled_plain(void **state)
{
	struct prog *p = *state;
	struct ibv_cq_init_attr_ex init = { .cqe = PROG_DEPTH };
	int i;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = (struct fake_cq *)ibv_create_cq_ex(fake_ctx, &init);
	assert_int_equal(init.wc_flags, 0);
	p->qp = prog_make_qp(p, p->cq, 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, i, 2 * FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		fake_grant(RISO_USER_RX, 2 * fake_cost(FAKE_CHUNK));
		prog_drive(p);
		fake_run(p->qp, UINT32_MAX);
	}
	/* Looks for completions before it is held */
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, 2, 2 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	for (i = 0; i < 2; i++)
		prog_expect(p, i, IBV_WC_SUCCESS);
}

/* The provider is asked for what the program asks for, and for no more than that says. */
static void asked_for(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel = {};
	struct ibv_pd pd = {};
	struct ibv_cq_init_attr_ex init = {
		.cqe = PROG_DEPTH,
		.cq_context = p,
		.channel = &channel,
		.comp_vector = 3,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = &pd,
	};
	const struct ibv_cq_init_attr_ex *asked = &fake_verbs.cq_asked;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = (struct fake_cq *)ibv_create_cq_ex(fake_ctx, &init);
	assert_ptr_equal(asked->cq_context, p);
	assert_ptr_equal(asked->channel, &channel);
	assert_int_equal(asked->comp_vector, 3);
	assert_int_equal(asked->comp_mask, IBV_CQ_INIT_ATTR_MASK_PD);
	assert_ptr_equal(asked->parent_domain, &pd);
	assert_int_equal(shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq)), 0);
	init.comp_mask = 0;
	p->cq = (struct fake_cq *)ibv_create_cq_ex(fake_ctx, &init);
	assert_ptr_equal(asked->cq_context, p);
	assert_null(asked->parent_domain);
}

static void extended_cq(void **state)
{
	struct prog *p = *state;
	/* Nobody can write there. */
	static const struct ibv_cq_init_attr_ex init = {
		.cqe = PROG_DEPTH,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *cq;
	uint64_t id = 10;
	uint32_t i;

	fake_ctx = shim_open_device(&fake_verbs.device);
	cq = ibv_create_cq_ex(fake_ctx, (void *)&init);
	p->cq = (struct fake_cq *)cq;
	/* Without a flow it is the provider's own session. */
	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	p->cq->tail++;
	p->cq->ring[0].wc.wr_id = 3;
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_true(p->cq->open);
	assert_int_equal(cq->wr_id, 3);
	/* A flow comes meanwhile. */
	p->qp = prog_make_qp(p, p->cq, 0);
	fake_kernel.k.mode = RISO_USER_OPEN;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 4, 8, IBV_SEND_SIGNALED), 0);
	fake_kernel.k.mode = RISO_USER_PACED;
	fake_run(p->qp, 1);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 4);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_false(p->cq->open);

	for (i = 0; i < 3; i++)
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_READ, 10 + i,
					   5 * FAKE_CHUNK, IBV_SEND_SIGNALED), 0);
	for (i = 0; id < 13 && i < 1000; i++) {
		fake_grant(RISO_USER_RX, fake_cost(FAKE_CHUNK));
		fake_run(p->qp, UINT32_MAX);
		if (ibv_start_poll(cq, &attr))
			continue;
		do {
			assert_int_equal(cq->wr_id, id++);
			assert_int_equal(cq->status, IBV_WC_SUCCESS);
			assert_int_equal(ibv_wc_read_byte_len(cq), 5 * FAKE_CHUNK);
			assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RDMA_READ);
			/* While it is open, posting reaps nothing. */
			assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, 0), 0);
		} while (!ibv_next_poll(cq));
		ibv_end_poll(cq);
	}
	assert_int_equal(id, 13);

	/* What was seen there makes room for more. */
	fake_kernel.k.mode = RISO_USER_OPEN;
	for (id = 0; id < 3 * PROG_DEPTH; id++) {
		assert_int_equal(prog_post(p->qp, IBV_WR_SEND, id, 8,
					   IBV_SEND_SIGNALED), 0);
		fake_run(p->qp, UINT32_MAX);
		assert_int_equal(ibv_start_poll(cq, &attr), 0);
		assert_int_equal(cq->wr_id, id);
		ibv_end_poll(cq);
	}
}

/*
 * A queue pair that comes while the provider has its lock of the CQ for a session is
 * governed with the entries that there are. The next one brings more.
 */
static void created_in_session(void **state)
{
	enum { QPS = 7 };
	struct prog *p = *state;
	struct ibv_cq_init_attr_ex init = { .cqe = PROG_DEPTH };
	struct ibv_poll_cq_attr attr = {};
	struct fake_qp *qp[QPS];
	struct ibv_cq_ex *cq;
	int i, made;

	fake_kernel.class_id = RISO_CLASS_LATENCY;
	fake_ctx = shim_open_device(&fake_verbs.device);
	cq = ibv_create_cq_ex(fake_ctx, &init);
	p->cq = (struct fake_cq *)cq;
	made = cq->cqe;
	fake_receive(p->cq);
	fake_verbs.keeps_lock = true;
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_true(p->cq->open);
	for (i = 0; i < QPS - 1; i++) {
		qp[i] = prog_make_qp(p, p->cq, 0);
		assert_non_null(shim_map_find(&shim_qps, qp[i]));
	}
	assert_false(fake_verbs.deadlock);
	assert_int_equal(cq->cqe, made);
	ibv_end_poll(cq);
	qp[i] = prog_make_qp(p, p->cq, 0);
	assert_int_equal(cq->cqe, PROG_DEPTH + QPS * SHIM_SLOTS);
	for (i = 0; i < QPS; i++)
		shim_destroy_qp(&qp[i]->ex.qp_base);
}

/* An old libibverbs has no place for what is newer: the provider's own begins there. */
static void older(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = PROG_DEPTH };
	struct ibv_poll_cq_attr attr = {};
	struct prog *p = *state;
	struct ibv_cq_ex own, *cq;
	size_t from = offsetof(struct ibv_cq_ex, read_cvlan);

	fake_verbs.older = true;
	fake_ctx = shim_open_device(&fake_verbs.device);
	cq = ibv_create_cq_ex(fake_ctx, &init);
	p->cq = (struct fake_cq *)cq;
	fake_fill_newer(&own);
	assert_memory_equal((char *)cq + from, (char *)&own + from, sizeof(own) - from);
	/* The shim reads nothing there either. */
	p->qp = prog_make_qp(p, p->cq, 0);
	fake_kernel.k.mode = RISO_USER_OPEN;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 4, 8, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, 1);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(cq->wr_id, 4);
	ibv_end_poll(cq);
}

/* Another thread polls, and the provider says that the CQ is in use. */
static int poll_and_refuse(struct ibv_cq *cq)
{
	struct ibv_poll_cq_attr attr = {};

	assert_int_equal(ibv_start_poll((struct ibv_cq_ex *)cq, &attr), ENOENT);
	return EBUSY;
}

static void polled_while_refused(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = PROG_DEPTH };
	struct prog *p = *state;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = (struct fake_cq *)ibv_create_cq_ex(fake_ctx, &init);
	fake_verbs.at_destroy = poll_and_refuse;
	assert_int_equal(shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq)), EBUSY);
	fake_verbs.at_destroy = NULL;
	assert_non_null(shim_map_find(&shim_cqs, p->cq));
}

/* What says more than the shim knows is left alone, and so is what completes there. */
static void newer(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = PROG_DEPTH, .comp_mask = 1 << 20 };
	struct prog *p = *state;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = (struct fake_cq *)ibv_create_cq_ex(fake_ctx, &init);
	assert_int_equal(p->cq->cq.cqe, PROG_DEPTH);
	p->qp = prog_make_qp(p, p->cq, 0);
	assert_null(shim_map_find(&shim_qps, p->qp));
	assert_int_equal(fake_kernel.reason, RISO_REASON_SHIM_LIMIT);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST_EMPTY(asked_for),
	PROG_TEST_EMPTY(extended_cq),
	PROG_TEST_EMPTY(polled_plain),
	PROG_TEST_EMPTY(created_in_session),
	PROG_TEST_EMPTY(older),
	PROG_TEST_EMPTY(newer),
	PROG_TEST_EMPTY(polled_while_refused),
};

const struct prog_tests prog_cqex_tests = { tests, ARRAY_SIZE(tests) };
