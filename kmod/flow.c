// SPDX-License-Identifier: GPL-2.0
/*
 * The registry of flows, one for each QP.
 *
 * Owns the life of &struct riso_flow: how it is made and found, paused while its QP changes,
 * and freed; and the state of the QP as far as posting depends on it.
 *
 * &riso_dev.mutex serialises it. Flows are looked up under RCU, in any context, by hook.c.
 * Changes to what the post path looks at are made under &riso_dev.lock inside the mutex.
 */

#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "classify.h"
#include "compat.h"
#include "cq.h"
#include "dev.h"
#include "flow.h"
#include "group.h"
#include "manage.h"
#include "nl_event.h"
#include "notify.h"
#include "observe.h"
#include "open.h"
#include "peer.h"
#include "userpath.h"
#include "reason.h"
#include "refuse.h"
#include "ring.h"
#include "sched.h"
#include "tag.h"
#include "trace.h"
#include "turn.h"
#include "window.h"

/* Of a path that is longer, the begin is what rules look at. */
static void identify_cgroup(struct riso_identity *who)
{
	char *path = kmalloc(PATH_MAX, GFP_KERNEL);

	if (!path)
		return;
	if (riso_cgroup_path(path, PATH_MAX))
		strscpy(who->cgroup, path, sizeof(who->cgroup));
	kfree(path);
}

static void identify_owner(struct riso_flow *f, bool user)
{
	struct riso_identity *who = &f->who;

	if (user) {
		get_task_comm(who->comm, current->group_leader);
		who->pid = task_tgid_nr(current);
		who->uid = from_kuid(&init_user_ns, current_uid());
		f->tgid = get_task_pid(current, PIDTYPE_TGID);
		riso_place_identify(&who->owner);
		identify_cgroup(who);
	} else if (f->qp->pd && f->qp->pd->res.kern_name) {
		/* rdma_cm stamps its own name on QPs, the PD has the ULP's. */
		strscpy(who->ulp, f->qp->pd->res.kern_name, sizeof(who->ulp));
	}
}

/**
 * riso_flow_create - a QP was created
 * @rd: its device
 * @qp: the QP
 * @attr: as it was created
 * @user: by a user-space program
 *
 * A QP that there is no memory for is not registered, and so not managed.
 *
 * Context: may sleep.
 */
void riso_flow_create(struct riso_dev *rd, struct ib_qp *qp, const struct ib_qp_init_attr *attr,
		      bool user)
{
	struct riso_flow *f, *old;

	f = kzalloc(sizeof(*f), user ? GFP_KERNEL_ACCOUNT : GFP_KERNEL);
	if (!f)
		return;
	f->qp = qp;
	f->rd = rd;
	f->qpn = qp->qp_num;
	f->qp_type = qp->qp_type;
	f->sq_depth = max(attr->cap.max_send_wr, 1u);
	f->max_sge = max(attr->cap.max_send_sge, 1u);
	f->max_inline = attr->cap.max_inline_data;
	f->unfit = riso_reason_judge(qp, attr, user);
	f->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	f->mtu = ib_mtu_enum_to_int(IB_MTU_1024);
	riso_path_restart(&f->path, 0);
	INIT_LIST_HEAD(&f->news);
	INIT_LIST_HEAD(&f->managed);
	INIT_LIST_HEAD(&f->arb);
	INIT_LIST_HEAD(&f->reap);
	INIT_DELAYED_WORK(&f->refuse, riso_refuse_work);
	identify_owner(f, user);

	riso_dev_lock(rd);
	/*
	 * Some providers number special QPs alike: one of them is enough. Another that
	 * has the number is being destroyed.
	 */
	old = xa_load(&rd->qpns, f->qpn);
	if (rd->buried || (old && !READ_ONCE(old->dying)) ||
	    xa_err(xa_store(&rd->qpns, f->qpn, f, GFP_KERNEL))) {
		riso_dev_unlock(rd);
		put_pid(f->tgid);
		kfree(f);
		return;
	}
	riso_classify_flow(f);
	riso_observe_flow(f, NULL);
	hash_add_rcu(rd->qps[user], &f->hash, (unsigned long)qp);
	spin_lock_irq(&rd->lock);
	riso_flow_update_post(f);
	spin_unlock_irq(&rd->lock);
	if (!user)
		f->lane = riso_lane_take(qp, f);
	riso_nl_changed();
	trace_flow_create(f, riso_reason_of(f));
	riso_dev_unlock(rd);
}

/**
 * riso_flow_pause - let nobody post for a flow
 * @f: the flow
 *
 * Returns when nobody is in the provider's post_send() for it any more. Whoever found it open just
 * before may still be there.
 *
 * Context: may sleep.
 */
void riso_flow_pause(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	spin_lock_irq(&rd->lock);
	f->paused = true;
	riso_open_update(f);
	riso_turn_remove(f, ktime_get_ns());
	spin_unlock_irq(&rd->lock);
	wait_event(rd->wait, !READ_ONCE(f->posting));
	/* The one that posted may still be on its way out. */
	spin_lock_irq(&rd->lock);
	spin_unlock_irq(&rd->lock);
	/* This may change the QP, and post. */
	cancel_delayed_work_sync(&f->refuse);
}

/**
 * riso_flow_resume - undo riso_flow_pause()
 * @f: the flow
 *
 * Context: may sleep.
 */
void riso_flow_resume(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	spin_lock_irq(&rd->lock);
	f->paused = false;
	if (riso_refuse_is_due(f))
		riso_refuse_queue(f);
	riso_turn_wake(f, ktime_get_ns());
	spin_unlock_irq(&rd->lock);
	riso_sched_run(rd);
}

/* RESET completes nothing: forget what is held and what is out; paused, mutex held. */
static void reset_flow(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->mutex);
	cancel_delayed_work_sync(&f->refuse);
	riso_notify_error(f);
	f->told_error = IB_WC_SUCCESS;
	riso_observe_reset(f);
	spin_lock_irq(&rd->lock);
	riso_flow_step(f, RISO_ON_RESET);
	f->told_refused = false;
	f->marked = false;
	WRITE_ONCE(f->error, IB_WC_SUCCESS);
	f->retry_ns = 0;
	f->retries = 0;
	f->fail_ns = 0;
	f->debt = false;
	if (f->q.recs) {
		riso_ring_drop(f);
		riso_sched_forget(f);
	}
	spin_unlock_irq(&rd->lock);
	if (!f->q.recs)
		return;
	riso_cq_abandon(f);
	if (riso_tag_alloc(f)) {
		f->no_memory = true;
		spin_lock_irq(&rd->lock);
		riso_manage_set_mode(f, RISO_FLOW_PASS);
		spin_unlock_irq(&rd->lock);
		riso_manage_make_bare(f);
	}
}

static u32 mtu_of(const struct ib_qp_attr *attr)
{
	int mtu = ib_mtu_enum_to_int(attr->path_mtu);

	return mtu > 0 ? mtu : ib_mtu_enum_to_int(IB_MTU_1024);
}

/* What no rule, group or class goes by; under &riso_dev.lock. */
static void note_attr(struct riso_flow *f, const struct ib_qp_attr *attr, int mask)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->lock);
	if (mask & IB_QP_PATH_MTU) {
		f->mtu = mtu_of(attr);
		rd->mtu = max(rd->mtu, f->mtu);
	}
	if (mask & IB_QP_MIN_RNR_TIMER) {
		f->rnr_timer = attr->min_rnr_timer;
		f->rnr_known = true;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		f->max_rd_atomic = attr->max_rd_atomic;
	riso_window_rebound(f);
}

/* Is it no more than that? */
static bool is_minor(const struct riso_flow *f, const struct ib_qp_attr *attr, int mask)
{
	return !(mask & IB_QP_AV) &&
	       (!(mask & IB_QP_STATE) || attr->qp_state == READ_ONCE(f->state));
}

/**
 * riso_flow_modified - a QP was changed
 * @f: the flow
 * @attr: to what
 * @mask: which of @attr
 *
 * Context: may sleep.
 */
void riso_flow_modified(struct riso_flow *f, const struct ib_qp_attr *attr, int mask)
{
	struct riso_peer *peer = NULL;
	struct riso_dev *rd = f->rd;

	/* A program may do that all day: nobody has to wait for it. */
	if (f->who.pid && is_minor(f, attr, mask)) {
		spin_lock_irq(&rd->lock);
		note_attr(f, attr, mask);
		spin_unlock_irq(&rd->lock);
		return;
	}
	riso_dev_lock(rd);
	if ((mask & IB_QP_AV) &&
	    (rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH))
		peer = riso_peer_find(rd, &rdma_ah_read_grh(&attr->ah_attr)->dgid);
	spin_lock_irq(&rd->lock);
	if ((mask & IB_QP_AV) &&
	    (rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH)) {
		write_seqcount_begin(&rd->cfg_seq);
		f->who.peer = rdma_ah_read_grh(&attr->ah_attr)->dgid;
		f->who.peer_known = true;
		write_seqcount_end(&rd->cfg_seq);
		/* What programs post is held by themselves. */
		if (!f->who.pid)
			f->peer = peer;
		else if (f->shim && f->group->process && (peer || riso_userpath_takes(f)))
			riso_grant_classes(f->group->process);
	}
	note_attr(f, attr, mask);
	if (mask & IB_QP_STATE) {
		f->state = attr->qp_state;
		if (f->state == IB_QPS_ERR)
			riso_flow_step(f, RISO_ON_FAIL);
	}
	riso_turn_wake(f, ktime_get_ns());
	spin_unlock_irq(&rd->lock);
	if ((mask & IB_QP_STATE) && attr->qp_state == IB_QPS_RESET)
		reset_flow(f);
	if (f->shim)
		riso_manage_count_sender(f, f->state == IB_QPS_RTS);
	riso_classify_flow(f);
	riso_dev_unlock(rd);
	riso_sched_run(rd);
}

static void free_flow_rcu(struct rcu_head *head)
{
	struct riso_flow *f = container_of(head, struct riso_flow, rcu);

	riso_observe_free(f);
	free_percpu(f->passed);
	put_pid(f->tgid);
	kfree(f);
}

/**
 * riso_flow_destroyed - a QP is gone
 * @f: the flow, paused; not to be used after
 *
 * Context: may sleep.
 */
void riso_flow_destroyed(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	cancel_delayed_work_sync(&f->refuse);
	riso_dev_lock(rd);
	trace_flow_destroy(f, riso_reason_of(f));
	riso_notify_error(f);
	riso_notify_gone(f);
	hash_del_rcu(&f->hash);
	/* Another QP may have the number already. */
	xa_cmpxchg(&rd->qpns, f->qpn, f, NULL, GFP_KERNEL);
	riso_nl_changed();
	if (f->q.recs) {
		spin_lock_irq(&rd->lock);
		riso_ring_drop(f);
		spin_unlock_irq(&rd->lock);
		riso_manage_make_bare(f);
	}
	spin_lock_irq(&rd->lock);
	riso_manage_set_mode(f, RISO_FLOW_PASS);
	list_del_init(&f->news);
	spin_unlock_irq(&rd->lock);
	riso_lane_leave(f->lane);
	riso_cq_use(f, false);
	riso_cq_abandon(f);
	riso_cq_release(f);
	riso_manage_count_latency(f, false);
	riso_manage_set_shim(f, false);
	riso_manage_tally(f, true);
	riso_group_put(rd, f->group);
	riso_dev_unlock(rd);
	call_rcu(&f->rcu, free_flow_rcu);
}

/**
 * riso_flow_check_all - let flows go on that are stuck, and tell what processes did wrong
 * @rd: the device
 *
 * Context: may sleep.
 */
void riso_flow_check_all(struct riso_dev *rd)
{
	struct riso_group *g;
	struct riso_flow *f;
	unsigned long id;
	u32 cost = 0;

	riso_dev_lock(rd);
	list_for_each_entry(f, &rd->managed, managed) {
		spin_lock_irq(&rd->lock);
		riso_sched_unstick(f, ktime_get_ns());
		spin_unlock_irq(&rd->lock);
	}
	xa_for_each(&rd->groups, id, g) {
		riso_notify_faults(rd, g);
		riso_dev_pass(rd, &cost, 1);
	}
	riso_dev_unlock(rd);
}

/**
 * riso_flow_held - work requests in the queue of a flow
 * @f: the flow
 *
 * Context: any.
 * Return: how many.
 */
u32 riso_flow_held(struct riso_flow *f)
{
	unsigned long flags;
	u32 held;

	spin_lock_irqsave(&f->rd->lock, flags);
	held = f->q.recs ? riso_ring_len(&f->q) : 0;
	spin_unlock_irqrestore(&f->rd->lock, flags);
	return held;
}

/**
 * riso_flow_release_all - use no CQ any more, and let the hooks find no flow
 * @rd: a device that is leaving
 *
 * Context: &riso_dev.mutex.
 */
void riso_flow_release_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	unsigned long qpn;

	lockdep_assert_held(&rd->mutex);
	xa_for_each(&rd->qpns, qpn, f) {
		riso_lane_shut(f->lane);
		riso_cq_release(f);
	}
}

/**
 * riso_flow_forget_all - drop the registry of a device without hooks
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 */
void riso_flow_forget_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	unsigned long qpn;

	lockdep_assert_held(&rd->mutex);
	xa_for_each(&rd->qpns, qpn, f) {
		xa_erase(&rd->qpns, qpn);
		hash_del_rcu(&f->hash);
		riso_lane_leave(f->lane);
		spin_lock_irq(&rd->lock);
		list_del_init(&f->news);
		spin_unlock_irq(&rd->lock);
		riso_manage_tally(f, true);
		riso_group_put(rd, f->group);
		call_rcu(&f->rcu, free_flow_rcu);
	}
}
