// SPDX-License-Identifier: GPL-2.0
/*
 * What flows have in flight, and how much of it stands in the device.
 *
 * Owns &riso_flow.inflight, &riso_flow.bound and &riso_flow.path, and the sums of what is out.
 * It feeds the pacer and the estimator of each direction (core/pacer.c, core/estimate.c) with
 * posts and completions. All of it is under &riso_dev.lock, in any context.
 */

#include <linux/ktime.h>

#include "batch.h"
#include "cq.h"
#include "flow.h"
#include "limits.h"
#include "peer.h"
#include "tag.h"
#include "window.h"

enum {
	/* A piece is cut to 1 MB at most, however long its path is, ... */
	RISO_PIECE_MAX = 1024 * 1024,
	/* ... and it takes no more than a quarter of Target99. */
	RISO_PIECE_PART = 4,
	/* Four tags suffice for all that a flow may have out, and four posts for a window. */
	RISO_SHARE_PART = 4,
	/* A path of more than 100 ms is none that RDMA is used on. */
	RISO_FAR_MAX_NS = 100 * NSEC_PER_MSEC,
	/* What is out for 2 ms has left the device: it waits for its peer or the network. */
	RISO_STALE_NS = 2 * NSEC_PER_MSEC,
	/* Flows that are looked at for a piece that leaves the device in a direction */
	RISO_LEAVING_FLOWS = 4,
	/* A device with nothing out was dry for a sixteenth of a chunk at least. */
	RISO_DRY_PART = 16,
};

/* What paths of a delay hold */
static u64 path_bytes(const struct riso_dev *rd, enum riso_dir dir, u64 delay_ns)
{
	return riso_estimate_path(&rd->arb[dir].estimate, delay_ns, rd->window,
				  riso_rate(rd));
}

/* Pieces of a flow that may be out while those before them are on the path */
static u32 count_pieces(const struct riso_flow *f, enum riso_dir dir)
{
	u32 places = min(f->slots->num, f->sq_depth) / 2;

	if (dir == RISO_RX)
		places = min(places, riso_wr_fetches_max(f->max_rd_atomic));
	return max(places, 1u);
}

/* The largest piece of a message: where a target is set, of a quarter of that */
static u32 largest_piece(const struct riso_dev *rd)
{
	u64 ns = rd->cfg.target99_ns;

	if (ns == RISO_AUTO)
		return RISO_PIECE_MAX;
	return min_t(u64, RISO_PIECE_MAX, riso_bytes_in(ns / RISO_PIECE_PART, riso_rate(rd)));
}

/*
 * How many chunks may have a tag, and a completion, together: as many as make two automatic chunks,
 * and no more than a quarter of those that may be out.
 */
static u32 count_share(const struct riso_flow *f, enum riso_dir dir, u32 chunk)
{
	u32 places = min(f->slots->num, f->sq_depth);

	if (dir == RISO_RX)
		places = min(places, riso_wr_fetches_max(f->max_rd_atomic));
	return clamp(2 * riso_chunk_auto(riso_rate(f->rd)) / chunk, 1u,
		     max(places / RISO_SHARE_PART, 1u));
}

static struct riso_bound find_bound(const struct riso_flow *f, enum riso_dir dir)
{
	const struct riso_dev *rd = f->rd;
	struct riso_bound bound = { .share = 1 };

	if (!riso_is_shaped(rd)) {
		if (rd->chunk && riso_peer_cuts(f, dir))
			bound.chunk = riso_chunk_round(rd->chunk, f->mtu);
		return bound;
	}
	bound.path = path_bytes(rd, dir, riso_path_delay(&f->path));
	bound.chunk = riso_chunk_fill(rd->chunk, bound.path, count_pieces(f, dir),
				      largest_piece(rd));
	bound.far = bound.chunk > rd->chunk;
	/* Where the window is set, as many have to fit in it as an operator expects. */
	bound.equal = rd->cfg.chunk_bytes == RISO_AUTO && rd->cfg.inflight_bytes == RISO_AUTO;
	bound.chunk = riso_chunk_round(bound.chunk, f->mtu);
	bound.share = count_share(f, dir, bound.chunk);
	return bound;
}

/* How much of a flow may be out. While its path is measured, that is one piece. */
static u64 find_limit(const struct riso_flow *f, enum riso_dir dir)
{
	const struct riso_bound *bound = &f->bound[dir];

	if (!riso_is_shaped(f->rd))
		return U64_MAX;
	return f->path.probes ? 0 : f->rd->arb[dir].covered + bound->chunk + bound->path;
}

/*
 * Half as many chunks as may have a tag together wait for each other while the window is full, but
 * for no more than a quarter of it. If each went out as soon as it fits, they would go one by one
 * ever after, and each would cost as much as a batch.
 */
static u32 need_of_several(const struct riso_flow *f, u32 chunk, u32 piece)
{
	u64 bytes = min_t(u64, f->next.left, (u64)f->bound[f->next.dir].share / 2 * chunk);
	u64 part = f->rd->arb[f->next.dir].covered / RISO_SHARE_PART;

	return clamp_t(u64, part, piece, riso_piece_wire(bytes, f->mtu));
}

/* How is a message cut that has so much left? It is asked several times for each chunk. */
static void find_cut(const struct riso_flow *f, struct riso_bound *bound, u32 left)
{
	if (bound->left == left && left)
		return;
	bound->left = left;
	bound->cut = bound->chunk;
	if (bound->far)
		bound->cut = riso_chunk_even(left, bound->chunk);
	else if (bound->equal)
		bound->cut = riso_chunk_equal(left, bound->chunk);
	bound->cut_wire = riso_piece_wire(riso_chunk_next(left, bound->cut), f->mtu);
}

/**
 * riso_window_room - what bounds the next post of a flow
 * @f: the flow
 *
 * A flow has to fill its path although only so many pieces of it may be out, so these are
 * larger on long paths. While its path is measured, it has one piece out at a time: so the
 * delay of the path itself is seen.
 *
 * Context: under &riso_dev.lock.
 * Return: the bounds.
 */
struct riso_room riso_window_room(struct riso_flow *f)
{
	const struct riso_next *next = &f->next;
	struct riso_bound *bound = &f->bound[next->dir];
	u32 bounds = f->rd->arb[next->dir].bounds;
	u32 chunk, need;

	lockdep_assert_held(&f->rd->lock);
	if (f->bound_of[next->dir] != bounds) {
		f->bound[next->dir] = find_bound(f, next->dir);
		f->bound_of[next->dir] = bounds;
	}
	if (next->cut) {
		find_cut(f, bound, next->left);
		chunk = bound->cut;
		need = bound->cut_wire;
		if (bound->share > 2)
			need = need_of_several(f, chunk, need);
	} else {
		chunk = bound->chunk;
		need = riso_piece_wire(next->left, f->mtu);
	}
	return (struct riso_room) {
		.chunk = chunk,
		.share = bound->share,
		.limit = find_limit(f, next->dir),
		.need = need,
		/* One that is larger than the window would wait until nothing stands there. */
		.part = bound->far ? min_t(u32, need, riso_chunk_wire(f->rd)) : need,
	};
}

/**
 * riso_window_rebound - what bounds the posts of a flow has changed
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_window_rebound(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	memset(f->bound_of, 0, sizeof(f->bound_of));
}

/**
 * riso_window_update - bring the part of a flow in what stands in the device up to date
 * @f: the flow
 * @dir: direction
 *
 * Context: under &riso_dev.lock.
 */
void riso_window_update(struct riso_flow *f, enum riso_dir dir)
{
	u64 bytes = f->stale ? 0 : f->inflight[dir];
	struct riso_arb *a = &f->rd->arb[dir];
	u64 far = 0;
	u64 path;

	lockdep_assert_held(&f->rd->lock);
	if (riso_is_shaped(f->rd) && f->path.rtt_min != RISO_NEVER)
		far = bytes * min_t(u64, f->path.rtt_min, RISO_FAR_MAX_NS);
	a->out.bytes += bytes - f->load[dir];
	f->load[dir] = bytes;
	a->out.far += far - f->far[dir];
	f->far[dir] = far;
	path = path_bytes(f->rd, dir, riso_out_delay(&a->out));
	riso_pacer_set_load(&a->pacer, &a->standing, riso_out_standing(&a->out, path));
}

/**
 * riso_window_add - count bytes that are being posted
 * @f: the flow
 * @dir: direction
 * @wire: the bytes
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_window_add(struct riso_flow *f, enum riso_dir dir, u32 wire, u64 now)
{
	struct riso_arb *a = &f->rd->arb[dir];

	lockdep_assert_held(&f->rd->lock);
	if (!a->out.bytes)
		a->busy_ns = now;
	/* A path that was taken for a queue would never be seen again, so this is the least. */
	if (f->path.probes && !f->inflight[RISO_TX] && !f->inflight[RISO_RX])
		f->path.ahead_ns = riso_pacer_ahead(&a->pacer, a->busy_ns, riso_rate(f->rd), now);
	f->inflight[dir] += wire;
	riso_window_update(f, dir);
}

/**
 * riso_window_sub - count bytes that are not in flight any more
 * @f: the flow
 * @dir: direction
 * @wire: the bytes
 *
 * Context: under &riso_dev.lock.
 */
void riso_window_sub(struct riso_flow *f, enum riso_dir dir, u64 wire)
{
	lockdep_assert_held(&f->rd->lock);
	f->inflight[dir] -= wire;
	riso_window_update(f, dir);
}

/*
 * The window is full. Mark one flow whose bytes have been out for longer than they can
 * stand in the NIC: it waits for the network or for its peer, and does not count.
 */
static void mark_stale_flow(struct riso_dev *rd, u64 limit, u64 now)
{
	/* At a quarter of MaxRate a full window would be gone by then. */
	u64 stale = max_t(u64, RISO_STALE_NS,
			  4 * riso_time_of(limit, rd->cfg.max_rate));
	struct riso_flow *f;
	int dir;

	f = list_first_entry_or_null(&rd->reap, struct riso_flow, reap);
	if (!f || now - f->progress_ns < stale)
		return;
	f->stale = true;
	list_move_tail(&f->reap, &rd->stale);
	for (dir = 0; dir < RISO_DIRS; dir++) {
		riso_estimate_wait(&rd->arb[dir].estimate);
		rd->arb[dir].window_held = false;
		riso_window_update(f, dir);
	}
}

static enum riso_dir slot_dir(const struct riso_slot *slot)
{
	return slot->wire[RISO_RX] ? RISO_RX : RISO_TX;
}

/* When it should have left the device, if it is the oldest. */
static u64 due_of(const struct riso_flow *f, const struct riso_slot *slot)
{
	enum riso_dir dir = slot_dir(slot);

	return riso_pacer_begins(&f->rd->arb[dir].pacer, slot->posted_ns, f->path.rtt_min) +
	       riso_time_of(slot->wire[dir], riso_speed(f->rd, dir));
}

static const struct riso_slot *find_oldest(struct riso_dev *rd, const struct riso_flow **f)
{
	*f = list_first_entry_or_null(list_empty(&rd->stale) ? &rd->reap : &rd->stale,
				      struct riso_flow, reap);
	if (!*f || (*f)->path.rtt_min == RISO_NEVER)
		return NULL;
	return riso_tag_oldest((*f)->slots);
}

/*
 * The oldest piece that stands in the device and takes a direction, NULL if nobody knows. There may
 * be thousands of flows that take the other one, so it looks at a few.
 */
static const struct riso_slot *find_leaving(struct riso_dev *rd, enum riso_dir dir,
					    const struct riso_flow **of)
{
	const struct riso_slot *slot;
	struct riso_flow *f;
	int left = RISO_LEAVING_FLOWS;

	list_for_each_entry(f, &rd->reap, reap) {
		slot = riso_tag_oldest(f->slots);
		if (slot && slot->wire[dir]) {
			*of = f;
			return f->path.rtt_min == RISO_NEVER ? NULL : slot;
		}
		if (!--left)
			break;
	}
	return NULL;
}

/**
 * riso_window_ask - may a flow post now, as far as the device goes?
 * @f: the flow
 * @l: limits that hold
 * @room: what bounds the post, filled in
 * @now: time, ns
 *
 * If the window is full, it looks first for a flow whose bytes do not stand in the device.
 *
 * Context: under &riso_dev.lock.
 * Return: what the pacer says.
 */
struct riso_pacer_say riso_window_ask(struct riso_flow *f, const struct riso_pacer_limits *l,
				      struct riso_room *room, u64 now)
{
	enum riso_dir dir = f->next.dir;
	const struct riso_pacer *p = &f->rd->arb[dir].pacer;
	struct riso_pacer_piece piece = {};
	const struct riso_slot *slot;
	const struct riso_flow *oldest;

	lockdep_assert_held(&f->rd->lock);
	*room = riso_window_room(f);
	if (riso_pacer_is_full(p, l->window, room->part)) {
		mark_stale_flow(f->rd, l->window, now);
		slot = find_leaving(f->rd, dir, &oldest);
		if (slot)
			piece = (struct riso_pacer_piece) {
				.known = true,
				.posted_ns = slot->posted_ns,
				.path_ns = oldest->path.rtt_min,
				.bytes = slot->wire[dir],
			};
	}
	return riso_pacer_ask(p, l, room->part, &piece, now);
}

/**
 * riso_window_next_reap - when to look for a completion that nobody polls
 * @rd: the device
 * @now: time, ns
 *
 * When the oldest piece is due, then ever less often.
 *
 * Context: under &riso_dev.lock.
 * Return: time, ns.
 */
u64 riso_window_next_reap(struct riso_dev *rd, u64 now)
{
	const struct riso_flow *f;
	const struct riso_slot *slot = find_oldest(rd, &f);
	u64 due;

	lockdep_assert_held(&rd->lock);
	if (!slot)
		return now + RISO_REAP_MIN_NS;
	due = due_of(f, slot);
	if (due > now)
		return clamp_t(u64, due, now + RISO_REAP_MIN_NS,
			       now + RISO_REAP_MAX_NS);
	/* What is late by some time is looked for again after a quarter of that. */
	return now + clamp_t(u64, (now - due) / 4, RISO_REAP_MIN_NS,
			     RISO_REAP_MAX_NS);
}

/**
 * riso_window_complete - bytes of a flow are out of the device
 * @f: the flow
 * @dir: direction
 * @wire: wire bytes
 * @success: they were delivered, not flushed
 *
 * Context: under &riso_dev.lock.
 */
void riso_window_complete(struct riso_flow *f, enum riso_dir dir, u64 wire, bool success)
{
	lockdep_assert_held(&f->rd->lock);
	if (!wire)
		return;
	riso_window_sub(f, dir, wire);
	if (success)
		f->rd->arb[dir].estimate.done += wire;
	else
		riso_estimate_wait(&f->rd->arb[dir].estimate);
}

/* The cover has changed: a microsecond more or less is as good as the same. */
static void note_cover(struct riso_dev *rd, enum riso_dir dir, u64 was)
{
	struct riso_arb *a = &rd->arb[dir];

	if (was / NSEC_PER_USEC != a->estimate.cover / NSEC_PER_USEC)
		a->covered = riso_window_covered(rd, dir);
}

/**
 * riso_window_note_dry - what the window had kept back is posted: did it come too late?
 * @f: the flow that is about to post
 * @dir: direction
 * @now: time, ns
 *
 * A flow that measures its path lets the device run dry on purpose.
 *
 * Context: under &riso_dev.lock, before the post is charged.
 */
void riso_window_note_dry(struct riso_flow *f, enum riso_dir dir, u64 now)
{
	struct riso_dev *rd = f->rd;
	struct riso_arb *a = &rd->arb[dir];
	u64 cover = a->estimate.cover;
	u64 dry;

	lockdep_assert_held(&rd->lock);
	if (!riso_is_shaped(rd) || f->path.rtt_min == RISO_NEVER || f->path.probes)
		return;
	dry = riso_pacer_dry(&a->pacer, now);
	/* It is dry with nothing out, whatever its speed was taken for. */
	if (!a->out.bytes && list_empty(&rd->processes))
		dry = max_t(u64, dry, rd->chunk_ns / RISO_DRY_PART);
	riso_estimate_dry(&a->estimate, rd->chunk_ns, dry);
	note_cover(rd, dir, cover);
}

/**
 * riso_window_measure - a completion tells of its path
 * @f: the flow
 * @slot: what has completed, and is counted
 * @now: when that was seen, ns
 *
 * Keeps the smallest delay of the path beyond the message's own time on the wire,
 * and the rate at which the device delivers, both over about a second. And when
 * the piece left: it may have been a while ago, but not before the CQ was polled
 * last, and hardly before it was due.
 *
 * Context: under &riso_dev.lock and &riso_cq.poll_lock.
 */
void riso_window_measure(struct riso_flow *f, const struct riso_slot *slot, u64 now)
{
	enum riso_dir dir = slot_dir(slot);
	struct riso_dev *rd = f->rd;
	struct riso_arb *a = &rd->arb[dir];
	u64 own = riso_time_of(slot->wire[dir], riso_speed(rd, dir));
	u64 due = f->cq->polled_ns;
	u64 begun = RISO_NEVER;
	u64 cover, rtt;
	bool ended;

	lockdep_assert_held(&rd->lock);
	if (!riso_is_shaped(rd) || slot->posted_ns < rd->shaped_ns)
		return;
	if (f->path.rtt_min != RISO_NEVER) {
		cover = a->estimate.cover;
		riso_estimate_rest(&a->estimate, own);
		note_cover(rd, dir, cover);
		due = max(due, due_of(f, slot));
		begun = slot->posted_ns + f->path.rtt_min;
	}
	/* On a CQ that was polled long ago nobody knows better than what completed before. */
	a->pacer.completed_ns = max(a->pacer.completed_ns, min(now, due));
	ended = riso_estimate_complete(&a->estimate, own, begun, now);
	if (ended)
		riso_limits_rebound(rd, dir);
	/* A device that is faster than anybody knows is empty sooner. */
	if (ended || !a->pacer.load)
		riso_pacer_settle(&a->pacer, riso_drain(rd, dir), now);
	rtt = f->path.rtt_min;
	riso_path_sample(&f->path, slot->posted_ns, own, now);
	if (rtt != f->path.rtt_min)
		riso_window_rebound(f);
}
