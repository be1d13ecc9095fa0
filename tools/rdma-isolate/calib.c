// SPDX-License-Identifier: GPL-2.0
/*
 * Measures what a device can do, and sets and keeps what follows from it.
 *
 * rdma-isolate-calibrate measures, a program of its own: it needs libibverbs and
 * librdmacm, which this tool does without.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>

#include "batch.h"
#include "calibrate.h"
#include "cmd.h"
#include "config_file.h"
#include "config_keep.h"
#include "error.h"
#include "run.h"
#include "units.h"

#define HELPER	"rdma-isolate-calibrate"

enum { PEER_LEN = 64 };

/* Where it lies beside this tool: installed, copied with it, or in the source tree. */
static const char * const places[] = {
	"../lib/rdma-isolate/" HELPER, HELPER, "../calibrate/" HELPER, NULL,
};

static const struct arg calibrate_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_DEV_DEV,
		.must = true,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "the device",
	},
	{
		.key = "peer",
		.kind = ARG_PEER,
		.doc = "a host where rdma-isolated runs",
	},
	{
		.key = "port",
		.kind = ARG_COUNT,
		.min = 1,
		.max = 65535,
		.doc = "its port there",
	},
	{
		.key = "--apply",
		.kind = ARG_FLAG,
		.doc = "set what was found, and keep it for the next boot",
	},
	{
		.key = "--force",
		.kind = ARG_FLAG,
		.doc = "also if the host was too busy to measure",
	},
	{ }
};

/**
 * struct device - what the module says of the device
 * @max_rate: the operator's
 * @safe_util: the operator's
 * @groups: that had something to send in the last second
 */
struct device {
	uint64_t max_rate;
	uint64_t safe_util;
	uint64_t groups;
};

static void read_dev(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data)
{
	struct device *dev = data;

	(void)nlh;
	dev->max_rate = nl_number(attrs, RDMA_ISOLATE_A_DEV_MAX_RATE,
				  &name_set_dev);
	dev->safe_util = nl_number(attrs, RDMA_ISOLATE_A_DEV_SAFE_UTIL,
				   &name_set_dev);
}

static void read_groups(const struct nlattr * const *attrs,
			const struct nlmsghdr *nlh, void *data)
{
	struct device *dev = data;

	(void)nlh;
	dev->groups = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS,
				&name_set_budget) +
		      nl_number(attrs, RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS,
				&name_set_budget);
}

static int ask_module(struct call *call, struct device *dev)
{
	struct nlmsghdr *nlh;

	call_request(call, &name_set_dev, RDMA_ISOLATE_CMD_DEV_GET, false);
	if (nl_send(call->nl, &name_set_dev, read_dev, dev))
		return CMD_REFUSED;
	nlh = nl_request(call->nl, RDMA_ISOLATE_CMD_BUDGET_GET, false);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_BUDGET_DEV,
			  call_value(call, "dev")->text);
	return nl_send(call->nl, &name_set_budget, read_groups, dev) ?
	       CMD_REFUSED : CMD_DONE;
}

/* --- what is measured --- */

static FILE *start_helper(const struct call *call, pid_t *pid)
{
	const char *peer = call_value(call, "peer")->text;
	const char *port = call_value(call, "port")->text;
	char path[PATH_MAX];
	int fds[2];

	if (!find_beside(places, path)) {
		error(HELPER " is not where \"make install\" puts it, ../lib/rdma-isolate");
		return NULL;
	}
	if (pipe2(fds, O_CLOEXEC)) {
		error("%s", strerror(errno));
		return NULL;
	}
	*pid = fork();
	if (!*pid) {
		dup2(fds[1], STDOUT_FILENO);
		execl(path, HELPER, call_value(call, "dev")->text,
		      peer ? peer : "", port ? port : "0", NULL);
		error("%s: %s", path, strerror(errno));
		_exit(CMD_REFUSED);
	}
	close(fds[1]);
	if (*pid > 0)
		return fdopen(fds[0], "r");
	error("%s", strerror(errno));
	close(fds[0]);
	return NULL;
}

static void read_line(const char *line, struct calibrate_seen *seen, char *peer)
{
	const struct {
		const char *key;
		uint64_t *number;
	} keys[] = {
		{ "p50 %" SCNu64, &seen->p50_ns },
		{ "p99 %" SCNu64, &seen->p99_ns },
		{ "rtt-min %" SCNu64, &seen->rtt_min_ns },
		{ "rate %" SCNu64, &seen->rate },
		{ "ops %" SCNu64, &seen->ops },
	};
	unsigned int i;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (sscanf(line, keys[i].key, keys[i].number) == 1)
			return;
	if (sscanf(line, "peer %63s", peer) == 1 ||
	    seen->num == CALIBRATE_SIZES)
		return;
	if (sscanf(line, "size %" SCNu64 " %" SCNu64,
		   &seen->size[seen->num].bytes,
		   &seen->size[seen->num].rate) == 2)
		seen->num++;
}

/* The helper says what is wrong. */
static int measure(const struct call *call, struct calibrate_seen *seen,
		   char *peer)
{
	char line[128];
	int status;
	FILE *from;
	pid_t pid;

	from = start_helper(call, &pid);
	if (!from)
		return CMD_REFUSED;
	while (fgets(line, sizeof(line), from))
		read_line(line, seen, peer);
	fclose(from);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
		error(HELPER " was killed");
		return CMD_REFUSED;
	}
	return WEXITSTATUS(status);
}

/* --- what follows --- */

/* Somebody has chosen SafeUtil: it is not MaxRate, nor what was set with it, and still possible. */
static bool is_safe_util_chosen(const struct device *dev, const struct calibrate_advice *advice)
{
	return dev->safe_util != dev->max_rate && dev->safe_util <= advice->max_rate &&
	       dev->safe_util != calibrate_safe_util(dev->max_rate);
}

/*
 * All in one command. MaxOps is not among it: one process may not reach what the device
 * can do, and with a MaxOps that is too low bulk in chunks is held back for nothing.
 */
static int apply(struct call *call, const struct calibrate_advice *advice)
{
	char chunk[UNITS_LEN] = "auto";
	struct command cmd;
	struct words words;
	char line[256];

	if (advice->chunk != RDMA_ISOLATE_AUTO)
		snprintf(chunk, sizeof(chunk), "%" PRIu64, advice->chunk);
	snprintf(line, sizeof(line),
		 "dev set dev \"%s\" max-rate %" PRIu64 "B/s safe-util %" PRIu64
		 "B/s chunk-bytes %s target99 %" PRIu64 "ns",
		 call_value(call, "dev")->text, advice->max_rate, advice->safe_util, chunk,
		 advice->target99_ns);
	words_split(line, &words);
	if (cmd_parse(words.n, words.word, &cmd))
		return CMD_REFUSED;
	cmd.call.nl = call->nl;
	return config_keep(CONFIG_DIR, "90-calibrate", &cmd);
}

static void show_sizes(struct printer *out, const struct calibrate_seen *seen)
{
	unsigned int i;

	print_list_begin(out, "sizes");
	for (i = 0; i < seen->num; i++) {
		print_item_begin(out, "size");
		print_number(out, "chunk-bytes", "chunk_bytes", FMT_SIZE, NULL,
			     seen->size[i].bytes);
		print_number(out, "rate", "rate", FMT_RATE, NULL,
			     seen->size[i].rate);
		print_item_end(out);
	}
	print_list_end(out);
}

static void show(const struct call *call, const char *peer,
		 const struct calibrate_seen *seen,
		 const struct calibrate_advice *advice, bool applied)
{
	const struct {
		const char *text_key;
		const char *key;
		enum format format;
		uint64_t number;
	} fields[] = {
		{ "p50", "p50_ns", FMT_TIME, seen->p50_ns },
		{ "p99", "p99_ns", FMT_TIME, seen->p99_ns },
		{ "rtt-min", "rtt_min_ns", FMT_TIME, seen->rtt_min_ns },
		{ "max-rate", "max_rate", FMT_RATE, advice->max_rate },
		{ "safe-util", "safe_util", FMT_RATE, advice->safe_util },
		{ "max-ops", "max_ops", FMT_COUNT, advice->max_ops },
		{ "chunk-bytes", "chunk_bytes", FMT_SIZE_AUTO, advice->chunk },
		{ "target99", "target99_ns", FMT_TIME, advice->target99_ns },
		{ "applied", "applied", FMT_BOOL, applied },
	};
	struct printer *out = call->out;
	unsigned int i;

	/* In text a line for each thing. */
	if (!out->json)
		out->pretty = true;
	print_object_begin(out);
	print_string(out, "dev", "dev", call_value(call, "dev")->text);
	print_string(out, "peer", "peer", peer);
	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		print_number(out, fields[i].text_key, fields[i].key,
			     fields[i].format, NULL, fields[i].number);
	if (print_has_details(out))
		show_sizes(out, seen);
	print_object_end(out);
}

static int calibrate_check(const struct call *call)
{
	if (call_value(call, "--force")->text && !call_value(call, "--apply")->text)
		return usage_error("--force goes with --apply only");
	return CMD_DONE;
}

static int calibrate(struct call *call)
{
	const char *name = call_value(call, "dev")->text;
	bool apply_wanted = call_value(call, "--apply")->text;
	struct device before = { }, after = { };
	struct calibrate_seen seen = { };
	struct calibrate_advice advice;
	char peer[PEER_LEN] = "";
	char buf[UNITS_LEN];
	int status;

	status = ask_module(call, &before);
	if (status == CMD_DONE)
		status = measure(call, &seen, peer);
	if (status == CMD_DONE)
		status = ask_module(call, &after);
	if (status != CMD_DONE)
		return status;
	if (!seen.num) {
		error(HELPER " is of another version");
		return CMD_REFUSED;
	}
	advice = calibrate_advise(&seen);
	if (is_safe_util_chosen(&after, &advice))
		advice.safe_util = after.safe_util;
	if (before.groups || after.groups)
		error("warning: other traffic went through %s, measure again when it is quiet",
		      name);
	if (!advice.enough)
		error("warning: no chunk reaches %d %% of max-rate, %s is the best",
		      CALIBRATE_PERCENT, size_format(advice.chunk, buf));
	if (advice.noisy)
		error("warning: the host or the path is not quiet, p99 is over %d times p50",
		      CALIBRATE_NOISY);
	if (apply_wanted && advice.noisy && !call_value(call, "--force")->text) {
		error("nothing is applied: measure again when it is quiet, or add --force");
		status = CMD_REFUSED;
	} else if (apply_wanted) {
		status = apply(call, &advice);
	}
	show(call, peer, &seen, &advice, apply_wanted && status == CMD_DONE);
	return status;
}

static const struct verb calibrate_verbs[] = {
	{
		"", "Measure what a device can do.", calibrate_args,
		calibrate_check, calibrate
	},
	{ }
};

const struct object calibrate_object = {
	.name = "calibrate",
	.doc = "what a device can do",
	.verbs = calibrate_verbs,
	.fleeting = true,
};
