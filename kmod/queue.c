// SPDX-License-Identifier: GPL-2.0
/*
 * Held work requests of one flow.
 *
 * Owns the ring of copied work requests of a managed flow, their order, the
 * cutting of RDMA_WRITE and RDMA_READ into chunks, and the batch that is being
 * given to the provider. A work request is copied whole when the ULP posts it,
 * because the ULP may reuse its memory at once, and stays in the ring until the
 * provider has taken all of it: while a batch is being posted (&riso_flow.posting)
 * the provider reads the records themselves.
 *
 * Everything here runs under &riso_dev.lock, in any context, and neither
 * allocates nor sleeps, but for riso_ring_alloc() and riso_ring_free(), which
 * run in process context while nobody else can find the queue.
 *
 * Only plain RDMA_WRITE and RDMA_READ are cut: RC places their bytes in order, so
 * the peer cannot tell. A SEND or an immediate takes a receive of the peer and
 * tells it a length, so it goes whole, as do inline data (paper, 4.3).
 */

#include <linux/build_bug.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "dev.h"
#include "flow.h"
#include "queue.h"
#include "trace.h"

enum {
	/*
	 * A provider that is full is tried again after 100 us, after each further refusal
	 * twice as late, up to 6.4 ms: some print a line each time.
	 */
	RISO_RETRY_NS = 100 * NSEC_PER_USEC,
	RISO_RETRY_DOUBLINGS = 6,
	/* If a QP in error is full for 1 s, nothing completes there any more. */
	RISO_REFUSE_NS = NSEC_PER_SEC,
};

/**
 * struct riso_rec - a copied work request
 * @wr: the work request; wr_id and flags are ours while posted
 * @rdma: its container for RDMA_WRITE and RDMA_READ
 * @atomic: its container for atomics
 * @reg: its container for REG_MR
 * @container: as large as that of any opcode
 * @wr_id: the ULP's own
 * @queued_ns: when the ULP posted it
 * @send_flags: the ULP's own
 * @len: bytes of the message
 * @dead: its error was reported, drop what is left of it
 * @sge: its elements; inline data follow the first
 */
struct riso_rec {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
		union riso_container {
			struct ib_rdma_wr rdma;
			struct ib_atomic_wr atomic;
			struct ib_ud_wr ud;
			struct ib_reg_wr reg;
		} container;
	};
	u64 wr_id;
	u64 queued_ns;
	int send_flags;
	u32 len;
	bool dead;
	struct ib_sge sge[];
};

static_assert(sizeof(struct riso_sge) == sizeof(struct ib_sge));
static_assert(offsetof(struct riso_sge, addr) == offsetof(struct ib_sge, addr));
static_assert(offsetof(struct riso_sge, length) ==
	      offsetof(struct ib_sge, length));
static_assert(offsetof(struct riso_sge, lkey) == offsetof(struct ib_sge, lkey));

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

static struct riso_rec *rec_at(const struct riso_ring *q, u64 pos)
{
	u32 index;

	div_u64_rem(pos, q->depth, &index);
	return q->recs + (size_t)index * q->stride;
}

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
	return (u64)(f->sq_depth + RISO_BATCH) * rec_stride(f) +
	       RISO_BATCH * f->max_sge * sizeof(struct ib_sge);
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
	u32 depth = f->sq_depth + RISO_BATCH;
	u32 stride = rec_stride(f);
	struct riso_ring *q = &f->q;
	struct ib_sge *scratch;
	void *recs;

	recs = kvmalloc_array(depth, stride, GFP_KERNEL);
	if (!recs)
		return -ENOMEM;
	scratch = kcalloc(RISO_BATCH * f->max_sge, sizeof(*scratch), GFP_KERNEL);
	if (!scratch) {
		kvfree(recs);
		return -ENOMEM;
	}
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
	q->scratch = scratch;
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
	struct ib_sge *scratch = f->q.scratch;
	void *recs = f->q.recs;

	spin_lock_irq(&f->rd->lock);
	f->q.recs = NULL;
	f->q.scratch = NULL;
	spin_unlock_irq(&f->rd->lock);
	kvfree(recs);
	kfree(scratch);
}

/**
 * riso_ring_knows - is each opcode of a chain known here?
 * @wr: first of the chain
 *
 * Return: false if one may have a container or an effect that is not.
 */
bool riso_ring_knows(const struct ib_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (riso_wr_kind(wr->opcode) == RISO_WR_UNKNOWN)
			return false;
	return true;
}

static int check_wr(const struct riso_flow *f, const struct ib_send_wr *wr)
{
	u64 len = 0;
	int i;

	if (!riso_wr_has_data(wr->opcode))
		return 0;
	if (wr->num_sge < 0 || wr->num_sge > f->max_sge)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (len > S32_MAX)
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
	case RISO_WR_SEND:
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
 *
 * All or nothing.
 *
 * Return: 0; -ENOMEM when the ULP has posted more than it may; -EINVAL for a
 * work request that no provider would take.
 */
int riso_ring_add(struct riso_flow *f, const struct ib_send_wr *wr, u64 now)
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

	for (w = wr; w; w = w->next) {
		if (!room--) {
			f->rd->stats[RISO_STAT_QUEUE_FULL]++;
			return -ENOMEM;
		}
		err = check_wr(f, w);
		if (err)
			return err;
	}
	for (w = wr; w; w = w->next) {
		struct riso_rec *rec = rec_at(q, q->tail);

		copy_wr(rec, w, now);
		q->tail++;
		if (riso_wr_is_told(w->opcode))
			q->told_end = q->tail;
		f->queued++;
		WRITE_ONCE(f->rd->held, f->rd->held + 1);
		riso_pressure_hold(&f->group->pressure, 1);
		f->rd->stats[RISO_STAT_WR_QUEUED]++;
		trace_wr_queue(f, w->wr_id, w->opcode, rec->len,
			       riso_ring_len(q));
	}
	return 0;
}

static u32 piece_len(const struct riso_rec *rec, u64 done, u32 chunk)
{
	u32 left = rec->len - done;

	if (rec->send_flags & IB_SEND_INLINE)
		return left;
	if (riso_wr_is_cut(rec->wr.opcode))
		return riso_chunk_next(left, chunk);
	return left;
}

static u32 piece_wire(const struct riso_flow *f, u32 len)
{
	return riso_piece_wire(len, f->mtu);
}

static enum riso_dir rec_dir(const struct riso_rec *rec)
{
	return riso_wr_is_read(rec->wr.opcode) ? RISO_RX : RISO_TX;
}

/**
 * riso_batch_next - wire bytes of what goes out next
 * @f: a flow with something held
 * @chunk: size that it would be cut to, 0 is off
 *
 * Return: bytes.
 */
u32 riso_batch_next(const struct riso_flow *f, u32 chunk)
{
	const struct riso_ring *q = &f->q;

	lockdep_assert_held(&f->rd->lock);
	return piece_wire(f, piece_len(rec_at(q, q->head), q->cur.done, chunk));
}

/**
 * riso_ring_sum - wire bytes of all that is held
 * @f: the flow, with nothing cut
 * @wire: filled in, by direction
 */
void riso_ring_sum(const struct riso_flow *f, u64 *wire)
{
	const struct riso_ring *q = &f->q;
	u64 pos;

	lockdep_assert_held(&f->rd->lock);
	memset(wire, 0, RISO_DIRS * sizeof(*wire));
	for (pos = q->head; pos != q->tail; pos++) {
		const struct riso_rec *rec = rec_at(q, pos);

		wire[rec_dir(rec)] += piece_wire(f, rec->len);
	}
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
	return rec_at(&f->q, f->q.head)->queued_ns;
}

/**
 * riso_ring_dir - the direction whose budget goes out next
 * @f: a flow with something held
 *
 * Return: the direction.
 */
enum riso_dir riso_ring_dir(const struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	return rec_dir(rec_at(&f->q, f->q.head));
}

/**
 * riso_batch_fetches - READs and atomics that a flow may have out
 * @f: the flow
 *
 * One less than the QP may have: a provider that runs out of them stalls the whole
 * send queue.
 *
 * Return: how many, at least 1.
 */
u32 riso_batch_fetches(const struct riso_flow *f)
{
	return f->max_rd_atomic > 2 ? f->max_rd_atomic - 1 : 1;
}

/*
 * May this record, cut up to @done, take a slot and a send queue entry now?
 *
 * When its QP ends, a work request goes as the ULP posted it, without a slot if there is
 * none; only the rest of one that was cut must have one. What went without one counts as
 * in use until a slot behind it is retired, so if no slot is out, the provider knows better
 * whether it is full. In a QP in error nothing is fetched.
 */
static bool fits(const struct riso_flow *f, const struct riso_rec *rec, u64 done)
{
	const struct riso_slots *s = f->slots;
	bool room = riso_tag_has_slot(s);

	if (s->sq_used >= f->sq_depth && s->head != s->tail)
		return false;
	if (f->flush)
		return room;
	if (f->ending)
		return room || !done;
	return room && (!riso_wr_is_fetch(rec->wr.opcode) ||
			s->rd_out < riso_batch_fetches(f));
}

static void pop_head(struct riso_flow *f)
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
 * riso_batch_ready - could this flow post now, as far as the flow itself goes?
 * @f: a managed flow
 * @now: time, ns
 *
 * Drops what is dead at the head first.
 *
 * Return: true if riso_batch_cut() would give something.
 */
bool riso_batch_ready(struct riso_flow *f, u64 now)
{
	struct riso_ring *q = &f->q;

	lockdep_assert_held(&f->rd->lock);
	if (f->posting || f->paused || f->refused)
		return false;
	while (riso_ring_len(q) && rec_at(q, q->head)->dead)
		pop_head(f);
	if (!riso_ring_len(q) || now < f->retry_ns)
		return false;
	if (!f->flush && (f->state < IB_QPS_RTS || f->state == IB_QPS_SQD))
		return false;
	return fits(f, rec_at(q, q->head), q->cur.done);
}

static void save_mark(struct riso_flow *f, struct riso_mark *m, u64 head,
		      u64 seq, const struct riso_cursor *cur)
{
	const struct riso_slots *s = f->slots;

	m->head = head;
	m->seq = seq;
	m->cur = *cur;
	m->slot_head = s->head;
	m->untagged = s->untagged;
	m->untagged_wire[RISO_TX] = s->untagged_wire[RISO_TX];
	m->untagged_wire[RISO_RX] = s->untagged_wire[RISO_RX];
	m->sq_used = s->sq_used;
	m->rd_out = s->rd_out;
}

/* The work request that was cut last, and what its tag has to know. */
struct piece {
	struct ib_send_wr *wr;
	const struct riso_rec *rec;
	u64 seq;
	u32 len;
	bool last;
	bool tagged;
};

static void tag_piece(struct riso_flow *f, struct piece *p, u64 now)
{
	struct riso_slot *slot = riso_tag_take(f->slots);

	slot->wr_id = p->rec->wr_id;
	slot->seq = p->seq;
	slot->posted_ns = now;
	slot->queued_ns = p->rec->queued_ns;
	slot->bytes = p->len;
	slot->total = p->rec->len;
	slot->flags = RISO_SLOT_POSTED;
	if (p->last)
		slot->flags |= RISO_SLOT_LAST;
	if (p->len != p->rec->len)
		slot->flags |= RISO_SLOT_CHUNK;
	if (p->rec->send_flags & IB_SEND_SIGNALED)
		slot->flags |= RISO_SLOT_ULP_SIGNALED;
	if (p->wr->send_flags & IB_SEND_SIGNALED)
		slot->flags |= RISO_SLOT_SIGNALED;
	if (riso_wr_is_fetch(p->rec->wr.opcode))
		slot->flags |= RISO_SLOT_FETCH;
	p->wr->wr_cqe = &slot->cqe;
	p->tagged = true;
}

static struct ib_send_wr *make_whole(struct riso_rec *rec)
{
	rec->wr.wr_id = rec->wr_id;
	rec->wr.send_flags = rec->send_flags;
	return &rec->wr;
}

static struct ib_send_wr *make_chunk(struct riso_flow *f, u32 n,
				     const struct riso_rec *rec,
				     struct riso_cursor *cur, u32 len)
{
	struct ib_rdma_wr *wr = &f->batch.wr[n];
	bool first = !cur->done;

	*wr = rec->rdma;
	wr->wr.sg_list = f->q.scratch + n * f->max_sge;
	wr->remote_addr += cur->done;
	wr->wr.num_sge = riso_chunk_cut((const struct riso_sge *)rec->sge,
					rec->wr.num_sge, cur, len,
					(struct riso_sge *)wr->wr.sg_list);
	wr->wr.send_flags = rec->send_flags & ~IB_SEND_SIGNALED;
	if (!first)
		wr->wr.send_flags &= ~IB_SEND_FENCE;
	if (cur->done == rec->len)
		wr->wr.send_flags |= rec->send_flags & IB_SEND_SIGNALED;
	return &wr->wr;
}

/**
 * riso_batch_cut - make the next batch for the provider
 * @f: a flow for which riso_batch_ready() holds
 * @qt: what it may post
 * @now: time, ns
 * @wire: wire bytes of the batch
 *
 * The batch belongs to one direction. All its chunks are tagged; its last work
 * request is tagged and signaled, so that what was posted is always found out
 * about, except when the QP ends and there are no more tags. An unsignaled whole work
 * request in front of that goes out as it is: should it fail, its completion is the
 * ULP's own already.
 *
 * Return: the chain, to be given to the provider without the lock while
 * &riso_flow.posting is set and then to riso_batch_posted(); NULL when nothing
 * fits.
 */
struct ib_send_wr *riso_batch_cut(struct riso_flow *f,
				  const struct riso_quantum *qt, u64 now,
				  u32 *wire)
{
	struct riso_batch *b = &f->batch;
	struct riso_ring *q = &f->q;
	struct riso_slots *s = f->slots;
	struct riso_cursor cur = q->cur;
	enum riso_dir dir = riso_ring_dir(f);
	struct ib_send_wr *first = NULL;
	struct piece p = {};
	u64 end = min(q->tail, qt->end);
	u64 head = q->head;
	u64 seq = q->seq;

	lockdep_assert_held(&f->rd->lock);
	*wire = 0;
	for (b->num = 0; b->num < RISO_BATCH && head < end; b->num++) {
		struct riso_rec *rec = rec_at(q, head);
		struct ib_send_wr *wr;
		bool whole;
		u32 cost;
		u32 len;

		len = piece_len(rec, cur.done, qt->chunk);
		cost = piece_wire(f, len);
		if (rec->dead || rec_dir(rec) != dir || !fits(f, rec, cur.done) ||
		    (b->num && (u64)*wire + cost > min_t(u64, qt->bytes, U32_MAX)))
			break;
		save_mark(f, &b->mark[b->num], head, seq, &cur);
		whole = len == rec->len;
		if (whole) {
			wr = make_whole(rec);
			cur.done = len;
		} else {
			if (!cur.done)
				trace_wr_split(f, seq, rec->wr_id, rec->len,
					       qt->chunk);
			wr = make_chunk(f, b->num, rec, &cur, len);
		}
		wr->next = NULL;
		if (first)
			p.wr->next = wr;
		else
			first = wr;
		b->mark[b->num].wr = wr;
		p = (struct piece) {
			.wr = wr,
			.rec = rec,
			.seq = seq,
			.len = len,
			.last = cur.done == rec->len,
		};
		*wire += cost;
		s->untagged++;
		s->untagged_wire[dir] += cost;
		s->sq_used++;
		if (riso_wr_is_fetch(rec->wr.opcode))
			s->rd_out++;
		if (riso_tag_has_slot(s) &&
		    (!whole || riso_wr_is_fetch(rec->wr.opcode) ||
		     (wr->send_flags & IB_SEND_SIGNALED)))
			tag_piece(f, &p, now);
		if (p.last) {
			head++;
			seq++;
			memset(&cur, 0, sizeof(cur));
		}
	}
	if (!first)
		return NULL;
	if (!p.tagged && riso_tag_has_slot(s))
		tag_piece(f, &p, now);
	if (p.tagged) {
		p.wr->send_flags |= IB_SEND_SIGNALED;
		container_of(p.wr->wr_cqe, struct riso_slot, cqe)->flags |=
			RISO_SLOT_SIGNALED;
	}
	save_mark(f, &b->mark[b->num], head, seq, &cur);
	q->batch_end = head;
	return first;
}

static void account(struct riso_flow *f, const struct riso_mark *m, u64 now)
{
	const struct riso_rec *rec = rec_at(&f->q, m->head);
	u64 *stats = f->rd->stats;
	enum riso_dir dir = rec_dir(rec);
	u64 end = (m + 1)->head == m->head ? (m + 1)->cur.done : rec->len;
	u32 len = end - m->cur.done;

	f->bytes[dir] += len;
	f->group->bytes[dir] += len;
	if (len == rec->len) {
		stats[RISO_STAT_WHOLE_POSTED]++;
		stats[RISO_STAT_WHOLE_BYTES] += len;
	} else {
		f->chunks++;
		stats[RISO_STAT_CHUNK_POSTED]++;
		stats[RISO_STAT_CHUNK_BYTES] += len;
		if (!m->cur.done) {
			f->splits++;
			stats[RISO_STAT_WR_SPLIT]++;
		}
		trace_chunk_post(f, m->seq, len, dir, now - rec->queued_ns,
				 m->cur.done, rec->len);
	}
	if (end == rec->len) {
		f->wrs++;
		f->group->wrs++;
		f->wait_ns += now - rec->queued_ns;
	}
}

/**
 * riso_batch_posted - the provider has had the batch
 * @f: the flow
 * @err: what post_send() returned
 * @bad_wr: first work request that was not taken, if @err
 * @now: time, ns
 * @rest: what was not taken, for the caller to refund
 *
 * What was not taken is in the ring again, in its place.
 *
 * Return: what came of it.
 */
enum riso_posted riso_batch_posted(struct riso_flow *f, int err,
				   const struct ib_send_wr *bad_wr, u64 now,
				   struct riso_untaken *rest)
{
	struct riso_batch *b = &f->batch;
	struct riso_ring *q = &f->q;
	struct riso_slots *s = f->slots;
	const struct riso_mark *m;
	u32 taken = b->num;
	u32 i;

	lockdep_assert_held(&f->rd->lock);
	if (err)
		for (taken = 0; taken < b->num; taken++)
			if (b->mark[taken].wr == bad_wr)
				break;
	if (err && taken == b->num)
		taken = 0;
	m = &b->mark[taken];
	for (i = 0; i < taken; i++)
		account(f, &b->mark[i], now);
	*rest = (struct riso_untaken){ .ops = b->num - taken };
	if (err) {
		riso_tag_untag(f, m->slot_head, m->untagged_wire, rest->wire);
		s->untagged = m->untagged;
		s->sq_used -= b->mark[b->num].sq_used - m->sq_used;
		s->rd_out -= b->mark[b->num].rd_out - m->rd_out;
	}
	while (q->head != m->head)
		pop_head(f);
	q->cur = m->cur;
	b->num = 0;
	if (!err || taken)
		f->retries = 0;
	if (!err) {
		f->fail_ns = 0;
		return RISO_POSTED_ALL;
	}
	if (err == -ENOMEM || err == -EAGAIN || err == -ENOTCONN) {
		/* It may have waited for something else meanwhile. */
		if (taken || !f->flush || !f->fail_ns ||
		    now > f->retry_ns + RISO_REFUSE_NS / 2)
			f->fail_ns = f->flush ? now : 0;
		f->retry_ns = now + (RISO_RETRY_NS << f->retries);
		f->retries = min_t(u32, f->retries + 1, RISO_RETRY_DOUBLINGS);
		if (!f->flush || now - f->fail_ns < RISO_REFUSE_NS) {
			f->rd->stats[RISO_STAT_POST_RETRY]++;
			return RISO_POSTED_RETRY;
		}
	}
	f->rd->stats[RISO_STAT_POST_REFUSED]++;
	return RISO_POSTED_REFUSED;
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
	const struct riso_rec *rec = rec_at(&f->q, f->q.head);
	bool tell = !rec->dead;

	lockdep_assert_held(&f->rd->lock);
	*wr_id = rec->wr_id;
	pop_head(f);
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
		pop_head(f);
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
		rec_at(q, q->head + (seq - q->seq))->dead = true;
}
