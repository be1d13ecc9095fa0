// SPDX-License-Identifier: GPL-2.0
/*
 * Posts: work requests are copied to the queue, and the engine is told.
 *
 * &nr_ring.lock lets one poster of a queue at a time run, and keeps the state of the
 * queue pair from changing meanwhile. It is held while the bell is rung, so that the
 * engine sees the posts of a queue pair in order. Any context.
 */

#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <rdma/ib_mad.h>

#include "engine.h"
#include "instant.h"
#include "params.h"
#include "post.h"

/* what a work request is, beside the flags of &nr_wqe.flags */
#define NR_OP_RC	BIT(8)
#define NR_OP_UD	BIT(9)
#define NR_OP_REMOTE	BIT(10)
#define NR_OP_ATOMIC	BIT(11)

static const u16 op_flags[] = {
	[IB_WR_RDMA_WRITE]		= NR_OP_RC | NR_OP_REMOTE,
	[IB_WR_RDMA_WRITE_WITH_IMM]	= NR_OP_RC | NR_OP_REMOTE,
	[IB_WR_SEND]			= NR_OP_RC | NR_OP_UD,
	[IB_WR_SEND_WITH_IMM]		= NR_OP_RC | NR_OP_UD,
	[IB_WR_SEND_WITH_INV]		= NR_OP_RC,
	[IB_WR_RDMA_READ]		= NR_OP_RC | NR_OP_REMOTE | NR_FETCH,
	[IB_WR_ATOMIC_CMP_AND_SWP]	= NR_OP_RC | NR_OP_ATOMIC | NR_FETCH,
	[IB_WR_ATOMIC_FETCH_AND_ADD]	= NR_OP_RC | NR_OP_ATOMIC | NR_FETCH,
	[IB_WR_REG_MR]			= NR_OP_RC | NR_LOCAL,
	[IB_WR_LOCAL_INV]		= NR_OP_RC | NR_LOCAL,
};

static int fill_inline(struct nr_wqe *wqe, const struct ib_send_wr *wr)
{
	u32 length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > NR_MAX_INLINE - length)
			return -EINVAL;
		memcpy(wqe->data + length, (void *)(uintptr_t)sge->addr, sge->length);
		length += sge->length;
	}
	wqe->length = length;
	return 0;
}

static int fill_sges(struct nr_wqe *wqe, const struct ib_send_wr *wr)
{
	u64 length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i] = wr->sg_list[i];
		length += wr->sg_list[i].length;
	}
	if (unlikely(length > NR_MAX_MSG))
		return -EINVAL;
	wqe->length = length;
	return 0;
}

static int fill_datagram(struct nr_wqe *wqe, const struct ib_send_wr *wr)
{
	const struct nr_qp *qp = wqe->qp;
	u32 qkey = ud_wr(wr)->remote_qkey;

	if (!ud_wr(wr)->ah || wqe->length > BIT(qp->mtu_shift))
		return -EINVAL;
	wqe->ud.ah = to_nr_ah(ud_wr(wr)->ah);
	wqe->ud.qpn = ud_wr(wr)->remote_qpn;
	/* a key with the highest bit set stands for the sender's own */
	wqe->ud.qkey = qkey & BIT(31) && qkey != IB_QP1_QKEY ? qp->attr.qkey : qkey;
	return 0;
}

static int fill(struct nr_qp *qp, struct nr_wqe *wqe, const struct ib_send_wr *wr)
{
	u32 op = wr->opcode < ARRAY_SIZE(op_flags) ? op_flags[wr->opcode] : 0;
	bool rc = qp->init.qp_type == IB_QPT_RC;
	u32 flags = (u8)op;
	int err;

	if (unlikely(!(op & (rc ? NR_OP_RC : NR_OP_UD)) || wr->num_sge > qp->sq.max_sge))
		return -EINVAL;
	if (wr->send_flags & IB_SEND_SIGNALED || qp->signal_all)
		flags |= NR_SIGNALED;
	if (wr->send_flags & IB_SEND_SOLICITED)
		flags |= NR_SOLICITED;
	if (wr->send_flags & IB_SEND_FENCE)
		flags |= NR_FENCED;
	wqe->opcode = wr->opcode;
	wqe->state = NR_READY;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	/* immediate data have the same place */
	wqe->ex.invalidate_rkey = wr->ex.invalidate_rkey;
	if (unlikely(op & NR_LOCAL)) {
		wqe->flags = flags;
		wqe->length = 0;
		wqe->num_sge = 0;
		if (wr->opcode == IB_WR_REG_MR) {
			wqe->reg.mr = container_of(reg_wr(wr)->mr, struct nr_mr, ibmr);
			wqe->reg.key = reg_wr(wr)->key;
			wqe->reg.access = reg_wr(wr)->access;
		}
		return 0;
	}
	if (wr->send_flags & IB_SEND_INLINE && !(op & NR_FETCH)) {
		flags |= NR_INLINE;
		err = fill_inline(wqe, wr);
	} else {
		err = fill_sges(wqe, wr);
	}
	if (unlikely(err))
		return err;
	wqe->flags = flags;
	if (op & NR_OP_REMOTE) {
		wqe->raddr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
	} else if (op & NR_OP_ATOMIC) {
		wqe->raddr = atomic_wr(wr)->remote_addr;
		wqe->rkey = atomic_wr(wr)->rkey;
		wqe->atomic.compare_add = atomic_wr(wr)->compare_add;
		wqe->atomic.swap = atomic_wr(wr)->swap;
	}
	return rc ? 0 : fill_datagram(wqe, wr);
}

/* Tell the engine of posts. True if it has to be woken as well. */
static bool ring_bell(struct nr_qp *qp, struct nr_wqe *first, u32 n, bool urgent)
{
	first->batch = n;
	first->posted = ktime_get_ns();
	/*
	 * A full barrier, as it is an atomic exchange that succeeds. Pairs with the one in
	 * rest() of the engine: that sees the bell, or it is seen here that it rests.
	 */
	llist_add(&first->bell, &qp->end->bells);
	if (urgent)
		return true;
	return nr_rr ? !READ_ONCE(qp->requests.busy) : !READ_ONCE(qp->end->busy);
}

int nr_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		 const struct ib_send_wr **bad_wr)
{
	struct nr_qp *qp = to_nr_qp(ibqp);
	bool urgent, instant = nr_instant, wake = false;
	struct nr_wqe *first = NULL;
	unsigned long irq;
	u32 head, start;
	int err = 0;

	spin_lock_irqsave(&qp->sq.lock, irq);
	start = qp->sq.head;
	head = start;
	urgent = qp->state == IB_QPS_ERR;
	if (unlikely(qp->state != IB_QPS_RTS && !urgent))
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		struct nr_wqe *wqe = nr_get_wqe(qp, head);

		/* the oldest may be in use until its completion was polled */
		if (unlikely(head - READ_ONCE(qp->sq.tail) > qp->sq.mask)) {
			err = -ENOMEM;
			break;
		}
		err = fill(qp, wqe, wr);
		if (unlikely(err))
			break;
		urgent |= wqe->flags & NR_LOCAL;
		instant &= wqe->opcode == IB_WR_RDMA_WRITE;
		wqe->idx = head++;
		if (!first)
			first = wqe;
	}
	if (first) {
		qp->sq.head = head;
		if (unlikely(instant && !urgent))
			nr_end_at_once(qp, head);
		else
			wake = ring_bell(qp, first, head - start, urgent);
	}
	spin_unlock_irqrestore(&qp->sq.lock, irq);
	if (wake)
		nr_kick();
	if (unlikely(err) && bad_wr)
		*bad_wr = wr;
	return err;
}

int nr_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		 const struct ib_recv_wr **bad_wr)
{
	struct nr_qp *qp = to_nr_qp(ibqp);
	bool flush = false;
	unsigned long irq;
	u32 head;
	int err = 0;

	spin_lock_irqsave(&qp->rq.lock, irq);
	head = qp->rq.head;
	if (unlikely(qp->state == IB_QPS_RESET))
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		struct nr_rwqe *rwqe = nr_get_rwqe(qp, head);

		if (unlikely(head - READ_ONCE(qp->rq.tail) > qp->rq.mask))
			err = -ENOMEM;
		else if (unlikely(wr->num_sge > qp->rq.max_sge))
			err = -EINVAL;
		if (unlikely(err))
			break;
		rwqe->wr_id = wr->wr_id;
		rwqe->num_sge = wr->num_sge;
		memcpy(rwqe->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
		head++;
	}
	/* Pairs with the acquires of the engine. */
	smp_store_release(&qp->rq.head, head);
	flush = qp->state == IB_QPS_ERR;
	spin_unlock_irqrestore(&qp->rq.lock, irq);
	if (unlikely(flush))
		nr_flush_posted(qp);
	if (unlikely(err) && bad_wr)
		*bad_wr = wr;
	return err;
}
