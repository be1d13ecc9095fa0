// SPDX-License-Identifier: GPL-2.0
/*
 * A layer on an RDMA device that makes it behave as adapters do that rxe is not like.
 *
 * It replaces operations of one device. Loaded before rdma_isolate, it is the provider
 * as that module sees it: it refuses posts, withholds completions, delivers events
 * late, purges the completions of a queue pair that goes, and drains by a work request
 * of its own. Loaded after rdma_isolate, it is another module's hook on top of it.
 *
 * All of it is switched by the module's parameters; what the provider was given is
 * counted in /sys/module/riso_test_layer/parameters/seen and told to riso_test_ulp.
 *
 * &layer_cq.lock covers what was taken out of a CQ and is held over the provider's
 * poll_cq. cqs_lock and qps_lock protect the lists; objects are freed under RCU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "riso_test_layer.h"

/* the last argument of create_cq */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define LAYER_CREATE_CQ_ARG struct ib_udata
#else
#define LAYER_CREATE_CQ_ARG struct uverbs_attr_bundle
#endif

/* completions that purging may have to put aside */
#define LAYER_SAVED	4096
/* what SMC asks for, and more */
#define LAYER_MAX_CQE	65536
/* the longest that a poll is held up */
#define LAYER_HELD_S	10

static char *dev = "rxe0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "the device (default rxe0)");

static int refuse;
module_param(refuse, int, 0644);
MODULE_PARM_DESC(refuse, "errno that posts are refused with, 0 for none");

/* work requests that are taken before the first is refused */
static atomic_t take;

static bool late;
module_param(late, bool, 0644);
MODULE_PARM_DESC(late, "events come a jiffy late");

static bool purge;
module_param(purge, bool, 0644);
MODULE_PARM_DESC(purge, "completions of a queue pair go with it");

static bool drain;
module_param(drain, bool, 0444);
MODULE_PARM_DESC(drain, "the device drains by a work request of its own");

static bool alias;
module_param(alias, bool, 0644);
MODULE_PARM_DESC(alias, "IB_WR_RESERVED1 is another name of RDMA_WRITE");

static bool sink;
module_param(sink, bool, 0644);
MODULE_PARM_DESC(sink, "SENDs are taken, never sent and never completed");

static unsigned int slow_ms;
module_param(slow_ms, uint, 0644);
MODULE_PARM_DESC(slow_ms, "once, after a queue pair went to error, completions come and posts are taken so much later");

static bool hold_create;
module_param(hold_create, bool, 0644);
MODULE_PARM_DESC(hold_create, "the creation of a queue pair waits for the end of this");

static atomic_t creating;

static bool deep;
module_param(deep, bool, 0444);
MODULE_PARM_DESC(deep, "the device says that its CQs may be twice as large");

static bool stay;
module_param(stay, bool, 0444);
MODULE_PARM_DESC(stay, "stay on a device that is removed");

static bool stall;

struct layer_cq {
	struct hlist_node node;
	struct rcu_head rcu;
	struct ib_cq *cq;
	ib_comp_handler handler;
	struct delayed_work event;
	spinlock_t lock;	/* see above */
	struct ib_wc *saved;
	u32 head;
	u32 tail;
};

struct layer_qp {
	struct hlist_node node;
	struct rcu_head rcu;
	struct ib_qp *qp;
	bool ready;
};

static struct ib_device *layer_dev;
static struct ib_device_ops orig;
static HLIST_HEAD(cqs);
static DEFINE_SPINLOCK(cqs_lock);
static HLIST_HEAD(qps);
static DEFINE_SPINLOCK(qps_lock);

static atomic64_t n_posts;
static atomic64_t n_refused;
static atomic64_t n_preemptible;
static atomic64_t n_sends;
static atomic64_t n_late_sends;
static atomic64_t n_notifies;

/**
 * riso_test_layer_read - what the provider was given until now
 * @seen: filled in
 */
void riso_test_layer_read(struct riso_test_seen *seen)
{
	*seen = (struct riso_test_seen) {
		.posts = atomic64_read(&n_posts),
		.refused = atomic64_read(&n_refused),
		.preemptible = atomic64_read(&n_preemptible),
		.sends = atomic64_read(&n_sends),
		.late_sends = atomic64_read(&n_late_sends),
		.notifies = atomic64_read(&n_notifies),
	};
}
EXPORT_SYMBOL_GPL(riso_test_layer_read);

/**
 * riso_test_layer_refuse - refuse posts from now on
 * @error: errno, or 0 to take them again
 * @num: work requests that are taken before
 */
void riso_test_layer_refuse(int error, unsigned int num)
{
	atomic_set(&take, num);
	WRITE_ONCE(refuse, error);
}
EXPORT_SYMBOL_GPL(riso_test_layer_refuse);

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

static int get_seen(char *buf, const struct kernel_param *kp)
{
	struct riso_test_seen seen;

	riso_test_layer_read(&seen);
	return sysfs_emit(buf, "posts %llu refused %llu preemptible %llu\n"
			  "sends %llu late_sends %llu notifies %llu creating %d\n",
			  seen.posts, seen.refused, seen.preemptible, seen.sends,
			  seen.late_sends, seen.notifies, atomic_read(&creating));
}

static const struct kernel_param_ops seen_ops = { .get = get_seen };

module_param_cb(seen, &seen_ops, NULL, 0444);
MODULE_PARM_DESC(seen, "what the provider was given");

/* Events */

static struct layer_cq *find_cq(const struct ib_cq *cq)
{
	struct layer_cq *lc;

	hlist_for_each_entry_rcu(lc, &cqs, node)
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
	hlist_for_each_entry_rcu(lc, &cqs, node)
		queue_delayed_work(system_highpri_wq, &lc->event, 0);
	rcu_read_unlock();
}

static void end_stall(struct work_struct *work)
{
	WRITE_ONCE(refuse, 0);
	WRITE_ONCE(stall, false);
	repeat_events();
}

static DECLARE_DELAYED_WORK(unstall, end_stall);

static int set_stall(const char *val, const struct kernel_param *kp)
{
	int err = param_set_bool(val, kp);

	if (!err && !READ_ONCE(stall))
		repeat_events();
	return err;
}

static const struct kernel_param_ops stall_ops = {
	.set = set_stall,
	.get = param_get_bool,
};

module_param_cb(stall, &stall_ops, &stall, 0644);
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
		hlist_add_head_rcu(&lc->node, &cqs);
		WRITE_ONCE(cq->comp_handler, layer_event);
	}
	spin_unlock_irqrestore(&cqs_lock, flags);
	return lc;
}

static void forget_cq(struct ib_cq *cq)
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

static int layer_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	int ret;

	if (cq->uobject)
		return orig.req_notify_cq(cq, flags);
	rcu_read_lock();
	watch_cq(cq);
	rcu_read_unlock();
	atomic64_inc(&n_notifies);
	ret = orig.req_notify_cq(cq, flags);
	return READ_ONCE(stall) ? 0 : ret;
}

static int hold_poll(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	/* A CPU that does not come back would be taken for dead. */
	unsigned long end = jiffies + LAYER_HELD_S * HZ;
	int n = 0;

	while (READ_ONCE(held_cq) == cq && time_before(jiffies, end)) {
		if (!n)
			n = orig.poll_cq(cq, num, wc);
		if (n)
			WRITE_ONCE(held_polls, 2);
		cpu_relax();
	}
	return n;
}

static int layer_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	struct layer_cq *lc;
	unsigned long flags;
	int n = 0;
	int got;

	if (cq->uobject)
		return orig.poll_cq(cq, num, wc);
	/* Pairs with smp_store_release() in riso_test_layer_hold(). */
	if (smp_load_acquire(&held_cq) == cq && !cmpxchg(&held_polls, 0, 1))
		return hold_poll(cq, num, wc);
	rcu_read_lock();
	lc = find_cq(cq);
	if (!lc) {
		n = orig.poll_cq(cq, num, wc);
		goto unlock;
	}
	if (READ_ONCE(stall))
		goto unlock;
	spin_lock_irqsave(&lc->lock, flags);
	while (n < num && lc->head != lc->tail)
		wc[n++] = lc->saved[lc->head++ % LAYER_SAVED];
	if (n < num) {
		got = orig.poll_cq(cq, num - n, wc + n);
		n += max(got, 0);
	}
	spin_unlock_irqrestore(&lc->lock, flags);
unlock:
	rcu_read_unlock();
	return n;
}

/* Take out what is there of a queue pair, and keep the rest. */
static void purge_cq(struct ib_cq *cq, const struct ib_qp *qp)
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
	while (lc->tail - lc->head < LAYER_SAVED && orig.poll_cq(cq, 1, &wc) == 1)
		lc->saved[lc->tail++ % LAYER_SAVED] = wc;
	end = lc->tail;
	lc->tail = lc->head;
	for (i = lc->head; i != end; i++)
		if (lc->saved[i % LAYER_SAVED].qp != qp)
			lc->saved[lc->tail++ % LAYER_SAVED] =
				lc->saved[i % LAYER_SAVED];
	spin_unlock_irq(&lc->lock);
}

static int layer_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			   LAYER_CREATE_CQ_ARG *arg)
{
	struct ib_cq_init_attr less = *attr;

	/* No more than the device has, whatever it says. */
	if (deep && !cq->uobject)
		less.cqe = min_t(u32, less.cqe, LAYER_MAX_CQE / 2 - 1);
	return orig.create_cq(cq, &less, arg);
}

static int layer_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	forget_cq(cq);
	return orig.destroy_cq(cq, udata);
}

/* Queue pairs */

static struct layer_qp *find_qp(const struct ib_qp *qp)
{
	struct layer_qp *lq;

	hlist_for_each_entry_rcu(lq, &qps, node)
		if (lq->qp == qp)
			return lq;
	return NULL;
}

static int layer_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			   struct ib_udata *udata)
{
	struct layer_qp *lq = NULL;
	int err;

	if (!udata && qp->qp_type == IB_QPT_RC) {
		lq = kzalloc(sizeof(*lq), GFP_KERNEL);
		if (!lq)
			return -ENOMEM;
		atomic_inc(&creating);
		while (READ_ONCE(hold_create))
			msleep(20);
		atomic_dec(&creating);
	}
	err = orig.create_qp(qp, attr, udata);
	if (err || !lq) {
		kfree(lq);
		return err;
	}
	lq->qp = qp;
	spin_lock_irq(&qps_lock);
	hlist_add_head_rcu(&lq->node, &qps);
	spin_unlock_irq(&qps_lock);
	return 0;
}

static int layer_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			   struct ib_udata *udata)
{
	struct layer_qp *lq;
	int err;

	rcu_read_lock();
	lq = find_qp(qp);
	if (lq && (mask & IB_QP_STATE))
		WRITE_ONCE(lq->ready, attr->qp_state == IB_QPS_RTS);
	rcu_read_unlock();
	if (lq && slow_ms && (mask & IB_QP_STATE) &&
	    attr->qp_state == IB_QPS_ERR) {
		WRITE_ONCE(stall, true);
		queue_delayed_work(system_highpri_wq, &unstall,
				   msecs_to_jiffies(slow_ms));
		slow_ms = 0;
	}
	err = orig.modify_qp(qp, attr, mask, udata);
	if (!err && lq && purge && (mask & IB_QP_STATE) &&
	    attr->qp_state == IB_QPS_RESET) {
		purge_cq(qp->send_cq, qp);
		purge_cq(qp->recv_cq, qp);
	}
	return err;
}

static int layer_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct layer_qp *lq;
	int err;

	rcu_read_lock();
	lq = find_qp(qp);
	rcu_read_unlock();
	err = orig.destroy_qp(qp, udata);
	if (err || !lq)
		return err;
	if (purge) {
		purge_cq(qp->send_cq, qp);
		purge_cq(qp->recv_cq, qp);
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
static void layer_drain_sq(struct ib_qp *qp)
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
	    orig.post_send(qp, &wr.wr, &bad_wr)) {
		pr_err("draining failed\n");
		return;
	}
	wait_for_completion(&d.done);
}

/* Posting */

static size_t size_of(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_REG_MR:
		return sizeof(struct ib_reg_wr);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return sizeof(struct ib_atomic_wr);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RESERVED1:
		return sizeof(struct ib_rdma_wr);
	default:
		return sizeof(struct ib_send_wr);
	}
}

/* One by one, as many of a chain as @num says; where it ends is told in @bad_wr. */
static int post_each(struct ib_qp *qp, const struct ib_send_wr *wr, atomic_t *num,
		     const struct ib_send_wr **bad_wr)
{
	for (; wr && (!num || atomic_dec_if_positive(num) >= 0); wr = wr->next) {
		const struct ib_send_wr *bad;
		union {
			struct ib_send_wr wr;
			struct ib_rdma_wr rdma;
			struct ib_atomic_wr atomic;
			struct ib_reg_wr reg;
		} one;
		int err;

		memcpy(&one, wr, size_of(wr->opcode));
		one.wr.next = NULL;
		if (alias && one.wr.opcode == IB_WR_RESERVED1)
			one.wr.opcode = IB_WR_RDMA_WRITE;
		err = orig.post_send(qp, &one.wr, &bad);
		if (err) {
			*bad_wr = wr;
			return err;
		}
	}
	*bad_wr = wr;
	return 0;
}

static bool is_send(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_SEND || wr->opcode == IB_WR_SEND_WITH_IMM ||
	       wr->opcode == IB_WR_SEND_WITH_INV;
}

static int layer_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad_wr)
{
	int error = READ_ONCE(refuse);
	const struct ib_send_wr *w;
	struct layer_qp *lq;
	u32 sends = 0;
	bool ready;
	int err;

	if (qp->uobject || qp->qp_type != IB_QPT_RC)
		return orig.post_send(qp, wr, bad_wr);
	atomic64_inc(&n_posts);
	if (preemptible())
		atomic64_inc(&n_preemptible);
	rcu_read_lock();
	lq = find_qp(qp);
	ready = lq && READ_ONCE(lq->ready);
	rcu_read_unlock();
	if (error && lq) {
		err = post_each(qp, wr, &take, bad_wr);
		if (err || !*bad_wr)
			return err;
		atomic64_inc(&n_refused);
		return -error;
	}
	for (w = wr; w; w = w->next)
		sends += is_send(w);
	if (sends && sink)
		err = 0;
	else if (alias && lq)
		err = post_each(qp, wr, NULL, bad_wr);
	else
		err = orig.post_send(qp, wr, bad_wr);
	if (!err)
		atomic64_add(sends, ready ? &n_sends : &n_late_sends);
	return err;
}

/* The device */

static const struct ib_device_ops layer_ops = {
	.post_send = layer_post_send,
	.poll_cq = layer_poll_cq,
	.req_notify_cq = layer_req_notify_cq,
	.create_cq = layer_create_cq,
	.destroy_cq = layer_destroy_cq,
	.create_qp = layer_create_qp,
	.modify_qp = layer_modify_qp,
	.destroy_qp = layer_destroy_qp,
};

static void exchange(const struct ib_device_ops *ops)
{
	struct ib_device_ops *to = &layer_dev->ops;

	WRITE_ONCE(to->destroy_cq, ops->destroy_cq);
	WRITE_ONCE(to->create_cq, ops->create_cq);
	WRITE_ONCE(to->destroy_qp, ops->destroy_qp);
	WRITE_ONCE(to->modify_qp, ops->modify_qp);
	WRITE_ONCE(to->create_qp, ops->create_qp);
	WRITE_ONCE(to->poll_cq, ops->poll_cq);
	WRITE_ONCE(to->req_notify_cq, ops->req_notify_cq);
	WRITE_ONCE(to->post_send, ops->post_send);
}

static void take_out(void)
{
	struct layer_cq *lc;
	struct layer_qp *lq;
	struct hlist_node *tmp;

	exchange(&orig);
	layer_dev->ops.drain_sq = orig.drain_sq;
	if (deep)
		layer_dev->attrs.max_cqe = LAYER_MAX_CQE / 2 - 1;
	synchronize_rcu();
	synchronize_rcu_tasks();
	flush_delayed_work(&unstall);
	hlist_for_each_entry_safe(lc, tmp, &cqs, node)
		forget_cq(lc->cq);
	hlist_for_each_entry_safe(lq, tmp, &qps, node) {
		hlist_del_rcu(&lq->node);
		kfree_rcu(lq, rcu);
	}
	put_device(&layer_dev->dev);
	layer_dev = NULL;
}

static int layer_add(struct ib_device *ibdev)
{
	if (strcmp(dev_name(&ibdev->dev), dev) || layer_dev)
		return -EOPNOTSUPP;
	layer_dev = ibdev;
	get_device(&ibdev->dev);
	orig = ibdev->ops;
	if (deep)
		ibdev->attrs.max_cqe = LAYER_MAX_CQE;
	if (drain)
		ibdev->ops.drain_sq = layer_drain_sq;
	exchange(&layer_ops);
	return 0;
}

static void layer_remove(struct ib_device *ibdev, void *client_data)
{
	if (ibdev == layer_dev && !stay)
		take_out();
}

static struct ib_client layer_client = {
	.name = KBUILD_MODNAME,
	.add = layer_add,
	.remove = layer_remove,
};

static int __init layer_init(void)
{
	int err = ib_register_client(&layer_client);

	if (!err && !layer_dev) {
		ib_unregister_client(&layer_client);
		err = -ENODEV;
	}
	return err;
}

static void __exit layer_exit(void)
{
	ib_unregister_client(&layer_client);
	if (layer_dev)
		take_out();
}

module_init(layer_init);
module_exit(layer_exit);

MODULE_DESCRIPTION("RDMA device that behaves as adapters do");
MODULE_LICENSE("GPL");
