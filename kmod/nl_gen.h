/* SPDX-License-Identifier: GPL-2.0 */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma_isolate.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_RDMA_ISOLATE_GEN_H
#define _LINUX_RDMA_ISOLATE_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include "../uapi/linux/rdma_isolate.h"

extern const struct nla_policy
rdma_isolate_dev_get_nl_policy[RDMA_ISOLATE_A_DEV_DEV + 1];

extern const struct nla_policy
rdma_isolate_dev_set_nl_policy[RDMA_ISOLATE_A_DEV_SHARE + 1];

extern const struct nla_policy
rdma_isolate_flow_get_nl_policy[RDMA_ISOLATE_A_FLOW_QPN + 1];

extern const struct nla_policy
rdma_isolate_rule_add_nl_policy[RDMA_ISOLATE_A_RULE_CUT_IMM + 1];

extern const struct nla_policy
rdma_isolate_rule_del_nl_policy[RDMA_ISOLATE_A_RULE_ID + 1];

extern const struct nla_policy
rdma_isolate_rule_get_nl_policy[RDMA_ISOLATE_A_RULE_ID + 1];

extern const struct nla_policy
rdma_isolate_stat_get_nl_policy[RDMA_ISOLATE_A_STAT_DEV + 1];

extern const struct nla_policy
rdma_isolate_group_get_nl_policy[RDMA_ISOLATE_A_GROUP_ID + 1];

extern const struct nla_policy
rdma_isolate_budget_get_nl_policy[RDMA_ISOLATE_A_BUDGET_DEV + 1];

extern const struct nla_policy
rdma_isolate_budget_set_nl_policy[RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS + 1];

extern const struct nla_policy
rdma_isolate_hist_get_nl_policy[RDMA_ISOLATE_A_HIST_CLASS + 1];

extern const struct nla_policy
rdma_isolate_flow_mark_nl_policy[RDMA_ISOLATE_A_FLOW_GROUP + 1];

extern const struct nla_policy
rdma_isolate_path_set_nl_policy[RDMA_ISOLATE_A_PATH_LEASE_NS + 1];

extern const struct nla_policy
rdma_isolate_path_get_nl_policy[RDMA_ISOLATE_A_PATH_DIR + 1];

/* Ops table for rdma_isolate */
extern const struct genl_ops rdma_isolate_nl_ops[14];

int rdma_isolate_nl_dump_start(struct netlink_callback *cb);

int rdma_isolate_nl_dev_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_dev_get_dumpit(struct sk_buff *skb,
				   struct netlink_callback *cb);
int rdma_isolate_nl_dev_set_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_flow_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_flow_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);
int rdma_isolate_nl_rule_add_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_rule_del_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_rule_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_rule_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);
int rdma_isolate_nl_stat_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_stat_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);
int rdma_isolate_nl_group_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_group_get_dumpit(struct sk_buff *skb,
				     struct netlink_callback *cb);
int rdma_isolate_nl_budget_get_doit(struct sk_buff *skb,
				    struct genl_info *info);
int rdma_isolate_nl_budget_get_dumpit(struct sk_buff *skb,
				      struct netlink_callback *cb);
int rdma_isolate_nl_budget_set_doit(struct sk_buff *skb,
				    struct genl_info *info);
int rdma_isolate_nl_hist_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_hist_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);
int rdma_isolate_nl_flow_mark_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_path_set_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_path_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_isolate_nl_path_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);

enum {
	RDMA_ISOLATE_NLGRP_EVENTS,
};

#endif /* _LINUX_RDMA_ISOLATE_GEN_H */
