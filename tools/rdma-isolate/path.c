// SPDX-License-Identifier: GPL-2.0
/*
 * Paths: what a device may send to a peer, or read from it.
 */
#include <linux/rdma_isolate.h>

#include "cmd.h"

static const struct field path_fields[] = {
	{ RDMA_ISOLATE_A_PATH_DEV, "dev", FMT_STRING },
	{ RDMA_ISOLATE_A_PATH_PEER, "peer", FMT_STRING },
	{ RDMA_ISOLATE_A_PATH_DIR, "dir", FMT_WORD },
	{ RDMA_ISOLATE_A_PATH_RATE, "rate", FMT_RATE },
	{ RDMA_ISOLATE_A_PATH_CUT, "cut", FMT_WORD },
	{ RDMA_ISOLATE_A_PATH_LEASE_NS, "lease", FMT_TIME },
	{ RDMA_ISOLATE_A_PATH_BYTES, "bytes", FMT_COUNT },
	{ RDMA_ISOLATE_A_PATH_WAITS, "waits", FMT_COUNT },
	{ }
};

static const struct arg show_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_PATH_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only this device",
	},
	{ }
};

static const struct arg set_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_PATH_DEV,
		.must = true,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "the device",
	},
	{
		.key = "peer",
		.kind = ARG_PEER,
		.attr = RDMA_ISOLATE_A_PATH_PEER,
		.must = true,
		.doc = "address of the other host",
	},
	{
		.key = "dir",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_PATH_DIR,
		.must = true,
		.words = &name_dir,
		.doc = "what is sent to the peer, or what is read from it",
	},
	{
		.key = "rate",
		.kind = ARG_RATE,
		.attr = RDMA_ISOLATE_A_PATH_RATE,
		.must = true,
		.off = true,
		.min = RDMA_ISOLATE_RATE_MIN,
		.max = RDMA_ISOLATE_RATE_MAX,
		.doc = "what may be used together in this direction",
	},
	{
		.key = "cut",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_PATH_CUT,
		.words = &name_switch,
		.doc = "whether messages are cut also without a latency flow here",
	},
	{
		.key = "lease",
		.kind = ARG_TIME,
		.attr = RDMA_ISOLATE_A_PATH_LEASE_NS,
		.min = RDMA_ISOLATE_LEASE_MIN,
		.max = RDMA_ISOLATE_LEASE_MAX,
		.doc = "how long this holds; until it is set again, if not given",
	},
	{ }
};

static void show_path(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;

	(void)nlh;
	print_object_begin(out);
	print_fields(out, &name_set_path, path_fields, attrs);
	print_object_end(out);
}

static int path_show(struct call *call)
{
	call_request(call, &name_set_path, RDMA_ISOLATE_CMD_PATH_GET, true);
	return nl_send(call->nl, &name_set_path, show_path, call->out) ? CMD_REFUSED : CMD_DONE;
}

static int path_set(struct call *call)
{
	call_request(call, &name_set_path, RDMA_ISOLATE_CMD_PATH_SET, false);
	return nl_send(call->nl, &name_set_path, NULL, NULL) ? CMD_REFUSED : CMD_DONE;
}

static const struct verb path_verbs[] = {
	{ "show", "Show the limits of peers.", show_args, NULL, path_show },
	{
		"set", "Limit what may be sent to a peer, or read from it; rate off ends that.",
		set_args, NULL, path_set
	},
	{ }
};

const struct object path_object = {
	.name = "path",
	.doc = "what may be sent to a peer, or read from it",
	.verbs = path_verbs,
	.fleeting = true,
};
