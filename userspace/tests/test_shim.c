// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The verbs shim between a program and a provider that exist here only: the provider
 * keeps its queues in memory, carries out what it is told to, in order, and is as
 * strict as a device about its depths; the kernel's page is written by the tests.
 *
 * With an argument, only the tests whose names match it are run.
 *
 * The helper threads are created for the tests that are about them. In others each is
 * called at the end, when it has nothing to do but to free the member.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "coop.h"
#include "random.h"
#include "shim.h"

enum {
	KB = 1024,
	MB = 1024 * KB,
	MTU = 1024,
	CHUNK = 4 * KB,
	HEADER = 58,
	LARGEST = 3 * MB + 7,
	DEPTH = 16,
	SGES = 4,
	INLINE = 128,
	FAKE_SQ = 4096,
	FAKE_CQ = 4096,
	MSEC = 1000000,
};

/* A work request in the provider's send queue. */
struct fake_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge[SGES];
	uint8_t data[INLINE];
};

struct fake_qp {
	struct ibv_qp_ex ex;
	struct ibv_qp_init_attr init;
	struct fake_wr sq[FAKE_SQ];
	uint32_t posted, run, freed, depth;
	uint32_t doorbells;
	uint32_t fail_at;	/* number of the work request that fails */
	bool err;
	int refuse;		/* error of the next post */
	uint32_t refuse_from;	/* or of those after so many */
	bool refuse_len;	/* of those with a length only */
	struct ibv_send_wr built[FAKE_SQ];
	uint32_t num_built;
};

struct fake_cqe {
	struct ibv_wc wc;
	struct fake_qp *qp;
	uint32_t pos;
};

struct fake_cq {
	struct ibv_cq_ex cq;
	struct fake_cqe ring[FAKE_CQ];
	uint32_t head, tail, most;
	bool open, overflow;
	bool armed;
	uint32_t events, taken, acked;
};

static struct {
	struct verbs_context v, second;
	struct ibv_device device;
	struct ibv_pd domain;
	struct ibv_td *td;	/* that it was asked for with */
	pthread_mutex_t lock;
	int max_qp_wr, max_cqe, no_resize;
	uint32_t next_qpn;
	uint64_t now;
	int clocks;
	union {
		struct riso_kpage k;
		char kroom[4096];
	};
	union {
		struct riso_upage u;
		char uroom[4096];
	};
	uint32_t class_id;
	uint32_t wish;		/* what was asked for last */
	int open_err, attach_err, map_err, register_err, wait_err;
	int opened, closed, waits, attached;
	const char *now_called;	/* where libibverbs has the name of before */
	const char *other_called;	/* uverbs1 */
	char attached_to[64];	/* name of the device that was attached last */
	int registers;
	uint32_t inline_given, depth_given;
	uint32_t reported;	/* queue pair and reason of the last report */
	uint32_t reason;
	uint64_t granted[RISO_USER_DIRS];
	uint32_t timeout;	/* of the last wait that had one */
	void *(*helper)(void *arg);
	void *helps[4];		/* members with a helper that is run by hand */
	uint32_t helpers;
	bool run_helper;
	int begun, ended;	/* of those that run */
	size_t least_stack;
	int inherits;		/* the policy of who creates it */
	int thread_err;
	struct fake_cq *from;	/* of the next event */
	void (*at_sleep)(void);	/* where there is none */
	void (*at_call)(void);	/* in what may make a system call */
	void (*at_resized)(void); /* when a CQ has its new size, before the call returns */
	bool keeps_lock;	/* from start_poll to end_poll, as that of irdma */
	bool deadlock;
	int calls;
	bool no_barrier;	/* membarrier() is refused */
	bool names_none;	/* of a chain that it refuses */
	uint32_t given;		/* SENDs of the queue pair that was torn down last */
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct ibv_context *ctx;
static uint8_t *local, *remote;

static void fake_syscall(void)
{
	if (fake.at_call)
		fake.at_call();
}

/* The provider. */

static uint32_t fake_len(const struct ibv_send_wr *wr)
{
	uint32_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len;
}

static int fake_post_one(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	struct fake_wr *w = &qp->sq[qp->posted % FAKE_SQ];
	uint8_t *data = w->data;
	int i;

	if (qp->refuse && qp->posted >= qp->refuse_from &&
	    (!qp->refuse_len || fake_len(wr)))
		return qp->refuse;
	if (qp->posted - qp->freed >= qp->depth)
		return ENOMEM;
	if (wr->num_sge > SGES)
		return EINVAL;
	w->wr = *wr;
	w->wr.sg_list = w->sge;
	for (i = 0; i < wr->num_sge; i++) {
		w->sge[i] = wr->sg_list[i];
		if (!(wr->send_flags & IBV_SEND_INLINE))
			continue;
		assert_true(data + w->sge[i].length <= w->data + INLINE);
		memcpy(data, (void *)(uintptr_t)w->sge[i].addr, w->sge[i].length);
		w->sge[i].addr = (uintptr_t)data;
		data += w->sge[i].length;
	}
	qp->posted++;
	return 0;
}

/* The queue pair whose work requests are carried out as soon as anybody polls */
static struct fake_qp *runs_on;

static int fake_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad_wr)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;
	int err = 0;

	fake_syscall();
	pthread_mutex_lock(&fake.lock);
	qp->doorbells++;
	for (; wr; wr = wr->next) {
		err = fake_post_one(qp, wr);
		if (err) {
			*bad_wr = fake.names_none ? NULL : wr;
			break;
		}
	}
	pthread_mutex_unlock(&fake.lock);
	return err;
}

static int fake_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
			struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw.mw = mw,
		.bind_mw.bind_info = bind->bind_info,
	};
	int err;

	pthread_mutex_lock(&fake.lock);
	err = fake_post_one((struct fake_qp *)ibqp, &wr);
	pthread_mutex_unlock(&fake.lock);
	return err;
}

static void fake_cqe(struct fake_qp *qp, uint32_t pos, enum ibv_wc_status status)
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

static void fake_carry_out(const struct ibv_send_wr *wr)
{
	uint8_t *at = (uint8_t *)(uintptr_t)wr->wr.rdma.remote_addr;
	int i;

	if (wr->opcode != IBV_WR_RDMA_WRITE && wr->opcode != IBV_WR_RDMA_READ)
		return;
	for (i = 0; i < wr->num_sge; i++) {
		void *mem = (void *)(uintptr_t)wr->sg_list[i].addr;

		if (wr->opcode == IBV_WR_RDMA_READ)
			memcpy(mem, at, wr->sg_list[i].length);
		else
			memcpy(at, mem, wr->sg_list[i].length);
		at += wr->sg_list[i].length;
	}
}

/* Carry out up to @num work requests. */
static uint32_t fake_run(struct fake_qp *qp, uint32_t num)
{
	uint32_t n;

	pthread_mutex_lock(&fake.lock);
	for (n = 0; n < num && qp->run != qp->posted; n++) {
		const struct ibv_send_wr *wr = &qp->sq[qp->run % FAKE_SQ].wr;

		if (qp->err) {
			fake_cqe(qp, qp->run, IBV_WC_WR_FLUSH_ERR);
		} else if (qp->run == qp->fail_at) {
			fake_cqe(qp, qp->run, IBV_WC_REM_ACCESS_ERR);
			qp->err = true;
		} else {
			fake_carry_out(wr);
			if ((wr->send_flags & IBV_SEND_SIGNALED) ||
			    qp->init.sq_sig_all)
				fake_cqe(qp, qp->run, IBV_WC_SUCCESS);
		}
		qp->run++;
	}
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static void fake_pop(struct fake_cq *cq, struct ibv_wc *wc)
{
	struct fake_cqe *e = &cq->ring[cq->head++ % FAKE_CQ];

	*wc = e->wc;
	/* What was posted before a reset frees nothing. */
	if (e->qp && e->qp->freed <= e->pos)
		e->qp->freed = e->pos + 1;
}

static int fake_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;
	int n;

	fake_syscall();
	if (runs_on)
		fake_run(runs_on, UINT32_MAX);
	pthread_mutex_lock(&fake.lock);
	for (n = 0; n < num && cq->head != cq->tail; n++)
		fake_pop(cq, &wc[n]);
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static void fake_receive(struct fake_cq *cq)
{
	cq->ring[cq->tail++ % FAKE_CQ] = (struct fake_cqe) {
		.wc = { .wr_id = 5, .opcode = IBV_WC_RECV },
	};
}

/* The lock that a session keeps; it is no mutex, as the threads take turns. */
static void fake_wait_session(struct fake_cq *cq)
{
	uint32_t i;

	for (i = 0; fake.keeps_lock && cq->open && !fake.deadlock; i++) {
		fake.deadlock = i == 100000;
		coop_yield();
	}
}

/* What was not polled yet raises an event at once. */
static int fake_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	(void)solicited_only;
	fake_syscall();
	fake_wait_session(cq);
	pthread_mutex_lock(&fake.lock);
	cq->armed = cq->head == cq->tail;
	cq->events += !cq->armed;
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

/* Where there are no more it ends the session, as that of rxe does. */
static int fake_next_poll(struct ibv_cq_ex *ibcq)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;
	struct ibv_wc wc;
	int ret = ENOENT;

	pthread_mutex_lock(&fake.lock);
	assert_true(cq->open);
	cq->open = fake.keeps_lock || cq->head != cq->tail;
	if (cq->head != cq->tail) {
		fake_pop(cq, &wc);
		cq->cq.wr_id = wc.wr_id;
		cq->cq.status = wc.status;
		ret = 0;
	}
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

static int fake_start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	(void)attr;
	fake_wait_session(cq);
	assert_true(!cq->open || fake.deadlock);
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

/* The provider's own ibv_wr_*: as many as the tests use. */

static void fake_wr_start(struct ibv_qp_ex *ex)
{
	((struct fake_qp *)ex)->num_built = 0;
}

static struct ibv_send_wr *fake_build(struct ibv_qp_ex *ex, int opcode)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	struct ibv_send_wr *wr = &qp->built[qp->num_built++];

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = ex->wr_id;
	wr->send_flags = ex->wr_flags;
	wr->opcode = opcode;
	return wr;
}

static void fake_wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = fake_build(ex, IBV_WR_RDMA_WRITE);

	wr->wr.rdma.remote_addr = addr;
	wr->wr.rdma.rkey = rkey;
}

static void fake_wr_send(struct ibv_qp_ex *ex)
{
	fake_build(ex, IBV_WR_SEND);
}

static void fake_wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	fake_build(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void fake_wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	fake_build(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void fake_wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw,
			    uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = fake_build(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void fake_wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
			    uint32_t length)
{
	(void)ex;
	(void)lkey;
	(void)addr;
	(void)length;
}

static void fake_wr_set_sge_list(struct ibv_qp_ex *ex, size_t num,
				 const struct ibv_sge *sge)
{
	(void)ex;
	(void)num;
	(void)sge;
}

static void fake_wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t len)
{
	(void)ex;
	(void)addr;
	(void)len;
}

static void fake_wr_set_inline_list(struct ibv_qp_ex *ex, size_t num,
				    const struct ibv_data_buf *buf)
{
	(void)ex;
	(void)num;
	(void)buf;
}

static int fake_wr_complete(struct ibv_qp_ex *ex)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	uint32_t i;
	int err = 0;

	fake_syscall();
	for (i = 0; i < qp->num_built && !err; i++)
		err = fake_post_one(qp, &qp->built[i]);
	return err;
}

static void fake_wr_abort(struct ibv_qp_ex *ex)
{
	((struct fake_qp *)ex)->num_built = 0;
}

static struct fake_qp *fake_new_qp(struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp;

	if ((int)attr->cap.max_send_wr > fake.max_qp_wr) {
		errno = EINVAL;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	qp->ex.qp_base.context = ctx;
	qp->ex.qp_base.send_cq = attr->send_cq;
	qp->ex.qp_base.recv_cq = attr->recv_cq;
	qp->ex.qp_base.qp_type = attr->qp_type;
	qp->ex.qp_base.qp_num = fake.next_qpn++;
	qp->init = *attr;
	qp->depth = attr->cap.max_send_wr;
	if (fake.inline_given)
		attr->cap.max_inline_data = fake.inline_given;
	if (fake.depth_given)
		attr->cap.max_send_wr = fake.depth_given;
	qp->fail_at = UINT32_MAX;
	return qp;
}

static struct ibv_qp *fake_create_qp(struct ibv_pd *pd,
				     struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp = fake_new_qp(attr);

	(void)pd;
	return qp ? &qp->ex.qp_base : NULL;
}

static struct ibv_qp *fake_create_qp_ex(struct ibv_context *context,
					struct ibv_qp_init_attr_ex *attr)
{
	struct fake_qp *qp = fake_new_qp((struct ibv_qp_init_attr *)attr);

	(void)context;
	if (!qp)
		return NULL;
	qp->ex.wr_start = fake_wr_start;
	qp->ex.wr_rdma_write = fake_wr_rdma_write;
	qp->ex.wr_send = fake_wr_send;
	qp->ex.wr_send_inv = fake_wr_send_inv;
	qp->ex.wr_local_inv = fake_wr_local_inv;
	qp->ex.wr_bind_mw = fake_wr_bind_mw;
	qp->ex.wr_set_sge = fake_wr_set_sge;
	qp->ex.wr_set_sge_list = fake_wr_set_sge_list;
	qp->ex.wr_set_inline_data = fake_wr_set_inline_data;
	qp->ex.wr_set_inline_data_list = fake_wr_set_inline_list;
	qp->ex.wr_complete = fake_wr_complete;
	qp->ex.wr_abort = fake_wr_abort;
	return &qp->ex.qp_base;
}

static uint32_t fake_count_sends(const struct fake_qp *qp)
{
	uint32_t i, num = 0;

	for (i = 0; i < qp->posted; i++)
		num += qp->sq[i % FAKE_SQ].wr.opcode == IBV_WR_SEND;
	return num;
}

static int fake_destroy_qp(struct ibv_qp *qp)
{
	struct fake_cq *cq = (struct fake_cq *)qp->send_cq;
	uint32_t i;

	fake.given = fake_count_sends((struct fake_qp *)qp);
	for (i = cq->head; i != cq->tail; i++)
		if (cq->ring[i % FAKE_CQ].qp == (struct fake_qp *)qp)
			cq->ring[i % FAKE_CQ].qp = NULL;
	free(qp);
	return 0;
}

static int fake_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;

	if (!(mask & IBV_QP_STATE))
		return 0;
	pthread_mutex_lock(&fake.lock);
	fake.given = fake_count_sends(qp);
	if (attr->qp_state == IBV_QPS_ERR)
		qp->err = true;
	if (attr->qp_state == IBV_QPS_RESET) {
		qp->err = false;
		qp->run = qp->posted;
		qp->freed = qp->posted;
	}
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

static int fake_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
			 struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;

	(void)mask;
	*init = qp->init;
	attr->cap = qp->init.cap;
	return 0;
}

static struct ibv_qp_ex *fake_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = (struct ibv_qp_ex *)qp;

	return ex->wr_start ? ex : NULL;
}

static struct ibv_cq *fake_create_cq(struct ibv_context *context, int cqe,
				     void *cq_context,
				     struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq;

	(void)cq_context;
	(void)channel;
	(void)vector;
	if (cqe > fake.max_cqe)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	cq->cq.context = context;
	cq->cq.cqe = cqe;
	return ibv_cq_ex_to_cq(&cq->cq);
}

static struct ibv_cq_ex *fake_create_cq_ex(struct ibv_context *context,
					   struct ibv_cq_init_attr_ex *attr)
{
	struct fake_cq *cq;

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
	return &cq->cq;
}

static int fake_resize_cq(struct ibv_cq *cq, int cqe)
{
	fake_syscall();
	fake_wait_session((struct fake_cq *)cq);
	if (fake.no_resize || cqe > fake.max_cqe)
		return EINVAL;
	cq->cqe = cqe;
	if (fake.at_resized)
		fake.at_resized();
	return 0;
}

/* Of an empty channel nobody may ask here. */
static int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			     void **cq_context)
{
	struct fake_cq *from = fake.from;

	(void)channel;
	if (from->taken == from->events && fake.at_sleep)
		fake.at_sleep();
	assert_true(from->taken < from->events);
	from->taken++;
	*cq = ibv_cq_ex_to_cq(&from->cq);
	*cq_context = NULL;
	return 0;
}

static void fake_ack_cq_events(struct ibv_cq *cq, unsigned int num)
{
	((struct fake_cq *)cq)->acked += num;
}

static int fake_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

static struct ibv_pd *
fake_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr)
{
	(void)context;
	fake.td = attr->td;
	return &fake.domain;
}

static struct ibv_context *fake_open_device(struct ibv_device *device)
{
	struct verbs_context *v = ctx ? &fake.second : &fake.v;

	memset(v, 0, sizeof(*v));
	v->sz = sizeof(*v);
	v->create_qp_ex = fake_create_qp_ex;
	v->create_cq_ex = fake_create_cq_ex;
	v->alloc_parent_domain = fake_alloc_parent_domain;
	v->context.device = device;
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.post_send = fake_post_send;
	v->context.ops.bind_mw = fake_bind_mw;
	v->context.ops.poll_cq = fake_poll_cq;
	v->context.ops.req_notify_cq = fake_req_notify_cq;
	return &v->context;
}

static struct ibv_context *fake_import_device(int cmd_fd)
{
	assert_int_equal(cmd_fd, 5);
	return fake_open_device(&fake.device);
}

static int fake_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

static const char *fake_get_device_name(struct ibv_device *device)
{
	return device->name;
}

static int fake_query_device(struct ibv_context *context,
			     struct ibv_device_attr *attr)
{
	(void)context;
	attr->max_qp_wr = fake.max_qp_wr;
	attr->max_cqe = fake.max_cqe;
	return 0;
}

/* The kernel. */

enum { FAKE_FILE = 1000, FAKE_NAME, FAKE_OTHER_NAME };

static const char *fake_name(void)
{
	return fake.now_called ? fake.now_called : fake.device.name;
}

static int fake_open(const char *path, int flags, ...)
{
	(void)flags;
	if (!strcmp(path, "/sys/class/infiniband_verbs/uverbs0/ibdev")) {
		errno = ENOENT;
		return fake.now_called ? FAKE_NAME : -1;
	}
	if (!strcmp(path, "/sys/class/infiniband_verbs/uverbs1/ibdev"))
		return FAKE_OTHER_NAME;
	assert_string_equal(path, RISO_USER_FILE);
	if (fake.open_err) {
		errno = fake.open_err;
		return -1;
	}
	fake.opened++;
	return FAKE_FILE;
}

static bool fake_is_device(const char *name)
{
	return !strcmp(name, fake_name()) ||
	       (fake.other_called && !strcmp(name, fake.other_called));
}

static ssize_t fake_read(int fd, void *buf, size_t count)
{
	assert_true(fd == FAKE_NAME || fd == FAKE_OTHER_NAME);
	return snprintf(buf, count, "%s\n",
			fd == FAKE_NAME ? fake_name() : fake.other_called);
}

static int fake_ioctl(int fd, unsigned long request, ...)
{
	const struct riso_ioc_attach *attach;
	const struct riso_ioc_report *report;
	const struct riso_ioc_wait *w;
	struct riso_ioc_register *reg;
	va_list ap;
	void *arg;

	assert_int_equal(fd, FAKE_FILE);
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	errno = 0;
	switch (request) {
	case RISO_IOC_ATTACH:
		attach = arg;
		assert_int_equal(attach->version, RISO_USER_VERSION);
		assert_int_equal(attach->qpn, fake.next_qpn - 1);
		errno = fake_is_device(attach->dev) ? fake.attach_err : ENODEV;
		fake.attached += !errno;
		memcpy(fake.attached_to, attach->dev, sizeof(attach->dev));
		break;
	case RISO_IOC_REPORT:
		report = arg;
		if (!fake_is_device(report->dev)) {
			errno = ENODEV;
			break;
		}
		fake.reported = report->qpn;
		fake.reason = report->reason;
		break;
	case RISO_IOC_REGISTER:
		reg = arg;
		fake_syscall();
		errno = fake.register_err;
		if (errno == EPERM && reg->class == RISO_CLASS_BY_RULE)
			errno = 0;
		if (reg->class > RISO_CLASS_BANDWIDTH && reg->class != RISO_CLASS_BY_RULE)
			errno = EINVAL;
		fake.wish = reg->class;
		fake.registers++;
		reg->class = fake.class_id;
		break;
	case RISO_IOC_WAIT:
		w = arg;
		__atomic_add_fetch(&fake.waits, 1, __ATOMIC_RELAXED);
		if (w->timeout_us) {
			__atomic_store_n(&fake.timeout, w->timeout_us,
					 __ATOMIC_RELAXED);
			usleep(50);
		}
		errno = fake.wait_err;
		break;
	default:
		fail();
	}
	return errno ? -1 : 0;
}

static void *fake_mmap(void *addr, size_t len, int prot, int flags, int fd,
		       off_t off)
{
	(void)addr;
	assert_int_equal(len, 4096);
	assert_int_equal(flags, MAP_SHARED);
	assert_int_equal(fd, FAKE_FILE);
	if (off)
		assert_int_equal(prot, PROT_READ | PROT_WRITE);
	else
		assert_int_equal(prot, PROT_READ);
	if (fake.map_err) {
		errno = fake.map_err;
		return MAP_FAILED;
	}
	return off ? (void *)&fake.u : (void *)&fake.k;
}

static int fake_munmap(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	return 0;
}

static int fake_close(int fd)
{
	if (fd == FAKE_FILE)
		__atomic_add_fetch(&fake.closed, 1, __ATOMIC_RELEASE);
	return 0;
}

static uint64_t fake_clock(void)
{
	__atomic_add_fetch(&fake.clocks, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&fake.now, __ATOMIC_RELAXED);
}

static void *run_helper(void *arg)
{
	void *ret = fake.helper(arg);

	__atomic_add_fetch(&fake.ended, 1, __ATOMIC_RELEASE);
	return ret;
}

static int fake_create_thread(pthread_t *thread, const pthread_attr_t *attr,
			      void *(*fn)(void *arg), void *arg)
{
	size_t stack;
	int detached;

	assert_int_equal(pthread_attr_getdetachstate(attr, &detached), 0);
	assert_int_equal(detached, PTHREAD_CREATE_DETACHED);
	assert_int_equal(pthread_attr_getinheritsched(attr, &fake.inherits), 0);
	if (fake.run_helper) {
		fake.helper = fn;
		fake.begun++;
		return pthread_create(thread, attr, run_helper, arg);
	}
	*thread = pthread_self();
	if (fake.thread_err)
		return fake.thread_err;
	assert_int_equal(pthread_attr_getstacksize(attr, &stack), 0);
	if (stack < fake.least_stack)
		return EINVAL;
	assert_true(fake.helpers < ARRAY_SIZE(fake.helps));
	fake.helper = fn;
	fake.helps[fake.helpers++] = arg;
	return 0;
}

static int fake_membarrier(int cmd)
{
	return fake.no_barrier ? -1 : shim_membarrier(cmd);
}

static uint64_t cost(uint64_t len)
{
	return shim_cost(len, MTU, HEADER, fake.k.op_bytes);
}

static void grant_until(int dir, uint64_t bytes, uint64_t not_after)
{
	struct riso_kdir *k = &fake.k.dir[dir];
	uint32_t n = k->seq + 1;

	__atomic_store_n(&k->grant[n % 2].seq, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&k->grant[n % 2].bytes, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&k->grant[n % 2].not_after, not_after, __ATOMIC_RELAXED);
	__atomic_store_n(&k->grant[n % 2].seq, n, __ATOMIC_RELEASE);
	__atomic_store_n(&k->seq, n, __ATOMIC_RELEASE);
	fake.granted[dir] += bytes;
}

static void grant(int dir, uint64_t bytes)
{
	grant_until(dir, bytes, fake.now + 10 * MSEC);
}

/* What is posted is paid for. */
static void check_books(void)
{
	int dir;

	for (dir = 0; dir < RISO_USER_DIRS; dir++) {
		const struct riso_udir *u = &fake.u.dir[dir];

		assert_true(u->done <= u->posted);
		assert_true(u->debt <= u->posted);
		if (fake.k.mode == RISO_USER_PACED)
			assert_true(u->posted - u->debt <= fake.granted[dir]);
	}
}

/* The program. */

struct prog {
	struct fake_cq *cq;
	struct fake_qp *qp;
	struct ibv_qp_init_attr attr;
};

/* For the inline functions of verbs.h. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return shim_create_qp(pd, attr);
}

static struct fake_cq *make_cq(int cqe)
{
	return (struct fake_cq *)shim_create_cq(ctx, cqe, NULL, NULL, 0);
}

static struct fake_qp *make_qp(struct prog *p, struct fake_cq *cq, int sig_all)
{
	struct ibv_pd pd = { .context = ctx };
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
			.max_send_wr = DEPTH,
			.max_send_sge = SGES,
			.max_inline_data = INLINE,
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

static int setup_as(struct prog *p, int sig_all)
{
	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(2 * DEPTH);
	p->qp = make_qp(p, p->cq, sig_all);
	return p->qp ? 0 : -1;
}

static void reset_fake(void)
{
	fake.max_qp_wr = 1024;
	fake.max_cqe = 4096;
	fake.no_resize = 0;
	fake.names_none = false;
	fake.next_qpn = 17;
	fake.now = 1000ULL * MSEC;
	memset(fake.kroom, 0, sizeof(fake.kroom));
	memset(fake.uroom, 0, sizeof(fake.uroom));
	memset(fake.granted, 0, sizeof(fake.granted));
	fake.k.version = RISO_USER_VERSION;
	fake.k.header = HEADER;
	fake.k.op_bytes = 100;
	fake.k.slice_ns = MSEC;
	fake.k.window = 1ULL << 40;
	fake.k.mode = RISO_USER_PACED;
	fake.k.dir[0].chunk = CHUNK;
	fake.k.dir[1].chunk = CHUNK;
	fake.class_id = RISO_CLASS_BANDWIDTH;
	fake.open_err = 0;
	fake.attach_err = 0;
	fake.map_err = 0;
	fake.register_err = 0;
	fake.wait_err = 0;
	fake.attached = 0;
	fake.now_called = NULL;
	fake.other_called = NULL;
	fake.reported = 0;
	fake.run_helper = false;
	fake.at_call = NULL;
	fake.at_resized = NULL;
	fake.keeps_lock = false;
	fake.deadlock = false;
	fake.thread_err = 0;
	fake.least_stack = 0;
	unsetenv("RDMA_ISOLATE_SPIN_US");
	snprintf(fake.device.name, sizeof(fake.device.name), "fake0");
	snprintf(fake.device.dev_name, sizeof(fake.device.dev_name), "uverbs0");
}

static int setup(void **state)
{
	struct prog *p = calloc(1, sizeof(*p));

	*state = p;
	reset_fake();
	return setup_as(p, 0);
}

static int setup_sig_all(void **state)
{
	struct prog *p = calloc(1, sizeof(*p));

	*state = p;
	reset_fake();
	return setup_as(p, 1);
}

static int setup_empty(void **state)
{
	*state = calloc(1, sizeof(struct prog));
	reset_fake();
	return 0;
}

static int teardown(void **state)
{
	struct prog *p = *state;
	bool overflow = p->cq && p->cq->overflow;
	int i;

	if (p->qp)
		shim_destroy_qp(&p->qp->ex.qp_base);
	if (p->cq)
		shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
	if (ctx)
		shim_close_device(ctx);
	ctx = NULL;
	free(p);
	while (fake.helpers)
		fake.helper(fake.helps[--fake.helpers]);
	/* The helper may be the last to let go. */
	for (i = 0; i < 10000; i++) {
		if (__atomic_load_n(&fake.closed, __ATOMIC_ACQUIRE) == fake.opened)
			break;
		usleep(100);
	}
	assert_int_equal(fake.opened, fake.closed);
	return overflow ? -1 : 0;
}

static int post(struct fake_qp *qp, int opcode, uint64_t wr_id, uint32_t len,
		unsigned int flags)
{
	struct ibv_sge sge = { .addr = (uintptr_t)local, .length = len };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = flags,
		.wr.rdma.remote_addr = (uintptr_t)remote,
	};
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(&qp->ex.qp_base, &wr, &bad);

	if (err)
		assert_ptr_equal(bad, &wr);
	return err;
}

static int poll_one(struct prog *p, struct ibv_wc *wc)
{
	return ibv_poll_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1, wc);
}

/* What the helper does now and then. */
static void drive(struct prog *p)
{
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);

	shim_lock(&f->ctx->m->lock);
	shim_queue_drive(f->ctx->m);
	shim_unlock_and_drive(f->ctx->m);
}

/* The kernel gives it what it asks for. */
static void choose(struct prog *p, uint32_t class_id)
{
	fake.class_id = class_id;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, class_id), 0);
}

static void arm(struct prog *p)
{
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 0), 0);
}

static void expect(struct prog *p, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(poll_one(p, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qp_num, p->qp->ex.qp_base.qp_num);
}

static void expect_none(struct prog *p)
{
	struct ibv_wc wc;

	assert_int_equal(poll_one(p, &wc), 0);
}

/* Grant, run and poll until @num completions have come, in order from @wr_id on. */
static void pump(struct prog *p, uint64_t wr_id, uint32_t num)
{
	struct ibv_wc wc;
	uint32_t rounds;

	for (rounds = 0; num && rounds < 100000; rounds++) {
		grant(RISO_USER_TX, cost(CHUNK));
		grant(RISO_USER_RX, cost(CHUNK));
		fake_run(p->qp, UINT32_MAX);
		while (poll_one(p, &wc)) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, wr_id++);
			num--;
		}
		check_books();
		fake.now += 1000;
	}
	assert_int_equal(num, 0);
}

static const uint32_t sizes[] = {
	0, 1, CHUNK - 1, CHUNK, CHUNK + 1, MB, LARGEST,
};

/* Each size in one to four elements: the bytes arrive, and no others do. */
static void bytes(struct prog *p, int opcode)
{
	const uint8_t *from = opcode == IBV_WR_RDMA_READ ? remote : local;
	uint8_t *to = opcode == IBV_WR_RDMA_READ ? local : remote;
	struct ibv_send_wr *bad;
	uint32_t i, num, k;
	uint64_t id = 7;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (num = 1; num <= SGES; num++) {
			struct ibv_sge sge[SGES];
			struct ibv_send_wr wr = {
				.wr_id = id,
				.sg_list = sge,
				.num_sge = num,
				.opcode = opcode,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma.remote_addr = (uintptr_t)remote,
			};
			uint8_t *at = local;
			uint32_t chunks = sizes[i] ? (sizes[i] + CHUNK - 1) / CHUNK : 1;
			uint32_t before = p->qp->posted;

			for (k = 0; k < num; k++) {
				sge[k].addr = (uintptr_t)at;
				sge[k].length = sizes[i] / num +
						(k < sizes[i] % num);
				at += sge[k].length;
			}
			memset(to, 0xa5, LARGEST + 1);
			assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, &wr,
						       &bad), 0);
			/* It is the program's again. */
			memset(sge, 0xff, sizeof(sge));
			pump(p, id++, 1);
			assert_int_equal(p->qp->posted - before, chunks);
			assert_memory_equal(from, to, sizes[i]);
			assert_int_equal(to[sizes[i]], 0xa5);
		}
	}
}

static void fill(uint8_t *data)
{
	uint32_t i;

	for (i = 0; i <= LARGEST; i++)
		data[i] = i * 2654435761U >> 24;
}

static void write_bytes(void **state)
{
	fill(local);
	bytes(*state, IBV_WR_RDMA_WRITE);
}

static void read_bytes(void **state)
{
	fill(remote);
	bytes(*state, IBV_WR_RDMA_READ);
}

static void read_byte_len(void **state)
{
	struct prog *p = *state;
	struct ibv_wc wc;
	int n = 0;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_READ, 1, MB, IBV_SEND_SIGNALED), 0);
	while (!n) {
		grant(RISO_USER_RX, 8 * cost(CHUNK));
		n = poll_one(p, &wc);
		/* One less than max_rd_atomic; the last of them has a completion. */
		assert_true(p->qp->posted - p->qp->run <= 3);
		assert_true(n || p->qp->posted == MB / CHUNK ||
			    p->qp->sq[p->qp->posted - 1].wr.send_flags &
			    IBV_SEND_SIGNALED);
		fake_run(p->qp, UINT32_MAX);
	}
	assert_int_equal(wc.byte_len, MB);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
}

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
		assert_int_equal(post(p->qp, opcodes[i], 50 + i,
				      opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD ?
				      8 : 5 * CHUNK, IBV_SEND_SIGNALED |
				      IBV_SEND_FENCE), 0);
	assert_int_equal(p->qp->posted, 0);
	pump(p, 50, ARRAY_SIZE(opcodes));
	assert_int_equal(p->qp->posted, 5 + 1 + 1 + 5 + 1);
	for (i = 0; i < p->qp->posted; i++) {
		bool first = i == 0 || (i >= 5 && i <= 7) || i == 12;

		assert_int_equal(!!(p->qp->sq[i].wr.send_flags & IBV_SEND_FENCE),
				 first);
	}
	assert_int_equal(fake_len(&p->qp->sq[5].wr), 5 * CHUNK);
}

/* What has no data, and a SEND that invalidates, too; they keep their keys. */
static void keys_in_order(void **state)
{
	static const int opcodes[] = { IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV };
	struct prog *p = *state;
	struct ibv_sge sge = { .addr = (uintptr_t)local, .length = 3 * CHUNK };
	struct ibv_send_wr *bad;
	uint64_t before;
	uint32_t i;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 0, 2 * CHUNK, 0), 0);
	before = fake.u.dir[0].want;
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_send_wr wr = {
			.wr_id = i,
			.opcode = opcodes[i],
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
			.invalidate_rkey = 70 + i,
			.sg_list = i ? &sge : NULL,
			/* Nobody looks at it where there are no data. */
			.num_sge = i ? 1 : SGES + 1,
		};

		assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, &wr, &bad), 0);
	}
	assert_int_equal(fake.u.dir[0].want - before, cost(0) + cost(3 * CHUNK));
	assert_int_equal(p->qp->posted, 0);
	pump(p, 0, ARRAY_SIZE(opcodes));
	assert_int_equal(p->qp->posted, 2 + ARRAY_SIZE(opcodes));
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		const struct ibv_send_wr *wr = &p->qp->sq[2 + i].wr;

		assert_int_equal(wr->opcode, opcodes[i]);
		assert_int_equal(wr->invalidate_rkey, 70 + i);
		assert_true(wr->send_flags & IBV_SEND_FENCE);
		assert_int_equal(fake_len(wr), i ? 3 * CHUNK : 0);
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
	struct ibv_mw mw = { .context = ctx, .type = IBV_MW_TYPE_1 };
	const struct ibv_send_wr *wr;
	uint32_t i;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, 2 * cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(bind(p, &mw, 2), 0);
	assert_int_equal(p->qp->posted, 4);
	assert_int_equal(fake_len(&p->qp->sq[2].wr), 6 * CHUNK);
	wr = &p->qp->sq[3].wr;
	assert_int_equal(wr->opcode, IBV_WR_BIND_MW);
	assert_ptr_equal(wr->bind_mw.mw, &mw);
	assert_int_equal(wr->bind_mw.bind_info.mw_access_flags,
			 IBV_ACCESS_REMOTE_WRITE);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	expect(p, 2, IBV_WC_SUCCESS);
	expect_none(p);
	check_books();

	/* What does not go out, or a provider that will not, leaves all as it was. */
	fake.now += 20 * MSEC;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
	p->qp->refuse = EAGAIN;
	assert_int_equal(bind(p, &mw, 4), ENOMEM);
	p->qp->refuse = 0;
	pump(p, 3, 1);
	p->qp->refuse = EINVAL;
	assert_int_equal(bind(p, &mw, 4), EINVAL);
	p->qp->refuse = 0;
	assert_int_equal(p->qp->posted, 5);
	assert_int_equal(f->sq.signaled, 0);

	/* It is one of those that the program may have. */
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(bind(p, &mw, 4 + i), 0);
	assert_int_equal(bind(p, &mw, 99), ENOMEM);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 99, 8, 0), ENOMEM);
	assert_int_equal(p->qp->posted, 5 + DEPTH);
	pump(p, 4, DEPTH);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
}

/* Straight to the provider, with the completion that it was not told of. */
static void binds_direct(void **state)
{
	struct prog *p = *state;
	struct ibv_mw mw = { .context = ctx, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind how = { .wr_id = 1 };

	choose(p, RISO_CLASS_LATENCY);
	assert_int_equal(ibv_bind_mw(&p->qp->ex.qp_base, &mw, &how), 0);
	assert_int_equal(how.send_flags, 0);
	assert_int_equal(p->qp->sq[0].wr.wr_id, 1);
	fake_run(p->qp, 1);
	expect(p, 1, IBV_WC_SUCCESS);
}

static void inline_data(void **state)
{
	struct prog *p = *state;

	fill(local);
	memset(remote, 0, INLINE);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, INLINE,
			      IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, INLINE + 1,
			      IBV_SEND_INLINE), EINVAL);
	memset(local, 0xee, INLINE);
	pump(p, 1, 1);
	fill(local);
	assert_memory_equal(local, remote, INLINE);
}

static void unsignaled(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	for (i = 0; i < 100; i++) {
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 900 + i, 3 * CHUNK + 5,
				      i % 4 == 3 ? IBV_SEND_SIGNALED : 0), 0);
		if (i % 4 == 3) {
			uint64_t id = 900 + i;

			pump(p, id, 1);
			expect_none(p);
		}
	}
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
	assert_int_equal(fake.u.dir[0].want, 0);
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
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, i, 3 * CHUNK, 0), 0);
	pump(p, 0, DEPTH);
	expect_none(p);
	/* Also when it goes straight to the provider. */
	fake.class_id = RISO_CLASS_LATENCY;
	fake.k.classes++;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 5, MB, 0), 0);
	fake_run(p->qp, 1);
	expect(p, 5, IBV_WC_SUCCESS);
}

static void told_what_was_asked(void **state)
{
	struct prog *p = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(p->attr.cap.max_send_wr, DEPTH);
	assert_int_equal(p->qp->depth, DEPTH + SHIM_SLOTS);
	assert_int_equal(shim_query_qp(&p->qp->ex.qp_base, &attr, 0, &init), 0);
	assert_int_equal(attr.cap.max_send_wr, DEPTH);
	assert_int_equal(init.cap.max_send_wr, DEPTH);
}

/* As many as the program asked for, and again as soon as it has polled. */
static void depth(struct prog *p, uint32_t len)
{
	uint32_t i, round;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < DEPTH; i++)
			assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, i, len,
					      i == DEPTH / 2 || i == DEPTH - 1 ?
					      IBV_SEND_SIGNALED : 0), 0);
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 99, len, 0), ENOMEM);
		pump(p, DEPTH / 2, 1);
		if (fake.k.mode == RISO_USER_OPEN) {
			expect(p, DEPTH - 1, IBV_WC_SUCCESS);
			continue;
		}
		for (i = 0; i <= DEPTH / 2; i++)
			assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 50, len,
					      0), 0);
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 99, len, 0), ENOMEM);
		pump(p, DEPTH - 1, 1);
		for (i = DEPTH / 2 + 1; i < DEPTH; i++)
			assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 60, len,
					      i == DEPTH - 1 ? IBV_SEND_SIGNALED :
					      0), 0);
		pump(p, 60, 1);
	}
}

static void depth_paced(void **state)
{
	depth(*state, 10 * CHUNK);
}

static void depth_open(void **state)
{
	struct prog *p = *state;
	uint32_t i, round;

	fake.k.mode = RISO_USER_OPEN;
	for (round = 0; round < 5; round++) {
		for (i = 0; i < DEPTH; i++)
			assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, i, MB,
					      i == DEPTH / 2 || i == DEPTH - 1 ?
					      IBV_SEND_SIGNALED : 0), 0);
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 99, MB, 0), ENOMEM);
		fake_run(p->qp, UINT32_MAX);
		expect(p, DEPTH / 2, IBV_WC_SUCCESS);
		expect(p, DEPTH - 1, IBV_WC_SUCCESS);
		expect_none(p);
	}
	assert_int_equal(p->qp->posted, 5 * DEPTH);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
	assert_int_equal(fake.u.dir[0].posted, 5 * DEPTH * cost(MB));
	assert_int_equal(fake.u.dir[0].debt, 0);
}

/* A chain: what fits is taken, and the first that does not is named. */
static void chain(void **state)
{
	struct prog *p = *state;
	struct ibv_sge sge = { .addr = (uintptr_t)local, .length = 64 };
	struct ibv_send_wr wr[DEPTH + 2] = {};
	struct ibv_send_wr *bad = NULL;
	uint32_t i, k;

	for (k = 0; k < 2; k++) {
		fake.k.mode = k ? RISO_USER_OPEN : RISO_USER_PACED;
		for (i = 0; i < ARRAY_SIZE(wr); i++) {
			wr[i].wr_id = i;
			wr[i].next = i + 1 < ARRAY_SIZE(wr) ? &wr[i + 1] : NULL;
			wr[i].sg_list = &sge;
			wr[i].num_sge = 1;
			wr[i].opcode = IBV_WR_SEND;
			wr[i].send_flags = IBV_SEND_SIGNALED;
		}
		assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr[DEPTH]);
		pump(p, 0, DEPTH);
		wr[3].num_sge = SGES + 1;
		assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[3]);
		pump(p, 0, 3);
		expect_none(p);
	}
	/* A batch is one doorbell. */
	wr[3].num_sge = 1;
	wr[SHIM_BATCH - 1].next = NULL;
	i = p->qp->doorbells;
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), 0);
	assert_int_equal(p->qp->doorbells, i + 1);
	pump(p, 0, SHIM_BATCH);
}

/* What the provider refuses in the call is refused by the call, and not charged. */
static void refused_at_once(void **state)
{
	struct prog *p = *state;

	fake.k.mode = RISO_USER_OPEN;
	p->qp->refuse = EINVAL;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), EINVAL);
	p->qp->refuse = ENOMEM;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), ENOMEM);
	assert_int_equal(fake.u.dir[0].posted, 0);
	assert_int_equal(fake.u.dir[0].want, 0);
	p->qp->refuse = 0;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, 1);
	expect(p, 2, IBV_WC_SUCCESS);
}

/* What it refuses later completes with an error, and so does what follows. */
static void refused_later(void **state)
{
	struct prog *p = *state;

	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, 0), 0);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	p->qp->refuse = EIO;
	grant(RISO_USER_TX, MB);
	expect_none(p);
	expect(p, 1, IBV_WC_LOC_QP_OP_ERR);
	expect(p, 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(p);
	assert_true(p->qp->err);
}

/* The provider tells of it, so that there is an event. */
static void refused_event(void **state)
{
	struct prog *p = *state;
	uint64_t i;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_READ, 1, 8 * CHUNK, 0), 0);
	for (i = 2; i < 5; i++)
		assert_int_equal(post(p->qp, IBV_WR_SEND, i, 8, 0), 0);
	p->qp->refuse = EINVAL;
	p->qp->refuse_len = true;
	arm(p);
	grant(RISO_USER_RX, MB);
	grant(RISO_USER_TX, MB);
	drive(p);
	assert_true(p->qp->err);
	assert_int_equal(p->qp->posted, 4);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, 1);
	expect(p, 1, IBV_WC_LOC_QP_OP_ERR);
	for (i = 2; i < 5; i++)
		expect(p, i, IBV_WC_WR_FLUSH_ERR);
	expect_none(p);
	for (i = 0; i < RISO_USER_DIRS; i++) {
		assert_int_equal(fake.u.dir[i].want, 0);
		assert_int_equal(fake.u.dir[i].posted, fake.u.dir[i].done);
	}
}

/* A message of which a part is out is not the caller's any more. */
static void refused_midway(void **state)
{
	struct prog *p = *state;

	p->qp->refuse = EINVAL;
	p->qp->refuse_from = SHIM_BATCH;
	p->qp->refuse_len = true;
	grant(RISO_USER_TX, MB);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 12 * CHUNK, 0), 0);
	assert_true(p->qp->err);
	p->qp->refuse = 0;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, 0), 0);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_LOC_QP_OP_ERR);
	expect(p, 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(p);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
}

/* It refuses whatever comes after an error. What was out completes once, and no more. */
static void refused_in_error(void **state)
{
	struct prog *p = *state;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 3 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, cost(CHUNK));
	drive(p);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	p->qp->refuse = EINVAL;
	p->qp->err = true;
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_WR_FLUSH_ERR);
	expect(p, 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(p);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
}

/* The second call of post_send and all that follow are refused. */
static struct fake_qp *refuser;

static void refuse_second(void)
{
	if (refuser->doorbells && ++fake.calls == 2)
		refuser->refuse = EINVAL;
}

/* A post that fails does not complete, and one that completes has not failed. */
static void refused_or_completed(void **state)
{
	struct prog *p = *state;
	struct ibv_wc wc;
	int err, num = 0;

	grant(RISO_USER_TX, cost(8));
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	p->qp->fail_at = 0;
	fake_run(p->qp, 1);
	grant(RISO_USER_TX, cost(CHUNK));
	refuser = p->qp;
	fake.calls = 0;
	fake.at_call = refuse_second;
	err = post(p->qp, IBV_WR_RDMA_WRITE, 2, 3 * CHUNK, IBV_SEND_SIGNALED);
	fake.at_call = NULL;
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	while (poll_one(p, &wc) > 0)
		num += wc.wr_id == 2;
	assert_int_equal(num, err ? 0 : 1);
}

static void slots_bound(void **state)
{
	struct prog *p = *state;
	uint32_t most = 0;
	uint64_t gb = 1ULL << 30;
	struct ibv_wc wc;
	int n = 0;

	/* The provider does not move these. */
	struct ibv_sge sge = { .addr = (uintptr_t)local, .length = gb };
	struct ibv_send_wr wr = {
		.wr_id = 42,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, &wr, &bad), 0);
	while (!n) {
		grant(RISO_USER_TX, 64 * cost(CHUNK));
		/* What it points to is not there: only the start is looked at. */
		while (p->qp->run != p->qp->posted) {
			p->qp->sq[p->qp->run % FAKE_SQ].wr.num_sge = 0;
			if (p->qp->posted - p->qp->run > most)
				most = p->qp->posted - p->qp->run;
			fake_run(p->qp, 1);
		}
		n = poll_one(p, &wc);
	}
	assert_int_equal(wc.wr_id, 42);
	assert_int_equal(p->qp->posted, gb / CHUNK);
	assert_int_equal(most, SHIM_SLOTS);
	assert_true(p->cq->most <= SHIM_SLOTS);
	check_books();
}

static void window_bound(void **state)
{
	struct prog *p = *state;
	uint32_t window, i;

	for (window = 1; window <= 5; window++) {
		fake.k.window = window * cost(CHUNK);
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 9, 64 * CHUNK,
				      IBV_SEND_SIGNALED), 0);
		for (i = 0; p->qp->run != p->qp->posted || i < 2; i++) {
			grant(RISO_USER_TX, 64 * cost(CHUNK));
			expect_none(p);
			assert_true(p->qp->posted - p->qp->run <= window);
			assert_true(fake.u.dir[0].posted - fake.u.dir[0].done <=
				    fake.k.window);
			if (p->qp->posted % 64 == 0 && i)
				break;
			fake_run(p->qp, 1);
		}
		pump(p, 9, 1);
	}
	assert_int_equal(p->qp->posted, 5 * 64);
}

/* Completions that nobody sees are few, as each may wake the program. */
static void few_hidden(void **state)
{
	struct prog *p = *state;
	uint32_t i, seen = 0;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * CHUNK, 0), 0);
	for (i = 1; i <= 64; i++) {
		grant(RISO_USER_TX, cost(CHUNK));
		expect_none(p);
		assert_int_equal(p->qp->posted, i);
		fake_run(p->qp, UINT32_MAX);
		seen += p->cq->tail - p->cq->head;
	}
	assert_int_equal(seen, 64 / (SHIM_SLOTS / 2));
}

/* Nor do they fill the CQ of a program that posts and does not poll. */
static void few_hidden_open(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel = { .context = ctx };
	struct ibv_qp_init_attr attr = p->attr;
	struct ibv_pd pd = { .context = ctx };
	struct fake_qp *qp;
	uint64_t i;

	attr.cap.max_send_wr = 512;
	qp = (struct fake_qp *)shim_create_qp(&pd, &attr);
	assert_non_null(qp);
	attr.send_cq->channel = &channel;
	assert_int_equal(post(qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(post(qp, IBV_WR_RDMA_WRITE, 2, 8 * CHUNK, 0), 0);
	grant(RISO_USER_TX, cost(8));
	drive(p);
	assert_int_equal(fake_run(qp, 1), 1);
	/* The first is kept for the program now, which has not polled yet. */
	assert_int_equal(post(qp, IBV_WR_SEND, 3, 8, 0), 0);
	assert_int_equal(p->cq->head, p->cq->tail);
	fake.k.mode = RISO_USER_OPEN;
	for (i = 4; i < 400; i++)
		assert_int_equal(post(qp, IBV_WR_SEND, i, 8, 0), 0);
	assert_int_equal(qp->posted, 399);
	fake_run(qp, UINT32_MAX);
	assert_true(p->cq->tail - p->cq->head <= SHIM_SLOTS);
	shim_destroy_qp(&qp->ex.qp_base);
}

/* Polling for what is held takes no time while there is no news. */
static void polls_cheaply(void **state)
{
	struct prog *p = *state;
	uint32_t i;
	int clocks;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, SHIM_SLOTS * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, SHIM_SLOTS / 2 * cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, SHIM_SLOTS / 2);
	clocks = fake.clocks;
	for (i = 0; i < 100; i++)
		expect_none(p);
	assert_int_equal(fake.clocks, clocks);
	fake_run(p->qp, UINT32_MAX);
	expect_none(p);
	assert_true(fake.clocks > clocks);
	assert_int_equal(fake.u.dir[0].done, SHIM_SLOTS / 2 * cost(CHUNK));
	fake.k.mode = RISO_USER_OPEN;
	expect_none(p);
	assert_int_equal(p->qp->posted, SHIM_SLOTS / 2 + 1);
	pump(p, 1, 1);
}

/* Who posts and does not poll makes way, too. */
static void post_reaps(void **state)
{
	struct prog *p = *state;

	fake.k.window = cost(CHUNK);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, 64 * cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, 1);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	pump(p, 1, 2);
}

/* A round of the helper */
static void help(struct prog *p)
{
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);

	shim_lock(&f->ctx->m->lock);
	f->cq->unseen++;
	shim_comp_reap(f->cq);
	shim_queue_drive(f->ctx->m);
	shim_unlock_and_drive(f->ctx->m);
}

/* What a program posts that has armed, and computes, goes on as grants come. */
static void armed_computes(void **state)
{
	struct prog *p = *state;
	uint32_t rounds, i, events;

	for (i = 0; i < 2; i++) {
		arm(p);
		if (i)
			expect_none(p);
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * CHUNK,
				      IBV_SEND_SIGNALED), 0);
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 2, 64 * CHUNK,
				      IBV_SEND_SIGNALED), 0);
		for (rounds = 0; rounds < 128 / SHIM_SLOTS; rounds++) {
			grant(RISO_USER_TX, SHIM_SLOTS * cost(CHUNK));
			help(p);
			fake_run(p->qp, UINT32_MAX);
		}
		assert_int_equal(p->qp->posted, 128 * (i + 1));
		/* There is one more in the CQ, which raises an event. */
		events = p->cq->events;
		arm(p);
		assert_int_equal(p->cq->events, events + 1);
		expect(p, 1, IBV_WC_SUCCESS);
		expect(p, 2, IBV_WC_SUCCESS);
		fake.now += 20 * MSEC;
	}
}

/*
 * Who arms, and sleeps without another poll, hears of what was taken when a piece of what
 * is held has completed, the next one.
 */
static void armed(void **state)
{
	struct prog *p = *state;
	uint32_t events;

	arm(p);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 2, 8 * CHUNK, 0), 0);
	grant(RISO_USER_TX, cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	grant(RISO_USER_TX, cost(CHUNK));
	help(p);
	assert_int_equal(p->cq->head, p->cq->tail);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	events = p->cq->events;
	arm(p);
	assert_int_equal(p->cq->events, events);
	grant(RISO_USER_TX, cost(CHUNK));
	help(p);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, events + 1);
	/* Only that one. */
	grant(RISO_USER_TX, cost(CHUNK));
	help(p);
	assert_int_equal(p->qp->posted, 4);
	assert_false(p->qp->sq[3].wr.send_flags & IBV_SEND_SIGNALED);
	expect(p, 1, IBV_WC_SUCCESS);
	/* Nor any for who has polled since. */
	arm(p);
	grant(RISO_USER_TX, cost(CHUNK));
	help(p);
	assert_int_equal(p->qp->posted, 5);
	assert_false(p->qp->sq[4].wr.send_flags & IBV_SEND_SIGNALED);
}

/* Nothing of ours raises a solicited event: one is taken for which there was one. */
static void armed_solicited(void **state)
{
	struct prog *p = *state;
	struct ibv_cq *cq = ibv_cq_ex_to_cq(&p->cq->cq);

	fake.k.window = cost(CHUNK);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * CHUNK, 0), 0);
	grant(RISO_USER_TX, 8 * cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	fake_receive(p->cq);
	fake_receive(p->cq);
	/* It has polled, and is not armed any more. */
	help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 3);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 1);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	help(p);
	assert_int_equal(p->cq->tail - p->cq->head, 2);
}

static void count_unlocked(void)
{
	struct shim_ctx *c = shim_map_find(&shim_ctxs, ctx);

	if (pthread_mutex_trylock(&c->m->lock))
		return;
	pthread_mutex_unlock(&c->m->lock);
	fake.calls++;
}

/* It leaves class latency, and hears of what is taken. */
static void expect_left(struct prog *p)
{
	uint32_t events;

	choose(p, RISO_CLASS_BANDWIDTH);
	fake.k.window = cost(CHUNK);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, 8 * cost(CHUNK));
	drive(p);
	fake_run(p->qp, UINT32_MAX);
	events = p->cq->events;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 2, CHUNK,
			      IBV_SEND_SIGNALED), 0);
	arm(p);
	assert_int_equal(p->qp->posted, 2);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, events + 1);
	pump(p, 1, 2);
}

/* Class latency arms without a lock. */
static void latency_arms(void **state)
{
	struct prog *p = *state;

	choose(p, RISO_CLASS_LATENCY);
	fake.calls = 0;
	fake.at_call = count_unlocked;
	arm(p);
	fake.at_call = NULL;
	assert_int_equal(fake.calls, 1);
	expect_left(p);
}

static void latency_arms_no_more(void **state)
{
	struct prog *p = *state;

	arm(p);
	choose(p, RISO_CLASS_LATENCY);
	expect_none(p);
	expect_left(p);
}

/* What was taken before is told when the last that is held has completed. */
static void armed_late(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel = {};

	p->cq->cq.channel = &channel;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, cost(CHUNK));
	expect_none(p);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, 0), 0);
	grant(RISO_USER_TX, MB);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 3, 8, 0), 0);
	assert_int_equal(p->qp->posted, 3);
	arm(p);
	assert_int_equal(p->cq->events, 0);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(p->cq->events, 1);
	expect(p, 1, IBV_WC_SUCCESS);
	expect_none(p);
}

/*
 * Who sleeps for an event sleeps on when a chunk has completed; who was woken up by poll()
 * is not held, though he slept for one before.
 */
static struct prog *sleeper;

static void chunks_complete(void)
{
	grant(RISO_USER_TX, 8 * cost(CHUNK));
	drive(sleeper);
	fake_run(sleeper->qp, 1);
}

static void expect_event(struct ibv_comp_channel *channel)
{
	struct fake_cq *cq = sleeper->cq;
	struct ibv_cq *got;
	void *context;

	assert_int_equal(shim_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, cq);
	shim_real.ack_cq_events(got, 1);
	assert_int_equal(cq->acked, cq->taken);
}

static void *polls_receive(void *unused)
{
	struct ibv_wc wc;

	assert_int_equal(poll_one(sleeper, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	return unused;
}

/* A completion, an event for it, and another thread is the first to poll. */
static void is_polled_elsewhere(void)
{
	struct fake_cq *cq = sleeper->cq;
	pthread_t thread;

	cq->ring[cq->tail++ % FAKE_CQ] = (struct fake_cqe) {
		.wc = { .wr_id = 5, .opcode = IBV_WC_RECV },
	};
	cq->events += cq->armed;
	cq->armed = false;
	assert_int_equal(pthread_create(&thread, NULL, polls_receive, NULL), 0);
	pthread_join(thread, NULL);
	/* Not for a second time */
	fake.at_sleep = NULL;
}

/* Who sleeps may wait for what another one has polled. */
static void event_of_another(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel = { .context = ctx };
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	channel.fd = ends[0];
	sleeper = p;
	fake.from = p->cq;
	fake.at_sleep = is_polled_elsewhere;
	arm(p);
	expect_none(p);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	expect_event(&channel);
	close(ends[0]);
	close(ends[1]);
}

static void events_of_chunks(void **state)
{
	struct prog *p = *state;
	struct ibv_comp_channel channel = { .context = ctx };
	int ends[2];
	char c = 0;

	assert_int_equal(pipe(ends), 0);
	channel.fd = ends[0];
	sleeper = p;
	fake.from = p->cq;
	fake.at_sleep = chunks_complete;
	fake.k.window = cost(CHUNK);
	arm(p);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 16 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	/* Woken up by poll() */
	assert_int_equal(write(ends[1], &c, 1), 1);
	chunks_complete();
	expect_event(&channel);
	expect_none(p);
	arm(p);
	/* As one that does not sleep */
	assert_int_equal(read(ends[0], &c, 1), 1);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	expect_event(&channel);
	expect_none(p);
	arm(p);
	assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
	/* Asleep: the first could be for what was polled before anybody took note. */
	expect_event(&channel);
	expect_none(p);
	arm(p);
	expect_event(&channel);
	assert_int_equal(p->qp->run, 16);
	assert_true(p->cq->taken > 4);
	expect(p, 1, IBV_WC_SUCCESS);
	expect_none(p);
	/* Woken up by poll() again */
	fake.at_sleep = NULL;
	arm(p);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 2, 4 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(write(ends[1], &c, 1), 1);
	chunks_complete();
	expect_event(&channel);
	expect_none(p);
	pump(p, 2, 1);
	close(ends[0]);
	close(ends[1]);
}

static void grants_spent_exactly(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.u.dir[0].want, 64 * cost(CHUNK));
	assert_int_equal(p->qp->posted, 0);
	/* Odd sizes: what is left pays for a part of the next. */
	for (i = 1; i <= 64; i++) {
		grant(RISO_USER_TX, cost(CHUNK) / 2 + 1);
		expect_none(p);
		assert_int_equal(fake.u.dir[0].taken, fake.k.dir[0].seq);
		assert_int_equal(fake.u.dir[0].posted, i * (cost(CHUNK) / 2 + 1));
		assert_int_equal(p->qp->posted, i * (cost(CHUNK) / 2 + 1) / cost(CHUNK));
		assert_int_equal(fake.u.dir[0].want,
				 64 * cost(CHUNK) - fake.u.dir[0].posted);
		fake_run(p->qp, UINT32_MAX);
	}
	assert_int_equal(fake.u.dir[0].debt, 0);
	pump(p, 1, 1);
	assert_int_equal(fake.u.dir[0].posted, 64 * cost(CHUNK));
	assert_int_equal(fake.u.dir[0].done, 64 * cost(CHUNK));
}

/* As the kernel does: grants for what is wanted, and for nothing else. */
static void grant_wanted(struct prog *p, uint64_t wr_id)
{
	uint64_t want;
	struct ibv_wc wc;
	uint32_t rounds;

	for (rounds = 0; rounds < 10000; rounds++) {
		want = fake.u.dir[0].want;
		if (want)
			grant(RISO_USER_TX, want < 5000 ? want : 5000);
		fake_run(p->qp, UINT32_MAX);
		if (poll_one(p, &wc))
			break;
		fake.now += 1000;
	}
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(fake.u.dir[0].debt, 0);
	assert_int_equal(fake.u.dir[0].want, 0);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
	check_books();
}

/* What is held costs more, or is cut smaller, than when it was posted. */
static void repriced(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	fake.k.dir[0].chunk = 128 * KB;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, 100 * KB);
	expect_none(p);
	assert_int_equal(fake.u.dir[0].posted, 100 * KB);
	fake.k.dir[0].chunk = 1000;
	grant_wanted(p, 1);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 64, i == DEPTH - 1 ?
				      IBV_SEND_SIGNALED : 0), 0);
	fake.k.op_bytes = 1000;
	grant_wanted(p, 2);
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

	fake.k.dir[0].chunk = 3 * MTU + 1;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 6 * MTU,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.u.dir[0].want, cost(4 * MTU) + cost(2 * MTU));
	pump(p, 1, 1);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(fake_len(&p->qp->sq[0].wr), 4 * MTU);
	assert_int_equal(fake_len(&p->qp->sq[1].wr), 2 * MTU);
}

/* A message that is not cut and costs more than a grant is paid for in parts. */
static void large_send(void **state)
{
	struct prog *p = *state;

	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, MB, IBV_SEND_SIGNALED), 0);
	pump(p, 1, 1);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake.u.dir[0].debt, 0);
	assert_int_equal(fake.u.dir[0].posted, cost(MB));
	assert_int_equal(fake.u.dir[0].done, cost(MB));
}

/* It could not use a grant: it asks again when there is room. */
static void full_wants_nothing(void **state)
{
	struct prog *p = *state;
	uint32_t left;

	fake.k.window = cost(CHUNK);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.u.dir[0].want, 8 * cost(CHUNK));
	for (left = 7; left; left--) {
		grant(RISO_USER_TX, cost(CHUNK));
		expect_none(p);
		assert_int_equal(p->qp->posted, 8 - left);
		assert_int_equal(fake.u.dir[0].want, 0);
		fake_run(p->qp, 1);
		expect_none(p);
		assert_int_equal(fake.u.dir[0].want, left * cost(CHUNK));
		check_books();
	}
	pump(p, 1, 1);
	assert_int_equal(fake.u.dir[0].posted, 8 * cost(CHUNK));
	assert_int_equal(fake.u.dir[0].want, 0);
}

static void void_grants(void **state)
{
	struct prog *p = *state;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant_until(RISO_USER_TX, MB, fake.now);
	expect_none(p);
	assert_int_equal(p->qp->posted, 0);
	assert_int_equal(fake.u.dir[0].taken, 1);
	/* Taken, and void before it could be spent. */
	fake.k.window = cost(CHUNK);
	grant_until(RISO_USER_TX, 4 * cost(CHUNK), fake.now + 10);
	expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake.now += 10;
	fake_run(p->qp, 1);
	expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake.u.dir[0].want, 7 * cost(CHUNK));
	/* Two are missed, only the later ones are there. */
	grant_until(RISO_USER_TX, 1, fake.now);
	grant_until(RISO_USER_TX, 1, fake.now);
	grant(RISO_USER_TX, cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(fake.u.dir[0].taken, 5);
	/* A second without any. */
	fake.now += 999 * MSEC;
	fake_run(p->qp, 1);
	expect_none(p);
	assert_int_equal(p->qp->posted, 2);
	fake.now += MSEC;
	drive(p);
	assert_int_equal(p->qp->posted, 3);
	assert_int_equal(fake.u.dir[0].debt, cost(CHUNK));
}

/* Number 0 is left out. */
static void numbers_wrap(void **state)
{
	struct riso_kdir k = {
		.seq = 1,
		.grant = { { .seq = UINT32_MAX - 1 }, { .seq = 1, .bytes = 5 } },
	};
	struct riso_grant g;
	(void)state;

	assert_int_equal(shim_grant_read(&k, UINT32_MAX, &g), 1);
	assert_int_equal(g.bytes, 5);
	assert_int_equal(shim_grant_read(&k, UINT32_MAX - 1, &g), 1);
	assert_int_equal(shim_grant_read(&k, 1, &g), 1);
	k.grant[0].seq = 2;
	k.seq = 2;
	assert_int_equal(shim_grant_read(&k, UINT32_MAX, &g), 1);
	assert_int_equal(shim_grant_read(&k, 1, &g), 2);
}

static void sparse(void **state)
{
	struct prog *p = *state;

	fake.k.sparse = cost(CHUNK) + cost(64);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, CHUNK, IBV_SEND_SIGNALED),
			 0);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake.u.dir[0].debt, cost(CHUNK));
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	/* The slice is spent; and who has something held is not sparse. */
	assert_int_equal(post(p->qp, IBV_WR_SEND, 3, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	fake.now += MSEC;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 4, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	pump(p, 1, 4);
	/* One more than a chunk is not sparse. */
	fake.now += 20 * MSEC;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 5, CHUNK + 1, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 4);
	pump(p, 5, 1);
}

/* A small message goes at once beside the program's own bulk on another queue pair. */
static void sparse_beside_bulk(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = make_qp(p, p->cq, 0);

	fake.k.sparse = 2 * cost(64);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * CHUNK, 0), 0);
	assert_int_equal(p->qp->posted, 0);
	assert_int_equal(post(other, IBV_WR_SEND, 2, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(other->posted, 1);
	assert_int_equal(fake.u.dir[0].debt, cost(64));
	/* Behind the bulk it would be out of order. */
	assert_int_equal(post(p->qp, IBV_WR_SEND, 3, 64, 0), 0);
	assert_int_equal(p->qp->posted, 0);
	assert_int_equal(post(other, IBV_WR_SEND, 4, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(other->posted, 2);
	/* The slice is spent; what is held now is not fresh in the next one. */
	assert_int_equal(post(other, IBV_WR_SEND, 5, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(other->posted, 2);
	fake.now += MSEC;
	drive(p);
	assert_int_equal(other->posted, 2);
	assert_int_equal(fake.u.dir[0].debt, 2 * cost(64));
	shim_destroy_qp(&other->ex.qp_base);
}

/* The first error of a message is told, once; what follows is flushed. */
static void error_in_the_middle(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	p->qp->fail_at = 3;
	for (i = 0; i < 4; i++)
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, i, 16 * CHUNK,
				      i & 1 ? 0 : IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, 6 * cost(CHUNK));
	expect_none(p);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 0, IBV_WC_REM_ACCESS_ERR);
	expect_none(p);
	fake_run(p->qp, UINT32_MAX);
	for (i = 1; i < 4; i++)
		expect(p, i, IBV_WC_WR_FLUSH_ERR);
	expect_none(p);
	/* The rest of the first was not posted, the others were not cut. */
	assert_int_equal(p->qp->posted, 6 + 3);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
	/* And who posts later hears of it. */
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 9, MB, 0), 0);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 9, IBV_WC_WR_FLUSH_ERR);
}

static void modify(struct prog *p, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = { .qp_state = to };

	assert_int_equal(shim_modify_qp(&p->qp->ex.qp_base, &attr, IBV_QP_STATE), 0);
}

/* The rest of a message that has failed is all that is held. */
static void error_at_the_end(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct fake_qp *other = make_qp(p, p->cq, 0);

	p->qp->fail_at = 0;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 2 * SHIM_SLOTS * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, SHIM_SLOTS * cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, SHIM_SLOTS);
	assert_int_equal(post(other, IBV_WR_RDMA_WRITE, 2, 3 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	/* The other has its turn all the same. */
	fake_run(p->qp, UINT32_MAX);
	grant(RISO_USER_TX, cost(CHUNK));
	expect(p, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(f->ctx->m->num_busy, 1);
	assert_int_equal(p->qp->posted, SHIM_SLOTS);
	assert_int_equal(other->posted, 1);
	shim_destroy_qp(&other->ex.qp_base);
	assert_int_equal(f->ctx->m->num_busy, 0);
}

static void flush(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	for (i = 0; i < DEPTH; i++)
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, i, 16 * CHUNK, 0), 0);
	grant(RISO_USER_TX, 100 * cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, SHIM_SLOTS);
	modify(p, IBV_QPS_ERR);
	fake_run(p->qp, UINT32_MAX);
	for (i = 0; i < DEPTH; i++)
		expect(p, i, IBV_WC_WR_FLUSH_ERR);
	expect_none(p);
	assert_int_equal(fake.u.dir[0].want, 0);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
}

static void reset(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, MB,
				      IBV_SEND_SIGNALED), 0);
		assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 64, 0), 0);
		grant(RISO_USER_TX, 4 * cost(CHUNK));
		expect_none(p);
		/* These completions stay in the CQ over the reset. */
		fake_run(p->qp, 2);
		modify(p, IBV_QPS_RESET);
		modify(p, IBV_QPS_RTS);
		assert_int_equal(fake.u.dir[0].want, 0);
		assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 3, 20 * CHUNK,
				      IBV_SEND_SIGNALED), 0);
		pump(p, 3, 1);
		expect_none(p);
	}
}

/*
 * What post_send has taken the provider has before the queue pair goes, or is moved to
 * ERR, as rdma_disconnect() does it, or to RESET. In any state that it may be in, also
 * with a send queue that has no room for chunks and a CQ that nobody polls.
 */
enum { TEARDOWNS = 10000 };

static uint32_t random_to(uint32_t num)
{
	return random_u64() % num;
}

static uint32_t post_some_sends(struct fake_qp *qp)
{
	uint32_t num = random_to(DEPTH) + 1;
	uint32_t sends = 0, i;
	int opcode;

	for (i = 0; i < num; i++) {
		opcode = random_to(3) ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
		if (post(qp, opcode, i, random_to(8 * CHUNK),
			 random_to(2) ? IBV_SEND_SIGNALED : 0))
			break;
		sends += opcode == IBV_WR_SEND;
		if (!random_to(4))
			grant(RISO_USER_TX, random_to(8 * CHUNK));
		if (!random_to(4))
			fake_run(qp, random_to(20));
	}
	return sends;
}

static void tear_down_once(struct prog *p)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_ERR, IBV_QPS_RESET };
	struct fake_cq *cq = make_cq(2 * DEPTH);
	struct fake_qp *qp;
	uint32_t sends, how = random_to(3);
	struct ibv_qp_attr attr;

	fake.max_qp_wr = random_to(2) ? 1024 : DEPTH;
	qp = make_qp(p, cq, random_to(2));
	if (random_to(2))
		ibv_req_notify_cq(ibv_cq_ex_to_cq(&cq->cq), random_to(2));
	sends = post_some_sends(qp);
	/* The device works on. */
	runs_on = qp;
	if (how < ARRAY_SIZE(states)) {
		attr.qp_state = states[how];
		assert_int_equal(shim_modify_qp(&qp->ex.qp_base, &attr, IBV_QP_STATE), 0);
		assert_int_equal(fake.given, sends);
	}
	runs_on = how < ARRAY_SIZE(states) ? NULL : qp;
	assert_int_equal(shim_destroy_qp(&qp->ex.qp_base), 0);
	assert_true(how < ARRAY_SIZE(states) || fake.given == sends);
	runs_on = NULL;
	assert_false(cq->overflow);
	shim_destroy_cq(ibv_cq_ex_to_cq(&cq->cq));
	assert_int_equal(fake.u.dir[0].want, 0);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
	fake.now += 20 * MSEC;
}

static void torn_down(void **state)
{
	uint32_t i;

	seed = 1;
	for (i = 0; i < TEARDOWNS; i++)
		tear_down_once(*state);
}

/* Queue pairs that are destroyed or reset take along what waits for the program. */
static void purged(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = make_qp(p, p->cq, 0);
	struct fake_cqe *e;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		fake.now += 20 * MSEC;
		/* A receive, a completion, and one of the other, all reaped. */
		e = &p->cq->ring[p->cq->tail++ % FAKE_CQ];
		memset(e, 0, sizeof(*e));
		e->wc.qp_num = other->ex.qp_base.qp_num;
		e->wc.wr_id = 5;
		assert_int_equal(post(other, IBV_WR_SEND, 6, 8, IBV_SEND_SIGNALED), 0);
		assert_int_equal(post(p->qp, IBV_WR_SEND, 7, 8, IBV_SEND_SIGNALED), 0);
		grant(RISO_USER_TX, 2 * cost(8));
		assert_int_equal(post(p->qp, IBV_WR_SEND, 8, 8, IBV_SEND_SIGNALED), 0);
		fake_run(other, UINT32_MAX);
		fake_run(p->qp, UINT32_MAX);
		assert_int_equal(post(p->qp, IBV_WR_SEND, 9, 8, IBV_SEND_SIGNALED), 0);
		assert_int_equal(p->cq->head, p->cq->tail);
		if (i) {
			shim_destroy_qp(&other->ex.qp_base);
		} else {
			struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

			shim_modify_qp(&other->ex.qp_base, &attr, IBV_QP_STATE);
		}
		pump(p, 7, 3);
		expect_none(p);
	}
}

/* One that was lost with its queue pair is not followed by those that the CQ still has. */
static void lost_to_the_end(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct fake_qp *other = make_qp(p, p->cq, 0);
	uint64_t id;
	int i;

	fake.k.mode = RISO_USER_OPEN;
	for (i = 0; i < 2; i++) {
		for (id = 1; id <= 4; id++)
			assert_int_equal(post(other, IBV_WR_SEND, id, 8,
					      IBV_SEND_SIGNALED), 0);
		fake_run(other, 3);
		/* The first one waits in the soft ring. */
		shim_comp_reap_most(c, 1);
		if (i)
			shim_destroy_qp(&other->ex.qp_base);
		else
			shim_modify_qp(&other->ex.qp_base, &attr, IBV_QP_STATE);
		expect_none(p);
	}
	assert_int_equal(post(p->qp, IBV_WR_SEND, 5, 8, IBV_SEND_SIGNALED), 0);
	pump(p, 5, 1);
}

/* The completion of a destroyed queue pair is told as that of the program. */
static void destroyed(void **state)
{
	struct prog *p = *state;
	struct ibv_wc wc;

	fake.k.mode = RISO_USER_OPEN;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 77, 64, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, 1);
	shim_destroy_qp(&p->qp->ex.qp_base);
	p->qp = NULL;
	assert_int_equal(poll_one(p, &wc), 1);
	assert_int_equal(wc.wr_id, 77);
	expect_none(p);
}

static void open_and_paced(void **state)
{
	struct prog *p = *state;
	uint64_t id = 0;
	uint32_t i, n = 0;
	struct ibv_wc wc;

	for (i = 0; i < 200; i++) {
		fake.k.mode = i % 7 < 4 ? RISO_USER_PACED : RISO_USER_OPEN;
		if (!post(p->qp, i % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, n,
			  (i % 5) * CHUNK + i, IBV_SEND_SIGNALED))
			n++;
		grant(RISO_USER_TX, cost(CHUNK));
		fake_run(p->qp, i % 4);
		while (poll_one(p, &wc))
			assert_int_equal(wc.wr_id, id++);
	}
	/* OPEN lets go of all that is held. */
	fake.k.mode = RISO_USER_OPEN;
	for (i = 0; i < 4; i++) {
		while (poll_one(p, &wc))
			assert_int_equal(wc.wr_id, id++);
		fake_run(p->qp, UINT32_MAX);
	}
	assert_int_equal(id, n);
	assert_int_equal(fake.u.dir[0].want, 0);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
}

/* Unsignaled from an open time fill the window; one piece may go all the same. */
static void never_stuck(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	fake.k.mode = RISO_USER_OPEN;
	for (i = 0; i < DEPTH - 1; i++)
		assert_int_equal(post(p->qp, IBV_WR_RDMA_READ, i, MB, 0), 0);
	fake_run(p->qp, UINT32_MAX);
	fake.k.mode = RISO_USER_PACED;
	fake.granted[RISO_USER_RX] += fake.u.dir[RISO_USER_RX].posted;
	fake.k.window = cost(CHUNK);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_READ, 33, MB, IBV_SEND_SIGNALED), 0);
	pump(p, 33, 1);
	assert_int_equal(fake.u.dir[1].posted, fake.u.dir[1].done);
}

static void latency_passes(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);

	fake.class_id = RISO_CLASS_LATENCY;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	/* What is held goes out first, then all goes straight. */
	fake.k.classes++;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 2, MB, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	assert_int_equal(p->qp->sq[1].wr.wr_id, 2);
	fake_run(p->qp, 2);
	expect(p, 1, IBV_WC_SUCCESS);
	expect(p, 2, IBV_WC_SUCCESS);
	/* Nothing there has to be translated, nor is a lock needed. */
	assert_false(c->active);
	/* And back, by the program's own wish. */
	choose(p, RISO_CLASS_BANDWIDTH);
	assert_true(c->active);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 3, MB, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	pump(p, 3, 1);
	fake.register_err = EPERM;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_LATENCY), EPERM);
	assert_int_equal(shim_over_target(&p->qp->ex.qp_base), 0);
	fake.k.over_target = 1;
	assert_int_equal(shim_over_target(&p->qp->ex.qp_base), 1);
	fake.k.over_target = 0;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 4, MB, IBV_SEND_SIGNALED), 0);
	pump(p, 4, 1);
}

static bool is_locked(pthread_mutex_t *lock)
{
	if (pthread_mutex_trylock(lock))
		return true;
	pthread_mutex_unlock(lock);
	return false;
}

static void count_locked(void)
{
	struct shim_ctx *c = shim_map_find(&shim_ctxs, ctx);

	fake.calls += is_locked(&c->m->lock);
}

static void expect_unlocked_poll(struct prog *p, struct shim_cq *c, bool unlocked)
{
	assert_int_equal(c->active, !unlocked);
	fake.calls = 0;
	fake.at_call = count_locked;
	expect_none(p);
	fake.at_call = NULL;
	assert_int_equal(fake.calls, !unlocked);
}

/* A CQ is polled without a lock unless something is governed there that may complete. */
static void unlocked_polls(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct fake_qp *other;

	expect_unlocked_poll(p, c, false);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	choose(p, RISO_CLASS_LATENCY);
	assert_int_equal(p->qp->posted, 2);
	expect_unlocked_poll(p, c, false);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	assert_true(c->active);
	expect(p, 2, IBV_WC_SUCCESS);
	expect_unlocked_poll(p, c, true);
	/* One that is gone, and what it left behind */
	fake.class_id = RISO_CLASS_BANDWIDTH;
	other = make_qp(p, p->cq, 0);
	expect_unlocked_poll(p, c, false);
	fake.k.mode = RISO_USER_OPEN;
	assert_int_equal(post(other, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
	fake_run(other, 1);
	shim_destroy_qp(&other->ex.qp_base);
	assert_true(c->active);
	p->cq->head = p->cq->tail;
	expect_unlocked_poll(p, c, false);
	expect_unlocked_poll(p, c, true);
	/* One that is refused */
	fake.register_err = ENODEV;
	other = make_qp(p, p->cq, 0);
	expect_unlocked_poll(p, c, true);
	shim_destroy_qp(&other->ex.qp_base);
	expect_unlocked_poll(p, c, true);
}

/* Who has the last completion in hand has the lock: nobody polls past it without. */
static void active_to_the_last(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	struct shim_soft e = {};

	fake.k.mode = RISO_USER_OPEN;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	choose(p, RISO_CLASS_LATENCY);
	fake_run(p->qp, 1);
	assert_int_equal(fake_poll_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1, &e.wc), 1);
	assert_true(shim_comp_translate(&e));
	assert_true(c->active);
	shim_comp_update(c);
	assert_false(c->active);
}

/* Polled with the lock, though nothing is governed there. */
static void expect_locked_poll(struct prog *p)
{
	fake.calls = 0;
	fake.at_call = count_locked;
	expect_none(p);
	fake.at_call = NULL;
	assert_int_equal(fake.calls, 1);
}

static void *poll_locked(void *arg)
{
	expect_locked_poll(arg);
	return NULL;
}

/* Where membarrier() is refused, to a new thread or from some time on, for ever. */
static void barrier_refused(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);
	pthread_t thread;

	choose(p, RISO_CLASS_LATENCY);
	expect_unlocked_poll(p, c, true);
	fake.no_barrier = true;
	assert_int_equal(pthread_create(&thread, NULL, poll_locked, p), 0);
	pthread_join(thread, NULL);
	expect_locked_poll(p);
	assert_false(c->active);
	shim_polls = SHIM_POLLS_FREE;
	expect_unlocked_poll(p, c, true);
	choose(p, RISO_CLASS_BANDWIDTH);
	fake.no_barrier = false;
	choose(p, RISO_CLASS_LATENCY);
	assert_false(c->active);
	expect_locked_poll(p);
	shim_polls = SHIM_POLLS_FREE;
}

/* What no rule allows is asked for again when the rules have changed. */
static void wish_kept(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f;

	setenv("RDMA_ISOLATE_CLASS", "latency", 1);
	fake.register_err = EPERM;
	assert_int_equal(setup_as(p, 0), 0);
	unsetenv("RDMA_ISOLATE_CLASS");
	f = shim_map_find(&shim_qps, p->qp);
	assert_int_equal(fake.wish, RISO_CLASS_BY_RULE);
	assert_false(f->pass);
	fake.register_err = 0;
	fake.class_id = RISO_CLASS_LATENCY;
	fake.k.classes++;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.wish, RISO_CLASS_LATENCY);
	assert_true(f->pass);
	/* A wish that was refused to its caller is none. */
	fake.register_err = EPERM;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_THROUGHPUT),
			 EPERM);
	assert_true(f->pass);
	fake.register_err = 0;
	fake.k.classes++;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.wish, RISO_CLASS_LATENCY);
	/* One that was granted takes the place of the former. */
	fake.class_id = RISO_CLASS_BANDWIDTH;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_THROUGHPUT), 0);
	fake.k.classes++;
	fake.k.mode = RISO_USER_OPEN;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.wish, RISO_CLASS_THROUGHPUT);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	expect(p, 2, IBV_WC_SUCCESS);
	expect(p, 3, IBV_WC_SUCCESS);
}

/* The program may ask for classes that there are, and for nothing else. */
static void no_class(void **state)
{
	static const uint32_t wrong[] = { RISO_CLASS_BY_RULE, RISO_CLASS_BANDWIDTH + 1 };
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct ibv_pd pd = { .context = ctx };
	struct ibv_qp_init_attr attr = p->attr;
	struct ibv_qp *other;
	uint32_t i;

	attr.qp_type = IBV_QPT_UD;
	other = shim_create_qp(&pd, &attr);
	choose(p, RISO_CLASS_THROUGHPUT);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(shim_set_class(&p->qp->ex.qp_base, wrong[i]), EINVAL);
		assert_int_equal(shim_set_class(other, wrong[i]), EINVAL);
	}
	assert_int_equal(f->class_wish, RISO_CLASS_THROUGHPUT);
	assert_int_equal(shim_set_class(other, RISO_CLASS_LATENCY), EOPNOTSUPP);
	shim_destroy_qp(other);
}

static void wait_posted(struct prog *p, uint32_t num)
{
	uint32_t posted = 0, i;

	for (i = 0; i < 10000 && posted != num; i++) {
		usleep(100);
		pthread_mutex_lock(&fake.lock);
		posted = p->qp->posted;
		pthread_mutex_unlock(&fake.lock);
	}
	assert_int_equal(posted, num);
}

/* Another class is heeded by who polls, without a post */
static void class_by_poll(void **state)
{
	struct prog *p = *state;
	int asked;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, IBV_SEND_SIGNALED), 0);
	asked = fake.registers;
	expect_none(p);
	expect_none(p);
	assert_int_equal(fake.registers, asked);
	fake.class_id = RISO_CLASS_LATENCY;
	fake.k.classes++;
	expect_none(p);
	assert_int_equal(fake.registers, asked + 1);
	assert_int_equal(p->qp->posted, 1);
	expect_none(p);
	assert_int_equal(fake.registers, asked + 1);
	fake_run(p->qp, 1);
	expect(p, 1, IBV_WC_SUCCESS);
}

/* Or by the helper */
static void class_by_helper(void **state)
{
	struct prog *p = *state;

	fake.run_helper = true;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	__atomic_store_n(&fake.class_id, RISO_CLASS_LATENCY, __ATOMIC_RELAXED);
	__atomic_add_fetch(&fake.k.classes, 1, __ATOMIC_RELEASE);
	wait_posted(p, 1);
	fake_run(p->qp, 1);
	expect(p, 1, IBV_WC_SUCCESS);
}

/* A chain that goes straight is one doorbell, and the one that is refused is the program's. */
static void sig_all_chain(void **state)
{
	struct prog *p = *state;
	struct ibv_send_wr wr[40] = {};
	struct ibv_send_wr *bad = NULL;
	uint32_t i;

	choose(p, RISO_CLASS_LATENCY);
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
		expect(p, i, IBV_WC_SUCCESS);
	p->qp->doorbells = 0;
	wr[7].next = NULL;
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), 0);
	assert_int_equal(p->qp->doorbells, 1);
	assert_int_equal(p->qp->posted, 43);
	/* As rxe does whose device has gone */
	fake.names_none = true;
	p->qp->refuse = EIO;
	assert_int_equal(ibv_post_send(&p->qp->ex.qp_base, wr, &bad), EIO);
	assert_ptr_equal(bad, &wr[0]);
}

/* A device whose send queue has hardly more entries than the program wants */
static void setup_tight(struct prog *p)
{
	fake.max_qp_wr = DEPTH + 4;
	setup_as(p, 0);
	assert_int_equal(p->qp->depth, DEPTH + 4);
}

/* What went straight to the provider takes room there when the flow is held again. */
static void direct_takes_room(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	setup_tight(p);
	choose(p, RISO_CLASS_LATENCY);
	for (i = 0; i < DEPTH / 2; i++)
		assert_int_equal(post(p->qp, IBV_WR_SEND, i, 8, 0), 0);
	choose(p, RISO_CLASS_BANDWIDTH);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 20, 15 * CHUNK, 0), 0);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 21, 8, IBV_SEND_SIGNALED), 0);
	pump(p, 21, 1);
}

/* Pieces that are out leave less room than the program knows of. */
static void pieces_take_room(void **state)
{
	struct prog *p = *state;
	uint32_t i;

	setup_tight(p);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 0, 12 * CHUNK, IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, 12 * cost(CHUNK));
	drive(p);
	assert_int_equal(p->qp->posted, 12);
	choose(p, RISO_CLASS_LATENCY);
	for (i = 1; i < DEPTH; i++)
		assert_int_equal(post(p->qp, IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED), 0);
	pump(p, 0, DEPTH);
	/* It goes straight again. */
	assert_int_equal(post(p->qp, IBV_WR_SEND, 77, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->sq[p->qp->posted - 1].wr.wr_id, 77);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 77, IBV_WC_SUCCESS);
}

/* A flow that comes while a resize fails has entries for what nobody sees all the same. */
static void comes_while_resized(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c;

	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(2 * DEPTH);
	c = shim_map_find(&shim_cqs, p->cq);
	pthread_mutex_lock(&c->resize);
	p->qp = make_qp(p, p->cq, 0);
	pthread_mutex_unlock(&c->resize);
	assert_true(c->spare >= SHIM_SPARE);
}

/* A CQ is not active any more once the last piece of before class latency has completed. */
static void pieces_end_in_latency(void **state)
{
	struct prog *p = *state;
	struct shim_cq *c = shim_map_find(&shim_cqs, p->cq);

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 4 * CHUNK, IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, 4 * cost(CHUNK));
	drive(p);
	choose(p, RISO_CLASS_LATENCY);
	assert_true(c->active);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	expect_none(p);
	assert_false(c->active);
}

static void count_call(void)
{
	fake.calls++;
}

/* One takes a completion of the first queue pair, and has armed; the second one holds. */
static uint32_t sleep_beside(struct prog *p, struct fake_qp *other)
{
	uint32_t events;

	arm(p);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, CHUNK, IBV_SEND_SIGNALED), 0);
	assert_int_equal(post(other, IBV_WR_RDMA_WRITE, 2, 8 * CHUNK, 0), 0);
	grant(RISO_USER_TX, cost(CHUNK));
	expect_none(p);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, UINT32_MAX);
	help(p);
	assert_int_equal(p->cq->head, p->cq->tail);
	events = p->cq->events;
	arm(p);
	assert_int_equal(p->cq->events, events);
	return events;
}

/* Who sleeps is woken up although the queue pair that would do so is destroyed. */
static void armed_and_destroyed(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = make_qp(p, p->cq, 0);
	uint32_t events = sleep_beside(p, other);

	runs_on = other;
	assert_int_equal(shim_destroy_qp(&other->ex.qp_base), 0);
	runs_on = NULL;
	assert_int_equal(p->cq->events, events + 1);
	expect(p, 1, IBV_WC_SUCCESS);
}

/* One that is put into error brings its events by itself: that does not wait. */
static void armed_and_in_error(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = make_qp(p, p->cq, 0);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	sleep_beside(p, other);
	fake.calls = 0;
	fake.at_call = count_call;
	assert_int_equal(shim_modify_qp(&other->ex.qp_base, &attr, IBV_QP_STATE), 0);
	fake.at_call = NULL;
	assert_true(fake.calls < 10);
	runs_on = other;
	shim_destroy_qp(&other->ex.qp_base);
	runs_on = NULL;
}

/* A provider that makes powers of two is not made to double what was asked for. */
static void cq_sizes(void **state)
{
	static const struct {
		int asked, made;
	} cases[] = {
		{ 1, 129 }, { 200, 255 }, { 900, 1023 }, { 991, 1023 }, { 992, 1120 },
		{ 1023, 1151 }, { 1024, 1152 }, { 1100, 1228 },
	};
	struct fake_cq *cq;
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		cq = make_cq(cases[i].asked);
		assert_int_equal(cq->cq.cqe, cases[i].made);
		shim_destroy_cq(ibv_cq_ex_to_cq(&cq->cq));
	}
}

/* What went straight and completed leaves room. */
static void latency_makes_room(void **state)
{
	struct prog *p = *state;
	uint64_t i;

	fake.k.mode = RISO_USER_OPEN;
	for (i = 1; i < DEPTH; i++)
		assert_int_equal(post(p->qp, IBV_WR_SEND, i, 8, 0), 0);
	choose(p, RISO_CLASS_LATENCY);
	assert_int_equal(post(p->qp, IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, UINT32_MAX);
	expect(p, DEPTH, IBV_WC_SUCCESS);
	choose(p, RISO_CLASS_BANDWIDTH);
	for (i = 1; i < DEPTH; i++)
		assert_int_equal(post(p->qp, IBV_WR_SEND, i, 8, 0), 0);
	assert_int_equal(post(p->qp, IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED), 0);
	fake_run(p->qp, UINT32_MAX);
	expect(p, DEPTH, IBV_WC_SUCCESS);
}

/* Two flows take turns. */
static void turns(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = make_qp(p, p->cq, 0);
	uint32_t i;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(post(other, IBV_WR_RDMA_WRITE, 2, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	for (i = 1; i <= 8; i++) {
		grant(RISO_USER_TX, 2 * cost(CHUNK));
		expect_none(p);
		assert_int_equal(p->qp->posted, i);
		assert_int_equal(other->posted, i);
		if (i == 8)
			break;
		fake_run(p->qp, UINT32_MAX);
		fake_run(other, UINT32_MAX);
	}
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	shim_destroy_qp(&other->ex.qp_base);
}

/* Receives, and whatever else is in the CQ, are left alone. */
static void not_ours(void **state)
{
	struct prog *p = *state;
	struct fake_cqe *e;
	uint64_t i;

	for (i = 0; i < 100; i++) {
		e = &p->cq->ring[p->cq->tail++ % FAKE_CQ];
		memset(e, 0, sizeof(*e));
		e->wc.wr_id = i < 50 ? i * 8 : (uintptr_t)local + i * 32;
		e->wc.qp_num = p->qp->ex.qp_base.qp_num;
		e->wc.opcode = IBV_WC_RECV;
		e->wc.status = i % 2 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR;
	}
	for (i = 0; i < 100; i++)
		expect(p, i < 50 ? i * 8 : (uintptr_t)local + i * 32,
		       i % 2 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	p->cq->overflow = false;
}

/* With what the real one could get, or as if there were no shim. */
static void limits(void **state)
{
	struct prog *p = *state;
	struct prog more = {};
	struct fake_qp *qp[8];
	uint32_t i;

	ctx = shim_open_device(&fake.device);
	fake.max_qp_wr = DEPTH;
	p->cq = make_cq(DEPTH);
	for (i = 0; i < 8; i++) {
		qp[i] = make_qp(&more, p->cq, 0);
		assert_non_null(qp[i]);
		assert_int_equal(qp[i]->depth, DEPTH);
		assert_int_equal(more.attr.cap.max_send_wr, DEPTH);
	}
	assert_true(p->cq->cq.cqe >= DEPTH + 8 * SHIM_SLOTS);
	assert_non_null(shim_map_find(&shim_qps, qp[7]));
	/* What was asked for comes on top of what is ours. */
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq), 100), 0);
	assert_int_equal(p->cq->cq.cqe, 100 + 8 * SHIM_SLOTS);
	for (i = 0; i < 8; i++)
		shim_destroy_qp(&qp[i]->ex.qp_base);
}

static void grow_cq(struct fake_cq *cq, int asked)
{
	cq->cq.cqe = asked;
}

/*
 * Many queue pairs share what a CQ that cannot be resized has to spare, however little
 * that is; each gets on, and the CQ never overflows.
 */
static void share_entries(struct prog *p, int spare)
{
	enum { QPS = 48, EACH = 80 };
	struct fake_qp *qp[QPS];
	uint32_t i, left = QPS, rounds;
	struct ibv_wc wc;
	int n;

	fake.no_resize = 1;
	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(QPS);
	grow_cq(p->cq, QPS + spare);
	for (i = 0; i < QPS; i++) {
		qp[i] = make_qp(p, p->cq, 0);
		assert_non_null(shim_map_find(&shim_qps, qp[i]));
		/* The last one is asked for, and chunks in between are seen by nobody. */
		assert_int_equal(post(qp[i], IBV_WR_RDMA_WRITE, i, EACH * CHUNK,
				      IBV_SEND_SIGNALED), 0);
	}
	p->qp = qp[0];
	for (rounds = 0; left && rounds < 100000; rounds++) {
		grant(RISO_USER_TX, QPS * SHIM_SLOTS * cost(CHUNK));
		drive(p);
		for (i = 0; i < QPS; i++)
			fake_run(qp[i], 1 + rounds % SHIM_SLOTS);
		/* Nobody polls for a while. */
		if (rounds % 8)
			continue;
		while ((n = poll_one(p, &wc))) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			left--;
		}
	}
	assert_int_equal(left, 0);
	assert_true(p->cq->most <= (uint32_t)(QPS + spare));
	assert_false(p->cq->overflow);
	for (i = 0; i < QPS; i++) {
		assert_int_equal(qp[i]->posted, EACH);
		shim_destroy_qp(&qp[i]->ex.qp_base);
	}
	shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
	shim_close_device(ctx);
	while (fake.helpers)
		fake.helper(fake.helps[--fake.helpers]);
	p->cq = NULL;
	p->qp = NULL;
	ctx = NULL;
	fake.now += 20 * MSEC;
}

static void shared_entries(void **state)
{
	share_entries(*state, 128);
	share_entries(*state, 8);
}

/*
 * Queue pairs that fail complete all that is out, also what nobody asked a completion for.
 * A program that gives its CQ an entry for each of its work requests loses none of them,
 * into however many chunks they are cut.
 */
enum { FAIL_QPS = 64, FAIL_WRS = 4 };

struct failing {
	struct prog p;
	struct fake_qp *qp[FAIL_QPS];
	uint32_t qps, wrs;
	bool seen[FAIL_QPS * FAIL_WRS];
};

/* All that is posted under grants is with the provider, and nothing has completed. */
static void begin_failing(struct failing *t, uint32_t qps, uint32_t wrs, int spare,
			  unsigned int flags)
{
	uint32_t i, k;

	memset(t, 0, sizeof(*t));
	t->qps = qps;
	t->wrs = wrs;
	t->p.cq = make_cq(qps * wrs);
	fake.no_resize = spare;
	if (spare)
		t->p.cq->cq.cqe = qps * wrs + spare;
	for (i = 0; i < qps; i++) {
		t->qp[i] = make_qp(&t->p, t->p.cq, 0);
		assert_non_null(shim_map_find(&shim_qps, t->qp[i]));
	}
	for (i = 0; i < qps; i++)
		for (k = 0; k < wrs; k++)
			assert_int_equal(post(t->qp[i], IBV_WR_RDMA_WRITE, i * wrs + k,
					      MB, flags), 0);
	t->p.qp = t->qp[0];
	for (i = 0; i < 4; i++) {
		grant(RISO_USER_TX, FAIL_QPS * SHIM_SLOTS * cost(CHUNK));
		drive(&t->p);
	}
	/* Each has one piece out at least, with the entry that the program has for it. */
	for (i = 0; i < qps; i++)
		assert_true(t->qp[i]->posted || !(flags & IBV_SEND_SIGNALED));
}

/* From here on only who polls finds what has completed. */
static void reap_nothing(struct prog *p)
{
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(&p->cq->cq), 1), 0);
	expect_none(p);
}

static uint32_t see_failed(struct failing *t)
{
	uint32_t num = 0;
	struct ibv_wc wc;

	while (poll_one(&t->p, &wc)) {
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
		assert_true(wc.wr_id < t->qps * t->wrs);
		assert_false(t->seen[wc.wr_id]);
		t->seen[wc.wr_id] = true;
		num++;
	}
	return num;
}

static void forget_failing(struct failing *t)
{
	uint32_t i;

	assert_false(t->p.cq->overflow);
	for (i = 0; i < t->qps; i++)
		shim_destroy_qp(&t->qp[i]->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&t->p.cq->cq));
	fake.no_resize = 0;
	fake.now += 20 * MSEC;
}

static void end_failing(struct failing *t)
{
	uint32_t i, num = 0, rounds;

	assert_false(t->p.cq->overflow);
	for (rounds = 0; rounds < 1000; rounds++) {
		num += see_failed(t);
		if (num == t->qps * t->wrs && fake.u.dir[0].posted == fake.u.dir[0].done)
			break;
		for (i = 0; i < t->qps; i++)
			fake_run(t->qp[i], UINT32_MAX);
	}
	assert_int_equal(num, t->qps * t->wrs);
	assert_int_equal(fake.u.dir[0].posted, fake.u.dir[0].done);
	forget_failing(t);
}

static const struct {
	uint32_t qps, wrs;
	int spare;	/* of a CQ that cannot be resized, 0 for one that can */
} failures[] = {
	{ 16, 1, 0 }, { 16, 4, 0 }, { 64, 4, 0 }, { 16, 1, 128 }, { 64, 4, 32 },
	{ 64, 1, 8 }, { 1, 1, 8 },
};

/* The peer is gone: all run into their timeouts. */
static void fail_at_once(void **state)
{
	struct failing t;
	uint32_t i, k, n;

	(void)state;
	for (n = 0; n < 2 * ARRAY_SIZE(failures); n++) {
		k = n / 2;
		begin_failing(&t, failures[k].qps, failures[k].wrs, failures[k].spare,
			      n % 2 ? IBV_SEND_SIGNALED : 0);
		for (i = 0; i < t.qps; i++)
			t.qp[i]->fail_at = 0;
		for (i = 0; i < t.qps; i++)
			fake_run(t.qp[i], UINT32_MAX);
		end_failing(&t);
	}
}

static void count_calls(void)
{
	fake.calls++;
}

/*
 * The program moves each to ERR before it polls. What a drain gives to the provider has
 * room, too, so that no call waits for a peer that is gone.
 */
static void fail_in_turn(void **state)
{
	struct failing t;
	uint32_t i, k, n;

	(void)state;
	for (n = 0; n < 2 * ARRAY_SIZE(failures); n++) {
		k = n / 2;
		begin_failing(&t, failures[k].qps, failures[k].wrs, failures[k].spare,
			      n % 2 ? IBV_SEND_SIGNALED : 0);
		fake.calls = 0;
		fake.at_call = count_calls;
		for (i = 0; i < t.qps; i++) {
			t.p.qp = t.qp[i];
			modify(&t.p, IBV_QPS_ERR);
			fake_run(t.qp[i], UINT32_MAX);
		}
		fake.at_call = NULL;
		assert_true(fake.calls < 64 * FAIL_QPS);
		end_failing(&t);
	}
}

/* Eight queue pairs have as many chunks out as each may have. */
static void chunks_out(void **state)
{
	struct failing t;
	uint32_t i;

	(void)state;
	begin_failing(&t, 8, 1, 0, 0);
	for (i = 0; i < t.qps; i++) {
		assert_int_equal(t.qp[i]->posted, SHIM_SLOTS);
		t.qp[i]->err = true;
		fake_run(t.qp[i], UINT32_MAX);
	}
	end_failing(&t);
}

/* Those that have posted much in a large CQ get on in a small one. */
static void chunks_in_smaller(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other = make_qp(p, p->cq, 0);
	struct ibv_wc wc;
	uint32_t i, num = 0;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * CHUNK, IBV_SEND_SIGNALED),
			 0);
	assert_int_equal(post(other, IBV_WR_RDMA_WRITE, 2, 64 * CHUNK, IBV_SEND_SIGNALED),
			 0);
	grant(RISO_USER_TX, 20 * cost(CHUNK));
	drive(p);
	assert_int_equal(p->qp->posted, 10);
	assert_int_equal(other->posted, 10);
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq), fake.max_cqe), 0);
	for (i = 0; i < 1000 && num < 2; i++) {
		grant(RISO_USER_TX, 64 * cost(CHUNK));
		drive(p);
		fake_run(p->qp, UINT32_MAX);
		fake_run(other, UINT32_MAX);
		while (poll_one(p, &wc)) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			num++;
		}
	}
	assert_int_equal(num, 2);
	shim_destroy_qp(&other->ex.qp_base);
}

/*
 * A program that is told of a message has its entry again, and may fill it. What is out of
 * the message has none then.
 */
static void told_early(void **state)
{
	struct failing t;
	struct fake_qp *late;
	struct ibv_wc wc[4];
	uint32_t i, k;

	(void)state;
	begin_failing(&t, 4, 1, 20, IBV_SEND_SIGNALED);
	late = make_qp(&t.p, t.p.cq, 0);
	t.p.cq->cq.cqe++;
	reap_nothing(&t.p);
	for (i = 0; i < t.qps; i++) {
		assert_true(t.qp[i]->posted >= 5);
		t.qp[i]->err = true;
	}
	for (k = 0; k < SHIM_SLOTS; k++)
		for (i = 0; i < t.qps; i++)
			fake_run(t.qp[i], 1);
	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(&t.p.cq->cq), 4, wc), 4);
	for (i = 0; i < t.qps; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(post(t.qp[i], IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED), 0);
		fake_run(t.qp[i], 1);
	}
	assert_int_equal(post(late, IBV_WR_RDMA_WRITE, 9, MB, IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, SHIM_SLOTS * cost(CHUNK));
	drive(&t.p);
	assert_true(late->posted > 1);
	late->err = true;
	fake_run(late, UINT32_MAX);
	shim_destroy_qp(&late->ex.qp_base);
	forget_failing(&t);
}

/*
 * A program that gives its CQ entries for what it wants to hear of, and no more, has room
 * for all that succeeds.
 */
static void few_entries(void **state)
{
	enum { SILENT = 8, HEARD = 12, SPARE = 8 };
	struct prog *p = *state;
	struct fake_qp *qp[SILENT + HEARD];
	struct ibv_wc wc;
	uint32_t i, rounds, heard = 0;

	fake.no_resize = 1;
	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(HEARD);
	p->cq->cq.cqe = HEARD + SPARE;
	for (i = 0; i < ARRAY_SIZE(qp); i++)
		qp[i] = make_qp(p, p->cq, 0);
	p->qp = qp[0];
	reap_nothing(p);
	for (i = 0; i < SILENT; i++)
		assert_int_equal(post(qp[i], IBV_WR_SEND, i, 64 * KB, 0), 0);
	for (rounds = 0; rounds < 100 && heard < HEARD; rounds++) {
		grant(RISO_USER_TX, 2 * MB);
		drive(p);
		for (i = 0; i < ARRAY_SIZE(qp); i++)
			fake_run(qp[i], UINT32_MAX);
		for (i = SILENT; i < ARRAY_SIZE(qp) && !rounds; i++)
			assert_int_equal(post(qp[i], IBV_WR_RDMA_WRITE, i, 2 * CHUNK,
					      IBV_SEND_SIGNALED), 0);
		/* Nobody polls for a while. */
		while (rounds % 8 == 7 && poll_one(p, &wc))
			heard++;
	}
	assert_int_equal(heard, HEARD);
	assert_false(p->cq->overflow);
	p->qp = NULL;
	for (i = 0; i < ARRAY_SIZE(qp); i++) {
		assert_int_equal(qp[i]->posted, i < SILENT ? 1 : 2);
		shim_destroy_qp(&qp[i]->ex.qp_base);
	}
}

/* Those that have ended with messages that nobody hears of leave room to others. */
static void idle_leave_room(void **state)
{
	enum { IDLE = 20, EACH = 2 };
	struct prog *p = *state;
	struct fake_qp *idle[IDLE];
	uint32_t i, rounds;

	fake.no_resize = 1;
	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(2 * IDLE);
	p->cq->cq.cqe = 2 * IDLE + SHIM_SLOTS;
	p->qp = make_qp(p, p->cq, 0);
	for (i = 0; i < IDLE; i++) {
		idle[i] = make_qp(p, p->cq, 0);
		assert_int_equal(post(idle[i], IBV_WR_RDMA_WRITE, i, EACH * CHUNK, 0), 0);
	}
	for (rounds = 0; rounds < 100; rounds++) {
		grant(RISO_USER_TX, 100 * cost(CHUNK));
		drive(p);
		for (i = 0; i < IDLE; i++)
			fake_run(idle[i], UINT32_MAX);
		expect_none(p);
	}
	for (i = 0; i < IDLE; i++)
		assert_int_equal(idle[i]->posted, EACH);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 99, MB, IBV_SEND_SIGNALED), 0);
	drive(p);
	assert_true(p->qp->posted >= SHIM_SLOTS / 2);
	for (i = 0; i < IDLE; i++)
		shim_destroy_qp(&idle[i]->ex.qp_base);
}

/*
 * Also where a CQ is crowded, few chunks have a completion of their own, and others are with
 * the device when these are known to be complete.
 */
static void few_hidden_crowded(void **state)
{
	enum { QPS = 16, EACH = 256 };
	struct prog *p = *state;
	struct fake_qp *qp[QPS];
	uint32_t i, cqes, rounds, left = QPS;
	struct ibv_wc wc;

	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(QPS);
	for (i = 0; i < QPS; i++)
		qp[i] = make_qp(p, p->cq, 0);
	for (i = 0; i < QPS; i++)
		assert_int_equal(post(qp[i], IBV_WR_RDMA_WRITE, i, EACH * CHUNK,
				      IBV_SEND_SIGNALED), 0);
	p->qp = qp[0];
	for (rounds = 0; rounds < 10000 && left; rounds++) {
		grant(RISO_USER_TX, QPS * SHIM_SLOTS * cost(CHUNK));
		drive(p);
		for (i = 0; i < QPS; i++) {
			assert_true(qp[i]->posted == EACH ||
				    qp[i]->posted - qp[i]->run > SHIM_SLOTS / 8);
			fake_run(qp[i], 1);
		}
		while (poll_one(p, &wc))
			left--;
	}
	assert_int_equal(left, 0);
	cqes = p->cq->tail;
	assert_true(cqes <= EACH * QPS / 8);
	for (i = 0; i < QPS; i++)
		shim_destroy_qp(&qp[i]->ex.qp_base);
	p->qp = NULL;
}

/* The next READs go out before the last one that there may be completes. */
static void reads_overlap(void **state)
{
	struct prog *p = *state;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_READ, 1, 16 * CHUNK, IBV_SEND_SIGNALED),
			 0);
	grant(RISO_USER_RX, 16 * cost(CHUNK));
	drive(p);
	assert_int_equal(p->qp->posted, 3);
	fake_run(p->qp, 2);
	expect_none(p);
	assert_int_equal(p->qp->posted, 5);
	pump(p, 1, 1);
}

/*
 * One that has much out of which nothing was asked a completion for gets on beside others
 * that hang, and so does one that begins then.
 */
static void others_hang(void **state)
{
	struct prog *p = *state;
	struct fake_qp *late, *hangs[12];
	uint64_t i;

	fake.no_resize = 1;
	shim_destroy_qp(&p->qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
	p->cq = make_cq(2 * DEPTH);
	p->cq->cq.cqe = 3 * DEPTH;
	for (i = 0; i < ARRAY_SIZE(hangs); i++)
		hangs[i] = make_qp(p, p->cq, 0);
	late = make_qp(p, p->cq, 0);
	p->qp = make_qp(p, p->cq, 0);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * CHUNK, IBV_SEND_SIGNALED),
			 0);
	grant(RISO_USER_TX, 4 * cost(CHUNK));
	drive(p);
	assert_int_equal(p->qp->posted, 4);
	for (i = 0; i < ARRAY_SIZE(hangs); i++)
		assert_int_equal(post(hangs[i], IBV_WR_RDMA_WRITE, 2, 64 * CHUNK,
				      IBV_SEND_SIGNALED), 0);
	fake.now += 20 * MSEC;
	grant(RISO_USER_TX, 400 * cost(CHUNK));
	drive(p);
	pump(p, 1, 1);
	shim_destroy_qp(&p->qp->ex.qp_base);
	p->qp = late;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 3, 64 * CHUNK, IBV_SEND_SIGNALED),
			 0);
	pump(p, 3, 1);
	for (i = 0; i < ARRAY_SIZE(hangs); i++) {
		assert_true(hangs[i]->posted && hangs[i]->posted < 64);
		hangs[i]->err = true;
		fake_run(hangs[i], UINT32_MAX);
	}
	assert_false(p->cq->overflow);
	for (i = 0; i < ARRAY_SIZE(hangs); i++)
		shim_destroy_qp(&hangs[i]->ex.qp_base);
}

/*
 * A program that gives its CQ an entry for each of its work requests, and posts no more
 * of them than that, whatever happens to its queue pairs.
 */
enum { MIX_QPS = 24, MIX_CQE = 48, MIX_OPS = 4000, MIX_RUNS = 60 };

static struct {
	struct prog p;
	struct fake_qp *qp[MIX_QPS];
	uint64_t posted[MIX_QPS];	/* work requests, of all queue pairs in this place */
	uint64_t finished[MIX_QPS];
	uint32_t out;
} mix;

static void mix_poll(uint32_t num)
{
	struct ibv_wc wc;
	uint64_t nr;
	uint32_t i;

	while (num-- && poll_one(&mix.p, &wc)) {
		i = wc.wr_id % MIX_QPS;
		nr = wc.wr_id / MIX_QPS;
		assert_true(nr < mix.posted[i]);
		/* One of a queue pair that is gone may come late. */
		if (nr < mix.finished[i])
			continue;
		mix.out -= nr + 1 - mix.finished[i];
		mix.finished[i] = nr + 1;
	}
}

static void mix_post(uint32_t i)
{
	uint64_t nr = mix.posted[i];
	bool last = mix.out + 1 == MIX_CQE || nr % 4 == 3;

	if (mix.out == MIX_CQE)
		return;
	if (post(mix.qp[i], random_to(4) ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
		 nr * MIX_QPS + i, random_to(50 * CHUNK),
		 last || random_to(2) ? IBV_SEND_SIGNALED : 0))
		return;
	mix.posted[i]++;
	mix.out++;
}

/* Its work requests are the program's no more, once the CQ has been polled empty. */
static void mix_lost(uint32_t i)
{
	mix_poll(UINT32_MAX);
	mix.out -= mix.posted[i] - mix.finished[i];
	mix.finished[i] = mix.posted[i];
}

static void mix_tear_down(uint32_t i, uint32_t how)
{
	struct ibv_qp *qp = &mix.qp[i]->ex.qp_base;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	runs_on = mix.qp[i];
	if (how < 2) {
		attr.qp_state = how ? IBV_QPS_RESET : IBV_QPS_ERR;
		assert_int_equal(shim_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	} else {
		assert_int_equal(shim_destroy_qp(qp), 0);
		runs_on = NULL;
		mix.qp[i] = make_qp(&mix.p, mix.p.cq, 0);
	}
	runs_on = NULL;
	if (how)
		mix_lost(i);
}

/* What is counted is what is there, and each message that is bare has an entry to go on. */
static void mix_check(void)
{
	const struct shim_cq *c = shim_map_find(&shim_cqs, mix.p.cq);
	const struct shim_slots *s;
	struct shim_used used = {};
	uint32_t i;

	for (i = 0; i < MIX_QPS; i++) {
		const struct shim_qp *f = shim_map_find(&shim_qps, mix.qp[i]);
		uint64_t pos;

		for (pos = f->slots->tail; pos != f->sq.slot; pos++) {
			const struct shim_slot *slot = &f->slots->slot[pos % f->slots->num];

			used.hidden += shim_slot_hidden(slot);
			used.extra += !!(slot->flags & SHIM_SLOT_EXTRA);
		}
		used.open += !!f->sq.parts;
		used.bare += f->sq.parts && f->sq.silent >= f->sq.parts;
	}
	LIST_FOREACH(s, &c->zombies, zombie) {
		used.hidden += s->used.hidden;
		used.extra += s->used.extra;
	}
	assert_memory_equal(&used, &c->used, sizeof(used));
	assert_true(used.extra + used.bare <= c->spare);
}

/* For a moment, the provider takes a few and no more. */
static void mix_refuse(struct fake_qp *qp)
{
	qp->refuse = ENOMEM;
	qp->refuse_from = qp->posted + random_to(4);
	grant(RISO_USER_TX, SHIM_SLOTS * cost(CHUNK));
	drive(&mix.p);
	mix_check();
	qp->refuse = 0;
}

static void mix_once(uint32_t what, uint32_t i)
{
	if (what < 40)
		mix_post(i);
	else if (what < 60)
		grant(RISO_USER_TX, random_to(64) * cost(CHUNK));
	else if (what < 80)
		fake_run(mix.qp[i], random_to(SHIM_SLOTS));
	else if (what < 90)
		mix_poll(random_to(8));
	else if (what < 92)
		mix_tear_down(i, random_to(3));
	else if (what < 94)
		mix.qp[i]->fail_at = mix.qp[i]->run + random_to(8);
	else if (what < 95)
		mix_refuse(mix.qp[i]);
	else if (what < 96)
		fake.k.mode = random_to(4) ? RISO_USER_PACED : RISO_USER_OPEN;
	else
		drive(&mix.p);
}

/* All that is out completes in the end. */
static void mix_end(void)
{
	uint32_t i, rounds;

	fake.k.mode = RISO_USER_PACED;
	for (rounds = 0; rounds < 10000 && mix.out; rounds++) {
		grant(RISO_USER_TX, MIX_QPS * SHIM_SLOTS * cost(CHUNK));
		drive(&mix.p);
		for (i = 0; i < MIX_QPS; i++)
			fake_run(mix.qp[i], UINT32_MAX);
		mix_poll(UINT32_MAX);
		for (i = 0; i < MIX_QPS; i++)
			if (mix.posted[i] != mix.finished[i] && rounds % 100 == 99)
				mix_post(i);
		fake.now += 1000;
	}
	assert_int_equal(mix.out, 0);
}

static void never_overflows(void **state)
{
	static const int spares[] = { 8, 20, 128 };
	uint32_t run, n, i;

	(void)state;
	fake.no_resize = 1;
	for (run = 0; run < MIX_RUNS; run++) {
		seed = run + 1;
		memset(&mix, 0, sizeof(mix));
		mix.p.cq = make_cq(MIX_CQE);
		mix.p.cq->cq.cqe = MIX_CQE + spares[run % ARRAY_SIZE(spares)];
		for (i = 0; i < MIX_QPS; i++)
			mix.qp[i] = make_qp(&mix.p, mix.p.cq, 0);
		mix.p.qp = mix.qp[0];
		for (n = 0; n < MIX_OPS && !mix.p.cq->overflow; n++) {
			mix_once(random_to(100), random_to(MIX_QPS));
			mix.p.qp = mix.qp[0];
			mix_check();
			fake.now += random_to(1000);
		}
		if (mix.p.cq->overflow)
			fail_msg("seed %u, %u", run + 1, n);
		mix_end();
		for (i = 0; i < MIX_QPS; i++)
			shim_destroy_qp(&mix.qp[i]->ex.qp_base);
		shim_destroy_cq(ibv_cq_ex_to_cq(&mix.p.cq->cq));
	}
}

/* As if there were no shim */
static void no_kernel(void **state)
{
	struct prog *p = *state;

	fake.open_err = ENOENT;
	ctx = shim_open_device(&fake.device);
	assert_ptr_equal(ctx->ops.post_send, fake_post_send);
	assert_ptr_equal(ctx->ops.poll_cq, fake_poll_cq);
	assert_ptr_equal(fake.v.create_qp_ex, fake_create_qp_ex);
	p->cq = make_cq(DEPTH);
	assert_int_equal(p->cq->cq.cqe, DEPTH);
	p->qp = make_qp(p, p->cq, 1);
	assert_int_equal(p->qp->depth, DEPTH);
	assert_int_equal(p->qp->init.sq_sig_all, 1);
	assert_int_equal(fake.reported, 0);
}

static void expect_straight(struct prog *p, struct fake_qp *qp, uint64_t wr_id)
{
	uint32_t posted = qp->posted;
	struct ibv_wc wc;

	assert_int_equal(post(qp, IBV_WR_RDMA_WRITE, wr_id, 2 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(qp->posted, posted + 1);
	assert_int_equal(qp->sq[posted].wr.wr_id, wr_id);
	fake_run(qp, 1);
	assert_int_equal(poll_one(p, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
}

/* A device is attached with the first queue pair that can be governed, and only then. */
static void attached_late(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other;

	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(2 * DEPTH);
	assert_int_equal(fake.opened, fake.closed);
	assert_int_equal(fake.attached, 0);
	p->qp = make_qp(p, p->cq, 0);
	other = make_qp(p, p->cq, 0);
	assert_int_equal(fake.opened, fake.closed + 1);
	assert_int_equal(fake.attached, 1);
	assert_int_equal(fake.reported, 0);
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
		fake.reported = 0;
		/* Grants are void by then. */
		fake.now += 20 * MSEC;
		ctx = shim_open_device(&fake.device);
		p->cq = make_cq(2 * DEPTH);
		fake.open_err = cases[i].open;
		fake.attach_err = cases[i].attach;
		fake.map_err = cases[i].map;
		fake.k.version = RISO_USER_VERSION + cases[i].version;
		first = make_qp(p, p->cq, i % 2);
		assert_non_null(first);
		if (cases[i].reason) {
			assert_int_equal(fake.reported, first->ex.qp_base.qp_num);
			assert_int_equal(fake.reason, cases[i].reason);
		} else {
			assert_int_equal(fake.reported, 0);
		}
		expect_straight(p, first, 1);
		assert_int_equal(shim_set_class(&first->ex.qp_base,
						RISO_CLASS_LATENCY), EOPNOTSUPP);
		/* It can be governed now, and so can the first. */
		fake.open_err = 0;
		fake.attach_err = 0;
		fake.map_err = 0;
		fake.k.version = RISO_USER_VERSION;
		expect_straight(p, first, 2);
		fake.attached = 0;
		p->qp = make_qp(p, p->cq, 0);
		assert_int_equal(fake.attached, 1);
		assert_int_equal(post(p->qp, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
		assert_int_equal(p->qp->posted, 0);
		assert_int_equal(post(first, IBV_WR_SEND, 4, 8, 0), 0);
		assert_int_equal(first->posted, 2);
		pump(p, 3, 1);
		shim_destroy_qp(&first->ex.qp_base);
		shim_destroy_qp(&p->qp->ex.qp_base);
		shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
		shim_close_device(ctx);
		while (fake.helpers)
			fake.helper(fake.helps[--fake.helpers]);
		assert_int_equal(fake.opened, fake.closed);
	}
	p->qp = NULL;
	p->cq = NULL;
	ctx = NULL;
}

static struct fake_qp *make_qp_ex(struct prog *p)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.recv_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.cap = {
			.max_send_wr = DEPTH,
			.max_send_sge = SGES,
			.max_inline_data = INLINE,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &attr);
	struct ibv_qp_attr mod = { .path_mtu = IBV_MTU_1024 };

	assert_non_null(qp);
	assert_int_equal(attr.cap.max_send_wr, DEPTH);
	shim_modify_qp(qp, &mod, IBV_QP_PATH_MTU);
	return (struct fake_qp *)qp;
}

/* The last queue pair is as it would be without the shim, and the kernel knows why. */
static void expect_told(struct fake_qp *qp, uint32_t reason)
{
	assert_non_null(qp);
	assert_null(shim_map_find(&shim_qps, qp));
	assert_int_equal(fake.reported, qp->ex.qp_base.qp_num);
	assert_int_equal(fake.reason, reason);
	assert_int_equal(qp->depth, DEPTH);
	fake.reported = 0;
	shim_destroy_qp(&qp->ex.qp_base);
}

static void told_single_thread(void **state)
{
	struct prog *p = *state;

	setenv("MLX5_SINGLE_THREADED", "1", 1);
	ctx = shim_open_device(&fake.device);
	unsetenv("MLX5_SINGLE_THREADED");
	assert_ptr_equal(ctx->ops.post_send, fake_post_send);
	assert_ptr_equal(ctx->ops.poll_cq, fake_poll_cq);
	p->cq = make_cq(DEPTH);
	assert_int_equal(p->cq->cq.cqe, DEPTH);
	expect_told(make_qp(p, p->cq, 1), RISO_REASON_SHIM_LIMIT);
	expect_told(make_qp_ex(p), RISO_REASON_SHIM_LIMIT);
}

static void told_no_room(void **state)
{
	struct prog *p = *state;

	fake.no_resize = 1;
	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(DEPTH);
	grow_cq(p->cq, DEPTH + SHIM_SPARE - 1);
	expect_told(make_qp(p, p->cq, 1), RISO_REASON_NO_CQ_ROOM);
	grow_cq(p->cq, DEPTH + SHIM_SPARE);
	p->qp = make_qp(p, p->cq, 1);
	assert_non_null(shim_map_find(&shim_qps, p->qp));
	assert_int_equal(fake.reported, 0);
}

/* One that the provider gives more than there is memory for */
static void told_no_memory(void **state)
{
	struct prog *p = *state;

	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(DEPTH);
	fake.inline_given = INT32_MAX - 4096;
	fake.depth_given = INT32_MAX;
	expect_told(make_qp(p, p->cq, 1), RISO_REASON_MEMORY);
	fake.inline_given = 0;
	fake.depth_given = 0;
}

/* A queue pair for what ibv_post_send() does not know, and one that sends nothing */
static void told_by_kind(void **state)
{
	struct prog *p = *state;
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.recv_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.cap = { .max_send_wr = DEPTH },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = 1ULL << 40,
	};
	struct ibv_qp_init_attr attr = {
		.send_cq = ex.send_cq,
		.recv_cq = ex.send_cq,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_pd pd = { .context = ctx };
	struct ibv_qp *qp;

	expect_told((struct fake_qp *)ibv_create_qp_ex(ctx, &ex),
		    RISO_REASON_UNKNOWN_OPCODE);
	qp = shim_create_qp(&pd, &attr);
	assert_int_equal(fake.reported, qp->qp_num);
	assert_int_equal(fake.reason, RISO_REASON_SHIM_LIMIT);
	fake.reported = 0;
	shim_destroy_qp(qp);
	/* Nobody expects others to be governed. */
	attr.qp_type = IBV_QPT_UD;
	qp = shim_create_qp(&pd, &attr);
	assert_int_equal(fake.reported, 0);
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
	struct ibv_cq *cq = fake_create_cq(ctx, DEPTH, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = p->attr;
	struct fake_qp *qp;

	attr.cap.max_send_wr = DEPTH;
	qp = fake_new_qp(&attr);
	ready(qp);
	assert_int_equal(fake.reported, qp->ex.qp_base.qp_num);
	fake.reported = 0;
	ready(qp);
	assert_int_equal(fake.reported, 0);
	fake.reported = qp->ex.qp_base.qp_num;
	expect_told(qp, RISO_REASON_SHIM_LIMIT);
	/* And its CQs are none of ours. */
	attr.send_cq = cq;
	qp = (struct fake_qp *)shim_create_qp(&fake.domain, &attr);
	ready(qp);
	expect_told(qp, RISO_REASON_SHIM_LIMIT);
	free(cq);
}

/* There is a thread with the first queue pair after that: the old ones register again. */
static void thread_at_once(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other;

	fake.thread_err = EAGAIN;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 2 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.reason, RISO_REASON_NO_THREAD);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	fake.thread_err = 0;
	other = make_qp(p, p->cq, 0);
	shim_destroy_qp(&other->ex.qp_base);
	fake.wish = 0;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.wish, RISO_CLASS_BY_RULE);
	fake.granted[RISO_USER_TX] += fake.u.dir[RISO_USER_TX].posted;
	pump(p, 2, 1);
}

/* Without a thread nothing waits; with the next queue pair there may be one. */
static void told_no_thread(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct fake_qp *other;

	fake.thread_err = EAGAIN;
	fake.wish = 0;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 2 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	assert_int_equal(fake.reported, p->qp->ex.qp_base.qp_num);
	assert_int_equal(fake.reason, RISO_REASON_NO_THREAD);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	/* Not for each post */
	fake.reported = 0;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.reported, 0);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 2, IBV_WC_SUCCESS);
	other = make_qp(p, p->cq, 0);
	assert_int_equal(fake.reported, other->ex.qp_base.qp_num);
	assert_int_equal(fake.reason, RISO_REASON_NO_THREAD);
	shim_destroy_qp(&other->ex.qp_base);
	assert_int_equal(fake.wish, 0);

	fake.thread_err = 0;
	other = make_qp(p, p->cq, 0);
	shim_destroy_qp(&other->ex.qp_base);
	fake.wish = 0;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.wish, RISO_CLASS_BY_RULE);
	assert_false(f->alone);
	assert_int_equal(p->qp->posted, 2);
	fake.granted[RISO_USER_TX] += fake.u.dir[RISO_USER_TX].posted;
	pump(p, 3, 1);
}

/* A queue pair that is refused is asked for again with the next one. */
static void told_refused(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other;
	int asked;

	fake.register_err = ENOMEM;
	other = make_qp(p, p->cq, 0);
	assert_int_equal(fake.reported, other->ex.qp_base.qp_num);
	assert_int_equal(fake.reason, RISO_REASON_MEMORY);
	expect_straight(p, other, 1);
	asked = fake.registers;
	expect_straight(p, other, 2);
	assert_int_equal(fake.registers, asked);
	fake.register_err = 0;
	shim_destroy_qp(&make_qp(p, p->cq, 0)->ex.qp_base);
	assert_int_equal(post(other, IBV_WR_SEND, 3, 8, 0), 0);
	assert_int_equal(other->posted, 2);
	shim_destroy_qp(&other->ex.qp_base);
}

static void builders(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp = make_qp_ex(p);
	struct ibv_qp_ex *ex = &qp->ex;
	struct fake_qp *plain = p->qp;
	struct ibv_data_buf buf[2] = {
		{ .addr = local, .length = 10 },
		{ .addr = local + 10, .length = 20 },
	};
	uint32_t i;

	p->qp = qp;
	fill(local);
	memset(remote, 0, LARGEST);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, 5, (uintptr_t)remote);
	ibv_wr_set_sge(ex, 6, (uintptr_t)local, 3 * CHUNK + 1);
	ex->wr_id = 2;
	ibv_wr_rdma_write(ex, 5, (uintptr_t)remote + MB);
	ibv_wr_set_inline_data_list(ex, 2, buf);
	ex->wr_id = 3;
	ibv_wr_send(ex);
	assert_int_equal(qp->posted, 0);
	assert_int_equal(ibv_wr_complete(ex), 0);
	memset(buf, 0, sizeof(buf));
	pump(p, 1, 3);
	assert_memory_equal(local, remote, 3 * CHUNK + 1);
	assert_int_equal(remote[3 * CHUNK + 1], 0);
	assert_memory_equal(local, remote + MB, 30);
	assert_int_equal(qp->posted, 6);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	expect_none(p);
	assert_int_equal(post(qp, IBV_WR_SEND, 4, 64, IBV_SEND_SIGNALED), 0);
	pump(p, 4, 1);
	assert_int_equal(qp->posted, 7);

	/* Too many, and too long: nothing of the batch is posted. */
	ibv_wr_start(ex);
	for (i = 0; i <= DEPTH; i++)
		ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, local, INLINE + 1);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	grant(RISO_USER_TX, MB);
	expect_none(p);
	assert_int_equal(qp->posted, 7);

	/* Straight to the provider. */
	fake.class_id = RISO_CLASS_LATENCY;
	fake.k.classes++;
	ibv_wr_start(ex);
	ex->wr_id = 9;
	ibv_wr_send(ex);
	assert_int_equal(qp->num_built, 1);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(qp->posted, 8);
	fake_run(qp, UINT32_MAX);
	expect(p, 9, IBV_WC_SUCCESS);
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
	struct fake_qp *qp = make_qp_ex(p);
	struct fake_qp *plain = p->qp;

	p->qp = qp;
	grant(RISO_USER_TX, MB);
	qp->refuse = EINVAL;
	build_two(&qp->ex);
	assert_int_equal(ibv_wr_complete(&qp->ex), EINVAL);
	expect_none(p);
	assert_false(qp->err);
	qp->refuse_from = 1;
	build_two(&qp->ex);
	assert_int_equal(ibv_wr_complete(&qp->ex), 0);
	assert_int_equal(qp->posted, 1);
	fake_run(qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	expect(p, 2, IBV_WC_LOC_QP_OP_ERR);
	expect_none(p);
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
	struct fake_qp *qp = make_qp_ex(p);
	struct fake_qp *plain = p->qp;
	struct ibv_mw mw = {};
	uint32_t i;

	p->qp = qp;
	build_keys(&qp->ex, &mw);
	assert_int_equal(qp->posted, 0);
	assert_int_equal(qp->num_built, 0);
	pump(p, 1, 3);
	assert_int_equal(qp->posted, 3);
	expect_keys(qp, &mw);
	fake.class_id = RISO_CLASS_LATENCY;
	fake.k.classes++;
	build_keys(&qp->ex, &mw);
	assert_int_equal(qp->num_built, 3);
	assert_int_equal(qp->posted, 6);
	expect_keys(qp, &mw);
	fake_run(qp, UINT32_MAX);
	for (i = 1; i <= 3; i++)
		expect(p, i, IBV_WC_SUCCESS);
	shim_destroy_qp(&qp->ex.qp_base);
	p->qp = plain;
}

/* A device that another process has opened is one like others. */
static void imported(void **state)
{
	struct prog *p = *state;

	ctx = shim_import_device(5);
	p->cq = make_cq(2 * DEPTH);
	p->qp = make_qp(p, p->cq, 0);
	assert_non_null(shim_map_find(&shim_qps, p->qp));
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	pump(p, 1, 1);
}

/* The kernel is told of a device by its name of now, whenever it was opened. */
static void renamed(void **state)
{
	struct prog *p = *state;

	fake.now_called = "fake7";
	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(2 * DEPTH);
	fake.now_called = "fake8";
	p->qp = make_qp(p, p->cq, 0);
	assert_int_equal(fake.attached, 1);
	assert_string_equal(fake.attached_to, "fake8");
}

static void renamed_refused(void **state)
{
	struct prog *p = *state;

	ctx = shim_open_device(&fake.device);
	p->cq = make_cq(2 * DEPTH);
	fake.now_called = "fake7";
	fake.attach_err = ENOMEM;
	p->qp = make_qp(p, p->cq, 0);
	assert_int_equal(fake.reported, p->qp->ex.qp_base.qp_num);
	assert_int_equal(fake.reason, RISO_REASON_MEMORY);
}

/* Open @device besides, with a queue pair on it. */
static struct shim_member *open_second(struct prog *q, struct ibv_device *device)
{
	struct ibv_context *first = ctx;
	struct shim_qp *f;

	ctx = shim_open_device(device);
	q->cq = make_cq(2 * DEPTH);
	q->qp = make_qp(q, q->cq, 0);
	ctx = first;
	f = shim_map_find(&shim_qps, q->qp);
	assert_false(f->alone);
	return f->ctx->m;
}

static void close_second(struct prog *q)
{
	struct ibv_context *context = q->qp->ex.qp_base.context;

	shim_destroy_qp(&q->qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&q->cq->cq));
	shim_close_device(context);
}

/* A device that is opened again after it was renamed is the same one. */
static void renamed_between(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct prog q = {};

	assert_int_equal(fake.attached, 1);
	fake.now_called = "fake7";
	assert_ptr_equal(open_second(&q, &fake.device), f->ctx->m);
	assert_int_equal(fake.attached, 1);
	close_second(&q);
}

/* Another one that has its name now is not. */
static void name_passed_on(void **state)
{
	struct ibv_device other = { .name = "fake0", .dev_name = "uverbs1" };
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct prog q = {};

	fake.now_called = "fake7";
	fake.other_called = "fake0";
	assert_ptr_not_equal(open_second(&q, &other), f->ctx->m);
	assert_int_equal(fake.attached, 2);
	assert_string_equal(fake.attached_to, "fake0");
	close_second(&q);
}

/* The provider hears of no domain of a single thread, and the program of no change. */
static void parent_domain(void **state)
{
	struct ibv_td td;
	struct ibv_parent_domain_init_attr attr = { .td = &td };

	(void)state;
	fake.td = &td;
	assert_ptr_equal(ibv_alloc_parent_domain(ctx, &attr), &fake.domain);
	assert_null(fake.td);
	assert_ptr_equal(attr.td, &td);
}

/* It asks an extended CQ for nothing, and then for all that ibv_poll_cq() tells. */
static void polled_plain(void **state)
{
	struct prog *p = *state;
	struct ibv_cq_init_attr_ex init = { .cqe = DEPTH };
	int i;

	ctx = shim_open_device(&fake.device);
	p->cq = (struct fake_cq *)ibv_create_cq_ex(ctx, &init);
	assert_int_equal(init.wc_flags, 0);
	p->qp = make_qp(p, p->cq, 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(post(p->qp, IBV_WR_RDMA_READ, i, 2 * CHUNK,
				      IBV_SEND_SIGNALED), 0);
		grant(RISO_USER_RX, 2 * cost(CHUNK));
		drive(p);
		fake_run(p->qp, UINT32_MAX);
	}
	/* Looks for completions before it is held */
	assert_int_equal(post(p->qp, IBV_WR_RDMA_READ, 2, 2 * CHUNK, IBV_SEND_SIGNALED),
			 0);
	for (i = 0; i < 2; i++)
		expect(p, i, IBV_WC_SUCCESS);
}

/* The place of one that went is free: who looks up 0, the tag of a receive, finds none. */
static void nothing_at_0(void **state)
{
	static struct shim_map map = SHIM_MAP_INIT;
	uintptr_t key = 16;

	assert_int_equal(shim_map_add(&map, (void *)key, state), 0);
	do
		key += 16;
	while (shim_map_hash(map.table, key));
	assert_int_equal(shim_map_add(&map, (void *)key, state), 0);
	assert_ptr_equal(shim_map_find(&map, (void *)key), state);
	shim_map_del(&map, (void *)key);
	assert_null(shim_map_find(&map, NULL));
}

static void extended_cq(void **state)
{
	struct prog *p = *state;
	struct ibv_cq_init_attr_ex init = {
		.cqe = DEPTH,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *cq;
	uint64_t id = 10;
	uint32_t i;

	ctx = shim_open_device(&fake.device);
	cq = ibv_create_cq_ex(ctx, &init);
	assert_int_equal(init.flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	assert_int_equal(init.cqe, DEPTH);
	p->cq = (struct fake_cq *)cq;
	/* Without a flow it is the provider's own session. */
	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	p->cq->tail++;
	p->cq->ring[0].wc.wr_id = 3;
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_true(p->cq->open);
	assert_int_equal(cq->wr_id, 3);
	/* A flow comes meanwhile. */
	p->qp = make_qp(p, p->cq, 0);
	fake.k.mode = RISO_USER_OPEN;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 4, 8, IBV_SEND_SIGNALED), 0);
	fake.k.mode = RISO_USER_PACED;
	fake_run(p->qp, 1);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 4);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_false(p->cq->open);

	for (i = 0; i < 3; i++)
		assert_int_equal(post(p->qp, IBV_WR_RDMA_READ, 10 + i, 5 * CHUNK,
				      IBV_SEND_SIGNALED), 0);
	for (i = 0; id < 13 && i < 1000; i++) {
		grant(RISO_USER_RX, cost(CHUNK));
		fake_run(p->qp, UINT32_MAX);
		if (ibv_start_poll(cq, &attr))
			continue;
		do {
			assert_int_equal(cq->wr_id, id++);
			assert_int_equal(cq->status, IBV_WC_SUCCESS);
			assert_int_equal(ibv_wc_read_byte_len(cq), 5 * CHUNK);
			assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RDMA_READ);
			/* While it is open, posting reaps nothing. */
			assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, 0), 0);
		} while (!ibv_next_poll(cq));
		ibv_end_poll(cq);
	}
	assert_int_equal(id, 13);

	/* What was seen there makes room for more. */
	fake.k.mode = RISO_USER_OPEN;
	for (id = 0; id < 3 * DEPTH; id++) {
		assert_int_equal(post(p->qp, IBV_WR_SEND, id, 8, IBV_SEND_SIGNALED), 0);
		fake_run(p->qp, UINT32_MAX);
		assert_int_equal(ibv_start_poll(cq, &attr), 0);
		assert_int_equal(cq->wr_id, id);
		ibv_end_poll(cq);
	}
}

/* A child goes on as though there were no shim; the parent notices nothing. */
static void forked(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	uint64_t want, id;
	int status;
	pid_t pid;

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	want = fake.u.dir[0].want;
	pid = fork();
	if (!pid) {
		bool ok = f->pass && fake.closed == fake.opened &&
			  f->ctx->m->kpage != &fake.k;

		post(p->qp, IBV_WR_RDMA_WRITE, 2, MB, IBV_SEND_SIGNALED);
		id = p->qp->sq[0].wr.wr_id;
		ok = ok && p->qp->posted == 1 && id == 2 &&
		     fake.u.dir[0].want == want;
		/* What it opens anew is governed; here it has the address of the first. */
		shim_map_del(&shim_ctxs, ctx);
		ctx = shim_open_device(&fake.device);
		make_qp(p, make_cq(2 * DEPTH), 0);
		_exit(ok && fake.attached == 2 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fake.u.dir[0].want, want);
	pump(p, 1, 1);
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
	struct shim_ctx *c = shim_map_find(&shim_ctxs, ctx);
	struct shim_cq *cq = shim_map_search(&shim_cqs, is_any, NULL);

	if (c->m->fd < 0)
		return false;
	return is_locked(&c->m->lock) || is_locked(&cq->resize) ||
	       is_locked(&shim_class_lock);
}

/* A signal handler that comes in the middle of a call may start another program. */
static void fork_inside(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(is_untouched() ? 3 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_true(is_untouched());
	fake.calls++;
}

static void forked_inside(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	int status;
	pid_t pid;

	fake.k.mode = RISO_USER_OPEN;
	fake.calls = 0;
	fake.at_call = fork_inside;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq), 3 * DEPTH), 0);
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_BANDWIDTH), 0);
	assert_int_equal(fake.calls, 3);
	fake.at_call = NULL;
	/* And one that comes elsewhere is not taken for such a one. */
	pid = fork();
	if (!pid)
		_exit(f->pass ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fake_run(p->qp, 1);
	expect(p, 1, IBV_WC_SUCCESS);
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
	fake.calls += !cancelable();
}

/* Who is cancelled leaves nothing locked: that waits until the call is over. */
static void kept_from_cancel(void **state)
{
	struct prog *p = *state;
	struct fake_qp *qp = make_qp_ex(p);

	fake.k.mode = RISO_USER_OPEN;
	fake.calls = 0;
	fake.at_call = count_kept;
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.calls, 1);
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&p->cq->cq), 3 * DEPTH), 0);
	assert_int_equal(fake.calls, 2);
	fake.class_id = RISO_CLASS_LATENCY;
	assert_int_equal(shim_set_class(&qp->ex.qp_base, RISO_CLASS_LATENCY), 0);
	assert_int_equal(fake.calls, 3);
	/* Straight to the provider, under the lock that is held from the start. */
	ibv_wr_start(&qp->ex);
	assert_true(cancelable());
	ibv_wr_send(&qp->ex);
	assert_int_equal(ibv_wr_complete(&qp->ex), 0);
	assert_int_equal(fake.calls, 4);
	assert_true(cancelable());
	shim_destroy_qp(&qp->ex.qp_base);
	fake_run(p->qp, 1);
	expect(p, 1, IBV_WC_SUCCESS);
}

/* Who closes the device with queue pairs on it leaves nothing to the helper. */
static void closed_early(void **state)
{
	struct prog *p = *state;
	struct ibv_context *other;
	struct shim_qp *f;
	struct shim_member *m;

	f = shim_map_find(&shim_qps, p->qp);
	m = f->ctx->m;
	other = ctx;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, MB, 0), 0);
	assert_int_equal(m->num_busy, 1);
	m = shim_member_get(&fake.device);
	assert_int_equal(shim_close_device(other), 0);
	ctx = NULL;
	assert_int_equal(m->num_busy, 0);
	assert_int_equal(m->held, 0);
	assert_null(shim_map_find(&shim_qps, p->qp));
	assert_null(shim_map_find(&shim_cqs, p->cq));
	shim_member_put(m);
	free(p->qp);
	free(p->cq);
	p->qp = NULL;
	p->cq = NULL;
}

/* One that came back under its name is another device, also if nothing was held there. */
static void came_back(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct shim_member *same, *other;

	same = shim_member_get(&fake.device);
	shim_member_put(same);
	assert_ptr_equal(same, f->ctx->m);
	fake.wait_err = ENODEV;
	other = shim_member_get(&fake.device);
	shim_member_attach(other, fake.next_qpn - 1);
	shim_member_put(other);
	assert_ptr_not_equal(other, f->ctx->m);
	assert_int_equal(fake.attached, 2);
}

/* Nobody waits for a device whose end is seen when a class is asked for. */
static void gone_for_class(void **state)
{
	struct prog *p = *state;

	fake.register_err = ENODEV;
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_THROUGHPUT),
			 ENODEV);
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, 1);
	expect(p, 1, IBV_WC_SUCCESS);
}

/* The helper posts for a program that does not call, and keeps what it finds. */
static void helper_posts(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	uint32_t i;

	fake.run_helper = true;
	/* It has armed once, and waits otherwise now. */
	arm(p);
	expect_none(p);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 2, 64 * CHUNK, 0), 0);
	grant(RISO_USER_TX, 128 * cost(CHUNK));
	for (i = 0; i < 100000; i++) {
		fake_run(p->qp, UINT32_MAX);
		if (!__atomic_load_n(&f->ctx->m->held, __ATOMIC_RELAXED))
			break;
		usleep(20);
	}
	pthread_mutex_lock(&fake.lock);
	assert_int_equal(p->qp->posted, 128);
	pthread_mutex_unlock(&fake.lock);
	/* All is posted, so it sleeps. */
	usleep(20000);
	i = __atomic_load_n(&fake.waits, __ATOMIC_RELAXED);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&fake.waits, __ATOMIC_RELAXED), i);
	fake_run(p->qp, UINT32_MAX);
	expect(p, 1, IBV_WC_SUCCESS);
	expect_none(p);
}

static void wait_ended(void)
{
	uint32_t i;

	for (i = 0; i < 30000; i++) {
		if (__atomic_load_n(&fake.ended, __ATOMIC_ACQUIRE) == fake.begun)
			return;
		usleep(100);
	}
	fail();
}

/* A larger CQ has room for more that waits for who does not poll. */
static void resized(void **state)
{
	enum { MANY = 512 };
	struct ibv_pd pd = { .context = ctx };
	struct ibv_qp_init_attr attr;
	struct prog q = {};
	uint64_t i;

	(void)state;
	fake.run_helper = true;
	q.cq = make_cq(DEPTH);
	q.qp = make_qp(&q, q.cq, 0);
	shim_destroy_qp(&q.qp->ex.qp_base);
	attr = q.attr;
	attr.cap.max_send_wr = MANY;
	q.qp = (struct fake_qp *)shim_create_qp(&pd, &attr);
	assert_non_null(q.qp);
	fake.k.window = 4 * cost(CHUNK);
	/* What it holds stays in order. */
	for (i = 0; i < 2 * DEPTH; i++) {
		assert_int_equal(post(q.qp, IBV_WR_SEND, i, CHUNK,
				      IBV_SEND_SIGNALED), 0);
		grant(RISO_USER_TX, cost(CHUNK));
		wait_posted(&q, i + 1);
		fake_run(q.qp, 1);
	}
	expect(&q, 0, IBV_WC_SUCCESS);
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&q.cq->cq), 2 * MANY), 0);
	for (; i < MANY; i++) {
		assert_int_equal(post(q.qp, IBV_WR_SEND, i, CHUNK,
				      IBV_SEND_SIGNALED), 0);
		grant(RISO_USER_TX, 4 * cost(CHUNK));
		wait_posted(&q, i + 1);
		fake_run(q.qp, UINT32_MAX);
	}
	for (i = 1; i < MANY; i++)
		expect(&q, i, IBV_WC_SUCCESS);
	expect_none(&q);
	/* As large as the device can, also with our own entries. */
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&q.cq->cq), fake.max_cqe), 0);
	assert_int_equal(q.cq->cq.cqe, fake.max_cqe);
	assert_int_not_equal(shim_resize_cq(ibv_cq_ex_to_cq(&q.cq->cq),
					    fake.max_cqe + 1), 0);
	assert_int_not_equal(shim_resize_cq(ibv_cq_ex_to_cq(&q.cq->cq), INT32_MAX), 0);
	assert_false(q.cq->overflow);
	shim_destroy_qp(&q.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&q.cq->cq));
}

static struct prog comer;

static void flow_comes(void)
{
	fake.at_call = NULL;
	fake.at_resized = NULL;
	comer.qp = make_qp(&comer, comer.cq, 0);
}

/* A flow has the entries for its chunks that it counts on. */
static void expect_room(const struct shim_cq *c)
{
	assert_true(c->cq->cqe >= c->asked + SHIM_SLOTS);
	assert_int_equal(c->spare, c->cq->cqe - c->asked);
}

/* The first flow of a CQ may come while that is resized, and has room for all of it. */
static void resized_meanwhile(void **state)
{
	struct shim_cq *c;

	(void)state;
	comer.cq = make_cq(DEPTH);
	c = shim_map_find(&shim_cqs, comer.cq);
	fake.at_call = flow_comes;
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&comer.cq->cq), 8 * DEPTH), 0);
	assert_non_null(shim_map_find(&shim_qps, comer.qp));
	assert_int_equal(c->asked, 8 * DEPTH);
	assert_true(c->soft_num >= 8 * DEPTH + SHIM_SLOTS);
	expect_room(c);
	shim_destroy_qp(&comer.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&comer.cq->cq));
}

/* Also when the CQ is smaller already, and what the program has asked for is not known. */
static void resized_smaller(void **state)
{
	struct shim_cq *c;

	(void)state;
	comer.cq = make_cq(8 * DEPTH);
	c = shim_map_find(&shim_cqs, comer.cq);
	fake.at_resized = flow_comes;
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&comer.cq->cq), DEPTH), 0);
	assert_non_null(shim_map_find(&shim_qps, comer.qp));
	assert_int_equal(c->asked, DEPTH);
	expect_room(c);
	shim_destroy_qp(&comer.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&comer.cq->cq));
}

/* And when it keeps its size. */
static void resized_in_vain(void **state)
{
	struct shim_cq *c;

	(void)state;
	comer.cq = make_cq(DEPTH);
	c = shim_map_find(&shim_cqs, comer.cq);
	fake.at_call = flow_comes;
	fake.no_resize = 1;
	assert_int_equal(shim_resize_cq(ibv_cq_ex_to_cq(&comer.cq->cq), 8 * DEPTH), EINVAL);
	assert_non_null(shim_map_find(&shim_qps, comer.qp));
	assert_int_equal(c->asked, DEPTH);
	expect_room(c);
	shim_destroy_qp(&comer.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&comer.cq->cq));
}

/*
 * It ends when there is nothing for it to do, so that a process can whose last threads
 * return, and there is another one when there is again.
 */
static void helper_ends(void **state)
{
	struct prog *p = *state;
	int before = fake.begun;
	uint32_t i;

	fake.run_helper = true;
	for (i = 1; i <= 2; i++) {
		assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, i, CHUNK,
				      IBV_SEND_SIGNALED), 0);
		assert_int_equal(fake.begun, before + i);
		grant(RISO_USER_TX, cost(CHUNK));
		wait_posted(p, i);
		wait_ended();
		fake_run(p->qp, UINT32_MAX);
		expect(p, i, IBV_WC_SUCCESS);
	}
}

static void expect_timeout(uint32_t timeout)
{
	uint32_t i;

	for (i = 0; i < 10000; i++) {
		if (__atomic_load_n(&fake.timeout, __ATOMIC_RELAXED) == timeout)
			return;
		usleep(100);
	}
	fail();
}

/* How long it waits depends on what it waits for. */
static void helper_waits(void **state)
{
	struct prog *p = *state;

	fake.run_helper = true;
	/* For a grant. */
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 4 * SHIM_SLOTS * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	expect_timeout(100000);
	/* For a grant, and there are completions to be told. */
	grant(RISO_USER_TX, SHIM_SLOTS / 2 * cost(CHUNK));
	expect_timeout(1000);
	/* For room, the grant is there. */
	grant(RISO_USER_TX, SHIM_SLOTS * cost(CHUNK));
	expect_timeout(100);
	fake_run(p->qp, UINT32_MAX);
	expect_timeout(1000);
	modify(p, IBV_QPS_ERR);
}

/* Of a thread that would not let it run */
static void helper_of_real_time(void **state)
{
	struct sched_param least = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };
	struct sched_param none = { .sched_priority = 0 };
	struct prog *p = *state;

	if (sched_setscheduler(0, SCHED_FIFO, &least))
		skip();
	assert_int_equal(post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	assert_int_equal(fake.helpers, 1);
	assert_int_equal(fake.inherits, PTHREAD_EXPLICIT_SCHED);
}

/* Where a processor is to spare, it looks at the page for a while before it sleeps. */
static void helper_spins(void **state)
{
	struct prog *p = *state;

	fake.run_helper = true;
	fake.timeout = 0;
	setenv("RDMA_ISOLATE_SPIN_US", "50", 1);
	assert_int_equal(setup_as(p, 0), 0);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 2 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	grant(RISO_USER_TX, cost(CHUNK));
	wait_posted(p, 1);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&fake.timeout, __ATOMIC_RELAXED), 0);
	__atomic_add_fetch(&fake.now, 49000, __ATOMIC_RELAXED);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&fake.timeout, __ATOMIC_RELAXED), 0);
	__atomic_add_fetch(&fake.now, 1000, __ATOMIC_RELAXED);
	expect_timeout(100000);
	modify(p, IBV_QPS_ERR);
}

static void spin_wrong(void **state)
{
	static const char * const words[] = { "", "1001", "-1", "5us", "x" };
	struct shim_member *m;
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		setenv("RDMA_ISOLATE_SPIN_US", words[i], 1);
		m = shim_member_get(&fake.device);
		assert_int_equal(m->spin_ns, 0);
		shim_member_put(m);
	}
	setenv("RDMA_ISOLATE_SPIN_US", "1000", 1);
	m = shim_member_get(&fake.device);
	assert_int_equal(m->spin_ns, 1000000);
	shim_member_put(m);
}

/* One for each device, as it waits in the kernel; on any stack that there is. */
static void helper_each(void **state)
{
	struct prog *p = *state;
	struct ibv_device other = { .name = "fake1", .dev_name = "uverbs1" };
	struct shim_member *m = shim_member_get(&other);

	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, CHUNK, 0), 0);
	assert_int_equal(fake.helpers, 1);
	shim_lock(&m->lock);
	m->held = 1;
	fake.least_stack = MB;
	shim_unlock_and_drive(m);
	m->held = 0;
	assert_int_equal(fake.helpers, 2);
	assert_ptr_equal(fake.helps[1], m);
	shim_member_put(m);
}

/* The kernel forgets who wants nothing, and is told again. */
static void asks_again(void **state)
{
	struct prog *p = *state;
	int waits;

	waits = fake.waits;
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 1, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.waits, ++waits);
	/* It wants more than before, which the kernel sees. */
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 2, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.waits, waits);
	grant(RISO_USER_TX, 16 * cost(CHUNK));
	expect_none(p);
	assert_int_equal(fake.u.dir[0].want, 0);
	assert_int_equal(fake.waits, waits);
	assert_int_equal(post(p->qp, IBV_WR_RDMA_WRITE, 3, 8 * CHUNK,
			      IBV_SEND_SIGNALED), 0);
	assert_int_equal(fake.u.dir[0].want, 8 * cost(CHUNK));
	assert_int_equal(fake.waits, waits + 1);
	pump(p, 1, 3);
}

/* Threads with a queue pair each, one CQ, the helper, and a kernel that grants. */
enum {
	THREADS = 4,
	MESSAGES = 300,
};

struct worker {
	struct fake_qp *qp;
	uint32_t posted;
	uint32_t done;
};

static uint32_t all_done;

static void *work(void *arg)
{
	struct worker *w = arg;
	struct ibv_wc wc[3];
	int n;

	while (__atomic_load_n(&all_done, __ATOMIC_RELAXED) < THREADS * MESSAGES) {
		if (w->posted < MESSAGES &&
		    !post(w->qp, w->posted % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
			  w->posted, (w->posted % 9) * CHUNK / 2, IBV_SEND_SIGNALED))
			w->posted++;
		fake_run(w->qp, 3);
		n = ibv_poll_cq(w->qp->ex.qp_base.send_cq, 3, wc);
		if (n > 0)
			__atomic_add_fetch(&all_done, n, __ATOMIC_RELAXED);
		if (w->posted % 64 == 63)
			usleep(100);
	}
	return NULL;
}

static void threads(void **state)
{
	struct prog *p = *state;
	struct worker w[THREADS] = {};
	pthread_t thread[THREADS];
	uint32_t i, done;

	fake.run_helper = true;
	for (i = 0; i < THREADS; i++) {
		w[i].qp = make_qp(p, p->cq, 0);
		pthread_create(&thread[i], NULL, work, &w[i]);
	}
	while ((done = __atomic_load_n(&all_done, __ATOMIC_RELAXED)) <
	       THREADS * MESSAGES) {
		__atomic_store_n(&fake.k.mode, done % 5 == 4 ? RISO_USER_OPEN :
				 RISO_USER_PACED, __ATOMIC_RELAXED);
		for (i = 0; i < RISO_USER_DIRS; i++)
			if (__atomic_load_n(&fake.u.dir[i].taken, __ATOMIC_ACQUIRE) ==
			    fake.k.dir[i].seq)
				grant(i, 4 * cost(CHUNK));
		__atomic_add_fetch(&fake.now, 1000, __ATOMIC_RELAXED);
		usleep(10);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].posted, MESSAGES);
		shim_destroy_qp(&w[i].qp->ex.qp_base);
	}
}

/*
 * Two threads poll one CQ, one posts, and one changes the class, from before there is a
 * queue pair on: each wr_id comes once, and in order if one of them polls alone. The
 * send queue is so short that slots are soon used again.
 */
enum {
	RACES = 400,
	RACE_MESSAGES = 60,
	RACE_DEPTH = 2,
	RACE_POLLS = 20000,
};

static struct {
	struct prog p;
	uint32_t pollers;
	uint32_t num;		/* completions so far */
	uint8_t times[RACE_MESSAGES];
	bool wrong;
} race;

static void race_poll(void)
{
	struct ibv_wc wc[2];
	uint32_t polls;
	int n, i;

	for (polls = 0; race.num < RACE_MESSAGES && polls < RACE_POLLS; polls++) {
		n = ibv_poll_cq(ibv_cq_ex_to_cq(&race.p.cq->cq), 1 + polls % 2, wc);
		for (i = 0; i < n; i++) {
			if (wc[i].wr_id >= RACE_MESSAGES ||
			    race.times[wc[i].wr_id]++ ||
			    (race.pollers == 1 && wc[i].wr_id != race.num))
				race.wrong = true;
			race.num++;
		}
		coop_yield();
	}
}

static void race_post(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ibv_cq_ex_to_cq(&race.p.cq->cq),
		.recv_cq = ibv_cq_ex_to_cq(&race.p.cq->cq),
		.cap = { .max_send_wr = RACE_DEPTH, .max_send_sge = SGES },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_pd pd = { .context = ctx };
	uint32_t i, tries = 0;

	race.p.qp = (struct fake_qp *)shim_create_qp(&pd, &attr);
	for (i = 0; i < RACE_MESSAGES && tries < RACE_POLLS; tries++) {
		if (!post(race.p.qp, i % 3 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i,
			  i % 5 * CHUNK / 2, IBV_SEND_SIGNALED))
			i++;
		fake_run(race.p.qp, 1);
		coop_yield();
	}
}

static void race_change(void)
{
	struct fake_qp *qp;
	uint32_t i;

	for (i = 0; race.num < RACE_MESSAGES && i < RACE_POLLS; i++) {
		qp = race.p.qp;
		fake.now += 1000;
		fake.k.mode = i / 8 % 2 ? RISO_USER_PACED : RISO_USER_OPEN;
		grant(RISO_USER_TX, 2 * cost(CHUNK));
		if (qp && i % 16 == 0) {
			fake.class_id = i / 16 % 2 ? RISO_CLASS_LATENCY :
						     RISO_CLASS_BANDWIDTH;
			shim_set_class(&qp->ex.qp_base, fake.class_id);
		}
		if (qp)
			fake_run(qp, 2);
		coop_yield();
	}
}

static void race_thread(unsigned int thread)
{
	if (thread == 0)
		race_post();
	else if (thread == 1)
		race_change();
	else
		race_poll();
}

static void polls_and_classes(void **state)
{
	uint64_t n;

	(void)state;
	for (n = 1; n <= RACES; n++) {
		memset(&race, 0, sizeof(race));
		race.pollers = 1 + n % 2;
		fake.max_qp_wr = RACE_DEPTH;
		fake.class_id = n % 4 < 2 ? RISO_CLASS_LATENCY : RISO_CLASS_BANDWIDTH;
		ctx = shim_open_device(&fake.device);
		race.p.cq = make_cq(2 * DEPTH);
		coop_run(n, race_thread, 2 + race.pollers);
		if (race.wrong || race.num != RACE_MESSAGES)
			fail_msg("seed %ju: %u completions, %s", (uintmax_t)n, race.num,
				 race.wrong ? "wrong" : "too few");
		shim_destroy_qp(&race.p.qp->ex.qp_base);
		shim_destroy_cq(ibv_cq_ex_to_cq(&race.p.cq->cq));
		shim_close_device(ctx);
		while (fake.helpers)
			fake.helper(fake.helps[--fake.helpers]);
	}
	ctx = NULL;
}

/*
 * A queue pair that comes while the provider has its lock of the CQ for a session is
 * governed with the entries that there are. The next one brings more.
 */
static void created_in_session(void **state)
{
	enum { QPS = 7 };
	struct prog *p = *state;
	struct ibv_cq_init_attr_ex init = { .cqe = DEPTH };
	struct ibv_poll_cq_attr attr = {};
	struct fake_qp *qp[QPS];
	struct ibv_cq_ex *cq;
	int i, made;

	fake.class_id = RISO_CLASS_LATENCY;
	ctx = shim_open_device(&fake.device);
	cq = ibv_create_cq_ex(ctx, &init);
	p->cq = (struct fake_cq *)cq;
	made = cq->cqe;
	fake_receive(p->cq);
	fake.keeps_lock = true;
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_true(p->cq->open);
	for (i = 0; i < QPS - 1; i++) {
		qp[i] = make_qp(p, p->cq, 0);
		assert_non_null(shim_map_find(&shim_qps, qp[i]));
	}
	assert_false(fake.deadlock);
	assert_int_equal(cq->cqe, made);
	ibv_end_poll(cq);
	qp[i] = make_qp(p, p->cq, 0);
	assert_int_equal(cq->cqe, DEPTH + QPS * SHIM_SLOTS);
	for (i = 0; i < QPS; i++)
		shim_destroy_qp(&qp[i]->ex.qp_base);
}

/*
 * A provider keeps its lock of an extended CQ over a session. Meanwhile the program posts
 * there and creates queue pairs, and others do that, too, arm the CQ, resize it, look for
 * news, poll it, and make it active.
 */
enum { SESSIONS = 200, SESSION_ROUNDS = 20 };

static struct {
	struct prog p;
	uint32_t left;
} session;

static void session_create_one(void)
{
	struct prog q = {};

	q.qp = make_qp(&q, session.p.cq, 0);
	shim_destroy_qp(&q.qp->ex.qp_base);
}

/* As before a fork, whose child would have no turn here */
static void session_lock_sizes(void)
{
	pthread_mutex_lock(&shim_size_lock);
	pthread_mutex_unlock(&shim_size_lock);
}

static void session_poll(void)
{
	struct ibv_cq_ex *cq = &session.p.cq->cq;
	struct ibv_poll_cq_attr attr = {};
	uint32_t i;

	for (i = 0; i < SESSION_ROUNDS && !fake.deadlock; i++) {
		fake_receive(session.p.cq);
		if (ibv_start_poll(cq, &attr))
			continue;
		post(session.p.qp, IBV_WR_SEND, i, 8, 0);
		coop_yield();
		if (i % 2)
			session_create_one();
		else
			session_lock_sizes();
		post(session.p.qp, IBV_WR_RDMA_WRITE, i, 2 * CHUNK, IBV_SEND_SIGNALED);
		if (!ibv_next_poll(cq))
			coop_yield();
		ibv_end_poll(cq);
		fake_run(session.p.qp, UINT32_MAX);
	}
	session.left--;
}

static void session_arm(void)
{
	while (session.left) {
		arm(&session.p);
		coop_yield();
	}
}

static void session_news(void)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, session.p.cq);
	struct ibv_wc wc;

	while (session.left) {
		shim_comp_is_news(c);
		coop_yield();
		poll_one(&session.p, &wc);
	}
}

static void session_change(void)
{
	uint32_t i = 0;

	while (session.left) {
		fake.now += 1000;
		grant(RISO_USER_TX, cost(CHUNK));
		fake.class_id = i++ % 2 ? RISO_CLASS_LATENCY : RISO_CLASS_BANDWIDTH;
		shim_set_class(&session.p.qp->ex.qp_base, fake.class_id);
		coop_yield();
	}
}

static void session_create(void)
{
	while (session.left) {
		session_create_one();
		coop_yield();
	}
}

static void session_resize(void)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(&session.p.cq->cq);
	uint32_t i = 0;

	while (session.left) {
		shim_resize_cq(cq, (2 + i++ % 2) * DEPTH);
		coop_yield();
	}
}

static void (*const session_does[])(void) = {
	session_poll, session_arm, session_news, session_change, session_create,
	session_resize,
};

static void session_thread(unsigned int thread)
{
	session_does[thread]();
}

static void sessions_keep_lock(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 2 * DEPTH };
	uint64_t n;

	(void)state;
	fake.class_id = RISO_CLASS_LATENCY;
	ctx = shim_open_device(&fake.device);
	session.p.cq = (struct fake_cq *)ibv_create_cq_ex(ctx, &init);
	session.p.qp = make_qp(&session.p, session.p.cq, 0);
	fake.keeps_lock = true;
	for (n = 1; n <= SESSIONS && !fake.deadlock; n++) {
		session.left = 1;
		coop_run(n, session_thread, ARRAY_SIZE(session_does));
	}
	if (fake.deadlock)
		fail_msg("seed %ju", (uintmax_t)n - 1);
	shim_destroy_qp(&session.p.qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&session.p.cq->cq));
}

static int fake_group_setup(void **state)
{
	(void)state;
	shim_real = (struct shim_real) {
		.open_device = fake_open_device,
		.import_device = fake_import_device,
		.close_device = fake_close_device,
		.get_device_name = fake_get_device_name,
		.query_device = fake_query_device,
		.create_qp = fake_create_qp,
		.destroy_qp = fake_destroy_qp,
		.modify_qp = fake_modify_qp,
		.query_qp = fake_query_qp,
		.qp_to_qp_ex = fake_qp_to_qp_ex,
		.create_cq = fake_create_cq,
		.resize_cq = fake_resize_cq,
		.destroy_cq = fake_destroy_cq,
		.get_cq_event = fake_get_cq_event,
		.ack_cq_events = fake_ack_cq_events,
	};
	shim_sys = (struct shim_sys) {
		.open = fake_open,
		.read = fake_read,
		.ioctl = fake_ioctl,
		.mmap = fake_mmap,
		.munmap = fake_munmap,
		.close = fake_close,
		.now = fake_clock,
		.create_thread = fake_create_thread,
		.membarrier = fake_membarrier,
	};
	local = calloc(1, LARGEST + 1);
	remote = calloc(1, LARGEST + 1);
	return local && remote ? 0 : -1;
}

/* What is too large is refused by calloc(), also with the address sanitizer. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define TEST_EMPTY(fn) cmocka_unit_test_setup_teardown(fn, setup_empty, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(write_bytes),
		TEST(read_bytes),
		TEST(read_byte_len),
		TEST(whole_and_in_order),
		TEST(keys_in_order),
		TEST(binds),
		cmocka_unit_test_setup_teardown(binds_direct, setup_sig_all, teardown),
		TEST(inline_data),
		TEST(unsignaled),
		cmocka_unit_test_setup_teardown(sig_all, setup_sig_all, teardown),
		TEST(told_what_was_asked),
		TEST(depth_paced),
		TEST(depth_open),
		TEST(chain),
		TEST(refused_at_once),
		TEST(refused_later),
		TEST(refused_event),
		TEST(refused_midway),
		TEST(refused_in_error),
		TEST(refused_or_completed),
		TEST(slots_bound),
		TEST(window_bound),
		TEST(full_wants_nothing),
		TEST(few_hidden),
		TEST(few_hidden_open),
		TEST(polls_cheaply),
		TEST(post_reaps),
		TEST(armed_computes),
		TEST(armed),
		TEST(armed_solicited),
		TEST(armed_late),
		TEST(latency_arms),
		TEST(latency_arms_no_more),
		TEST(event_of_another),
		TEST(events_of_chunks),
		TEST(grants_spent_exactly),
		TEST(repriced),
		TEST_EMPTY(costs),
		TEST(chunks_rounded),
		TEST(large_send),
		TEST(void_grants),
		TEST(numbers_wrap),
		TEST(sparse),
		TEST(sparse_beside_bulk),
		TEST(error_in_the_middle),
		TEST(error_at_the_end),
		TEST(flush),
		TEST(reset),
		TEST(torn_down),
		TEST(purged),
		TEST(lost_to_the_end),
		TEST(destroyed),
		TEST(open_and_paced),
		TEST(never_stuck),
		TEST(latency_passes),
		TEST(unlocked_polls),
		TEST(active_to_the_last),
		TEST(barrier_refused),
		TEST_EMPTY(wish_kept),
		TEST(no_class),
		TEST(class_by_poll),
		TEST(class_by_helper),
		cmocka_unit_test_setup_teardown(sig_all_chain, setup_sig_all, teardown),
		TEST_EMPTY(direct_takes_room),
		TEST_EMPTY(pieces_take_room),
		TEST_EMPTY(comes_while_resized),
		TEST(pieces_end_in_latency),
		TEST(armed_and_destroyed),
		TEST(armed_and_in_error),
		TEST(cq_sizes),
		TEST(latency_makes_room),
		TEST(turns),
		TEST(not_ours),
		TEST_EMPTY(limits),
		TEST_EMPTY(shared_entries),
		TEST(fail_at_once),
		TEST(fail_in_turn),
		TEST(chunks_out),
		TEST(chunks_in_smaller),
		TEST(told_early),
		TEST_EMPTY(few_entries),
		TEST_EMPTY(idle_leave_room),
		TEST_EMPTY(few_hidden_crowded),
		TEST(reads_overlap),
		TEST(others_hang),
		TEST(never_overflows),
		TEST_EMPTY(no_kernel),
		TEST_EMPTY(told_single_thread),
		TEST_EMPTY(told_no_room),
		TEST_EMPTY(told_no_memory),
		TEST(told_by_kind),
		TEST(told_vendors),
		TEST(told_no_thread),
		TEST(thread_at_once),
		TEST(told_refused),
		TEST_EMPTY(attached_late),
		TEST_EMPTY(refused_place),
		TEST(builders),
		TEST(builders_refused),
		TEST(builders_keys),
		TEST_EMPTY(imported),
		TEST_EMPTY(renamed),
		TEST_EMPTY(renamed_refused),
		TEST(renamed_between),
		TEST(name_passed_on),
		TEST(parent_domain),
		TEST_EMPTY(extended_cq),
		TEST_EMPTY(polled_plain),
		cmocka_unit_test(nothing_at_0),
		TEST(forked),
		TEST(forked_inside),
		TEST(kept_from_cancel),
		TEST(closed_early),
		TEST(came_back),
		TEST(gone_for_class),
		TEST(helper_posts),
		TEST(resized),
		TEST(resized_meanwhile),
		TEST(resized_smaller),
		TEST(resized_in_vain),
		TEST(helper_ends),
		TEST(helper_waits),
		TEST(helper_each),
		TEST(helper_of_real_time),
		TEST_EMPTY(helper_spins),
		TEST_EMPTY(spin_wrong),
		TEST(asks_again),
		TEST(threads),
		TEST_EMPTY(polls_and_classes),
		TEST_EMPTY(created_in_session),
		TEST_EMPTY(sessions_keep_lock),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("shim", tests, fake_group_setup, NULL);
}
