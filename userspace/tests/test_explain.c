// SPDX-License-Identifier: GPL-2.0
/*
 * What tools/rdma-isolate explain says of a group that has waited for the limit of a peer. The
 * kernel is one of the test's own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/genetlink.h>

#include "batch.h"
#include "cmd.h"
#include "fake_nl.h"
#include "printed.h"

#define MS UINT64_C(1000000)

/* A flow that group 3 has */
struct flow {
	uint32_t qpn;
	const char *peer;
};

struct path {
	const char *peer;
	uint32_t dir;
	uint64_t rate;
	uint64_t lease_ns;
};

/* What the kernel has; an empty peer ends a list */
static struct {
	uint64_t path_ns;
	uint64_t tx_bytes;
	uint64_t rx_bytes;
	struct flow flows[4];
	struct path paths[4];
	bool refuses;
} kernel;

static void reply_group(nl_reply_fn reply, void *data)
{
	char buf[1024];
	struct nlmsghdr *nlh = fake_nl_message(buf, RDMA_ISOLATE_CMD_GROUP_GET);

	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_GROUP_ID, 3);
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_GROUP_PID, 77);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_GROUP_COMM, "bulk");
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_GROUP_TX_BYTES, kernel.tx_bytes);
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_GROUP_RX_BYTES, kernel.rx_bytes);
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_GROUP_PATH_NS, kernel.path_ns);
	nl_event_attrs(nlh, &name_set_group, reply, data);
}

static void reply_flow(const struct flow *f, uint32_t group, nl_reply_fn reply, void *data)
{
	char buf[1024];
	struct nlmsghdr *nlh = fake_nl_message(buf, RDMA_ISOLATE_CMD_FLOW_GET);

	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_QPN, f->qpn);
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_GROUP, group);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_FLOW_PEER, f->peer);
	nl_event_attrs(nlh, &name_set_flow, reply, data);
}

static void reply_path(const struct path *p, nl_reply_fn reply, void *data)
{
	char buf[1024];
	struct nlmsghdr *nlh = fake_nl_message(buf, RDMA_ISOLATE_CMD_PATH_GET);

	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_PATH_PEER, p->peer);
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_PATH_DIR, p->dir);
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_PATH_RATE, p->rate);
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_PATH_LEASE_NS, p->lease_ns);
	nl_event_attrs(nlh, &name_set_path, reply, data);
}

/* One flow, or all and one of another group */
static void reply_flows(const struct nlmsghdr *nlh, nl_reply_fn reply, void *data)
{
	static const struct flow other = { 99, "::ffff:10.0.0.9" };
	const struct flow *f;

	if (!(nlh->nlmsg_flags & NLM_F_DUMP)) {
		reply_flow(kernel.flows, 3, reply, data);
		return;
	}
	for (f = kernel.flows; f->peer; f++)
		reply_flow(f, 3, reply, data);
	reply_flow(&other, 4, reply, data);
}

int __wrap_nl_send(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data)
{
	const struct nlmsghdr *nlh = fake_nl_request();
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);

	(void)nl;
	(void)set;
	if (genl->cmd == RDMA_ISOLATE_CMD_GROUP_GET)
		reply_group(reply, data);
	else if (genl->cmd == RDMA_ISOLATE_CMD_FLOW_GET)
		reply_flows(nlh, reply, data);
	return 0;
}

int __wrap_nl_send_if_allowed(struct nl *nl, const struct name_set *set, nl_reply_fn reply,
			      void *data)
{
	const struct path *p;

	(void)nl;
	(void)set;
	if (kernel.refuses)
		return -EPERM;
	for (p = kernel.paths; p->peer; p++)
		reply_path(p, reply, data);
	return 0;
}

/* What is said of a group, or a flow; as JSON */
static const char *explain(const char *line, bool json)
{
	static char got[4096];
	struct printer out = { .json = json, .file = tmpfile() };
	struct command cmd;
	struct words words;
	char buf[256];

	assert_non_null(out.file);
	snprintf(buf, sizeof(buf), "%s", line);
	assert_null(words_split(buf, &words));
	assert_int_equal(cmd_parse(words.n, words.word, &cmd), CMD_DONE);
	cmd.call.nl = nl_open();
	assert_int_equal(cmd_run(&cmd, &out), CMD_DONE);
	read_printed(out.file, got, sizeof(got));
	return got;
}

#define GROUP "explain group dev d id 3"
#define FLOW "explain flow dev d qpn 5"

static void has(const char *line, bool json, const char *want)
{
	const char *got = explain(line, json);

	if (!strstr(got, want))
		fail_msg("%s: %s", line, got);
}

static void has_no_limit(const char *line)
{
	const char *got = explain(line, false);

	if (strstr(got, "waits-for"))
		fail_msg("%s: %s", line, got);
	got = explain(line, true);
	if (strstr(got, "waits_for"))
		fail_msg("%s: %s", line, got);
}

static int begin(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.path_ns = 5000 * MS;
	kernel.tx_bytes = 1;
	kernel.flows[0] = (struct flow) { 5, "::ffff:10.0.0.3" };
	kernel.paths[0] = (struct path) { "::ffff:10.0.0.3", RISO_PATH_TX, 12500000, 800 * MS };
	return 0;
}

#define BY_AGENT "waits-for peer ::ffff:10.0.0.3 dir tx rate 100mbit lease 800ms set-by agent\n"
#define BY_OPERATOR "waits-for peer ::ffff:10.0.0.3 dir rx rate 80mbit lease 0ns set-by operator\n"

#define JSON_BY_AGENT "{\"peer\":\"::ffff:10.0.0.3\",\"dir\":\"tx\",\"rate\":12500000,\"lease_ns\":800000000,\"set_by\":\"agent\"}"

static void an_agents(void **state)
{
	(void)state;
	has(GROUP, false, "\n    path 5s\n");
	has(GROUP, false, "\n    " BY_AGENT);
	has(FLOW, false, "\n    " BY_AGENT);
	has(GROUP, true, "\"behind\":[],\"waits_for\":[" JSON_BY_AGENT "]}");
}

static void an_operators(void **state)
{
	(void)state;
	kernel.rx_bytes = 1;
	kernel.paths[1] = (struct path) { "::ffff:10.0.0.3", RISO_PATH_RX, 10000000, 0 };
	has(GROUP, false, "\n    " BY_AGENT "    " BY_OPERATOR);
	has(GROUP, true, "\"waits_for\":[" JSON_BY_AGENT ",{\"peer\"");
}

/* A program is connected to several hosts. A flow is to one. */
static void peers(void **state)
{
	(void)state;
	kernel.flows[1] = (struct flow) { 6, "::ffff:10.0.0.3" };
	kernel.flows[2] = (struct flow) { 7, "::ffff:10.0.0.4" };
	kernel.paths[1] = (struct path) { "::ffff:10.0.0.4", RISO_PATH_TX, 12500000, 0 };
	has(GROUP, false, BY_AGENT "    waits-for peer ::ffff:10.0.0.4 dir tx");
	has(FLOW, false, BY_AGENT);
	assert_null(strstr(explain(FLOW, false), "10.0.0.4"));
}

/* It has not waited, or for no limit that is in force; or who asks may not know. */
static void none(void **state)
{
	(void)state;
	kernel.path_ns = 0;
	has_no_limit(GROUP);
	has_no_limit(FLOW);

	begin(NULL);
	kernel.paths[0].rate = 0;
	has_no_limit(GROUP);
	begin(NULL);
	kernel.paths[0].dir = RISO_PATH_RX;
	has_no_limit(GROUP);
	begin(NULL);
	kernel.paths[0].dir = 7;
	has_no_limit(GROUP);
	begin(NULL);
	kernel.paths[0].peer = "::ffff:10.0.0.9";
	has_no_limit(GROUP);
	begin(NULL);
	kernel.refuses = true;
	has_no_limit(GROUP);
	has(GROUP, false, "\n    path 5s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_agents, begin),
		cmocka_unit_test_setup(an_operators, begin),
		cmocka_unit_test_setup(peers, begin),
		cmocka_unit_test_setup(none, begin),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
