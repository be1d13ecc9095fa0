// SPDX-License-Identifier: GPL-2.0
/*
 * The arguments of a case: "CASE [KEY=VALUE]...".
 *
 * Owns the names of the keys and of their values. Takes no lock, and may run in any
 * context.
 */

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "args.h"
#include "ulp.h"

static const char * const cqmode_name[] = {
	[ULP_CQ_WQ]		= "wq",
	[ULP_CQ_UNBOUND]	= "unbound",
	[ULP_CQ_SOFTIRQ]	= "softirq",
	[ULP_CQ_WORK]		= "work",
	[ULP_CQ_TASKLET]	= "tasklet",
};

static const char * const mutation_name[] = {
	[ULP_MUT_NONE]		= "none",
	[ULP_MUT_BYTE]		= "byte",
	[ULP_MUT_GUARD]		= "guard",
	[ULP_MUT_SWALLOW]	= "swallow",
	[ULP_MUT_DUP]		= "dup",
	[ULP_MUT_STATUS]	= "status",
	[ULP_MUT_OPCODE]	= "opcode",
	[ULP_MUT_LEN]		= "len",
	[ULP_MUT_ORDER]		= "order",
};

static int parse_arg(struct ulp_args *arg, char *key, const char *val)
{
	const struct {
		const char *key;
		u32 *val;
	} num[] = {
		{ "after", &arg->after },
		{ "len", &arg->len },
		{ "count", &arg->count },
		{ "depth", &arg->depth },
		{ "sge", &arg->sge },
		{ "qps", &arg->qps },
		{ "threads", &arg->threads },
		{ "rdatomic", &arg->rdatomic },
		{ "batch", &arg->batch },
		{ "signal", &arg->signal },
		{ "timeout", &arg->timeout },
	};
	int i;

	if (!strcmp(key, "op"))
		return strscpy(arg->op, val, sizeof(arg->op)) < 0 ? -EINVAL : 0;
	if (!strcmp(key, "odd"))
		return kstrtobool(val, &arg->odd);
	if (!strcmp(key, "sigall"))
		return kstrtobool(val, &arg->sigall);
	if (!strcmp(key, "cq")) {
		i = match_string(cqmode_name, ARRAY_SIZE(cqmode_name), val);
		if (i >= 0)
			arg->cq = i;
		return min(i, 0);
	}
	if (!strcmp(key, "mutate")) {
		i = match_string(mutation_name, ARRAY_SIZE(mutation_name), val);
		if (i >= 0)
			arg->mutate = i;
		return min(i, 0);
	}
	for (i = 0; i < ARRAY_SIZE(num); i++)
		if (!strcmp(key, num[i].key))
			return kstrtou32(val, 0, num[i].val);
	return -EINVAL;
}

int ulp_parse_args(struct ulp_args *arg, char *line)
{
	char *word;
	int err;

	word = strsep(&line, "\n ");
	if (strscpy(arg->name, word, sizeof(arg->name)) < 0)
		return -EINVAL;
	while ((word = strsep(&line, "\n "))) {
		char *key = strsep(&word, "=");

		if (!*key)
			continue;
		err = word ? parse_arg(arg, key, word) : -EINVAL;
		if (err)
			return err;
	}
	if (arg->len > ULP_BUF_SIZE - 4 * ULP_BASE ||
	    arg->depth < 2 || arg->depth > 1023 ||
	    arg->count > arg->depth * 64 ||
	    !arg->timeout || arg->timeout > 600 || !arg->rdatomic)
		return -EINVAL;
	return 0;
}
