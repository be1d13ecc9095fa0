// SPDX-License-Identifier: GPL-2.0
/*
 * Budgets: what managed flows may use now, and for how long an agent has lent it.
 */
#include <linux/rdma_isolate.h>

#include "cmd.h"

const struct field budget_fields[] = {
	{ RDMA_ISOLATE_A_BUDGET_DEV, "dev", FMT_STRING },
	{ RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, "safe-util", FMT_RATE },
	{ RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES, "chunk-bytes", FMT_SIZE },
	{ RDMA_ISOLATE_A_BUDGET_INFLIGHT_BYTES, "inflight-bytes", FMT_SIZE_AUTO },
	{ RDMA_ISOLATE_A_BUDGET_LEASE_NS, "lease", FMT_TIME },
	{ RDMA_ISOLATE_A_BUDGET_TX_PACE, "tx-pace", FMT_RATE },
	{ RDMA_ISOLATE_A_BUDGET_RX_PACE, "rx-pace", FMT_RATE },
	{ RDMA_ISOLATE_A_BUDGET_AGENT_PID, "agent-pid", FMT_COUNT },
	{ RDMA_ISOLATE_A_BUDGET_CTRL_STATE, "ctrl-state", FMT_WORD },
	{ RDMA_ISOLATE_A_BUDGET_TARGET99_NS, "target99", FMT_TIME },
	{ RDMA_ISOLATE_A_BUDGET_CURRENT99_NS, "current99", FMT_TIME },
	{ RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS, "latency-groups", FMT_COUNT },
	{ RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS, "bandwidth-groups", FMT_COUNT },
	{ RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS, "throughput-groups", FMT_COUNT },
	{ RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS, "peer-latency-groups", FMT_COUNT },
	{ }
};

static const struct arg show_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_BUDGET_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only this device",
	},
	{ }
};

static const struct arg set_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_BUDGET_DEV,
		.must = true,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "the device",
	},
	{
		.key = "safe-util",
		.kind = ARG_RATE,
		.attr = RDMA_ISOLATE_A_BUDGET_SAFE_UTIL,
		.min = RDMA_ISOLATE_RATE_MIN,
		.max = RDMA_ISOLATE_RATE_MAX,
		.doc = "what managed flows may use together",
	},
	{
		.key = "chunk-bytes",
		.kind = ARG_SIZE,
		.attr = RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES,
		.off = true,
		.automatic = true,
		.min = RDMA_ISOLATE_CHUNK_MIN,
		.max = RDMA_ISOLATE_CHUNK_MAX,
		.doc = "size that large messages are cut to",
	},
	{
		.key = "inflight-bytes",
		.kind = ARG_SIZE,
		.attr = RDMA_ISOLATE_A_BUDGET_INFLIGHT_BYTES,
		.off = true,
		.automatic = true,
		.min = RDMA_ISOLATE_INFLIGHT_MIN,
		.max = UINT32_MAX - 1,
		.doc = "bytes posted and not completed, beyond the path's own",
	},
	{
		.key = "lease",
		.kind = ARG_TIME,
		.attr = RDMA_ISOLATE_A_BUDGET_LEASE_NS,
		.must = true,
		.min = RDMA_ISOLATE_LEASE_MIN,
		.max = RDMA_ISOLATE_LEASE_MAX,
		.doc = "how long this holds; dev set is for good",
	},
	{ }
};

static void show_budget(const struct nlattr * const *attrs,
			const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;

	(void)nlh;
	print_object_begin(out);
	print_fields(out, &name_set_budget, budget_fields, attrs);
	print_object_end(out);
}

static int budget_show(struct call *call)
{
	call_request(call, &name_set_budget, RDMA_ISOLATE_CMD_BUDGET_GET,
		     !call_value(call, "dev")->text);
	return nl_send(call->nl, &name_set_budget, show_budget, call->out) ?
	       CMD_REFUSED : CMD_DONE;
}

static int budget_set(struct call *call)
{
	call_request(call, &name_set_budget, RDMA_ISOLATE_CMD_BUDGET_SET,
		     false);
	if (nl_send(call->nl, &name_set_budget, NULL, NULL))
		return CMD_REFUSED;
	warn_no_chunk(call);
	return CMD_DONE;
}

static const struct verb budget_verbs[] = {
	{
		"show", "Show what is in force, and for how long it is lent.",
		show_args, NULL, budget_show
	},
	{
		"set", "Lend a device other values, which end with the lease.",
		set_args, NULL, budget_set
	},
	{ }
};

const struct object budget_object = {
	.name = "budget",
	.doc = "what managed flows may use now",
	.verbs = budget_verbs,
	.fleeting = true,
};
