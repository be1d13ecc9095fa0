/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When bulk may be posted: the clock and the window. The rules are in pacer.c.
 */
#ifndef RISO_CORE_PACER_H
#define RISO_CORE_PACER_H

#include "units.h"

/**
 * struct riso_pacer - what one direction of a device has to do
 * @next: device clock, the time up to which the device has work, ns
 * @debt_ns: time up to which the clock was moved for what processes say of debt
 * @load: bytes that may stand in the device
 * @completed_ns: when the last piece that completed had left the device, as far as known
 * @empty_ns: when all that was charged will have left the device, without what its path adds
 */
struct riso_pacer {
	__u64 next;
	__u64 debt_ns;
	__u64 load;
	__u64 completed_ns;
	__u64 empty_ns;
};

/**
 * struct riso_out - what was posted in one direction and has not completed
 * @bytes: how much
 * @far: sum of bytes, each times the delay of its path, bytes times ns
 */
struct riso_out {
	__u64 bytes;
	__u64 far;
};

/**
 * riso_out_delay - how long the paths are
 * @o: what is out
 *
 * For bytes of several paths that is the mean of their delays. Connections that share a path
 * share what it holds.
 *
 * Return: ns.
 */
static inline __u64 riso_out_delay(const struct riso_out *o)
{
	return o->bytes ? o->far / o->bytes : 0;
}

/**
 * riso_out_standing - how much of what is out stands in the device
 * @o: what is out
 * @path: what the paths hold, bytes
 *
 * Return: bytes.
 */
static inline __u64 riso_out_standing(const struct riso_out *o, __u64 path)
{
	return o->bytes - riso_min(o->bytes, path);
}

/**
 * struct riso_pacer_limits - what holds for a post
 * @clocked: the clock holds
 * @tick_ns: how far the clock may be ahead of the time
 * @lag_ns: how far it may be behind
 * @pace: rate that the clock runs at, bytes per second
 * @window: bytes that may stand in the device, RISO_NEVER for any number
 * @speed: rate at which a queue in the device gets shorter, bytes per second
 */
struct riso_pacer_limits {
	bool clocked;
	__u64 tick_ns;
	__u64 lag_ns;
	__u64 pace;
	__u64 window;
	__u64 speed;
};

/*
 * A piece is posted 40 us before the device has nothing else to send: as long as a host may need
 * for its timer, and an adapter that is made of software for a post. Where pieces are short, it is
 * half of one: completions come as often then, and a small message waits for less. Where that is
 * not enough, the cover (estimate.c) adds to it.
 */
#define RISO_PACER_LEAD_NS	40000

/**
 * riso_pacer_window - what may stand in a device for which nobody has set it
 * @piece: a piece, wire bytes
 * @rate: what the device is believed to do, bytes per second
 *
 * A small message waits for what stands in the device. So the second piece comes just in time.
 *
 * Return: bytes; a piece, and of the next one what leaves in the lead.
 */
static inline __u64 riso_pacer_window(__u64 piece, __u64 rate)
{
	return piece + riso_min(piece / 2, riso_bytes_in(RISO_PACER_LEAD_NS, rate));
}

/**
 * struct riso_pacer_piece - the oldest piece that is posted and not completed
 * @known: there is one, and the delay of its path was measured
 * @posted_ns: when it was posted
 * @path_ns: delay of its path
 * @bytes: its bytes in the direction that is asked about
 */
struct riso_pacer_piece {
	bool known;
	__u64 posted_ns;
	__u64 path_ns;
	__u64 bytes;
};

/**
 * enum riso_pacer_verdict - may bulk be posted now?
 * @RISO_PACER_GO: it may
 * @RISO_PACER_CLOCK: no, the device has work enough
 * @RISO_PACER_WINDOW: no, the window is full
 */
enum riso_pacer_verdict {
	RISO_PACER_GO,
	RISO_PACER_CLOCK,
	RISO_PACER_WINDOW,
};

/**
 * struct riso_pacer_say - the answer of the pacer
 * @verdict: whether to post
 * @bytes: how much may be posted at once, if it is RISO_PACER_GO
 * @when: when to ask again if it is not, ns; RISO_NEVER if only a completion can help
 */
struct riso_pacer_say {
	enum riso_pacer_verdict verdict;
	__u64 bytes;
	__u64 when;
};

struct riso_pacer_say riso_pacer_ask(const struct riso_pacer *p,
				     const struct riso_pacer_limits *l, __u64 need,
				     const struct riso_pacer_piece *oldest, __u64 now);
__u64 riso_pacer_believe(__u64 *debt_ns, __u64 span, __u64 ns, __u64 now);
__u64 riso_pacer_take_debt(struct riso_pacer *p, __u64 span, __u64 ns, __u64 now);

/**
 * riso_pacer_fill - the device has more to send
 * @p: the pacer
 * @ns: time that it takes on the wire
 * @now: time, ns
 */
static inline void riso_pacer_fill(struct riso_pacer *p, __u64 ns, __u64 now)
{
	p->empty_ns = riso_max(p->empty_ns, now) + ns;
}

/**
 * riso_pacer_settle - the device has no more to send than what stands in it
 * @p: the pacer
 * @drain: rate at which that leaves, bytes per second
 * @now: time, ns
 *
 * A rate that was taken for less than it is would let @empty_ns run away.
 */
static inline void riso_pacer_settle(struct riso_pacer *p, __u64 drain, __u64 now)
{
	p->empty_ns = riso_min(p->empty_ns, now + riso_time_of(p->load, drain));
}

/**
 * riso_pacer_dry - for how long the device has had nothing to send
 * @p: the pacer
 * @now: time, ns
 *
 * Return: ns, 0 if it has something.
 */
static inline __u64 riso_pacer_dry(const struct riso_pacer *p, __u64 now)
{
	return now - riso_min(now, p->empty_ns);
}

/**
 * riso_pacer_is_full - does the window forbid more bytes, by what has completed?
 * @p: the pacer
 * @window: bytes that may stand in the device, RISO_NEVER for any number
 * @need: the bytes
 *
 * Return: true if it does. A device in which nothing stands takes any message.
 */
static inline bool riso_pacer_is_full(const struct riso_pacer *p, __u64 window, __u64 need)
{
	return window != RISO_NEVER && p->load && p->load + need > window;
}

/**
 * riso_pacer_is_open - do neither the clock nor what has completed forbid more bytes?
 * @p: the pacer
 * @l: the limits
 * @need: the bytes
 * @now: time, ns
 *
 * Return: true if so; riso_pacer_ask() says RISO_PACER_GO then, and riso_pacer_bytes().
 */
static inline bool riso_pacer_is_open(const struct riso_pacer *p,
				      const struct riso_pacer_limits *l, __u64 need, __u64 now)
{
	return !(l->clocked && p->next > now + l->tick_ns) &&
	       !riso_pacer_is_full(p, l->window, need);
}

/**
 * riso_pacer_bytes - how much may be posted at once
 * @p: the pacer
 * @l: the limits
 * @need: bytes of the smallest part that is posted, which the window allows
 * @now: time, ns, at which bulk may be posted
 *
 * Return: bytes; one piece may be more.
 */
static inline __u64 riso_pacer_bytes(const struct riso_pacer *p,
				     const struct riso_pacer_limits *l, __u64 need, __u64 now)
{
	/* The oldest piece may have left in part. */
	__u64 bytes = riso_max(l->window - riso_min(l->window, p->load), need);

	if (!l->clocked)
		return bytes;
	return riso_min(bytes, riso_bytes_in(now + l->tick_ns -
					     riso_max(p->next, now - l->lag_ns), l->pace));
}

/**
 * riso_pacer_advance - the device has more to do
 * @p: the pacer
 * @lag_ns: how far the clock may be behind the time
 * @ns: time that it takes at the pace
 * @now: time, ns
 */
static inline void riso_pacer_advance(struct riso_pacer *p, __u64 lag_ns, __u64 ns, __u64 now)
{
	p->next = riso_max(p->next, now - lag_ns) + ns;
}

/**
 * riso_pacer_set_load - say how much of somebody may stand in the device
 * @p: the pacer
 * @part: what was said of it last, bytes
 * @load: what is true now, bytes
 */
static inline void riso_pacer_set_load(struct riso_pacer *p, __u64 *part, __u64 load)
{
	p->load += load - *part;
	*part = load;
}

/**
 * riso_pacer_begins - when a piece began to leave the device, if it is the oldest
 * @p: the pacer
 * @posted_ns: when it was posted
 * @path_ns: delay of its path
 *
 * Return: time, ns: after what completed last, and not before it could be there.
 */
static inline __u64 riso_pacer_begins(const struct riso_pacer *p, __u64 posted_ns,
				      __u64 path_ns)
{
	return riso_max(p->completed_ns, posted_ns + path_ns);
}

/**
 * riso_pacer_ahead - how long what stands in the device takes to leave it
 * @p: the pacer
 * @busy_ns: since when the device has something to send
 * @speed: the most that the device can do, bytes per second
 * @now: time, ns
 *
 * Return: ns, the least; the oldest piece may have left in part.
 */
static inline __u64 riso_pacer_ahead(const struct riso_pacer *p, __u64 busy_ns, __u64 speed,
				     __u64 now)
{
	__u64 since = riso_max(p->completed_ns, busy_ns);
	__u64 ns = riso_time_of(p->load, speed);

	return ns - riso_min(ns, now - riso_min(since, now));
}

/**
 * riso_pacer_refund - give back time for what the device did not take
 * @p: the pacer
 * @ns: the time at the pace
 * @drain_ns: the time that it would have taken on the wire
 */
static inline void riso_pacer_refund(struct riso_pacer *p, __u64 ns, __u64 drain_ns)
{
	p->next -= riso_min(p->next, ns);
	p->empty_ns -= riso_min(p->empty_ns, drain_ns);
}

#endif /* RISO_CORE_PACER_H */
