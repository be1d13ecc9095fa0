// SPDX-License-Identifier: GPL-2.0
/*
 * Groups: flows that share one share of a device, and what they wait for.
 */
#include <stdlib.h>

#include <linux/genetlink.h>
#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "group.h"

const struct field group_fields[] = {
	{ RDMA_ISOLATE_A_GROUP_DEV, "dev", FMT_STRING },
	{ RDMA_ISOLATE_A_GROUP_ID, "id", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_ULP, "ulp", FMT_STRING },
	{ RDMA_ISOLATE_A_GROUP_PEER, "peer", FMT_STRING },
	{ RDMA_ISOLATE_A_GROUP_PID, "pid", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_COMM, "comm", FMT_STRING },
	{ RDMA_ISOLATE_A_GROUP_UID, "uid", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_WEIGHT, "weight", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_FLOWS, "flows", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_HELD, "held", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_TX_BYTES, "tx-bytes", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_RX_BYTES, "rx-bytes", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_WRS, "wrs", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_USED_NS, "used", FMT_DETAIL | FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_AVG10, "avg10", FMT_SHARE },
	{ RDMA_ISOLATE_A_GROUP_AVG60, "avg60", FMT_DETAIL | FMT_SHARE },
	{ RDMA_ISOLATE_A_GROUP_AVG300, "avg300", FMT_DETAIL | FMT_SHARE },
	{ RDMA_ISOLATE_A_GROUP_STALL_NS, "stall", FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_CLOCK_NS, "clock", FMT_DETAIL | FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_WINDOW_NS, "window", FMT_DETAIL | FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_PATH_NS, "path", FMT_DETAIL | FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_OWN_NS, "own", FMT_DETAIL | FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_BEHIND_OTHERS_NS, "behind-others", FMT_DETAIL | FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_SHIM, "shim", FMT_BOOL },
	{ RDMA_ISOLATE_A_GROUP_FAULT, "fault", FMT_WORD },
	{ }
};

static const struct arg show_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_GROUP_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only groups of this device",
	},
	{
		.key = "id",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_GROUP_ID,
		.min = 1,
		.max = UINT32_MAX,
		.doc = "only this group, needs dev",
	},
	{ }
};

static const char *text_of(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_str(attr) : "";
}

void group_who(const struct nlattr * const *attrs, char *who)
{
	const struct nlattr *peer = attrs[RDMA_ISOLATE_A_GROUP_PEER];
	const struct nlattr *pid = attrs[RDMA_ISOLATE_A_GROUP_PID];

	if (pid)
		snprintf(who, WHO_LEN, "%s pid %u",
			 text_of(attrs[RDMA_ISOLATE_A_GROUP_COMM]),
			 mnl_attr_get_u32(pid));
	else
		snprintf(who, WHO_LEN, "%s%s%s",
			 text_of(attrs[RDMA_ISOLATE_A_GROUP_ULP]),
			 peer ? " to " : "", text_of(peer));
}

static void add_behind(const struct nlattr *nest, struct behind *behind)
{
	const struct nlattr *attr, *group = NULL, *ns = NULL;
	unsigned int i;

	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case RDMA_ISOLATE_A_BEHIND_GROUP:
			group = attr;
			break;
		case RDMA_ISOLATE_A_BEHIND_USED_NS:
			ns = attr;
			break;
		}
	}

	if (behind->n == BEHIND_MAX ||
	    !group || mnl_attr_validate(group, MNL_TYPE_U32) < 0 ||
	    !ns || mnl_attr_validate(ns, MNL_TYPE_U64) < 0)
		return;
	for (i = behind->n++; i && behind->of[i - 1].used_ns < mnl_attr_get_u64(ns);
	     i--)
		behind->of[i] = behind->of[i - 1];
	behind->of[i].group = mnl_attr_get_u32(group);
	behind->of[i].used_ns = mnl_attr_get_u64(ns);
}

void behind_read(const struct nlmsghdr *nlh, struct behind *behind)
{
	const struct nlattr *attr;

	behind->n = 0;
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == RDMA_ISOLATE_A_GROUP_BEHIND)
			add_behind(attr, behind);
}

static void show_group(const struct nlattr * const *attrs,
		       const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;
	struct behind behind;
	unsigned int i;

	behind_read(nlh, &behind);
	print_object_begin(out);
	print_fields(out, &name_set_group, group_fields, attrs);
	if (!print_has_details(out))
		behind.n = 0;
	print_list_begin(out, "behind");
	for (i = 0; i < behind.n; i++) {
		print_item_begin(out, "behind");
		print_number(out, "group", "group", FMT_COUNT, NULL,
			     behind.of[i].group);
		print_number(out, "used", "used_ns", FMT_TIME, NULL,
			     behind.of[i].used_ns);
		print_item_end(out);
	}
	print_list_end(out);
	print_object_end(out);
}

static int group_show_check(const struct call *call)
{
	if (call_value(call, "id")->text && !call_value(call, "dev")->text)
		return usage_error("id needs dev: ids are per device");
	return CMD_DONE;
}

static int group_show(struct call *call)
{
	call_request(call, &name_set_group, RDMA_ISOLATE_CMD_GROUP_GET,
		     !call_value(call, "id")->text);
	return nl_send(call->nl, &name_set_group, show_group, call->out) ?
	       CMD_REFUSED : CMD_DONE;
}

static const struct verb group_verbs[] = {
	{
		"show", "Show groups, their traffic and what they waited for.",
		show_args, group_show_check, group_show
	},
	{ }
};

const struct object group_object = {
	.name = "group",
	.doc = "flows that share one share of a device",
	.verbs = group_verbs,
};
