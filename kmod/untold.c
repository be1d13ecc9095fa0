// SPDX-License-Identifier: GPL-2.0
/*
 * What programs send without telling the module.
 *
 * The send queue of a reliable connection numbers its packets, and the provider tells the next
 * number when it is asked for the queue pair. The number grows by one with each packet of a
 * SEND, WRITE or atomic, and with each packet that a READ brings. Neither what the peer sends,
 * reads or writes, nor a retransmission, makes it grow. So it says of one queue pair that it
 * has sent, whoever posted: libibverbs, mlx5dv, DEVX or a GPU. It counts packets, not bytes: a
 * rate is that of full packets, and so an upper bound.
 *
 * Of a flow without the shim all packets are untold. A flow with the shim tells what it posts,
 * in cost bytes of its process. Each packet costs RISO_PACKET_HEADER at least, so packets that
 * were told of are never more than the bytes told by that. Where they are more, somebody posts
 * around the shim. Packets of flows that are gone still count, and so do the bytes told of them.
 *
 * Owns &riso_flow.untold, &riso_group.sent and &riso_dev.untold_rate, under &riso_dev.mutex.
 * Readers may see them late. It runs in the watch and may sleep.
 */

#include <linux/math64.h>
#include <linux/minmax.h>

#include "core/cost.h"
#include "flow.h"
#include "grant.h"
#include "group.h"
#include "line.h"
#include "notify.h"
#include "reason.h"
#include "untold.h"

enum {
	/* Numbers of packets have 24 bits. */
	RISO_PSN_MASK = 0xffffff,
	/* A look is 2 s after the last: a provider may have to ask its firmware. */
	RISO_UNTOLD_NS = 2 * NSEC_PER_SEC,
	/* It asks for so many queue pairs, and the next look goes on behind them. */
	RISO_UNTOLD_VISITS = 256,
	/* A mark changes when two looks in a row disagree with it: one may meet a burst. */
	RISO_UNTOLD_STRIKES = 2,
	/* A flow is marked from 1 % of MaxRate on, until it sends less than half of that: ... */
	RISO_UNTOLD_FLOW_PART = 100,
	/* ... listeners hear of the device at 5 %, which is about what SafeUtil leaves free. */
	RISO_UNTOLD_DEV_PART = 20,
	/* Packets of a flow with the shim that may be counted later than they are sent. */
	RISO_UNTOLD_SLACK = 64,
};

static void set_rate(struct riso_flow *f, u64 rate)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->mutex);
	WRITE_ONCE(rd->untold_rate, rd->untold_rate - f->untold.rate + rate);
	WRITE_ONCE(f->untold.rate, rate);
}

static void set_mark(struct riso_flow *f, bool marked)
{
	if (f->untold.marked == marked)
		return;
	f->untold.strikes = 0;
	WRITE_ONCE(f->untold.marked, marked);
	riso_notify_news(f);
}

/**
 * riso_untold_forget - a flow sends no more, or is another than it was
 * @f: the flow
 *
 * Context: &riso_dev.mutex.
 */
void riso_untold_forget(struct riso_flow *f)
{
	set_rate(f, 0);
	f->untold.known = false;
	f->untold.strikes = 0;
	WRITE_ONCE(f->untold.marked, false);
}

/* Flows of class latency may post as they like. The agent's own count nowhere. */
static bool is_looked_at(const struct riso_flow *f)
{
	return f->who.pid && !READ_ONCE(f->dying) && f->state == IB_QPS_RTS &&
	       f->qp_type == IB_QPT_RC && f->class != RISO_CLASS_LATENCY &&
	       !riso_reason_is_reference(f);
}

/* Packets that a flow has sent since the last look, if that is known. */
static bool count_packets(struct riso_flow *f, u64 now, u32 *packets, u64 *span)
{
	struct riso_untold *u = &f->untold;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	bool known = u->known && u->shim == f->shim;

	/* The provider destroys no QP meanwhile: see riso_flow_bury(). */
	if (f->rd->orig.query_qp(f->qp, &attr, IB_QP_SQ_PSN, &init))
		return false;
	*packets = (attr.sq_psn - u->psn) & RISO_PSN_MASK;
	*span = now - u->looked_ns;
	u->psn = attr.sq_psn & RISO_PSN_MASK;
	u->looked_ns = now;
	u->shim = f->shim;
	u->known = true;
	if (known && *packets)
		WRITE_ONCE(f->rd->numbers_move, true);
	return known;
}

/* Has a process with the shim sent more packets than it has told of? */
static bool exceeds_told(struct riso_flow *f, u32 packets)
{
	struct riso_group *g = f->group;
	struct riso_dev *rd = f->rd;
	u64 told = U64_MAX;

	g->sent += packets;
	/* Read after the number of packets, so that what was told of these is among it. */
	spin_lock_irq(&rd->lock);
	if (g->process)
		told = riso_grant_sum_told(g->process);
	spin_unlock_irq(&rd->lock);
	return g->sent > RISO_UNTOLD_SLACK + div64_u64(told, RISO_PACKET_HEADER);
}

static void look_at_flow(struct riso_flow *f, u64 max_rate, u64 now)
{
	struct riso_untold *u = &f->untold;
	bool marks, was = u->marked;
	u64 rate, span;
	u32 packets;

	if (u->known && u->shim != f->shim)
		set_mark(f, false);
	/* A mark outlives a provider that does not answer. */
	if (!count_packets(f, now, &packets, &span)) {
		set_rate(f, 0);
		return;
	}
	rate = div64_u64((u64)packets * f->mtu * MSEC_PER_SEC,
			 max_t(u64, div64_u64(span, NSEC_PER_MSEC), 1));
	if (f->shim && f->group)
		/* One that sends nothing just now stays what it is. */
		marks = exceeds_told(f, packets) && (was || packets > RISO_UNTOLD_SLACK);
	else
		marks = rate >= div64_u64(max_rate, RISO_UNTOLD_FLOW_PART * (was ? 2 : 1));
	if (marks == was)
		u->strikes = 0;
	else if (++u->strikes >= RISO_UNTOLD_STRIKES)
		was = marks;
	set_rate(f, was ? rate : 0);
	set_mark(f, was);
}

/* It is of class latency now, say, and was looked at before. */
static void exempt_flow(struct riso_flow *f)
{
	set_mark(f, false);
	riso_untold_forget(f);
}

/* Is so much untold that listeners shall know? Not anymore at half of that. */
static bool is_much(struct riso_dev *rd, u64 max_rate)
{
	u64 least = div64_u64(max_rate, RISO_UNTOLD_DEV_PART * (rd->untold_much ? 2 : 1));

	return rd->untold_rate >= least;
}

/**
 * riso_untold_look - see which flows send what nobody has told of
 * @rd: the device
 * @now: time, ns
 *
 * Context: the watch, may sleep.
 * Return: true if listeners have to be told of the device.
 */
bool riso_untold_look(struct riso_dev *rd, u64 now)
{
	int visits = RISO_UNTOLD_VISITS;
	unsigned long qpn;
	struct riso_flow *f;
	u64 max_rate;
	u32 cost = 0;
	bool much;

	if (now - rd->untold_ns < RISO_UNTOLD_NS)
		return false;
	rd->untold_ns = now;
	if (!rd->orig.query_qp)
		return false;
	spin_lock_irq(&rd->lock);
	max_rate = rd->cfg.max_rate;
	spin_unlock_irq(&rd->lock);
	riso_dev_lock(rd);
	xa_for_each_start(&rd->qpns, qpn, f, rd->untold_next) {
		bool looked = is_looked_at(f);

		if (looked && !visits--)
			break;
		if (looked)
			look_at_flow(f, max_rate, ktime_get_ns());
		else if (f->untold.known)
			exempt_flow(f);
		riso_dev_pass(rd, &cost, looked ? RISO_WALK_UPDATE : 1);
	}
	rd->untold_next = f ? qpn : 0;
	much = is_much(rd, max_rate);
	riso_dev_unlock(rd);
	if (much == rd->untold_much)
		return false;
	WRITE_ONCE(rd->untold_much, much);
	return true;
}
