// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: created, led from state to state, destroyed.
 *
 * nr_engine.lock protects the table of queue pairs and what changes with the state, and
 * the locks of both rings the state itself, so that a post sees one state from its
 * beginning to its end. Everything here runs in process context, and sleeps.
 */

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>

#include "cq.h"
#include "dev.h"
#include "engine.h"
#include "qp.h"
#include "request.h"
#include "wire.h"

static int alloc_ring(struct nr_ring *ring, u32 num, u32 stride, u32 max_sge)
{
	u32 size = roundup_pow_of_two(max(num, 1U));

	ring->stride = ALIGN(stride, sizeof(u64));
	ring->mask = size - 1;
	ring->max_sge = max_sge;
	spin_lock_init(&ring->lock);
	ring->buf = kvcalloc(size, ring->stride, GFP_KERNEL);
	return ring->buf ? 0 : -ENOMEM;
}

static int alloc_rings(struct nr_qp *qp, const struct ib_qp_cap *cap)
{
	size_t data = max_t(size_t, NR_MAX_INLINE, cap->max_send_sge * sizeof(struct ib_sge));
	u32 i;
	int err;

	err = alloc_ring(&qp->sq, cap->max_send_wr, sizeof(struct nr_wqe) + data,
			 cap->max_send_sge);
	if (err)
		return err;
	err = alloc_ring(&qp->rq, cap->max_recv_wr,
			 struct_size((struct nr_rwqe *)NULL, sge, cap->max_recv_sge),
			 cap->max_recv_sge);
	if (err) {
		kvfree(qp->sq.buf);
		return err;
	}
	for (i = 0; i <= qp->sq.mask; i++) {
		struct nr_wqe *wqe = nr_get_wqe(qp, i);

		INIT_LIST_HEAD(&wqe->link);
		wqe->qp = qp;
		wqe->state = NR_DONE;
	}
	return 0;
}

/* The number of a queue pair that has ended is used again last. */
static int add_qp(struct nr_end *end, struct nr_qp *qp)
{
	unsigned long flags;
	u32 i, number = 1;
	int err = 0;

	spin_lock_irqsave(&nr_engine.lock, flags);
	if (qp->init.qp_type == IB_QPT_GSI) {
		if (end->qps[number])
			err = -EBUSY;
	} else {
		for (i = 0; i < NR_MAX_QP; i++) {
			number = (end->next_qp + i) & (NR_MAX_QP - 1);
			if (number >= NR_FIRST_QP && !end->qps[number])
				break;
		}
		if (i == NR_MAX_QP)
			err = -ENOMEM;
		else
			end->next_qp = number + 1;
	}
	if (!err) {
		end->qps[number] = qp;
		qp->number = number;
	}
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	return err;
}

int nr_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	const struct ib_qp_cap *cap = &init->cap;
	struct nr_qp *qp = to_nr_qp(ibqp);
	int err;

	if (udata || init->srq || init->create_flags ||
	    (init->qp_type != IB_QPT_RC && init->qp_type != IB_QPT_UD &&
	     init->qp_type != IB_QPT_GSI))
		return -EOPNOTSUPP;
	if (cap->max_send_wr > NR_MAX_WR || cap->max_recv_wr > NR_MAX_WR ||
	    cap->max_send_sge > NR_MAX_SGE || cap->max_recv_sge > NR_MAX_SGE ||
	    cap->max_inline_data > NR_MAX_INLINE)
		return -EINVAL;
	qp->end = nr_get_end(ibqp->device);
	qp->init = *init;
	qp->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = IB_QPS_RESET;
	qp->mtu_shift = ilog2(qp->end->mtu);
	INIT_LIST_HEAD(&qp->requests.queue);
	INIT_LIST_HEAD(&qp->requests.active);
	INIT_LIST_HEAD(&qp->answers.queue);
	INIT_LIST_HEAD(&qp->answers.active);
	INIT_LIST_HEAD(&qp->gap_link);
	INIT_LIST_HEAD(&qp->event_link);
	err = alloc_rings(qp, cap);
	if (err)
		return err;
	err = add_qp(qp->end, qp);
	if (err) {
		kvfree(qp->rq.buf);
		kvfree(qp->sq.buf);
		return err;
	}
	ibqp->qp_num = qp->number;
	return 0;
}

/* Do all that is due on the wires that the queue pair uses. */
static u64 catch_up(struct nr_qp *qp)
{
	nr_engine.now = ktime_get_ns();
	nr_read_bells(qp->end);
	nr_advance_wire(qp->end, nr_engine.now);
	if (qp->peer)
		nr_advance_wire(qp->peer, nr_engine.now);
	return nr_engine.now;
}

/* Both queues are empty, and nothing of it is on a wire or in a CQ. */
static void empty_qp(struct nr_qp *qp)
{
	u32 idx;
	u64 t;

	nr_set_state(qp, IB_QPS_RESET);
	t = catch_up(qp);
	nr_forget_gap(qp);
	nr_take_back(qp, qp->sq.done, t);
	for (idx = qp->sq.done; idx != qp->seen; idx++) {
		nr_remove(nr_get_wqe(qp, idx));
		nr_get_wqe(qp, idx)->state = NR_DONE;
	}
	qp->waiting = 0;
	qp->retries = 0;
	qp->rnr = 0;
	qp->sq.done = qp->seen;
	qp->rq.done = qp->rq.head;
	list_del_init(&qp->event_link);
	if (qp->ibqp.send_cq)
		nr_purge_cq(to_nr_cq(qp->ibqp.send_cq), qp);
	if (qp->ibqp.recv_cq && qp->ibqp.recv_cq != qp->ibqp.send_cq)
		nr_purge_cq(to_nr_cq(qp->ibqp.recv_cq), qp);
	WRITE_ONCE(qp->sq.tail, qp->sq.head);
	WRITE_ONCE(qp->rq.tail, qp->rq.head);
	nr_settle_wires(t);
	/* One of the requests may have failed just now. */
	nr_set_state(qp, IB_QPS_RESET);
}

static void copy_attr(struct nr_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IB_QP_AV)
		own->ah_attr = attr->ah_attr;
	if (mask & IB_QP_PATH_MTU) {
		own->path_mtu = attr->path_mtu;
		qp->mtu_shift = ilog2(ib_mtu_enum_to_int(attr->path_mtu));
	}
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		own->rq_psn = attr->rq_psn;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_SQ_PSN)
		own->sq_psn = attr->sq_psn;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN) {
		own->dest_qp_num = attr->dest_qp_num;
		qp->dest = attr->dest_qp_num;
	}
}

int nr_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_udata *udata)
{
	struct nr_qp *qp = to_nr_qp(ibqp);
	struct nr_end *peer = NULL;
	unsigned long flags;
	u32 state;
	int err = 0;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > NR_MAX_RD) ||
	    (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > NR_MAX_RD))
		return -EINVAL;
	if (mask & IB_QP_AV)
		peer = nr_find_end(&rdma_ah_read_grh(&attr->ah_attr)->dgid);

	spin_lock_irqsave(&nr_engine.lock, flags);
	state = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	if (!ib_modify_qp_is_ok(qp->state, state, ibqp->qp_type, mask)) {
		err = -EINVAL;
		goto out;
	}
	copy_attr(qp, attr, mask);
	if (state == IB_QPS_ERR && qp->state != IB_QPS_ERR) {
		nr_fail_qp(qp, catch_up(qp));
		nr_settle_wires(nr_engine.now);
	} else if (state == IB_QPS_RESET) {
		empty_qp(qp);
	} else if (state != qp->state) {
		nr_set_state(qp, state);
	}
	if (mask & IB_QP_AV)
		qp->peer = peer;
out:
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	if (!err)
		nr_kick();
	return err;
}

int nr_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		struct ib_qp_init_attr *init)
{
	struct nr_qp *qp = to_nr_qp(ibqp);
	unsigned long flags;

	spin_lock_irqsave(&nr_engine.lock, flags);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	return 0;
}

int nr_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct nr_qp *qp = to_nr_qp(ibqp);
	unsigned long flags;

	spin_lock_irqsave(&nr_engine.lock, flags);
	empty_qp(qp);
	qp->end->qps[qp->number] = NULL;
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	nr_await_handler(qp);
	kvfree(qp->sq.buf);
	kvfree(qp->rq.buf);
	return 0;
}
