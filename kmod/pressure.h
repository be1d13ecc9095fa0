/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who waits, what for and behind whom.
 */
#ifndef RISO_PRESSURE_H
#define RISO_PRESSURE_H

#include <linux/list.h>
#include <linux/types.h>

struct riso_arb;
struct riso_dev;

enum {
	/* Groups that a group is known to have waited for, by time. */
	RISO_BEHIND = 8,
	/* Shares of the last 10, 60 and 300 seconds. */
	RISO_AVGS = 3,
};

/**
 * enum riso_why - what keeps an arbiter from posting
 * @RISO_WHY_NONE: nothing
 * @RISO_WHY_CLOCK: the device has work until later than now
 * @RISO_WHY_WINDOW: enough is posted and not completed
 */
enum riso_why {
	RISO_WHY_NONE,
	RISO_WHY_CLOCK,
	RISO_WHY_WINDOW,
	RISO_WHYS,
};

/**
 * struct riso_waiters - who waits for an arbiter
 * @waiting: places of groups that wait, the one looked at longest ago first
 * @waits: how many
 * @why: what keeps the arbiter from posting
 * @why_ns: since when, or since it was added to @spent last
 * @spent: time that each was the reason, sum
 */
struct riso_waiters {
	struct list_head waiting;
	u32 waits;
	enum riso_why why;
	u64 why_ns;
	u64 spent[RISO_WHYS];
};

/**
 * struct riso_wait - a group waits for its turn in one direction
 * @node: in &riso_waiters.waiting while it does
 * @p: the group's sums
 * @mark: &riso_waiters.spent at the begin, or when it was added to @p last
 */
struct riso_wait {
	struct list_head node;
	struct riso_pressure *p;
	u64 mark[RISO_WHYS];
};

/**
 * struct riso_behind - what another group used while a group stood in line
 * @group: id of the other group, 0 for none
 * @ns: device time
 */
struct riso_behind {
	u32 group;
	u64 ns;
};

/**
 * struct riso_pressure - what a group had to wait, all times in ns
 * @held: work requests that its flows hold
 * @ready: directions in which it waits for its turn
 * @serving: flows of it that are posting
 * @asides: flows of it that wait aside for their peers
 * @counted_ns: up to when @stall_ns, @path_ns and @own_ns count
 * @stall_ns: time in which it had something to post and did not
 * @path_ns: that part of it in which the limit of a path kept it
 * @own_ns: that part of it in which nothing but its own limits kept it
 * @why_ns: time in line for each reason, of both directions together
 * @behind: who used most meanwhile
 * @others_ns: what those used that had to leave @behind
 * @averaged_ns: @stall_ns at the last average
 * @avg: shares of time, as calc_load() keeps them
 */
struct riso_pressure {
	u32 held;
	u32 ready;
	u32 serving;
	u32 asides;
	u64 counted_ns;
	u64 stall_ns;
	u64 path_ns;
	u64 own_ns;
	u64 why_ns[RISO_WHYS];
	struct riso_behind behind[RISO_BEHIND];
	u64 others_ns;
	u64 averaged_ns;
	unsigned long avg[RISO_AVGS];
};

/**
 * struct riso_pressure_info - the same as a dump shows it
 * @held: work requests that its flows hold
 * @stall_ns: &riso_pressure.stall_ns
 * @path_ns: &riso_pressure.path_ns
 * @own_ns: &riso_pressure.own_ns
 * @clock_ns: &riso_pressure.why_ns of the clock
 * @window_ns: &riso_pressure.why_ns of the window
 * @behind: in no order, ends at the first without a group
 * @others_ns: see &struct riso_pressure
 * @avg: in 1/100 percent
 */
struct riso_pressure_info {
	u32 held;
	u64 stall_ns;
	u64 path_ns;
	u64 own_ns;
	u64 clock_ns;
	u64 window_ns;
	struct riso_behind behind[RISO_BEHIND];
	u64 others_ns;
	u32 avg[RISO_AVGS];
};

void riso_pressure_hold(struct riso_pressure *p, u32 n, u64 now);
void riso_pressure_release(struct riso_pressure *p, u32 n);
void riso_pressure_serve(struct riso_pressure *p, bool begin, u64 now);
void riso_pressure_aside(struct riso_pressure *p, bool begin, u64 now);
void riso_pressure_begin(struct riso_waiters *h, struct riso_wait *w, u64 now);
void riso_pressure_end(struct riso_waiters *h, struct riso_wait *w, u64 now);
void riso_pressure_change(struct riso_waiters *h, enum riso_why why, u64 now);
void riso_pressure_take(struct riso_waiters *h, const struct riso_pressure *p,
			u32 group, u64 cost);
void riso_pressure_sync(struct riso_waiters *h, struct riso_wait *w, u64 now);
void riso_pressure_average(struct riso_pressure *p, u64 period, u64 now);
void riso_pressure_info(struct riso_pressure *p, u64 now,
			struct riso_pressure_info *info);

/**
 * riso_pressure_why - why an arbiter does not post
 * @h: of the arbiter
 * @why: from now on
 * @now: time, ns
 */
static inline void riso_pressure_why(struct riso_waiters *h, enum riso_why why, u64 now)
{
	if (h->why != why)
		riso_pressure_change(h, why, now);
}

#endif /* RISO_PRESSURE_H */
