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
 * This file owns the device and the exchange of its operations. Only the device that
 * the parameter names is added, and it is removed after that, in process context. So no
 * lock protects it. After take_out() has put the provider's operations back, it waits
 * for posts and polls that still run in this module.
 */

#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "cq.h"
#include "layer.h"
#include "post.h"
#include "qp.h"

static char *dev = "rxe0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "the device (default rxe0)");

int layer_refuse;
module_param_named(refuse, layer_refuse, int, 0644);
MODULE_PARM_DESC(refuse, "errno that posts are refused with, 0 for none");

static bool drain;
module_param(drain, bool, 0444);
MODULE_PARM_DESC(drain, "the device drains by a work request of its own");

bool layer_deep;
module_param_named(deep, layer_deep, bool, 0444);
MODULE_PARM_DESC(deep, "the device says that its CQs may be twice as large");

static bool stay;
module_param(stay, bool, 0444);
MODULE_PARM_DESC(stay, "stay on a device that is removed");

static struct ib_device *layer_dev;
struct ib_device_ops layer_orig;

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

	exchange(&layer_orig);
	layer_dev->ops.drain_sq = layer_orig.drain_sq;
	if (layer_deep)
		layer_dev->attrs.max_cqe = LAYER_MAX_CQE / 2 - 1;
	synchronize_rcu();
	synchronize_rcu_tasks();
	flush_delayed_work(&layer_unstall);
	hlist_for_each_entry_safe(lc, tmp, &layer_cqs, node)
		layer_forget_cq(lc->cq);
	hlist_for_each_entry_safe(lq, tmp, &layer_qps, node) {
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
	layer_orig = ibdev->ops;
	if (layer_deep)
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
