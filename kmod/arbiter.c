// SPDX-License-Identifier: GPL-2.0
/*
 * The arbiter: which flow posts next, and when.
 *
 * Theory of operation
 *
 * What a NIC has been given it sends, first come, first served, so a small message
 * waits behind all that was posted before it. The cure is to post bulk late: to
 * hold it here, and to give the device just what keeps it busy.
 *
 * There is one arbiter for what a device sends (WRITE, SEND, atomics) and one for
 * what READs bring to it; the two never block each other. Each decides two things.
 *
 * Whose turn. Groups are served by virtual time (core/share.c): what a group posts
 * advances it by the device time that it takes, max(bytes / MaxRate, messages / MaxOps),
 * divided by its weight. A tenant has one group, unless the device says that the processes
 * of a control group or of a user share. Inside a group, flows take turns of one token.
 *
 * When. While the device has a latency flow (L > 0), messages are cut to chunks
 * and two limits hold:
 * - The clock. It says until when the device has work, and bulk is posted when it
 *   is not ahead of the time. Each post advances it by its device time at SafeUtil.
 *   What a late timer has missed is lost, not made up for as a burst: the queue that
 *   a burst leaves would hardly get shorter at a rate near the link's. A device that
 *   delivers less than MaxRate although it is full slows the clock. Where chunks are
 *   too short for a timer, the clock works in ticks.
 * - The window. It caps what is posted and not completed: per device two chunks
 *   beyond the paths' own bandwidth-delay products, per flow a chunk more. It is
 *   finer than whole chunks: between two completions the oldest piece is taken to
 *   leave the device at the rate at which it was seen to deliver. If MaxRate is set
 *   too high, or the timer is early, this is what keeps the queue short. Bytes of a
 *   flow that does not complete (its peer is gone, the network is slow) are not in
 *   the NIC's queue any more after a while: they count against the flow, not against
 *   the device.
 * With no latency flow nothing is cut and the clock does not run. One active group
 * posts without limit; with more, a window keeps the queue here, where turns are
 * taken, rather than in the device.
 *
 * What cannot wait goes at once and is charged all the same, as debt: flows in
 * error or draining, and what a sparse group posts, one that had nothing held: a chunk
 * in each slice, in one chain or many, and a reply behind it.
 *
 * One timer per device is armed while something is held, for the clock or to look
 * for completions that the ULP has not polled (see comp.c). It runs in hard
 * interrupt context (in softirq on PREEMPT_RT), where verbs may be called: in a
 * softirq it could be late by milliseconds on 6.1 (ksoftirqd).
 *
 * All state is under &riso_dev.lock, which is never held over a post: the flow is
 * marked as posting, the lock dropped, and whoever comes meanwhile takes another
 * flow or leaves. Who posts is not preempted.
 */

#include <linux/hrtimer.h>
#include <linux/math64.h>

#include "compat.h"
#include "dev.h"
#include "flow.h"
#include "grant.h"
#include "trace.h"

enum {
	/*
	 * Timers cost microseconds. Where a chunk takes less than this, the clock may
	 * be off by as much, and the provider's events tell of completions.
	 */
	RISO_TICK_NS = 50 * NSEC_PER_USEC,
	/* A turn or slice, in device time, if no token size was set. */
	RISO_SLICE_NS = 200 * NSEC_PER_USEC,
	/* Messages of a turn, if no number was set. */
	RISO_TURN_OPS = 64,
	/* A group counts as active this long after its last post. */
	RISO_ACTIVE_NS = 50 * NSEC_PER_MSEC,
	/* Unconstrained window while several groups are active: this much time... */
	RISO_OPEN_NS = 2 * NSEC_PER_MSEC,
	/* ...but at least a few messages of the usual size, and not too much. */
	RISO_OPEN_MIN = 256 * 1024,
	RISO_OPEN_MAX = 8 * 1024 * 1024,
	/* Unconstrained, processes cut their messages to this, for turns. */
	RISO_OPEN_CHUNK = 128 * 1024,
	/* A grant is void so long after it could have been used. */
	RISO_GRANT_NS = 10 * NSEC_PER_MSEC,
	/* Who is active is seen this often, while there are processes. */
	RISO_WATCH_NS = 20 * NSEC_PER_MSEC,
	/* Round trip that the windows of processes allow for. */
	RISO_PATH_NS = NSEC_PER_MSEC,
	/* What a process takes to wake up and to post, about. */
	RISO_LEAD_NS = 40 * NSEC_PER_USEC,
	/* No grant is for less. */
	RISO_GRANT_MIN = 256,
	/* Processes whose pages one look at a full window reads again. */
	RISO_USER_VISITS = 8,
	/* A reply of a storage protocol: NVMe 16 bytes, iSER 76, SRP and NFS up to this. */
	RISO_REPLY_BYTES = 256,
	/* READ chunks never grow beyond this. */
	RISO_READ_CHUNK_MAX = 1024 * 1024,
	/* Posted this long ago and not completed: not in the NIC any more. */
	RISO_STALE_NS = 2 * NSEC_PER_MSEC,
	/* A flow that holds something and did not post for this long just posts. */
	RISO_STUCK_NS = NSEC_PER_SEC,
	/* Such flows are looked for as often. */
	RISO_CHECK_NS = NSEC_PER_SEC / 4,
	/* What the decay of the averages of pressure.c is made for. */
	RISO_AVERAGE_NS = 2 * NSEC_PER_SEC,
	RISO_REAP_MIN_NS = 50 * NSEC_PER_USEC,
	RISO_REAP_MAX_NS = 250 * NSEC_PER_USEC,
	/*
	 * Batches that one call may post before it leaves the rest to the timer. It gives as
	 * many grants, and sees as many processes that want none any more.
	 */
	RISO_RUN_BATCHES = 16,
	/*
	 * How often it lets others have the lock, and sees as many such processes again, if
	 * interrupts may come meanwhile. Else the timer goes on at once.
	 */
	RISO_RUN_ROUNDS = 16,
};

/* Whose turn it is, and how much of it. */
struct turn {
	struct riso_flow *f;
	enum riso_dir dir;
	struct riso_quantum qt;
};

static bool shaped(const struct riso_dev *rd)
{
	return rd->latency_flows && rd->cfg.chunk_bytes;
}

/* Device time of a post: max(bytes / rate, messages / MaxOps). */
static u64 cost_of(const struct riso_dev *rd, u64 bytes, u32 ops, u64 rate)
{
	u64 ns = riso_time_of(bytes, rate);

	if (rd->cfg.max_ops)
		ns = max(ns, riso_time_of(ops, rd->cfg.max_ops));
	return ns;
}

/* A chunk with its headers. */
static u64 chunk_wire(const struct riso_dev *rd)
{
	return rd->cfg.chunk_bytes + rd->cfg.chunk_bytes / 16;
}

/* What may stand in the device: two chunks. */
static u64 window(const struct riso_dev *rd)
{
	if (rd->cfg.inflight_bytes == RISO_AUTO)
		return 2 * chunk_wire(rd);
	return rd->cfg.inflight_bytes ?: U32_MAX;
}

static u64 open_window(const struct riso_dev *rd)
{
	return clamp_t(u64, riso_bytes_in(RISO_OPEN_NS, rd->cfg.max_rate),
		       RISO_OPEN_MIN, RISO_OPEN_MAX);
}

static u64 token(const struct riso_dev *rd)
{
	if (rd->cfg.token_bytes != RISO_AUTO)
		return rd->cfg.token_bytes;
	return max_t(u64, 2 * rd->cfg.chunk_bytes,
		     riso_bytes_in(RISO_SLICE_NS, rd->cfg.safe_util));
}

static u64 speed(const struct riso_dev *rd, enum riso_dir dir)
{
	return riso_estimate_speed(&rd->arb[dir].estimate, rd->cfg.max_rate);
}

static u64 pace_of(const struct riso_dev *rd, enum riso_dir dir)
{
	return riso_estimate_pace(rd->cfg.safe_util, rd->cfg.max_rate,
				  rd->arb[dir].estimate.ceiling);
}

/**
 * riso_arb_over_target - has the agent found that Target99 is missed?
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: true if Current99 is above Target99, false if not or if nobody knows.
 */
bool riso_arb_over_target(const struct riso_dev *rd)
{
	lockdep_assert_held(&rd->lock);
	return rd->steer.target99_ns &&
	       rd->steer.current99_ns > rd->steer.target99_ns;
}

static u32 token_ops(const struct riso_dev *rd)
{
	return rd->cfg.token_ops == RISO_AUTO ? RISO_TURN_OPS :
						rd->cfg.token_ops;
}

/* Bandwidth-delay product of the path, 0 until it was measured. */
static u64 path_bytes(const struct riso_flow *f, enum riso_dir dir)
{
	u64 rate = riso_estimate_rate(&f->rd->arb[dir].estimate);

	return riso_path_bytes(&f->path, min(f->rd->cfg.max_rate, rate));
}

/*
 * The size that a message is cut to. READs of it have to fill the path although
 * only so many may be out, so on long paths they are larger.
 */
static u32 chunk_of(const struct riso_flow *f, enum riso_dir dir)
{
	u32 chunk = f->rd->cfg.chunk_bytes;

	if (!shaped(f->rd))
		return 0;
	if (dir == RISO_RX)
		chunk = max_t(u64, chunk, min_t(u64, RISO_READ_CHUNK_MAX,
						div_u64(path_bytes(f, dir),
							riso_queue_fetches(f))));
	return riso_chunk_round(chunk, f->mtu);
}

/* What a flow may have in flight by itself. */
static u64 flow_limit(const struct riso_flow *f, enum riso_dir dir)
{
	if (!shaped(f->rd))
		return U64_MAX;
	/* One piece alone, so that the path's own delay is seen. */
	if (f->path.rtt_min == RISO_NEVER)
		return 0;
	return window(f->rd) + f->rd->cfg.chunk_bytes + path_bytes(f, dir);
}

static bool flow_fits(const struct riso_flow *f, enum riso_dir dir, u32 need)
{
	return !f->inflight[dir] ||
	       f->inflight[dir] + need <= flow_limit(f, dir);
}

/* Bring the flow's part of what stands in the device up to date. */
static void update_load(struct riso_flow *f, enum riso_dir dir)
{
	struct riso_arb *a = &f->rd->arb[dir];
	u64 load = f->inflight[dir];

	if (f->stale)
		load = 0;
	else if (shaped(f->rd))
		load -= min(load, path_bytes(f, dir) / max(a->busy, 1u));
	riso_pacer_set_load(&a->pacer, &f->load[dir], load);
}

static void add_inflight(struct riso_flow *f, enum riso_dir dir, u32 wire)
{
	if (!f->inflight[dir])
		f->rd->arb[dir].busy++;
	f->inflight[dir] += wire;
	update_load(f, dir);
}

static void sub_inflight(struct riso_flow *f, enum riso_dir dir, u64 wire)
{
	if (f->inflight[dir] && f->inflight[dir] == wire)
		f->rd->arb[dir].busy--;
	f->inflight[dir] -= wire;
	update_load(f, dir);
}

/* --- the line of groups --- */

/* It has something to post, or wants a grant. */
static bool in_line(const struct riso_group_dir *gd)
{
	return !list_empty(&gd->flows) || gd->asks;
}

static struct riso_group *group_of(struct riso_group_dir *gd, enum riso_dir dir)
{
	return container_of(gd - dir, struct riso_group, dir[0]);
}

static struct riso_share_tenant *tenant_of(struct riso_group_dir *gd, enum riso_dir dir)
{
	return &group_of(gd, dir)->tenant->dir[dir];
}

static void insert_group(struct riso_dev *rd, enum riso_dir dir,
			 struct riso_group_dir *gd)
{
	riso_share_enter(&rd->arb[dir].share, tenant_of(gd, dir), &gd->share,
			 riso_time_of(token(rd), rd->cfg.max_rate));
}

static void erase_group(struct riso_dev *rd, enum riso_dir dir,
			struct riso_group_dir *gd)
{
	riso_share_leave(&rd->arb[dir].share, tenant_of(gd, dir), &gd->share);
}

static void enter_line(struct riso_dev *rd, enum riso_dir dir,
		       struct riso_group_dir *gd)
{
	if (in_line(gd))
		return;
	insert_group(rd, dir, gd);
	riso_pressure_begin(&rd->arb[dir].hold, &gd->wait);
}

static void leave_line(struct riso_dev *rd, enum riso_dir dir,
		       struct riso_group_dir *gd)
{
	if (in_line(gd))
		return;
	erase_group(rd, dir, gd);
	riso_pressure_end(&rd->arb[dir].hold, &gd->wait);
}

/**
 * riso_arb_enter_tenant - let a group share with others from now on
 * @rd: the device
 * @g: the group
 * @tenant: with whom it shares
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_enter_tenant(struct riso_dev *rd, struct riso_group *g,
			   struct riso_tenant *tenant)
{
	int dir;

	lockdep_assert_held(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++) {
		struct riso_group_dir *gd = &g->dir[dir];

		if (in_line(gd))
			erase_group(rd, dir, gd);
	}
	g->tenant = tenant;
	for (dir = 0; dir < RISO_DIRS; dir++) {
		struct riso_group_dir *gd = &g->dir[dir];

		riso_share_begin_group(&tenant->dir[dir], &gd->share);
		if (in_line(gd))
			insert_group(rd, dir, gd);
	}
}

/**
 * riso_arb_remove - a flow has nothing that may be posted
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_remove(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	if (list_empty(&f->arb))
		return;
	list_del_init(&f->arb);
	if (f->place != RISO_PLACE_GROUP)
		return;
	leave_line(f->rd, f->arb_dir, &f->group->dir[f->arb_dir]);
}

/* Does it post at once, and nothing is cut? */
static bool goes_whole(const struct riso_flow *f)
{
	return f->flush || f->mode == RISO_FLOW_DRAIN ||
	       (f->ending && riso_queue_tells(&f->q));
}

static void place(struct riso_flow *f, enum riso_place place)
{
	struct riso_dev *rd = f->rd;
	struct riso_group_dir *gd;

	f->place = place;
	if (place == RISO_PLACE_URGENT) {
		list_add_tail(&f->arb, &rd->urgent);
		return;
	}
	if (place == RISO_PLACE_PARKED) {
		list_add_tail(&f->arb, &rd->parked);
		return;
	}
	gd = &f->group->dir[f->arb_dir];
	enter_line(rd, f->arb_dir, gd);
	/* A flow keeps its turn until the token is spent. */
	if (gd->turn) {
		list_add(&f->arb, &gd->flows);
	} else {
		list_add_tail(&f->arb, &gd->flows);
		trace_token_grant(f, f->arb_dir, token(rd));
	}
}

/**
 * riso_arb_wake - see again whether a flow may post, and where it stands
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_wake(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;
	enum riso_place where = RISO_PLACE_GROUP;
	u64 now = ktime_get_ns();
	enum riso_dir dir;

	lockdep_assert_held(&rd->lock);
	if (!f->q.recs)
		return;
	if (!riso_queue_ready(f, now)) {
		if (!list_empty(&f->arb) && f->place == RISO_PLACE_PARKED &&
		    now < f->retry_ns)
			return;
		riso_arb_remove(f);
		if (riso_queue_len(&f->q) && !f->posting && !f->paused &&
		    now < f->retry_ns)
			place(f, RISO_PLACE_PARKED);
		return;
	}
	dir = riso_queue_dir(f);
	if (goes_whole(f) || f->debt || riso_queue_is_sparse(&f->q)) {
		where = RISO_PLACE_URGENT;
	} else if (!flow_fits(f, dir, riso_queue_next(f, chunk_of(f, dir)))) {
		rd->stats[RISO_STAT_THROTTLE_WINDOW]++;
		trace_throttle(f, dir, 0, f->inflight[dir], flow_limit(f, dir),
			       RISO_CAUSE_FLOW);
		riso_arb_remove(f);
		return;
	}
	if (!list_empty(&f->arb) && f->place == where && f->arb_dir == dir)
		return;
	riso_arb_remove(f);
	f->arb_dir = dir;
	place(f, where);
}

/* --- whose turn, and when --- */

static struct riso_group_dir *first_in_line(const struct riso_arb *a)
{
	struct riso_share_group *first = riso_share_first(&a->share);

	return first ? container_of(first, struct riso_group_dir, share) : NULL;
}

/* How far off the clock may be: not at all if a timer can pace single chunks. */
static u64 tick(const struct riso_dev *rd)
{
	return rd->fine ? 0 : RISO_TICK_NS;
}

/*
 * The window is full. Flows whose bytes have been out for longer than they can
 * stand in the NIC do not count: they wait for the network or for their peer.
 */
static void age(struct riso_dev *rd, enum riso_dir dir, u64 limit, u64 now)
{
	u64 stale = max_t(u64, RISO_STALE_NS,
			  4 * riso_time_of(limit, rd->cfg.max_rate));
	struct riso_flow *f;

	list_for_each_entry(f, &rd->reap, reap) {
		if (now - f->progress_ns < stale)
			break;
		if (f->stale)
			continue;
		f->stale = true;
		rd->arb[dir].estimate.slack = true;
		update_load(f, RISO_TX);
		update_load(f, RISO_RX);
		break;
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
	       riso_time_of(slot->wire[dir], speed(f->rd, dir));
}

static const struct riso_slot *oldest(struct riso_dev *rd,
				      const struct riso_flow **f)
{
	*f = list_first_entry_or_null(&rd->reap, struct riso_flow, reap);
	if (!*f || (*f)->path.rtt_min == RISO_NEVER)
		return NULL;
	return riso_comp_oldest((*f)->slots);
}

/* Ask the pacer for @need bytes of @l, after a look for flows that are stale if it is full. */
static struct riso_pacer_say ask_pacer(struct riso_dev *rd, enum riso_dir dir,
				       const struct riso_pacer_limits *l, u32 need, u64 now)
{
	const struct riso_pacer *p = &rd->arb[dir].pacer;
	struct riso_pacer_piece piece = {};
	const struct riso_slot *slot;
	const struct riso_flow *f;

	if (riso_pacer_is_full(p, l->window, need)) {
		age(rd, dir, l->window, now);
		slot = oldest(rd, &f);
		if (slot)
			piece = (struct riso_pacer_piece) {
				.known = true,
				.posted_ns = slot->posted_ns,
				.path_ns = f->path.rtt_min,
				.bytes = slot->wire[dir],
			};
	}
	return riso_pacer_ask(p, l, need, &piece, now);
}

/* Groups that are active by turns contend for the device. */
static void note_active(struct riso_arb *a, struct riso_group *g, u64 now)
{
	if (a->last != g && now - a->last_ns < RISO_ACTIVE_NS)
		a->contested_ns = now + 2 * RISO_ACTIVE_NS;
	a->last = g;
	a->last_ns = now;
	g->active_ns = now;
}

/* Nothing more for so long as this takes at the pace of the device. */
static void move_clock(struct riso_dev *rd, enum riso_dir dir, u64 ns, u64 now)
{
	struct riso_arb *a = &rd->arb[dir];

	if (shaped(rd))
		riso_pacer_advance(&a->pacer, tick(rd), ns, now);
}

static void charge_group(struct riso_dev *rd, enum riso_dir dir,
			 struct riso_group *g, u64 wire, u32 ops, bool debt,
			 u64 now)
{
	u64 cost = cost_of(rd, wire, ops, rd->cfg.max_rate);
	struct riso_share_tenant *t = &g->tenant->dir[dir];
	struct riso_group_dir *gd = &g->dir[dir];
	struct riso_arb *a = &rd->arb[dir];

	if (!a->pacer.load)
		a->estimate.slack = true;
	/* Debt is nobody's turn, but hurts nobody where there is none in line. */
	if (!debt || !first_in_line(a))
		riso_share_serve(&a->share, t, &gd->share);
	riso_share_charge(&a->share, t, &gd->share, in_line(gd), cost, g->weight);
	g->used_ns += cost;
	riso_pressure_take(&a->hold, &g->pressure, g->id, cost);
	note_active(a, g, now);
}

/* --- processes: they post by themselves, under grants --- */

static void update_user_load(struct riso_user *u, enum riso_dir dir)
{
	struct riso_share *ud = &u->dir[dir];
	u64 load = shaped(u->rd) ? 0 : min(ud->out, open_window(u->rd) / 2);

	u->rd->arb[dir].user_load += load - ud->load;
	riso_pacer_set_load(&u->rd->arb[dir].pacer, &ud->load, load);
}

/* What processes have out is what they say: of the open window they fill half. */
static u64 open_limit(const struct riso_dev *rd, enum riso_dir dir)
{
	u64 limit = open_window(rd);
	u64 said = rd->arb[dir].user_load;

	return limit + said - min(said, limit / 2);
}

/* In each of these a process may post a chunk as debt: half of the device at most. */
static u64 user_slice(const struct riso_dev *rd)
{
	return max_t(u64, RISO_SLICE_NS, 2 * rd->chunk_ns);
}

/* As far back as it is looked at what processes have done. */
static u64 watch_span(const struct riso_dev *rd)
{
	return max_t(u64, RISO_WATCH_NS, 2 * user_slice(rd));
}

/* What the rule of sparse groups has allowed since it was asked last. */
static u64 sparse_since(const struct riso_dev *rd, struct riso_group_dir *gd,
			u64 now)
{
	u64 since = min(now - gd->slice_ns, watch_span(rd));
	u64 slices = div64_u64(since, user_slice(rd));

	gd->slice_ns = now - since + slices * user_slice(rd);
	return slices * chunk_wire(rd);
}

/* What it has posted without a grant, as far as the rule of sparse groups goes. */
static void charge_debt(struct riso_user *u, enum riso_dir dir, u64 debt, u64 now)
{
	struct riso_share *ud = &u->dir[dir];
	struct riso_dev *rd = u->rd;
	u64 charged, ns;

	ud->owed += debt;
	charged = min(ud->owed, sparse_since(rd, &u->group->dir[dir], now));
	/* The present slice may have allowed it: it is charged when that has ended. */
	ud->owed = min_t(u64, ud->owed - charged, chunk_wire(rd));
	if (!charged)
		return;
	ns = riso_pacer_take_debt(&rd->arb[dir].pacer, watch_span(rd),
				  cost_of(rd, charged, 0, pace_of(rd, dir)), now);
	move_clock(rd, dir, ns, now);
	charge_group(rd, dir, u->group, charged, 0, true, now);
}

/* See what a process has done, and what it wants. */
static u64 read_user(struct riso_user *u, enum riso_dir dir, u64 now)
{
	struct riso_dev *rd = u->rd;
	u64 posted, debt, need;

	need = riso_grant_read(u, dir, now, &posted, &debt);
	update_user_load(u, dir);
	u->group->bytes[dir] += posted;
	/* Without a queue pair that can send it has posted nothing. */
	if (!READ_ONCE(u->group->senders))
		return 0;
	charge_debt(u, dir, debt, now);
	if (posted && u->mode == RISO_USER_OPEN) {
		u->group->used_ns += cost_of(rd, posted, 0, rd->cfg.max_rate);
		note_active(&rd->arb[dir], u->group, now);
	}
	return u->mode == RISO_USER_PACED ? need : 0;
}

static void ask(struct riso_user *u, enum riso_dir dir, bool asks)
{
	struct riso_group_dir *gd = &u->group->dir[dir];
	struct riso_dev *rd = u->rd;

	if (gd->asks == asks)
		return;
	if (asks) {
		enter_line(rd, dir, gd);
		gd->asks = true;
		rd->asking++;
	} else {
		gd->asks = false;
		leave_line(rd, dir, gd);
		rd->asking--;
	}
}

/* Tell a process how to post, unless it knows. */
static void update_user(struct riso_user *u)
{
	struct riso_dev *rd = u->rd;
	int dir;

	if (u->pacings == rd->pacings)
		return;
	u->pacings = rd->pacings;
	for (dir = 0; dir < RISO_DIRS; dir++)
		update_user_load(u, dir);
	riso_grant_pace(u, &rd->pacing);
}

/* Does it want something? One that is stopped does not, until it calls. */
static void look_at(struct riso_user *u, bool calls, u64 now)
{
	int dir;

	update_user(u);

	for (dir = 0; dir < RISO_DIRS; dir++) {
		if (!read_user(u, dir, now) || (!calls && u->dir[dir].behind))
			continue;
		u->dir[dir].called |= calls;
		ask(u, dir, true);
	}
}

/* Some of them, in turn. */
static void read_users(struct riso_dev *rd, u64 now)
{
	int visits = RISO_USER_VISITS;
	struct riso_user *u, *tmp;
	LIST_HEAD(seen);

	list_for_each_entry_safe(u, tmp, &rd->users, list) {
		if (!visits--)
			break;
		look_at(u, false, now);
		list_move_tail(&u->list, &seen);
	}
	list_splice_tail(&seen, &rd->users);
}

/*
 * How far a grant may be ahead of the clock: its owner has to wake up first. What it
 * is early by stands in front of small messages.
 */
static u64 lead(const struct riso_dev *rd)
{
	return rd->fine ? RISO_LEAD_NS : RISO_TICK_NS;
}

/*
 * Bytes of a grant. While there are latency flows these are whole chunks: what is left
 * over of many grants would be one chunk more, at once with another.
 */
static u64 quantum(const struct riso_dev *rd)
{
	u64 piece;

	if (!shaped(rd))
		return 2 * RISO_OPEN_CHUNK;
	piece = riso_piece_wire(riso_chunk_round(rd->cfg.chunk_bytes, rd->mtu), rd->mtu);
	return piece * max_t(u64, 1, div64_u64(riso_bytes_in(RISO_TICK_NS, rd->cfg.safe_util),
					       piece));
}

/*
 * No grant is for less than this. All that one run may give is a quantum then, so that
 * it is the clock or the window that ends the run, for whoever asks for little as well.
 */
static u64 least_grant(const struct riso_dev *rd)
{
	return max_t(u64, RISO_GRANT_MIN, quantum(rd) / RISO_RUN_BATCHES);
}

/* A chunk, which a process can always post a part of a message for. */
static u64 smallest_grant(const struct riso_dev *rd)
{
	u32 chunk = riso_chunk_round(rd->cfg.chunk_bytes, rd->mtu);

	return max_t(u64, RISO_GRANT_MIN, riso_piece_wire(chunk, rd->mtu));
}

/* Bytes leave the window when their process tells so. */
static bool open_window_full(struct riso_dev *rd, enum riso_dir dir, u64 bytes,
			     u64 now)
{
	const struct riso_pacer *p = &rd->arb[dir].pacer;
	u64 limit = open_window(rd);

	if (!riso_pacer_is_full(p, limit, bytes))
		return false;
	read_users(rd, now);
	return riso_pacer_is_full(p, limit, bytes);
}

/*
 * It is the turn of a process: give it a grant if there may be one now. Say whether
 * to go on with the one whose turn it is then.
 */
static bool grant_next(struct riso_dev *rd, enum riso_dir dir,
		       struct riso_user *u, u64 now)
{
	struct riso_arb *a = &rd->arb[dir];
	u64 begin = now;
	u64 need, bytes;

	/* The next round goes on with the others in line, or the timer: this holds for it. */
	if (!rd->drops && rd->state == RISO_STATE_ENFORCE)
		return false;
	need = read_user(u, dir, now);
	bytes = clamp(need, least_grant(rd), quantum(rd));
	if (riso_grant_shrinks(&u->dir[dir]))
		bytes = min(bytes, smallest_grant(rd));

	/* One that let a grant go by may be stopped, however long it stands in line. */
	if (!need || (u->dir[dir].lapsed && !u->dir[dir].called)) {
		ask(u, dir, false);
		rd->drops -= !!rd->drops;
		return true;
	}
	if (!rd->grants[dir]) {
		rd->want_ns = min(rd->want_ns, now + RISO_TICK_NS / 2);
		return false;
	}
	if (shaped(rd)) {
		if (a->pacer.next > now + tick(rd) + lead(rd)) {
			rd->stats[RISO_STAT_THROTTLE_CLOCK]++;
			a->estimate.slack = true;
			riso_pressure_why(&a->hold, RISO_WHY_CLOCK, now);
			rd->want_ns = min(rd->want_ns,
					  a->pacer.next - lead(rd) - tick(rd) / 2);
			return false;
		}
		begin = max(begin, a->pacer.next);
		/* What it completes is not measured. */
		a->estimate.slack = true;
	} else if (open_window_full(rd, dir, bytes, now)) {
		rd->stats[RISO_STAT_THROTTLE_WINDOW]++;
		riso_pressure_why(&a->hold, RISO_WHY_WINDOW, now);
		rd->want_ns = min(rd->want_ns, now + RISO_REAP_MAX_NS);
		return false;
	}
	riso_pressure_why(&a->hold, RISO_WHY_NONE, now);
	rd->grants[dir]--;
	riso_grant_give(u, dir, bytes, begin + RISO_GRANT_NS, now);
	move_clock(rd, dir, cost_of(rd, bytes, 0, pace_of(rd, dir)), now);
	charge_group(rd, dir, u->group, bytes, 0, false, now);
	update_user_load(u, dir);
	trace_user_grant(u, dir, bytes);
	return true;
}

static struct riso_pacing pacing(const struct riso_dev *rd, u64 now)
{
	bool contested = now < rd->arb[RISO_TX].contested_ns ||
			 now < rd->arb[RISO_RX].contested_ns;
	struct riso_pacing p;

	/* With what lies between its members, as it is compared. */
	memset(&p, 0, sizeof(p));
	p.chunk = shaped(rd) ? rd->cfg.chunk_bytes : RISO_OPEN_CHUNK;
	p.slice_ns = min_t(u64, user_slice(rd), U32_MAX);
	p.sparse = chunk_wire(rd);
	p.window = U64_MAX;
	p.over_target = riso_arb_over_target(rd);
	if (shaped(rd))
		p.window = 2 * window(rd) + riso_bytes_in(RISO_PATH_NS,
						     rd->cfg.max_rate);
	if (rd->state == RISO_STATE_ENFORCE && (shaped(rd) || contested))
		p.mode = RISO_USER_PACED;
	if (rd->cfg.max_ops)
		p.op_bytes = min_t(u64, U32_MAX, div64_u64(rd->cfg.max_rate,
							   rd->cfg.max_ops));
	return p;
}

/* How processes shall post now */
static void update_pacing(struct riso_dev *rd)
{
	struct riso_pacing p = pacing(rd, ktime_get_ns());

	if (!memcmp(&p, &rd->pacing, sizeof(p)))
		return;
	rd->pacing = p;
	rd->pacings++;
}

/**
 * riso_arb_refresh_users - tell processes how they shall post
 * @rd: the device
 *
 * A few at a time, so that nobody waits for all of them.
 *
 * Context: may sleep, under no lock that is taken inside &riso_dev.mutex.
 */
void riso_arb_refresh_users(struct riso_dev *rd)
{
	struct riso_user *u;
	u32 left;
	int n;

	spin_lock_irq(&rd->lock);
	update_pacing(rd);
	/* Others move those that they have looked at behind the rest, too. */
	for (left = rd->num_users; left; ) {
		for (n = 0; left && n < RISO_USER_VISITS; n++, left--) {
			u = list_first_entry_or_null(&rd->users, struct riso_user, list);
			if (!u)
				break;
			update_user(u);
			list_move_tail(&u->list, &rd->users);
		}
		if (!n)
			break;
		spin_unlock_irq(&rd->lock);
		spin_lock_irq(&rd->lock);
	}
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_arb_ask - a process says that it wants something
 * @u: the process
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_ask(struct riso_user *u)
{
	lockdep_assert_held(&u->rd->lock);
	if (!u->gone)
		look_at(u, true, ktime_get_ns());
}

/**
 * riso_arb_join - a process takes part from now on
 * @u: the process
 *
 * Context: under &riso_dev.lock.
 * Return: 0; -EBUSY if it does already; -ENODEV.
 */
int riso_arb_join(struct riso_user *u)
{
	struct riso_dev *rd = u->rd;
	u64 now = ktime_get_ns();
	int dir;

	lockdep_assert_held(&rd->lock);
	if (rd->state == RISO_STATE_GONE)
		return -ENODEV;
	if (u->group->user)
		return -EBUSY;
	WRITE_ONCE(rd->num_users, rd->num_users + 1);
	u->group->user = u;
	for (dir = 0; dir < RISO_DIRS; dir++)
		u->group->dir[dir].slice_ns = now;
	list_add_tail(&u->list, &rd->users);
	update_pacing(rd);
	u->pacings = rd->pacings - 1;
	update_user(u);
	return 0;
}

/**
 * riso_arb_leave - a process does not take part any more
 * @u: the process; may have left before
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_leave(struct riso_user *u)
{
	struct riso_pacing open = { .mode = RISO_USER_OPEN };
	u64 now = ktime_get_ns();
	int dir;

	lockdep_assert_held(&u->rd->lock);
	if (u->gone)
		return;
	WRITE_ONCE(u->gone, true);
	WRITE_ONCE(u->modes, u->modes + 1);
	WRITE_ONCE(u->rd->num_users, u->rd->num_users - 1);
	for (dir = 0; dir < RISO_DIRS; dir++) {
		if (u->rd->running)
			read_user(u, dir, now);
		ask(u, dir, false);
		u->rd->arb[dir].pacer.load -= u->dir[dir].load;
		u->rd->arb[dir].user_load -= u->dir[dir].load;
	}
	list_del_init(&u->list);
	u->group->user = NULL;
	riso_grant_pace(u, &open);
	wake_up_all(&u->wait);
}

/**
 * riso_arb_leave_all - the device goes, nobody takes part any more
 * @rd: the device
 *
 * Context: may sleep.
 */
void riso_arb_leave_all(struct riso_dev *rd)
{
	struct riso_user *u, *tmp;

	spin_lock_irq(&rd->lock);
	list_for_each_entry_safe(u, tmp, &rd->users, list)
		riso_arb_leave(u);
	spin_unlock_irq(&rd->lock);
}

/* It is not the turn of a flow yet: say why, and when to look again. */
static void throttle(struct riso_dev *rd, const struct turn *t,
		     const struct riso_pacer_limits *l, const struct riso_pacer_say *say,
		     u64 now)
{
	struct riso_arb *a = &rd->arb[t->dir];

	if (say->verdict == RISO_PACER_WINDOW) {
		rd->stats[RISO_STAT_THROTTLE_WINDOW]++;
		riso_pressure_why(&a->hold, RISO_WHY_WINDOW, now);
		trace_throttle(t->f, t->dir, 0, a->pacer.load, l->window, RISO_CAUSE_DEVICE);
	} else {
		rd->stats[RISO_STAT_THROTTLE_CLOCK]++;
		a->estimate.slack = true;
		riso_pressure_why(&a->hold, RISO_WHY_CLOCK, now);
		trace_throttle(t->f, t->dir, say->when - now, t->f->inflight[t->dir], 0,
			       RISO_CAUSE_CLOCK);
	}
	rd->want_ns = min(rd->want_ns, say->when);
}

static struct riso_pacer_limits limits_of(const struct riso_dev *rd, enum riso_dir dir,
					  u64 now)
{
	struct riso_pacer_limits l = {
		.clocked = shaped(rd),
		.tick_ns = tick(rd),
		.pace = pace_of(rd, dir),
		.speed = speed(rd, dir),
		.window = RISO_NEVER,
	};

	if (l.clocked)
		l.window = window(rd);
	else if (now < rd->arb[dir].contested_ns)
		l.window = open_limit(rd, dir);
	return l;
}

static bool pick_dir(struct riso_dev *rd, enum riso_dir dir, u64 now,
		     struct turn *t)
{
	struct riso_arb *a = &rd->arb[dir];
	struct riso_pacer_limits l;
	struct riso_group_dir *gd;
	struct riso_pacer_say say;
	u64 limit;
	u32 need;

	while ((gd = first_in_line(a)) && gd->asks)
		if (!grant_next(rd, dir, group_of(gd, dir)->user, now))
			return false;
	if (!gd)
		return false;
	t->f = list_first_entry(&gd->flows, struct riso_flow, arb);
	t->dir = dir;
	t->qt = (struct riso_quantum){ .chunk = chunk_of(t->f, dir), .end = U64_MAX };
	l = limits_of(rd, dir, now);
	need = riso_queue_next(t->f, t->qt.chunk);
	say = ask_pacer(rd, dir, &l, need, now);
	/* It may be processes that fill it, which nobody has looked at for a while. */
	if (say.verdict == RISO_PACER_WINDOW && !l.clocked && !list_empty(&rd->users)) {
		read_users(rd, now);
		l.window = open_limit(rd, dir);
		say = ask_pacer(rd, dir, &l, need, now);
		say.when = min(say.when, now + RISO_REAP_MAX_NS);
	}
	if (say.verdict != RISO_PACER_GO) {
		throttle(rd, t, &l, &say, now);
		return false;
	}
	riso_pressure_why(&a->hold, RISO_WHY_NONE, now);
	limit = flow_limit(t->f, dir);
	t->qt.bytes = min(say.bytes, limit - min(limit, t->f->inflight[dir]));
	return true;
}

static bool pick(struct riso_dev *rd, u64 now, struct turn *t)
{
	struct riso_flow *f;
	int dir;

	f = list_first_entry_or_null(&rd->urgent, struct riso_flow, arb);
	if (f) {
		bool whole = goes_whole(f);
		bool sparse = !whole && riso_queue_is_sparse(&f->q);

		t->f = f;
		t->dir = riso_queue_dir(f);
		t->qt.chunk = whole ? 0 : chunk_of(f, t->dir);
		t->qt.bytes = whole || sparse ? U64_MAX : 0;
		t->qt.end = U64_MAX;
		if (sparse)
			t->qt.end = f->q.sparse_end;
		else if (f->ending && riso_queue_tells(&f->q))
			t->qt.end = f->q.told_end;
		t->qt.debt = true;
		rd->stats[RISO_STAT_DEBT_POSTED]++;
		return true;
	}
	/* The direction that was not served last goes first. */
	for (dir = 0; dir < RISO_DIRS; dir++) {
		enum riso_dir d = (rd->last_dir + 1 + dir) % RISO_DIRS;

		if (pick_dir(rd, d, now, t)) {
			rd->last_dir = d;
			return true;
		}
	}
	return false;
}

static void charge(struct riso_dev *rd, const struct turn *t, u32 wire,
		   u64 now)
{
	struct riso_flow *f = t->f;
	struct riso_group_dir *gd = &f->group->dir[t->dir];
	u32 ops = f->q.num;

	/* What is only flushed, or soon will be, takes no time of the device. */
	f->charged = !f->flush && !f->ending;
	if (f->charged) {
		move_clock(rd, t->dir,
			   cost_of(rd, wire, ops, pace_of(rd, t->dir)), now);
		charge_group(rd, t->dir, f->group, wire, ops, t->qt.debt, now);
	}
	gd->turn += wire;
	gd->turn_ops += ops;
	if (gd->turn >= token(rd) ||
	    (f->class == RISO_CLASS_THROUGHPUT &&
	     gd->turn_ops >= token_ops(rd))) {
		gd->turn = 0;
		gd->turn_ops = 0;
	}
	if (now - gd->slice_ns > RISO_SLICE_NS) {
		gd->slice_ns = now;
		gd->slice_bytes = 0;
	}
	gd->slice_bytes += wire;

	f->stale = false;
	f->debt = false;
	f->progress_ns = now;
	add_inflight(f, t->dir, wire);
	if (list_empty(&f->reap))
		f->cq->out++;
	list_move_tail(&f->reap, &rd->reap);
}

/* When to look for a completion: when the oldest is due, then ever less often. */
static u64 next_reap(struct riso_dev *rd, u64 now)
{
	const struct riso_flow *f;
	const struct riso_slot *slot = oldest(rd, &f);
	u64 due;

	if (!slot)
		return now + RISO_REAP_MIN_NS;
	due = due_of(f, slot);
	if (due > now)
		return clamp_t(u64, due, now + RISO_REAP_MIN_NS,
			       now + RISO_REAP_MAX_NS);
	return now + clamp_t(u64, (now - due) / 4, RISO_REAP_MIN_NS,
			     RISO_REAP_MAX_NS);
}

static void arm(struct riso_dev *rd, u64 now)
{
	u64 when = rd->want_ns;

	rd->want_ns = U64_MAX;
	if ((!rd->held && !rd->asking && list_empty(&rd->quiet)) || !rd->running)
		return;
	/*
	 * Events of the provider drive it then, and the timer is the backstop. But it is at
	 * once that those in line go on who are behind others who want nothing any more.
	 */
	if (!rd->fine && rd->drops)
		when = max(when, now + RISO_TICK_NS / 2);
	/* The next post takes completions along, if it is soon. */
	if (when == U64_MAX ||
	    (when > now + RISO_REAP_MAX_NS && !list_empty(&rd->quiet)))
		when = min(when, next_reap(rd, now));
	if (rd->timer_ns <= when)
		return;
	rd->timer_ns = when;
	hrtimer_start(&rd->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_PINNED);
}

/*
 * While one CPU posts for a flow, no other can. If the scheduler took the CPU from the one
 * that posts, the flow would wait for as long as whatever runs instead. So it keeps its
 * CPU. On PREEMPT_RT it cannot, as the provider's locks sleep.
 */
static void keep_cpu(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static void release_cpu(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

/*
 * Pick, and let others have the lock after some of those who stood in front and want
 * nothing any more; @rounds times at most.
 */
static bool pick_behind(struct riso_dev *rd, struct turn *t, u64 *now, int *rounds,
			unsigned long *flags)
{
	while (!pick(rd, *now, t)) {
		if (rd->drops)
			return false;
		if (!*rounds) {
			rd->want_ns = *now;
			return false;
		}
		--*rounds;
		spin_unlock_irqrestore(&rd->lock, *flags);
		spin_lock_irqsave(&rd->lock, *flags);
		*now = ktime_get_ns();
		rd->drops = RISO_RUN_BATCHES;
	}
	return true;
}

/**
 * riso_arb_run - post what may be posted now
 * @rd: the device
 *
 * Bounded; what is left over is the timer's.
 *
 * Context: any, under no lock of ours.
 */
void riso_arb_run(struct riso_dev *rd)
{
	int batches = RISO_RUN_BATCHES;
	int rounds = irqs_disabled() ? 0 : RISO_RUN_ROUNDS;
	unsigned long flags;
	struct turn t;
	u64 now;
	int dir;

	spin_lock_irqsave(&rd->lock, flags);
	now = ktime_get_ns();
	for (dir = 0; dir < RISO_DIRS; dir++)
		rd->grants[dir] = RISO_RUN_BATCHES;
	rd->drops = RISO_RUN_BATCHES;
	while (pick_behind(rd, &t, &now, &rounds, &flags)) {
		struct riso_flow *f = t.f;
		const struct ib_send_wr *bad_wr;
		struct ib_send_wr *wr;
		enum riso_posted how;
		u32 wire;
		int err;

		if (!batches--) {
			rd->want_ns = now;
			break;
		}
		riso_arb_remove(f);
		wr = riso_queue_cut(f, &t.qt, now, &wire);
		if (WARN_ON_ONCE(!wr))
			continue;
		charge(rd, &t, wire, now);
		f->posting = true;
		riso_pressure_serve(&f->group->pressure, true, now);
		keep_cpu();
		spin_unlock_irqrestore(&rd->lock, flags);

		bad_wr = wr;
		err = rd->orig.post_send(f->qp, wr, &bad_wr);

		spin_lock_irqsave(&rd->lock, flags);
		release_cpu();
		now = ktime_get_ns();
		how = riso_queue_posted(f, err, bad_wr, now);
		f->posting = false;
		riso_pressure_serve(&f->group->pressure, false, now);
		if (how == RISO_POSTED_REFUSED) {
			f->refused = true;
			queue_delayed_work(riso_wq, &f->refuse, 0);
		} else if (how == RISO_POSTED_RETRY) {
			rd->want_ns = min(rd->want_ns, f->retry_ns);
		}
		riso_arb_wake(f);
		if (f->paused)
			wake_up_all(&rd->wait);
	}
	arm(rd, now);
	spin_unlock_irqrestore(&rd->lock, flags);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct riso_dev *rd = container_of(timer, struct riso_dev, timer);
	struct riso_flow *f, *tmp;
	unsigned long flags;
	u64 late = 0;
	u64 now;

	spin_lock_irqsave(&rd->lock, flags);
	now = ktime_get_ns();
	rd->stats[RISO_STAT_TIMER_FIRED]++;
	/* How late it is: a mean over the last 8 or so. */
	if (now > rd->timer_ns) {
		late = now - rd->timer_ns;
		rd->stats[RISO_STAT_LATE_NS] +=
			((s64)late - (s64)rd->stats[RISO_STAT_LATE_NS]) / 8;
	}
	trace_timer_fire(rd, late);
	rd->timer_ns = U64_MAX;
	list_for_each_entry_safe(f, tmp, &rd->parked, arb)
		riso_arb_wake(f);
	list_for_each_entry(f, &rd->parked, arb)
		rd->want_ns = min(rd->want_ns, f->retry_ns);
	spin_unlock_irqrestore(&rd->lock, flags);

	riso_comp_reap(rd);
	riso_arb_run(rd);
	return HRTIMER_NORESTART;
}

/* Would the group have posted at most a chunk in this slice, and a reply, with @wire? */
static bool is_sparse(const struct riso_flow *f, enum riso_dir dir, u64 wire, u64 now)
{
	const struct riso_group_dir *gd = &f->group->dir[dir];
	u64 spent = now - gd->slice_ns > RISO_SLICE_NS ? 0 : gd->slice_bytes;

	return !wire || spent + wire <= chunk_wire(f->rd) +
					riso_piece_wire(RISO_REPLY_BYTES, f->mtu);
}

/**
 * riso_arb_sparse - may a flow's new chain of work requests go at once, as debt?
 * @f: a flow that had nothing held
 * @now: time, ns
 *
 * The whole chain goes or none of it: a target posts the data that were read and its
 * reply in one, and the initiator waits for the reply.
 *
 * Context: under &riso_dev.lock.
 * Return: true if the group has nothing held and posts, with the chain, at most a chunk
 * and a reply in the present slice.
 */
bool riso_arb_sparse(struct riso_flow *f, u64 now)
{
	u64 wire[RISO_DIRS];

	lockdep_assert_held(&f->rd->lock);
	if (!shaped(f->rd) || !list_empty(&f->group->dir[RISO_TX].flows) ||
	    !list_empty(&f->group->dir[RISO_RX].flows))
		return false;
	riso_queue_sum(f, wire);
	return is_sparse(f, RISO_TX, wire[RISO_TX], now) &&
	       is_sparse(f, RISO_RX, wire[RISO_RX], now);
}

/**
 * riso_arb_refund - what was charged was not taken by the provider
 * @f: the flow
 * @dir: direction
 * @wire: wire bytes
 * @ops: work requests
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_refund(struct riso_flow *f, enum riso_dir dir, u32 wire, u32 ops)
{
	struct riso_dev *rd = f->rd;
	struct riso_arb *a = &rd->arb[dir];
	u64 cost = cost_of(rd, wire, ops, rd->cfg.max_rate);
	struct riso_group_dir *gd;

	lockdep_assert_held(&rd->lock);
	if (!wire)
		return;
	sub_inflight(f, dir, wire);
	if (!f->charged)
		return;
	if (shaped(rd))
		riso_pacer_refund(&a->pacer, cost_of(rd, wire, ops, pace_of(rd, dir)));
	f->group->used_ns -= min(f->group->used_ns, cost);
	gd = &f->group->dir[dir];
	riso_share_refund(&a->share, tenant_of(gd, dir), &gd->share, in_line(gd), cost,
			  f->group->weight);
}

/**
 * riso_arb_complete - bytes of a flow are out of the device
 * @f: the flow
 * @dir: direction
 * @wire: wire bytes
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_complete(struct riso_flow *f, enum riso_dir dir, u32 wire)
{
	lockdep_assert_held(&f->rd->lock);
	if (!wire)
		return;
	sub_inflight(f, dir, wire);
	f->rd->arb[dir].estimate.done += wire;
}

/**
 * riso_arb_measure - a completion tells of its path
 * @f: the flow
 * @slot: what has completed
 *
 * Keeps the smallest delay of the path beyond the message's own time on the wire,
 * and the rate at which the device delivers, both over about a second. And when
 * the piece left: it may have been a while ago, but not before the CQ was polled
 * last, and hardly before it was due.
 *
 * Context: under &riso_dev.lock and &riso_cq.poll_lock.
 */
void riso_arb_measure(struct riso_flow *f, const struct riso_slot *slot)
{
	enum riso_dir dir = slot_dir(slot);
	struct riso_dev *rd = f->rd;
	struct riso_arb *a = &rd->arb[dir];
	u64 own = riso_time_of(slot->wire[dir], speed(rd, dir));
	u64 due = f->cq->polled_ns;
	u64 now = ktime_get_ns();

	lockdep_assert_held(&rd->lock);
	if (!shaped(rd) || slot->posted_ns < rd->shaped_ns)
		return;
	if (f->path.rtt_min != RISO_NEVER)
		due = max(due, due_of(f, slot));
	a->pacer.completed_ns = min(now, due);
	riso_estimate_complete(&a->estimate, now);
	riso_path_sample(&f->path, slot->posted_ns, own, now);
}

/**
 * riso_arb_idle - a flow has no slot out any more
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_idle(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	if (list_empty(&f->reap))
		return;
	list_del_init(&f->reap);
	f->cq->out--;
}

/**
 * riso_arb_forget - a flow's posted work requests will not complete
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_forget(struct riso_flow *f)
{
	int dir;

	lockdep_assert_held(&f->rd->lock);
	riso_arb_remove(f);
	riso_arb_idle(f);
	/* What completes all the same is nobody's. */
	if (f->slots)
		f->slots->flow = NULL;
	for (dir = 0; dir < RISO_DIRS; dir++)
		sub_inflight(f, dir, f->inflight[dir]);
}

/**
 * riso_arb_reconfigure - settings, or the number of latency flows, have changed
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: true if riso_arb_refresh() has to be called for all flows; so has
 * riso_arb_refresh_users() in any case.
 */
bool riso_arb_reconfigure(struct riso_dev *rd)
{
	bool was = rd->was_shaped;
	struct riso_bounds bounds;
	u64 now = ktime_get_ns();
	int dir;

	lockdep_assert_held(&rd->lock);
	rd->chunk_ns = riso_time_of(rd->cfg.chunk_bytes, rd->cfg.safe_util);
	rd->lately_ns = riso_time_of(open_window(rd) / 2, rd->cfg.max_rate);
	rd->fine = rd->chunk_ns >= RISO_TICK_NS;
	rd->was_shaped = shaped(rd);
	if (was != rd->was_shaped)
		rd->toggled_ns = now;
	if (!was && rd->was_shaped)
		rd->shaped_ns = now;
	for (dir = 0; dir < RISO_DIRS; dir++) {
		struct riso_arb *a = &rd->arb[dir];

		a->pacer.next = min(a->pacer.next, now + rd->chunk_ns + tick(rd));
		if (was != rd->was_shaped)
			riso_estimate_restart(&a->estimate);
	}
	bounds = (struct riso_bounds) {
		.max_rate = rd->cfg.max_rate,
		.chunk_bytes = rd->cfg.chunk_bytes,
		.inflight_bytes = rd->cfg.inflight_bytes,
	};
	trace_budget_update(rd);
	if (was == rd->was_shaped && !memcmp(&bounds, &rd->bounds, sizeof(bounds)))
		return false;
	rd->bounds = bounds;
	return true;
}

/**
 * riso_arb_refresh - what bounds a flow may have changed
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_refresh(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->lock);
	if (f->path.rtt_ns < rd->toggled_ns)
		riso_path_restart(&f->path, ktime_get_ns());
	update_load(f, RISO_TX);
	update_load(f, RISO_RX);
	riso_arb_wake(f);
}

/* Add what the group waits for just now to its sums. */
static void sync_waits(struct riso_dev *rd, struct riso_group *g, u64 now)
{
	int dir;

	for (dir = 0; dir < RISO_DIRS; dir++)
		if (in_line(&g->dir[dir]))
			riso_pressure_sync(&rd->arb[dir].hold,
					   &g->dir[dir].wait, now);
}

static void average(struct riso_dev *rd)
{
	u64 now = ktime_get_ns();
	u64 period = now - rd->averaged_ns;
	struct riso_group *g;
	unsigned long id;
	u32 held = 0;

	if (period < RISO_AVERAGE_NS)
		return;
	rd->averaged_ns = now;
	riso_dev_lock(rd);
	xa_for_each(&rd->groups, id, g) {
		spin_lock_irq(&rd->lock);
		sync_waits(rd, g, now);
		riso_pressure_average(&g->pressure, period, now);
		spin_unlock_irq(&rd->lock);
		riso_dev_pass(rd, &held, 1);
	}
	riso_dev_unlock(rd);
}

/**
 * riso_arb_group_info - what a dump shows of a group
 * @rd: the device
 * @g: the group
 * @info: filled in
 *
 * Context: under RCU, or &riso_dev.mutex.
 */
void riso_arb_group_info(struct riso_dev *rd, struct riso_group *g,
			 struct riso_group_info *info)
{
	u64 now;

	info->id = g->id;
	info->who = g->who;
	spin_lock_irq(&rd->lock);
	/* The process itself holds it, too. */
	info->flows = READ_ONCE(g->users) - !!g->user;
	now = ktime_get_ns();
	sync_waits(rd, g, now);
	info->weight = g->weight;
	info->tx_bytes = g->bytes[RISO_TX];
	info->rx_bytes = g->bytes[RISO_RX];
	info->wrs = g->wrs;
	info->used_ns = g->used_ns;
	info->shim = g->user;
	info->fault = g->fault;
	riso_pressure_info(&g->pressure, now, &info->pressure);
	spin_unlock_irq(&rd->lock);
}

/* See who is active, a few at a time; how many there are. */
static u32 watch_users(struct riso_dev *rd)
{
	u32 users = READ_ONCE(rd->num_users);
	u32 seen;

	for (seen = 0; seen < users; seen += RISO_USER_VISITS) {
		spin_lock_irq(&rd->lock);
		read_users(rd, ktime_get_ns());
		spin_unlock_irq(&rd->lock);
	}
	riso_arb_refresh_users(rd);
	return users;
}

/**
 * riso_arb_unstick - let a flow that has not posted for a second post
 * @f: the flow
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_arb_unstick(struct riso_flow *f, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	if (!riso_queue_len(&f->q) || f->debt ||
	    now - max(f->progress_ns, riso_queue_since(f)) < RISO_STUCK_NS)
		return;
	f->debt = true;
	riso_arb_wake(f);
}

static void watch(struct work_struct *work)
{
	struct riso_dev *rd = container_of(to_delayed_work(work),
					   struct riso_dev, watch);
	u64 now = ktime_get_ns();
	u32 users;
	int dir;

	users = watch_users(rd);
	if (now - rd->checked_ns >= RISO_CHECK_NS) {
		rd->checked_ns = now;
		spin_lock_irq(&rd->lock);
		for (dir = 0; dir < RISO_DIRS; dir++)
			riso_estimate_expire(&rd->arb[dir].estimate, now);
		spin_unlock_irq(&rd->lock);
		riso_flow_check_all(rd);
		riso_arb_run(rd);
		average(rd);
	}
	queue_delayed_work(riso_wq, &rd->watch,
			   nsecs_to_jiffies(users ? RISO_WATCH_NS : RISO_CHECK_NS));
}

/**
 * riso_arb_init - make the arbiters of a new device
 * @rd: the device
 */
void riso_arb_init(struct riso_dev *rd)
{
	int dir;

	for (dir = 0; dir < RISO_DIRS; dir++) {
		riso_estimate_restart(&rd->arb[dir].estimate);
		INIT_LIST_HEAD(&rd->arb[dir].hold.waiting);
	}
	INIT_LIST_HEAD(&rd->urgent);
	INIT_LIST_HEAD(&rd->parked);
	INIT_LIST_HEAD(&rd->quiet);
	INIT_LIST_HEAD(&rd->reap);
	INIT_LIST_HEAD(&rd->managed);
	INIT_LIST_HEAD(&rd->news);
	INIT_LIST_HEAD(&rd->users);
	init_waitqueue_head(&rd->wait);
	rd->mtu = ib_mtu_enum_to_int(IB_MTU_1024);
	rd->want_ns = U64_MAX;
	rd->timer_ns = U64_MAX;
	hrtimer_setup(&rd->timer, timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED);
	INIT_DELAYED_WORK(&rd->watch, watch);
}

/**
 * riso_arb_start - let the timer run
 * @rd: the device
 *
 * Context: may sleep.
 */
void riso_arb_start(struct riso_dev *rd)
{
	struct riso_group *g;
	struct riso_user *u;
	unsigned long id;

	rd->averaged_ns = ktime_get_ns();
	riso_dev_lock(rd);
	xa_for_each(&rd->groups, id, g)
		memset(g->pressure.avg, 0, sizeof(g->pressure.avg));
	riso_dev_unlock(rd);
	spin_lock_irq(&rd->lock);
	rd->running = true;
	list_for_each_entry(u, &rd->users, list)
		riso_grant_forget(u);
	spin_unlock_irq(&rd->lock);
	queue_delayed_work(riso_wq, &rd->watch, nsecs_to_jiffies(RISO_CHECK_NS));
}

/**
 * riso_arb_stop - stop the timer
 * @rd: the device, with nothing held
 *
 * Context: may sleep.
 */
void riso_arb_stop(struct riso_dev *rd)
{
	spin_lock_irq(&rd->lock);
	rd->running = false;
	spin_unlock_irq(&rd->lock);
	cancel_delayed_work_sync(&rd->watch);
	hrtimer_cancel(&rd->timer);
	rd->timer_ns = U64_MAX;
}
