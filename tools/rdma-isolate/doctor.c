// SPDX-License-Identifier: GPL-2.0
/*
 * Looks at the host and at the module, and says what to mend.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "config_apply.h"
#include "config_file.h"
#include "config_item.h"
#include "doctor.h"

/* What a program with a few large buffers registers */
#define MEMLOCK_LEAST	UINT64_C(67108864)

static const struct arg show_args[] = {
	{ }
};

struct report {
	struct printer *out;
	bool bad;
};

static void tell(const char *check, enum verdict verdict, const char *found,
		 const char *fix, void *data)
{
	static const char * const verdicts[] = {
		[VERDICT_OK] = "ok",
		[VERDICT_HINT] = "hint",
		[VERDICT_BAD] = "bad",
	};
	struct report *report = data;

	report->bad = report->bad || verdict == VERDICT_BAD;
	print_object_begin(report->out);
	print_string(report->out, "check", "check", check);
	print_string(report->out, "verdict", "verdict", verdicts[verdict]);
	print_string(report->out, "found", "found", found);
	if (fix)
		print_string(report->out, "fix", "fix", fix);
	print_object_end(report->out);
}

static void check_memlock(struct report *report)
{
	struct rlimit limit;
	char found[64];

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (limit.rlim_cur == RLIM_INFINITY) {
		tell("memlock", VERDICT_OK, "any memory may be registered",
		     NULL, report);
		return;
	}
	snprintf(found, sizeof(found),
		 "programs from here may register %ju bytes",
		 (uintmax_t)limit.rlim_cur);
	if (limit.rlim_cur >= MEMLOCK_LEAST)
		tell("memlock", VERDICT_OK, found, NULL, report);
	else
		tell("memlock", VERDICT_HINT, found,
		     "LimitMEMLOCK=infinity in the unit, or memlock in /etc/security/limits.conf",
		     report);
}

static void check_order(struct report *report, struct nl *nl)
{
	int older = flow_count_older(nl);
	char found[80];

	if (older < 0)
		return;
	snprintf(found, sizeof(found),
		 "%d queue pairs are from before the module was loaded", older);
	if (older)
		tell("order", VERDICT_HINT, found,
		     "reconnect what \"flow show\" lists so; load the module at boot (make install)",
		     report);
	else
		tell("order", VERDICT_OK, found, NULL, report);
}

/* What is left out is told on the standard error when it is read. */
static void check_settings(struct report *report, struct config *config)
{
	char found[PATH_MAX];
	bool any = false;
	int status;
	size_t i;

	status = config_read_dir(CONFIG_DIR, config);
	for (i = 0; i < config->files.gl_pathc; i++) {
		if (config->left[i] == CONFIG_TAKEN)
			continue;
		any = true;
		snprintf(found, sizeof(found), "%s has an error, and is left out at boot",
			 config->files.gl_pathv[i]);
		tell("settings", VERDICT_BAD, found,
		     "rdma-isolate apply --check, until it says OK", report);
	}
	if (status != CMD_DONE && !any)
		tell("settings", VERDICT_HINT, CONFIG_DIR " cannot be read",
		     "ask as root", report);
	else if (!any)
		tell("settings", VERDICT_OK,
		     "no file of " CONFIG_DIR " has an error", NULL, report);
}

/* A file may be right, and not be applied, or be what somebody has changed since. */
static void check_applied(struct report *report, struct config *config)
{
	int open = config_count_open(config);
	char found[96];

	if (open <= 0)
		return;
	snprintf(found, sizeof(found), "%d commands of " CONFIG_DIR " are not in force",
		 open);
	tell("applied", VERDICT_HINT, found, "rdma-isolate apply", report);
}

/* A device that is enabled, and what each message adds to it */
struct dev {
	STAILQ_ENTRY(dev) list;
	struct doctor_dev is;
	char name[RDMA_ISOLATE_DEV_NAME_MAX + 1];
};

STAILQ_HEAD(devs, dev);

static struct doctor_dev *find_dev(struct devs *devs, const struct nlattr *name)
{
	struct dev *dev;

	STAILQ_FOREACH(dev, devs, list)
		if (name && !strcmp(dev->name, mnl_attr_get_str(name)))
			return &dev->is;
	return NULL;
}

static void add_dev(const struct nlattr * const *attrs,
		    const struct nlmsghdr *nlh, void *data)
{
	const struct name_set *set = &name_set_dev;
	struct devs *devs = data;
	struct dev *dev;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_DEV_DEV] ||
	    nl_number(attrs, RDMA_ISOLATE_A_DEV_STATE, set) != RISO_DEV_ENABLE)
		return;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return;
	STAILQ_INSERT_TAIL(devs, dev, list);
	snprintf(dev->name, sizeof(dev->name), "%s",
		 mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_DEV]));
	dev->is = (struct doctor_dev) {
		.name = dev->name,
		.calibrated = nl_number(attrs, RDMA_ISOLATE_A_DEV_CALIBRATED, set),
		.latency_flows = nl_number(attrs, RDMA_ISOLATE_A_DEV_LATENCY_FLOWS, set),
		.chunk = nl_number(attrs, RDMA_ISOLATE_A_DEV_CHUNK_BYTES, set),
		.max_rate = nl_number(attrs, RDMA_ISOLATE_A_DEV_MAX_RATE, set),
		.believed_rate = nl_number(attrs, RDMA_ISOLATE_A_DEV_BELIEVED_RATE, set),
	};
}

static void add_budget(const struct nlattr * const *attrs,
		       const struct nlmsghdr *nlh, void *data)
{
	const struct name_set *set = &name_set_budget;
	struct doctor_dev *dev = find_dev(data, attrs[RDMA_ISOLATE_A_BUDGET_DEV]);

	(void)nlh;
	if (!dev)
		return;
	dev->safe_util = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, set);
	dev->pace[0] = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_TX_PACE, set);
	dev->pace[1] = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_RX_PACE, set);
}

static void add_counters(const struct nlattr * const *attrs,
			 const struct nlmsghdr *nlh, void *data)
{
	struct doctor_dev *dev = find_dev(data, attrs[RDMA_ISOLATE_A_STAT_DEV]);

	if (dev)
		dev->late_ns = find_counter(nlh, RDMA_ISOLATE_A_STAT_COUNTER, "late_ns");
}

static void check_devs(struct report *report, struct nl *nl)
{
	static const struct {
		uint8_t cmd;
		const struct name_set *set;
		nl_reply_fn reply;
	} steps[] = {
		{ RDMA_ISOLATE_CMD_DEV_GET, &name_set_dev, add_dev },
		{ RDMA_ISOLATE_CMD_BUDGET_GET, &name_set_budget, add_budget },
		{ RDMA_ISOLATE_CMD_STAT_GET, &name_set_stat, add_counters },
	};
	struct devs devs = STAILQ_HEAD_INITIALIZER(devs);
	struct dev *dev;
	unsigned int i;
	int err = 0;

	for (i = 0; i < sizeof(steps) / sizeof(*steps) && !err; i++) {
		nl_request(nl, steps[i].cmd, true);
		err = nl_send(nl, steps[i].set, steps[i].reply, &devs);
	}
	while ((dev = STAILQ_FIRST(&devs))) {
		STAILQ_REMOVE_HEAD(&devs, list);
		if (!err)
			doctor_dev(&dev->is, tell, report);
		free(dev);
	}
}

static void count_slow(const struct nlattr * const *attrs,
		       const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *timer = attrs[RDMA_ISOLATE_A_FLOW_RNR_TIMER];
	unsigned int *slow = data;

	(void)nlh;
	if (attrs[RDMA_ISOLATE_A_FLOW_PID] && timer && !mnl_attr_get_u32(timer))
		(*slow)++;
}

/* 0 is not the shortest delay, but the longest. */
static void check_rnr(struct report *report, struct nl *nl)
{
	unsigned int slow = 0;
	char found[120];

	nl_request(nl, RDMA_ISOLATE_CMD_FLOW_GET, true);
	if (nl_send(nl, &name_set_flow, count_slow, &slow))
		return;
	snprintf(found, sizeof(found),
		 "%u queue pairs of programs stop their sender for 655 ms when a receive is missing",
		 slow);
	if (slow)
		tell("rnr-timer", VERDICT_HINT, found,
		     "min_rnr_timer 12 (0.64 ms) in the programs that \"-d flow show\" lists with rnr-timer 0",
		     report);
	else
		tell("rnr-timer", VERDICT_OK, found, NULL, report);
}

/* Its entry, a new one if it has none; NULL without memory */
static struct doctor_process *find_process(struct doctor_processes *all, uint32_t pid)
{
	struct doctor_process *grown;
	size_t i;

	for (i = 0; i < all->n; i++)
		if (all->process[i].pid == pid)
			return &all->process[i];
	grown = realloc(all->process, (all->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	all->process = grown;
	grown[all->n] = (struct doctor_process){ .pid = pid };
	return &grown[all->n++];
}

static void note_reason(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
			void *data)
{
	uint64_t reason = nl_number(attrs, RDMA_ISOLATE_A_FLOW_REASON, &name_set_flow);
	struct doctor_process *process;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_FLOW_PID] || !attrs[RDMA_ISOLATE_A_FLOW_DEV])
		return;
	if (nl_number(attrs, RDMA_ISOLATE_A_FLOW_CLASS, &name_set_flow) == RISO_CLASS_LATENCY ||
	    reason >= 32)
		return;
	process = find_process(data, mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_FLOW_PID]));
	if (process)
		process->reasons |= 1U << reason;
}

/* Programs that cannot be held as they are */
static void check_programs(struct report *report, struct nl *nl)
{
	struct doctor_processes processes = { };

	if (nl) {
		nl_request(nl, RDMA_ISOLATE_CMD_FLOW_GET, true);
		nl_send(nl, &name_set_flow, note_reason, &processes);
	}
	doctor_programs("", &processes, tell, report);
	free(processes.process);
}

static int doctor_show(struct call *call)
{
	struct report report = { .out = call->out };
	struct utsname host;
	struct config files;
	struct nl *nl;
	int err;

	uname(&host);
	doctor_host("", host.release, tell, &report);
	check_memlock(&report);
	check_settings(&report, &files);
	nl = nl_module_loaded() ? nl_open() : NULL;
	err = errno;
	if (nl) {
		check_applied(&report, &files);
		check_order(&report, nl);
		check_rnr(&report, nl);
		check_devs(&report, nl);
		check_programs(&report, nl);
		doctor_around(nl, tell, &report);
		nl_close(nl);
	} else if (nl_module_loaded() && err == ENOENT) {
		tell("namespace", VERDICT_BAD, "the module " NL_NOT_HERE, NL_ELSEWHERE,
		     &report);
	} else if (nl_module_loaded()) {
		tell("netlink", VERDICT_BAD, strerror(err), NULL, &report);
	}
	if (!nl)
		check_programs(&report, NULL);
	config_free(&files);
	return report.bad ? CMD_REFUSED : CMD_DONE;
}

static const struct verb doctor_verbs[] = {
	{
		"show", "Show what was looked at, and what would mend it.",
		show_args, NULL, doctor_show
	},
	{ }
};

const struct object doctor_object = {
	.name = "doctor",
	.doc = "what keeps the module from working, or from working well",
	.verbs = doctor_verbs,
	.offline = true,
};
