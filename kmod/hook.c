// SPDX-License-Identifier: GPL-2.0
/*
 * The hooks: what the operations of an ib_device do in the provider's place.
 *
 * Owns the table of devices by index; ops.c fills it, and puts the hooks in place. All users of the
 * RDMA core call them without a lock. Hooks that sleep are under SRCU of the device, see ops.c.
 *
 * Contexts: post_send, poll_cq and req_notify_cq in any; the others may sleep.
 * A QP or CQ of a program costs a look-up and a test, and an unmanaged kernel QP, or a CQ that no
 * managed flow uses, one look-up (lane.c), and neither a store to shared memory.
 */

#include <linux/delay.h>
#include <linux/srcu.h>

#include "compat.h"
#include "cq.h"
#include "cq_arm.h"
#include "cq_poll.h"
#include "dev.h"
#include "flow.h"
#include "hook.h"
#include "lane.h"
#include "manage.h"
#include "observe.h"
#include "open.h"
#include "ring.h"
#include "sched.h"
#include "tag.h"
#include "turn.h"
#include "work.h"

struct riso_dev *riso_hook_devs[RISO_MAX_DEVS];

enum {
	/* How often a drain looks: its caller waits for completions, which take as long. */
	RISO_DRAIN_SQ_MS = 20,
	/*
	 * How often to look whether what is held has been handed over: about as long as a
	 * chunk takes. And for how long to go on although nothing was: a path that is alive
	 * delivers much sooner.
	 */
	RISO_HAND_OVER_US = 50,
	RISO_HAND_OVER_MS = 1000,
};

static struct riso_dev *dev_of(const struct ib_device *ibdev)
{
	return READ_ONCE(*riso_hook_entry(ibdev->index));
}

/*
 * What has an unknown opcode waits behind what is held, too. Another CPU may change the mode
 * in between, and change it back.
 */
static noinline int post_managed(struct riso_flow *f, const struct ib_send_wr *wr)
{
	int ret;

	while ((ret = riso_sched_post(f, wr)) == -EOPNOTSUPP)
		riso_manage_surrender(f);
	return ret;
}

/* An open flow: its owner keeps the QP alive, and so the flow. */
static noinline int post_open(struct ib_qp *qp, const struct ib_send_wr *wr,
			      const struct ib_send_wr **bad_wr, const struct riso_flow *f)
{
	int err;

	/* As pass_post() does */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_lock();
	preempt_disable();
	riso_open_count(f, wr, 1);
	preempt_enable();
	/* Some providers refuse without saying where. */
	*bad_wr = wr;
	err = f->rd->orig.post_send(qp, wr, bad_wr);
	if (unlikely(err) && *bad_wr) {
		preempt_disable();
		riso_open_count(f, *bad_wr, -1);
		preempt_enable();
	}
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_unlock();
	return err;
}

/*
 * Where the provider's locks sleep, Tasks RCU does not see that we are here. Else the call is all
 * that is left to do.
 */
static __always_inline int pass_post(typeof_member(struct riso_flow, post) post, struct ib_qp *qp,
				     const struct ib_send_wr *wr,
				     const struct ib_send_wr **bad_wr)
{
	int err;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		return post(qp, wr, bad_wr);
	rcu_read_lock();
	err = post(qp, wr, bad_wr);
	rcu_read_unlock();
	return err;
}

/* A flow that is managed or observed, or has no lane */
static noinline int post_looked_at(struct ib_qp *qp, const struct ib_send_wr *wr,
				   const struct ib_send_wr **bad_wr)
{
	struct riso_dev *rd = dev_of(qp->device);
	int ret = RISO_SCHED_PASS;
	struct riso_flow *f;

	/* rxe calls with no work request for user QPs: it is a doorbell. */
	if (qp->uobject)
		return pass_post(rd->orig.post_send, qp, wr, bad_wr);
	rcu_read_lock();
	f = riso_flow_find(rd, qp, false);
	/* Pairs with the release in riso_open_update(). */
	if (f && smp_load_acquire(&f->open)) {
		rcu_read_unlock();
		return post_open(qp, wr, bad_wr, f);
	}
	if (f && READ_ONCE(f->mode) != RISO_FLOW_PASS) {
		ret = post_managed(f, wr);
	} else if (READ_ONCE(rd->observing)) {
		ret = riso_observe_post(rd, f, qp, wr, bad_wr);
		rcu_read_unlock();
		return ret;
	}
	rcu_read_unlock();
	if (!ret)
		return 0;
	/* Some providers refuse without saying where. */
	*bad_wr = wr;
	return ret == RISO_SCHED_PASS ? pass_post(rd->orig.post_send, qp, wr, bad_wr) : ret;
}

static int hook_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad_wr)
{
	const struct riso_lane *l;
	struct riso_flow *f;
	typeof(f->post) post;

	if (unlikely(!riso_lane_find(qp, &l)))
		return post_looked_at(qp, wr, bad_wr);
	f = l->to;
	post = READ_ONCE(f->post);
	if (likely(post))
		return pass_post(post, qp, wr, bad_wr);
	/* Pairs with the release in riso_open_update(). */
	if (smp_load_acquire(&f->open))
		return post_open(qp, wr, bad_wr, f);
	return post_looked_at(qp, wr, bad_wr);
}

/* A CQ that may have our tags, or is timed, or has no lane */
static noinline int poll_looked_at(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	struct riso_dev *rd = dev_of(cq->device);
	struct riso_cq *c;
	int ret;

	rcu_read_lock();
	if (cq->uobject) {
		ret = rd->orig.poll_cq(cq, num, wc);
		rcu_read_unlock();
		return ret;
	}
	c = riso_cq_find(rd, cq);
	if (c && READ_ONCE(c->tagged)) {
		ret = riso_cq_poll(c, num, 0, wc);
	} else {
		ret = rd->orig.poll_cq(cq, num, wc);
		/* Pairs with &riso_dev.lock, see hook_poll_cq(). */
		smp_rmb();
		c = c ?: riso_cq_find(rd, cq);
		if (ret > 0 && c && READ_ONCE(c->tagged))
			ret = riso_cq_poll(c, num, ret, wc);
	}
	if (READ_ONCE(rd->timing))
		riso_observe_polled(rd, cq, wc, ret);
	rcu_read_unlock();
	return ret;
}

/*
 * Who polls around us keeps its CPU meanwhile, which is cheaper than RCU's own lock and holds grace
 * periods up as well. On PREEMPT_RT it cannot, as the provider's locks sleep.
 */
static __always_inline void pass_begin(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_lock();
	else
		rcu_read_lock_sched();
}

static __always_inline void pass_end(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_unlock();
	else
		rcu_read_unlock_sched();
}

static int hook_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	const struct riso_lane *l;
	struct riso_cq *c;
	typeof(c->poll) poll;
	int ret;

	if (unlikely(!riso_lane_find(cq, &l)))
		return poll_looked_at(cq, num, wc);
	c = l->to;
	pass_begin();
	poll = READ_ONCE(c->poll);
	if (!poll || READ_ONCE(c->tagged)) {
		pass_end();
		return poll_looked_at(cq, num, wc);
	}
	ret = poll(cq, num, wc);
	/*
	 * A flow may have posted meanwhile, and its tags be among what was found. Pairs with
	 * &riso_dev.lock: riso_cq.tagged is set under it, and the flow posts after that.
	 */
	smp_rmb();
	if (unlikely(READ_ONCE(c->tagged)) && ret > 0)
		ret = riso_cq_poll(c, num, ret, wc);
	pass_end();
	return ret;
}

static int hook_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	struct riso_dev *rd = dev_of(cq->device);
	struct riso_cq *c;
	int ret;

	rcu_read_lock();
	c = cq->uobject ? NULL : riso_cq_find(rd, cq);
	ret = c && READ_ONCE(c->tagged) ? riso_cq_notify(c, flags) :
					rd->orig.req_notify_cq(cq, flags);
	rcu_read_unlock();
	return ret;
}

static int hook_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			  struct ib_udata *udata)
{
	struct riso_dev *rd = dev_of(qp->device);
	int idx = srcu_read_lock(&rd->srcu);
	int ret;

	ret = rd->orig.create_qp(qp, attr, udata);
	if (!ret)
		riso_flow_create(rd, qp, attr, udata || qp->uobject);
	srcu_read_unlock(&rd->srcu, idx);
	return ret;
}

/* The flow of a QP, in a hook that may sleep: the QP's owner keeps it alive. */
static struct riso_flow *flow_of(struct riso_dev *rd, const struct ib_qp *qp)
{
	struct riso_flow *f;

	rcu_read_lock();
	f = riso_flow_find(rd, qp, false) ?: riso_flow_find(rd, qp, true);
	rcu_read_unlock();
	return f;
}

/*
 * What the peer is told of goes to the provider while the QP can still send it, with all
 * that is in front of it: a ULP that says good-bye to its peer and ends the QP expects it
 * to have been sent. Nothing is waited for but room in the provider's queue. If nothing of
 * that comes for so long, the path is dead. Of the rest nobody could tell whether it was
 * sent, and it would only fill the wire.
 */
static void hand_over(struct riso_flow *f)
{
	unsigned long end = jiffies + msecs_to_jiffies(RISO_HAND_OVER_MS);
	struct riso_dev *rd = f->rd;
	u64 was = U64_MAX;
	bool done;

	if (READ_ONCE(f->mode) == RISO_FLOW_PASS)
		return;
	for (;;) {
		spin_lock_irq(&rd->lock);
		done = !f->q.recs || !riso_ring_tells(&f->q) || f->state != IB_QPS_RTS;
		if (!done && was != f->q.head) {
			was = f->q.head;
			end = jiffies + msecs_to_jiffies(RISO_HAND_OVER_MS);
		}
		done = done || !time_before(jiffies, end);
		riso_flow_step(f, done ? RISO_ON_HANDED_OVER : RISO_ON_HAND_OVER);
		riso_turn_wake(f, ktime_get_ns());
		done = f->phase != RISO_PHASE_ENDING;
		spin_unlock_irq(&rd->lock);
		if (done)
			return;
		riso_sched_run(rd);
		/* data_race(): a look too early or too late only costs a sleep. */
		if (data_race(riso_ring_tells(&f->q)))
			usleep_range(RISO_HAND_OVER_US, 2 * RISO_HAND_OVER_US);
	}
}

static int hook_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	struct riso_dev *rd = dev_of(qp->device);
	int idx = srcu_read_lock(&rd->srcu);
	struct riso_flow *f = flow_of(rd, qp);
	bool reset = f && (mask & IB_QP_STATE) &&
		     attr->qp_state == IB_QPS_RESET;
	int ret;

	if (f && (mask & IB_QP_STATE) && attr->qp_state == IB_QPS_ERR)
		hand_over(f);
	if (reset)
		riso_flow_pause(f);
	ret = rd->orig.modify_qp(qp, attr, mask, udata);
	if (f && !ret)
		riso_flow_modified(f, attr, mask);
	if (reset && !ret)
		riso_cq_purge(rd, qp);
	if (reset)
		riso_flow_resume(f);
	srcu_read_unlock(&rd->srcu, idx);
	return ret;
}

static int hook_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct riso_dev *rd = dev_of(qp->device);
	int idx = srcu_read_lock(&rd->srcu);
	struct riso_flow *f = flow_of(rd, qp);
	int ret;

	if (f) {
		hand_over(f);
		riso_flow_pause(f);
		WRITE_ONCE(f->dying, true);
	}
	ret = rd->orig.destroy_qp(qp, udata);
	if (f && !ret) {
		riso_flow_destroyed(f);
	} else if (f) {
		WRITE_ONCE(f->dying, false);
		riso_flow_resume(f);
	}
	if (!ret)
		riso_cq_purge(rd, qp);
	srcu_read_unlock(&rd->srcu, idx);
	return ret;
}

/* What is held goes at once, and if the provider refuses it, completes in its place. */
static void flush(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	spin_lock_irq(&rd->lock);
	riso_flow_step(f, RISO_ON_FAIL);
	riso_turn_wake(f, ktime_get_ns());
	spin_unlock_irq(&rd->lock);
	riso_sched_run(rd);
}

/*
 * Only providers with a drain of their own come here. It posts around us, so all that
 * is held has to go out first, however long it takes. It goes out, as in a QP in error
 * nothing but room in the provider's queue is waited for, and that comes with its
 * completions; one that has no room for a second although nothing completes is taken to
 * refuse, and what is held completes here. For both the CQ has to be polled, and without
 * that the provider's drain would not end either.
 */
static void hook_drain_sq(struct ib_qp *qp)
{
	struct riso_dev *rd = dev_of(qp->device);
	int idx = srcu_read_lock(&rd->srcu);
	struct riso_flow *f = flow_of(rd, qp);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (f && READ_ONCE(f->mode) != RISO_FLOW_PASS) {
		/* A device that has failed may not do even that. */
		ib_modify_qp(qp, &attr, IB_QP_STATE);
		flush(f);
		while (riso_flow_held(f)) {
			if (qp->send_cq->poll_ctx == IB_POLL_DIRECT)
				ib_process_cq_direct(qp->send_cq, -1);
			msleep(RISO_DRAIN_SQ_MS);
		}
	}
	rd->orig.drain_sq(qp);
	srcu_read_unlock(&rd->srcu, idx);
}

static int hook_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			  RISO_CREATE_CQ_ARG *arg)
{
	struct riso_dev *rd = dev_of(cq->device);
	int idx = srcu_read_lock(&rd->srcu);
	struct ib_cq_init_attr larger = *attr;
	int ret;

	if (cq->uobject || cq->poll_ctx == IB_POLL_DIRECT ||
	    attr->cqe >= rd->ibdev->attrs.max_cqe) {
		ret = rd->orig.create_cq(cq, attr, arg);
	} else {
		larger.cqe = min_t(u32, attr->cqe + RISO_CQ_EXTRA,
				   rd->ibdev->attrs.max_cqe);
		ret = rd->orig.create_cq(cq, &larger, arg);
		if (!ret)
			riso_cq_created(rd, cq, larger.cqe - attr->cqe);
	}
	srcu_read_unlock(&rd->srcu, idx);
	return ret;
}

/* One of a program never has a shadow. */
static void forget_cq(struct riso_dev *rd, struct ib_cq *cq)
{
	if (!cq->uobject)
		riso_cq_destroyed(rd, cq);
}

static int hook_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	struct riso_dev *rd = dev_of(cq->device);
	int idx = srcu_read_lock(&rd->srcu);
	int ret;

	forget_cq(rd, cq);
	ret = rd->orig.destroy_cq(cq, udata);
	srcu_read_unlock(&rd->srcu, idx);
	return ret;
}

static void hook_post_destroy_cq(struct ib_cq *cq)
{
	struct riso_dev *rd = dev_of(cq->device);
	int idx = srcu_read_lock(&rd->srcu);

	forget_cq(rd, cq);
	rd->orig.post_destroy_cq(cq);
	srcu_read_unlock(&rd->srcu, idx);
}

const struct ib_device_ops riso_hook_ops = {
	.create_qp = hook_create_qp,
	.modify_qp = hook_modify_qp,
	.destroy_qp = hook_destroy_qp,
	.drain_sq = hook_drain_sq,
	.create_cq = hook_create_cq,
	.destroy_cq = hook_destroy_cq,
	.post_destroy_cq = hook_post_destroy_cq,
	.post_send = hook_post_send,
	.poll_cq = hook_poll_cq,
	.req_notify_cq = hook_req_notify_cq,
};
