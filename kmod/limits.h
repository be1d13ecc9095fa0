/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the settings of a device allow: cost, window, token, pace.
 *
 * Everything here reads settings and measurements under &riso_dev.lock, except where it says so.
 */
#ifndef RISO_LIMITS_H
#define RISO_LIMITS_H

#include <linux/math64.h>
#include <linux/minmax.h>

#include "core/units.h"
#include "dev.h"

enum {
	/*
	 * A timer costs microseconds. Where a chunk takes less than 50 us, the clock may
	 * be off by as much, and events of the provider tell of completions.
	 */
	RISO_TICK_NS = 50 * NSEC_PER_USEC,
	/*
	 * A turn is 200 us of device time, if no token size was set. The slice of a sparse
	 * group is as long by the clock.
	 */
	RISO_SLICE_NS = 200 * NSEC_PER_USEC,
	/* How late timers were is forgotten in 50 ms. */
	RISO_LATE_NS = 50 * NSEC_PER_MSEC,
	/* What late timers miss is made up for 5 ms back: half of the time a grant is good. */
	RISO_MAKE_UP_NS = 5 * NSEC_PER_MSEC,
	/* The window of a device that nobody shapes is 2 ms of its rate, ... */
	RISO_OPEN_NS = 2 * NSEC_PER_MSEC,
	/* ... at least 256 KB, which is a few messages of storage, ... */
	RISO_OPEN_MIN = 256 * 1024,
	/* ... and at most 8 MB, which is what such a device may make others wait for. */
	RISO_OPEN_MAX = 8 * 1024 * 1024,
};

/**
 * riso_is_shaped - does the device cut and pace bulk?
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: true while it has a latency flow, or answers one of another host, and chunks are on.
 */
static inline bool riso_is_shaped(const struct riso_dev *rd)
{
	return (rd->latency_flows || rd->steer.peer_latency) && rd->chunk;
}

/**
 * riso_is_clocked - does the clock hold bulk of the kernel back?
 * @rd: the device
 *
 * If SafeUtil is MaxRate nobody has said that the device needs room, and MaxRate may be a guess
 * that is too low. Then the window alone keeps queues short, whatever the device can do. But
 * without a window the clock has to, and only the clock knows MaxOps.
 *
 * Context: under &riso_dev.lock.
 * Return: true while the device is shaped and the clock counts.
 */
static inline bool riso_is_clocked(const struct riso_dev *rd)
{
	return riso_is_shaped(rd) && (rd->cfg.safe_util < rd->cfg.max_rate ||
				      rd->cfg.max_ops || !rd->cfg.inflight_bytes);
}

/**
 * riso_rate - what the device can do, as far as known
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: MaxRate, or more if more was delivered, bytes per second.
 */
static inline u64 riso_rate(const struct riso_dev *rd)
{
	return max(rd->cfg.max_rate, rd->delivered);
}

/**
 * riso_cost_of - device time of a post
 * @rd: the device
 * @bytes: its wire bytes
 * @ops: its messages
 * @rate: bytes per second
 *
 * Return: max(@bytes / @rate, @ops / MaxOps), ns.
 */
static inline u64 riso_cost_of(const struct riso_dev *rd, u64 bytes, u32 ops, u64 rate)
{
	u64 ns = riso_time_of(bytes, rate);

	if (rd->cfg.max_ops)
		ns = max(ns, riso_time_of(ops, rd->cfg.max_ops));
	return ns;
}

/**
 * riso_chunk_wire - wire bytes of a chunk
 * @rd: the device
 *
 * Return: bytes, with a sixteenth for headers, which suffices from an MTU of 1024 on.
 */
static inline u64 riso_chunk_wire(const struct riso_dev *rd)
{
	return rd->chunk + rd->chunk / 16;
}

/**
 * riso_speed - rate at which a queue in the device gets shorter
 * @rd: the device
 * @dir: direction
 *
 * Context: under &riso_dev.lock.
 * Return: bytes per second.
 */
static inline u64 riso_speed(const struct riso_dev *rd, enum riso_dir dir)
{
	return riso_estimate_speed(&rd->arb[dir].estimate, riso_rate(rd));
}

/**
 * riso_drain - rate at which all that was posted leaves the device
 * @rd: the device
 * @dir: direction
 *
 * What is behind the device may be slower than it.
 *
 * Context: under &riso_dev.lock.
 * Return: bytes per second.
 */
static inline u64 riso_drain(const struct riso_dev *rd, enum riso_dir dir)
{
	return min(riso_speed(rd, dir), rd->arb[dir].estimate.ceiling);
}

/**
 * riso_window_covered - find what may be out of a shaped device
 * @rd: the device
 * @dir: direction
 *
 * What has left the device while completions, or the timer, are late does not stand in it.
 *
 * Context: under &riso_dev.lock.
 * Return: bytes; the window, and what leaves meanwhile.
 */
static inline u64 riso_window_covered(const struct riso_dev *rd, enum riso_dir dir)
{
	if (rd->cfg.inflight_bytes != RISO_AUTO)
		return rd->window;
	return rd->window + riso_estimate_covered(&rd->arb[dir].estimate,
						  !list_empty(&rd->processes), riso_rate(rd));
}

/**
 * riso_open_window - what may stand in a device that several groups share and nobody shapes
 * @rd: the device
 *
 * Return: bytes.
 */
static inline u64 riso_open_window(const struct riso_dev *rd)
{
	return clamp_t(u64, riso_bytes_in(RISO_OPEN_NS, rd->cfg.max_rate),
		       RISO_OPEN_MIN, RISO_OPEN_MAX);
}

/**
 * riso_token - how much a flow posts in its turn
 * @rd: the device
 *
 * Return: bytes.
 */
static inline u64 riso_token(const struct riso_dev *rd)
{
	if (rd->cfg.token_bytes != RISO_AUTO)
		return rd->cfg.token_bytes;
	return max_t(u64, 2 * rd->chunk,
		     riso_bytes_in(RISO_SLICE_NS, rd->cfg.safe_util));
}

/**
 * riso_whole - the rate that the SafeUtil in force is a part of
 * @rd: the device
 *
 * An agent that has nobody to measure with lends the operator's own.
 *
 * Context: under &riso_dev.lock, or in a section of &riso_dev.cfg_seq.
 * Return: bytes per second.
 */
static inline u64 riso_whole(const struct riso_dev *rd)
{
	bool steered = rd->steer.pid && rd->cfg.safe_util != rd->own.safe_util;

	return riso_estimate_whole(rd->cfg.safe_util, rd->cfg.max_rate, steered);
}

/**
 * riso_pace - rate that the clock runs at
 * @rd: the device
 * @dir: direction
 *
 * Context: under &riso_dev.lock.
 * Return: bytes per second.
 */
static inline u64 riso_pace(const struct riso_dev *rd, enum riso_dir dir)
{
	return riso_estimate_pace(rd->cfg.safe_util, riso_whole(rd),
				  rd->arb[dir].estimate.ceiling);
}

/**
 * riso_over_target - has the agent found that Target99 is missed?
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: true if Current99 is above Target99, false if it is not or if nobody knows.
 */
static inline bool riso_over_target(const struct riso_dev *rd)
{
	lockdep_assert_held(&rd->lock);
	return rd->steer.target99_ns &&
	       rd->steer.current99_ns > rd->steer.target99_ns;
}

/**
 * riso_tick - how far the clock may be ahead of the time
 * @rd: the device
 *
 * Return: ns, 0 if a timer can pace single chunks.
 */
static inline u64 riso_tick(const struct riso_dev *rd)
{
	return rd->paces_chunks ? 0 : RISO_TICK_NS;
}

/**
 * riso_completions_drive - do completions make room faster than a timer should?
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: true if so; the timer looks after completions that nobody polls then.
 */
static inline bool riso_completions_drive(const struct riso_dev *rd)
{
	return riso_is_shaped(rd) && !rd->paces_chunks;
}

/**
 * riso_timer_late - how late the timer is on this host
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: ns, a mean.
 */
static inline u64 riso_timer_late(const struct riso_dev *rd)
{
	return rd->stats[RISO_STAT_LATE_NS];
}

/**
 * riso_lag - how far the clock may be behind the time
 * @rd: the device
 *
 * Where the timer is late the clock is, too, and completions drive. Without a window nothing
 * would keep what was missed from going out as a burst.
 *
 * Context: under &riso_dev.lock.
 * Return: ns.
 */
static inline u64 riso_lag(const struct riso_dev *rd)
{
	return rd->cfg.inflight_bytes ? max(riso_tick(rd), riso_timer_late(rd)) : riso_tick(rd);
}

/**
 * riso_missed - how much of the time of processes late timers miss
 * @rd: the device
 *
 * Context: under &riso_dev.lock.
 * Return: ns, 0 where timers are good: in whole slices. Without a window nothing is made up for.
 */
static inline u64 riso_missed(const struct riso_dev *rd)
{
	u64 late = min_t(u64, rd->late_ns, RISO_MAKE_UP_NS);

	return rd->cfg.inflight_bytes ? late - late % RISO_SLICE_NS : 0;
}

/**
 * riso_grant_lag - how far the clock may be behind the time when a process is given a grant
 * @rd: the device
 *
 * Where timers are late, what was missed is given together, though it goes out as a burst.
 *
 * Context: under &riso_dev.lock.
 * Return: ns.
 */
static inline u64 riso_grant_lag(const struct riso_dev *rd)
{
	return max(riso_tick(rd), riso_missed(rd));
}

/**
 * riso_limits_rebound - what bounds all flows in one direction has changed
 * @rd: the device
 * @dir: direction
 *
 * Context: under &riso_dev.lock.
 */
static inline void riso_limits_rebound(struct riso_dev *rd, enum riso_dir dir)
{
	struct riso_arb *a = &rd->arb[dir];

	a->covered = riso_window_covered(rd, dir);
	a->bounds += a->bounds == U32_MAX ? 2 : 1;
}

void riso_limits_note_late(struct riso_dev *rd, u64 now);
bool riso_limits_update(struct riso_dev *rd);

#endif /* RISO_LIMITS_H */
