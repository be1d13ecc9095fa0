// SPDX-License-Identifier: GPL-2.0
/*
 * Shadows of the kernel's CQs.
 *
 * Owns the table of shadows, their life, the CQEs that are reserved in each CQ for the
 * chunks of flows, and what is left in a CQ of a QP that is gone.
 *
 * Tags outlive their QP: rxe leaves the completions of a destroyed QP in the CQ, mlx5 takes
 * them out. So the slots of a destroyed QP wait on the CQ's list of zombies until the CQ has
 * once been polled empty, and a grace period longer. The completions of a QP leave the soft
 * list when the QP is destroyed or reset.
 *
 * Locks: the table is read under RCU and written under &riso_dev.mutex, which covers
 * &riso_cq.room as well. &riso_cq.poll_lock covers the zombies and the soft list,
 * &riso_dev.lock inside it &riso_cq.uses. Functions run in process context, those of the
 * header in any.
 */

#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "cq.h"
#include "cq_arm.h"
#include "cq_poll.h"
#include "dev.h"
#include "flow.h"
#include "tag.h"

static void wake_ulp(struct work_struct *work)
{
	struct riso_cq *c = container_of(work, struct riso_cq, wake);

	if (c->cq->comp_handler)
		c->cq->comp_handler(c->cq, c->cq->cq_context);
}

static struct riso_cq *add_cq(struct riso_dev *rd, struct ib_cq *cq, u32 room)
{
	struct riso_cq *c;

	lockdep_assert_held(&rd->mutex);
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return NULL;
	c->soft = kcalloc(RISO_SOFT + RISO_POLL, sizeof(*c->soft), GFP_KERNEL);
	if (!c->soft) {
		kfree(c);
		return NULL;
	}
	c->wc = c->soft + RISO_SOFT;
	c->rd = rd;
	c->cq = cq;
	c->room = room;
	spin_lock_init(&c->poll_lock);
	INIT_LIST_HEAD(&c->zombies);
	INIT_LIST_HEAD(&c->quiet_list);
	INIT_WORK(&c->wake, wake_ulp);
	hash_add_rcu(rd->cqs, &c->hash, (unsigned long)cq);
	spin_lock_irq(&rd->lock);
	riso_cq_update_poll(c);
	spin_unlock_irq(&rd->lock);
	if (!rd->buried)
		c->lane = riso_lane_take(cq, c);
	return c;
}

/**
 * riso_cq_created - remember what a new kernel CQ has room for
 * @rd: its device
 * @cq: the CQ
 * @extra: CQEs that were added for us
 *
 * Context: may sleep.
 */
void riso_cq_created(struct riso_dev *rd, struct ib_cq *cq, u32 extra)
{
	riso_dev_lock(rd);
	add_cq(rd, cq, extra);
	riso_dev_unlock(rd);
}

static void free_cq_rcu(struct rcu_head *head)
{
	struct riso_cq *c = container_of(head, struct riso_cq, rcu);

	kfree(c->soft);
	kfree(c);
}

/**
 * riso_cq_destroyed - a CQ is about to go
 * @rd: its device
 * @cq: the CQ, which no QP uses any more
 *
 * Context: may sleep.
 */
void riso_cq_destroyed(struct riso_dev *rd, struct ib_cq *cq)
{
	struct riso_cq *c;

	riso_dev_lock(rd);
	c = riso_cq_find(rd, cq);
	if (c) {
		hash_del_rcu(&c->hash);
		riso_lane_leave(c->lane);
		spin_lock_irq(&c->poll_lock);
		c->dead = true;
		if (c->quiet)
			riso_cq_make_loud(c);
		riso_cq_bury(c);
		spin_unlock_irq(&c->poll_lock);
		cancel_work_sync(&c->wake);
		call_rcu(&c->rcu, free_cq_rcu);
	}
	riso_dev_unlock(rd);
}

/**
 * riso_cq_reserve - reserve CQEs for the chunks of a flow
 * @f: a new flow; its cq and cq_room are set
 * @cq: its send CQ
 *
 * On a CQ of the shared pools, room is taken as another user of the pool would.
 * A private CQ was made larger when it was created, if that was after load.
 *
 * Context: &riso_dev.mutex.
 * Return: true if there is enough.
 */
bool riso_cq_reserve(struct riso_flow *f, struct ib_cq *cq)
{
	struct riso_dev *rd = f->rd;
	struct riso_cq *c = riso_cq_find(rd, cq);
	u32 want = RISO_SLOTS;

	lockdep_assert_held(&rd->mutex);
	if (!c)
		c = add_cq(rd, cq, 0);
	if (!c)
		return false;
	while (want > RISO_SLOTS_MIN && want > 2 * f->sq_depth)
		want /= 2;
	if (cq->shared) {
		spin_lock_irq(&rd->ibdev->cq_pools_lock);
		while (want >= RISO_SLOTS_MIN &&
		       cq->cqe_used + want > cq->cqe)
			want /= 2;
		if (want >= RISO_SLOTS_MIN)
			cq->cqe_used += want;
		spin_unlock_irq(&rd->ibdev->cq_pools_lock);
	} else {
		/* Leave something for the next QP on this CQ. */
		while (want >= RISO_SLOTS_MIN && want > c->room / 2)
			want /= 2;
		if (want >= RISO_SLOTS_MIN)
			c->room -= want;
	}
	if (want < RISO_SLOTS_MIN)
		return false;
	f->cq = c;
	f->cq_room = want;
	return true;
}

/**
 * riso_cq_release - give reserved CQEs back
 * @f: the flow
 *
 * Context: &riso_dev.mutex.
 */
void riso_cq_release(struct riso_flow *f)
{
	struct ib_cq *cq;

	lockdep_assert_held(&f->rd->mutex);
	if (!f->cq_room)
		return;
	cq = f->cq->cq;
	if (cq->shared) {
		spin_lock_irq(&f->rd->ibdev->cq_pools_lock);
		cq->cqe_used -= f->cq_room;
		spin_unlock_irq(&f->rd->ibdev->cq_pools_lock);
	} else {
		f->cq->room += f->cq_room;
	}
	f->cq_room = 0;
}

/**
 * riso_cq_use - a flow is managed from now on, or no longer
 * @f: the flow
 * @managed: it is
 *
 * Context: &riso_dev.mutex.
 */
void riso_cq_use(struct riso_flow *f, bool managed)
{
	struct riso_cq *c = f->cq;
	u32 uses = managed ? 1 + (f->qp->recv_cq == f->qp->send_cq) : 0;
	unsigned long flags;

	lockdep_assert_held(&f->rd->mutex);
	if (!c)
		return;
	spin_lock_irqsave(&c->poll_lock, flags);
	spin_lock(&f->rd->lock);
	c->uses += uses - f->cq_uses;
	f->cq_uses = uses;
	spin_unlock(&f->rd->lock);
	/* Once no managed flow is left the CQ may go at any time. */
	riso_cq_check_quiet(c);
	spin_unlock_irqrestore(&c->poll_lock, flags);
}

/*
 * Is nothing of ours in a CQ, for so long that nobody who has polled it around us is still
 * about to look for that? Under both locks.
 */
static bool has_rested(struct riso_cq *c)
{
	lockdep_assert_held(&c->poll_lock);
	if (c->flows_out || c->quiet || c->soft_head != c->soft_tail ||
	    !list_empty(&c->zombies)) {
		c->resting = false;
		return false;
	}
	if (!c->resting) {
		c->resting = true;
		c->rested = get_state_synchronize_rcu();
		return false;
	}
	return poll_state_synchronize_rcu(c->rested);
}

/**
 * riso_cq_untag_all - let CQs in which nothing of ours is be polled around us
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 */
void riso_cq_untag_all(struct riso_dev *rd)
{
	bool waits = false;
	struct riso_cq *c;
	int bkt;

	lockdep_assert_held(&rd->mutex);
	hash_for_each(rd->cqs, bkt, c, hash) {
		if (!READ_ONCE(c->tagged))
			continue;
		waits = true;
		spin_lock_irq(&c->poll_lock);
		spin_lock(&rd->lock);
		if (has_rested(c))
			WRITE_ONCE(c->tagged, false);
		spin_unlock(&rd->lock);
		spin_unlock_irq(&c->poll_lock);
	}
	/* Nobody else may want a grace period. */
	if (waits)
		start_poll_synchronize_rcu();
}

/**
 * riso_cq_abandon - the QP is gone, its completions may still come
 * @f: the flow, under neither lock
 *
 * Context: process.
 */
void riso_cq_abandon(struct riso_flow *f)
{
	struct riso_slots *s = f->slots;
	unsigned long flags;

	if (!s)
		return;
	spin_lock_irqsave(&f->cq->poll_lock, flags);
	spin_lock(&f->rd->lock);
	s->flow = NULL;
	f->slots = NULL;
	spin_unlock(&f->rd->lock);
	if (s->head == s->tail)
		riso_tag_free_slots(s);
	else
		list_add_tail(&s->zombie, &f->cq->zombies);
	spin_unlock_irqrestore(&f->cq->poll_lock, flags);
}

static void purge_soft(struct riso_cq *c, const struct ib_qp *qp)
{
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&c->poll_lock, flags);
	to = c->soft_head;
	for (from = to; from != c->soft_tail; from++)
		if (c->soft[from % RISO_SOFT].qp != qp)
			c->soft[to++ % RISO_SOFT] = c->soft[from % RISO_SOFT];
	c->soft_tail = to;
	spin_unlock_irqrestore(&c->poll_lock, flags);
}

/**
 * riso_cq_purge - drop what nobody has polled of a QP that is gone
 * @rd: the device
 * @qp: the QP; the provider has destroyed or reset it
 *
 * Providers that take the completions of such a QP out of its CQs have not seen those
 * that the reaper took before.
 *
 * Context: process.
 */
void riso_cq_purge(struct riso_dev *rd, const struct ib_qp *qp)
{
	struct ib_cq *cqs[] = { qp->send_cq, qp->recv_cq };
	struct riso_cq *c;
	size_t i;

	rcu_read_lock();
	for (i = 0; i < ARRAY_SIZE(cqs); i++) {
		c = cqs[i] ? riso_cq_find(rd, cqs[i]) : NULL;
		if (c)
			purge_soft(c, qp);
	}
	rcu_read_unlock();
}

/**
 * riso_cq_idle - is nothing of ours in any CQ?
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 * Return: true if no tag and no reaped completion is left.
 */
bool riso_cq_idle(struct riso_dev *rd)
{
	struct riso_cq *c;
	bool idle = true;
	int bkt;

	lockdep_assert_held(&rd->mutex);
	hash_for_each(rd->cqs, bkt, c, hash) {
		if (!list_empty(&c->zombies)) {
			rcu_read_lock();
			riso_cq_reap_one(c);
			rcu_read_unlock();
		}
		spin_lock_irq(&c->poll_lock);
		idle = idle && list_empty(&c->zombies) &&
		       c->soft_head == c->soft_tail;
		spin_unlock_irq(&c->poll_lock);
	}
	return idle;
}

/**
 * riso_cq_shut_all - CQs may go without notice from now on
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 */
void riso_cq_shut_all(struct riso_dev *rd)
{
	struct riso_cq *c;
	int bkt;

	lockdep_assert_held(&rd->mutex);
	hash_for_each(rd->cqs, bkt, c, hash)
		riso_lane_shut(c->lane);
}

/**
 * riso_cq_forget - drop the shadows of a device whose hooks are gone
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 */
void riso_cq_forget(struct riso_dev *rd)
{
	struct hlist_node *tmp;
	struct riso_cq *c;
	int bkt;

	lockdep_assert_held(&rd->mutex);
	hash_for_each_safe(rd->cqs, bkt, tmp, c, hash) {
		hash_del_rcu(&c->hash);
		riso_lane_leave(c->lane);
		cancel_work_sync(&c->wake);
		riso_cq_bury(c);
		call_rcu(&c->rcu, free_cq_rcu);
	}
}
