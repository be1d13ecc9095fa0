// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting: pieces become work requests of the provider.
 *
 * Owns the cutting of messages into pieces, the batch that is given to the
 * provider, and the turns of the flows. What the provider refuses goes back into the queue,
 * to its caller, or into an error completion.
 *
 * Everything here runs under shim_member.lock, in threads of the program and in the helper,
 * and allocates no memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/rdma_isolate.h>

#include "core/chunk.h"
#include "cq.h"
#include "ctx.h"
#include "grant.h"
#include "line.h"
#include "member.h"
#include "pay.h"
#include "post.h"
#include "qp.h"
#include "reap.h"
#include "record.h"
#include "shim.h"
#include "slot.h"
#include "soft.h"

_Static_assert(sizeof(struct riso_sge) == sizeof(struct ibv_sge), "same layout");

/* All of it goes out, though others have to wait. */
static bool goes_ahead(const struct shim_qp *f)
{
	return f->flush || f->urge || f->class_id == RISO_CLASS_LATENCY || f->alone;
}

/* Everything goes out, whether there is a grant or not. */
static bool is_open(const struct shim_qp *f)
{
	return goes_ahead(f) || shim_qp_is_open(f);
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
static void cut_piece(struct shim_qp *f, const struct shim_piece *p,
		      struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct riso_cursor *cur = &f->sq.cur;

	/* The peer hears of the last piece only: all are there then. */
	if (!p->last && wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		wr->opcode = IBV_WR_RDMA_WRITE;
		wr->send_flags &= ~IBV_SEND_SOLICITED;
	}
	wr->wr.rdma.remote_addr += cur->done;
	if (cur->done)
		wr->send_flags &= ~IBV_SEND_FENCE;
	wr->num_sge = riso_chunk_cut((const struct riso_sge *)p->rec->sge,
				     p->rec->wr.num_sge, cur, p->len,
				     (struct riso_sge *)sge);
	wr->sg_list = sge;
}

/**
 * shim_make_piece - make a piece's work request, and count it as posted
 * @f: the flow; its member is locked
 * @p: the piece
 * @open: everything goes out
 * @wr: filled in
 * @sge: room for its elements
 */
void shim_make_piece(struct shim_qp *f, const struct shim_piece *p, bool open,
		     struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct shim_slots *s = f->slots;
	struct shim_slot *slot = shim_slots_at(s, f->sq.slot);
	struct shim_sq *sq = &f->sq;
	uint64_t cost = p->last && sq->paid > p->cost ? sq->paid : p->cost;

	*wr = p->rec->wr;
	*slot = (struct shim_slot) {
		.wr_id = wr->wr_id,
		.seq = p->rec->seq,
		.cost = cost,
		.total = p->rec->len,
		.book = p->book,
		.flags = shim_get_slot_flags(f, p, open),
	};
	wr->wr_id = (uintptr_t)slot;
	if (slot->flags & SHIM_SLOT_SIGNALED)
		wr->send_flags |= IBV_SEND_SIGNALED;
	else
		wr->send_flags &= ~IBV_SEND_SIGNALED;
	if (!open)
		shim_time_piece(f, slot);
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
 * struct mark - how things were before a batch
 * @sq: of the flow
 * @used: of its CQ
 * @slice: of the member
 * @budget: of the flow's books, by direction
 * @timed: of the flow
 * @timed_ns: of the flow
 */
struct mark {
	struct shim_sq sq;
	struct shim_used used;
	struct shim_slice slice;
	struct shim_budget budget[RISO_USER_DIRS];
	const struct shim_slot *timed;
	uint64_t timed_ns;
};

/**
 * struct paid - a piece of a batch
 * @rec: its record
 * @dir: its direction
 * @due: what had not been paid of it
 * @pay: how it was paid
 * @last: the message ends with it
 */
struct paid {
	struct shim_rec *rec;
	int dir;
	uint64_t due;
	enum pay pay;
	bool last;
};

static void set_mark(const struct shim_qp *f, struct mark *k)
{
	const struct shim_member *m = f->ctx->m;
	int dir;

	k->sq = f->sq;
	k->used = f->cq->used;
	k->slice = m->slice;
	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		k->budget[dir] = m->book[f->book[dir]].budget;
	k->timed = f->timed;
	k->timed_ns = f->timed_ns;
}

static void return_to_mark(struct shim_qp *f, const struct mark *k)
{
	struct shim_member *m = f->ctx->m;
	int dir;

	f->sq = k->sq;
	f->cq->used = k->used;
	m->slice = k->slice;
	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		m->book[f->book[dir]].budget = k->budget[dir];
	f->timed = k->timed;
	f->timed_ns = k->timed_ns;
}

/* Charge a piece that the provider has taken. */
static void shim_charge_piece(struct shim_qp *f, const struct paid *k)
{
	struct shim_book *book = &f->ctx->m->book[f->book[k->dir]];
	uint64_t part = k->due < k->rec->cost ? k->due : k->rec->cost;

	book->posted += k->due;
	if (k->pay == PAY_DEBT)
		book->debt += k->due;
	k->rec->cost -= part;
	shim_add_cost(f, k->dir, -(int64_t)part);
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

	if (!shim_soft_push(f->cq, &e))
		return false;
	f->slots->err_seq = rec->seq;
	shim_pop_head(f);
	return true;
}

/*
 * The provider will never take the record at the head. The queue pair is broken then,
 * and an empty work request in its place completes with an error, and an event. True if
 * there is something to be posted now.
 */
static bool fail_head(struct shim_qp *f, int err)
{
	struct shim_rec *rec = shim_find_rec(f, f->sq.head);
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
	if (!riso_wr_is_read(rec->wr.opcode))
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
	const struct shim_rec *rec = shim_find_rec(f, f->sq.head);

	/* It has room again when something completes. Some providers return it negative. */
	shim_set_full(f, abs(err) == ENOMEM || abs(err) == EAGAIN);
	if (f->full && shim_count_slots(f))
		return false;
	/* One that has failed already completes. */
	if (rec->seq >= f->refusable && rec->seq <= f->refusable_last && !f->sq.cur.done &&
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
	    shim_find_rec(f, f->sq.head)->seq == f->slots->err_seq)
		shim_pop_head(f);
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

/**
 * shim_count_posted - note that the provider has taken what is in a slot
 * @f: the flow; its member is locked
 * @pos: number of the slot
 */
void shim_count_posted(struct shim_qp *f, uint64_t pos)
{
	const struct shim_slot *slot = shim_slots_at(f->slots, pos);
	struct shim_member *m = f->ctx->m;

	if (slot->flags & SHIM_SLOT_SIGNALED)
		f->cq->owes = false;
	if (shim_slot_hidden(slot))
		__atomic_store_n(&m->hidden, m->hidden + 1, __ATOMIC_RELAXED);
}

/**
 * enum turn - what became of a turn
 * @TURN_POSTED: something was posted, or nothing is held any more; there may be more
 * @TURN_BROKE: the grants do not suffice for the next piece
 * @TURN_NO_ROOM: the next piece waits for room
 * @TURN_STOPPED: the queue pair is being reset or destroyed, or the provider refuses the piece
 */
enum turn {
	TURN_POSTED,
	TURN_BROKE,
	TURN_NO_ROOM,
	TURN_STOPPED,
};

/**
 * struct batch - what is given to the provider together
 * @open: everything goes out
 * @device_open: what takes no path with a limit goes out; the same for both fills of a batch
 * @open_pay: how it is paid for then, %PAY_DEBT or %PAY_NOTHING
 * @now: time
 * @num: number of pieces
 * @p: the piece that was looked at last
 * @pay: how it is paid for
 * @wr: work requests
 * @paid: the pieces
 */
struct batch {
	bool open;
	bool device_open;
	enum pay open_pay;
	uint64_t now;
	uint32_t num;
	struct shim_piece p;
	enum pay pay;
	struct ibv_send_wr wr[SHIM_BATCH];
	struct paid paid[SHIM_BATCH];
};

/*
 * Take pieces from the queue up to @tail, @most of them. It ends where one has to wait. What comes
 * of it depends on @b and on what mark has, so that it may be repeated for those that the provider
 * has taken.
 */
static void fill_batch(struct shim_qp *f, uint64_t tail, uint32_t most, struct batch *b)
{
	struct shim_member *m = f->ctx->m;
	struct shim_piece *p = &b->p;
	uint64_t turn = 0;
	bool open;

	b->pay = PAY_NOTHING;
	for (b->num = 0; b->num < most && f->sq.head != tail; b->num++) {
		struct paid *k = &b->paid[b->num];

		if (b->num && !p->last)
			shim_get_next_piece(f, b->open, p);
		else
			shim_get_piece(f, b->open, b->device_open, p);
		/* Others want their turn, too. */
		if (b->num && m->num_busy > 1 && !b->open && turn + p->len > p->chunk)
			return;
		open = b->open || p->free;
		if (!shim_has_room(f, p, open)) {
			shim_set_full(f, true);
			return;
		}
		k->rec = p->rec;
		k->dir = p->dir;
		k->due = p->cost - (f->sq.paid < p->cost ? f->sq.paid : p->cost);
		k->last = p->last;
		b->pay = b->open ? b->open_pay : p->free ? PAY_NOTHING :
			 shim_choose_pay(f, p, b->now);
		k->pay = b->pay;
		if (k->pay == PAY_NOT)
			return;
		if (k->pay == PAY_GRANT)
			shim_budget_spend(&m->book[p->book].budget, k->due);
		shim_make_piece(f, p, open, &b->wr[b->num], f->sge + b->num * f->max_sge);
		b->wr[b->num].next = NULL;
		if (b->num)
			b->wr[b->num - 1].next = &b->wr[b->num];
		turn += p->len;
	}
}

/* Post what may be posted, up to a batch. */
static enum turn post_some(struct shim_qp *f, uint64_t now)
{
	struct batch b;
	uint64_t tail = f->tail;
	uint32_t num, taken, i;
	struct mark before;
	uint64_t slot;
	int err = 0;

	drop_failed(f);
	if (f->stopped || f->refused)
		return TURN_STOPPED;
	if (!shim_queue_len(f))
		return TURN_POSTED;
	shim_set_full(f, false);
	slot = f->sq.slot;
	b.open = is_open(f);
	b.device_open = shim_member_is_open(f->ctx->m);
	b.open_pay = shim_qp_is_open(f) ? PAY_NOTHING : PAY_DEBT;
	b.now = now;
	shim_keep_spare(f);
	set_mark(f, &before);
	fill_batch(f, tail, SHIM_BATCH, &b);
	num = b.num;
	taken = num ? post_batch(f, b.wr, num, &err) : 0;
	if (taken != num) {
		return_to_mark(f, &before);
		fill_batch(f, tail, taken, &b);
	}
	for (i = 0; i < taken; i++) {
		shim_count_posted(f, slot + i);
		shim_charge_piece(f, &b.paid[i]);
		if (b.paid[i].last)
			shim_unhold_rec(f, b.paid[i].rec);
	}
	if (taken)
		f->progress_ns = now;
	if (f->sq.head == tail) {
		shim_set_idle(f);
		return TURN_POSTED;
	}
	if (err && (refused(f, err) || taken))
		return TURN_POSTED;
	/* Nothing of its own tells when the provider will take it. */
	if (err)
		return f->sq.signaled ? TURN_NO_ROOM : TURN_STOPPED;
	if (b.pay == PAY_NOT) {
		if (shim_pay_part(f, &b.p))
			f->progress_ns = now;
		return TURN_BROKE;
	}
	return taken ? TURN_POSTED : TURN_NO_ROOM;
}

/* After its turn a flow goes where it waits for the next one. */
static void end_turn(struct shim_qp *f, enum turn turn, bool posted)
{
	if (f->place == SHIM_PLACE_NONE)
		return;
	/* It keeps its turn if it had nothing of it, or needs no grant. */
	if (turn == TURN_NO_ROOM)
		shim_line_step_aside(f);
	else if (turn == TURN_BROKE ? !posted : turn == TURN_POSTED && goes_ahead(f))
		shim_line_jump(f);
	else
		shim_line_join(f);
}

/*
 * Flow by flow, those in line for one path, until the grants do not suffice. True if one of them
 * goes on in another line.
 */
static bool drive_line(struct shim_member *m, uint32_t line, uint64_t now)
{
	bool turned = false;
	uint32_t stopped = 0;
	struct shim_qp *f;
	enum turn turn;
	uint64_t posted;

	while ((f = TAILQ_FIRST(&m->line[line])) && stopped < m->num_busy) {
		posted = f->sq.slot;
		turn = post_some(f, now);
		end_turn(f, turn, f->sq.slot != posted);
		turned = turned || (f->place == SHIM_PLACE_LINE && f->in_line != line);
		if (turn == TURN_BROKE)
			break;
		stopped = turn == TURN_STOPPED ? stopped + 1 : 0;
		now = shim_sys.now();
		shim_member_take(m, now);
	}
	return turned;
}

/* Nobody waits for room, except for that of a provider, when the device is open. */
static void unpark_all(struct shim_member *m)
{
	struct shim_qp *f;

	TAILQ_FOREACH(f, &m->busy, busy)
		if (shim_qp_is_open(f) ||
		    shim_get_book(f, shim_find_rec(f, f->sq.head)) < RISO_USER_DIRS)
			shim_line_admit(f);
}

/**
 * shim_queue_drive - post what may be posted, flow by flow
 * @m: the member, locked
 *
 * Takes new grants first, and tells the kernel what came of it.
 */
void shim_queue_drive(struct shim_member *m)
{
	bool again = m->num_busy;
	uint64_t now;
	uint32_t i;

	m->retired = false;
	if (again && shim_member_is_open(m))
		unpark_all(m);
	while (again) {
		again = false;
		now = shim_sys.now();
		shim_member_take(m, now);
		for (i = 0; i < m->terms.paths; i++)
			again = drive_line(m, i, now) || again;
	}
	shim_member_publish(m);
}

/* What a flow holds now may go as debt, though others stand in line for grants. */
static void post_sparse(struct shim_qp *f, uint64_t now)
{
	enum turn turn = post_some(f, now);

	end_turn(f, turn, true);
}

/**
 * shim_urge_flow - post what a flow holds, whatever that costs
 * @f: the flow; its member is locked
 */
void shim_urge_flow(struct shim_qp *f)
{
	f->urge = true;
	if (shim_queue_len(f))
		shim_line_jump(f);
	shim_queue_drive(f->ctx->m);
	f->urge = false;
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
	uint64_t now = shim_sys.now();
	int err;

	f->refusable = f->accepted;
	f->refusable_last = whole ? f->refusable : UINT64_MAX;
	shim_member_read_terms(m);
	shim_add_staged(f, num, now);
	if (m->num_busy > 1 && num && shim_queue_len(f) == num) {
		shim_member_take(m, now);
		post_sparse(f, now);
	}
	shim_queue_drive(m);
	if (shim_queue_len(f) && !f->refused && (f->sq.signaled || f->full)) {
		shim_comp_reap(f->cq);
		shim_queue_drive(m);
	}
	err = f->refused;
	if (err) {
		shim_forget_paid(f, shim_find_rec(f, f->sq.head));
		shim_truncate_queue(f, f->sq.head);
		shim_member_publish(m);
	}
	f->refused = 0;
	f->refusable = UINT64_MAX;
	return err;
}
