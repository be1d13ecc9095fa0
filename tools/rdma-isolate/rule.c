// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: which flows get which class and weight.
 */
#include <errno.h>
#include <string.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "config_read.h"
#include "error.h"

const struct field rule_fields[] = {
	{ RDMA_ISOLATE_A_RULE_ID, "id", FMT_COUNT },
	{ RDMA_ISOLATE_A_RULE_DEV, "dev", FMT_STRING },
	{ RDMA_ISOLATE_A_RULE_ULP, "ulp", FMT_STRING },
	{ RDMA_ISOLATE_A_RULE_PEER, "peer", FMT_STRING },
	{ RDMA_ISOLATE_A_RULE_COMM, "comm", FMT_STRING },
	{ RDMA_ISOLATE_A_RULE_UID, "uid", FMT_COUNT },
	{ RDMA_ISOLATE_A_RULE_CGROUP, "cgroup", FMT_STRING },
	{ RDMA_ISOLATE_A_RULE_CLASS, "class", FMT_WORD },
	{ RDMA_ISOLATE_A_RULE_WEIGHT, "weight", FMT_COUNT },
	{ RDMA_ISOLATE_A_RULE_CHOOSE, "choose", FMT_WORD },
	{ RDMA_ISOLATE_A_RULE_CUT_IMM, "cut-imm", FMT_WORD },
	{ }
};

static const struct arg show_args[] = {
	{
		.key = "id",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_RULE_ID,
		.min = 1,
		.max = UINT32_MAX,
		.doc = "only this rule",
	},
	{ }
};

static const struct arg add_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_RULE_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "flows of this device",
	},
	{
		.key = "ulp",
		.kind = ARG_TEXT,
		.attr = RDMA_ISOLATE_A_RULE_ULP,
		.max = RDMA_ISOLATE_ULP_NAME_MAX,
		.doc = "flows of this kernel module",
	},
	{
		.key = "peer",
		.kind = ARG_PEER,
		.attr = RDMA_ISOLATE_A_RULE_PEER,
		.doc = "flows to this remote address",
	},
	{
		.key = "comm",
		.kind = ARG_TEXT,
		.attr = RDMA_ISOLATE_A_RULE_COMM,
		.max = RDMA_ISOLATE_COMM_MAX,
		.doc = "flows of tasks of this name, which a task chooses itself",
	},
	{
		.key = "uid",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_RULE_UID,
		.max = UINT32_MAX - 1,
		.doc = "flows of this user",
	},
	{
		.key = "cgroup",
		.kind = ARG_TEXT,
		.attr = RDMA_ISOLATE_A_RULE_CGROUP,
		.max = RDMA_ISOLATE_CGROUP_MAX,
		.doc = "flows of tasks in this control group, or below it: /system.slice",
	},
	{
		.key = "class",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_RULE_CLASS,
		.must = true,
		.words = &name_class,
		.doc = "class that they get",
	},
	{
		.key = "weight",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_RULE_WEIGHT,
		.min = 1,
		.max = RDMA_ISOLATE_WEIGHT_MAX,
		.doc = "weight that they get, 100 if not given",
	},
	{
		.key = "choose",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_RULE_CHOOSE,
		.words = &name_switch,
		.doc = "whether programs may choose another class by the verbs shim",
	},
	{
		.key = "cut-imm",
		.kind = ARG_WORD,
		.attr = RDMA_ISOLATE_A_RULE_CUT_IMM,
		.words = &name_switch,
		.doc = "whether the verbs shim may cut WRITE_WITH_IMM: no peer may read the length",
	},
	{ }
};

static const struct arg delete_args[] = {
	{
		.key = "id",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_RULE_ID,
		.must = true,
		.min = 1,
		.max = UINT32_MAX,
		.doc = "the rule",
	},
	{ }
};

static void show_rule(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;

	(void)nlh;
	print_object_begin(out);
	print_fields(out, &name_set_rule, rule_fields, attrs);
	print_object_end(out);
}

static int rule_show(struct call *call)
{
	call_request(call, &name_set_rule, RDMA_ISOLATE_CMD_RULE_GET,
		     !call_value(call, "id")->text);
	return nl_send(call->nl, &name_set_rule, show_rule, call->out) ?
	       CMD_REFUSED : CMD_DONE;
}

static int rule_add_check(const struct call *call)
{
	static const char * const matches[] = {
		"dev", "ulp", "peer", "comm", "uid", "cgroup",
	};
	unsigned int i;

	for (i = 0; i < sizeof(matches) / sizeof(*matches); i++)
		if (call_value(call, matches[i])->text)
			return CMD_DONE;
	return usage_error("a rule needs one of dev, ulp, peer, comm, uid and cgroup");
}

struct search {
	const char *dev;
	bool found;
};

static void find_dev(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data)
{
	struct search *search = data;

	(void)nlh;
	if (attrs[RDMA_ISOLATE_A_DEV_DEV] &&
	    !strcmp(mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_DEV]), search->dev))
		search->found = true;
}

/* It may come later, or be a slip of the pen. */
static void warn_missing_dev(struct call *call)
{
	struct search search = { .dev = call_value(call, "dev")->text };

	if (!search.dev)
		return;
	nl_request(call->nl, RDMA_ISOLATE_CMD_DEV_GET, true);
	if (!nl_send(call->nl, &name_set_dev, find_dev, &search) && !search.found)
		error("warning: there is no device %s now, the rule waits for it",
		      search.dev);
}

static int rule_add(struct call *call)
{
	uint32_t id;
	int err;

	call_request(call, &name_set_rule, RDMA_ISOLATE_CMD_RULE_ADD, false);
	err = nl_send(call->nl, &name_set_rule, show_rule, call->out);
	id = err == -EEXIST ? config_find_rule(call) : 0;
	if (id)
		error("it has id %u", id);
	if (!err)
		warn_missing_dev(call);
	return err ? CMD_REFUSED : CMD_DONE;
}

static int rule_delete(struct call *call)
{
	call_request(call, &name_set_rule, RDMA_ISOLATE_CMD_RULE_DEL, false);
	return nl_send(call->nl, &name_set_rule, NULL, NULL) ?
	       CMD_REFUSED : CMD_DONE;
}

static const struct verb rule_verbs[] = {
	{
		"show", "Show rules, in the order in which they are tried.",
		show_args, NULL, rule_show
	},
	{
		"add", "Add a rule behind the others, and print its id.",
		add_args, rule_add_check, rule_add
	},
	{ "delete", "Delete a rule.", delete_args, NULL, rule_delete },
	{ }
};

const struct verb * const rule_add_verb = &rule_verbs[1];

const struct object rule_object = {
	.name = "rule",
	.doc = "which flows get which class and weight",
	.verbs = rule_verbs,
};
