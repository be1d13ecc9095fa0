// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family rdma_isolate, which
 * Documentation/netlink/specs/rdma_isolate.yaml describes.
 *
 * Owns the family, how often each user may ask, and what all handlers need: who may ask,
 * which device is meant, how an answer and a dump are made. Handlers are in nl_dev.c,
 * nl_flow.c and nl_rule.c, events in nl_event.c, what messages hold in nl_msg.c. Policies
 * are generated, in nl_gen.c.
 *
 * Operations run in process context and in parallel: no lock is held over a handler. The
 * family is seen in the initial network namespace only.
 */

#include <linux/kernel.h>
#include <linux/module.h>
#include <net/genetlink.h>
#include <net/netlink.h>

#include "compat.h"
#include "dev.h"
#include "netlink.h"
#include "nl.h"
#include "nl_gen.h"
#include "place.h"
#include "rate.h"

enum {
	/* Requests that an owner may make in the long run, one in... */
	RISO_REQUEST_NS = 10 * NSEC_PER_MSEC,
	/* ...and at once: a tool makes a few for each device. */
	RISO_REQUEST_BURST = 200,
};

static struct riso_rate requests;

/**
 * riso_nl_check_admin - refuse whoever may not change anything
 * @skb: the request
 * @info: the request; says what was wrong
 *
 * Setters check this by hand, because GENL_ADMIN_PERM would refuse without
 * saying why.
 *
 * Return: 0 or -EPERM.
 */
int riso_nl_check_admin(struct sk_buff *skb, struct genl_info *info)
{
	if (netlink_capable(skb, CAP_NET_ADMIN))
		return 0;

	GENL_SET_ERR_MSG(info, "CAP_NET_ADMIN is needed");
	return -EPERM;
}

/**
 * riso_nl_check_rate - refuse whoever asks too often
 * @skb: the request
 * @extack: says what was wrong
 *
 * Memory for an answer is had, and cleared, for each part of a dump, and what counts is
 * copied under the lock of the data path: others wait for that.
 *
 * Return: 0 or -EBUSY.
 */
int riso_nl_check_rate(struct sk_buff *skb, struct netlink_ext_ack *extack)
{
	if (netlink_capable(skb, CAP_NET_ADMIN) ||
	    riso_rate_take(&requests, riso_place_own_key(), RISO_REQUEST_NS,
			   RISO_REQUEST_BURST))
		return 0;
	NL_SET_ERR_MSG(extack,
		       "a user without CAP_NET_ADMIN may make 100 requests a second");
	return -EBUSY;
}

int rdma_isolate_nl_dump_start(struct netlink_callback *cb)
{
	return riso_nl_check_rate(cb->skb, cb->extack);
}

static int begin_request(const RISO_GENL_OP *op, struct sk_buff *skb,
			 struct genl_info *info)
{
	return riso_nl_check_rate(skb, info->extack);
}

/**
 * riso_nl_check_plain_dump - refuse a dump with attributes
 * @cb: the dump
 *
 * One policy serves do and dump: a dump without a filter takes none of it.
 *
 * Return: 0 or -EINVAL.
 */
int riso_nl_check_plain_dump(struct netlink_callback *cb)
{
	if (!nlmsg_attrlen(cb->nlh, GENL_HDRLEN))
		return 0;

	NL_SET_ERR_MSG(cb->extack, "this dump takes no attributes");
	return -EINVAL;
}

/**
 * riso_nl_find_dev - look up the device that an attribute names
 * @name: the attribute, or NULL
 * @extack: says what was wrong
 *
 * Return: the device, to be put with riso_dev_put(), or an ERR_PTR().
 */
struct riso_dev *riso_nl_find_dev(const struct nlattr *name,
				  struct netlink_ext_ack *extack)
{
	struct riso_dev *rd;

	if (!name) {
		NL_SET_ERR_MSG(extack, "the name of the device is missing");
		return ERR_PTR(-EINVAL);
	}

	rd = riso_dev_get_by_name(nla_data(name));
	if (!rd) {
		NL_SET_ERR_MSG_ATTR(extack, name, "no RDMA device of this name");
		return ERR_PTR(-ENODEV);
	}
	return rd;
}

/**
 * riso_nl_put_part - put one message of a dump
 * @skb: what it is put into
 * @cb: the dump
 * @cmd: its command
 * @fill: puts its attributes
 * @dev: name of the device that @what belongs to
 * @what: what @fill shows
 *
 * Return: 0 or -EMSGSIZE: the dump goes on with the same message in its next part.
 */
int riso_nl_put_part(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
		     riso_nl_fill_fn fill, const char *dev, const void *what)
{
	return riso_nl_put_msg(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			       NLM_F_MULTI, cmd, fill, dev, what);
}

/**
 * riso_nl_reply - answer a request with one message
 * @info: the request
 * @cmd: the command of the message
 * @fill: puts its attributes
 * @dev: name of the device that @what belongs to
 * @what: what @fill shows
 *
 * Return: 0 or a negative errno.
 */
int riso_nl_reply(struct genl_info *info, u8 cmd, riso_nl_fill_fn fill,
		  const char *dev, const void *what)
{
	struct sk_buff *msg;
	int err;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;

	err = riso_nl_put_msg(msg, info->snd_portid, info->snd_seq, 0, cmd, fill, dev,
			      what);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	return genlmsg_reply(msg, info);
}

/**
 * riso_nl_dump_of_devs - dump what each device has, or the one that is named
 * @skb: this part of the dump
 * @cb: the dump
 * @name: attribute with the name of the device, or NULL for all
 * @surplus: an attribute that a dump does not take, or NULL
 * @dump_one: dumps what one device has
 *
 * cb->args[0] is the index of the device that args[1] is about, which says where
 * @dump_one goes on.
 *
 * Return: as a dump returns.
 */
int riso_nl_dump_of_devs(struct sk_buff *skb, struct netlink_callback *cb,
			 const struct nlattr *name, const struct nlattr *surplus,
			 riso_nl_dump_fn dump_one)
{
	struct riso_dev *rd;
	u32 index;
	int err;

	if (surplus) {
		NL_SET_ERR_MSG_ATTR(cb->extack, surplus,
				    "a dump takes the device only");
		return -EINVAL;
	}

	riso_nl_watch_changes(cb);
	if (name) {
		rd = riso_nl_find_dev(name, cb->extack);
		if (IS_ERR(rd))
			return PTR_ERR(rd);
		err = dump_one(skb, cb, rd);
		riso_dev_put(rd);
		riso_nl_watch_changes(cb);
		return skb->len ?: err;
	}

	while ((rd = riso_dev_get_next(cb->args[0]))) {
		index = rd->index;
		if (index != cb->args[0]) {
			cb->args[0] = index;
			cb->args[1] = 0;
		}
		err = dump_one(skb, cb, rd);
		riso_dev_put(rd);
		if (err)
			return skb->len ?: err;
		cb->args[0] = index + 1;
		cb->args[1] = 0;
	}
	riso_nl_watch_changes(cb);
	return skb->len;
}

/* Events tell of everybody, so that only an administrator may hear them. */
static const struct genl_multicast_group mcgrps[] = {
	[RDMA_ISOLATE_NLGRP_EVENTS] = {
		.name = RDMA_ISOLATE_MCGRP_EVENTS,
		.flags = GENL_MCAST_CAP_NET_ADMIN,
	},
};

struct genl_family riso_nl_family __ro_after_init = {
	.name = RDMA_ISOLATE_FAMILY_NAME,
	.version = RDMA_ISOLATE_FAMILY_VERSION,
	.module = THIS_MODULE,
	.parallel_ops = true,
	.pre_doit = begin_request,
	.ops = rdma_isolate_nl_ops,
	.n_ops = ARRAY_SIZE(rdma_isolate_nl_ops),
	.mcgrps = mcgrps,
	.n_mcgrps = ARRAY_SIZE(mcgrps),
};

/**
 * riso_nl_init - register the family
 *
 * Return: 0 or a negative errno.
 */
int __init riso_nl_init(void)
{
	int err;

	riso_rate_init(&requests);
	err = genl_register_family(&riso_nl_family);
	if (err)
		return err;

	riso_nl_start_events();
	return 0;
}

/**
 * riso_nl_exit - unregister the family
 *
 * Waits for operations that run. They may wait to tell listeners, so no lock is held.
 */
void riso_nl_exit(void)
{
	riso_nl_stop_events();
	genl_unregister_family(&riso_nl_family);
}
