// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When bulk may be posted: the clock and the window.
 *
 * Owns the two limits (paper, 4.1 and 4.2).
 * - The clock says until when the device has work. Each post moves it by its device time at
 *   the pace. Bulk may be posted while the clock is not ahead of the time by more than a
 *   tick. Time that nobody used is lost, except a tick of it, or as much as timers are late:
 *   made up for as a burst it would leave a queue in the device.
 * - The window caps what may stand in the device. It is finer than what completes: between
 *   two completions the oldest piece is taken to leave at the speed of the device.
 */

#include "pacer.h"

enum {
	/* What processes say of debt costs others at most this part of the time. */
	DEBT_PART = 16,
};

/*
 * Is the window full, though the oldest piece has left in part? If it is, @open is when
 * there will be room, RISO_NEVER when only a completion can tell.
 */
static bool window_holds(const struct riso_pacer *p, const struct riso_pacer_limits *l,
			 __u64 need, const struct riso_pacer_piece *oldest, __u64 now,
			 __u64 *open)
{
	__u64 excess;

	if (!riso_pacer_is_full(p, l->window, need))
		return false;
	*open = RISO_NEVER;
	if (!oldest->known)
		return true;
	excess = p->load + need - l->window;
	*open = riso_pacer_begins(p, oldest->posted_ns, oldest->path_ns) +
		riso_time_of(excess, l->speed);
	if (*open > now)
		return true;
	/* The piece should have completed by now. */
	*open = RISO_NEVER;
	return excess > oldest->bytes;
}

/**
 * riso_pacer_ask - may bulk be posted now?
 * @p: the pacer
 * @l: the limits
 * @need: bytes of the smallest part that can be posted
 * @oldest: the oldest piece that is out
 * @now: time, ns
 *
 * Return: whether, how much and, if not, when to ask again.
 */
struct riso_pacer_say riso_pacer_ask(const struct riso_pacer *p,
				     const struct riso_pacer_limits *l, __u64 need,
				     const struct riso_pacer_piece *oldest, __u64 now)
{
	struct riso_pacer_say say = {
		.verdict = RISO_PACER_GO,
		.when = RISO_NEVER,
	};
	__u64 clock = 0;
	__u64 open;

	if (l->clocked && p->next > now + l->tick_ns)
		clock = p->next - l->tick_ns / 2;
	if (window_holds(p, l, need, oldest, now, &open)) {
		say.verdict = RISO_PACER_WINDOW;
		/* Completions are looked for when the clock allows to post. */
		if (open != RISO_NEVER)
			say.when = riso_max(clock, open);
		else if (clock)
			say.when = clock;
		return say;
	}
	if (clock) {
		say.verdict = RISO_PACER_CLOCK;
		say.when = clock;
		return say;
	}
	say.bytes = riso_pacer_bytes(p, l, need, now);
	return say;
}

/**
 * riso_pacer_believe - how much of the time that is said to be taken is believed
 * @debt_ns: until when it was believed, ns; of the clock that moves
 * @span: what was said before this long ago does not count, ns
 * @ns: the time
 * @now: time, ns
 *
 * Return: ns, a sixteenth of the time that has gone by at most.
 */
__u64 riso_pacer_believe(__u64 *debt_ns, __u64 span, __u64 ns, __u64 now)
{
	__u64 since = riso_min(now - *debt_ns, span);

	ns = riso_min(ns, since / DEBT_PART);
	*debt_ns = now - since + DEBT_PART * ns;
	return ns;
}

/**
 * riso_pacer_take_debt - how far the clock moves for what processes say that they posted
 * @p: the pacer
 * @span: what was said before this long ago does not count, ns
 * @ns: device time of what they say
 * @now: time, ns
 *
 * If it is true, the device is busy with it for a while. If it is not, nobody else should
 * have to wait: all processes together move the clock by a sixteenth of the time at most.
 *
 * Return: ns.
 */
__u64 riso_pacer_take_debt(struct riso_pacer *p, __u64 span, __u64 ns, __u64 now)
{
	return riso_pacer_believe(&p->debt_ns, span, ns, now);
}
