// SPDX-License-Identifier: GPL-2.0
/*
 * The next batch of a flow: what the provider is given in one call, and what came of it.
 *
 * Owns &riso_flow.batch, the cutting of RDMA_WRITE and RDMA_READ into chunks, and the tags
 * that the chunks are given. Cutting moves no record: the marks of the batch say where the
 * ring and the tags stood before each work request, so that what the provider does not take
 * is found again in its place.
 *
 * Everything here runs under &riso_dev.lock, in any context, and neither allocates nor
 * sleeps. The lock is not held while the provider has the batch; &riso_flow.posting is set
 * for as long.
 *
 * Only plain RDMA_WRITE and RDMA_READ are cut, core/wr.h says why; inline data go whole
 * (paper, 4.3).
 */

#include <linux/build_bug.h>

#include "batch.h"
#include "flow.h"
#include "tag.h"
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

static_assert(sizeof(struct riso_sge) == sizeof(struct ib_sge));
static_assert(offsetof(struct riso_sge, addr) == offsetof(struct ib_sge, addr));
static_assert(offsetof(struct riso_sge, length) ==
	      offsetof(struct ib_sge, length));
static_assert(offsetof(struct riso_sge, lkey) == offsetof(struct ib_sge, lkey));

/* What is left of a record that is cut up to @done */
static struct riso_next next_of(const struct riso_rec *rec, u64 done)
{
	return (struct riso_next) {
		.dir = riso_rec_dir(rec),
		.left = rec->len - done,
		.cut = riso_wr_is_cut(rec->wr.opcode) && !(rec->send_flags & IB_SEND_INLINE),
	};
}

/*
 * May this record, cut up to @done, take a slot and a send queue entry now?
 *
 * When its QP ends, a work request goes as the ULP posted it, without a slot if there is
 * none; only the rest of one that was cut must have one. What went without a slot occupies an
 * entry of the send queue until a later slot retires. With no slot out that count may be too
 * high, so the provider is asked. In a QP in error nothing is fetched.
 */
static bool fits(const struct riso_flow *f, const struct riso_rec *rec, u64 done)
{
	const struct riso_slots *s = f->slots;
	bool room = riso_tag_has_slot(s);

	if (s->sq_used >= f->sq_depth && s->head != s->tail)
		return false;
	if (f->phase == RISO_PHASE_FLUSHING)
		return room;
	if (f->phase == RISO_PHASE_ENDING)
		return room || !done;
	return room && (!riso_wr_is_fetch(rec->wr.opcode) ||
			s->rd_out < riso_wr_fetches_max(f->max_rd_atomic));
}

/**
 * riso_batch_next - could this flow post now, as far as the flow itself goes?
 * @f: a managed flow
 * @now: time, ns
 * @next: what it would post, filled in if so
 *
 * Drops what is dead at the head first.
 *
 * Return: true if riso_batch_cut() would give something.
 */
bool riso_batch_next(struct riso_flow *f, u64 now, struct riso_next *next)
{
	struct riso_ring *q = &f->q;
	const struct riso_rec *rec;

	lockdep_assert_held(&f->rd->lock);
	if (f->posting || f->paused || f->phase == RISO_PHASE_REFUSED)
		return false;
	while (riso_ring_len(q) && riso_ring_at(q, q->head)->dead)
		riso_ring_drop_head(f);
	if (!riso_ring_len(q) || now < f->retry_ns)
		return false;
	if (f->phase != RISO_PHASE_FLUSHING &&
	    (f->state < IB_QPS_RTS || f->state == IB_QPS_SQD))
		return false;
	rec = riso_ring_at(q, q->head);
	*next = next_of(rec, q->cur.done);
	return fits(f, rec, q->cur.done);
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
	bool held;
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
	if (p->held)
		slot->flags |= RISO_SLOT_HELD;
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
 * @f: a flow for which riso_batch_next() is true
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
	enum riso_dir dir = riso_rec_dir(riso_ring_at(q, q->head));
	struct ib_send_wr *first = NULL;
	struct piece p = {};
	u64 end = min(q->tail, qt->end);
	u64 head = q->head;
	u64 seq = q->seq;

	lockdep_assert_held(&f->rd->lock);
	*wire = 0;
	for (b->num = 0; b->num < RISO_BATCH && head < end; b->num++) {
		struct riso_rec *rec = riso_ring_at(q, head);
		struct riso_next next = next_of(rec, cur.done);
		u32 len = riso_piece_len(&next, qt->chunk);
		u32 cost = riso_piece_wire(len, f->mtu);
		struct ib_send_wr *wr;
		bool whole;

		if (rec->dead || next.dir != dir || !fits(f, rec, cur.done) ||
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
			.held = qt->held,
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
	const struct riso_rec *rec = riso_ring_at(&f->q, m->head);
	u64 *stats = f->rd->stats;
	enum riso_dir dir = riso_rec_dir(rec);
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
	bool flushing = f->phase == RISO_PHASE_FLUSHING;
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
		riso_ring_drop_head(f);
	q->cur = m->cur;
	b->num = 0;
	if (!err || taken)
		f->retries = 0;
	if (!err) {
		f->fail_ns = 0;
		return RISO_POSTED_ALL;
	}
	if (err == -ENOMEM || err == -EAGAIN || err == -ENOTCONN) {
		/* A retry that comes late waited for something else: its time begins anew. */
		if (taken || !flushing || !f->fail_ns ||
		    now > f->retry_ns + RISO_REFUSE_NS / 2)
			f->fail_ns = flushing ? now : 0;
		f->retry_ns = now + (RISO_RETRY_NS << f->retries);
		f->retries = min_t(u32, f->retries + 1, RISO_RETRY_DOUBLINGS);
		if (!flushing || now - f->fail_ns < RISO_REFUSE_NS) {
			f->rd->stats[RISO_STAT_POST_RETRY]++;
			return RISO_POSTED_RETRY;
		}
	}
	f->rd->stats[RISO_STAT_POST_REFUSED]++;
	return RISO_POSTED_REFUSED;
}
