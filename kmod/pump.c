// SPDX-License-Identifier: GPL-2.0
/*
 * The pump: the timer that keeps a device posting.
 *
 * Owns &riso_dev.timer and whether it may be armed, under &riso_dev.lock. The timer runs in
 * hard interrupt context, on PREEMPT_RT in softirq. The scheduler arms it.
 */

#include <linux/hrtimer.h>

#include "compat.h"
#include "cq_poll.h"
#include "flow.h"
#include "limits.h"
#include "peer.h"
#include "process.h"
#include "pump.h"
#include "sched.h"
#include "trace.h"
#include "turn.h"
#include "userpath.h"
#include "window.h"

enum {
	/* What nobody polls is looked for after 25 us, ... */
	LOOK_MIN_NS = RISO_TICK_NS / 2,
	/* ... and after 100 us where completions have driven each time. */
	LOOK_MAX_NS = 2 * RISO_TICK_NS,
	/* Flows that try again together, and how long the next ones wait */
	PARKED_MAX = 64,
	PARKED_NS = NSEC_PER_MSEC,
	/* Flows that have waited for peers and try again together, and limits looked at for that */
	PEERS_MAX = 16,
	PEERS_LOOKS = 64,
};

/*
 * The timer was armed to look for completions. If some have driven the scheduler meanwhile, it
 * looks later, and less often. But they may be of another CQ, so it is not put off for long, and
 * not at all while the reaper stands in for events.
 */
static bool looks_later(struct riso_dev *rd, u64 now)
{
	lockdep_assert_held(&rd->lock);
	if (!rd->looks || now - rd->ran_ns > LOOK_MIN_NS || !list_empty(&rd->parked) ||
	    !list_empty(&rd->busy_peers) || !list_empty(&rd->quiet) ||
	    now - rd->looked_for_ns > RISO_REAP_MAX_NS)
		return false;
	rd->look_ns = min_t(u64, 2 * rd->look_ns, LOOK_MAX_NS);
	riso_sched_arm(rd, now);
	return true;
}

/*
 * Have flows try again whose provider was full: some, as interrupts are off, and the others soon.
 * Who is to wait for longer stands behind these then.
 */
static void wake_parked(struct riso_dev *rd, u64 now)
{
	struct riso_flow *f, *tmp;
	int left = PARKED_MAX;
	LIST_HEAD(waiting);

	lockdep_assert_held(&rd->lock);
	list_for_each_entry_safe(f, tmp, &rd->parked, arb) {
		if (!left--) {
			rd->want_ns = min(rd->want_ns, now + PARKED_NS);
			break;
		}
		if (now < f->retry_ns) {
			rd->want_ns = min(rd->want_ns, f->retry_ns);
			list_move_tail(&f->arb, &waiting);
		} else {
			riso_turn_wake(f, now);
		}
	}
	list_splice_tail(&waiting, &rd->parked);
}

/* Have flows try again whose peers let them: those that wait for the same one compete then. */
static void wake_peers(struct riso_dev *rd, u64 now)
{
	struct riso_peer_limit *l, *first = NULL;
	int looks = PEERS_LOOKS, left = PEERS_MAX;
	struct riso_process_path *ud;
	struct riso_flow *f;

	lockdep_assert_held(&rd->lock);
	while (left && looks && (l = riso_peer_next_busy(rd)) && l != first) {
		first = first ?: l;
		looks--;
		/* One of these and one of those: neither waits for all of the others. */
		do {
			f = riso_peer_first(rd, l, now);
			if (f) {
				riso_turn_admit(f, now);
				left--;
			}
			ud = left ? riso_userpath_first(rd, l, now) : NULL;
			if (ud) {
				riso_process_admit(ud->process, ud, now);
				left--;
			}
		} while (left && (f || ud));
	}
	if (!left || !looks)
		rd->want_ns = min(rd->want_ns, now + RISO_TICK_NS);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct riso_dev *rd = container_of(timer, struct riso_dev, timer);
	unsigned long flags;
	u64 late = 0;
	bool found, looked;
	int rounds;
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
	riso_limits_note_late(rd, now);
	WRITE_ONCE(rd->timer_ns, U64_MAX);
	if (looks_later(rd, now)) {
		spin_unlock_irqrestore(&rd->lock, flags);
		return HRTIMER_NORESTART;
	}
	looked = rd->looks;
	rd->looked_for_ns = now;
	if (now < rd->linger_ns)
		riso_process_read_some(rd, now);
	wake_parked(rd, now);
	wake_peers(rd, now);
	spin_unlock_irqrestore(&rd->lock, flags);

	found = riso_cq_reap(rd);
	rounds = riso_sched_rounds();
	spin_lock_irqsave(&rd->lock, flags);
	/* A peer that is gone is not looked for at every tick. */
	if (found)
		rd->look_ns = LOOK_MIN_NS;
	else if (looked)
		rd->look_ns = min_t(u64, 2 * rd->look_ns, RISO_REAP_MAX_NS);
	riso_sched_go(rd, NULL, rounds, &flags, ktime_get_ns());
	spin_unlock_irqrestore(&rd->lock, flags);
	return HRTIMER_NORESTART;
}

/**
 * riso_pump_init - make the scheduler of a new device
 * @rd: the device
 */
void riso_pump_init(struct riso_dev *rd)
{
	int dir;

	for (dir = 0; dir < RISO_DIRS; dir++) {
		riso_estimate_restart(&rd->arb[dir].estimate);
		rd->arb[dir].bounds = 1;
		INIT_LIST_HEAD(&rd->arb[dir].hold.waiting);
	}
	INIT_LIST_HEAD(&rd->urgent);
	INIT_LIST_HEAD(&rd->parked);
	INIT_LIST_HEAD(&rd->busy_peers);
	INIT_LIST_HEAD(&rd->quiet);
	INIT_LIST_HEAD(&rd->reap);
	INIT_LIST_HEAD(&rd->stale);
	INIT_LIST_HEAD(&rd->managed);
	INIT_LIST_HEAD(&rd->news);
	INIT_LIST_HEAD(&rd->processes);
	INIT_LIST_HEAD(&rd->laden);
	init_waitqueue_head(&rd->wait);
	rd->mtu = ib_mtu_enum_to_int(IB_MTU_1024);
	rd->want_ns = U64_MAX;
	rd->look_ns = LOOK_MIN_NS;
	WRITE_ONCE(rd->timer_ns, U64_MAX);
	hrtimer_setup(&rd->timer, timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED);
}

/**
 * riso_pump_start - let the timer run
 * @rd: the device, with nothing held
 *
 * Context: &riso_dev.mutex, may sleep.
 */
void riso_pump_start(struct riso_dev *rd)
{
	/* Before the timer looks at them. */
	riso_process_forget_all(rd);
	spin_lock_irq(&rd->lock);
	rd->running = true;
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_pump_stop - let the timer run no more
 * @rd: the device
 *
 * Nobody arms it any more. One that is armed stays so until riso_pump_cancel().
 *
 * Context: may sleep.
 */
void riso_pump_stop(struct riso_dev *rd)
{
	spin_lock_irq(&rd->lock);
	rd->running = false;
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_pump_cancel - take the timer back, and wait for it if it runs
 * @rd: the device, which nobody runs any more
 *
 * Context: may sleep.
 */
void riso_pump_cancel(struct riso_dev *rd)
{
	hrtimer_cancel(&rd->timer);
	WRITE_ONCE(rd->timer_ns, U64_MAX);
}
