// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Held work requests of a flow, and posting them.
 *
 * Owns the ring of copied work requests, their order, the cutting of RDMA_WRITE and
 * RDMA_READ into chunks, and the batch that is given to the provider. Whatever the
 * program posts on a governed queue pair goes through the ring, also what goes out
 * at once, so there is one path and one order.
 *
 * Everything runs under shim_member.lock in any thread and does not allocate, but
 * for shim_queue_alloc() and shim_queue_free(), for which nobody else knows the flow,
 * and shim_queue_stage() and shim_queue_copy(), which write behind the records that
 * are held: there shim_qp.build keeps others out.
 *
 * Who waits for a completion must get one. A piece is refused for want of room
 * only while something is posted whose completion was asked for, by this flow or by
 * another one in its CQ, and of what is posted behind that, half of the room is left.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

/* What is held this long without a grant goes out as debt. */
static const uint64_t deadline_ns = 1000000000;

/*
 * A drain looks for room every 100 us, for a second: providers free it within less. What
 * they flush comes within 10 ms.
 */
enum { DRAIN_US = 100, DRAIN_LOOKS = 10000, FLUSH_LOOKS = 100 };

enum {
	/* Whole work requests without a completion, in a row. */
	MAX_SILENT = 16,
	/* Cost bytes without one: the kernel waits to hear of what is done. */
	MAX_QUIET = 64 * 1024,
	DEFAULT_MTU = 1024,
	MAX_MESSAGE = 1U << 31,
};

_Static_assert(sizeof(struct riso_sge) == sizeof(struct ibv_sge), "same layout");

static struct shim_rec *rec_at(const struct shim_qp *f, uint64_t pos)
{
	return f->recs + (size_t)(pos % f->depth) * f->stride;
}

static uint64_t used_slots(const struct shim_qp *f)
{
	return f->sq.slot - f->slots->tail;
}

/**
 * shim_queue_alloc - get the memory of a flow
 * @f: a flow with depth, max_sge and max_inline set
 * @sq_entries: of the provider's send queue
 *
 * Return: 0 or ENOMEM.
 */
int shim_queue_alloc(struct shim_qp *f, uint32_t sq_entries)
{
	size_t sges = f->max_sge * sizeof(struct ibv_sge);
	size_t data = sizeof(struct ibv_sge) + f->max_inline;

	f->mtu = DEFAULT_MTU;
	f->fresh = UINT64_MAX;
	f->stride = (sizeof(struct shim_rec) + (sges > data ? sges : data) + 15) &
		    ~15U;
	f->recs = calloc(f->depth, f->stride);
	f->sge = calloc(SHIM_BATCH * (f->max_sge + 1), sizeof(*f->sge));
	f->slots = shim_slots_alloc(f, sq_entries);
	if (f->recs && f->sge && f->slots)
		return 0;
	shim_queue_free(f);
	return ENOMEM;
}

/**
 * shim_queue_free - give the memory of a flow back
 * @f: a flow that nobody uses
 */
void shim_queue_free(struct shim_qp *f)
{
	free(f->recs);
	free(f->sge);
	if (f->slots)
		shim_slots_free(f->slots);
	f->recs = NULL;
	f->sge = NULL;
	f->slots = NULL;
}

static bool is_known(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_LOCAL_INV:
	case IBV_WR_BIND_MW:
		return true;
	default:
		return false;
	}
}

static bool has_data(enum ibv_wr_opcode opcode)
{
	return opcode != IBV_WR_LOCAL_INV && opcode != IBV_WR_BIND_MW;
}

/* Does it take one of the queue pair's max_rd_atomic? */
static bool is_fetch(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ ||
	       opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static enum riso_user_dir rec_dir(const struct shim_rec *rec)
{
	return rec->wr.opcode == IBV_WR_RDMA_READ ? RISO_USER_RX : RISO_USER_TX;
}

static uint64_t cost_of(const struct shim_qp *f, uint32_t len)
{
	const struct riso_kpage *k = f->ctx->m->kpage;

	return shim_cost(len, f->mtu, k->header, k->op_bytes);
}

static uint32_t chunk_size(const struct shim_qp *f, const struct shim_rec *rec)
{
	const struct riso_kdir *kdir = &f->ctx->m->kpage->dir[rec_dir(rec)];

	return riso_chunk_round(__atomic_load_n(&kdir->chunk, __ATOMIC_RELAXED),
				f->mtu);
}

/* The size that it is cut to, 0 for uncut */
static uint32_t chunk_of(const struct shim_qp *f, const struct shim_rec *rec)
{
	if ((rec->wr.send_flags & IBV_SEND_INLINE) ||
	    (rec->wr.opcode != IBV_WR_RDMA_WRITE &&
	     rec->wr.opcode != IBV_WR_RDMA_READ))
		return 0;
	return chunk_size(f, rec);
}

/**
 * shim_queue_rewind - begin at the front of the ring, which is in the cache
 * @f: the flow; its member is locked, and nothing is staged
 */
void shim_queue_rewind(struct shim_qp *f)
{
	if (shim_queue_len(f))
		return;
	f->sq.head = 0;
	f->tail = 0;
}

/**
 * shim_queue_stage - a record behind those that are held
 * @f: the flow; its build lock, or the lock of the member, is held
 * @n: how many have been staged before it
 *
 * Return: the record, or NULL if the program has posted more than it may.
 */
struct shim_rec *shim_queue_stage(struct shim_qp *f, uint32_t n)
{
	uint64_t finished = __atomic_load_n(&f->finished, __ATOMIC_ACQUIRE);

	if (f->accepted + n - finished >= f->depth)
		return NULL;
	return rec_at(f, f->tail + n);
}

/**
 * shim_queue_inline - a record brings its data with it
 * @rec: the record, without data so far
 */
void shim_queue_inline(struct shim_rec *rec)
{
	rec->wr.send_flags |= IBV_SEND_INLINE;
	rec->wr.num_sge = 0;
	rec->len = 0;
	rec->sge[0] = (struct ibv_sge) {
		.addr = (uintptr_t)&rec->sge[1],
	};
}

/**
 * shim_queue_inline_add - add to the data of a record
 * @f: the flow
 * @rec: the record
 * @data: bytes
 * @len: how many
 *
 * Return: 0, or EINVAL if they are too many.
 */
int shim_queue_inline_add(const struct shim_qp *f, struct shim_rec *rec,
			  const void *data, size_t len)
{
	if (len > f->max_inline - rec->len)
		return EINVAL;
	if (!len)
		return 0;
	memcpy((char *)&rec->sge[1] + rec->len, data, len);
	rec->len += len;
	rec->sge[0].length = rec->len;
	rec->wr.num_sge = 1;
	return 0;
}

/**
 * shim_queue_copy - copy a work request of the program
 * @f: the flow
 * @rec: where to
 * @wr: the work request
 *
 * Return: 0; EINVAL for what no provider would take; EOPNOTSUPP for an opcode that
 * is not known here.
 */
int shim_queue_copy(struct shim_qp *f, struct shim_rec *rec,
		    const struct ibv_send_wr *wr)
{
	uint64_t len = 0;
	int err = 0;
	int i;

	if (!is_known(wr->opcode))
		return EOPNOTSUPP;
	rec->wr = *wr;
	rec->wr.next = NULL;
	rec->wr.sg_list = rec->sge;
	rec->refused = false;
	rec->len = 0;
	if (!has_data(wr->opcode)) {
		rec->wr.num_sge = 0;
		return 0;
	}
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > f->max_sge)
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (len > MAX_MESSAGE)
		return EINVAL;
	rec->len = len;
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		if (wr->num_sge)
			memcpy(rec->sge, wr->sg_list,
			       wr->num_sge * sizeof(*rec->sge));
		return 0;
	}
	shim_queue_inline(rec);
	for (i = 0; i < wr->num_sge && !err; i++)
		err = shim_queue_inline_add(f, rec,
					    (void *)(uintptr_t)wr->sg_list[i].addr,
					    wr->sg_list[i].length);
	return err;
}

/* What it will cost, cut as things are now. */
static uint64_t whole_cost(const struct shim_qp *f, const struct shim_rec *rec)
{
	uint32_t chunk = chunk_of(f, rec);
	uint64_t full;

	if (!chunk || rec->len <= chunk)
		return cost_of(f, rec->len);
	full = rec->len / chunk;
	return full * cost_of(f, chunk) +
	       (rec->len % chunk ? cost_of(f, rec->len % chunk) : 0);
}

/**
 * shim_queue_passes - shall calls go straight to the provider?
 * @f: the flow
 *
 * Those of class latency do, once nothing is held or being built. Pieces that are out take
 * more room in the provider's queue than the program knows of.
 *
 * Return: true if so.
 */
bool shim_queue_passes(const struct shim_qp *f)
{
	return (f->alone || f->class_id == RISO_CLASS_LATENCY) &&
	       !shim_queue_len(f) && !f->build.open && !f->sq.chunks;
}

/**
 * shim_queue_pass - bring shim_qp.pass up to date
 * @f: the flow
 *
 * One that does not go straight to the provider has joined its CQ, shim_comp_join().
 */
void shim_queue_pass(struct shim_qp *f)
{
	bool pass = shim_queue_passes(f);

	if (pass && !f->joins && !used_slots(f))
		shim_comp_tag(f, false);
	/* What went straight was not counted: the provider knows how full it is. */
	if (f->pass && !pass) {
		__atomic_store_n(&f->finished, f->accepted, __ATOMIC_RELEASE);
		f->sq.direct = true;
	}
	__atomic_store_n(&f->pass, pass, __ATOMIC_RELEASE);
}

/* The flow holds more that is not paid for, or less if it is negative. */
static void add_cost(struct shim_qp *f, int dir, int64_t cost)
{
	struct shim_book *book = &f->ctx->m->book[dir];

	book->held += cost;
	f->cost[dir] += cost;
	if (f->full)
		book->stuck += cost;
}

/* A flow that waits for room wants no grant, which would be void before it is used. */
static void set_full(struct shim_qp *f, bool full)
{
	struct shim_book *book = f->ctx->m->book;
	int dir;

	if (f->full == full)
		return;
	f->full = full;
	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		book[dir].stuck += full ? f->cost[dir] : -f->cost[dir];
}

/* Take what was staged into the queue. */
static void add_staged(struct shim_qp *f, uint32_t num, uint64_t now)
{
	struct shim_member *m = f->ctx->m;
	struct shim_rec *rec;
	uint64_t pos;

	if (!num)
		return;
	if (!shim_queue_len(f)) {
		TAILQ_INSERT_TAIL(&m->busy, f, busy);
		m->num_busy++;
		__atomic_store_n(&f->holds, true, __ATOMIC_RELAXED);
		if (!f->cq->unseen)
			f->cq->unseen = 1;
	}
	__atomic_store_n(&m->held, m->held + num, __ATOMIC_RELAXED);
	f->tail += num;
	shim_queue_pass(f);
	for (pos = f->tail - num; pos != f->tail; pos++) {
		rec = rec_at(f, pos);
		rec->seq = f->accepted++;
		rec->queued_ns = now;
		rec->cost = whole_cost(f, rec);
		if (f->sig_all)
			rec->wr.send_flags |= IBV_SEND_SIGNALED;
		add_cost(f, rec_dir(rec), rec->cost);
	}
}

/* Nothing is held any more. */
static void set_idle(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;

	TAILQ_REMOVE(&m->busy, f, busy);
	m->num_busy--;
	__atomic_store_n(&f->holds, false, __ATOMIC_RELAXED);
	shim_queue_pass(f);
}

static void unhold(struct shim_qp *f, struct shim_rec *rec)
{
	struct shim_member *m = f->ctx->m;

	add_cost(f, rec_dir(rec), -(int64_t)rec->cost);
	rec->cost = 0;
	__atomic_store_n(&m->held, m->held - 1, __ATOMIC_RELAXED);
}

/* What was paid for and is not posted is done with. */
static void forget_paid(struct shim_qp *f, const struct shim_rec *rec)
{
	f->ctx->m->book[rec_dir(rec)].done += f->sq.paid;
	f->sq.paid = 0;
}

static void pop_head(struct shim_qp *f)
{
	struct shim_rec *rec = rec_at(f, f->sq.head);

	forget_paid(f, rec);
	unhold(f, rec);
	f->sq.head++;
	memset(&f->sq.cur, 0, sizeof(f->sq.cur));
	shim_qp_set_parts(f, 0, f->sq.silent);
	if (!shim_queue_len(f))
		set_idle(f);
}

/* Take back all from position @pos on, of which nothing was posted. */
static void truncate_queue(struct shim_qp *f, uint64_t pos)
{
	if (pos == f->tail)
		return;
	while (f->tail != pos) {
		unhold(f, rec_at(f, --f->tail));
		f->accepted--;
	}
	if (!shim_queue_len(f))
		set_idle(f);
}

/**
 * shim_queue_drop - forget all that is held
 * @f: a flow that is being reset or destroyed
 */
void shim_queue_drop(struct shim_qp *f)
{
	while (shim_queue_len(f))
		pop_head(f);
}

/* Everything goes out, whether there is a grant or not. */
static bool is_open(const struct shim_qp *f)
{
	return f->flush || f->urge || f->class_id == RISO_CLASS_LATENCY || f->alone ||
	       shim_member_open(f->ctx->m);
}

static uint32_t max_fetches(const struct shim_qp *f)
{
	return f->max_rd_atomic > 2 ? f->max_rd_atomic - 1 : 1;
}

/**
 * struct piece - the work request that goes out next
 * @rec: its record
 * @chunk: size that messages are cut to
 * @len: bytes
 * @cost: cost bytes
 * @last: the message ends with it
 * @cut: it is not the whole message
 */
struct piece {
	struct shim_rec *rec;
	uint32_t chunk;
	uint32_t len;
	uint64_t cost;
	bool last;
	bool cut;
};

static void next_piece(const struct shim_qp *f, bool open, struct piece *p)
{
	uint32_t left;

	p->rec = rec_at(f, f->sq.head);
	p->chunk = chunk_of(f, p->rec);
	left = p->rec->len - f->sq.cur.done;
	p->len = riso_chunk_next(left, open ? 0 : p->chunk);
	p->cost = cost_of(f, p->len);
	p->last = p->len == left;
	p->cut = p->len != p->rec->len;
}

/* A small work request of a flow that has nothing else to send. */
static bool is_sparse(struct shim_qp *f, const struct piece *p, uint64_t now)
{
	struct shim_member *m = f->ctx->m;
	uint32_t chunk = chunk_size(f, p->rec);

	if (p->rec->seq < f->fresh || p->cut || (chunk && p->rec->len > chunk))
		return false;
	return shim_slice_debt(&m->slice, now, m->kpage->slice_ns,
			       m->kpage->sparse, p->cost);
}

enum pay {
	PAY_NOT,
	PAY_GRANT,
	PAY_DEBT,
	PAY_NOTHING,
};

/* How is this piece paid for? */
static enum pay pay_for(struct shim_qp *f, const struct piece *p, bool open,
			uint64_t now)
{
	struct shim_member *m = f->ctx->m;
	const struct shim_budget *b = &m->book[rec_dir(p->rec)].budget;
	uint64_t due = p->cost - (f->sq.paid < p->cost ? f->sq.paid : p->cost);
	uint64_t since = p->rec->queued_ns;

	if (open)
		return shim_member_open(m) ? PAY_NOTHING : PAY_DEBT;
	if (is_sparse(f, p, now))
		return PAY_DEBT;
	if (shim_budget_left(b) >= due)
		return PAY_GRANT;
	if (since < f->progress_ns)
		since = f->progress_ns;
	return now - since >= deadline_ns ? PAY_DEBT : PAY_NOT;
}

static uint32_t spare_entries(const struct shim_cq *c)
{
	return __atomic_load_n(&c->spare, __ATOMIC_RELAXED);
}

/* Has a CQ an entry left for a completion that nobody sees? */
static bool has_entry(const struct shim_cq *c)
{
	return c->used.hidden < spare_entries(c);
}

/* Are other pieces of its message out? */
static bool is_extra(const struct shim_qp *f, const struct piece *p)
{
	const struct shim_slots *s = f->slots;

	return used_slots(f) && s->slot[(f->sq.slot - 1) % s->num].seq == p->rec->seq;
}

/* Is half of the spare entries of a CQ taken? The rest may be before these are free. */
static bool is_crowded(const struct shim_cq *c)
{
	return 2 * (c->used.extra + c->used.open + 1) >= spare_entries(c);
}

static bool needs_event(const struct shim_cq *c, bool is_last)
{
	return c->owes || (is_last && c->cq->channel && c->soft_head != c->soft_tail);
}

/*
 * Ask for a completion that the program does not want? It may wake the program, so
 * only for half of what may be out: when one half has completed the other keeps the
 * device busy.
 */
static bool must_signal(const struct shim_qp *f, const struct piece *p, bool open)
{
	const struct shim_sq *sq = &f->sq;
	uint64_t quiet;

	/* What went straight before may have left room for one. */
	if (used_slots(f) + 1 >= f->slots->num || sq->direct)
		return true;
	/* What was taken needs an event, if the CQ was armed, or is after the last piece. */
	if (needs_event(f->cq, p->last && sq->head + 1 == f->tail) &&
	    sq->hidden + 1 < SHIM_SLOTS && has_entry(f->cq))
		return true;
	/* The flow may find no room for more, until one half of its pieces is complete. */
	if (!p->last && is_crowded(f->cq) && 2 * (sq->silent + 1) > sq->chunks + 1)
		return true;
	if (open)
		return false;
	if (sq->silent >= (p->cut ? SHIM_SLOTS / 2 - 1 : MAX_SILENT))
		return true;
	if (is_fetch(p->rec->wr.opcode) && sq->fetches + 2 >= max_fetches(f))
		return true;
	quiet = sq->quiet + p->cost;
	return quiet >= MAX_QUIET || 2 * quiet >= f->ctx->m->kpage->window;
}

/* Does the program want its completion? */
static bool is_asked(const struct piece *p)
{
	return p->last && (p->rec->wr.send_flags & IBV_SEND_SIGNALED);
}

/* Has the CQ room for a completion of this piece, if it has one and succeeds? */
static bool may_complete(const struct shim_qp *f, const struct piece *p, bool open)
{
	const struct shim_sq *sq = &f->sq;

	/* Hidden ones before it may have taken the entry of the message. */
	if (is_asked(p))
		return f->urge || !sq->hidden ||
		       f->cq->used.hidden <= spare_entries(f->cq);
	/* Those of others complete, too, and leave an entry of the CQ to this one. */
	if (has_entry(f->cq) || !must_signal(f, p, open))
		return true;
	/* One that is alone takes the entry of the message. */
	return !sq->signaled && (p->rec->wr.send_flags & IBV_SEND_SIGNALED);
}

/* Has the CQ room for all that is out if the queue pairs fail? See struct shim_used. */
static bool may_fail(const struct shim_qp *f, const struct piece *p)
{
	const struct shim_used *used = &f->cq->used;
	uint32_t spare = spare_entries(f->cq);
	bool extra = is_extra(f, p);

	/* A flow with nothing to wait for goes on: its message is bare, or not open. */
	if (!f->sq.signaled || (p->last && !extra))
		return true;
	return used->extra + (p->last ? used->bare : used->open) < spare;
}

/* Is there room for a piece, as far as the flow itself and its CQ go? */
static bool fits(const struct shim_qp *f, const struct piece *p, bool open)
{
	const struct shim_sq *sq = &f->sq;

	if (used_slots(f) >= f->slots->num)
		return false;
	if (!may_complete(f, p, open) || !may_fail(f, p))
		return false;
	if (open || !sq->signaled)
		return true;
	if (is_fetch(p->rec->wr.opcode) && sq->fetches >= max_fetches(f))
		return false;
	return sq->chunks < SHIM_SLOTS && sq->hidden < SHIM_SLOTS &&
	       sq->cost + p->cost <= f->ctx->m->kpage->window;
}

/* What its slot says, as long as it is not counted. */
static uint16_t slot_flags(const struct shim_qp *f, const struct piece *p, bool open)
{
	uint16_t flags = SHIM_SLOT_POSTED;

	if (p->cut)
		flags |= SHIM_SLOT_CHUNK;
	if (p->last)
		flags |= SHIM_SLOT_LAST;
	if (p->rec->wr.send_flags & IBV_SEND_SIGNALED)
		flags |= SHIM_SLOT_ASKED;
	if (is_fetch(p->rec->wr.opcode))
		flags |= SHIM_SLOT_FETCH;
	if (is_extra(f, p))
		flags |= SHIM_SLOT_EXTRA;
	if (is_asked(p) || must_signal(f, p, open))
		flags |= SHIM_SLOT_SIGNALED;
	return flags;
}

/* Account for the next slot as posted. */
static void count_slot(struct shim_qp *f, const struct shim_slot *slot)
{
	bool signaled = slot->flags & SHIM_SLOT_SIGNALED;
	struct shim_sq *sq = &f->sq;

	if (slot->flags & SHIM_SLOT_CHUNK)
		sq->chunks++;
	if (slot->flags & SHIM_SLOT_FETCH)
		sq->fetches++;
	if (slot->flags & SHIM_SLOT_EXTRA)
		f->cq->used.extra++;
	if (shim_slot_hidden(slot)) {
		sq->hidden++;
		f->cq->used.hidden++;
	}
	sq->signaled += signaled;
	sq->direct = sq->direct && !signaled;
	sq->quiet = signaled ? 0 : sq->quiet + slot->cost;
	shim_qp_set_parts(f, slot->flags & SHIM_SLOT_LAST ? 0 : sq->parts + 1,
			  signaled ? 0 : sq->silent + 1);
	sq->cost += slot->cost;
	sq->slot++;
}

/* Let a work request be for a part of its message. */
static void cut_piece(struct shim_qp *f, const struct piece *p,
		      struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct riso_cursor *cur = &f->sq.cur;

	wr->wr.rdma.remote_addr += cur->done;
	if (cur->done)
		wr->send_flags &= ~IBV_SEND_FENCE;
	wr->num_sge = riso_chunk_cut((const struct riso_sge *)p->rec->sge,
				     p->rec->wr.num_sge, cur, p->len,
				     (struct riso_sge *)sge);
	wr->sg_list = sge;
}

/* Make the piece's work request, and account for it as posted. */
static void make_piece(struct shim_qp *f, const struct piece *p, bool open,
		       struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct shim_slots *s = f->slots;
	struct shim_slot *slot = &s->slot[f->sq.slot % s->num];
	struct shim_sq *sq = &f->sq;
	uint64_t cost = p->last && sq->paid > p->cost ? sq->paid : p->cost;

	*wr = p->rec->wr;
	*slot = (struct shim_slot) {
		.wr_id = wr->wr_id,
		.seq = p->rec->seq,
		.cost = cost,
		.total = p->rec->len,
		.dir = rec_dir(p->rec),
		.flags = slot_flags(f, p, open),
	};
	wr->wr_id = (uintptr_t)slot;
	if (slot->flags & SHIM_SLOT_SIGNALED)
		wr->send_flags |= IBV_SEND_SIGNALED;
	else
		wr->send_flags &= ~IBV_SEND_SIGNALED;
	if (p->cut)
		cut_piece(f, p, wr, sge);
	count_slot(f, slot);
	sq->paid -= sq->paid < cost ? sq->paid : cost;
	if (p->last) {
		sq->head++;
		memset(&sq->cur, 0, sizeof(sq->cur));
	}
}

/**
 * struct mark - how things were before a piece of a batch
 * @sq: of the flow
 * @used: of its CQ
 * @slice: of the member
 * @rec: the piece's record
 * @budget: of the piece's direction
 * @cost: what the piece costs
 * @due: what had not been paid
 * @pay: how it was paid
 * @last: the message ends with it
 */
struct mark {
	struct shim_sq sq;
	struct shim_used used;
	struct shim_slice slice;
	struct shim_rec *rec;
	struct shim_budget budget;
	uint64_t cost;
	uint64_t due;
	enum pay pay;
	bool last;
};

static void charge(struct shim_qp *f, const struct mark *k)
{
	struct shim_book *book = &f->ctx->m->book[rec_dir(k->rec)];
	uint64_t part = k->due < k->rec->cost ? k->due : k->rec->cost;

	book->posted += k->due;
	if (k->pay == PAY_DEBT)
		book->debt += k->due;
	k->rec->cost -= part;
	add_cost(f, rec_dir(k->rec), -(int64_t)part);
}

/*
 * What is left of a grant pays for a part of a piece that costs more. The rest is asked
 * for, also if the record costs more than it did when it was posted. True if there was
 * something left.
 */
static bool pay_part(struct shim_qp *f, const struct piece *p)
{
	struct shim_book *book = &f->ctx->m->book[rec_dir(p->rec)];
	uint64_t left = shim_budget_left(&book->budget);
	uint64_t due = p->cost - f->sq.paid;

	if (p->rec->cost < due) {
		add_cost(f, rec_dir(p->rec), due - p->rec->cost);
		p->rec->cost = due;
	}
	shim_budget_spend(&book->budget, left);
	f->sq.paid += left;
	book->posted += left;
	add_cost(f, rec_dir(p->rec), -(int64_t)left);
	p->rec->cost -= left;
	return left;
}

/* The provider takes not even an empty work request: it will raise no event. */
static bool push_failed(struct shim_qp *f, const struct shim_rec *rec, int err)
{
	struct shim_soft e = {
		.wc = {
			.wr_id = rec->wr.wr_id,
			.status = rec->seq == f->slots->failed_seq ?
				  IBV_WC_LOC_QP_OP_ERR : IBV_WC_WR_FLUSH_ERR,
			.vendor_err = err,
			.qp_num = f->qp->qp_num,
		},
		.flow = f,
		.seq = rec->seq,
	};

	if (!shim_comp_push(f->cq, &e))
		return false;
	f->slots->err_seq = rec->seq;
	pop_head(f);
	return true;
}

/*
 * The provider will never take the record at the head. The queue pair is broken then,
 * and an empty work request in its place completes with an error, and an event. True if
 * there is something to be posted now.
 */
static bool fail_head(struct shim_qp *f, int err)
{
	struct shim_rec *rec = rec_at(f, f->sq.head);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	/* What was posted before completes first. */
	if (f->sq.signaled && (rec->refused || !f->flush))
		return false;
	if (!f->flush) {
		rec->refused = shim_real.modify_qp(f->qp, &attr, IBV_QP_STATE);
		f->flush = true;
		f->slots->failed_seq = rec->seq;
	}
	if (rec->refused)
		return push_failed(f, rec, err);
	rec->refused = true;
	if (rec->wr.opcode != IBV_WR_RDMA_READ)
		rec->wr.opcode = IBV_WR_SEND;
	rec->wr.send_flags = IBV_SEND_SIGNALED;
	rec->wr.num_sge = 0;
	rec->len = 0;
	memset(&f->sq.cur, 0, sizeof(f->sq.cur));
	return true;
}

/* The provider did not take the work request at the head. True as above. */
static bool refused(struct shim_qp *f, int err)
{
	const struct shim_rec *rec = rec_at(f, f->sq.head);

	/* It has room again when something completes. Some providers return it negative. */
	set_full(f, abs(err) == ENOMEM || abs(err) == EAGAIN);
	if (f->full && used_slots(f))
		return false;
	/* One that has failed already completes. */
	if (rec->seq >= f->fresh && rec->seq <= f->fresh_last && !f->sq.cur.done &&
	    !rec->refused) {
		f->refused = err;
		return false;
	}
	return !f->full && fail_head(f, err);
}

/* The rest of a message that has failed is not posted. */
static void drop_failed(struct shim_qp *f)
{
	if (shim_queue_len(f) &&
	    rec_at(f, f->sq.head)->seq == f->slots->err_seq)
		pop_head(f);
}

/* Give the batch to the provider; the number that it took. */
static uint32_t post_batch(struct shim_qp *f, struct ibv_send_wr *wr,
			   uint32_t num, int *err)
{
	struct ibv_send_wr *bad = NULL;
	uint32_t taken;

	*err = f->ctx->ops.post_send(f->qp, wr, &bad);
	if (!*err)
		return num;
	for (taken = 0; taken < num; taken++)
		if (bad == &wr[taken])
			return taken;
	return 0;
}

/* The provider has taken what is in a slot. */
static void count_posted(struct shim_qp *f, uint64_t pos)
{
	const struct shim_slot *slot = &f->slots->slot[pos % f->slots->num];
	struct shim_member *m = f->ctx->m;

	if (slot->flags & SHIM_SLOT_SIGNALED)
		f->cq->owes = false;
	if (shim_slot_hidden(slot))
		__atomic_store_n(&m->hidden, m->hidden + 1, __ATOMIC_RELAXED);
}

/* Post what may be posted, up to a batch; true if there may be more. */
static bool post_some(struct shim_qp *f, uint64_t now)
{
	struct shim_member *m = f->ctx->m;
	struct ibv_send_wr wr[SHIM_BATCH];
	struct mark mark[SHIM_BATCH];
	bool open = is_open(f);
	enum pay pay = PAY_NOTHING;
	uint64_t tail = f->tail;
	uint64_t turn = 0;
	uint32_t num, taken, i;
	struct piece p;
	int err = 0;

	drop_failed(f);
	if (f->stopped || f->refused)
		return false;
	if (!shim_queue_len(f))
		return true;
	set_full(f, false);
	for (num = 0; num < SHIM_BATCH && f->sq.head != tail; num++) {
		struct mark *k = &mark[num];

		next_piece(f, open, &p);
		/* Others want their turn, too. */
		if (num && m->num_busy > 1 && !open && turn + p.len > p.chunk)
			break;
		if (!fits(f, &p, open)) {
			set_full(f, true);
			break;
		}
		*k = (struct mark) {
			.sq = f->sq,
			.used = f->cq->used,
			.slice = m->slice,
			.rec = p.rec,
			.budget = m->book[rec_dir(p.rec)].budget,
			.cost = p.cost,
			.due = p.cost - (f->sq.paid < p.cost ? f->sq.paid : p.cost),
			.last = p.last,
		};
		pay = pay_for(f, &p, open, now);
		if (pay == PAY_NOT)
			break;
		k->pay = pay;
		if (pay == PAY_GRANT)
			shim_budget_spend(&m->book[rec_dir(p.rec)].budget, k->due);
		make_piece(f, &p, open, &wr[num], f->sge + num * f->max_sge);
		wr[num].next = NULL;
		if (num)
			wr[num - 1].next = &wr[num];
		turn += p.len;
	}
	taken = num ? post_batch(f, wr, num, &err) : 0;
	if (taken != num) {
		f->sq = mark[taken].sq;
		f->cq->used = mark[taken].used;
		m->slice = mark[taken].slice;
		for (i = num; i-- > taken;)
			m->book[rec_dir(mark[i].rec)].budget = mark[i].budget;
	}
	for (i = 0; i < taken; i++) {
		count_posted(f, mark[i].sq.slot);
		charge(f, &mark[i]);
		if (mark[i].last)
			unhold(f, mark[i].rec);
	}
	if (taken)
		f->progress_ns = now;
	if (f->sq.head == tail)
		set_idle(f);
	else if (err)
		return refused(f, err) || taken;
	else if (pay == PAY_NOT && pay_part(f, &p))
		f->progress_ns = now;
	return taken;
}

/**
 * shim_queue_drive - post what may be posted, flow by flow
 * @m: the member, locked
 *
 * Takes new grants first, and tells the kernel what came of it.
 */
void shim_queue_drive(struct shim_member *m)
{
	uint32_t idle = 0;
	struct shim_qp *f;
	uint64_t now;

	m->retired = false;
	while (idle < m->num_busy) {
		now = shim_sys.now();
		f = TAILQ_FIRST(&m->busy);
		TAILQ_REMOVE(&m->busy, f, busy);
		TAILQ_INSERT_TAIL(&m->busy, f, busy);
		shim_member_take(m, now);
		if (post_some(f, now))
			idle = 0;
		else
			idle++;
	}
	shim_member_publish(m);
}

/* Post what a flow holds, whatever that costs. */
static void urge(struct shim_qp *f)
{
	f->urge = true;
	shim_queue_drive(f->ctx->m);
	f->urge = false;
}

/*
 * Is an event to come of what the flow has out, for a program that sleeps and has a
 * completion to poll? None of ours is solicited.
 */
static bool brings_event(const struct shim_qp *f)
{
	const struct shim_cq *c = f->cq;

	return f->sq.signaled && c->armed && c->soft_head != c->soft_tail &&
	       !__atomic_load_n(&c->solicited, __ATOMIC_RELAXED);
}

/*
 * The queue pair is to go. In error it completes at once what it has out, and the event
 * comes. A provider that takes longer is not waited for, nor a session, which may be that
 * of this thread.
 */
static void flush_for_event(struct shim_qp *f)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct shim_member *m = f->ctx->m;
	uint32_t looks;

	shim_real.modify_qp(f->qp, &attr, IBV_QP_STATE);
	for (looks = 0; looks < FLUSH_LOOKS; looks++) {
		shim_lock(&m->lock);
		shim_comp_reap_most(f->cq, UINT32_MAX);
		if (!brings_event(f) || !shim_comp_may_reap(f->cq))
			looks = FLUSH_LOOKS;
		shim_comp_update(f->cq);
		shim_unlock_and_drive(m);
		if (looks < FLUSH_LOOKS)
			usleep(DRAIN_US);
	}
}

/**
 * shim_queue_drain - give the provider all that a flow holds
 * @f: the flow, whose queue pair is about to change or to go; its member is not locked
 * @goes: to go, or to be reset, with all that is out
 *
 * The program was told that it is posted. Where the send queue is full, what completes
 * makes room. An event that would go with the queue pair comes before.
 */
void shim_queue_drain(struct shim_qp *f, bool goes)
{
	struct shim_member *m = f->ctx->m;
	uint32_t looks;

	shim_lock(&m->lock);
	for (looks = 0; looks < DRAIN_LOOKS && shim_queue_len(f); looks++) {
		if (looks)
			shim_comp_reap_most(f->cq, UINT32_MAX);
		urge(f);
		if (!looks || !shim_queue_len(f))
			continue;
		shim_unlock(&m->lock);
		usleep(DRAIN_US);
		shim_lock(&m->lock);
	}
	goes = goes && brings_event(f);
	shim_comp_update(f->cq);
	shim_unlock_and_drive(m);
	if (goes)
		flush_for_event(f);
}

/**
 * shim_queue_publish - post what was staged
 * @f: the flow; its member is locked
 * @num: how many records were staged
 * @whole: these are posted all or none, as one that is not the first is refused too late
 *	for that, and completes with an error
 *
 * Return: 0, or the provider's error for a record of these; it and those behind it
 * are not posted, and shim_qp.accepted tells which one it was.
 */
int shim_queue_publish(struct shim_qp *f, uint32_t num, bool whole)
{
	struct shim_member *m = f->ctx->m;
	int err;

	f->fresh = f->accepted;
	f->fresh_last = whole ? f->fresh : UINT64_MAX;
	add_staged(f, num, shim_sys.now());
	shim_queue_drive(m);
	if (shim_queue_len(f) && !f->refused && (f->sq.signaled || f->full)) {
		shim_comp_reap(f->cq);
		shim_queue_drive(m);
	}
	err = f->refused;
	if (err) {
		forget_paid(f, rec_at(f, f->sq.head));
		truncate_queue(f, f->sq.head);
		shim_member_publish(m);
	}
	f->refused = 0;
	f->fresh = UINT64_MAX;
	return err;
}

/* An opcode that is unknown here cannot wait. */
static int post_unknown(struct shim_qp *f, const struct ibv_send_wr *wr)
{
	struct ibv_send_wr copy = *wr;
	struct ibv_send_wr *bad;

	if (shim_queue_len(f))
		return EINVAL;
	copy.next = NULL;
	if (f->sig_all)
		copy.send_flags |= IBV_SEND_SIGNALED;
	return f->ctx->ops.post_send(f->qp, &copy, &bad);
}

/**
 * shim_queue_post - what the program's post_send does
 * @f: the flow; its member is locked
 * @wr: first of a chain
 * @bad_wr: the first that was not taken, if any
 *
 * Return: 0 or an error.
 */
int shim_queue_post(struct shim_qp *f, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr *first = wr;
	struct shim_rec *rec;
	uint64_t before;
	uint32_t num = 0;
	int err = 0;
	int ret;

	for (;;) {
		shim_queue_rewind(f);
		for (; wr; wr = wr->next) {
			rec = shim_queue_stage(f, num);
			err = rec ? shim_queue_copy(f, rec, wr) : ENOMEM;
			if (err)
				break;
			num++;
		}
		before = f->accepted;
		ret = shim_queue_publish(f, num, false);
		if (ret) {
			for (; before != f->accepted; before++)
				first = first->next;
			*bad_wr = first;
			return ret;
		}
		if (err == EOPNOTSUPP)
			err = post_unknown(f, wr);
		if (err) {
			*bad_wr = wr;
			return err;
		}
		if (!wr || !wr->next)
			return 0;
		wr = wr->next;
		first = wr;
		num = 0;
	}
}

/**
 * shim_queue_bind - what the program's bind_mw does
 * @f: the flow; its member is locked
 * @mw: the memory window
 * @bind: how
 *
 * It changes @mw at once, so it cannot wait: what is held goes out before it.
 *
 * Return: 0 or an error.
 */
int shim_queue_bind(struct shim_qp *f, struct ibv_mw *mw,
		    struct ibv_mw_bind *bind)
{
	struct ibv_mw_bind copy = *bind;
	struct shim_rec *rec;
	struct ibv_send_wr wr;
	struct shim_used used;
	struct shim_sq sq;
	struct piece p;
	int err;

	urge(f);
	rec = shim_queue_stage(f, 0);
	if (shim_queue_len(f) || !rec)
		return ENOMEM;
	*rec = (struct shim_rec) {
		.wr = {
			.wr_id = bind->wr_id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = bind->send_flags |
				      (f->sig_all ? IBV_SEND_SIGNALED : 0),
		},
		.seq = f->accepted,
	};
	p = (struct piece) { .rec = rec, .last = true };
	if (!fits(f, &p, true))
		return ENOMEM;
	used = f->cq->used;
	sq = f->sq;
	make_piece(f, &p, true, &wr, f->sge);
	f->sq.head = sq.head;
	copy.wr_id = wr.wr_id;
	copy.send_flags = wr.send_flags;
	err = f->ctx->ops.bind_mw(f->qp, mw, &copy);
	if (err) {
		f->sq = sq;
		f->cq->used = used;
		return err;
	}
	count_posted(f, sq.slot);
	f->accepted++;
	return 0;
}
