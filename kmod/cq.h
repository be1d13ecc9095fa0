/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadows of the kernel's CQs. See cq.c.
 */
#ifndef RISO_CQ_H
#define RISO_CQ_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "dev.h"
#include "lane.h"
#include "work.h"

struct riso_flow;

enum {
	/* CQEs added to each private kernel CQ: all slots of four flows */
	RISO_CQ_EXTRA = 256,
	/* Completions reaped for the ULP: all slots of one flow */
	RISO_SOFT = 64,
	/* CQEs that the reaper takes at once: each CQ has 1 KB for them */
	RISO_POLL = 16,
};

/**
 * struct riso_cq - shadow of a kernel CQ
 * @poll: the provider's poll_cq if polls may pass, else NULL
 * @hash: in &riso_dev.cqs, RCU
 * @rd: its device
 * @cq: the CQ
 * @lane: where the hooks find it, NULL if there was no room
 * @room: CQEs that may still be reserved, if the CQ is private
 * @quiet_list: in &riso_dev.quiet while @quiet
 * @poll_lock: one poller at a time, so that what the reaper took is delivered
 *	before what came after it; outside &riso_dev.lock; held over the
 *	provider's poll_cq, never over a post; the reaper only tries it
 * @polled_ns: when the provider was polled last
 * @soft: completions taken by the reaper or made here, in order
 * @soft_head: next to deliver
 * @soft_tail: next to fill
 * @wc: room for the reaper
 * @zombies: tags of destroyed QPs whose CQEs may still be in the CQ
 * @wake: calls the ULP for what is in @soft
 * @tagged: our tags may be in it; else it is polled around us. Written under both locks when
 *	it ends, under &riso_dev.lock when it begins
 * @tagged_at: state of RCU when @tagged became true
 * @resting: nothing of ours was in it when @rested was taken, nor has been since
 * @rested: state of RCU, of riso_cq_untag_all()
 * @rcu: frees it
 * @dead: the CQ is being destroyed, the reaper keeps off
 * @quiet: the ULP wants an event; the reaper stands in for the provider
 * @flows_out: flows with slots unretired, under &riso_dev.lock
 * @uses: how often managed flows use the CQ, under &riso_dev.lock
 */
struct riso_cq {
	int (*poll)(struct ib_cq *cq, int num, struct ib_wc *wc);
	struct hlist_node hash;
	struct riso_dev *rd;
	struct ib_cq *cq;
	struct riso_lane *lane;
	u32 room;
	bool tagged;
	bool resting;
	bool dead;
	bool quiet;
	u32 flows_out;
	u32 uses;
	unsigned long tagged_at;
	unsigned long rested;
	struct list_head quiet_list;
	spinlock_t poll_lock;	/* see above */
	u64 polled_ns;
	struct ib_wc *soft;
	u32 soft_head;
	u32 soft_tail;
	struct ib_wc *wc;
	struct list_head zombies;
	struct work_struct wake;
	struct rcu_head rcu;
};

/* Completions that the soft list has room for; under @poll_lock. */
static inline u32 riso_cq_soft_room(const struct riso_cq *c)
{
	return RISO_SOFT - (c->soft_tail - c->soft_head);
}

/* See again whether polls may pass; under &riso_dev.lock. */
static inline void riso_cq_update_poll(struct riso_cq *c)
{
	lockdep_assert_held(&c->rd->lock);
	WRITE_ONCE(c->poll, c->rd->timing ? NULL : c->rd->orig.poll_cq);
}

/**
 * riso_cq_tag - something of ours is about to be in a CQ
 * @c: the CQ
 *
 * Who polls it around us just now looks once more.
 *
 * Context: under &riso_dev.lock.
 */
static inline void riso_cq_tag(struct riso_cq *c)
{
	c->resting = false;
	if (c->tagged)
		return;
	WRITE_ONCE(c->tagged, true);
	/* Who has not seen that yet is waited for. */
	c->tagged_at = get_state_synchronize_rcu();
	/* Nobody else may want a grace period: the drain work does. */
	riso_work_settle(c->rd);
}

/**
 * riso_cq_is_ours - does everybody who polls a CQ, or asks for its events, come to us?
 * @c: the CQ
 *
 * Until then the reaper keeps off: who polls around it finds what comes later than what the
 * reaper takes, and who asks for an event does not hear of that.
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool riso_cq_is_ours(const struct riso_cq *c)
{
	return READ_ONCE(c->tagged) && poll_state_synchronize_rcu(READ_ONCE(c->tagged_at));
}

/**
 * riso_cq_find - look a CQ up
 * @rd: its device
 * @cq: the CQ
 *
 * Context: under RCU or &riso_dev.mutex.
 * Return: its shadow or NULL.
 */
static __always_inline struct riso_cq *riso_cq_find(struct riso_dev *rd, const struct ib_cq *cq)
{
	struct riso_cq *c;

	hash_for_each_possible_rcu(rd->cqs, c, hash, (unsigned long)cq,
				   lockdep_is_held(&rd->mutex))
		if (c->cq == cq)
			return c;
	return NULL;
}

void riso_cq_created(struct riso_dev *rd, struct ib_cq *cq, u32 extra);
void riso_cq_destroyed(struct riso_dev *rd, struct ib_cq *cq);
bool riso_cq_reserve(struct riso_flow *f, struct ib_cq *cq);
void riso_cq_release(struct riso_flow *f);
void riso_cq_use(struct riso_flow *f, bool managed);
void riso_cq_untag_all(struct riso_dev *rd);
void riso_cq_abandon(struct riso_flow *f);
void riso_cq_purge(struct riso_dev *rd, const struct ib_qp *qp);
bool riso_cq_idle(struct riso_dev *rd);
void riso_cq_shut_all(struct riso_dev *rd);
void riso_cq_forget(struct riso_dev *rd);

#endif /* RISO_CQ_H */
