/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a device delivers, and how long a path is: the rules are in estimate.c.
 */
#ifndef RISO_CORE_ESTIMATE_H
#define RISO_CORE_ESTIMATE_H

#include "units.h"

/**
 * struct riso_estimate - what one direction of a device delivers, by its completions
 * @done: bytes that completed since @done_ns
 * @done_ns: when the present sample of the rate began
 * @seen_ns: when a piece completed last
 * @last: the last sample, bytes per second; whoever looks at it sets it to 0
 * @rate: largest sample of this epoch, bytes per second
 * @rate_prev: largest sample of the epoch before, bytes per second
 * @rate_ns: when this epoch began
 * @peak: largest sample since the first one that had not @waited, which is 0 before that, bytes
 *	per second
 * @waited: since @done_ns the device may have waited for a piece, or sent what is not in @done
 * @slack: the same for more than an eighth of a piece's time, or nobody can tell
 * @full: bytes that completed since the last @ceiling in samples without @slack
 * @full_ns: time that these samples took
 * @full_rate: rate of these when @ceiling was measured last, bytes per second
 * @ceiling: what the full device delivered, the better of the last two times, bytes per second,
 *	RISO_NEVER if nobody knows
 * @ceiling_ns: when @ceiling was measured
 * @cover: time for which the device needs work while completions are under way, ns
 */
struct riso_estimate {
	__u64 done;
	__u64 done_ns;
	__u64 seen_ns;
	__u64 last;
	__u64 rate;
	__u64 rate_prev;
	__u64 rate_ns;
	__u64 peak;
	bool waited;
	bool slack;
	__u64 full;
	__u64 full_ns;
	__u64 full_rate;
	__u64 ceiling;
	__u64 ceiling_ns;
	__u64 cover;
};

/**
 * struct riso_path - how long the path of a flow is
 * @rtt_min: smallest delay of this epoch, ns, RISO_NEVER before the first sample
 * @rtt_ns: when this epoch began
 * @probes: the delay is to be measured anew: one piece may be out at a time
 * @ahead_ns: how long that piece waits in the device, at least, for what others have there
 */
struct riso_path {
	__u64 rtt_min;
	__u64 rtt_ns;
	bool probes;
	__u64 ahead_ns;
};

void riso_estimate_restart(struct riso_estimate *e);
bool riso_estimate_complete(struct riso_estimate *e, __u64 own_ns, __u64 begun_ns, __u64 now);
void riso_estimate_dry(struct riso_estimate *e, __u64 own_ns, __u64 dry_ns);
void riso_estimate_rest(struct riso_estimate *e, __u64 own_ns);
void riso_estimate_expire(struct riso_estimate *e, __u64 now);
__u64 riso_estimate_pace(__u64 safe_util, __u64 whole, __u64 ceiling);
void riso_path_restart(struct riso_path *p, __u64 now);
void riso_path_sample(struct riso_path *p, __u64 posted_ns, __u64 own_ns, __u64 now);

/**
 * riso_estimate_path - what a path is taken to hold
 * @e: the estimate
 * @delay_ns: of the path
 * @window: what may stand in the device, bytes
 * @max_rate: MaxRate, bytes per second
 *
 * It holds what goes over it in its delay. What was delivered lately may have been little because
 * a path that holds more than the window was not filled. So it is let grow by a quarter with each
 * sample, and before the first one MaxRate is believed. A shorter path is filled by the window.
 *
 * Return: bytes.
 */
static inline __u64 riso_estimate_path(const struct riso_estimate *e, __u64 delay_ns,
				       __u64 window, __u64 max_rate)
{
	__u64 seen = riso_max(e->rate, e->rate_prev);
	__u64 path;

	path = riso_bytes_in(delay_ns, seen ? riso_min(seen, max_rate) : max_rate);
	if (path > window)
		path = riso_min(path + path / 4, riso_bytes_in(delay_ns, max_rate));
	return path;
}

/**
 * riso_estimate_speed - the rate at which a queue in the device gets shorter
 * @e: the estimate
 * @max_rate: MaxRate, bytes per second
 *
 * Return: the best that it delivered since the first sample that had not @waited, at most @max_rate,
 * and @max_rate before that; bytes per second.
 */
static inline __u64 riso_estimate_speed(const struct riso_estimate *e, __u64 max_rate)
{
	return riso_min(e->peak ? e->peak : RISO_NEVER, max_rate);
}

/**
 * riso_estimate_wait - the device may have waited for a piece, or sent what nobody counts
 * @e: the estimate
 */
static inline void riso_estimate_wait(struct riso_estimate *e)
{
	e->waited = true;
	e->slack = true;
}

/**
 * riso_estimate_covered - what leaves the device in the time of the cover
 * @e: the estimate
 * @shared: processes keep the device busy, too
 * @max_rate: MaxRate, bytes per second
 *
 * Where processes post, no sample tells the speed of the device, and MaxRate may be set too high.
 * So it is not much more than what was delivered lately.
 *
 * Return: bytes.
 */
static inline __u64 riso_estimate_covered(const struct riso_estimate *e, bool shared,
					  __u64 max_rate)
{
	__u64 seen = riso_max(e->rate, e->rate_prev);
	__u64 speed = riso_estimate_speed(e, max_rate);

	if (shared && !e->peak && seen)
		speed = riso_min(seen + seen / 4, speed);
	return riso_bytes_in(e->cover, speed);
}

/**
 * riso_estimate_whole - the rate that a SafeUtil is a part of
 * @safe_util: SafeUtil, bytes per second
 * @max_rate: MaxRate, bytes per second
 * @steered: an agent has chosen SafeUtil, which it does as a part of MaxRate
 *
 * Who leaves a device some room sets SafeUtil to most of MaxRate. Less than half is what somebody
 * knows of the device: it is not less because MaxRate is too high.
 *
 * Return: bytes per second.
 */
static inline __u64 riso_estimate_whole(__u64 safe_util, __u64 max_rate, bool steered)
{
	return steered || safe_util >= max_rate / 2 ? max_rate : safe_util;
}

/**
 * riso_path_delay - how long a path is, as far as known
 * @p: the path
 *
 * Return: ns, 0 before the first sample.
 */
static inline __u64 riso_path_delay(const struct riso_path *p)
{
	return p->rtt_min == RISO_NEVER ? 0 : p->rtt_min;
}

#endif /* RISO_CORE_ESTIMATE_H */
