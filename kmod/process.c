// SPDX-License-Identifier: GPL-2.0
/*
 * Processes: they post by themselves, under grants.
 *
 * Owns the list of processes that take part in a device, what each is granted and when, and
 * what it is charged for what it posts without a grant. What their pages say is grant.c's.
 * All of it is under &riso_dev.lock, in any context, and bounded. What walks over all of
 * them takes the lock itself, lets others have it after a few, and may sleep.
 */

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "core/chunk.h"
#include "core/cost.h"
#include "limits.h"
#include "line.h"
#include "process.h"
#include "trace.h"
#include "userpath.h"
#include "window.h"

enum {
	/* Where nobody shapes, processes cut their messages to 128 KB, for turns. */
	RISO_OPEN_CHUNK = 128 * 1024,
	/* There a grant lasts for 100 us, several times what a process takes to wake up. */
	RISO_OPEN_GRANT_NS = 100 * NSEC_PER_USEC,
	/* A grant is void 10 ms after it could have been used. */
	RISO_GRANT_NS = 10 * NSEC_PER_MSEC,
	/* The windows of processes allow for a round trip of 1 ms. */
	RISO_PATH_NS = NSEC_PER_MSEC,
	/*
	 * Where timers are late wake-ups are, too: a piece takes half of the time for which a timer
	 * is late, and what is out four times that time.
	 */
	RISO_LATE_PIECES = 2,
	RISO_LATE_PARTS = 4,
	/* A process takes about 40 us to wake up and to post. */
	RISO_LEAD_NS = 40 * NSEC_PER_USEC,
	/* No grant is for less than 256 bytes, a small message with its headers. */
	RISO_GRANT_MIN = 256,
	/* One look reads the pages of 8 processes, so that nobody waits for all. */
	RISO_PROCESS_VISITS = 8,
	/* Of these, so many may be processes with something in the device, before their turn. */
	RISO_LADEN_VISITS = 6,
};

static void update_process_load(struct riso_process *pr, struct riso_process_path *ud)
{
	struct riso_dev *rd = pr->rd;
	u64 load = riso_is_shaped(rd) ? 0 : min(ud->out, riso_open_window(rd) / 2);

	rd->arb[ud->dir].process_load += load - ud->load;
	pr->load += load - ud->load;
	riso_pacer_set_load(&rd->arb[ud->dir].pacer, &ud->load, load);
	if (!pr->load)
		list_del_init(&pr->laden);
	else if (list_empty(&pr->laden))
		list_add_tail(&pr->laden, &rd->laden);
}

/**
 * riso_process_open_limit - what may stand in a device that nobody shapes
 * @rd: the device
 * @dir: direction
 *
 * What processes have out is what they say: it fills half of the open window at most.
 *
 * Context: under &riso_dev.lock.
 * Return: bytes.
 */
u64 riso_process_open_limit(const struct riso_dev *rd, enum riso_dir dir)
{
	u64 limit = riso_open_window(rd);
	u64 said = rd->arb[dir].process_load;

	return limit + said - min(said, limit / 2);
}

/* In each of these a process may post a chunk as debt: half of the device at most. */
static u64 paced_slice(const struct riso_dev *rd)
{
	return max_t(u64, RISO_SLICE_NS, 2 * rd->chunk_ns);
}

/* As far back as it is looked at what processes have done. */
static u64 watch_span(const struct riso_dev *rd)
{
	return max_t(u64, RISO_WATCH_NS, 2 * paced_slice(rd));
}

/*
 * How much of @owed the rule of sparse groups has allowed since it was asked last. What it has
 * allowed and is not owed is kept for what another path of the process owes.
 */
static u64 take_sparse(const struct riso_dev *rd, struct riso_group_dir *gd, u64 owed, u64 now)
{
	u64 since = min(now - gd->slice_start_ns, watch_span(rd));
	u64 wants = div64_u64(owed + riso_chunk_wire(rd) - 1, riso_chunk_wire(rd));
	u64 slices = min(wants, div64_u64(since, paced_slice(rd)));

	gd->slice_start_ns = now - since + slices * paced_slice(rd);
	return min(owed, slices * riso_chunk_wire(rd));
}

/* What it has posted without a grant, as far as the rule of sparse groups goes. */
static void charge_debt(struct riso_process *pr, struct riso_process_path *ud, u64 debt, u64 now)
{
	enum riso_dir dir = ud->dir;
	struct riso_dev *rd = pr->rd;
	struct riso_bill bill = { .debt = true, .grant = true };

	ud->owed += debt;
	if (!ud->owed)
		return;
	bill.wire = take_sparse(rd, &pr->group->dir[dir], ud->owed, now);
	/* The present slice allows a chunk when it ends: until then the rest is owed. */
	ud->owed = min_t(u64, ud->owed - bill.wire, riso_chunk_wire(rd));
	if (!bill.wire)
		return;
	riso_userpath_charge_debt(ud, bill.wire, watch_span(rd), now);
	bill.busy_ns = riso_pacer_take_debt(&rd->arb[dir].pacer, watch_span(rd),
					    riso_cost_of(rd, bill.wire, 0, riso_pace(rd, dir)),
					    now);
	riso_line_charge(rd, dir, pr->group, &bill, now);
}

/* Count what a process has posted. Where nobody gives grants, it says who is @active. */
static void note_posted(struct riso_process *pr, enum riso_dir dir, u64 posted, bool active,
			u64 now)
{
	struct riso_dev *rd = pr->rd;

	pr->group->bytes[dir] += posted;
	/* Without a queue pair that can send it has posted nothing. */
	if (!posted || !active || !READ_ONCE(pr->group->senders))
		return;
	pr->group->used_ns += riso_cost_of(rd, posted, 0, rd->cfg.max_rate);
	riso_line_note_active(&rd->arb[dir], pr->group, now);
}

/* See what a process has done, and what it wants. */
static u64 read_path(struct riso_process *pr, struct riso_process_path *ud, u64 now)
{
	u64 posted, debt, need;

	need = riso_grant_read(pr, ud, now, &posted, &debt);
	update_process_load(pr, ud);
	note_posted(pr, ud->dir, posted, !riso_userpath_is_held(pr, ud), now);
	if (!READ_ONCE(pr->group->senders))
		return 0;
	charge_debt(pr, ud, debt, now);
	return riso_userpath_is_held(pr, ud) ? need : 0;
}

/* See what it has posted besides. It is for process context, see riso_grant_read_passed(). */
static void read_passed(struct riso_process *pr, enum riso_dir dir, u64 now)
{
	note_posted(pr, dir, riso_grant_read_passed(pr, dir), pr->mode == RISO_USER_OPEN, now);
}

static void set_asking(struct riso_process *pr, enum riso_dir dir, bool asks, u64 now)
{
	struct riso_group_dir *gd = &pr->group->dir[dir];
	struct riso_dev *rd = pr->rd;

	if (gd->asks == asks)
		return;
	if (asks) {
		riso_line_enter(rd, dir, gd, now);
		gd->asks = true;
		rd->asking++;
	} else {
		gd->asks = false;
		riso_line_leave(rd, dir, gd, now);
		rd->asking--;
	}
}

/* Tell a process how to post, unless it knows. */
static void update_process(struct riso_process *pr)
{
	struct riso_dev *rd = pr->rd;
	u32 i;

	if (pr->pacings == rd->pacings)
		return;
	pr->pacings = rd->pacings;
	for (i = 0; i < pr->paths; i++)
		update_process_load(pr, &pr->path[i]);
	riso_grant_pace(pr, &rd->pacing);
}

/* Does it want something? One that is stopped does not, until it calls. */
static void look_at_process(struct riso_process *pr, bool calls, u64 now)
{
	u32 i;

	update_process(pr);
	riso_grant_looked(pr, now);
	for (i = 0; i < pr->paths; i++) {
		struct riso_process_path *ud = &pr->path[i];

		if (!read_path(pr, ud, now)) {
			riso_userpath_rest(ud, now);
			continue;
		}
		if (!calls && ud->behind)
			continue;
		ud->called |= calls;
		if (!riso_userpath_waits(ud, now))
			set_asking(pr, ud->dir, true, now);
	}
}

/**
 * riso_process_admit - let a path of a process that has waited for its limit ask
 * @pr: the process
 * @ud: the path, whose limit allows something
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_process_admit(struct riso_process *pr, struct riso_process_path *ud, u64 now)
{
	lockdep_assert_held(&pr->rd->lock);
	set_asking(pr, ud->dir, true, now);
}

/**
 * riso_process_read_some - look at what some of the processes say, in turn
 * @rd: the device
 * @now: time, ns
 *
 * Most of these are such as have something in the device: others may wait for that to be done.
 *
 * Context: under &riso_dev.lock.
 */
void riso_process_read_some(struct riso_dev *rd, u64 now)
{
	int left = RISO_PROCESS_VISITS;
	struct riso_process *pr, *tmp;
	LIST_HEAD(laden);
	LIST_HEAD(seen);

	lockdep_assert_held(&rd->lock);
	list_for_each_entry_safe(pr, tmp, &rd->laden, laden) {
		if (left == RISO_PROCESS_VISITS - RISO_LADEN_VISITS)
			break;
		left--;
		/* A look takes it out of this list if it has nothing there any more. */
		list_move_tail(&pr->laden, &laden);
		look_at_process(pr, false, now);
		list_move_tail(&pr->list, &seen);
	}
	list_splice_tail(&laden, &rd->laden);
	list_for_each_entry_safe(pr, tmp, &rd->processes, list) {
		if (!left)
			break;
		left--;
		look_at_process(pr, false, now);
		list_move_tail(&pr->list, &seen);
	}
	list_splice_tail(&seen, &rd->processes);
}

/*
 * How far a grant may be ahead of the clock: its owner has to wake up first. What it
 * is early by stands in front of small messages.
 */
static u64 grant_lead(const struct riso_dev *rd)
{
	return rd->paces_chunks ? RISO_LEAD_NS : RISO_TICK_NS;
}

/* Half of what may stand in the device at most, so that two take turns. */
static u64 largest_open_grant(const struct riso_dev *rd)
{
	u64 most = riso_bytes_in(RISO_OPEN_GRANT_NS, rd->cfg.max_rate);

	return max_t(u64, 2 * RISO_OPEN_CHUNK, min(most, riso_open_window(rd) / 2));
}

/*
 * Bytes of a grant that lasts for @ns, and for a tick at least. While there are latency flows these
 * are whole chunks: what is left over of many grants would be one chunk more, at once with another.
 */
static u64 grant_of(const struct riso_dev *rd, u64 ns)
{
	u64 most, piece;

	if (!riso_is_shaped(rd))
		return largest_open_grant(rd);
	most = riso_bytes_in(max_t(u64, RISO_TICK_NS, ns), rd->cfg.safe_util);
	piece = riso_piece_wire(riso_chunk_round(rd->chunk, rd->mtu), rd->mtu);
	return piece * max_t(u64, 1, div64_u64(most, piece));
}

/* What late timers miss is given at once. */
static u64 largest_grant(const struct riso_dev *rd)
{
	return grant_of(rd, riso_grant_lag(rd));
}

/*
 * No grant is for less than this. RISO_RUN_BATCHES of the least make one that lasts for a tick, so
 * the clock or the window ends a run, even if all ask for little.
 */
static u64 least_grant(const struct riso_dev *rd)
{
	return max_t(u64, RISO_GRANT_MIN, grant_of(rd, 0) / RISO_RUN_BATCHES);
}

/* A grant for one piece of messages that are cut to @cut bytes: less would be of no use. */
static u64 smallest_grant(const struct riso_dev *rd, u32 cut)
{
	u32 chunk = riso_chunk_round(cut, rd->mtu);

	return max_t(u64, RISO_GRANT_MIN, riso_piece_wire(chunk, rd->mtu));
}

/* Bytes leave the window when their process tells so. */
static bool open_window_full(struct riso_dev *rd, enum riso_dir dir, u64 bytes, u64 now)
{
	const struct riso_pacer *p = &rd->arb[dir].pacer;
	u64 limit = riso_open_window(rd);

	if (!riso_pacer_is_full(p, limit, bytes))
		return false;
	riso_process_read_some(rd, now);
	return riso_pacer_is_full(p, limit, bytes);
}

/*
 * A process that polls wants something again soon, and would have to call for it. For as long as
 * its grant is good, the timer looks instead.
 */
static void linger(struct riso_process *pr, u64 now)
{
	struct riso_dev *rd = pr->rd;

	if (!riso_grant_polls(pr))
		return;
	rd->linger_ns = now + RISO_GRANT_NS;
	riso_grant_linger(pr, rd->linger_ns);
}

/*
 * The path of a process that has its turn in a direction: one for which it wants something and may
 * have it, or NULL.
 */
static struct riso_process_path *choose_path(struct riso_process *pr, enum riso_dir dir, u64 now,
					     u64 *need)
{
	struct riso_process_path *ud;
	u32 n;

	for (n = 0; n < pr->paths; n++) {
		ud = &pr->path[(pr->next[dir] + n) % pr->paths];
		if (ud->dir != dir)
			continue;
		*need = read_path(pr, ud, now);
		/* One that let a grant go by may be stopped, however long it stands in line. */
		if (!*need || (ud->lapsed && !ud->called) || riso_userpath_waits(ud, now))
			continue;
		return ud;
	}
	return NULL;
}

/**
 * riso_process_grant - give the process whose turn it is a grant, if there may be one now
 * @rd: the device
 * @dir: direction
 * @pr: the process
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 * Return: true to go on with the one whose turn it is then.
 */
bool riso_process_grant(struct riso_dev *rd, enum riso_dir dir, struct riso_process *pr, u64 now)
{
	struct riso_arb *a = &rd->arb[dir];
	struct riso_process_path *ud;
	struct riso_bill bill;
	u64 begin = now;
	u64 need, bytes;

	lockdep_assert_held(&rd->lock);
	/* The run has no drops left: the next round goes on here, or the timer. */
	if (!rd->drops && rd->state == RISO_DEV_ENABLE)
		return false;
	ud = choose_path(pr, dir, now, &need);
	if (!ud) {
		set_asking(pr, dir, false, now);
		rd->drops -= !!rd->drops;
		return true;
	}
	/* What is granted counts against a limit, so it is no more than what is wanted. */
	bytes = clamp(need, ud->limit ? RISO_GRANT_MIN : least_grant(rd), largest_grant(rd));
	if (riso_grant_shrinks(ud))
		bytes = min(bytes, smallest_grant(rd, rd->chunk));
	bytes = min(bytes, max(riso_userpath_credit(ud, now),
			       smallest_grant(rd, riso_grant_cut(pr, ud))));
	if (!rd->grants[dir]) {
		rd->want_ns = min(rd->want_ns, now + RISO_TICK_NS / 2);
		return false;
	}
	if (riso_is_shaped(rd)) {
		if (a->pacer.next > now + riso_tick(rd) + grant_lead(rd)) {
			rd->stats[RISO_STAT_THROTTLE_CLOCK]++;
			riso_estimate_wait(&a->estimate);
			riso_pressure_why(&a->hold, RISO_WHY_CLOCK, now);
			rd->want_ns = min(rd->want_ns,
					  a->pacer.next - grant_lead(rd) - riso_tick(rd) / 2);
			return false;
		}
		begin = max(begin, a->pacer.next);
		/* What it completes is not measured. */
		riso_estimate_wait(&a->estimate);
	} else if (open_window_full(rd, dir, bytes, now)) {
		rd->stats[RISO_STAT_THROTTLE_WINDOW]++;
		riso_pressure_why(&a->hold, RISO_WHY_WINDOW, now);
		rd->want_ns = min(rd->want_ns, now + RISO_REAP_MAX_NS);
		return false;
	}
	riso_pressure_why(&a->hold, RISO_WHY_NONE, now);
	rd->grants[dir]--;
	a->turn_ns = now;
	riso_grant_give(pr, ud, bytes, begin + RISO_GRANT_NS, now);
	pr->next[dir] = ud - pr->path + 1;
	riso_userpath_charge(ud, bytes, now);
	bill = (struct riso_bill){
		.wire = bytes,
		.busy_ns = riso_cost_of(rd, bytes, 0, riso_pace(rd, dir)),
		.grant = true,
	};
	riso_line_charge(rd, dir, pr->group, &bill, now);
	update_process_load(pr, ud);
	linger(pr, now);
	trace_user_grant(pr, ud, bytes);
	return true;
}

static struct riso_pacing make_pacing(const struct riso_dev *rd, u64 now)
{
	bool contested = now < rd->arb[RISO_TX].contested_ns ||
			 now < rd->arb[RISO_RX].contested_ns;
	struct riso_pacing p;
	u64 late;

	/* With what lies between its members, as it is compared. */
	memset(&p, 0, sizeof(p));
	p.chunk = RISO_OPEN_CHUNK;
	p.slice_ns = min_t(u64, paced_slice(rd), U32_MAX);
	p.sparse = riso_chunk_wire(rd);
	p.window = U64_MAX;
	p.over_target = riso_over_target(rd);
	if (riso_is_shaped(rd)) {
		p.rate = rd->cfg.safe_util;
		/* What late timers give at once has to fit. */
		late = riso_bytes_in(riso_missed(rd), rd->cfg.safe_util);
		p.chunk = riso_chunk_fill(rd->chunk, late, RISO_LATE_PIECES, RISO_OPEN_CHUNK);
		/* Twice, as the module reads late what a process says of completions. */
		p.window = 2 * rd->window + RISO_LATE_PARTS * late +
			   riso_bytes_in(RISO_PATH_NS, rd->cfg.max_rate);
	}
	if (rd->state == RISO_DEV_ENABLE && (riso_is_shaped(rd) || contested))
		p.mode = RISO_USER_PACED;
	if (rd->cfg.max_ops)
		p.op_bytes = min_t(u64, U32_MAX, div64_u64(rd->cfg.max_rate,
							   rd->cfg.max_ops));
	return p;
}

/* How processes shall post now */
static void update_pacing(struct riso_dev *rd)
{
	struct riso_pacing p = make_pacing(rd, ktime_get_ns());

	if (!memcmp(&p, &rd->pacing, sizeof(p)))
		return;
	rd->pacing = p;
	rd->pacings++;
}

/*
 * Do something about each process, a few at a time, so that nobody waits for all of them. Others
 * move those that they have looked at behind the rest, too, so one may be left out.
 */
static void visit_all(struct riso_dev *rd, void (*visit)(struct riso_process *pr))
{
	struct riso_process *pr;
	u32 left;
	int n;

	spin_lock_irq(&rd->lock);
	for (left = rd->num_processes; left; ) {
		for (n = 0; left && n < RISO_PROCESS_VISITS; n++, left--) {
			pr = list_first_entry_or_null(&rd->processes, struct riso_process, list);
			if (!pr)
				break;
			visit(pr);
			list_move_tail(&pr->list, &rd->processes);
		}
		if (!n)
			break;
		spin_unlock_irq(&rd->lock);
		spin_lock_irq(&rd->lock);
	}
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_process_refresh_all - tell processes how they shall post
 * @rd: the device
 *
 * One that is left out is told by whoever has moved it, or by the watch.
 *
 * Context: may sleep, under no lock that is taken inside &riso_dev.mutex.
 */
void riso_process_refresh_all(struct riso_dev *rd)
{
	spin_lock_irq(&rd->lock);
	update_pacing(rd);
	spin_unlock_irq(&rd->lock);
	visit_all(rd, update_process);
}

/**
 * riso_process_forget_all - what processes have done until now does not count
 * @rd: a device that does not post yet
 *
 * Context: &riso_dev.mutex, so that none joins, may sleep.
 */
void riso_process_forget_all(struct riso_dev *rd)
{
	lockdep_assert_held(&rd->mutex);
	visit_all(rd, riso_grant_forget);
}

/**
 * riso_process_ask - a process says that it wants something
 * @pr: the process
 *
 * Context: under &riso_dev.lock.
 */
void riso_process_ask(struct riso_process *pr)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&pr->rd->lock);
	riso_limits_note_late(pr->rd, now);
	if (!pr->gone)
		look_at_process(pr, true, now);
}

/**
 * riso_process_join - a process takes part from now on
 * @pr: the process
 *
 * Context: under &riso_dev.lock.
 * Return: 0; -EBUSY if it does already; -ENODEV.
 */
int riso_process_join(struct riso_process *pr)
{
	struct riso_dev *rd = pr->rd;
	u64 now = ktime_get_ns();
	int dir;

	lockdep_assert_held(&rd->lock);
	if (rd->state == RISO_DEV_GONE)
		return -ENODEV;
	if (pr->group->process)
		return -EBUSY;
	WRITE_ONCE(rd->num_processes, rd->num_processes + 1);
	pr->group->process = pr;
	for (dir = 0; dir < RISO_DIRS; dir++)
		pr->group->dir[dir].slice_start_ns = now;
	list_add_tail(&pr->list, &rd->processes);
	update_pacing(rd);
	pr->pacings = rd->pacings - 1;
	update_process(pr);
	return 0;
}

/**
 * riso_process_leave - a process does not take part any more
 * @pr: the process; may have left before
 *
 * Context: process, under &riso_dev.lock.
 */
void riso_process_leave(struct riso_process *pr)
{
	struct riso_pacing open = { .mode = RISO_USER_OPEN };
	struct riso_process_path *ud;
	u64 now = ktime_get_ns();
	int dir;
	u32 i;

	lockdep_assert_held(&pr->rd->lock);
	if (pr->gone)
		return;
	WRITE_ONCE(pr->gone, true);
	WRITE_ONCE(pr->modes, pr->modes + 1);
	WRITE_ONCE(pr->rd->num_processes, pr->rd->num_processes - 1);
	for (i = 0; i < pr->paths; i++) {
		ud = &pr->path[i];
		if (pr->rd->running)
			read_path(pr, ud, now);
		pr->rd->arb[ud->dir].pacer.load -= ud->load;
		pr->rd->arb[ud->dir].process_load -= ud->load;
		riso_userpath_unbind(ud, now);
	}
	for (dir = 0; dir < RISO_DIRS; dir++) {
		if (pr->rd->running)
			read_passed(pr, dir, now);
		set_asking(pr, dir, false, now);
	}
	list_del_init(&pr->list);
	list_del_init(&pr->laden);
	pr->group->process = NULL;
	riso_grant_pace(pr, &open);
	wake_up_all(&pr->wait);
}

/**
 * riso_process_leave_all - the device goes, nobody takes part any more
 * @rd: the device, which nobody can join
 *
 * Context: may sleep.
 */
void riso_process_leave_all(struct riso_dev *rd)
{
	struct riso_process *pr;
	int n = 0;

	spin_lock_irq(&rd->lock);
	while ((pr = list_first_entry_or_null(&rd->processes, struct riso_process, list))) {
		riso_process_leave(pr);
		if (++n % RISO_PROCESS_VISITS)
			continue;
		spin_unlock_irq(&rd->lock);
		spin_lock_irq(&rd->lock);
	}
	spin_unlock_irq(&rd->lock);
}

static void watch_process(struct riso_process *pr)
{
	u64 now = ktime_get_ns();
	int dir;

	look_at_process(pr, false, now);
	for (dir = 0; dir < RISO_DIRS; dir++)
		read_passed(pr, dir, now);
}

/**
 * riso_process_watch - see who is active, a few at a time
 * @rd: the device
 *
 * One that is left out is seen the next time.
 *
 * Context: may sleep.
 * Return: how many processes take part.
 */
u32 riso_process_watch(struct riso_dev *rd)
{
	u32 processes = READ_ONCE(rd->num_processes);

	visit_all(rd, watch_process);
	riso_process_refresh_all(rd);
	return processes;
}
