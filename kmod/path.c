// SPDX-License-Identifier: GPL-2.0
/*
 * Paths: the clock of what is sent to a peer, or read from it, at the rate of a limit.
 *
 * Owns &riso_peer_limit.next_ns. Everything here is under &riso_dev.lock, in any context, and
 * bounded. Who waits for a limit is the business of peer.c, for flows, and userpath.c, for
 * processes.
 */

#include <linux/minmax.h>
#include <linux/time64.h>

#include "core/pacer.h"
#include "core/units.h"
#include "dev.h"
#include "limits.h"
#include "path.h"

/**
 * riso_path_init - make a limit that holds nothing
 * @l: the limit
 */
void riso_path_init(struct riso_peer_limit *l)
{
	int line;

	for (line = 0; line < RISO_PEER_LINES; line++)
		INIT_LIST_HEAD(&l->waiting[line]);
	INIT_LIST_HEAD(&l->paths);
	INIT_LIST_HEAD(&l->processes);
	INIT_LIST_HEAD(&l->busy);
}

static bool is_in_force(const struct riso_peer_limit *l, u64 now)
{
	return l->rate && (!l->end_ns || now < l->end_ns);
}

/**
 * riso_path_when - until when does a limit keep everybody from posting?
 * @l: the limit
 * @now: time, ns
 *
 * Return: time, ns; 0 if it does not.
 */
u64 riso_path_when(const struct riso_peer_limit *l, u64 now)
{
	return is_in_force(l, now) && l->next_ns > now + RISO_TICK_NS ? l->next_ns : 0;
}

/* The clock of a limit, which what was missed is lost for, but for what a late timer misses */
static u64 clock_of(const struct riso_dev *rd, const struct riso_peer_limit *l, u64 now)
{
	return max(l->next_ns, now - min(now, RISO_TICK_NS + riso_timer_late(rd)));
}

/**
 * riso_path_credit - how much may be posted in one turn?
 * @rd: the device
 * @l: a limit that nobody waits for
 * @now: time, ns
 *
 * Return: wire bytes; a piece that is larger goes all the same.
 */
u64 riso_path_credit(const struct riso_dev *rd, const struct riso_peer_limit *l, u64 now)
{
	u64 end = now + 2 * RISO_TICK_NS;
	u64 from;

	if (!is_in_force(l, now))
		return U64_MAX;
	from = clock_of(rd, l, now);
	return end > from ? riso_bytes_in(end - from, l->rate) : 0;
}

/**
 * riso_path_charge - something is posted
 * @rd: the device
 * @l: the limit
 * @wire: wire bytes
 * @now: time, ns
 *
 * What goes as debt keeps others waiting for a second at most.
 */
void riso_path_charge(const struct riso_dev *rd, struct riso_peer_limit *l, u64 wire, u64 now)
{
	u64 ns;

	if (!l->rate)
		return;
	ns = riso_time_of(wire, l->rate);
	l->next_ns = min(clock_of(rd, l, now) + ns, now + max_t(u64, ns, NSEC_PER_SEC));
	l->bytes += wire;
}

/**
 * riso_path_charge_debt - a process says that it has posted something without a grant
 * @rd: the device
 * @l: the limit
 * @wire: wire bytes
 * @span: what was said before this long ago does not count, ns
 * @now: time, ns
 *
 * Nobody who lies keeps others waiting for more than a sixteenth of the time.
 */
void riso_path_charge_debt(const struct riso_dev *rd, struct riso_peer_limit *l, u64 wire,
			   u64 span, u64 now)
{
	u64 ns;

	if (!l->rate)
		return;
	ns = riso_pacer_believe(&l->debt_ns, span, riso_time_of(wire, l->rate), now);
	l->next_ns = clock_of(rd, l, now) + ns;
	l->bytes += wire;
}

/**
 * riso_path_refund - give back what was charged for a post that was not taken
 * @l: the limit
 * @wire: wire bytes
 */
void riso_path_refund(struct riso_peer_limit *l, u64 wire)
{
	if (!l->rate)
		return;
	l->next_ns -= min(l->next_ns, riso_time_of(wire, l->rate));
	l->bytes -= min(l->bytes, wire);
}
