// SPDX-License-Identifier: GPL-2.0
/*
 * Requests about flows and groups: show.c says what may be seen, nl_msg.c how it is put.
 *
 * Owns nothing. Handlers run in process context, any number at a time; what they call
 * takes its locks by itself.
 */

#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <net/genetlink.h>

#include "around.h"
#include "dev.h"
#include "nl.h"
#include "nl_gen.h"
#include "show.h"

enum {
	/* A dump of more groups counts for one request for each such part of them. */
	RISO_REQUEST_GROUPS = 128,
};

/* Who asks: flows and groups are shown as nldev would show their processes. */
static struct riso_viewer viewer(void)
{
	return (struct riso_viewer) {
		.ns = task_active_pid_ns(current),
		.user_ns = current_user_ns(),
	};
}

int rdma_isolate_nl_flow_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *qpn = info->attrs[RDMA_ISOLATE_A_FLOW_QPN];
	struct riso_viewer who = viewer();
	struct riso_flow_info flow;
	struct riso_dev *rd;
	int err;

	if (!qpn) {
		GENL_SET_ERR_MSG(info, "the queue pair number is missing");
		return -EINVAL;
	}

	rd = riso_nl_find_dev(info->attrs[RDMA_ISOLATE_A_FLOW_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);

	if (riso_show_next_flow(rd, nla_get_u32(qpn), &who, &flow) ||
	    flow.qpn != nla_get_u32(qpn)) {
		NL_SET_ERR_MSG_ATTR(info->extack, qpn,
				    "the device has no queue pair of this number made since the module was loaded");
		err = -ENOENT;
	} else {
		err = riso_nl_reply(info, RDMA_ISOLATE_CMD_FLOW_GET, riso_nl_fill_flow,
				    rd->ibdev->name, &flow);
	}
	riso_dev_put(rd);
	return err;
}

/* cb->args[1] is the next queue pair number of this device */
static int dump_flows(struct sk_buff *skb, struct netlink_callback *cb,
		      struct riso_dev *rd)
{
	struct riso_viewer who = viewer();
	struct riso_flow_info flow;
	int err;

	while (!riso_show_next_flow(rd, cb->args[1], &who, &flow)) {
		err = riso_nl_put_part(skb, cb, RDMA_ISOLATE_CMD_FLOW_GET, riso_nl_fill_flow,
				       rd->ibdev->name, &flow);
		if (err)
			return err;
		cb->args[1] = flow.qpn + 1;
	}
	return 0;
}

int rdma_isolate_nl_flow_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	struct nlattr *attrs[RDMA_ISOLATE_A_FLOW_QPN + 1];
	int err;

	err = genlmsg_parse(cb->nlh, &riso_nl_family, attrs, RDMA_ISOLATE_A_FLOW_QPN,
			    rdma_isolate_flow_get_nl_policy, cb->extack);
	if (err)
		return err;

	return riso_nl_dump_of_devs(skb, cb, attrs[RDMA_ISOLATE_A_FLOW_DEV],
				    attrs[RDMA_ISOLATE_A_FLOW_QPN], dump_flows);
}

int rdma_isolate_nl_flow_mark_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *group = info->attrs[RDMA_ISOLATE_A_FLOW_GROUP];
	struct nlattr *qpn = info->attrs[RDMA_ISOLATE_A_FLOW_QPN];
	struct riso_dev *rd;
	int err;

	err = riso_nl_check_admin(skb, info);
	if (err)
		return err;

	if (!qpn) {
		GENL_SET_ERR_MSG(info, "the queue pair number is missing");
		return -EINVAL;
	}
	if (!group) {
		GENL_SET_ERR_MSG(info, "the id of the group is missing");
		return -EINVAL;
	}

	rd = riso_nl_find_dev(info->attrs[RDMA_ISOLATE_A_FLOW_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);
	err = riso_around_mark(rd, nla_get_u32(qpn), nla_get_u32(group), info->extack);
	riso_dev_put(rd);
	return err;
}

int rdma_isolate_nl_group_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *id = info->attrs[RDMA_ISOLATE_A_GROUP_ID];
	struct riso_viewer who = viewer();
	struct riso_group_info group;
	struct riso_dev *rd;
	int err;

	if (!id) {
		GENL_SET_ERR_MSG(info, "the id of the group is missing");
		return -EINVAL;
	}

	rd = riso_nl_find_dev(info->attrs[RDMA_ISOLATE_A_GROUP_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);

	if (riso_show_next_group(rd, nla_get_u32(id), &who, &group) ||
	    group.id != nla_get_u32(id)) {
		NL_SET_ERR_MSG_ATTR(info->extack, id,
				    "no group has this id on the device");
		err = -ENOENT;
	} else {
		err = riso_nl_reply(info, RDMA_ISOLATE_CMD_GROUP_GET, riso_nl_fill_group,
				    rd->ibdev->name, &group);
	}
	riso_dev_put(rd);
	return err;
}

/*
 * cb->args[1] is the next id of this device, args[2] counts groups: for each the lock of the
 * data path is taken. Who may ask no more is not made to wait, as others may wait for what
 * the caller has: the dump ends with an error.
 */
static int dump_groups(struct sk_buff *skb, struct netlink_callback *cb,
		       struct riso_dev *rd)
{
	struct riso_viewer who = viewer();
	struct riso_group_info group;
	int err;

	/* There is none behind the largest id. */
	while (cb->args[1] <= U32_MAX &&
	       !riso_show_next_group(rd, cb->args[1], &who, &group)) {
		if (cb->args[2] == RISO_REQUEST_GROUPS) {
			err = riso_nl_check_rate(cb->skb, cb->extack);
			if (err)
				return err;
			cb->args[2] = 0;
		}
		err = riso_nl_put_part(skb, cb, RDMA_ISOLATE_CMD_GROUP_GET, riso_nl_fill_group,
				       rd->ibdev->name, &group);
		if (err)
			return err;
		cb->args[1] = (unsigned long)group.id + 1;
		cb->args[2]++;
	}
	return 0;
}

int rdma_isolate_nl_group_get_dumpit(struct sk_buff *skb,
				     struct netlink_callback *cb)
{
	struct nlattr *attrs[RDMA_ISOLATE_A_GROUP_ID + 1];
	int err;

	err = genlmsg_parse(cb->nlh, &riso_nl_family, attrs, RDMA_ISOLATE_A_GROUP_ID,
			    rdma_isolate_group_get_nl_policy, cb->extack);
	if (err)
		return err;

	return riso_nl_dump_of_devs(skb, cb, attrs[RDMA_ISOLATE_A_GROUP_DEV],
				    attrs[RDMA_ISOLATE_A_GROUP_ID], dump_groups);
}
