// SPDX-License-Identifier: GPL-2.0
/*
 * Why a flow or a group is treated as it is, and what it waited for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "error.h"
#include "group.h"

/* groups that are named as the cause of a wait */
enum { CAUSES = 3 };

static const struct arg flow_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_FLOW_DEV,
		.must = true,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "the device",
	},
	{
		.key = "qpn",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_FLOW_QPN,
		.must = true,
		.max = 0xffffff,
		.doc = "the number of the queue pair",
	},
	{ }
};

static const struct arg group_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_GROUP_DEV,
		.must = true,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "the device",
	},
	{
		.key = "id",
		.kind = ARG_COUNT,
		.attr = RDMA_ISOLATE_A_GROUP_ID,
		.must = true,
		.min = 1,
		.max = UINT32_MAX,
		.doc = "the group",
	},
	{ }
};

/* What explains a flow, and what its group: in one object, so no key is in both */
static const struct field why_fields[] = {
	{ RDMA_ISOLATE_A_FLOW_QPN, "qpn", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_CLASS, "class", FMT_WORD },
	{ RDMA_ISOLATE_A_FLOW_MANAGED, "managed", FMT_BOOL },
	{ RDMA_ISOLATE_A_FLOW_REASON, "reason", FMT_WHY },
	{ RDMA_ISOLATE_A_FLOW_QUEUED, "queued", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_WAIT_NS, "wait", FMT_TIME },
	{ }
};

static const struct field wait_fields[] = {
	{ RDMA_ISOLATE_A_GROUP_WEIGHT, "weight", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_FLOWS, "flows", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_HELD, "held", FMT_COUNT },
	{ RDMA_ISOLATE_A_GROUP_AVG10, "avg10", FMT_SHARE },
	{ RDMA_ISOLATE_A_GROUP_AVG60, "avg60", FMT_SHARE },
	{ RDMA_ISOLATE_A_GROUP_AVG300, "avg300", FMT_SHARE },
	{ RDMA_ISOLATE_A_GROUP_STALL_NS, "stall", FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_CLOCK_NS, "clock", FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_WINDOW_NS, "window", FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_PATH_NS, "path", FMT_TIME },
	{ RDMA_ISOLATE_A_GROUP_OWN_NS, "own", FMT_TIME },
	{ }
};

/* What the device can do, and what is believed that it can */
static const struct field rate_fields[] = {
	{ RDMA_ISOLATE_A_DEV_MAX_RATE, "max-rate", FMT_RATE },
	{ RDMA_ISOLATE_A_DEV_BELIEVED_RATE, "believed-rate", FMT_RATE },
	{ RDMA_ISOLATE_A_DEV_BELIEVED_FROM, "believed-from", FMT_WHY },
	{ }
};

/* A limit that a group waits for; who has set it follows from the lease */
static const struct field limit_fields[] = {
	{ RDMA_ISOLATE_A_PATH_PEER, "peer", FMT_STRING },
	{ RDMA_ISOLATE_A_PATH_DIR, "dir", FMT_WORD },
	{ RDMA_ISOLATE_A_PATH_RATE, "rate", FMT_RATE },
	{ RDMA_ISOLATE_A_PATH_LEASE_NS, "lease", FMT_TIME },
	{ }
};

/**
 * struct groups - the groups of a device
 * @of: each
 * @n: how many
 * @no_memory: there are more
 */
struct groups {
	struct {
		uint32_t id;
		char who[WHO_LEN];
	} *of;
	unsigned int n;
	bool no_memory;
};

/**
 * struct peers - whom flows are connected to
 * @of: the address of each
 * @n: how many
 * @no_memory: there are more
 */
struct peers {
	char (*of)[RDMA_ISOLATE_PEER_MAX + 1];
	unsigned int n;
	bool no_memory;
};

/**
 * struct explain - what is being explained
 * @call: the command
 * @groups: by name
 * @peers: of the flow, or of all flows of the group
 * @path_ns: time for which the group has waited for limits of peers
 * @used: the group has sent, and has read
 * @limited: the list of limits is begun
 * @rule: id of the rule that matched, 0 for none
 * @group: id of the group
 * @begun: the object of the output is
 */
struct explain {
	struct call *call;
	struct groups groups;
	struct peers peers;
	uint64_t path_ns;
	bool used[2];
	bool limited;
	uint32_t rule;
	uint32_t group;
	bool begun;
};

static uint32_t number_of(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u32(attr) : 0;
}

static void add_group(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct groups *groups = data;
	void *of;

	(void)nlh;
	of = realloc(groups->of, (groups->n + 1) * sizeof(*groups->of));
	if (!of) {
		groups->no_memory = true;
		return;
	}
	groups->of = of;
	groups->of[groups->n].id = number_of(attrs[RDMA_ISOLATE_A_GROUP_ID]);
	group_who(attrs, groups->of[groups->n++].who);
}

static int find_groups(struct explain *e)
{
	struct call *call = e->call;
	struct nlmsghdr *nlh;
	int err;

	nlh = nl_request(call->nl, RDMA_ISOLATE_CMD_GROUP_GET, true);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_GROUP_DEV,
			  call_value(call, "dev")->text);
	err = nl_send(call->nl, &name_set_group, add_group, &e->groups);
	if (!err && e->groups.no_memory) {
		error("%s", strerror(ENOMEM));
		err = -ENOMEM;
	}
	return err;
}

static const char *name_of(const struct explain *e, uint32_t group)
{
	unsigned int i;

	for (i = 0; i < e->groups.n; i++)
		if (e->groups.of[i].id == group)
			return e->groups.of[i].who;
	return "gone";
}

/* Not before there is something to say: what is refused leaves no object. */
static void begin(struct explain *e)
{
	if (e->begun)
		return;
	e->begun = true;
	print_object_begin(e->call->out);
	print_string(e->call->out, "dev", "dev",
		     call_value(e->call, "dev")->text);
}

static bool has_peer(const struct peers *peers, const char *peer)
{
	unsigned int i;

	for (i = 0; i < peers->n; i++)
		if (!strcmp(peers->of[i], peer))
			return true;
	return false;
}

static void add_peer(struct peers *peers, const struct nlattr *peer)
{
	void *of;

	if (!peer || has_peer(peers, mnl_attr_get_str(peer)))
		return;
	of = reallocarray(peers->of, peers->n + 1, sizeof(*peers->of));
	if (!of) {
		peers->no_memory = true;
		return;
	}
	peers->of = of;
	snprintf(peers->of[peers->n++], sizeof(*peers->of), "%s", mnl_attr_get_str(peer));
}

static void show_why(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data)
{
	struct explain *e = data;

	(void)nlh;
	begin(e);
	e->rule = number_of(attrs[RDMA_ISOLATE_A_FLOW_RULE_ID]);
	e->group = number_of(attrs[RDMA_ISOLATE_A_FLOW_GROUP]);
	add_peer(&e->peers, attrs[RDMA_ISOLATE_A_FLOW_PEER]);
	print_fields(e->call->out, &name_set_flow, why_fields, attrs);
}

static void show_rule(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct printer *out = data;

	(void)nlh;
	print_item_begin(out, "rule");
	print_fields(out, &name_set_rule, rule_fields, attrs);
	print_item_end(out);
}

/* The rule that gave class and weight: an empty list says that none did. */
static int explain_rule(struct explain *e)
{
	struct printer *out = e->call->out;
	struct nl *nl = e->call->nl;
	struct nlmsghdr *nlh;
	int err = 0;

	print_list_begin(out, "rule");
	if (e->rule) {
		nlh = nl_request(nl, RDMA_ISOLATE_CMD_RULE_GET, false);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_RULE_ID, e->rule);
		err = nl_send(nl, &name_set_rule, show_rule, out);
	}
	print_list_end(out);
	return err;
}

static void show_cause(const struct explain *e, uint32_t group, uint64_t ns,
		       uint64_t sum)
{
	struct printer *out = e->call->out;

	print_item_begin(out, "behind");
	print_number(out, "group", "group", FMT_COUNT, NULL, group);
	print_string(out, "who", "who", name_of(e, group));
	print_number(out, "used", "used_ns", FMT_TIME, NULL, ns);
	print_number(out, "share", "share", FMT_SHARE, NULL,
		     ns * (long double)10000 / sum);
	print_item_end(out);
}

/* Who used the device while it stood in line. */
static void show_causes(const struct nlattr * const *attrs,
			const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *others =
		attrs[RDMA_ISOLATE_A_GROUP_BEHIND_OTHERS_NS];
	struct explain *e = data;
	struct printer *out = e->call->out;
	uint64_t sum = others ? mnl_attr_get_u64(others) : 0;
	struct behind behind;
	unsigned int i;

	begin(e);
	e->path_ns = nl_number(attrs, RDMA_ISOLATE_A_GROUP_PATH_NS, &name_set_group);
	e->used[RISO_PATH_TX] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_TX_BYTES, &name_set_group);
	e->used[RISO_PATH_RX] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_RX_BYTES, &name_set_group);
	print_number(out, "group", "group", FMT_COUNT, NULL, e->group);
	print_string(out, "who", "who", name_of(e, e->group));
	print_fields(out, &name_set_group, wait_fields, attrs);
	behind_read(nlh, &behind);
	for (i = 0; i < behind.n; i++)
		sum += behind.of[i].used_ns;
	print_list_begin(out, "behind");
	for (i = 0; i < behind.n && i < CAUSES && behind.of[i].used_ns; i++)
		show_cause(e, behind.of[i].group, behind.of[i].used_ns, sum);
	print_list_end(out);
}

static void show_rates(const struct nlattr * const *attrs,
		       const struct nlmsghdr *nlh, void *data)
{
	(void)nlh;
	print_fields(data, &name_set_dev, rate_fields, attrs);
}

static int explain_rates(struct explain *e)
{
	struct nl *nl = e->call->nl;
	struct nlmsghdr *nlh;

	nlh = nl_request(nl, RDMA_ISOLATE_CMD_DEV_GET, false);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_DEV_DEV, call_value(e->call, "dev")->text);
	return nl_send(nl, &name_set_dev, show_rates, e->call->out);
}

static int explain_group_of(struct explain *e)
{
	struct nl *nl = e->call->nl;
	struct nlmsghdr *nlh;

	nlh = nl_request(nl, RDMA_ISOLATE_CMD_GROUP_GET, false);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_GROUP_DEV,
			  call_value(e->call, "dev")->text);
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_GROUP_ID, e->group);
	return nl_send(nl, &name_set_group, show_causes, e);
}

static void add_peer_of_group(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
			      void *data)
{
	struct explain *e = data;

	(void)nlh;
	if (number_of(attrs[RDMA_ISOLATE_A_FLOW_GROUP]) == e->group)
		add_peer(&e->peers, attrs[RDMA_ISOLATE_A_FLOW_PEER]);
}

static int find_peers(struct explain *e)
{
	struct call *call = e->call;
	struct nlmsghdr *nlh;

	nlh = nl_request(call->nl, RDMA_ISOLATE_CMD_FLOW_GET, true);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_FLOW_DEV, call_value(call, "dev")->text);
	return nl_send(call->nl, &name_set_flow, add_peer_of_group, e);
}

/* The kernel does not tell which limit it was: one of its peers, in a direction that it uses. */
static void show_limit(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *peer = attrs[RDMA_ISOLATE_A_PATH_PEER];
	uint32_t dir = number_of(attrs[RDMA_ISOLATE_A_PATH_DIR]);
	struct explain *e = data;
	struct printer *out = e->call->out;

	(void)nlh;
	if (!peer || !has_peer(&e->peers, mnl_attr_get_str(peer)) ||
	    !nl_number(attrs, RDMA_ISOLATE_A_PATH_RATE, &name_set_path) ||
	    dir > RISO_PATH_RX || !e->used[dir])
		return;
	if (!e->limited)
		print_list_begin(out, "waits_for");
	e->limited = true;
	print_item_begin(out, "waits-for");
	print_fields(out, &name_set_path, limit_fields, attrs);
	print_string(out, "set-by", "set_by",
		     nl_number(attrs, RDMA_ISOLATE_A_PATH_LEASE_NS, &name_set_path) ?
		     "agent" : "operator");
	print_item_end(out);
}

/* The limits of peers that a group waits for, if who asks may see them */
static int explain_limits(struct explain *e)
{
	struct nl *nl = e->call->nl;
	struct nlmsghdr *nlh;
	int err;

	if (e->peers.no_memory) {
		error("%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	nlh = nl_request(nl, RDMA_ISOLATE_CMD_PATH_GET, true);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_PATH_DEV, call_value(e->call, "dev")->text);
	err = nl_send_if_allowed(nl, &name_set_path, show_limit, e);
	if (e->limited)
		print_list_end(e->call->out);
	return err == -EPERM ? 0 : err;
}

/* In text a line for each thing. */
static int explain(struct call *call, bool flow)
{
	struct explain e = { .call = call };
	int err;

	if (!call->out->json)
		call->out->pretty = true;
	err = find_groups(&e);
	if (err)
		goto free;
	if (flow) {
		call_request(call, &name_set_flow, RDMA_ISOLATE_CMD_FLOW_GET,
			     false);
		err = nl_send(call->nl, &name_set_flow, show_why, &e);
		if (!err)
			err = explain_rule(&e);
	} else {
		e.group = call_value(call, "id")->number;
	}
	if (!err && e.group)
		err = explain_group_of(&e);
	if (!err && e.path_ns && !flow)
		err = find_peers(&e);
	if (!err && e.path_ns)
		err = explain_limits(&e);
	/* A group or rule may have gone meanwhile: what an object always has is in it. */
	if (e.begun) {
		err = explain_rates(&e) ?: err;
		print_object_end(call->out);
	}
free:
	free(e.peers.of);
	free(e.groups.of);
	return err ? CMD_REFUSED : CMD_DONE;
}

static int explain_flow(struct call *call)
{
	return explain(call, true);
}

static int explain_group(struct call *call)
{
	return explain(call, false);
}

static const struct verb explain_verbs[] = {
	{
		"flow", "Say why a flow has its class, and what its group waited for.",
		flow_args, NULL, explain_flow
	},
	{
		"group", "Say what a group waited for.",
		group_args, NULL, explain_group
	},
	{ }
};

const struct object explain_object = {
	.name = "explain",
	.doc = "why a flow or group is treated as it is, and what it waits for",
	.verbs = explain_verbs,
};
