// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of devices. Their names come from the kernel, so that an old tool
 * shows what a new kernel counts.
 */
#include <linux/genetlink.h>
#include <linux/rdma_isolate.h>

#include "cmd.h"

static const struct field stat_fields[] = {
	{ RDMA_ISOLATE_A_STAT_DEV, "dev", FMT_STRING },
	{ }
};

static const struct arg show_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_STAT_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only this device",
	},
	{ }
};

static void show_counter(const struct nlattr *nest, struct printer *out)
{
	const struct nlattr *attr, *name = NULL, *value = NULL;

	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case RDMA_ISOLATE_A_COUNTER_NAME:
			name = attr;
			break;
		case RDMA_ISOLATE_A_COUNTER_VALUE:
			value = attr;
			break;
		}
	}

	if (!name || mnl_attr_validate(name, MNL_TYPE_NUL_STRING) < 0 ||
	    !value || mnl_attr_validate(value, MNL_TYPE_U64) < 0)
		return;
	print_number(out, mnl_attr_get_str(name), mnl_attr_get_str(name),
		     FMT_COUNT, NULL, mnl_attr_get_u64(value));
}

static void show_stat(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;
	const struct nlattr *attr;

	print_object_begin(out);
	print_fields(out, &name_set_stat, stat_fields, attrs);
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == RDMA_ISOLATE_A_STAT_COUNTER)
			show_counter(attr, out);
	print_object_end(out);
}

static int stat_show(struct call *call)
{
	call_request(call, &name_set_stat, RDMA_ISOLATE_CMD_STAT_GET,
		     !call_value(call, "dev")->text);
	return nl_send(call->nl, &name_set_stat, show_stat, call->out) ?
	       CMD_REFUSED : CMD_DONE;
}

static const struct verb stat_verbs[] = {
	{ "show", "Show counters.", show_args, NULL, stat_show },
	{ }
};

const struct object stat_object = {
	.name = "statistic",
	.doc = "counters of devices",
	.verbs = stat_verbs,
};
