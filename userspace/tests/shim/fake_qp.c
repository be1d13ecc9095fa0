// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs of the fake provider: what posts to them, and what carries out their work
 * requests. WRITEs and READs copy memory, others move no data.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_cq.h"
#include "fake_kernel.h"
#include "fake_qp.h"
#include "fake_verbs.h"

uint32_t fake_len(const struct ibv_send_wr *wr)
{
	uint32_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len;
}

int fake_post_one(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	struct fake_wr *w = &qp->sq[qp->posted % FAKE_SQ];
	uint8_t *data = w->data;
	int i;

	if (qp->refuse && qp->posted >= qp->refuse_from &&
	    (!qp->refuse_len || fake_len(wr)))
		return qp->refuse;
	if (qp->posted - qp->freed >= qp->depth)
		return ENOMEM;
	if (wr->num_sge > FAKE_SGES)
		return EINVAL;
	w->wr = *wr;
	w->wr.sg_list = w->sge;
	for (i = 0; i < wr->num_sge; i++) {
		w->sge[i] = wr->sg_list[i];
		if (!(wr->send_flags & IBV_SEND_INLINE))
			continue;
		assert_true(data + w->sge[i].length <= w->data + FAKE_INLINE);
		memcpy(data, (void *)(uintptr_t)w->sge[i].addr, w->sge[i].length);
		w->sge[i].addr = (uintptr_t)data;
		data += w->sge[i].length;
	}
	qp->posted++;
	return 0;
}

int fake_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;
	int err = 0;

	fake_syscall();
	pthread_mutex_lock(&fake_verbs.lock);
	qp->doorbells++;
	for (; wr; wr = wr->next) {
		err = fake_post_one(qp, wr);
		if (err) {
			*bad_wr = fake_verbs.names_none ? NULL : wr;
			if (qp->chunk_then)
				fake_kernel.k.path[RISO_USER_TX].chunk = qp->chunk_then;
			break;
		}
	}
	pthread_mutex_unlock(&fake_verbs.lock);
	return err;
}

int fake_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
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

	pthread_mutex_lock(&fake_verbs.lock);
	err = fake_post_one((struct fake_qp *)ibqp, &wr);
	pthread_mutex_unlock(&fake_verbs.lock);
	return err;
}

static void fake_carry_out(const struct ibv_send_wr *wr)
{
	uint8_t *at = (uint8_t *)(uintptr_t)wr->wr.rdma.remote_addr;
	int i;

	if (wr->opcode != IBV_WR_RDMA_WRITE && wr->opcode != IBV_WR_RDMA_READ &&
	    wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
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
uint32_t fake_run(struct fake_qp *qp, uint32_t num)
{
	uint32_t n;

	pthread_mutex_lock(&fake_verbs.lock);
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
	pthread_mutex_unlock(&fake_verbs.lock);
	return n;
}

struct fake_qp *fake_new_qp(struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp;

	if ((int)attr->cap.max_send_wr > fake_verbs.max_qp_wr) {
		errno = EINVAL;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	qp->ex.qp_base.context = fake_ctx;
	qp->ex.qp_base.send_cq = attr->send_cq;
	qp->ex.qp_base.recv_cq = attr->recv_cq;
	qp->ex.qp_base.qp_type = attr->qp_type;
	qp->ex.qp_base.qp_num = fake_verbs.next_qpn++;
	qp->init = *attr;
	qp->depth = attr->cap.max_send_wr;
	if (fake_verbs.inline_given)
		attr->cap.max_inline_data = fake_verbs.inline_given;
	if (fake_verbs.depth_given)
		attr->cap.max_send_wr = fake_verbs.depth_given;
	qp->fail_at = UINT32_MAX;
	return qp;
}

struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp = fake_new_qp(attr);

	(void)pd;
	return qp ? &qp->ex.qp_base : NULL;
}

static uint32_t fake_count_sends(const struct fake_qp *qp)
{
	uint32_t i, num = 0;

	for (i = 0; i < qp->posted; i++)
		num += qp->sq[i % FAKE_SQ].wr.opcode == IBV_WR_SEND;
	return num;
}

int fake_destroy_qp(struct ibv_qp *qp)
{
	struct fake_cq *cq = (struct fake_cq *)qp->send_cq;
	uint32_t i;

	fake_verbs.given = fake_count_sends((struct fake_qp *)qp);
	for (i = cq->head; i != cq->tail; i++)
		if (cq->ring[i % FAKE_CQ].qp == (struct fake_qp *)qp)
			cq->ring[i % FAKE_CQ].qp = NULL;
	free(qp);
	return 0;
}

int fake_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;

	if (!(mask & IBV_QP_STATE))
		return 0;
	pthread_mutex_lock(&fake_verbs.lock);
	fake_verbs.given = fake_count_sends(qp);
	if (attr->qp_state == IBV_QPS_ERR)
		qp->err = true;
	if (attr->qp_state == IBV_QPS_RESET) {
		qp->err = false;
		qp->run = qp->posted;
		qp->freed = qp->posted;
	}
	pthread_mutex_unlock(&fake_verbs.lock);
	return 0;
}

int fake_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;

	(void)mask;
	*init = qp->init;
	attr->cap = qp->init.cap;
	return 0;
}

struct ibv_qp_ex *fake_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = (struct ibv_qp_ex *)qp;

	return ex->wr_start ? ex : NULL;
}
