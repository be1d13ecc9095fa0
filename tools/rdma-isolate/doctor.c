// SPDX-License-Identifier: GPL-2.0
/*
 * Looks at the host and at the module, and says what to mend.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"
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

static void check_dev(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct report *report = data;
	char found[128], fix[128];
	const char *name;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_DEV_NAME] ||
	    !attrs[RDMA_ISOLATE_A_DEV_STATE] ||
	    mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_STATE]) !=
	    RISO_DEV_ENFORCE)
		return;
	name = mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_NAME]);
	if (attrs[RDMA_ISOLATE_A_DEV_CALIBRATED] &&
	    !mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_CALIBRATED])) {
		snprintf(found, sizeof(found),
			 "max-rate of %s is only guessed", name);
		snprintf(fix, sizeof(fix),
			 "rdma-isolate calibrate dev %s --apply",
			 name);
		tell("max-rate", VERDICT_HINT, found, fix, report);
	}
	if (attrs[RDMA_ISOLATE_A_DEV_LATENCY_FLOWS] &&
	    !mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_LATENCY_FLOWS])) {
		snprintf(found, sizeof(found),
			 "%s has no latency flow to protect", name);
		snprintf(fix, sizeof(fix),
			 "rdma-isolate rule add dev %s comm NAME class latency",
			 name);
		tell("latency", VERDICT_HINT, found, fix, report);
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

static int doctor_show(struct call *call)
{
	struct report report = { .out = call->out };
	struct utsname host;
	struct nl *nl;

	uname(&host);
	doctor_host("", host.release, tell, &report);
	check_memlock(&report);
	nl = access("/sys/module/rdma_isolate", F_OK) ? NULL : nl_open();
	if (nl) {
		check_order(&report, nl);
		check_rnr(&report, nl);
		nl_request(nl, RDMA_ISOLATE_CMD_DEV_GET, true);
		nl_send(nl, &name_set_dev, check_dev, &report);
		nl_close(nl);
	}
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
