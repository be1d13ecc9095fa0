// SPDX-License-Identifier: GPL-2.0
/*
 * Who uses a device now, again and again: on the terminal, or line by line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "error.h"
#include "term.h"
#include "top.h"
#include "units.h"

#define INTERVAL_NS	UINT64_C(1000000000)
#define INTERVAL_MIN	UINT64_C(100000000)
#define INTERVAL_MAX	UINT64_C(60000000000)

static const struct arg top_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only this device",
	},
	{
		.key = "interval",
		.kind = ARG_TIME,
		.min = INTERVAL_MIN,
		.max = INTERVAL_MAX,
		.doc = "time between two screens, 1s if not given",
	},
	{
		.key = "count",
		.kind = ARG_COUNT,
		.min = 1,
		.max = UINT32_MAX,
		.doc = "no more screens than this",
	},
	{
		.key = "--batch",
		.kind = ARG_FLAG,
		.doc = "one screen after another as plain text, for scripts",
	},
	{ }
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* What is asked for a sample, in this order; one says that there are no dumps of one */
static const struct {
	uint8_t cmd;
	bool one;
	const struct name_set *set;
	uint16_t dev;
	nl_reply_fn read;
} requests[] = {
	{
		RDMA_ISOLATE_CMD_DEV_GET, true, &name_set_dev,
		RDMA_ISOLATE_A_DEV_DEV, top_read_dev
	},
	{
		RDMA_ISOLATE_CMD_BUDGET_GET, true, &name_set_budget,
		RDMA_ISOLATE_A_BUDGET_DEV, top_read_budget
	},
	{
		RDMA_ISOLATE_CMD_GROUP_GET, false, &name_set_group,
		RDMA_ISOLATE_A_GROUP_DEV, top_read_group
	},
	{
		RDMA_ISOLATE_CMD_FLOW_GET, false, &name_set_flow,
		RDMA_ISOLATE_A_FLOW_DEV, top_read_flow
	},
};

/* Paths say who the host talks to: who lacks CAP_NET_ADMIN sees the rest. */
static bool look_at_paths(struct call *call, struct top_sample *sample)
{
	const char *dev = call_value(call, "dev")->text;
	struct nlmsghdr *nlh = nl_request(call->nl, RDMA_ISOLATE_CMD_PATH_GET, true);
	int err;

	if (dev)
		mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_PATH_DEV, dev);
	err = nl_send_if_allowed(call->nl, &name_set_path, top_read_path, sample);
	sample->has_paths = !err;
	return !err || err == -EPERM;
}

static bool look(struct call *call, struct top_sample *sample)
{
	const char *dev = call_value(call, "dev")->text;
	struct nlmsghdr *nlh;
	unsigned int i;

	*sample = (struct top_sample) { .when_ns = now_ns() };
	for (i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		nlh = nl_request(call->nl, requests[i].cmd,
				 !dev || !requests[i].one);
		if (dev)
			mnl_attr_put_strz(nlh, requests[i].dev, dev);
		if (nl_send(call->nl, requests[i].set, requests[i].read,
			    sample))
			return false;
	}
	if (!look_at_paths(call, sample))
		return false;
	if (sample->no_memory)
		error("%s", strerror(ENOMEM));
	return !sample->no_memory;
}

static void print_screen(const struct top_sample *sample, uint64_t interval)
{
	unsigned int lines, columns;
	char buf[UNITS_LEN];
	char *text = NULL;
	size_t size = 0;
	FILE *file;

	term_size(&lines, &columns);
	file = open_memstream(&text, &size);
	if (!file)
		return;
	fprintf(file, "rdma-isolate top, every %s; q quits\n",
		time_format(interval, buf));
	top_print(file, sample, top_rows(sample, lines - 1));
	if (!fclose(file))
		term_draw(stdout, text, lines, columns);
	free(text);
}

/**
 * struct top - what runs
 * @call: the command
 * @interval: time between two screens
 * @term: where screens are drawn, NULL if one is printed after another
 */
struct top {
	struct call *call;
	uint64_t interval;
	struct term *term;
};

static bool show(const struct top *top, const struct top_sample *sample)
{
	struct printer *out = top->call->out;

	if (top->term)
		print_screen(sample, top->interval);
	else if (out->json)
		top_print_json(out, sample);
	else
		top_print(out->file, sample, UINT32_MAX);
	return !fflush(out->file) && !ferror(out->file);
}

/* Keep what is shown up until then; false to end. */
static bool wait_until(const struct top *top, uint64_t until_ns,
		       const struct top_sample *shown)
{
	const struct timespec until = {
		.tv_sec = until_ns / 1000000000,
		.tv_nsec = until_ns % 1000000000,
	};

	if (!top->term)
		return !clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until,
					NULL);
	for (;;) {
		switch (term_wait(top->term, until_ns)) {
		case TERM_TIME:
			return true;
		case TERM_DRAW:
			show(top, shown);
			break;
		case TERM_QUIT:
			return false;
		}
	}
}

static int run(const struct top *top)
{
	const struct value *count = call_value(top->call, "count");
	uint64_t left = count->text ? count->number : UINT64_MAX;
	struct top_sample old, new = {};
	int status = CMD_REFUSED;
	uint64_t wait;

	/* nobody looks at an empty terminal for long */
	wait = top->term ? INTERVAL_MIN : top->interval;
	if (!look(top->call, &old))
		goto free_old;
	for (; left; left--) {
		if (!wait_until(top, old.when_ns + wait, &old)) {
			status = CMD_DONE;
			goto free_old;
		}
		wait = top->interval;
		if (!look(top->call, &new))
			goto free_new;
		top_compare(&old, &new);
		if (!show(top, &new))
			goto free_new;
		top_free(&old);
		old = new;
	}
	status = CMD_DONE;
	goto free_old;

free_new:
	top_free(&new);
free_old:
	top_free(&old);
	return status;
}

static int top_run(struct call *call)
{
	const struct value *interval = call_value(call, "interval");
	struct top top = {
		.call = call,
		.interval = interval->text ? interval->number : INTERVAL_NS,
	};
	struct term term;
	int status;

	if (!call->out->json && !call_value(call, "--batch")->text &&
	    isatty(STDOUT_FILENO)) {
		if (!term_open(&term))
			return CMD_REFUSED;
		top.term = &term;
	}
	status = run(&top);
	if (top.term)
		term_close(&term);
	return status;
}

static const struct verb top_verbs[] = {
	{
		"", "Show who uses a device, until q is pressed; with -j one object a line.",
		top_args, NULL, top_run
	},
	{ }
};

const struct object top_object = {
	.name = "top",
	.doc = "who uses a device now, on a screen or line by line",
	.verbs = top_verbs,
	.stream = true,
};
