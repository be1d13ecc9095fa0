// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: entries, their events, and the moderation of these.
 *
 * The engine alone adds entries, under nr_engine.lock. Whoever polls takes them under
 * nr_cq.lock. So an entry is added and polled without a common lock. An event is the call
 * of the ULP's handler by the engine.
 *
 * Room in a send queue or a receive queue is free once the completion behind it was
 * polled, as in adapters. So a queue pair's entries are taken out when it ends.
 */

#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>

#include "cq.h"
#include "engine.h"
#include "params.h"

int nr_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		 TEST_CREATE_CQ_ARG *arg)
{
	struct nr_cq *cq = to_nr_cq(ibcq);
	u32 num;

	if (!attr->cqe || attr->cqe > NR_MAX_CQE || attr->flags)
		return -EINVAL;
	num = roundup_pow_of_two(attr->cqe);
	cq->ring = kvcalloc(num, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->link);
	cq->event_at = NR_NEVER;
	cq->mask = num - 1;
	ibcq->cqe = num;
	return 0;
}

int nr_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct nr_cq *cq = to_nr_cq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&nr_engine.lock, flags);
	list_del_init(&cq->link);
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	nr_await_handler(cq);
	kvfree(cq->ring);
	return 0;
}

int nr_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct nr_cq *cq = to_nr_cq(ibcq);
	unsigned long flags;
	u32 head, tail;
	int i;

	/* Nothing is there most of the time for one that polls in vain. */
	if (READ_ONCE(cq->head) == READ_ONCE(cq->tail))
		return 0;
	spin_lock_irqsave(&cq->lock, flags);
	tail = cq->tail;
	/* Pairs with the release in nr_add_cqe(). */
	head = smp_load_acquire(&cq->head);
	for (i = 0; i < num && tail != head; i++, tail++) {
		struct nr_cqe *cqe = &cq->ring[tail & cq->mask];

		wc[i] = cqe->wc;
		if (cqe->tail)
			WRITE_ONCE(*cqe->tail, cqe->value);
	}
	/* Pairs with the acquire in nr_next_cqe(). */
	smp_store_release(&cq->tail, tail);
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

int nr_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	u32 arm = flags & IB_CQ_SOLICITED_MASK;
	struct nr_cq *cq = to_nr_cq(ibcq);
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	/* One who waits for any completion goes on to do so. */
	WRITE_ONCE(cq->armed, cq->armed | arm);
	spin_unlock_irqrestore(&cq->lock, irq);
	if (!(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return 0;
	/* Pairs with the barrier in nr_add_cqe(): it has seen @armed, or its entry is seen. */
	smp_mb();
	return READ_ONCE(cq->head) != READ_ONCE(cq->tail);
}

/* The handler will be called. */
void nr_fire_cq(struct nr_cq *cq)
{
	lockdep_assert_held(&nr_engine.lock);
	WRITE_ONCE(cq->armed, 0);
	cq->event_at = NR_NEVER;
	cq->count = 0;
	list_move_tail(&cq->link, &nr_engine.fired);
}

/* The device's events come in order, as all of them have the same delay. */
static void delay_event(struct nr_cq *cq, u64 t)
{
	struct nr_cq *last;

	if (cq->event_at == NR_NEVER) {
		cq->event_at = t + (u64)READ_ONCE(nr_moder_us) * NSEC_PER_USEC;
		if (!list_empty(&nr_engine.delayed)) {
			last = list_last_entry(&nr_engine.delayed, struct nr_cq, link);
			cq->event_at = max(cq->event_at, last->event_at);
		}
		list_move_tail(&cq->link, &nr_engine.delayed);
		nr_engine.timed_at = min(nr_engine.timed_at, cq->event_at);
	}
	if (++cq->count >= READ_ONCE(nr_moder_count))
		nr_fire_cq(cq);
}

/* The entry to fill for nr_add_cqe(), or NULL if there is no room. */
struct nr_cqe *nr_next_cqe(struct nr_cq *cq)
{
	u32 head = cq->head;

	/* Pairs with the release in nr_poll_cq(). */
	if (likely(head - smp_load_acquire(&cq->tail) <= cq->mask))
		return &cq->ring[head & cq->mask];
	if (!cq->overrun) {
		cq->overrun = true;
		pr_err("nullrdma: a CQ of %u entries is full\n", cq->mask + 1);
	}
	return NULL;
}

/* An entry was filled. An event asks for the handler, at once or after a while. */
void nr_add_cqe(struct nr_cq *cq, struct nr_cqe *cqe, bool solicited, u64 t)
{
	u32 armed;

	/* Pairs with the acquire in nr_poll_cq(). */
	smp_store_release(&cq->head, cq->head + 1);
	/* Pairs with the barrier in nr_req_notify_cq(). */
	smp_mb();
	armed = READ_ONCE(cq->armed);
	if (!armed)
		return;
	if (!(armed & IB_CQ_NEXT_COMP) && !solicited &&
	    cqe->wc.status == IB_WC_SUCCESS)
		return;
	if (READ_ONCE(nr_moder_us))
		delay_event(cq, t);
	else
		nr_fire_cq(cq);
}

/* Take out what a queue pair that ends has left there. */
void nr_purge_cq(struct nr_cq *cq, const struct nr_qp *qp)
{
	u32 from, to;

	lockdep_assert_held(&nr_engine.lock);
	spin_lock(&cq->lock);
	for (from = cq->head, to = cq->head; from != cq->tail; from--) {
		struct nr_cqe *cqe = &cq->ring[(from - 1) & cq->mask];

		if (cqe->wc.qp == &qp->ibqp)
			continue;
		to--;
		if (to != from - 1)
			cq->ring[to & cq->mask] = *cqe;
	}
	WRITE_ONCE(cq->tail, to);
	spin_unlock(&cq->lock);
}
