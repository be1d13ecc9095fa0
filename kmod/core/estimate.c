// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a device delivers, and how long a path is.
 *
 * Owns four measurements that completions pay for:
 * - The rate: bytes that completed in a sample of some milliseconds. The largest sample
 *   of an epoch of a second counts, and that of the epoch before.
 * - The ceiling: what a device delivers that was full all the time: each piece was there when
 *   the one before it had left. MaxRate may be set too high, or the device may be slower than its
 *   port says. A ceiling is believed for a second.
 * - The cover: for how long the device needs work while completions are under way. Adapters
 *   delay their events, and processors have other things to do. It grows when what the window
 *   had kept back comes after the device has run dry, and shrinks with each piece.
 * - The path: the smallest time from post to completion, without the time that the
 *   message itself takes on the wire. It holds for an epoch of a second, or of 200 times
 *   itself.
 */

#include "estimate.h"

/* A sample of the rate spans at least 5 ms: completions come in bursts. */
#define SAMPLE_NS	(5 * RISO_SECOND / 1000)
/* Rates and delays are learnt anew every second: paths change. */
#define EPOCH_NS	RISO_SECOND
/* Samples of 20 ms together tell a ceiling: a single one is too coarse. */
#define FULL_NS		(4 * SAMPLE_NS)
/* Adapters delay events by 32 us at most, and a processor is busy for as long at times. */
#define COVER_MAX_NS	64000
/*
 * The cover grows by the time that the device was dry, 4 us at most, and shrinks with each piece:
 * by a 400th of what the piece takes, and 40 ns at most. So a device loses about 0.3 %. What
 * keeps a processor from its work now and then, for however long, is not covered.
 */
#define COVER_STEP_NS	4000
#define COVER_REST_NS	40
#define COVER_PART	400
/* Less than a 32nd of a piece may be the rate, which is not known better than that. */
#define COVER_NOISE_PART 32
/* To let a path run empty takes two round trips: that is at most a hundredth of the time. */
#define EMPTY_PART	200
/* A ceiling is believed for a second: what held the device back may have ended. */
#define CEILING_NS	RISO_SECOND
/* A device that waits for less than an eighth of the time is full, as far as a ceiling goes. */
#define WAIT_PART	8
/* A ceiling counts if it is a quarter below what SafeUtil is a part of, or more. */
#define CEILING_PART	4

/**
 * riso_estimate_restart - forget what was measured under other conditions
 * @e: the estimate; one that is new consists of zeroes
 */
void riso_estimate_restart(struct riso_estimate *e)
{
	*e = (struct riso_estimate){ .ceiling = RISO_NEVER };
}

static void add_full_sample(struct riso_estimate *e, __u64 span, __u64 now)
{
	__u64 rate;

	e->full += e->done;
	e->full_ns += span;
	if (e->full_ns < FULL_NS)
		return;
	rate = e->full * RISO_SECOND / e->full_ns;
	/* A host that is busy now makes it deliver less than it can. */
	e->ceiling = riso_max(rate, e->full_rate);
	e->ceiling_ns = now;
	e->full_rate = rate;
	e->full = 0;
	e->full_ns = 0;
}

static void add_sample(struct riso_estimate *e, __u64 span, __u64 now)
{
	__u64 rate = e->done * RISO_SECOND / span;

	e->last = rate;
	e->rate = riso_max(e->rate, rate);
	/* A device that waits for its pieces can do more than it delivers, but never less. */
	if (!e->waited || e->peak)
		e->peak = riso_max(e->peak, rate);
	if (!e->slack)
		add_full_sample(e, span, now);
}

/**
 * riso_estimate_complete - a piece has completed; take a sample of the rate when it is time for one
 * @e: the estimate; @e->done counts what has completed
 * @own_ns: time that the piece takes on the wire
 * @begun_ns: when it would have begun to complete if the device had nothing else to do,
 *	RISO_NEVER if nobody knows
 * @now: time, ns
 *
 * Completions that come faster than the device can be are of one burst. A sample that took twice
 * as long as it should says nothing: nobody looked.
 *
 * Return: true if a sample has ended.
 */
bool riso_estimate_complete(struct riso_estimate *e, __u64 own_ns, __u64 begun_ns, __u64 now)
{
	__u64 span = now - e->done_ns;

	/* It may have waited for this piece. */
	if (begun_ns > e->seen_ns && now - e->seen_ns > own_ns / 2) {
		e->waited = true;
		e->slack |= begun_ns - e->seen_ns > own_ns / WAIT_PART;
	}
	e->seen_ns = now;
	if (span < SAMPLE_NS)
		return false;
	if (span < 2 * SAMPLE_NS)
		add_sample(e, span, now);
	e->waited = false;
	e->slack = false;
	riso_estimate_expire(e, now);
	e->done = 0;
	e->done_ns = now;
	if (now - e->rate_ns > EPOCH_NS) {
		e->rate_prev = e->rate;
		e->rate = 0;
		e->rate_ns = now;
	}
	return true;
}

/**
 * riso_estimate_dry - what the window had kept back is posted: was the window too small?
 * @e: the estimate
 * @own_ns: time that a piece takes on the wire
 * @dry_ns: time for which the device has had nothing to send
 */
void riso_estimate_dry(struct riso_estimate *e, __u64 own_ns, __u64 dry_ns)
{
	if (dry_ns > own_ns / COVER_NOISE_PART)
		e->cover = riso_min(e->cover + riso_min(dry_ns, COVER_STEP_NS),
				    COVER_MAX_NS);
}

/**
 * riso_estimate_rest - a piece has completed: the window may be smaller
 * @e: the estimate
 * @own_ns: time that it takes on the wire
 */
void riso_estimate_rest(struct riso_estimate *e, __u64 own_ns)
{
	e->cover -= riso_min(e->cover, riso_min(COVER_REST_NS, own_ns / COVER_PART));
}

/**
 * riso_estimate_expire - forget a ceiling that is too old
 * @e: the estimate
 * @now: time, ns
 */
void riso_estimate_expire(struct riso_estimate *e, __u64 now)
{
	if (now - e->ceiling_ns > CEILING_NS)
		e->ceiling = RISO_NEVER;
}

/**
 * riso_estimate_pace - the rate that the clock of a direction runs at
 * @safe_util: SafeUtil, bytes per second
 * @whole: what it is a part of, riso_estimate_whole()
 * @ceiling: &riso_estimate.ceiling
 *
 * A little less than the whole may be the host's doing, which is busy at times.
 *
 * Return: SafeUtil, or the same part of the rate that is really there, bytes per second.
 */
__u64 riso_estimate_pace(__u64 safe_util, __u64 whole, __u64 ceiling)
{
	if (ceiling >= whole - whole / CEILING_PART)
		return safe_util;
	return riso_mul_div(safe_util, ceiling, whole);
}

/**
 * riso_path_restart - measure a path anew
 * @p: the path
 * @now: time, ns; what was posted before does not count
 */
void riso_path_restart(struct riso_path *p, __u64 now)
{
	p->rtt_min = RISO_NEVER;
	p->rtt_ns = now;
	p->probes = true;
}

/**
 * riso_path_sample - a completion tells of its path
 * @p: the path
 * @posted_ns: when the message was posted
 * @own_ns: time that the message itself takes on the wire
 * @now: time of the completion, ns
 *
 * A path that has become longer is seen when nothing else of the flow is on it. So at the end
 * of an epoch the flow lets it run empty; until then the old delay is believed.
 */
void riso_path_sample(struct riso_path *p, __u64 posted_ns, __u64 own_ns, __u64 now)
{
	__u64 delay = now - posted_ns;

	delay -= riso_min(delay, own_ns);
	if (p->rtt_min == RISO_NEVER || (p->probes && posted_ns >= p->rtt_ns)) {
		if (posted_ns < p->rtt_ns)
			return;
		/* The queue is not the path, or each flow would make it longer for the next one. */
		p->rtt_min = delay - riso_min(delay, p->ahead_ns);
		p->probes = false;
		return;
	}
	p->rtt_min = riso_min(p->rtt_min, delay);
	if (!p->probes &&
	    now - p->rtt_ns > riso_max(EPOCH_NS, EMPTY_PART * p->rtt_min)) {
		p->rtt_ns = now;
		p->probes = true;
	}
}
