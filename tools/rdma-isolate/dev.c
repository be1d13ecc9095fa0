// SPDX-License-Identifier: GPL-2.0
/*
 * Devices: their state and settings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "error.h"
#include "units.h"

/* a lost event delays the end of a wait by this much */
enum { POLL_MS = 500 };

#define DRAIN_TIMEOUT_NS UINT64_C(30000000000)

const struct field dev_fields[] = {
	{ RDMA_ISOLATE_A_DEV_DEV, "dev", FMT_STRING },
	{ RDMA_ISOLATE_A_DEV_INDEX, "index", FMT_COUNT },
	{ RDMA_ISOLATE_A_DEV_STATE, "state", FMT_WORD },
	{ RDMA_ISOLATE_A_DEV_MAX_RATE, "max-rate", FMT_RATE },
	{ RDMA_ISOLATE_A_DEV_BELIEVED_RATE, "believed-rate", FMT_RATE },
	{ RDMA_ISOLATE_A_DEV_BELIEVED_FROM, "believed-from", FMT_WORD },
	{ RDMA_ISOLATE_A_DEV_CALIBRATED, "calibrated", FMT_BOOL },
	{ RDMA_ISOLATE_A_DEV_MAX_OPS, "max-ops", FMT_COUNT_OFF },
	{ RDMA_ISOLATE_A_DEV_SAFE_UTIL, "safe-util", FMT_RATE },
	{ RDMA_ISOLATE_A_DEV_CHUNK_BYTES, "chunk-bytes", FMT_SIZE_AUTO },
	{ RDMA_ISOLATE_A_DEV_TOKEN_BYTES, "token-bytes", FMT_SIZE_AUTO },
	{ RDMA_ISOLATE_A_DEV_TOKEN_OPS, "token-ops", FMT_COUNT_AUTO },
	{ RDMA_ISOLATE_A_DEV_INFLIGHT_BYTES, "inflight-bytes", FMT_SIZE_AUTO },
	{ RDMA_ISOLATE_A_DEV_TARGET99_NS, "target99", FMT_TIME_AUTO },
	{ RDMA_ISOLATE_A_DEV_CTRL, "ctrl", FMT_WORD },
	{ RDMA_ISOLATE_A_DEV_SHARE, "share", FMT_WORD },
	{ RDMA_ISOLATE_A_DEV_LATENCY_FLOWS, "latency-flows", FMT_COUNT },
	{ RDMA_ISOLATE_A_DEV_MANAGED_FLOWS, "managed-flows", FMT_COUNT },
	{ RDMA_ISOLATE_A_DEV_HELD_WRS, "held-wrs", FMT_COUNT },
	{ RDMA_ISOLATE_A_DEV_PORTS, "ports", FMT_COUNT },
	{ RDMA_ISOLATE_A_DEV_HISTOGRAM, "histogram", FMT_WORD },
	{ RDMA_ISOLATE_A_DEV_PROCESSES, "processes", FMT_COUNT },
	{ }
};

static const struct arg show_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_DEV_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only this device",
	},
	{ }
};

static const struct arg set_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_DEV_DEV,
		.must = true,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "the device",
	},
	{
		.key = "mode",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_DEV_MODE,
		.words = &name_mode,
		.doc = "what to do with its flows",
	},
	{
		.key = "max-rate",
		.kind = ARG_RATE,
		.attr = RDMA_ISOLATE_A_DEV_MAX_RATE,
		.automatic = true,
		.min = RDMA_ISOLATE_RATE_MIN,
		.max = RDMA_ISOLATE_RATE_MAX,
		.doc = "what the port can send",
	},
	{
		.key = "max-ops",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_DEV_MAX_OPS,
		.off = true,
		.doc = "messages per second that the device can send",
	},
	{
		.key = "safe-util",
		.kind = ARG_RATE,
		.attr = RDMA_ISOLATE_A_DEV_SAFE_UTIL,
		.automatic = true,
		.min = RDMA_ISOLATE_RATE_MIN,
		.max = RDMA_ISOLATE_RATE_MAX,
		.doc = "what managed flows may use together",
	},
	{
		.key = "chunk-bytes",
		.kind = ARG_SIZE,
		.attr = RDMA_ISOLATE_A_DEV_CHUNK_BYTES,
		.off = true,
		.automatic = true,
		.min = RDMA_ISOLATE_CHUNK_MIN,
		.max = RDMA_ISOLATE_CHUNK_MAX,
		.doc = "size that large messages are cut to",
	},
	{
		.key = "token-bytes",
		.kind = ARG_SIZE,
		.attr = RDMA_ISOLATE_A_DEV_TOKEN_BYTES,
		.automatic = true,
		.min = RDMA_ISOLATE_CHUNK_MIN,
		.max = UINT32_MAX - 1,
		.doc = "bytes of one turn",
	},
	{
		.key = "token-ops",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_DEV_TOKEN_OPS,
		.automatic = true,
		.min = 1,
		.max = UINT32_MAX - 1,
		.doc = "messages of one turn",
	},
	{
		.key = "inflight-bytes",
		.kind = ARG_SIZE,
		.attr = RDMA_ISOLATE_A_DEV_INFLIGHT_BYTES,
		.off = true,
		.automatic = true,
		.min = RDMA_ISOLATE_INFLIGHT_MIN,
		.max = UINT32_MAX - 1,
		.doc = "bytes posted and not completed, beyond the path's own",
	},
	{
		.key = "histogram",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_DEV_HISTOGRAM,
		.words = &name_switch,
		.doc = "measure times from post to completion in mode observe",
	},
	{
		.key = "target99",
		.kind = ARG_TIME,
		.attr = RDMA_ISOLATE_A_DEV_TARGET99_NS,
		.automatic = true,
		.min = 1,
		.max = RDMA_ISOLATE_TARGET99_MAX,
		.doc = "99th percentile that an agent steers for",
	},
	{
		.key = "ctrl",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_DEV_CTRL,
		.words = &name_ctrl,
		.doc = "whether an agent may choose safe-util",
	},
	{
		.key = "share",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_DEV_SHARE,
		.words = &name_share,
		.doc = "which programs have one share together",
	},
	{
		.key = "timeout",
		.kind = ARG_TIME,
		.doc = "how long disable waits, 30s if not given, 0s does not",
	},
	{ }
};

static void show_dev(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;

	(void)nlh;
	print_object_begin(out);
	print_fields(out, &name_set_dev, dev_fields, attrs);
	print_object_end(out);
}

static int dev_show(struct call *call)
{
	call_request(call, &name_set_dev, RDMA_ISOLATE_CMD_DEV_GET,
		     !call_value(call, "dev")->text);
	return nl_send(call->nl, &name_set_dev, show_dev, call->out) ?
	       CMD_REFUSED : CMD_DONE;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

struct progress {
	uint32_t state;
	uint32_t held;
};

static void read_progress(const struct nlattr * const *attrs,
			  const struct nlmsghdr *nlh, void *data)
{
	struct progress *progress = data;

	(void)nlh;
	if (attrs[RDMA_ISOLATE_A_DEV_STATE])
		progress->state =
			mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_STATE]);
	if (attrs[RDMA_ISOLATE_A_DEV_HELD_WRS])
		progress->held =
			mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_HELD_WRS]);
}

/* Look at the device at each event, and now and then without one. */
static int wait_drained(struct call *call, struct nl *events)
{
	const struct value *timeout = call_value(call, "timeout");
	const char *dev = call_value(call, "dev")->text;
	uint64_t limit = timeout->text ? timeout->number : DRAIN_TIMEOUT_NS;
	struct progress progress;
	uint64_t begin = now_ns();
	uint64_t waited, left_ms;
	struct nlmsghdr *nlh;
	char buf[UNITS_LEN];

	for (;;) {
		progress = (struct progress) { .state = RISO_DEV_GONE };
		nlh = nl_request(call->nl, RDMA_ISOLATE_CMD_DEV_GET, false);
		mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_DEV_DEV, dev);
		if (nl_send(call->nl, &name_set_dev, read_progress,
			    &progress))
			return CMD_REFUSED;
		if (progress.state != RISO_DEV_DRAINING)
			return CMD_DONE;

		waited = now_ns() - begin;
		if (waited >= limit)
			break;
		left_ms = (limit - waited) / 1000000 + 1;
		nl_wait(events, left_ms < POLL_MS ? left_ms : POLL_MS);
	}

	error("dev %s: draining after %s, %u held", dev,
	      time_format(limit, buf), progress.held);
	return CMD_REFUSED;
}

static int dev_set_check(const struct call *call)
{
	const struct value *mode = call_value(call, "mode");
	const struct arg *arg;

	if (call_value(call, "timeout")->text &&
	    (!mode->text || mode->number != RISO_MODE_DISABLE))
		return usage_error("timeout goes with mode disable only");

	for (arg = call->args + 1; arg->key; arg++)
		if (arg->attr && call->values[arg - call->args].text)
			return CMD_DONE;
	return usage_error("nothing to set is given, see: rdma-isolate dev help");
}

void warn_no_chunk(const struct call *call)
{
	const struct value *chunk = call_value(call, "chunk-bytes");

	if (!chunk->text || chunk->number)
		return;
	error("warning: with chunk-bytes off a small message may wait for a whole large one");
}

static int dev_set(struct call *call)
{
	const struct value *timeout = call_value(call, "timeout");
	const struct value *mode = call_value(call, "mode");
	struct nl *events = NULL;
	int status = CMD_REFUSED;

	/* listen before asking, so that no event is missed */
	if (mode->text && mode->number == RISO_MODE_DISABLE &&
	    !(timeout->text && !timeout->number)) {
		events = nl_open();
		if (!events)
			return CMD_REFUSED;
		if (nl_subscribe(events))
			goto close_events;
	}

	call_request(call, &name_set_dev, RDMA_ISOLATE_CMD_DEV_SET, false);
	if (nl_send(call->nl, &name_set_dev, NULL, NULL))
		goto close_events;
	warn_no_chunk(call);
	status = events ? wait_drained(call, events) : CMD_DONE;

close_events:
	if (events)
		nl_close(events);
	return status;
}

static const struct verb dev_verbs[] = {
	{ "show", "Show devices.", show_args, NULL, dev_show },
	{
		"set", "Change settings of a device, all or none.", set_args,
		dev_set_check, dev_set
	},
	{ }
};

const struct verb * const dev_set_verb = &dev_verbs[1];

const struct object dev_object = {
	.name = "dev",
	.doc = "RDMA devices and their settings",
	.verbs = dev_verbs,
};
