// SPDX-License-Identifier: GPL-2.0
/*
 * A synthetic RDMA adapter, for tests only.
 *
 * Each end is a device with one port, named null0, null1 and so on, that sits on a netdev
 * for its addresses. What one end sends another, no netdev carries: a message takes as
 * long as a wire of the given rate and delay would need, and is then moved by the CPU,
 * or not at all. So a kernel user sees an adapter of any speed, with completions that
 * come on another CPU than the posts.
 *
 *	insmod nullrdma.ko ends=veth0,veth1 rate_mbps=100000 delay_ns=5000 sched=rr
 *
 * This file owns the ends and follows the netdevs. Ends come when the module is loaded
 * and go when it is unloaded. The device of an end goes earlier if its netdev does.
 * Everything here runs in process context, and sleeps.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "dev.h"
#include "engine.h"
#include "params.h"
#include "show.h"
#include "wire.h"

struct nr_end *nr_ends[NR_MAX_ENDS];
int nr_num_ends;

static void unregister_gone(struct work_struct *work)
{
	nr_unregister_end(container_of(work, struct nr_end, gone));
}

static void free_end(struct nr_end *end)
{
	kvfree(end->qps);
	kvfree(end->mrs);
	kfree(end);
}

static struct nr_end *alloc_end(int index)
{
	struct nr_end *end = kzalloc(sizeof(*end), GFP_KERNEL);

	if (!end)
		return NULL;
	end->index = index;
	end->mtu = 4096;
	init_llist_head(&end->bells);
	INIT_WORK(&end->gone, unregister_gone);
	nr_init_wire(end);
	end->qps = kvcalloc(NR_MAX_QP, sizeof(*end->qps), GFP_KERNEL);
	end->mrs = kvcalloc(NR_MAX_MR, sizeof(*end->mrs), GFP_KERNEL);
	if (!end->qps || !end->mrs) {
		free_end(end);
		return NULL;
	}
	return end;
}

static int add_end(int index)
{
	struct net_device *netdev = dev_get_by_name(&init_net, nr_netdevs[index]);
	int err;

	if (!netdev) {
		pr_err("no netdev %s\n", nr_netdevs[index]);
		return -ENODEV;
	}
	err = nr_register_end(nr_ends[index], netdev);
	dev_put(netdev);
	return err;
}

/* The RDMA core takes rtnl_lock while it unregisters a device, so that is for later. */
static int netdev_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(arg);
	struct nr_end *end = NULL;
	int i;

	for (i = 0; i < nr_num_ends; i++)
		if (nr_ends[i]->ifindex == netdev->ifindex)
			end = nr_ends[i];
	if (!end || !net_eq(dev_net(netdev), &init_net))
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		nr_set_carrier(end, netif_running(netdev) && netif_carrier_ok(netdev));
		break;
	case NETDEV_UNREGISTER:
		schedule_work(&end->gone);
		break;
	default:
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = netdev_event };

static void remove_ends(void)
{
	int i;

	for (i = 0; i < nr_num_ends; i++) {
		flush_work(&nr_ends[i]->gone);
		nr_unregister_end(nr_ends[i]);
	}
	nr_stop_engine();
	for (i = 0; i < nr_num_ends; i++)
		free_end(nr_ends[i]);
}

static int __init nr_init(void)
{
	int i, err;

	err = nr_check_params();
	if (err)
		return err;
	nr_init_engine();
	/* The engine looks at all of them, so they are there before the first device. */
	for (i = 0; i < nr_num_netdevs; i++) {
		nr_ends[i] = alloc_end(i);
		if (!nr_ends[i])
			break;
	}
	nr_num_ends = i;
	err = i < nr_num_netdevs ? -ENOMEM : 0;
	nr_apply_params();
	for (i = 0; !err && i < nr_num_ends; i++)
		err = add_end(i);
	if (!err)
		err = register_netdevice_notifier(&notifier);
	if (err)
		remove_ends();
	else
		nr_show_ends();
	return err;
}

static void __exit nr_exit(void)
{
	nr_hide_ends();
	unregister_netdevice_notifier(&notifier);
	remove_ends();
}

module_init(nr_init);
module_exit(nr_exit);

MODULE_DESCRIPTION("Synthetic RDMA adapter, for tests only");
MODULE_LICENSE("GPL");
