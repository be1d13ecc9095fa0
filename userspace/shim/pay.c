// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Payment and room: what a piece costs, how it is paid for, and whether it fits.
 *
 * Owns the books of a member: what is held, posted and owed in each direction. Sizes and
 * costs follow shim_member.terms. grant.h has the arithmetic.
 *
 * Who waits for a completion must get one. A piece is refused for want of room only while
 * something is posted whose completion was asked for, by this flow or by another flow in
 * its CQ. Half of the room behind that is left free.
 *
 * Everything here runs under shim_member.lock, in threads of the program and in the helper.
 * It allocates no memory.
 */
#include "core/chunk.h"
#include "core/wr.h"
#include "cq.h"
#include "ctx.h"
#include "grant.h"
#include "member.h"
#include "pay.h"
#include "post.h"
#include "qp.h"
#include "record.h"
#include "shim.h"
#include "slot.h"

/* What is held this long without a grant goes out as debt. */
static const uint64_t deadline_ns = 1000000000;
/* The same on a path with a limit, which may be low, and have many queue pairs wait for it */
static const uint64_t limited_deadline_ns = 60 * 1000000000ULL;

enum {
	/* Whole work requests without a completion, in a row. */
	MAX_SILENT = 16,
	/* Cost bytes without one: the kernel waits to hear of what is done. */
	MAX_QUIET = 64 * 1024,
	/* Bytes: pieces of a long path are no larger, so that small messages do not wait for one. */
	MAX_PIECE = 128 * 1024,
	/* Nanoseconds between two looks at a CQ after which a delay is that of the looks. */
	LATE_LOOK_NS = 200000,
	/* Nanoseconds: what takes longer was in a queue that stood there when pacing began. */
	PATH_MAX_NS = 20000000,
	/* Nanoseconds: grants come in bursts. The rate of a process is that of so much time. */
	RATE_NS = 5000000,
	/* A sample of so many nanoseconds tells nothing: the process has paused. */
	RATE_MAX_NS = 100000000,
	/* It falls by an eighth at most with each sample. */
	RATE_PART = 8,
};

/* Cost bytes of @len bytes on the path of the flow */
static uint64_t shim_compute_cost(const struct shim_qp *f, uint32_t len)
{
	const struct shim_terms *t = &f->ctx->m->terms;

	return shim_cost(len, f->mtu, t->header, t->op_bytes);
}

/* Half of the pieces that may be out: these are on the path while the others complete. */
static uint32_t count_path_pieces(const struct shim_qp *f, const struct shim_rec *rec)
{
	uint32_t pieces = SHIM_SLOTS;

	if (riso_wr_is_fetch(rec->wr.opcode))
		pieces = riso_min(pieces, riso_wr_fetches_max(f->max_rd_atomic));
	return riso_max(pieces / 2, 1);
}

static uint32_t chunk_size(const struct shim_qp *f, const struct shim_rec *rec)
{
	uint32_t chunk = f->ctx->m->terms.chunk[shim_get_book(f, rec)];

	if (chunk && f->path_bytes > chunk)
		chunk = riso_chunk_fill(chunk, f->path_bytes, count_path_pieces(f, rec), MAX_PIECE);
	return riso_chunk_round(chunk, f->mtu);
}

/* The delay of a path is seen when nothing else of the flow is on it. */
static bool is_probing(const struct shim_qp *f)
{
	return f->path.probes && f->ctx->m->terms.rate;
}

/* Cost bytes of a flow that may be out, of which the path holds a part */
static uint64_t window_of(const struct shim_qp *f)
{
	uint64_t window = f->ctx->m->terms.window;
	uint64_t path = f->path_bytes + f->path_bytes / 4;

	return window + path < window ? window : window + path;
}

/* The size of the pieces that a message is cut into, 0 if it goes whole */
static uint32_t shim_get_cut_size(const struct shim_qp *f, const struct shim_rec *rec)
{
	if ((rec->wr.send_flags & IBV_SEND_INLINE) || !riso_wr_may_cut(rec->wr.opcode, f->cut_imm))
		return 0;
	return chunk_size(f, rec);
}

/**
 * shim_sum_cost - sum up what a record will cost, cut as things are now
 * @f: the flow; its member is locked
 * @rec: the record
 *
 * Return: cost bytes.
 */
uint64_t shim_sum_cost(const struct shim_qp *f, const struct shim_rec *rec)
{
	uint32_t chunk = shim_get_cut_size(f, rec);
	uint64_t full;

	if (!chunk || rec->len <= chunk)
		return shim_compute_cost(f, rec->len);
	full = rec->len / chunk;
	return full * shim_compute_cost(f, chunk) +
	       (rec->len % chunk ? shim_compute_cost(f, rec->len % chunk) : 0);
}

/**
 * shim_add_cost - add to what a flow holds and has not paid for
 * @f: the flow; its member is locked
 * @dir: direction
 * @cost: cost bytes, negative if it holds less
 */
void shim_add_cost(struct shim_qp *f, int dir, int64_t cost)
{
	struct shim_book *book = &f->ctx->m->book[f->book[dir]];

	book->held += cost;
	f->cost[dir] += cost;
	if (f->full)
		book->stuck += cost;
}

/**
 * shim_set_full - note whether a flow waits for room
 * @f: the flow; its member is locked
 * @full: it does
 *
 * Such a flow wants no grant, which would be void before it is used.
 */
void shim_set_full(struct shim_qp *f, bool full)
{
	struct shim_book *book = f->ctx->m->book;
	int dir;

	if (f->full == full)
		return;
	f->full = full;
	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		book[f->book[dir]].stuck += full ? f->cost[dir] : -f->cost[dir];
}

/**
 * shim_forget_paid - count what was paid for and is not posted as done
 * @f: the flow; its member is locked
 * @rec: the record at its head
 */
void shim_forget_paid(struct shim_qp *f, const struct shim_rec *rec)
{
	f->ctx->m->book[shim_get_book(f, rec)].done += f->sq.paid;
	f->sq.paid = 0;
}

/**
 * shim_get_piece - find the piece that goes out next
 * @f: a flow that holds something; its member is locked
 * @open: everything goes out, uncut
 * @device_open: so does what takes no path with a limit
 * @p: filled in
 */
void shim_get_piece(const struct shim_qp *f, bool open, bool device_open, struct shim_piece *p)
{
	p->rec = shim_find_rec(f, f->sq.head);
	p->chunk = shim_get_cut_size(f, p->rec);
	p->dir = shim_get_dir(p->rec);
	p->book = f->book[p->dir];
	p->free = p->book < RISO_USER_DIRS && device_open;
	p->fetch = riso_wr_is_fetch(p->rec->wr.opcode);
	p->len = 0;
	shim_get_next_piece(f, open, p);
}

/**
 * shim_get_next_piece - find the piece behind one, where that did not end its message
 * @f: a flow that holds something; its member is locked, and was when it looked at the other piece
 * @open: everything goes out, uncut
 * @p: the piece in front, becomes the next one
 */
void shim_get_next_piece(const struct shim_qp *f, bool open, struct shim_piece *p)
{
	uint32_t left = p->rec->len - f->sq.cur.done;
	uint32_t len = riso_chunk_next(left, open || p->free ? 0 : p->chunk);

	if (len != p->len || !len)
		p->cost = shim_compute_cost(f, len);
	p->len = len;
	p->last = len == left;
	p->cut = len != p->rec->len;
}

/*
 * Charge a piece to the slice, if it is a small work request and nothing older waits in its
 * flow. True if it was charged.
 */
static bool shim_charge_sparse(struct shim_qp *f, const struct shim_piece *p, uint64_t now)
{
	struct shim_member *m = f->ctx->m;
	uint32_t chunk;

	/* The sparse part of the device is none of a path's. */
	if (p->rec->seq < f->refusable || p->cut || p->book >= RISO_USER_DIRS)
		return false;
	chunk = chunk_size(f, p->rec);
	if (chunk && p->rec->len > chunk)
		return false;
	return shim_slice_debt(&m->slice, now, m->terms.slice_ns, m->terms.sparse, p->cost);
}

/**
 * shim_choose_pay - choose how a piece is paid for
 * @f: the flow; its member is locked
 * @p: the piece, where not everything goes out
 * @now: time
 *
 * A sparse piece is charged to the slice.
 *
 * Return: how, or PAY_NOT if the piece has to wait.
 */
enum pay shim_choose_pay(struct shim_qp *f, const struct shim_piece *p, uint64_t now)
{
	struct shim_member *m = f->ctx->m;
	const struct shim_budget *b = &m->book[p->book].budget;
	uint64_t due = p->cost - (f->sq.paid < p->cost ? f->sq.paid : p->cost);
	uint64_t since = p->rec->queued_ns;

	if (shim_charge_sparse(f, p, now))
		return PAY_DEBT;
	if (shim_budget_left(b) >= due)
		return PAY_GRANT;
	if (since < f->progress_ns)
		since = f->progress_ns;
	/* Others of its line had them. */
	if (since < m->book[p->book].given_ns)
		since = m->book[p->book].given_ns;
	return now - since >= (p->book < RISO_USER_DIRS ? deadline_ns : limited_deadline_ns) ?
	       PAY_DEBT : PAY_NOT;
}

/**
 * shim_keep_spare - let the spare entries of a CQ be as many as they are now
 * @f: a flow of the CQ, of which a batch begins; its member is locked
 */
void shim_keep_spare(struct shim_qp *f)
{
	f->cq->spare_now = __atomic_load_n(&f->cq->spare, __ATOMIC_RELAXED);
}

static uint32_t spare_entries(const struct shim_cq *c)
{
	return c->spare_now;
}

/* Has a CQ an entry left for a completion that nobody sees? */
static bool has_entry(const struct shim_cq *c)
{
	return c->used.hidden < spare_entries(c);
}

/* Are other pieces of its message out? */
static bool is_extra(const struct shim_qp *f, const struct shim_piece *p)
{
	const struct shim_slots *s = f->slots;

	return shim_count_slots(f) && shim_slots_at(s, f->sq.slot - 1)->seq == p->rec->seq;
}

/*
 * Is half of the spare entries of a CQ taken? The other half may be taken before these are
 * free again.
 */
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
static bool must_signal(const struct shim_qp *f, const struct shim_piece *p, bool open)
{
	const struct shim_sq *sq = &f->sq;
	uint64_t quiet;

	/* What went straight before may have left room for one. */
	if (shim_count_slots(f) + 1 >= f->slots->num || sq->direct)
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
	if (is_probing(f))
		return true;
	if (sq->silent >= (p->cut ? SHIM_SLOTS / 2 - 1 : MAX_SILENT))
		return true;
	if (p->fetch &&
	    sq->fetches + 2 >= riso_wr_fetches_max(f->max_rd_atomic))
		return true;
	quiet = sq->quiet + p->cost;
	return quiet >= MAX_QUIET || 2 * quiet >= window_of(f);
}

/* Does the program want its completion? */
static bool is_asked(const struct shim_piece *p)
{
	return p->last && (p->rec->wr.send_flags & IBV_SEND_SIGNALED);
}

/* Has the CQ room for a completion of this piece, if it has one and succeeds? */
static bool may_complete(const struct shim_qp *f, const struct shim_piece *p, bool open)
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
static bool may_fail(const struct shim_qp *f, const struct shim_piece *p)
{
	const struct shim_used *used = &f->cq->used;
	uint32_t spare = spare_entries(f->cq);
	bool extra = is_extra(f, p);

	/* A flow with nothing to wait for goes on: its message is bare, or not open. */
	if (!f->sq.signaled || (p->last && !extra))
		return true;
	return used->extra + (p->last ? used->bare : used->open) < spare;
}

/**
 * shim_has_room - is there room for a piece, as far as the flow and its CQ go?
 * @f: the flow; its member is locked
 * @p: the piece
 * @open: everything goes out
 *
 * Return: true if so.
 */
bool shim_has_room(const struct shim_qp *f, const struct shim_piece *p, bool open)
{
	const struct shim_sq *sq = &f->sq;

	if (shim_count_slots(f) >= f->slots->num)
		return false;
	if (!may_complete(f, p, open) || !may_fail(f, p))
		return false;
	if (open || !sq->signaled)
		return true;
	if (is_probing(f))
		return false;
	if (p->fetch &&
	    sq->fetches >= riso_wr_fetches_max(f->max_rd_atomic))
		return false;
	return sq->chunks < SHIM_SLOTS && sq->hidden < SHIM_SLOTS &&
	       sq->cost + p->cost <= window_of(f);
}

/**
 * shim_get_slot_flags - get the flags of the slot of a piece
 * @f: the flow; its member is locked
 * @p: the piece, which is not counted yet
 * @open: everything goes out
 *
 * Return: SHIM_SLOT_*.
 */
uint16_t shim_get_slot_flags(const struct shim_qp *f, const struct shim_piece *p, bool open)
{
	uint16_t flags = SHIM_SLOT_POSTED;

	if (p->cut)
		flags |= SHIM_SLOT_CHUNK;
	if (p->last)
		flags |= SHIM_SLOT_LAST;
	if (p->rec->wr.send_flags & IBV_SEND_SIGNALED)
		flags |= SHIM_SLOT_ASKED;
	if (p->fetch)
		flags |= SHIM_SLOT_FETCH;
	if (is_extra(f, p))
		flags |= SHIM_SLOT_EXTRA;
	if (is_asked(p) || must_signal(f, p, open))
		flags |= SHIM_SLOT_SIGNALED;
	return flags;
}

/**
 * shim_time_piece - note when a piece is posted, if its completion is to tell of the path
 * @f: the flow; its member is locked
 * @slot: of the piece
 *
 * One piece of a flow at a time. One that the provider did not take is posted once more.
 */
void shim_time_piece(struct shim_qp *f, const struct shim_slot *slot)
{
	if (!(slot->flags & SHIM_SLOT_SIGNALED) || (f->timed_ns && f->timed != slot))
		return;
	f->timed = slot;
	f->timed_ns = shim_sys.now();
}

/* Is a completion seen when it comes, and not some time after? */
static bool is_in_time(const struct shim_cq *c, uint64_t now)
{
	return c->woken || now - c->looked_ns < LATE_LOOK_NS;
}

/* Take a sample of the rate at which the process posts, when it is time for one. */
static void rate_process(struct shim_qp *f, uint64_t now)
{
	uint64_t posted = shim_member_sum_posted(f->ctx->m);
	uint64_t span = now - f->rated_ns;
	uint64_t rate;

	if (span < RATE_NS)
		return;
	if (span < RATE_MAX_NS) {
		rate = riso_mul_div(posted - f->rated_posted, RISO_SECOND, span);
		f->own_rate = riso_max(rate, f->own_rate - f->own_rate / RATE_PART);
	}
	f->rated_ns = now;
	f->rated_posted = posted;
}

/*
 * While others share the device, the delay is also that of their pieces, and of the grants that
 * they have. A process that has a part of the rate fills the path with that part of it: with
 * twice as much, as it may be the window that keeps it from more.
 */
static uint64_t find_path_rate(const struct shim_qp *f)
{
	uint64_t rate = f->ctx->m->terms.rate;

	return f->own_rate ? riso_min(rate, 2 * f->own_rate) : rate;
}

/* Would the path of a flow be taken to be as long as the queue in front of it? */
static bool is_queued(const struct shim_qp *f, uint64_t now)
{
	return (f->path.rtt_min == RISO_NEVER || f->path.probes) &&
	       now - f->timed_ns > PATH_MAX_NS;
}

/**
 * shim_measure_path - a completion tells how long the path of its flow is
 * @f: the flow; its member is locked
 * @slot: what has completed
 *
 * One that was perhaps seen late tells nothing, and the old delay is believed.
 */
void shim_measure_path(struct shim_qp *f, const struct shim_slot *slot)
{
	uint64_t rate = f->ctx->m->terms.rate;
	uint64_t now;

	if (slot != f->timed || !f->timed_ns)
		return;
	now = shim_sys.now();
	if (rate && is_in_time(f->cq, now) && !is_queued(f, now))
		riso_path_sample(&f->path, f->timed_ns, riso_time_of(slot->cost, rate), now);
	else
		f->path.probes = false;
	f->timed_ns = 0;
	rate_process(f, now);
	f->path_bytes = riso_bytes_in(riso_path_delay(&f->path), find_path_rate(f));
}

/**
 * shim_pay_part - pay for a part of a piece with what is left of a grant
 * @f: the flow; its member is locked
 * @p: the piece, which costs more
 *
 * The rest is asked for, also if the record costs more than it did when the program posted
 * it.
 *
 * Return: true if there was something left.
 */
bool shim_pay_part(struct shim_qp *f, const struct shim_piece *p)
{
	struct shim_book *book = &f->ctx->m->book[p->book];
	uint64_t left = shim_budget_left(&book->budget);
	uint64_t due = p->cost - f->sq.paid;

	if (p->rec->cost < due) {
		shim_add_cost(f, p->dir, due - p->rec->cost);
		p->rec->cost = due;
	}
	shim_budget_spend(&book->budget, left);
	f->sq.paid += left;
	book->posted += left;
	shim_add_cost(f, p->dir, -(int64_t)left);
	p->rec->cost -= left;
	return left;
}
