// SPDX-License-Identifier: GPL-2.0
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma_isolate.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "nl_gen.h"

#include "../uapi/linux/rdma_isolate.h"

/* RDMA_ISOLATE_CMD_DEV_GET - do */
const struct nla_policy rdma_isolate_dev_get_nl_policy[RDMA_ISOLATE_A_DEV_DEV + 1] = {
	[RDMA_ISOLATE_A_DEV_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
};

/* RDMA_ISOLATE_CMD_DEV_SET - do */
const struct nla_policy rdma_isolate_dev_set_nl_policy[RDMA_ISOLATE_A_DEV_SHARE + 1] = {
	[RDMA_ISOLATE_A_DEV_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_DEV_MODE] = NLA_POLICY_MAX(NLA_U32, 2),
	[RDMA_ISOLATE_A_DEV_MAX_RATE] = { .type = NLA_U64, },
	[RDMA_ISOLATE_A_DEV_MAX_OPS] = { .type = NLA_U64, },
	[RDMA_ISOLATE_A_DEV_SAFE_UTIL] = { .type = NLA_U64, },
	[RDMA_ISOLATE_A_DEV_CHUNK_BYTES] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_DEV_TOKEN_BYTES] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_DEV_TOKEN_OPS] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_DEV_INFLIGHT_BYTES] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_DEV_HISTOGRAM] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_ISOLATE_A_DEV_TARGET99_NS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_ISOLATE_A_DEV_CTRL] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_ISOLATE_A_DEV_SHARE] = NLA_POLICY_MAX(NLA_U32, 2),
};

/* RDMA_ISOLATE_CMD_FLOW_GET - do */
const struct nla_policy rdma_isolate_flow_get_nl_policy[RDMA_ISOLATE_A_FLOW_QPN + 1] = {
	[RDMA_ISOLATE_A_FLOW_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_FLOW_QPN] = { .type = NLA_U32, },
};

/* RDMA_ISOLATE_CMD_RULE_ADD - do */
const struct nla_policy rdma_isolate_rule_add_nl_policy[RDMA_ISOLATE_A_RULE_CUT_IMM + 1] = {
	[RDMA_ISOLATE_A_RULE_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_RULE_ULP] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_ULP_NAME_MAX, },
	[RDMA_ISOLATE_A_RULE_PEER] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_PEER_MAX, },
	[RDMA_ISOLATE_A_RULE_COMM] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_COMM_MAX, },
	[RDMA_ISOLATE_A_RULE_UID] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_RULE_CLASS] = NLA_POLICY_MAX(NLA_U32, 2),
	[RDMA_ISOLATE_A_RULE_WEIGHT] = NLA_POLICY_RANGE(NLA_U32, 1, RDMA_ISOLATE_WEIGHT_MAX),
	[RDMA_ISOLATE_A_RULE_CHOOSE] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_ISOLATE_A_RULE_CGROUP] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_CGROUP_MAX, },
	[RDMA_ISOLATE_A_RULE_CUT_IMM] = NLA_POLICY_MAX(NLA_U32, 1),
};

/* RDMA_ISOLATE_CMD_RULE_DEL - do */
const struct nla_policy rdma_isolate_rule_del_nl_policy[RDMA_ISOLATE_A_RULE_ID + 1] = {
	[RDMA_ISOLATE_A_RULE_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* RDMA_ISOLATE_CMD_RULE_GET - do */
const struct nla_policy rdma_isolate_rule_get_nl_policy[RDMA_ISOLATE_A_RULE_ID + 1] = {
	[RDMA_ISOLATE_A_RULE_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* RDMA_ISOLATE_CMD_STAT_GET - do */
const struct nla_policy rdma_isolate_stat_get_nl_policy[RDMA_ISOLATE_A_STAT_DEV + 1] = {
	[RDMA_ISOLATE_A_STAT_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
};

/* RDMA_ISOLATE_CMD_GROUP_GET - do */
const struct nla_policy rdma_isolate_group_get_nl_policy[RDMA_ISOLATE_A_GROUP_ID + 1] = {
	[RDMA_ISOLATE_A_GROUP_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_GROUP_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* RDMA_ISOLATE_CMD_BUDGET_GET - do */
const struct nla_policy rdma_isolate_budget_get_nl_policy[RDMA_ISOLATE_A_BUDGET_DEV + 1] = {
	[RDMA_ISOLATE_A_BUDGET_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
};

/* RDMA_ISOLATE_CMD_BUDGET_SET - do */
const struct nla_policy rdma_isolate_budget_set_nl_policy[RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS + 1] = {
	[RDMA_ISOLATE_A_BUDGET_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_BUDGET_SAFE_UTIL] = NLA_POLICY_MIN(NLA_U64, 1),
	[RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_BUDGET_INFLIGHT_BYTES] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_BUDGET_LEASE_NS] = { .type = NLA_U64, },
	[RDMA_ISOLATE_A_BUDGET_AGENT_PID] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_ISOLATE_A_BUDGET_CTRL_STATE] = NLA_POLICY_MAX(NLA_U32, 6),
	[RDMA_ISOLATE_A_BUDGET_TARGET99_NS] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_BUDGET_CURRENT99_NS] = { .type = NLA_U64, },
	[RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS] = { .type = NLA_U32, },
};

/* RDMA_ISOLATE_CMD_HIST_GET - do */
const struct nla_policy rdma_isolate_hist_get_nl_policy[RDMA_ISOLATE_A_HIST_CLASS + 1] = {
	[RDMA_ISOLATE_A_HIST_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_HIST_CLASS] = NLA_POLICY_MAX(NLA_U32, 2),
};

/* RDMA_ISOLATE_CMD_FLOW_MARK - do */
const struct nla_policy rdma_isolate_flow_mark_nl_policy[RDMA_ISOLATE_A_FLOW_GROUP + 1] = {
	[RDMA_ISOLATE_A_FLOW_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_FLOW_QPN] = { .type = NLA_U32, },
	[RDMA_ISOLATE_A_FLOW_GROUP] = { .type = NLA_U32, },
};

/* RDMA_ISOLATE_CMD_PATH_SET - do */
const struct nla_policy rdma_isolate_path_set_nl_policy[RDMA_ISOLATE_A_PATH_LEASE_NS + 1] = {
	[RDMA_ISOLATE_A_PATH_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_PATH_PEER] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_PEER_MAX, },
	[RDMA_ISOLATE_A_PATH_DIR] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_ISOLATE_A_PATH_RATE] = { .type = NLA_U64, },
	[RDMA_ISOLATE_A_PATH_CUT] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_ISOLATE_A_PATH_LEASE_NS] = { .type = NLA_U64, },
};

/* RDMA_ISOLATE_CMD_PATH_GET - do */
const struct nla_policy rdma_isolate_path_get_nl_policy[RDMA_ISOLATE_A_PATH_DIR + 1] = {
	[RDMA_ISOLATE_A_PATH_DEV] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_DEV_NAME_MAX, },
	[RDMA_ISOLATE_A_PATH_PEER] = { .type = NLA_NUL_STRING, .len = RDMA_ISOLATE_PEER_MAX, },
	[RDMA_ISOLATE_A_PATH_DIR] = NLA_POLICY_MAX(NLA_U32, 1),
};

/* Ops table for rdma_isolate */
const struct genl_ops rdma_isolate_nl_ops[14] = {
	{
		.cmd		= RDMA_ISOLATE_CMD_DEV_GET,
		.doit		= rdma_isolate_nl_dev_get_doit,
		.start		= rdma_isolate_nl_dump_start,
		.dumpit		= rdma_isolate_nl_dev_get_dumpit,
		.policy		= rdma_isolate_dev_get_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_DEV_DEV,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_DEV_SET,
		.doit		= rdma_isolate_nl_dev_set_doit,
		.policy		= rdma_isolate_dev_set_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_DEV_SHARE,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_FLOW_GET,
		.doit		= rdma_isolate_nl_flow_get_doit,
		.start		= rdma_isolate_nl_dump_start,
		.dumpit		= rdma_isolate_nl_flow_get_dumpit,
		.policy		= rdma_isolate_flow_get_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_FLOW_QPN,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_RULE_ADD,
		.doit		= rdma_isolate_nl_rule_add_doit,
		.policy		= rdma_isolate_rule_add_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_RULE_CUT_IMM,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_RULE_DEL,
		.doit		= rdma_isolate_nl_rule_del_doit,
		.policy		= rdma_isolate_rule_del_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_RULE_ID,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_RULE_GET,
		.doit		= rdma_isolate_nl_rule_get_doit,
		.start		= rdma_isolate_nl_dump_start,
		.dumpit		= rdma_isolate_nl_rule_get_dumpit,
		.policy		= rdma_isolate_rule_get_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_RULE_ID,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_STAT_GET,
		.doit		= rdma_isolate_nl_stat_get_doit,
		.start		= rdma_isolate_nl_dump_start,
		.dumpit		= rdma_isolate_nl_stat_get_dumpit,
		.policy		= rdma_isolate_stat_get_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_STAT_DEV,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_GROUP_GET,
		.doit		= rdma_isolate_nl_group_get_doit,
		.start		= rdma_isolate_nl_dump_start,
		.dumpit		= rdma_isolate_nl_group_get_dumpit,
		.policy		= rdma_isolate_group_get_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_GROUP_ID,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_BUDGET_GET,
		.doit		= rdma_isolate_nl_budget_get_doit,
		.start		= rdma_isolate_nl_dump_start,
		.dumpit		= rdma_isolate_nl_budget_get_dumpit,
		.policy		= rdma_isolate_budget_get_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_BUDGET_DEV,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_BUDGET_SET,
		.doit		= rdma_isolate_nl_budget_set_doit,
		.policy		= rdma_isolate_budget_set_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_HIST_GET,
		.doit		= rdma_isolate_nl_hist_get_doit,
		.start		= rdma_isolate_nl_dump_start,
		.dumpit		= rdma_isolate_nl_hist_get_dumpit,
		.policy		= rdma_isolate_hist_get_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_HIST_CLASS,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_FLOW_MARK,
		.doit		= rdma_isolate_nl_flow_mark_doit,
		.policy		= rdma_isolate_flow_mark_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_FLOW_GROUP,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_PATH_SET,
		.doit		= rdma_isolate_nl_path_set_doit,
		.policy		= rdma_isolate_path_set_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_PATH_LEASE_NS,
	},
	{
		.cmd		= RDMA_ISOLATE_CMD_PATH_GET,
		.doit		= rdma_isolate_nl_path_get_doit,
		.start		= rdma_isolate_nl_dump_start,
		.dumpit		= rdma_isolate_nl_path_get_dumpit,
		.policy		= rdma_isolate_path_get_nl_policy,
		.maxattr	= RDMA_ISOLATE_A_PATH_DIR,
	},
};

