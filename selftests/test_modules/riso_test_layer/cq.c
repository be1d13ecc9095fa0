// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: late events, withheld and purged completions, and a poll that is
 * held up.
 *
 * Owns the list of the CQs that kernel ULPs use, and what was taken out of them.
 * &layer_cq.lock protects what was taken out of a CQ, and is held over the provider's
 * poll_cq. cqs_lock protects changes of the list, which is read under RCU.
 *
 * Polls, requests for events and events come in any context. CQs are created, purged
 * and destroyed in process context.
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "../riso_test_layer.h"
#include "cq.h"
#include "layer.h"
#include "seen.h"

/* completions that purging may have to put aside */
#define LAYER_SAVED	4096
/* the longest that a poll is held up */
#define LAYER_HELD_S	10

static bool late;
module_param(late, bool, 0644);
MODULE_PARM_DESC(late, "events come a jiffy late");

bool layer_stall;

HLIST_HEAD(layer_cqs);
/* changes of the list above */
static DEFINE_SPINLOCK(cqs_lock);

/* the CQ whose next poll is held up, and how far that poll has come */
static const struct ib_cq *held_cq;
static int held_polls;

/**
 * riso_test_layer_hold - hold one poll of a CQ up
 * @cq: the CQ, or NULL to let the poll go on
 *
 * The poll looks until it finds something, and returns it when it may go on.
 *
 * Return: 0 before that poll, 1 while it looks, 2 when it has found something.
 */
int riso_test_layer_hold(const struct ib_cq *cq)
{
	if (READ_ONCE(held_cq) != cq) {
		WRITE_ONCE(held_polls, 0);
		/* Pairs with smp_load_acquire() in layer_poll_cq(). */
		smp_store_release(&held_cq, cq);
	}
	return READ_ONCE(held_polls);
}
EXPORT_SYMBOL_GPL(riso_test_layer_hold);

static struct layer_cq *find_cq(const struct ib_cq *cq)
{
	struct layer_cq *lc;

	hlist_for_each_entry_rcu(lc, &layer_cqs, node)
		if (lc->cq == cq)
			return lc;
	return NULL;
}

static void tell(struct work_struct *work)
{
	struct layer_cq *lc = container_of(to_delayed_work(work),
					   struct layer_cq, event);

	lc->handler(lc->cq, lc->cq->cq_context);
}

static void layer_event(struct ib_cq *cq, void *context)
{
	struct layer_cq *lc;

	rcu_read_lock();
	lc = find_cq(cq);
	if (lc && READ_ONCE(late))
		queue_delayed_work(system_highpri_wq, &lc->event, 1);
	else if (lc)
		lc->handler(cq, context);
	rcu_read_unlock();
}

/* Events have gone by while nothing was to be found: they come once more. */
static void repeat_events(void)
{
	struct layer_cq *lc;

	rcu_read_lock();
	hlist_for_each_entry_rcu(lc, &layer_cqs, node)
		queue_delayed_work(system_highpri_wq, &lc->event, 0);
	rcu_read_unlock();
}

static void end_stall(struct work_struct *work)
{
	WRITE_ONCE(layer_refuse, 0);
	WRITE_ONCE(layer_stall, false);
	repeat_events();
}

DECLARE_DELAYED_WORK(layer_unstall, end_stall);

static int set_stall(const char *val, const struct kernel_param *kp)
{
	int err = param_set_bool(val, kp);

	if (!err && !READ_ONCE(layer_stall))
		repeat_events();
	return err;
}

static const struct kernel_param_ops stall_ops = {
	.set = set_stall,
	.get = param_get_bool,
};

module_param_cb(stall, &stall_ops, &layer_stall, 0644);
MODULE_PARM_DESC(stall, "completions are withheld");

/* The core sets the handler after the CQ was created, and before it asks for events. */
static struct layer_cq *watch_cq(struct ib_cq *cq)
{
	struct layer_cq *lc;
	unsigned long flags;

	lc = find_cq(cq);
	if (lc || !cq->comp_handler)
		return lc;
	lc = kzalloc(sizeof(*lc), GFP_ATOMIC);
	if (!lc)
		return NULL;
	lc->cq = cq;
	lc->handler = cq->comp_handler;
	spin_lock_init(&lc->lock);
	INIT_DELAYED_WORK(&lc->event, tell);
	spin_lock_irqsave(&cqs_lock, flags);
	if (cq->comp_handler == layer_event) {
		kfree(lc);
		lc = NULL;
	} else {
		hlist_add_head_rcu(&lc->node, &layer_cqs);
		WRITE_ONCE(cq->comp_handler, layer_event);
	}
	spin_unlock_irqrestore(&cqs_lock, flags);
	return lc;
}

void layer_forget_cq(struct ib_cq *cq)
{
	struct layer_cq *lc = find_cq(cq);

	if (!lc)
		return;
	cq->comp_handler = lc->handler;
	spin_lock_irq(&cqs_lock);
	hlist_del_rcu(&lc->node);
	spin_unlock_irq(&cqs_lock);
	synchronize_rcu();
	cancel_delayed_work_sync(&lc->event);
	kvfree(lc->saved);
	kfree(lc);
}

int layer_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	int ret;

	if (cq->uobject)
		return layer_orig.req_notify_cq(cq, flags);
	rcu_read_lock();
	watch_cq(cq);
	rcu_read_unlock();
	atomic64_inc(&layer_notifies);
	ret = layer_orig.req_notify_cq(cq, flags);
	return READ_ONCE(layer_stall) ? 0 : ret;
}

static int hold_poll(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	/* A CPU that does not come back would be taken for dead. */
	unsigned long end = jiffies + LAYER_HELD_S * HZ;
	int n = 0;

	while (READ_ONCE(held_cq) == cq && time_before(jiffies, end)) {
		if (!n)
			n = layer_orig.poll_cq(cq, num, wc);
		if (n)
			WRITE_ONCE(held_polls, 2);
		cpu_relax();
	}
	return n;
}

int layer_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	struct layer_cq *lc;
	unsigned long flags;
	int n = 0;
	int got;

	if (cq->uobject)
		return layer_orig.poll_cq(cq, num, wc);
	/* Pairs with smp_store_release() in riso_test_layer_hold(). */
	if (smp_load_acquire(&held_cq) == cq && !cmpxchg(&held_polls, 0, 1))
		return hold_poll(cq, num, wc);
	rcu_read_lock();
	lc = find_cq(cq);
	if (!lc) {
		n = layer_orig.poll_cq(cq, num, wc);
		goto unlock;
	}
	if (READ_ONCE(layer_stall))
		goto unlock;
	spin_lock_irqsave(&lc->lock, flags);
	while (n < num && lc->head != lc->tail)
		wc[n++] = lc->saved[lc->head++ % LAYER_SAVED];
	if (n < num) {
		got = layer_orig.poll_cq(cq, num - n, wc + n);
		n += max(got, 0);
	}
	spin_unlock_irqrestore(&lc->lock, flags);
unlock:
	rcu_read_unlock();
	return n;
}

/* Take out what is there of a queue pair, and keep the rest. */
void layer_purge_cq(struct ib_cq *cq, const struct ib_qp *qp)
{
	struct layer_cq *lc = find_cq(cq);
	struct ib_wc wc;
	u32 i, end;

	if (!lc)
		return;
	if (!lc->saved)
		lc->saved = kvmalloc_array(LAYER_SAVED, sizeof(*lc->saved), GFP_KERNEL);
	if (!lc->saved)
		return;
	spin_lock_irq(&lc->lock);
	while (lc->tail - lc->head < LAYER_SAVED && layer_orig.poll_cq(cq, 1, &wc) == 1)
		lc->saved[lc->tail++ % LAYER_SAVED] = wc;
	end = lc->tail;
	lc->tail = lc->head;
	for (i = lc->head; i != end; i++)
		if (lc->saved[i % LAYER_SAVED].qp != qp)
			lc->saved[lc->tail++ % LAYER_SAVED] =
				lc->saved[i % LAYER_SAVED];
	spin_unlock_irq(&lc->lock);
}

int layer_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		    TEST_CREATE_CQ_ARG *arg)
{
	struct ib_cq_init_attr less = *attr;

	/* No more than the device has, whatever it says. */
	if (layer_deep && !cq->uobject)
		less.cqe = min_t(u32, less.cqe, LAYER_MAX_CQE / 2 - 1);
	return layer_orig.create_cq(cq, &less, arg);
}

int layer_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	layer_forget_cq(cq);
	return layer_orig.destroy_cq(cq, udata);
}
