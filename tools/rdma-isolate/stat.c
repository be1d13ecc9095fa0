// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of devices. Their names come from the kernel, so that an old tool
 * shows what a new kernel counts.
 */
#include <linux/rdma_isolate.h>

#include "cmd.h"

static const struct field stat_fields[] = {
	{ RDMA_ISOLATE_A_STAT_DEV, "dev", FMT_STRING },
	{ }
};

static const struct field hist_fields[] = {
	{ RDMA_ISOLATE_A_HIST_DEV, "dev", FMT_STRING },
	{ RDMA_ISOLATE_A_HIST_CLASS, "class", FMT_WORD },
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

static const struct arg histogram_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_HIST_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only this device",
	},
	{ }
};

static void show_stat(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;

	print_object_begin(out);
	print_fields(out, &name_set_stat, stat_fields, attrs);
	print_counters(out, nlh, RDMA_ISOLATE_A_STAT_COUNTER);
	print_object_end(out);
}

static int stat_show(struct call *call)
{
	call_request(call, &name_set_stat, RDMA_ISOLATE_CMD_STAT_GET,
		     !call_value(call, "dev")->text);
	return nl_send(call->nl, &name_set_stat, show_stat, call->out) ?
	       CMD_REFUSED : CMD_DONE;
}

static void show_hist(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;

	print_object_begin(out);
	print_fields(out, &name_set_hist, hist_fields, attrs);
	print_counters(out, nlh, RDMA_ISOLATE_A_HIST_COUNTER);
	print_object_end(out);
}

static int stat_histogram(struct call *call)
{
	call_request(call, &name_set_hist, RDMA_ISOLATE_CMD_HIST_GET, true);
	return nl_send(call->nl, &name_set_hist, show_hist, call->out) ?
	       CMD_REFUSED : CMD_DONE;
}

static const struct verb stat_verbs[] = {
	{ "show", "Show counters.", show_args, NULL, stat_show },
	{
		"histogram", "Show times from post to completion, by class.",
		histogram_args, NULL, stat_histogram
	},
	{ }
};

const struct object stat_object = {
	.name = "statistic",
	.doc = "counters of devices",
	.verbs = stat_verbs,
};
