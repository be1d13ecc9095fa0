// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of the family, and what they hold.
 *
 * A message is put from a structure that its caller has filled in: nothing here looks at a
 * device, flow, group or rule, so handlers and events share it. Each structure has a table of
 * its numbers, in the order of the message.
 *
 * Owns nothing, takes no lock and does not sleep.
 */

#include <linux/inet.h>
#include <linux/kernel.h>
#include <net/genetlink.h>

#include "dev.h"
#include "nl.h"
#include "show.h"
#include "stats.h"

static_assert((int)RISO_ERROR_NONE == (int)IB_WC_SUCCESS);
static_assert((int)RISO_ERROR_RNR_RETRY_EXCEEDED == (int)IB_WC_RNR_RETRY_EXC_ERR);
static_assert((int)RISO_ERROR_GENERAL == (int)IB_WC_GENERAL_ERR);

/**
 * riso_nl_put_counter - put a counter and its name
 * @skb: the message
 * @attr: the attribute, a nest
 * @name: of the counter
 * @val: its value
 *
 * Return: 0 or -EMSGSIZE.
 */
int riso_nl_put_counter(struct sk_buff *skb, int attr, const char *name, u64 val)
{
	struct nlattr *nest;

	nest = nla_nest_start(skb, attr);
	if (!nest ||
	    nla_put_string(skb, RDMA_ISOLATE_A_COUNTER_NAME, name) ||
	    nla_put_u64_64bit(skb, RDMA_ISOLATE_A_COUNTER_VALUE, val,
			      RDMA_ISOLATE_A_COUNTER_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * riso_nl_put_text - put a text unless it is empty
 * @skb: the message
 * @attr: the attribute
 * @text: the text
 *
 * Return: 0 or -EMSGSIZE.
 */
int riso_nl_put_text(struct sk_buff *skb, int attr, const char *text)
{
	return *text ? nla_put_string(skb, attr, text) : 0;
}

/**
 * riso_nl_put_peer - put a GID as text
 * @skb: the message
 * @attr: the attribute
 * @gid: of the remote side
 *
 * Return: 0 or -EMSGSIZE.
 */
int riso_nl_put_peer(struct sk_buff *skb, int attr, const union ib_gid *gid)
{
	char peer[INET6_ADDRSTRLEN];

	snprintf(peer, sizeof(peer), "%pI6c", gid->raw);
	return nla_put_string(skb, attr, peer);
}

/**
 * riso_nl_read_peer - read the address of a host
 * @attr: attribute with the address as text
 * @gid: filled in, IPv4 as mapped in IPv6
 * @extack: says what was wrong
 *
 * Return: 0 or -EINVAL.
 */
int riso_nl_read_peer(const struct nlattr *attr, union ib_gid *gid,
		      struct netlink_ext_ack *extack)
{
	const char *text = nla_data(attr);
	const char *end;
	__be32 addr;

	if (in4_pton(text, -1, (u8 *)&addr, -1, &end) && !*end) {
		ipv6_addr_set_v4mapped(addr, (struct in6_addr *)gid->raw);
		return 0;
	}
	if (in6_pton(text, -1, gid->raw, -1, &end) && !*end)
		return 0;

	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "this is no IPv4 address, IPv6 address or GID");
	return -EINVAL;
}

/**
 * riso_nl_put_msg - put a whole message
 * @skb: what it is put into
 * @portid: of the receiver
 * @seq: number of the request, 0 for an event
 * @flags: NLM_F_*
 * @cmd: its command
 * @fill: puts its attributes
 * @dev: name of the device that @what belongs to
 * @what: what @fill shows
 *
 * Return: 0, or -EMSGSIZE: there was no room, and nothing was put.
 */
int riso_nl_put_msg(struct sk_buff *skb, u32 portid, u32 seq, int flags, u8 cmd,
		    riso_nl_fill_fn fill, const char *dev, const void *what)
{
	void *hdr;

	hdr = genlmsg_put(skb, portid, seq, &riso_nl_family, flags, cmd);
	if (!hdr)
		return -EMSGSIZE;

	if (fill(skb, dev, what)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/**
 * struct number - an attribute that carries a member of a structure
 * @attr: the attribute
 * @offset: where the member is
 * @size: bytes of the member: a bool, an enum, u32 or u64
 * @width: bytes of the attribute, 4 or 8
 */
struct number {
	u16 attr;
	u16 offset;
	u8 size;
	u8 width;
};

/* @field: a structure and its member, as offsetof() takes them */
#define NUMBER_U32(attr, field...) \
	{ attr, offsetof(field), sizeof_field(field), sizeof(u32) }
#define NUMBER_U64(attr, field...) \
	{ attr, offsetof(field), sizeof_field(field), sizeof(u64) }

static u64 read_number(const void *member, u8 size)
{
	switch (size) {
	case sizeof(u64):
		return *(const u64 *)member;
	case sizeof(u32):
		return *(const u32 *)member;
	default:
		return *(const bool *)member;
	}
}

/* Puts the @n numbers of @from that @table lists, in this order. */
static int put_numbers(struct sk_buff *skb, const struct number *table, size_t n,
		       const void *from, int pad)
{
	const struct number *t;
	u64 val;
	int err;

	for (t = table; t < table + n; t++) {
		val = read_number(from + t->offset, t->size);
		err = t->width == sizeof(u64) ? nla_put_u64_64bit(skb, t->attr, val, pad) :
						nla_put_u32(skb, t->attr, val);
		if (err)
			return err;
	}
	return 0;
}

static const struct number dev_numbers[] = {
	NUMBER_U32(RDMA_ISOLATE_A_DEV_INDEX, struct riso_dev_info, index),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_STATE, struct riso_dev_info, state),
	NUMBER_U64(RDMA_ISOLATE_A_DEV_MAX_RATE, struct riso_dev_info, cfg.max_rate),
	NUMBER_U64(RDMA_ISOLATE_A_DEV_MAX_OPS, struct riso_dev_info, cfg.max_ops),
	NUMBER_U64(RDMA_ISOLATE_A_DEV_SAFE_UTIL, struct riso_dev_info, cfg.safe_util),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_CHUNK_BYTES, struct riso_dev_info, cfg.chunk_bytes),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_TOKEN_BYTES, struct riso_dev_info, cfg.token_bytes),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_TOKEN_OPS, struct riso_dev_info, cfg.token_ops),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_INFLIGHT_BYTES, struct riso_dev_info, cfg.inflight_bytes),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_CALIBRATED, struct riso_dev_info, cfg.calibrated),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_LATENCY_FLOWS, struct riso_dev_info, latency_flows),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_MANAGED_FLOWS, struct riso_dev_info, managed_flows),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_HELD_WRS, struct riso_dev_info, held),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_PORTS, struct riso_dev_info, ports),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_HISTOGRAM, struct riso_dev_info, cfg.histogram),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_PROCESSES, struct riso_dev_info, processes),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_TARGET99_NS, struct riso_dev_info, cfg.target99_ns),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_CTRL, struct riso_dev_info, cfg.ctrl),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_SHARE, struct riso_dev_info, cfg.share),
	NUMBER_U64(RDMA_ISOLATE_A_DEV_BELIEVED_RATE, struct riso_dev_info, believed_rate),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_BELIEVED_FROM, struct riso_dev_info, believed_from),
};

/**
 * riso_nl_fill_dev - put the attributes of the settings and the state of a device
 * @skb: the message
 * @dev: not looked at, the name is in @what
 * @what: a &struct riso_dev_info
 *
 * Return: 0 or -EMSGSIZE.
 */
int riso_nl_fill_dev(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct riso_dev_info *info = what;

	if (nla_put_string(skb, RDMA_ISOLATE_A_DEV_DEV, info->name) ||
	    put_numbers(skb, dev_numbers, ARRAY_SIZE(dev_numbers), info,
			RDMA_ISOLATE_A_DEV_PAD))
		return -EMSGSIZE;
	return 0;
}

static const struct number budget_numbers[] = {
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, struct riso_budget, cfg.safe_util),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES, struct riso_budget, cfg.chunk_bytes),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_INFLIGHT_BYTES, struct riso_budget, cfg.inflight_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_LEASE_NS, struct riso_budget, lease_ns),
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_TX_PACE, struct riso_budget, pace[RISO_TX]),
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_RX_PACE, struct riso_budget, pace[RISO_RX]),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_AGENT_PID, struct riso_budget, steer.pid),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_CTRL_STATE, struct riso_budget, steer.state),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_TARGET99_NS, struct riso_budget, steer.target99_ns),
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_CURRENT99_NS, struct riso_budget, steer.current99_ns),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS,
		   struct riso_budget, groups[RISO_CLASS_LATENCY]),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS,
		   struct riso_budget, groups[RISO_CLASS_BANDWIDTH]),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS,
		   struct riso_budget, groups[RISO_CLASS_THROUGHPUT]),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS,
		   struct riso_budget, steer.peer_latency),
};

/**
 * riso_nl_fill_budget - put the attributes of what is in force on a device
 * @skb: the message
 * @dev: name of the device
 * @what: a &struct riso_budget
 *
 * Return: 0 or -EMSGSIZE.
 */
int riso_nl_fill_budget(struct sk_buff *skb, const char *dev, const void *what)
{
	if (nla_put_string(skb, RDMA_ISOLATE_A_BUDGET_DEV, dev) ||
	    put_numbers(skb, budget_numbers, ARRAY_SIZE(budget_numbers), what,
			RDMA_ISOLATE_A_BUDGET_PAD))
		return -EMSGSIZE;
	return 0;
}

static const struct number flow_numbers[] = {
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_REASON, struct riso_flow_info, reason),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_QP_TYPE, struct riso_flow_info, qp_type),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_QP_STATE, struct riso_flow_info, qp_state),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_RULE_ID, struct riso_flow_info, rule_id),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_WEIGHT, struct riso_flow_info, weight),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_TX_BYTES, struct riso_flow_info, tx_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_RX_BYTES, struct riso_flow_info, rx_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_WRS, struct riso_flow_info, wrs),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_CHUNKS, struct riso_flow_info, chunks),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_SPLITS, struct riso_flow_info, splits),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_QUEUED, struct riso_flow_info, queued),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_WAIT_NS, struct riso_flow_info, wait_ns),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_HELD, struct riso_flow_info, held),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_GROUP, struct riso_flow_info, group),
};

/**
 * riso_nl_fill_flow - put the attributes of a flow
 * @skb: the message
 * @dev: name of its device
 * @what: a &struct riso_flow_info
 *
 * Return: 0 or -EMSGSIZE.
 */
int riso_nl_fill_flow(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct riso_flow_info *info = what;
	const struct riso_identity *who = &info->who;
	int i;

	if (nla_put_string(skb, RDMA_ISOLATE_A_FLOW_DEV, dev) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_QPN, info->qpn) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_CLASS, info->class) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_MANAGED,
			info->reason == RISO_REASON_NONE) ||
	    put_numbers(skb, flow_numbers, ARRAY_SIZE(flow_numbers), info,
			RDMA_ISOLATE_A_FLOW_PAD) ||
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_FLOW_ULP, who->ulp) ||
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_FLOW_COMM, who->comm) ||
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_FLOW_CGROUP, who->cgroup))
		return -EMSGSIZE;

	if (info->rnr_known &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_RNR_TIMER, info->rnr_timer))
		return -EMSGSIZE;

	if (info->error != IB_WC_SUCCESS &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_ERROR, info->error))
		return -EMSGSIZE;

	if (info->over_target &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_OVER_TARGET, 1))
		return -EMSGSIZE;

	if (info->around && nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_AROUND, 1))
		return -EMSGSIZE;

	if (who->peer_known &&
	    riso_nl_put_peer(skb, RDMA_ISOLATE_A_FLOW_PEER, &who->peer))
		return -EMSGSIZE;

	if (who->pid &&
	    (nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_PID, who->pid) ||
	     nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_UID, who->uid)))
		return -EMSGSIZE;

	for (i = 0; i < RISO_SIZES; i++)
		if (riso_nl_put_counter(skb, RDMA_ISOLATE_A_FLOW_SIZE,
					riso_stat_names[RISO_STAT_SIZE + i],
					info->sizes[i]))
			return -EMSGSIZE;

	return 0;
}

static int put_behind(struct sk_buff *skb, const struct riso_behind *behind)
{
	struct nlattr *nest;

	nest = nla_nest_start(skb, RDMA_ISOLATE_A_GROUP_BEHIND);
	if (!nest)
		return -EMSGSIZE;

	if (nla_put_u32(skb, RDMA_ISOLATE_A_BEHIND_GROUP, behind->group) ||
	    nla_put_u64_64bit(skb, RDMA_ISOLATE_A_BEHIND_USED_NS, behind->ns,
			      RDMA_ISOLATE_A_BEHIND_PAD))
		return -EMSGSIZE;

	nla_nest_end(skb, nest);
	return 0;
}

static const struct number pressure_numbers[] = {
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_HELD, struct riso_pressure_info, held),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_STALL_NS, struct riso_pressure_info, stall_ns),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_CLOCK_NS, struct riso_pressure_info, clock_ns),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_WINDOW_NS, struct riso_pressure_info, window_ns),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_PATH_NS, struct riso_pressure_info, path_ns),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_OWN_NS, struct riso_pressure_info, own_ns),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_AVG10, struct riso_pressure_info, avg[0]),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_AVG60, struct riso_pressure_info, avg[1]),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_AVG300, struct riso_pressure_info, avg[2]),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_BEHIND_OTHERS_NS, struct riso_pressure_info, others_ns),
};

static int put_pressure(struct sk_buff *skb,
			const struct riso_pressure_info *info)
{
	const struct riso_behind *b;

	if (put_numbers(skb, pressure_numbers, ARRAY_SIZE(pressure_numbers), info,
			RDMA_ISOLATE_A_GROUP_PAD))
		return -EMSGSIZE;

	for (b = info->behind; b < info->behind + RISO_BEHIND && b->group; b++)
		if (put_behind(skb, b))
			return -EMSGSIZE;
	return 0;
}

static const struct number group_numbers[] = {
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_ID, struct riso_group_info, id),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_WEIGHT, struct riso_group_info, weight),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_FLOWS, struct riso_group_info, flows),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_TX_BYTES, struct riso_group_info, tx_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_RX_BYTES, struct riso_group_info, rx_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_WRS, struct riso_group_info, wrs),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_USED_NS, struct riso_group_info, used_ns),
};

/**
 * riso_nl_fill_group - put the attributes of a group
 * @skb: the message
 * @dev: name of its device
 * @what: a &struct riso_group_info
 *
 * Return: 0 or -EMSGSIZE.
 */
int riso_nl_fill_group(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct riso_group_info *info = what;
	const struct riso_identity *who = &info->who;

	if (nla_put_string(skb, RDMA_ISOLATE_A_GROUP_DEV, dev) ||
	    put_numbers(skb, group_numbers, ARRAY_SIZE(group_numbers), info,
			RDMA_ISOLATE_A_GROUP_PAD) ||
	    put_pressure(skb, &info->pressure) ||
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_GROUP_ULP, who->ulp) ||
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_GROUP_COMM, who->comm))
		return -EMSGSIZE;

	if (who->peer_known &&
	    riso_nl_put_peer(skb, RDMA_ISOLATE_A_GROUP_PEER, &who->peer))
		return -EMSGSIZE;

	if (who->pid &&
	    (nla_put_u32(skb, RDMA_ISOLATE_A_GROUP_PID, who->pid) ||
	     nla_put_u32(skb, RDMA_ISOLATE_A_GROUP_UID, who->uid) ||
	     nla_put_u32(skb, RDMA_ISOLATE_A_GROUP_SHIM, info->shim)))
		return -EMSGSIZE;

	if (info->fault &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_GROUP_FAULT, info->fault))
		return -EMSGSIZE;
	return 0;
}
