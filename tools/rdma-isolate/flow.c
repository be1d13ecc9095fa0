// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: one for each queue pair.
 */
#include <linux/rdma_isolate.h>

#include "cmd.h"

static const struct field flow_fields[] = {
	{ RDMA_ISOLATE_A_FLOW_DEV, "dev", FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_QPN, "qpn", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_CLASS, "class", FMT_WORD },
	{ RDMA_ISOLATE_A_FLOW_MANAGED, "managed", FMT_BOOL },
	{ RDMA_ISOLATE_A_FLOW_REASON, "reason", FMT_WHY },
	{ RDMA_ISOLATE_A_FLOW_QP_TYPE, "qp-type", FMT_QP_TYPE },
	{ RDMA_ISOLATE_A_FLOW_QP_STATE, "qp-state", FMT_QP_STATE },
	{ RDMA_ISOLATE_A_FLOW_ULP, "ulp", FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_PEER, "peer", FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_PID, "pid", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_COMM, "comm", FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_UID, "uid", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_RULE_ID, "rule-id", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_WEIGHT, "weight", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_TX_BYTES, "tx-bytes", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_RX_BYTES, "rx-bytes", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_WRS, "wrs", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_CHUNKS, "chunks", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_SPLITS, "splits", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_QUEUED, "queued", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_WAIT_NS, "wait", FMT_TIME },
	{ RDMA_ISOLATE_A_FLOW_HELD, "held", FMT_COUNT },
	{ }
};

static const struct arg show_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_FLOW_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only flows of this device",
	},
	{
		.key = "qpn",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_FLOW_QPN,
		.max = 0xffffff,
		.doc = "only this queue pair, needs dev",
	},
	{ }
};

static void show_flow(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;

	(void)nlh;
	print_object_begin(out);
	print_fields(out, &name_set_flow, flow_fields, attrs);
	print_object_end(out);
}

static int flow_show_check(const struct call *call)
{
	if (call_value(call, "qpn")->text && !call_value(call, "dev")->text)
		return usage_error("qpn needs dev: numbers are per device");
	return CMD_DONE;
}

static int flow_show(struct call *call)
{
	call_request(call, &name_set_flow, RDMA_ISOLATE_CMD_FLOW_GET,
		     !call_value(call, "qpn")->text);
	return nl_send(call->nl, &name_set_flow, show_flow, call->out) ?
	       CMD_REFUSED : CMD_DONE;
}

static const struct verb flow_verbs[] = {
	{
		"show", "Show every queue pair, and why it is not managed.",
		show_args, flow_show_check, flow_show
	},
	{ }
};

const struct object flow_object = {
	"flow", "traffic of queue pairs", flow_verbs,
};
