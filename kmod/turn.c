// SPDX-License-Identifier: GPL-2.0
/*
 * Whose turn it is to post, and how much may be posted in it. The rules are in sched.c.
 *
 * Owns the places where flows stand while they have something to post: &riso_flow.arb, the lists
 * of groups (&riso_group_dir.flows), &riso_dev.urgent and &riso_dev.parked, whose order is
 * pump.c's, and &riso_flow.next. All of it is under &riso_dev.lock, in any context.
 */

#include <linux/list.h>

#include "batch.h"
#include "flow.h"
#include "limits.h"
#include "line.h"
#include "open.h"
#include "peer.h"
#include "process.h"
#include "ring.h"
#include "trace.h"
#include "turn.h"
#include "window.h"

/**
 * riso_turn_remove - take a flow out of the place where it stands
 * @f: the flow
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_turn_remove(struct riso_flow *f, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	if (list_empty(&f->arb))
		return;
	list_del_init(&f->arb);
	if (f->list == RISO_LIST_PEER)
		riso_peer_leave(f, now);
	else if (f->list == RISO_LIST_GROUP)
		riso_line_leave(f->rd, f->arb_dir, &f->group->dir[f->arb_dir], now);
}

/* Does it post at once, and nothing is cut? */
static bool goes_whole(const struct riso_flow *f)
{
	return f->phase == RISO_PHASE_FLUSHING || f->mode == RISO_FLOW_DRAIN ||
	       (f->phase == RISO_PHASE_ENDING && riso_ring_tells(&f->q));
}

/* Does its next batch not wait for a turn? */
static bool posts_as_debt(const struct riso_flow *f)
{
	return goes_whole(f) || f->debt || riso_ring_is_sparse(&f->q);
}

/* Say that a flow has a turn to come, unless it goes on with one. */
static void note_turn(struct riso_flow *f, enum riso_dir dir)
{
	if (!f->group->dir[dir].turn_bytes)
		trace_token_grant(f, dir, riso_token(f->rd));
}

static void list_flow(struct riso_flow *f, enum riso_list list, u64 now)
{
	struct riso_dev *rd = f->rd;
	struct riso_group_dir *gd;

	f->list = list;
	if (list == RISO_LIST_PEER) {
		riso_peer_wait(f, f->arb_dir, now);
		return;
	}
	if (list != RISO_LIST_GROUP) {
		list_add_tail(&f->arb, list == RISO_LIST_URGENT ? &rd->urgent : &rd->parked);
		return;
	}
	gd = &f->group->dir[f->arb_dir];
	riso_line_enter(rd, f->arb_dir, gd, now);
	/* In the middle of a turn of its group it is next, else last. */
	if (gd->turn_bytes)
		list_add(&f->arb, &gd->flows);
	else
		list_add_tail(&f->arb, &gd->flows);
	note_turn(f, f->arb_dir);
}

/* Have a flow that may post next stand in a list, where it stays if it stands there. */
static void place_flow(struct riso_flow *f, enum riso_list where, u64 now)
{
	enum riso_dir dir = f->next.dir;

	if (!list_empty(&f->arb) && f->list == where && f->arb_dir == dir)
		return;
	riso_turn_remove(f, now);
	f->arb_dir = dir;
	list_flow(f, where, now);
}

/* Does its peer not let it post now? Then it waits with others that it has. */
static bool waits_for_peer(struct riso_flow *f, u64 now)
{
	u64 when = riso_peer_when(f, f->next.dir, now);

	if (!when)
		return false;
	f->rd->want_ns = min(f->rd->want_ns, when - RISO_TICK_NS);
	trace_throttle(f, f->next.dir, when - now, f->inflight[f->next.dir], 0,
		       RISO_CAUSE_PATH);
	place_flow(f, RISO_LIST_PEER, now);
	return true;
}

/*
 * Do others wait for the peer of one that stands nowhere, or waits for it, too? Then it waits with
 * them until all of them may try again.
 */
static bool waits_behind(struct riso_flow *f, u64 now)
{
	if ((!list_empty(&f->arb) && f->list != RISO_LIST_PEER) ||
	    !riso_peer_is_contended(f, f->next.dir))
		return false;
	f->rd->want_ns = min(f->rd->want_ns, now);
	place_flow(f, RISO_LIST_PEER, now);
	return true;
}

/* Have a flow stand in line for its turn, if what it has out leaves it room. */
static void place_in_line(struct riso_flow *f, const struct riso_room *room, u64 now)
{
	enum riso_dir dir = f->next.dir;
	struct riso_dev *rd = f->rd;

	if (riso_window_fits(f, room)) {
		place_flow(f, RISO_LIST_GROUP, now);
		return;
	}
	rd->arb[dir].window_held |= !f->path.probes && !f->stale;
	rd->stats[RISO_STAT_THROTTLE_WINDOW]++;
	trace_throttle(f, dir, 0, f->inflight[dir], room->limit, RISO_CAUSE_FLOW);
	riso_turn_remove(f, now);
}

/* See again where a flow stands; @admitted: it has waited for its peer, and others may still. */
static void see_again(struct riso_flow *f, bool admitted, u64 now)
{
	struct riso_room room;

	if (!f->q.recs)
		return;
	riso_open_update(f);
	if (!riso_batch_next(f, now, &f->next)) {
		if (!list_empty(&f->arb) && f->list == RISO_LIST_PARKED &&
		    now < f->retry_ns)
			return;
		riso_turn_remove(f, now);
		if (riso_ring_len(&f->q) && !f->posting && !f->paused &&
		    now < f->retry_ns)
			list_flow(f, RISO_LIST_PARKED, now);
		return;
	}
	if (posts_as_debt(f)) {
		place_flow(f, RISO_LIST_URGENT, now);
		return;
	}
	if (waits_for_peer(f, now) || (!admitted && waits_behind(f, now)))
		return;
	room = riso_window_room(f);
	place_in_line(f, &room, now);
}

/**
 * riso_turn_wake - see again whether a flow may post, and where it stands
 * @f: the flow
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_turn_wake(struct riso_flow *f, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	see_again(f, false, now);
}

/**
 * riso_turn_admit - let a flow that has waited for its peer stand in line
 * @f: the flow
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_turn_admit(struct riso_flow *f, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	riso_turn_remove(f, now);
	see_again(f, true, now);
}

/* It is the turn of a flow, but clock or window say no: note why, and when to ask again. */
static void throttle(struct riso_flow *f, enum riso_dir dir, const struct riso_pacer_limits *l,
		     const struct riso_pacer_say *say, u64 now)
{
	struct riso_dev *rd = f->rd;
	struct riso_arb *a = &rd->arb[dir];
	bool clock = l->clocked && a->pacer.next > now + l->tick_ns;

	/* A gap that the clock makes between two pieces is not the window's doing. */
	a->window_held = say->verdict == RISO_PACER_WINDOW && !(clock && rd->paces_chunks);
	if (clock)
		riso_estimate_wait(&a->estimate);
	if (say->verdict == RISO_PACER_WINDOW) {
		rd->stats[RISO_STAT_THROTTLE_WINDOW]++;
		riso_pressure_why(&a->hold, RISO_WHY_WINDOW, now);
		trace_throttle(f, dir, 0, a->pacer.load, l->window, RISO_CAUSE_DEVICE);
	} else {
		rd->stats[RISO_STAT_THROTTLE_CLOCK]++;
		riso_pressure_why(&a->hold, RISO_WHY_CLOCK, now);
		trace_throttle(f, dir, say->when - now, f->inflight[dir], 0, RISO_CAUSE_CLOCK);
	}
	/* Where completions drive there is no need to know when the next one comes. */
	if (say->verdict != RISO_PACER_WINDOW || !riso_completions_drive(rd))
		rd->want_ns = min(rd->want_ns, say->when);
}

static struct riso_pacer_limits limits_of(const struct riso_dev *rd, enum riso_dir dir, u64 now)
{
	struct riso_pacer_limits l = {
		.clocked = riso_is_clocked(rd),
		.tick_ns = riso_tick(rd),
		.lag_ns = riso_lag(rd),
		.pace = riso_pace(rd, dir),
		.speed = riso_speed(rd, dir),
		.window = RISO_NEVER,
	};

	if (riso_is_shaped(rd))
		l.window = rd->arb[dir].covered;
	else if (now < rd->arb[dir].contested_ns)
		l.window = riso_process_open_limit(rd, dir);
	return l;
}

/* Has the clock lost no time, although the window kept something back? */
static bool clock_makes_up(const struct riso_arb *a, const struct riso_pacer_limits *l, u64 now)
{
	return l->clocked && a->pacer.next + l->lag_ns >= now;
}

/* A flow may post @bytes in its turn. */
static void take_turn(struct riso_flow *f, const struct riso_room *room, u64 bytes,
		      const struct riso_pacer_limits *l, u64 now, struct riso_turn *t)
{
	enum riso_dir dir = f->next.dir;
	struct riso_arb *a = &f->rd->arb[dir];

	riso_pressure_why(&a->hold, RISO_WHY_NONE, now);
	if (a->window_held && !clock_makes_up(a, l, now))
		riso_window_note_dry(f, dir, now);
	a->window_held = false;
	a->turn_ns = now;
	f->rd->last_dir = dir;
	*t = (struct riso_turn) {
		.f = f,
		.dir = dir,
		.pace = l->pace,
		.qt = {
			.chunk = room->chunk,
			.share = room->share,
			.bytes = min3(bytes, room->limit - min(room->limit, f->inflight[dir]),
				      riso_peer_credit(f, dir, now)),
			.end = U64_MAX,
		},
	};
}

/* It is the turn of a flow: may it post now, and how much? */
static bool pick_flow(struct riso_flow *f, struct riso_pacer_limits l, u64 now, struct riso_turn *t)
{
	enum riso_dir dir = f->next.dir;
	struct riso_dev *rd = f->rd;
	struct riso_pacer_say say;
	struct riso_room room;

	say = riso_window_ask(f, &l, &room, now);
	/* It may be processes that fill it, which nobody has looked at for a while. */
	if (say.verdict == RISO_PACER_WINDOW && !riso_is_shaped(rd) &&
	    !list_empty(&rd->processes)) {
		riso_process_read_some(rd, now);
		l.window = riso_process_open_limit(rd, dir);
		say = riso_window_ask(f, &l, &room, now);
		say.when = min(say.when, now + RISO_REAP_MAX_NS);
	}
	if (say.verdict != RISO_PACER_GO) {
		throttle(f, dir, &l, &say, now);
		return false;
	}
	take_turn(f, &room, say.bytes, &l, now, t);
	return true;
}

static bool pick_dir(struct riso_dev *rd, enum riso_dir dir, u64 now, struct riso_turn *t)
{
	struct riso_group_dir *gd;
	struct riso_flow *f;

	for (;;) {
		while ((gd = riso_line_first(&rd->arb[dir])) && gd->asks)
			if (!riso_process_grant(rd, dir, riso_line_group(gd, dir)->process, now))
				return false;
		if (!gd)
			return false;
		f = list_first_entry(&gd->flows, struct riso_flow, arb);
		if (!waits_for_peer(f, now))
			break;
		/* Of many whose peer has got enough, others have the lock now and then. */
		rd->drops -= !!rd->drops;
		if (!rd->drops)
			return false;
	}
	return pick_flow(f, limits_of(rd, dir, now), now, t);
}

/**
 * riso_turn_pick_alone - let a flow post that has something new, or more room than before
 * @f: the flow
 * @now: time, ns
 * @t: its turn, filled in
 *
 * If nobody else is in line, and nothing keeps the device from posting, it has its turn without
 * standing there. Else it is seen where it stands.
 *
 * Context: under &riso_dev.lock.
 * Return: true if it has a turn.
 */
bool riso_turn_pick_alone(struct riso_flow *f, u64 now, struct riso_turn *t)
{
	struct riso_dev *rd = f->rd;
	struct riso_pacer_limits l;
	struct riso_room room;
	struct riso_arb *a;

	/* With more room it still stands where it does, unless it begins to measure its path. */
	if (!list_empty(&f->arb) && f->list == RISO_LIST_GROUP && !posts_as_debt(f) &&
	    !f->path.probes)
		return false;
	if (!list_empty(&f->arb) || posts_as_debt(f) || !riso_batch_next(f, now, &f->next)) {
		riso_turn_wake(f, now);
		return false;
	}
	a = &rd->arb[f->next.dir];
	room = riso_window_room(f);
	if (waits_for_peer(f, now) || waits_behind(f, now))
		return false;
	if (list_empty(&rd->urgent) && !riso_line_first(a) && riso_window_fits(f, &room)) {
		l = limits_of(rd, f->next.dir, now);
		if (riso_pacer_is_open(&a->pacer, &l, room.part, now)) {
			take_turn(f, &room, riso_pacer_bytes(&a->pacer, &l, room.part, now),
				  &l, now, t);
			note_turn(f, f->next.dir);
			return true;
		}
	}
	place_in_line(f, &room, now);
	return false;
}

/* Who ends, fails or drains posts whole messages, who is sparse its chain, who is stuck a piece. */
static bool pick_urgent(struct riso_dev *rd, struct riso_turn *t)
{
	struct riso_quantum qt = { .share = 1, .end = U64_MAX, .debt = true };
	struct riso_flow *f;

	f = list_first_entry_or_null(&rd->urgent, struct riso_flow, arb);
	if (!f)
		return false;
	if (goes_whole(f)) {
		qt.bytes = U64_MAX;
		if (f->phase == RISO_PHASE_ENDING && riso_ring_tells(&f->q))
			qt.end = f->q.told_end;
	} else {
		qt.chunk = riso_window_room(f).chunk;
		if (riso_ring_is_sparse(&f->q)) {
			qt.bytes = U64_MAX;
			qt.end = f->q.sparse_end;
		}
	}
	t->f = f;
	t->dir = f->next.dir;
	t->pace = riso_pace(rd, t->dir);
	t->qt = qt;
	rd->arb[t->dir].window_held = false;
	rd->stats[RISO_STAT_DEBT_POSTED]++;
	return true;
}

/**
 * riso_turn_pick - see who may post now
 * @rd: the device
 * @now: time, ns
 * @t: whose turn it is, filled in
 *
 * If nobody may, says in &riso_dev.want_ns when to ask again.
 *
 * Context: under &riso_dev.lock.
 * Return: true if somebody may.
 */
bool riso_turn_pick(struct riso_dev *rd, u64 now, struct riso_turn *t)
{
	int dir;

	if (pick_urgent(rd, t))
		return true;
	/* The direction that was not served last goes first. */
	for (dir = 0; dir < RISO_DIRS; dir++) {
		enum riso_dir d = (rd->last_dir + 1 + dir) % RISO_DIRS;

		if (pick_dir(rd, d, now, t))
			return true;
	}
	return false;
}
