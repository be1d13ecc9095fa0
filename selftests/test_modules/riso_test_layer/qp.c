// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: created when a test lets them be, followed from state to state, drained
 * and destroyed as adapters do it.
 *
 * Owns the list of the RC queue pairs of kernel ULPs. qps_lock protects changes of the
 * list, which is read under RCU. take_out() empties it without the lock, when no
 * operation leads here any more. Everything here runs in process context, except
 * layer_find_qp(), which runs in any.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../riso_test_layer.h"
#include "cq.h"
#include "layer.h"
#include "qp.h"
#include "seen.h"

static bool purge;
module_param(purge, bool, 0644);
MODULE_PARM_DESC(purge, "completions of a queue pair go with it");

static unsigned int slow_ms;
module_param(slow_ms, uint, 0644);
MODULE_PARM_DESC(slow_ms, "once, after a queue pair went to error, completions come and posts are taken so much later");

static bool hold_create;
module_param(hold_create, bool, 0644);
MODULE_PARM_DESC(hold_create, "the creation of a queue pair waits for the end of this");

/* How long it takes to destroy a queue pair, once: longer than work that a completion has queued */
#define LAYER_DESTROY_MS	200

/* Completions are withheld until a queue pair is destroyed. */
static bool withheld;

HLIST_HEAD(layer_qps);
/* changes of the list above */
static DEFINE_SPINLOCK(qps_lock);

/**
 * riso_test_layer_withhold - withhold completions until the next queue pair is destroyed
 *
 * That takes 200 ms then.
 */
void riso_test_layer_withhold(void)
{
	WRITE_ONCE(layer_stall, true);
	WRITE_ONCE(withheld, true);
}
EXPORT_SYMBOL_GPL(riso_test_layer_withhold);

/* Somebody changes a queue pair or posts to it; under RCU. */
void layer_note_call(const struct layer_qp *lq)
{
	if (lq && READ_ONCE(lq->dying))
		atomic64_inc(&layer_dying);
}

struct layer_qp *layer_find_qp(const struct ib_qp *qp)
{
	struct layer_qp *lq;

	hlist_for_each_entry_rcu(lq, &layer_qps, node)
		if (lq->qp == qp)
			return lq;
	return NULL;
}

int layer_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
		    struct ib_udata *udata)
{
	struct layer_qp *lq = NULL;
	int err;

	if (!udata && qp->qp_type == IB_QPT_RC) {
		lq = kzalloc(sizeof(*lq), GFP_KERNEL);
		if (!lq)
			return -ENOMEM;
		atomic_inc(&layer_creating);
		while (READ_ONCE(hold_create))
			msleep(20);
		atomic_dec(&layer_creating);
	}
	err = layer_orig.create_qp(qp, attr, udata);
	if (err || !lq) {
		kfree(lq);
		return err;
	}
	lq->qp = qp;
	spin_lock_irq(&qps_lock);
	hlist_add_head_rcu(&lq->node, &layer_qps);
	spin_unlock_irq(&qps_lock);
	return 0;
}

int layer_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata)
{
	struct layer_qp *lq;
	int err;

	rcu_read_lock();
	lq = layer_find_qp(qp);
	layer_note_call(lq);
	if (lq && (mask & IB_QP_STATE))
		WRITE_ONCE(lq->ready, attr->qp_state == IB_QPS_RTS);
	rcu_read_unlock();
	if (lq && slow_ms && (mask & IB_QP_STATE) &&
	    attr->qp_state == IB_QPS_ERR) {
		WRITE_ONCE(layer_stall, true);
		queue_delayed_work(system_highpri_wq, &layer_unstall,
				   msecs_to_jiffies(slow_ms));
		slow_ms = 0;
	}
	err = layer_orig.modify_qp(qp, attr, mask, udata);
	if (!err && lq && purge && (mask & IB_QP_STATE) &&
	    attr->qp_state == IB_QPS_RESET) {
		layer_purge_cq(qp->send_cq, qp);
		layer_purge_cq(qp->recv_cq, qp);
	}
	return err;
}

int layer_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct layer_qp *lq;
	int err;

	rcu_read_lock();
	lq = layer_find_qp(qp);
	rcu_read_unlock();
	if (lq && xchg(&withheld, false)) {
		WRITE_ONCE(lq->dying, true);
		WRITE_ONCE(layer_stall, false);
		msleep(LAYER_DESTROY_MS);
	}
	err = layer_orig.destroy_qp(qp, udata);
	if (err || !lq)
		return err;
	if (purge) {
		layer_purge_cq(qp->send_cq, qp);
		layer_purge_cq(qp->recv_cq, qp);
	}
	spin_lock_irq(&qps_lock);
	hlist_del_rcu(&lq->node);
	spin_unlock_irq(&qps_lock);
	kfree_rcu(lq, rcu);
	return 0;
}

struct layer_drain {
	struct ib_cqe cqe;
	struct completion done;
};

static void drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct layer_drain *d = container_of(wc->wr_cqe, struct layer_drain, cqe);

	complete(&d->done);
}

/* Past whatever is on top, as an adapter does it. */
void layer_drain_sq(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct layer_drain d = { .cqe.done = drain_done };
	const struct ib_send_wr *bad_wr;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &d.cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	init_completion(&d.done);
	if (ib_modify_qp(qp, &attr, IB_QP_STATE) ||
	    layer_orig.post_send(qp, &wr.wr, &bad_wr)) {
		pr_err("draining failed\n");
		return;
	}
	wait_for_completion(&d.done);
}
