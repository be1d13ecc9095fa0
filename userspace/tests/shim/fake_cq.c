// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CQs of the fake provider: completions, polling with and without a session, arming,
 * events, and sizes.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "coop.h"
#include "fake_cq.h"
#include "fake_qp.h"
#include "fake_verbs.h"

void fake_cqe(struct fake_qp *qp, uint32_t pos, enum ibv_wc_status status)
{
	struct fake_cq *cq = (struct fake_cq *)qp->ex.qp_base.send_cq;
	const struct ibv_send_wr *wr = &qp->sq[pos % FAKE_SQ].wr;
	struct fake_cqe *e = &cq->ring[cq->tail++ % FAKE_CQ];

	memset(e, 0, sizeof(*e));
	e->wc.wr_id = wr->wr_id;
	e->wc.status = status;
	e->wc.opcode = wr->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ :
		       wr->opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
	if (status != IBV_WC_SUCCESS)
		e->wc.opcode = 0xee;
	e->wc.byte_len = fake_len(wr);
	e->wc.qp_num = qp->ex.qp_base.qp_num;
	e->qp = qp;
	e->pos = pos;
	cq->events += cq->armed;
	cq->armed = false;
	if (cq->tail - cq->head > cq->most)
		cq->most = cq->tail - cq->head;
	if (cq->tail - cq->head > (uint32_t)cq->cq.cqe)
		cq->overflow = true;
}

static void fake_pop(struct fake_cq *cq, struct ibv_wc *wc)
{
	struct fake_cqe *e = &cq->ring[cq->head++ % FAKE_CQ];

	*wc = e->wc;
	/* What was posted before a reset frees nothing. */
	if (e->qp && e->qp->freed <= e->pos)
		e->qp->freed = e->pos + 1;
}

int fake_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;
	int n;

	fake_syscall();
	if (fake_verbs.runs_on)
		fake_run(fake_verbs.runs_on, UINT32_MAX);
	pthread_mutex_lock(&fake_verbs.lock);
	for (n = 0; n < num && cq->head != cq->tail; n++)
		fake_pop(cq, &wc[n]);
	pthread_mutex_unlock(&fake_verbs.lock);
	return n;
}

void fake_receive(struct fake_cq *cq)
{
	cq->ring[cq->tail++ % FAKE_CQ] = (struct fake_cqe) {
		.wc = { .wr_id = 5, .opcode = IBV_WC_RECV },
	};
}

/* The lock that a session keeps; it is no mutex, as the threads take turns. */
static void fake_wait_session(struct fake_cq *cq)
{
	uint32_t i;

	for (i = 0; fake_verbs.keeps_lock && cq->open && !fake_verbs.deadlock; i++) {
		fake_verbs.deadlock = i == 100000;
		coop_yield();
	}
}

/* What was not polled yet raises an event at once. */
int fake_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	fake_syscall();
	fake_wait_session(cq);
	pthread_mutex_lock(&fake_verbs.lock);
	cq->solicited = solicited_only;
	cq->armed = cq->head == cq->tail;
	cq->events += !cq->armed;
	pthread_mutex_unlock(&fake_verbs.lock);
	return 0;
}

/* Where there are no more it ends the session, as that of rxe does. */
static int fake_next_poll(struct ibv_cq_ex *ibcq)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;
	struct ibv_wc wc;
	int ret = ENOENT;

	pthread_mutex_lock(&fake_verbs.lock);
	assert_true(cq->open);
	cq->open = fake_verbs.keeps_lock || cq->head != cq->tail;
	if (cq->head != cq->tail) {
		fake_pop(cq, &wc);
		cq->cq.wr_id = wc.wr_id;
		cq->cq.status = wc.status;
		ret = 0;
	}
	pthread_mutex_unlock(&fake_verbs.lock);
	return ret;
}

static int fake_start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	(void)attr;
	fake_wait_session(cq);
	assert_true(!cq->open || fake_verbs.deadlock);
	cq->open = true;
	if (!fake_next_poll(ibcq))
		return 0;
	cq->open = false;
	return ENOENT;
}

static void fake_end_poll(struct ibv_cq_ex *ibcq)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	assert_true(cq->open);
	cq->open = false;
}

static const struct ibv_wc *fake_shown(struct ibv_cq_ex *ibcq)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	return &cq->ring[(cq->head - 1) % FAKE_CQ].wc;
}

static enum ibv_wc_opcode fake_read_opcode(struct ibv_cq_ex *cq)
{
	return fake_shown(cq)->opcode;
}

static uint32_t fake_read_vendor_err(struct ibv_cq_ex *cq)
{
	return fake_shown(cq)->vendor_err;
}

static uint32_t fake_read_byte_len(struct ibv_cq_ex *cq)
{
	return fake_shown(cq)->byte_len;
}

static uint32_t fake_read_qp_num(struct ibv_cq_ex *cq)
{
	return fake_shown(cq)->qp_num;
}

struct ibv_cq *fake_create_cq(struct ibv_context *context, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq;

	(void)cq_context;
	(void)channel;
	(void)vector;
	if (cqe > fake_verbs.max_cqe)
		return NULL;
	cq = fake_verbs.reused ?: calloc(1, sizeof(*cq));
	cq->cq.context = context;
	cq->cq.cqe = cqe;
	return ibv_cq_ex_to_cq(&cq->cq);
}

void fake_fill_newer(struct ibv_cq_ex *cq)
{
	size_t from = offsetof(struct ibv_cq_ex, read_cvlan);

	memset((char *)cq + from, 0xa5, sizeof(*cq) - from);
}

struct ibv_cq_ex *fake_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct fake_cq *cq;

	fake_verbs.cq_asked = *attr;
	assert_false(attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	cq = (struct fake_cq *)fake_create_cq(context, attr->cqe, NULL, NULL, 0);
	cq->cq.start_poll = fake_start_poll;
	cq->cq.next_poll = fake_next_poll;
	cq->cq.end_poll = fake_end_poll;
	cq->cq.read_opcode = fake_read_opcode;
	cq->cq.read_vendor_err = fake_read_vendor_err;
	cq->cq.read_byte_len = fake_read_byte_len;
	if (attr->wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq->cq.read_qp_num = fake_read_qp_num;
	if (fake_verbs.older)
		fake_fill_newer(&cq->cq);
	return &cq->cq;
}

int fake_resize_cq(struct ibv_cq *cq, int cqe)
{
	fake_syscall();
	fake_wait_session((struct fake_cq *)cq);
	if (fake_verbs.no_resize || cqe > fake_verbs.max_cqe)
		return EINVAL;
	cq->cqe = cqe;
	if (fake_verbs.at_resized)
		fake_verbs.at_resized();
	return 0;
}

/* Of an empty channel nobody may ask here. A byte in its file is an event. */
int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		      void **cq_context)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct fake_cq *from = fake_verbs.from;
	char event;

	if (poll(&p, 1, 0) > 0)
		assert_int_equal(read(channel->fd, &event, 1), 1);
	if (from->taken == from->events && fake_verbs.at_sleep)
		fake_verbs.at_sleep();
	assert_true(from->taken < from->events);
	from->taken++;
	*cq = ibv_cq_ex_to_cq(&from->cq);
	*cq_context = NULL;
	return 0;
}

void fake_ack_cq_events(struct ibv_cq *cq, unsigned int num)
{
	((struct fake_cq *)cq)->acked += num;
}

int fake_destroy_cq(struct ibv_cq *cq)
{
	if (fake_verbs.at_destroy)
		return fake_verbs.at_destroy(cq);
	free(cq);
	return 0;
}
