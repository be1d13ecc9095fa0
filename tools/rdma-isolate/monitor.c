// SPDX-License-Identifier: GPL-2.0
/*
 * What happens, as it happens.
 */
#include <string.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "error.h"

static const struct arg show_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only events of this device",
	},
	{ }
};

/* How an event is shown; dev is the attribute of its device's name */
static const struct kind {
	uint8_t cmd;
	const char *name;
	const struct name_set *set;
	uint16_t dev;
	const struct field *fields;
	uint16_t counter;
} kinds[] = {
	{
		RDMA_ISOLATE_CMD_DEV_NTF, "device", &name_set_dev,
		RDMA_ISOLATE_A_DEV_DEV, dev_fields, 0
	},
	{
		RDMA_ISOLATE_CMD_FLOW_NTF, "flow", &name_set_flow,
		RDMA_ISOLATE_A_FLOW_DEV, flow_fields, RDMA_ISOLATE_A_FLOW_SIZE
	},
	{
		RDMA_ISOLATE_CMD_FLOW_ERROR_NTF, "flow-error", &name_set_flow,
		RDMA_ISOLATE_A_FLOW_DEV, flow_fields, RDMA_ISOLATE_A_FLOW_SIZE
	},
	{
		RDMA_ISOLATE_CMD_FLOW_DEL_NTF, "flow-gone", &name_set_flow,
		RDMA_ISOLATE_A_FLOW_DEV, flow_fields, RDMA_ISOLATE_A_FLOW_SIZE
	},
	{
		RDMA_ISOLATE_CMD_BUDGET_NTF, "lease-expired", &name_set_budget,
		RDMA_ISOLATE_A_BUDGET_DEV, budget_fields, 0
	},
	{
		RDMA_ISOLATE_CMD_CTRL_NTF, "control", &name_set_budget,
		RDMA_ISOLATE_A_BUDGET_DEV, budget_fields, 0
	},
	{
		RDMA_ISOLATE_CMD_GROUP_FAULT_NTF, "group-fault", &name_set_group,
		RDMA_ISOLATE_A_GROUP_DEV, group_fields, 0
	},
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

struct event {
	const struct call *call;
	const struct kind *kind;
};

static void show_event(const struct nlattr * const *attrs,
		       const struct nlmsghdr *nlh, void *data)
{
	const struct event *event = data;
	const char *dev = call_value(event->call, "dev")->text;
	struct printer *out = event->call->out;
	const struct kind *kind = event->kind;

	if (dev && (!attrs[kind->dev] ||
		    strcmp(dev, mnl_attr_get_str(attrs[kind->dev]))))
		return;
	print_object_begin(out);
	print_string(out, "event", "event", kind->name);
	print_fields(out, kind->set, kind->fields, attrs);
	if (kind->counter && print_has_details(out))
		print_counters(out, nlh, kind->counter);
	print_object_end(out);
}

/* One of a kind that is not known here comes from a newer module. */
static void on_event(uint8_t cmd, const struct nlmsghdr *nlh, void *data)
{
	struct event event = { .call = data, .kind = kinds };

	for (; event.kind < kinds + KINDS; event.kind++)
		if (event.kind->cmd == cmd)
			nl_event_attrs(nlh, event.kind->set, show_event,
				       &event);
}

static int monitor_show(struct call *call)
{
	int err = nl_subscribe(call->nl);

	while (err >= 0 && !ferror(call->out->file))
		err = nl_events(call->nl, on_event, call);
	return CMD_REFUSED;
}

static const struct verb monitor_verbs[] = {
	{
		"show", "Show events until interrupted; with -j one object a line.",
		show_args, NULL, monitor_show
	},
	{ }
};

const struct object monitor_object = {
	.name = "monitor",
	.doc = "devices and flows as they come, change and go",
	.verbs = monitor_verbs,
	.stream = true,
};
