// SPDX-License-Identifier: GPL-2.0
/*
 * The ring of work requests that a flow holds.
 *
 * Owns the records of a managed flow, their order and their memory. A work request is
 * copied whole when the ULP posts it, because the ULP may reuse its memory at once, and
 * stays in the ring until the provider has taken all of it: while a batch is being posted
 * (&riso_flow.posting) the provider reads the records themselves.
 *
 * Everything here runs under &riso_dev.lock, in any context, and neither allocates nor
 * sleeps, except riso_ring_alloc() and riso_ring_free(), which run in process context
 * while nobody else can find the ring.
 */

#include <linux/build_bug.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "flow.h"
#include "ring.h"
#include "trace.h"

static_assert((int)RISO_OPCODE_WRITE == IB_WR_RDMA_WRITE);
static_assert((int)RISO_OPCODE_WRITE_IMM == IB_WR_RDMA_WRITE_WITH_IMM);
static_assert((int)RISO_OPCODE_SEND == IB_WR_SEND);
static_assert((int)RISO_OPCODE_SEND_IMM == IB_WR_SEND_WITH_IMM);
static_assert((int)RISO_OPCODE_READ == IB_WR_RDMA_READ);
static_assert((int)RISO_OPCODE_CMP_AND_SWP == IB_WR_ATOMIC_CMP_AND_SWP);
static_assert((int)RISO_OPCODE_FETCH_AND_ADD == IB_WR_ATOMIC_FETCH_AND_ADD);
static_assert((int)RISO_OPCODE_LOCAL_INV == IB_WR_LOCAL_INV);
static_assert((int)RISO_OPCODE_SEND_INV == IB_WR_SEND_WITH_INV);
static_assert((int)RISO_OPCODE_READ_INV == IB_WR_RDMA_READ_WITH_INV);
static_assert((int)RISO_OPCODE_MASKED_CMP_AND_SWP == IB_WR_MASKED_ATOMIC_CMP_AND_SWP);
static_assert((int)RISO_OPCODE_MASKED_FETCH_AND_ADD == IB_WR_MASKED_ATOMIC_FETCH_AND_ADD);
static_assert((int)RISO_OPCODE_REG_MR == IB_WR_REG_MR);

static u32 rec_stride(const struct riso_flow *f)
{
	size_t sges = f->max_sge * sizeof(struct ib_sge);
	size_t data = sizeof(struct ib_sge) + f->max_inline;

	return ALIGN(sizeof(struct riso_rec) + max(sges, data), 16);
}

/**
 * riso_ring_size - memory that a queue takes
 * @f: the flow
 *
 * Return: bytes.
 */
u64 riso_ring_size(const struct riso_flow *f)
{
	return (u64)(f->sq_depth + RISO_BATCH_RECORDS) * rec_stride(f);
}

/**
 * riso_ring_alloc - get the memory of a queue
 * @f: a flow without one
 *
 * The ring holds as many records as the ULP may have work requests, so it cannot
 * overflow before the provider's own queue would have; and a batch more, which may
 * complete before it is known here that the provider has taken it.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int riso_ring_alloc(struct riso_flow *f)
{
	u32 depth = f->sq_depth + RISO_BATCH_RECORDS;
	u32 stride = rec_stride(f);
	struct riso_ring *q = &f->q;
	void *recs;

	recs = kvmalloc_array(depth, stride, GFP_KERNEL);
	if (!recs)
		return -ENOMEM;
	/* Who resets the QP meanwhile looks at it without &riso_dev.mutex. */
	spin_lock_irq(&f->rd->lock);
	q->stride = stride;
	q->depth = depth;
	q->head = 0;
	q->tail = 0;
	q->seq = 0;
	q->batch_end = 0;
	q->sparse_end = 0;
	q->told_end = 0;
	memset(&q->cur, 0, sizeof(q->cur));
	q->recs = recs;
	spin_unlock_irq(&f->rd->lock);
	return 0;
}

/**
 * riso_ring_free - give the memory of a queue back
 * @f: a flow whose queue nobody uses
 *
 * Context: may sleep.
 */
void riso_ring_free(struct riso_flow *f)
{
	void *recs = f->q.recs;

	spin_lock_irq(&f->rd->lock);
	f->q.recs = NULL;
	spin_unlock_irq(&f->rd->lock);
	kvfree(recs);
}

static bool knows_chain(const struct ib_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (riso_wr_kind(wr->opcode) == RISO_WR_UNKNOWN)
			return false;
	return true;
}

static int check_wr(const struct riso_flow *f, const struct ib_send_wr *wr)
{
	u64 len;

	if (!riso_wr_has_data(wr->opcode))
		return 0;
	if (wr->num_sge < 0 || wr->num_sge > f->max_sge)
		return -EINVAL;
	len = riso_wr_bytes(wr);
	if (len > RISO_MESSAGE_MAX)
		return -EINVAL;
	if ((wr->send_flags & IB_SEND_INLINE) && len > f->max_inline)
		return -EINVAL;
	return 0;
}

/*
 * Of an unknown opcode as much is copied as the largest container has. What lies behind
 * a smaller one is not looked at by the provider either, and may not even be memory.
 */
static void copy_container(struct riso_rec *rec, const struct ib_send_wr *wr)
{
	switch (riso_wr_kind(wr->opcode)) {
	case RISO_WR_PLAIN:
		rec->wr = *wr;
		break;
	case RISO_WR_RDMA:
		rec->rdma = *rdma_wr(wr);
		break;
	case RISO_WR_ATOMIC:
		rec->atomic = *atomic_wr(wr);
		break;
	case RISO_WR_REG:
		rec->reg = *reg_wr(wr);
		break;
	case RISO_WR_UNKNOWN:
		if (copy_from_kernel_nofault(&rec->container, wr,
					     sizeof(rec->container)))
			rec->wr = *wr;
		break;
	}
}

static void copy_wr(struct riso_rec *rec, const struct ib_send_wr *wr, u64 now)
{
	int i;

	copy_container(rec, wr);
	rec->wr.next = NULL;
	rec->wr_id = wr->wr_id;
	rec->send_flags = wr->send_flags;
	rec->queued_ns = now;
	rec->len = 0;
	rec->dead = false;
	rec->wr.sg_list = rec->sge;
	if (!riso_wr_has_data(wr->opcode)) {
		rec->wr.num_sge = 0;
		return;
	}
	if (wr->send_flags & IB_SEND_INLINE) {
		void *data = &rec->sge[1];

		for (i = 0; i < wr->num_sge; i++) {
			memcpy(data + rec->len,
			       (void *)(uintptr_t)wr->sg_list[i].addr,
			       wr->sg_list[i].length);
			rec->len += wr->sg_list[i].length;
		}
		rec->sge[0].addr = (uintptr_t)data;
		rec->sge[0].length = rec->len;
		rec->sge[0].lkey = 0;
		rec->wr.num_sge = rec->len ? 1 : 0;
		return;
	}
	for (i = 0; i < wr->num_sge; i++) {
		rec->sge[i] = wr->sg_list[i];
		rec->len += wr->sg_list[i].length;
	}
}

/**
 * riso_ring_add - take a chain of work requests over from the ULP
 * @f: the flow
 * @wr: first of the chain
 * @now: time, ns
 * @wire: wire bytes of the chain by direction, filled in
 *
 * All or nothing.
 *
 * Context: under &riso_dev.lock.
 * Return: 0; -EOPNOTSUPP for an opcode that may have a container or an effect that is not
 * known here, unless the flow drains; -ENOMEM when the ULP has posted more than it may;
 * -EINVAL for a work request that no provider would take.
 */
int riso_ring_add(struct riso_flow *f, const struct ib_send_wr *wr, u64 now, u64 *wire)
{
	struct riso_ring *q = &f->q;
	u32 len = riso_ring_len(q);
	u32 room = f->sq_depth;
	const struct ib_send_wr *w;
	int err;

	lockdep_assert_held(&f->rd->lock);
	/* What is just being posted may have completed already. */
	if (f->posting)
		room += q->batch_end - q->head;
	room -= min(room, len);

	if (f->mode == RISO_FLOW_MANAGED && !knows_chain(wr))
		return -EOPNOTSUPP;
	for (w = wr; w; w = w->next) {
		if (!room--) {
			f->rd->stats[RISO_STAT_QUEUE_FULL]++;
			return -ENOMEM;
		}
		err = check_wr(f, w);
		if (err)
			return err;
	}
	memset(wire, 0, RISO_DIRS * sizeof(*wire));
	for (w = wr; w; w = w->next) {
		struct riso_rec *rec = riso_ring_at(q, q->tail);

		copy_wr(rec, w, now);
		q->tail++;
		if (riso_wr_is_told(w->opcode))
			q->told_end = q->tail;
		wire[riso_rec_dir(rec)] += riso_piece_wire(rec->len, f->mtu);
		f->queued++;
		WRITE_ONCE(f->rd->held, f->rd->held + 1);
		riso_pressure_hold(&f->group->pressure, 1, now);
		f->rd->stats[RISO_STAT_WR_QUEUED]++;
		trace_wr_queue(f, w->wr_id, w->opcode, rec->len,
			       riso_ring_len(q));
	}
	return 0;
}

/**
 * riso_ring_since - since when something is held
 * @f: a flow with something held
 *
 * Return: when the ULP posted it, ns.
 */
u64 riso_ring_since(const struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	return riso_ring_at(&f->q, f->q.head)->queued_ns;
}

/**
 * riso_ring_drop_head - the oldest record is done with
 * @f: a flow with something held
 *
 * Context: under &riso_dev.lock.
 */
void riso_ring_drop_head(struct riso_flow *f)
{
	struct riso_ring *q = &f->q;

	lockdep_assert_held(&f->rd->lock);
	q->head++;
	q->seq++;
	memset(&q->cur, 0, sizeof(q->cur));
	WRITE_ONCE(f->rd->held, f->rd->held - 1);
	riso_pressure_release(&f->group->pressure, 1);
}

/**
 * riso_ring_pop - take the head out of a queue that the provider refuses
 * @f: the flow
 * @wr_id: the ULP's identity of the work request
 *
 * Return: true if the ULP has to be told of it.
 */
bool riso_ring_pop(struct riso_flow *f, u64 *wr_id)
{
	const struct riso_rec *rec = riso_ring_at(&f->q, f->q.head);
	bool tell = !rec->dead;

	lockdep_assert_held(&f->rd->lock);
	*wr_id = rec->wr_id;
	riso_ring_drop_head(f);
	return tell;
}

/**
 * riso_ring_drop - forget all that is held
 * @f: a flow for which nobody posts
 *
 * For RESET and destroy, which complete nothing.
 */
void riso_ring_drop(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	while (riso_ring_len(&f->q))
		riso_ring_drop_head(f);
}

/**
 * riso_ring_kill - post no more of a message that has failed
 * @f: the flow
 * @seq: number of its work request
 */
void riso_ring_kill(struct riso_flow *f, u64 seq)
{
	struct riso_ring *q = &f->q;

	lockdep_assert_held(&f->rd->lock);
	if (seq - q->seq < riso_ring_len(q))
		riso_ring_at(q, q->head + (seq - q->seq))->dead = true;
}
