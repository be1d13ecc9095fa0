// SPDX-License-Identifier: GPL-2.0
/*
 * The next batch of a flow: what the provider is given in one call, and what came of it.
 *
 * Owns &riso_flow.batch, the cutting of RDMA_WRITE and RDMA_READ into chunks, and the tags
 * that the chunks are given. A batch is made of runs: a message that goes whole, or chunks of
 * one message that have a tag together. Cutting moves no record: each run says where it began,
 * so that what the provider does not take is found again in its place.
 *
 * Everything here runs under &riso_dev.lock, in any context, and neither allocates nor
 * sleeps, except riso_batch_alloc() and riso_batch_free(), which run in process context while
 * the flow has no queue. The lock is not held while the provider has the batch;
 * &riso_flow.posting is set for as long.
 *
 * Only plain RDMA_WRITE and RDMA_READ are cut, core/wr.h says why; inline data go whole
 * (paper, 4.3).
 */

#include <linux/build_bug.h>
#include <linux/overflow.h>
#include <linux/slab.h>

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

/**
 * riso_batch_size - memory that a batch takes
 * @f: the flow
 *
 * Return: bytes.
 */
u64 riso_batch_size(const struct riso_flow *f)
{
	return struct_size(f->batch, sge, RISO_BATCH * f->max_sge);
}

/**
 * riso_batch_alloc - get the memory of a batch
 * @f: a flow without a queue
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int riso_batch_alloc(struct riso_flow *f)
{
	f->batch = kvzalloc(riso_batch_size(f), GFP_KERNEL);
	return f->batch ? 0 : -ENOMEM;
}

/**
 * riso_batch_free - give the memory of a batch back
 * @f: a flow without a queue
 *
 * Context: may sleep.
 */
void riso_batch_free(struct riso_flow *f)
{
	kvfree(f->batch);
	f->batch = NULL;
}

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
 * How many pieces of this record, cut up to @done, may be posted now? Each needs a reserved CQE and
 * an entry of the send queue.
 *
 * When its QP ends, a work request goes as the ULP posted it, without a slot if there is
 * none; only the rest of one that was cut must have one. What went without a slot occupies an
 * entry of the send queue until a later slot retires. With no slot out that count may be too
 * high, so the provider is asked. In a QP in error nothing is fetched.
 */
static u32 count_fits(const struct riso_flow *f, const struct riso_rec *rec, u64 done)
{
	const struct riso_slots *s = f->slots;
	u32 entries = f->sq_depth - min(f->sq_depth, s->sq_used);
	u32 room = riso_tag_room(s);
	u32 fetches;

	if (!entries && s->head == s->tail)
		entries = 1;
	if (f->phase == RISO_PHASE_ENDING && riso_ring_tells(&f->q) && !room && !done)
		room = 1;
	if (f->phase == RISO_PHASE_PACED && riso_wr_is_fetch(rec->wr.opcode)) {
		fetches = riso_wr_fetches_max(f->max_rd_atomic);
		room = min(room, fetches - min(fetches, s->rd_out));
	}
	return min(room, entries);
}

/*
 * Few chunks fit now, and a completion that makes room is certain to come. Then half as many as may
 * have a tag together wait for each other, or ever fewer would go out at once.
 */
static bool waits_for_more(const struct riso_flow *f, const struct riso_next *next, u32 fits)
{
	const struct riso_bound *bound = &f->bound[next->dir];

	return f->phase == RISO_PHASE_PACED && f->mode == RISO_FLOW_MANAGED && next->cut &&
	       f->bound_of[next->dir] == f->rd->arb[next->dir].bounds &&
	       fits < bound->share / 2 && (u64)fits * bound->chunk < next->left &&
	       f->slots->head != f->slots->tail && riso_tag_is_marked(f->slots);
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
	u32 fits;

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
	fits = count_fits(f, rec, q->cur.done);
	return fits && !waits_for_more(f, next, fits);
}

/* A batch that is being made */
struct cut {
	struct riso_flow *f;
	const struct riso_quantum *qt;
	u64 now;
	struct riso_place at;
	struct ib_send_wr *last;
	u32 wire;
	u64 bytes;
};

static void add_wr(struct cut *c, struct ib_send_wr *wr)
{
	if (c->last)
		c->last->next = wr;
	else
		c->f->batch->first = wr;
	c->last = wr;
	c->f->batch->num++;
}

static void tag_run(struct cut *c, struct riso_run *run, const struct riso_rec *rec,
		    bool signaled)
{
	struct riso_slot *slot = riso_tag_take(c->f->slots, run->num);
	u8 flags = RISO_SLOT_POSTED;

	slot->wr_id = rec->wr_id;
	slot->seq = run->at.seq;
	slot->posted_ns = c->now;
	slot->queued_ns = rec->queued_ns;
	slot->total = rec->len;
	if (run->ends)
		flags |= RISO_SLOT_LAST;
	if (run->num > 1 || run->bytes != rec->len)
		flags |= RISO_SLOT_CHUNK;
	if (rec->send_flags & IB_SEND_SIGNALED)
		flags |= RISO_SLOT_ULP_SIGNALED;
	if (signaled)
		flags |= RISO_SLOT_SIGNALED;
	if (riso_wr_is_fetch(rec->wr.opcode))
		flags |= RISO_SLOT_FETCH;
	slot->flags = flags;
	c->last->wr_cqe = &slot->cqe;
	run->slot = slot;
}

/* What was added is out, as far as the slots go. */
static void count_run(struct cut *c, const struct riso_run *run, const struct riso_rec *rec)
{
	struct riso_slots *s = c->f->slots;

	s->untagged += run->num;
	s->untagged_wire[c->f->batch->dir] += run->wire;
	s->sq_used += run->num;
	if (riso_wr_is_fetch(rec->wr.opcode))
		s->rd_out += run->num;
	c->wire += run->wire;
}

/* A message that goes whole has a tag if its completion, or the end of its fetch, matters. */
static void add_whole(struct cut *c, struct riso_run *run, struct riso_rec *rec)
{
	bool signaled = rec->send_flags & IB_SEND_SIGNALED;

	rec->wr.wr_id = rec->wr_id;
	rec->wr.send_flags = rec->send_flags;
	add_wr(c, &rec->wr);
	run->num = 1;
	run->bytes = rec->len;
	run->ends = true;
	count_run(c, run, rec);
	if ((signaled || riso_wr_is_fetch(rec->wr.opcode)) && riso_tag_room(c->f->slots))
		tag_run(c, run, rec, signaled);
}

/*
 * Chunks of a message, @max at most. If the message goes on behind them, the last one is
 * signaled: then what completes makes room.
 */
static void add_chunks(struct cut *c, struct riso_run *run, const struct riso_rec *rec, u32 max)
{
	struct ib_cqe *inner = &riso_tag_next(c->f->slots)->inner;
	u32 cost = riso_piece_wire(run->len, c->f->mtu);
	struct riso_cursor cur = c->at.cur;
	u32 left = rec->len - cur.done;
	struct riso_batch *b = c->f->batch;
	struct ib_sge *sge = b->sge + b->num * c->f->max_sge;
	struct ib_rdma_wr *wr = &b->wr[b->num];
	int flags = rec->send_flags & ~IB_SEND_SIGNALED;
	u32 len = run->len;
	u32 wire = 0;
	u32 num = 0;
	bool signaled;

	if (!cur.done)
		trace_wr_split(c->f, c->at.seq, rec->wr_id, rec->len, c->qt->chunk);
	add_wr(c, &wr->wr);
	for (;;) {
		*wr = rec->rdma;
		wr->wr.next = &wr[1].wr;
		wr->wr.wr_cqe = inner;
		wr->wr.sg_list = sge;
		wr->wr.send_flags = cur.done ? flags & ~IB_SEND_FENCE : flags;
		wr->remote_addr += cur.done;
		wr->wr.num_sge = riso_chunk_cut((const struct riso_sge *)rec->sge, rec->wr.num_sge,
						&cur, len, (struct riso_sge *)sge);
		num++;
		wire += cost;
		left -= len;
		if (left < len) {
			len = left;
			cost = riso_piece_wire(len, c->f->mtu);
		}
		if (!left || num == max || (u64)c->wire + wire + cost > c->bytes)
			break;
		wr++;
		sge += c->f->max_sge;
	}
	c->last = &wr->wr;
	b->num += num - 1;
	run->num = num;
	run->wire = wire;
	run->bytes = cur.done - c->at.cur.done;
	run->ends = !left;
	c->at.cur = cur;
	signaled = left || (rec->send_flags & IB_SEND_SIGNALED);
	if (signaled)
		c->last->send_flags |= IB_SEND_SIGNALED;
	count_run(c, run, rec);
	tag_run(c, run, rec, signaled);
}

/* Add what comes next to the batch, if it fits. */
static bool add_run(struct cut *c)
{
	struct riso_rec *rec = riso_ring_at(&c->f->q, c->at.pos);
	struct riso_next next = next_of(rec, c->at.cur.done);
	u32 len = riso_piece_len(&next, c->qt->chunk);
	u32 cost = riso_piece_wire(len, c->f->mtu);
	u32 fits = count_fits(c->f, rec, c->at.cur.done);
	struct riso_batch *b = c->f->batch;
	struct riso_run *run = &b->run[b->runs];

	if (rec->dead || next.dir != b->dir || !fits ||
	    (b->num && (u64)c->wire + cost > c->bytes))
		return false;
	*run = (struct riso_run){ .at = c->at, .len = len };
	b->runs++;
	if (len == rec->len) {
		run->wire = cost;
		add_whole(c, run, rec);
	} else {
		add_chunks(c, run, rec, min3(fits, c->qt->share, RISO_BATCH - b->num));
	}
	if (run->ends) {
		c->at.pos++;
		c->at.seq++;
		memset(&c->at.cur, 0, sizeof(c->at.cur));
	}
	return true;
}

/* The last work request of a batch tells that all of it has ended. */
static void signal_last(struct cut *c)
{
	struct riso_batch *b = c->f->batch;
	struct riso_run *run = &b->run[b->runs - 1];

	if (!run->slot && riso_tag_room(c->f->slots))
		tag_run(c, run, riso_ring_at(&c->f->q, run->at.pos), true);
	if (!run->slot)
		return;
	run->slot->flags |= RISO_SLOT_SIGNALED;
	c->last->send_flags |= IB_SEND_SIGNALED;
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
	struct riso_batch *b = f->batch;
	struct riso_ring *q = &f->q;
	struct riso_slots *s = f->slots;
	u64 end = min3(q->tail, qt->end, q->head + RISO_BATCH_RECORDS);
	struct cut c = {
		.f = f,
		.qt = qt,
		.now = now,
		.at = { .pos = q->head, .seq = q->seq, .cur = q->cur },
		.bytes = min_t(u64, qt->bytes, U32_MAX),
	};

	lockdep_assert_held(&f->rd->lock);
	b->num = 0;
	b->runs = 0;
	b->dir = riso_rec_dir(riso_ring_at(q, q->head));
	b->untagged = s->untagged;
	memcpy(b->untagged_wire, s->untagged_wire, sizeof(b->untagged_wire));
	while (b->num < RISO_BATCH && c.at.pos < end && (!b->num || c.wire < c.bytes))
		if (!add_run(&c))
			break;
	*wire = c.wire;
	if (!b->num)
		return NULL;
	signal_last(&c);
	c.last->next = NULL;
	b->after = c.at;
	q->batch_end = c.at.pos;
	return b->first;
}

/* The chunks of a run, for those who watch each of them */
static void trace_chunks(const struct riso_flow *f, const struct riso_run *run,
			 const struct riso_rec *rec, u64 now)
{
	u32 at = 0;

	for (; at < run->bytes; at += run->len)
		trace_chunk_post(f, run->at.seq, min(run->len, run->bytes - at), f->batch->dir,
				 now - rec->queued_ns, run->at.cur.done + at, rec->len);
}

static void account(struct riso_flow *f, const struct riso_run *run, u64 now)
{
	const struct riso_rec *rec = riso_ring_at(&f->q, run->at.pos);
	u64 *stats = f->rd->stats;

	f->bytes[f->batch->dir] += run->bytes;
	f->group->bytes[f->batch->dir] += run->bytes;
	if (run->len == rec->len) {
		stats[RISO_STAT_WHOLE_POSTED]++;
		stats[RISO_STAT_WHOLE_BYTES] += run->bytes;
	} else {
		f->chunks += run->num;
		stats[RISO_STAT_CHUNK_POSTED] += run->num;
		stats[RISO_STAT_CHUNK_BYTES] += run->bytes;
		if (!run->at.cur.done) {
			f->splits++;
			stats[RISO_STAT_WR_SPLIT]++;
		}
		if (trace_chunk_post_enabled())
			trace_chunks(f, run, rec, now);
	}
	if (run->ends) {
		f->wrs++;
		f->group->wrs++;
		f->wait_ns += now - rec->queued_ns;
	}
}

/* How many work requests of a batch come before @bad_wr; none if it is not among them */
static u32 count_before(const struct riso_batch *b, const struct ib_send_wr *bad_wr)
{
	const struct ib_send_wr *wr;
	u32 num = 0;

	for (wr = b->first; wr && wr != bad_wr; wr = wr->next)
		num++;
	return wr ? num : 0;
}

/* Some work requests of a run were not taken. */
static void uncount(struct riso_flow *f, const struct riso_run *run, u32 num, u32 wire,
		    struct riso_untaken *rest)
{
	f->slots->sq_used -= num;
	if (riso_wr_is_fetch(riso_ring_at(&f->q, run->at.pos)->wr.opcode))
		f->slots->rd_out -= num;
	rest->ops += num;
	rest->wire += wire;
}

/* Leave the first @keep pieces in a run. */
static void shorten_run(struct riso_flow *f, struct riso_run *run, u32 keep,
			struct riso_untaken *rest)
{
	const struct riso_rec *rec = riso_ring_at(&f->q, run->at.pos);
	u32 wire = keep * riso_piece_wire(run->len, f->mtu);
	struct riso_batch *b = f->batch;

	uncount(f, run, run->num - keep, run->wire - wire, rest);
	riso_tag_shorten(f->slots, run->slot, b->dir, run->num - keep, run->wire - wire);
	run->num = keep;
	run->wire = wire;
	run->bytes = keep * run->len;
	run->ends = false;
	b->after = run->at;
	riso_chunk_cut((const struct riso_sge *)rec->sge, rec->wr.num_sge, &b->after.cur,
		       run->bytes, (struct riso_sge *)b->sge);
}

/* The provider has taken the first @taken work requests of a batch: undo the rest. */
static void take_back(struct riso_flow *f, u32 taken, struct riso_untaken *rest)
{
	struct riso_batch *b = f->batch;
	struct riso_slots *s = f->slots;
	u32 left = b->num;
	u32 i;

	while (left > taken) {
		struct riso_run *run = &b->run[b->runs - 1];

		if (left - run->num < taken) {
			shorten_run(f, run, run->num - (left - taken), rest);
			break;
		}
		left -= run->num;
		uncount(f, run, run->num, run->wire, rest);
		if (run->slot)
			riso_tag_give_back(s);
		b->after = run->at;
		b->runs--;
	}
	/* Whole messages without a tag are left to the next slot. */
	s->untagged = b->untagged;
	memcpy(s->untagged_wire, b->untagged_wire, sizeof(s->untagged_wire));
	for (i = 0; i < b->runs; i++) {
		if (b->run[i].slot) {
			s->untagged = 0;
			memset(s->untagged_wire, 0, sizeof(s->untagged_wire));
		} else {
			s->untagged++;
			s->untagged_wire[b->dir] += b->run[i].wire;
		}
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
	bool flushing = f->phase == RISO_PHASE_FLUSHING;
	struct riso_batch *b = f->batch;
	struct riso_ring *q = &f->q;
	u32 taken = err ? count_before(b, bad_wr) : b->num;
	u32 i;

	lockdep_assert_held(&f->rd->lock);
	*rest = (struct riso_untaken){};
	if (taken < b->num)
		take_back(f, taken, rest);
	for (i = 0; i < b->runs; i++)
		account(f, &b->run[i], now);
	while (q->head != b->after.pos)
		riso_ring_drop_head(f);
	q->cur = b->after.cur;
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
