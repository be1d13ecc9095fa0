// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: the adapter's clockwork. It is woken by a timer at the time of the next
 * event, or by a post, and does all that is due by then in the order of time. Last it
 * calls the handlers of ULPs.
 *
 * It runs in hard interrupts of nr_engine.cpu, those of its timer. A post on that CPU, and
 * the interrupt by which a post on another CPU wakes it, only look at what was posted and
 * set the timer. So no handler is called in the middle of what a ULP does.
 *
 * A poster does not wake it where nr_end.busy or nr_flow.busy says that it comes back in
 * time anyway. So it looks at the bells once more after it has cleared one of these.
 *
 * Owns &struct nr_engine.
 */

#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/smp.h>

#include "cq.h"
#include "engine.h"
#include "params.h"
#include "peer.h"
#include "request.h"
#include "wire.h"

/* times in a row that it looks for new posts, so that other interrupts have a turn */
#define NR_MAX_ROUNDS	8
/* ns until it goes on after that */
#define NR_PAUSE_NS	1000

struct nr_engine nr_engine;

/* Take over what was posted to an end. */
void nr_read_bells(struct nr_end *end)
{
	struct llist_node *node;
	struct nr_wqe *first, *tmp;

	lockdep_assert_held(&nr_engine.lock);
	if (llist_empty(&end->bells))
		return;
	node = llist_reverse_order(llist_del_all(&end->bells));
	llist_for_each_entry_safe(first, tmp, node, bell) {
		struct nr_qp *qp = first->qp;
		u64 posted = first->posted;
		u64 when = posted + READ_ONCE(nr_doorbell_ns);
		u32 n = first->batch;

		while (n--) {
			struct nr_wqe *wqe = nr_get_wqe(qp, qp->seen++);

			wqe->posted = posted;
			wqe->when = when;
			nr_queue_request(wqe, nr_engine.now);
		}
	}
}

static void read_all_bells(void)
{
	int i;

	for (i = 0; i < nr_num_ends; i++)
		nr_read_bells(nr_ends[i]);
	/* what an idle wire carries leaves at once */
	nr_settle_wires(0);
}

static struct nr_wqe *pop_due(struct list_head *list, u64 t)
{
	struct nr_wqe *wqe = nr_get_first(list);

	if (!wqe || wqe->when > t)
		return NULL;
	nr_remove(wqe);
	return wqe;
}

/*
 * The events of an end until @limit, when something else may happen. There may be none any
 * more. Acknowledgments do not wait for arrivals that are due as well: the requester ends
 * its messages in their order anyway.
 */
static void do_events(struct nr_end *end, u64 limit)
{
	struct nr_wqe *wqe;

	while ((wqe = pop_due(&end->acks, limit)))
		nr_end_request(wqe, wqe->status, wqe->when);
	while ((wqe = pop_due(&end->pipe, limit))) {
		u64 t = wqe->when;

		nr_arrive(wqe, t);
		nr_advance_wire(end, t);
	}
	nr_advance_wire(end, nr_engine.next[end->index]);
	nr_plan_end(end);
	nr_settle_wires(limit);
}

/*
 * What is due first: the events of @first, or if that is NULL what is timed. The second
 * thing is due at @second.
 */
static u64 find_next(struct nr_end **first, u64 *second)
{
	u64 next = nr_engine.timed_at;
	int i;

	*first = NULL;
	*second = NR_NEVER;
	for (i = 0; i < nr_num_ends; i++) {
		u64 t = nr_engine.next[i];

		if (t < next) {
			*second = next;
			next = t;
			*first = nr_ends[i];
		} else if (t < *second) {
			*second = t;
		}
	}
	return next;
}

/* A CQ's event, or the end of a gap. There may be none at that time any more. */
static void do_timed(u64 t)
{
	struct nr_cq *cq = list_first_entry_or_null(&nr_engine.delayed, struct nr_cq, link);
	struct nr_qp *qp = list_first_entry_or_null(&nr_engine.gaps, struct nr_qp, gap_link);

	if (cq && cq->event_at <= t)
		nr_fire_cq(cq);
	else if (qp && qp->gap_until <= t)
		nr_end_gap(qp, t);
	nr_settle_wires(t);

	cq = list_first_entry_or_null(&nr_engine.delayed, struct nr_cq, link);
	qp = list_first_entry_or_null(&nr_engine.gaps, struct nr_qp, gap_link);
	nr_engine.timed_at = min(cq ? cq->event_at : NR_NEVER, qp ? qp->gap_until : NR_NEVER);
}

/* All that is due, and when the next thing is. */
static u64 do_due(void)
{
	struct nr_end *end;
	u64 next, second;

	for (;;) {
		next = find_next(&end, &second);
		if (next > nr_engine.now)
			return next;
		if (end)
			do_events(end, min(second, nr_engine.now));
		else
			do_timed(next);
	}
}

/* No handler of a ULP is called under the lock. Whoever ends its object waits. */
static void call_handlers(void)
{
	struct ib_event event = {};
	struct nr_cq *cq;
	struct nr_qp *qp;

	while (!list_empty(&nr_engine.fired)) {
		cq = list_first_entry(&nr_engine.fired, struct nr_cq, link);
		list_del_init(&cq->link);
		nr_get_end(cq->ibcq.device)->events++;
		WRITE_ONCE(nr_engine.calling, cq);
		spin_unlock(&nr_engine.lock);
		if (cq->ibcq.comp_handler)
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
		spin_lock(&nr_engine.lock);
		/* Pairs with the acquire in nr_await_handler(). */
		smp_store_release(&nr_engine.calling, NULL);
	}
	while (!list_empty(&nr_engine.events)) {
		qp = list_first_entry(&nr_engine.events, struct nr_qp, event_link);
		list_del_init(&qp->event_link);
		WRITE_ONCE(nr_engine.calling, qp);
		event.device = qp->ibqp.device;
		event.element.qp = &qp->ibqp;
		event.event = qp->event;
		spin_unlock(&nr_engine.lock);
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
		spin_lock(&nr_engine.lock);
		/* Pairs with the acquire in nr_await_handler(). */
		smp_store_release(&nr_engine.calling, NULL);
	}
}

/* Wait for a handler that runs. None will be called for this object any more. */
void nr_await_handler(const void *owner)
{
	/* Pairs with the release in call_handlers(). */
	while (smp_load_acquire(&nr_engine.calling) == owner)
		usleep_range(10, 100);
}

/* Tell posters whether they have to wake the engine. True if one did not, and should. */
static bool rest(void)
{
	bool again = false;
	int i;

	for (i = 0; i < nr_num_ends; i++) {
		bool busy = !list_empty(&nr_ends[i]->pipe);

		if (nr_ends[i]->busy != busy)
			WRITE_ONCE(nr_ends[i]->busy, busy);
	}
	/* Pairs with the barrier in ring_bell(). */
	smp_mb();
	for (i = 0; i < nr_num_ends; i++)
		again |= !llist_empty(&nr_ends[i]->bells);
	return again;
}

/* An earlier timer stays: it wakes the engine in vain. */
static void arm(u64 next)
{
	if (!list_empty(&nr_engine.fired) || !list_empty(&nr_engine.events))
		next = 0;
	if (next >= nr_engine.armed)
		return;
	nr_engine.armed = next;
	hrtimer_start(&nr_engine.timer, ns_to_ktime(next), HRTIMER_MODE_ABS_PINNED);
}

static enum hrtimer_restart run_engine(struct hrtimer *timer)
{
	unsigned long flags;
	int rounds = 0;
	bool again;
	u64 next;

	spin_lock_irqsave(&nr_engine.lock, flags);
	nr_engine.armed = NR_NEVER;
	WRITE_ONCE(nr_engine.running, true);
	do {
		nr_engine.now = ktime_get_ns();
		read_all_bells();
		do_due();
		call_handlers();
		/* what the handlers have ended may have been the next */
		next = do_due();
		again = rest();
	} while (again && ++rounds < NR_MAX_ROUNDS);
	WRITE_ONCE(nr_engine.running, false);
	arm(again ? min(next, nr_engine.now + NR_PAUSE_NS) : next);
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	return HRTIMER_NORESTART;
}

/* On the engine's CPU, interrupts off, while it does not run: look at the bells only. */
static void set_timer(void)
{
	struct nr_end *end;
	u64 second;

	spin_lock(&nr_engine.lock);
	do {
		nr_engine.now = ktime_get_ns();
		read_all_bells();
	} while (rest());
	arm(find_next(&end, &second));
	spin_unlock(&nr_engine.lock);
}

/* Another CPU has posted. */
static void answer_call(void *unused)
{
	unsigned long flags;

	/* A full barrier: who finds it set again has its bell seen. */
	atomic_xchg(&nr_engine.called, 0);
	local_irq_save(flags);
	set_timer();
	local_irq_restore(flags);
}

/* Wake the engine. Any context, with none of the module's locks. */
void nr_kick(void)
{
	unsigned long flags;

	local_irq_save(flags);
	if (smp_processor_id() != nr_engine.cpu) {
		if (!atomic_xchg(&nr_engine.called, 1))
			smp_call_function_single_async(nr_engine.cpu, &nr_engine.call);
	} else if (!READ_ONCE(nr_engine.running)) {
		set_timer();
	}
	local_irq_restore(flags);
}

/* An event of a queue pair will be told to the ULP. */
void nr_raise(struct nr_qp *qp, enum ib_event_type event)
{
	lockdep_assert_held(&nr_engine.lock);
	qp->event = event;
	list_move_tail(&qp->event_link, &nr_engine.events);
}

/* Receives were posted to a queue pair in error. Any context, with no lock of the module. */
void nr_flush_posted(struct nr_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&nr_engine.lock, flags);
	if (qp->state == IB_QPS_ERR)
		nr_flush_recv(qp, ktime_get_ns());
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	nr_kick();
}

void nr_init_engine(void)
{
	spin_lock_init(&nr_engine.lock);
	hrtimer_setup(&nr_engine.timer, run_engine, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED);
	INIT_CSD(&nr_engine.call, answer_call, NULL);
	nr_engine.cpu = nr_cpu;
	nr_engine.armed = NR_NEVER;
	nr_engine.timed_at = NR_NEVER;
	INIT_LIST_HEAD(&nr_engine.fired);
	INIT_LIST_HEAD(&nr_engine.delayed);
	INIT_LIST_HEAD(&nr_engine.events);
	INIT_LIST_HEAD(&nr_engine.gaps);
}

static void do_nothing(void *unused)
{
}

/* The last device is gone: nobody wakes it any more. */
void nr_stop_engine(void)
{
	/* calls are answered in order, so the last one is over after this one */
	smp_call_function_single(nr_engine.cpu, do_nothing, NULL, true);
	hrtimer_cancel(&nr_engine.timer);
}
