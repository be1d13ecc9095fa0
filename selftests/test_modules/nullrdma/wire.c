// SPDX-License-Identifier: GPL-2.0
/*
 * The wire of an end: who sends when, and when it has left.
 *
 * It is arithmetic. With sched=fifo messages leave in the order of the posts. With
 * sched=rr the flows take turns of a quantum: nobody counts the turns one by one, as the
 * next message to be finished follows from what is left of each. Time only goes on: who
 * changes something at a time has everything in front of that time done first. A message
 * on the pipe arrives before any that is sent later, so the wire is looked at when one
 * arrives, and not when one has left.
 *
 * Owns the lists of an end and its flows. All of it runs under nr_engine.lock.
 */

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "params.h"
#include "request.h"
#include "wire.h"

/* bytes around the payload of a packet: Ethernet, IPv4, UDP, BTH and ICRC */
#define NR_PACKET_HEADER	(14 + 20 + 8 + 12 + 4)
/* bytes of a message more: RETH, or what other messages have instead */
#define NR_MESSAGE_HEADER	16

static u32 add_headers(u32 payload, u32 mtu_shift)
{
	u32 packets = payload ? (payload + BIT(mtu_shift) - 1) >> mtu_shift : 1;

	return payload + packets * NR_PACKET_HEADER + NR_MESSAGE_HEADER;
}

/* The request of a READ is a packet, and so is the answer to an atomic. */
static u32 get_wire_bytes(const struct nr_wqe *wqe)
{
	bool fetch = wqe->flags & NR_FETCH;
	bool carries = fetch == (wqe->state == NR_ANSWER);

	return add_headers(carries ? wqe->length : 0, wqe->qp->mtu_shift);
}

static u64 get_duration(const struct nr_end *end, u64 bytes)
{
	return mul_u64_u64_shr(bytes, end->byte_ns, 32);
}

/* A quantum of payload is one turn, headers included. */
static u32 get_turn_bytes(const struct nr_end *end)
{
	return nr_quantum + DIV_ROUND_UP(nr_quantum, end->mtu) * NR_PACKET_HEADER +
	       NR_MESSAGE_HEADER;
}

static void depart(struct nr_end *end, struct nr_wqe *wqe, u64 t)
{
	end->free_at = t;
	wqe->when = max(t + end->delay_ns, end->last_arrival);
	end->last_arrival = wqe->when;
	nr_append(wqe, &end->pipe);
}

/* The engine has to look at the wire before it goes on to the next event. */
static void mark_dirty(const struct nr_end *end)
{
	nr_engine.dirty |= BIT(end->index);
}

/* When the wire is looked at next: something arrives, or the order of turns changes. */
void nr_plan_end(struct nr_end *end)
{
	u64 next = NR_NEVER;

	if (!list_empty(&end->pipe))
		next = nr_get_first(&end->pipe)->when;
	else if (end->finish_at != NR_NEVER)
		next = end->finish_at + end->delay_ns;
	if (!list_empty(&end->acks))
		next = min(next, nr_get_first(&end->acks)->when);
	if (!list_empty(&end->opening))
		next = min(next, nr_get_first(&end->opening)->when);
	nr_engine.next[end->index] = next;
}

/* --- sched=fifo --- */

/* The first message that waits in its flow goes in front of all others. */
static void offer_next(struct nr_end *end, struct nr_flow *flow, u64 t)
{
	struct nr_wqe *wqe;

	if (flow->offered || list_empty(&flow->queue))
		return;
	wqe = nr_get_first(&flow->queue);
	if (!nr_may_start(wqe))
		return;
	wqe->when = max(wqe->when, t);
	list_move(&wqe->link, &end->fifo);
	flow->offered = wqe;
	mark_dirty(end);
}

/* False if the wire carries nothing of it: it waits in its flow, or has ended. */
static bool take_request(struct nr_end *end, struct nr_wqe *wqe, u64 t)
{
	struct nr_qp *qp = wqe->qp;
	struct nr_flow *flow = &qp->requests;
	bool sent;

	if (wqe != flow->offered && !list_empty(&flow->queue)) {
		nr_append(wqe, &flow->queue);
		return false;
	}
	flow->offered = NULL;
	if (!nr_may_start(wqe)) {
		list_add(&wqe->link, &flow->queue);
		return false;
	}
	qp->waiting--;
	sent = nr_start(wqe, t);
	offer_next(end, flow, t);
	return sent;
}

static void advance_fifo(struct nr_end *end, u64 now)
{
	struct nr_wqe *wqe;

	while ((wqe = nr_get_first(&end->fifo))) {
		u64 start = max(end->free_at, wqe->when);

		if (start > now && !list_empty(&end->pipe))
			return;
		nr_remove(wqe);
		if (wqe->state == NR_READY && !take_request(end, wqe, start))
			continue;
		depart(end, wqe, start + get_duration(end, get_wire_bytes(wqe)));
	}
}

/* --- sched=rr --- */

/*
 * The message that needs the fewest turns is finished first, and of several the one whose
 * flow comes first. Each flow has whole turns until then.
 */
static void plan_finish(struct nr_end *end)
{
	u32 turn = get_turn_bytes(end), pos = 0, best_turns = U32_MAX, best_pos = 0, last = 0;
	struct nr_flow *flow;

	end->finish_at = NR_NEVER;
	if (list_empty(&end->active))
		return;
	list_for_each_entry(flow, &end->active, active) {
		u32 turns = DIV_ROUND_UP(flow->cur->left, turn) - 1;

		if (turns < best_turns) {
			best_turns = turns;
			best_pos = pos;
			last = flow->cur->left - turns * turn;
		}
		pos++;
	}
	end->finish_turns = (u64)best_turns * end->nactive + best_pos;
	end->finish_at = end->turn_at +
		get_duration(end, end->finish_turns * turn + last);
}

/* So many turns are over. */
static void pass_turns(struct nr_end *end, u64 turns)
{
	u32 turn = get_turn_bytes(end), more, i = 0;
	u64 each = div_u64_rem(turns, end->nactive, &more);
	struct nr_flow *flow;

	list_for_each_entry(flow, &end->active, active) {
		flow->cur->left -= (each + (i < more)) * turn;
		i++;
	}
	while (more--)
		list_rotate_left(&end->active);
	end->turn_at += get_duration(end, turns * turn);
	end->finish_turns -= turns;
}

/* The turns that are over at @t. No message may be finished before that. */
static void sync_turns(struct nr_end *end, u64 t)
{
	u64 turns;

	if (!end->nactive || t <= end->turn_at)
		return;
	turns = mul_u64_u64_shr(t - end->turn_at, end->ns_bytes, 32);
	turns = min(div_u64(turns, get_turn_bytes(end)), end->finish_turns);
	if (turns)
		pass_turns(end, turns);
}

/* The next message of a flow. False if it has none that may be sent. */
static bool pick_next(struct nr_flow *flow, u64 t)
{
	struct nr_wqe *wqe;

	flow->picking = true;
	while ((wqe = nr_get_first(&flow->queue))) {
		if (wqe->state == NR_READY) {
			if (!nr_may_start(wqe))
				break;
			nr_remove(wqe);
			wqe->qp->waiting--;
			if (!nr_start(wqe, t))
				continue;
		} else {
			nr_remove(wqe);
		}
		wqe->left = get_wire_bytes(wqe);
		flow->cur = wqe;
		break;
	}
	flow->picking = false;
	WRITE_ONCE(flow->busy, !!flow->cur);
	return flow->cur;
}

/* A flow that has something to send takes its turn behind all others. */
static void open_flow(struct nr_end *end, struct nr_flow *flow, u64 t)
{
	if (flow->cur || flow->picking || !pick_next(flow, t))
		return;
	sync_turns(end, t);
	if (!end->nactive++)
		end->turn_at = max(t, end->free_at);
	list_add_tail(&flow->active, &end->active);
	plan_finish(end);
	mark_dirty(end);
}

/* The message of a flow is not sent any further. */
static void close_flow(struct nr_end *end, struct nr_flow *flow, u64 t)
{
	if (!flow->cur)
		return;
	sync_turns(end, t);
	if (list_is_first(&flow->active, &end->active))
		end->turn_at = max(t, end->turn_at);
	list_del_init(&flow->active);
	end->nactive--;
	flow->cur = NULL;
	WRITE_ONCE(flow->busy, false);
	plan_finish(end);
	mark_dirty(end);
}

static void finish_first(struct nr_end *end)
{
	u64 t = end->finish_at;
	struct nr_flow *flow;
	struct nr_wqe *wqe;

	if (end->finish_turns)
		pass_turns(end, end->finish_turns);
	end->turn_at = t;
	flow = list_first_entry(&end->active, struct nr_flow, active);
	wqe = flow->cur;
	flow->cur = NULL;
	list_del_init(&flow->active);
	end->nactive--;
	depart(end, wqe, t);
	if (pick_next(flow, t)) {
		end->nactive++;
		list_add_tail(&flow->active, &end->active);
	}
	plan_finish(end);
}

static void advance_turns(struct nr_end *end, u64 now)
{
	for (;;) {
		struct nr_wqe *wqe = nr_get_first(&end->opening);
		u64 open_at = wqe ? wqe->when : NR_NEVER;

		if (min(open_at, end->finish_at) > now)
			return;
		if (end->finish_at <= open_at) {
			finish_first(end);
			continue;
		}
		list_move_tail(&wqe->link, &wqe->qp->requests.queue);
		open_flow(end, &wqe->qp->requests, open_at);
	}
}

/* --- both --- */

/* Do what is due on the wire until @now. */
void nr_advance_wire(struct nr_end *end, u64 now)
{
	lockdep_assert_held(&nr_engine.lock);
	if (nr_rr)
		advance_turns(end, now);
	else
		advance_fifo(end, now);
}

/* Look at all wires that have changed. */
void nr_settle_wires(u64 t)
{
	lockdep_assert_held(&nr_engine.lock);
	while (nr_engine.dirty) {
		struct nr_end *end = nr_ends[__ffs(nr_engine.dirty)];

		nr_engine.dirty &= nr_engine.dirty - 1;
		nr_advance_wire(end, t);
		nr_plan_end(end);
	}
}

/* The adapter knows of a request at wqe->when. */
void nr_queue_request(struct nr_wqe *wqe, u64 now)
{
	struct nr_qp *qp = wqe->qp;
	struct nr_end *end = qp->end;
	struct nr_flow *flow = &qp->requests;

	lockdep_assert_held(&nr_engine.lock);
	if (qp->state == IB_QPS_ERR) {
		nr_flush_send(qp, now);
		return;
	}
	if ((wqe->flags & NR_LOCAL) && !qp->waiting && nr_may_start(wqe)) {
		nr_start(wqe, wqe->when);
		return;
	}
	qp->waiting++;
	if (!nr_rr) {
		nr_append(wqe, list_empty(&flow->queue) ? &end->fifo : &flow->queue);
		mark_dirty(end);
		return;
	}
	if (wqe->when > now && end->nactive) {
		nr_append(wqe, &end->opening);
		mark_dirty(end);
		return;
	}
	nr_advance_wire(end, wqe->when);
	nr_append(wqe, &flow->queue);
	open_flow(end, flow, wqe->when);
}

/* The peer has carried out a READ or an atomic, and answers. */
void nr_queue_answer(struct nr_wqe *wqe, u64 t)
{
	struct nr_qp *qp = wqe->qp;
	struct nr_end *end = qp->peer;

	lockdep_assert_held(&nr_engine.lock);
	wqe->state = NR_ANSWER;
	wqe->when = t;
	if (!nr_rr) {
		nr_append(wqe, &end->fifo);
		mark_dirty(end);
		return;
	}
	nr_advance_wire(end, t);
	nr_append(wqe, &qp->answers.queue);
	open_flow(end, &qp->answers, t);
}

/* A queue pair may send again what it could not before. */
void nr_resume(struct nr_qp *qp, u64 t)
{
	lockdep_assert_held(&nr_engine.lock);
	if (!nr_rr) {
		offer_next(qp->end, &qp->requests, t);
	} else if (!qp->requests.cur && !qp->requests.picking) {
		nr_advance_wire(qp->end, t);
		open_flow(qp->end, &qp->requests, t);
	}
}

/*
 * The requests from entry @from of the send queue on, of which none has ended, wait as if
 * they had not been sent. Those in front of it stay where they are.
 */
void nr_take_back(struct nr_qp *qp, u32 from, u64 t)
{
	struct nr_flow *flow = &qp->requests;
	u32 idx;

	lockdep_assert_held(&nr_engine.lock);
	if (flow->cur && (s32)(flow->cur->idx - from) >= 0)
		close_flow(qp->end, flow, t);
	if (qp->answers.cur && (s32)(qp->answers.cur->idx - from) >= 0)
		close_flow(qp->peer, &qp->answers, t);
	qp->waiting = 0;
	flow->offered = NULL;
	/* what was the next event there may be none any more */
	mark_dirty(qp->end);
	if (qp->peer)
		mark_dirty(qp->peer);
	for (idx = from; idx != qp->seen; idx++) {
		struct nr_wqe *wqe = nr_get_wqe(qp, idx);

		nr_remove(wqe);
		if (wqe->state == NR_DONE)
			continue;
		if (wqe->state != NR_READY && (wqe->flags & NR_FETCH))
			qp->reads--;
		wqe->state = NR_READY;
		wqe->when = max(wqe->when, t);
		nr_append(wqe, &flow->queue);
		qp->waiting++;
	}
}

void nr_set_wire(struct nr_end *end, u32 mbps, u32 delay_ns, u64 t)
{
	lockdep_assert_held(&nr_engine.lock);
	nr_advance_wire(end, t);
	sync_turns(end, t);
	/* 8000 / mbps ns for a byte */
	end->byte_ns = div_u64(8000ULL << 32, mbps);
	end->ns_bytes = div_u64((u64)mbps << 32, 8000);
	end->mbps = mbps;
	end->delay_ns = delay_ns;
	plan_finish(end);
	mark_dirty(end);
}

void nr_init_wire(struct nr_end *end)
{
	INIT_LIST_HEAD(&end->fifo);
	INIT_LIST_HEAD(&end->pipe);
	INIT_LIST_HEAD(&end->acks);
	INIT_LIST_HEAD(&end->opening);
	INIT_LIST_HEAD(&end->active);
	end->finish_at = NR_NEVER;
	nr_engine.next[end->index] = NR_NEVER;
}
