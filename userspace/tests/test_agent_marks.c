// SPDX-License-Identifier: GPL-2.0
/*
 * What the agent tells the module of who posts around the shim. The module, the RDMA core, the loop
 * and the time are made up here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <linux/rdma_isolate.h>

#include "around_nl.h"
#include "loop.h"
#include "marks.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum {
	RC = 2,
	UD = 4,
	RTS = 3,
	RTR = 2,
	PIPE = 7,
};

/* A queue pair as the module has it, and the number of its next packet */
struct qp {
	const char *dev;
	uint32_t qpn, group, pid, type, state, class, reason, psn;
	bool sends, marked;
};

/* The first ones send, the others send too but are not to be looked at. */
static struct qp qps[] = {
	{ "on", 1, 5, 100, RC, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_USER_QP, 0, true, false },
	{ "on", 2, 6, 101, RC, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_NONE, 0, true, false },
	{ "seen", 1, 5, 100, RC, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_SHIM_LIMIT, 0, true,
	  false },
	{ "on", 3, 7, 102, RC, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_USER_QP, 0, false, false },
	{ "on", 4, 5, 100, RC, RTS, RISO_CLASS_LATENCY, RISO_REASON_USER_QP, 0, true, false },
	{ "on", 5, 5, 100, RC, RTR, RISO_CLASS_BANDWIDTH, RISO_REASON_USER_QP, 0, true, false },
	{ "on", 6, 5, 100, UD, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_QP_TYPE, 0, true, false },
	{ "on", 7, 8, 0, RC, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_NONE, 0, true, false },
	{ "on", 8, 9, 103, RC, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_REFERENCE, 0, true, false },
	{ "seen", 2, 6, 101, RC, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_OBSERVE_ONLY, 0, true,
	  false },
	{ "off", 1, 5, 100, RC, RTS, RISO_CLASS_BANDWIDTH, RISO_REASON_USER_QP, 0, true, false },
};

enum { TO_BE_MARKED = 3 };

static struct {
	struct source *tick, *answers;
	uint64_t now, at;
	/* What the process of queue pair 2 has told of */
	uint64_t told;
	/* What is asked for, how much of it was answered, and what is held back */
	struct psn_query query[16];
	size_t asked, taken;
	uint32_t held;
	/* How many answer in time, 0 for all */
	size_t in_time;
	bool stuck;
	unsigned int rounds, logged, marks;
	int err;
} fake;

static void reset(void)
{
	size_t i;

	memset(&fake, 0, sizeof(fake));
	fake.now = SEC;
	for (i = 0; i < ARRAY_SIZE(qps); i++) {
		qps[i].psn = 0;
		qps[i].marked = false;
	}
}

/* --- the loop --- */

uint64_t now_ns(void)
{
	return fake.now;
}

int timer_open(struct source *s, void (*ready)(struct source *s))
{
	s->ready = ready;
	s->fd = PIPE + 1;
	fake.tick = s;
	return 0;
}

void timer_close(struct source *s)
{
	s->fd = -1;
}

void timer_set(struct source *s, uint64_t at_ns)
{
	assert_ptr_equal(s, fake.tick);
	fake.at = at_ns;
}

bool timer_fired(struct source *s)
{
	(void)s;
	return true;
}

int loop_add(struct source *s)
{
	if (s->fd < 0)
		return -EBADF;
	fake.answers = s;
	return 0;
}

void loop_remove(struct source *s)
{
	s->fd = -1;
	fake.answers = NULL;
}

void log_line(const char *fmt, ...)
{
	(void)fmt;
	fake.logged++;
}

void error(const char *fmt, ...)
{
	(void)fmt;
}

/* --- the RDMA core --- */

int psn_begin(struct psn *p, const struct psn_query *query, size_t n)
{
	if (fake.stuck)
		return -EBUSY;
	assert_in_range(n, 0, ARRAY_SIZE(fake.query));
	memcpy(fake.query, query, n * sizeof(*query));
	fake.asked = n;
	fake.taken = 0;
	fake.rounds++;
	p->fd = n ? PIPE : -1;
	return 0;
}

static struct qp *find_qp(const struct psn_query *query)
{
	const char *dev = query->index == 10 ? "on" : query->index == 11 ? "seen" : "off";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(qps); i++)
		if (qps[i].qpn == query->qpn && !strcmp(qps[i].dev, dev))
			return &qps[i];
	fail_msg("queue pair %u of device %u", query->qpn, query->index);
	return NULL;
}

int psn_read(struct psn *p, struct psn_answer *answer)
{
	if (p->fd < 0 || fake.taken == fake.asked)
		return 0;
	if (fake.held && fake.query[fake.taken].qpn == fake.held)
		return -EAGAIN;
	if (fake.in_time && fake.taken == fake.in_time)
		return -EAGAIN;
	answer->err = 0;
	answer->sends = true;
	answer->of = fake.query[fake.taken++];
	answer->psn = find_qp(&answer->of)->psn;
	return 1;
}

void psn_end(struct psn *p)
{
	p->fd = -1;
}

/* --- the module --- */

struct nl {
	uint8_t cmd;
	char request[512];
};

static struct nl fake_nl;

struct nlmsghdr *nl_request(struct nl *nl, uint8_t cmd, bool dump)
{
	assert_int_equal(dump, cmd != RDMA_ISOLATE_CMD_FLOW_MARK);
	nl->cmd = cmd;
	return mnl_nlmsg_put_header(nl->request);
}

static void pass(struct nlmsghdr *nlh, nl_reply_fn reply, void *data)
{
	const struct nlattr *attrs[NL_ATTRS_MAX] = { NULL }, *attr;

	mnl_attr_for_each(attr, nlh, 0)
		attrs[mnl_attr_get_type(attr)] = attr;
	reply(attrs, nlh, data);
}

static void tell_devs(nl_reply_fn reply, void *data)
{
	static const struct { const char *name; uint32_t index, state; } devs[] = {
		{ "off", 9, RISO_DEV_IDLE }, { "on", 10, RISO_DEV_ENABLE },
		{ "seen", 11, RISO_DEV_OBSERVE },
	};
	char buf[512];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(devs); i++) {
		struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

		mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_DEV_DEV, devs[i].name);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_DEV_INDEX, devs[i].index);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_DEV_STATE, devs[i].state);
		pass(nlh, reply, data);
	}
}

static void tell_flows(nl_reply_fn reply, void *data)
{
	char buf[512];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(qps); i++) {
		struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

		mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_FLOW_DEV, qps[i].dev);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_QPN, qps[i].qpn);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_GROUP, qps[i].group);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_QP_TYPE, qps[i].type);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_QP_STATE, qps[i].state);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_CLASS, qps[i].class);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_REASON, qps[i].reason);
		if (qps[i].pid)
			mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_PID, qps[i].pid);
		if (qps[i].marked)
			mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_FLOW_AROUND, 1);
		pass(nlh, reply, data);
	}
}

static void tell_groups(nl_reply_fn reply, void *data)
{
	char buf[512];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_GROUP_DEV, "on");
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_GROUP_ID, 6);
	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_GROUP_SHIM, 1);
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_GROUP_TX_BYTES, fake.told);
	mnl_attr_put_u64(nlh, RDMA_ISOLATE_A_GROUP_RX_BYTES, 0);
	pass(nlh, reply, data);
}

static void take_mark(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	uint32_t qpn = mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_FLOW_QPN]);
	size_t i;

	(void)nlh;
	(void)data;
	for (i = 0; i < TO_BE_MARKED; i++) {
		if (qps[i].qpn != qpn ||
		    strcmp(qps[i].dev, mnl_attr_get_str(attrs[RDMA_ISOLATE_A_FLOW_DEV])))
			continue;
		assert_int_equal(mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_FLOW_GROUP]),
				 qps[i].group);
		assert_false(qps[i].marked);
		qps[i].marked = true;
		fake.marks++;
		return;
	}
	fail_msg("queue pair %u is marked", qpn);
}

int nl_send(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data)
{
	(void)set;
	if (fake.err)
		return fake.err;
	switch (nl->cmd) {
	case RDMA_ISOLATE_CMD_DEV_GET:
		tell_devs(reply, data);
		break;
	case RDMA_ISOLATE_CMD_FLOW_GET:
		tell_flows(reply, data);
		break;
	case RDMA_ISOLATE_CMD_GROUP_GET:
		tell_groups(reply, data);
		break;
	case RDMA_ISOLATE_CMD_FLOW_MARK:
		pass((struct nlmsghdr *)nl->request, take_mark, NULL);
		break;
	default:
		fail_msg("command %u", nl->cmd);
	}
	return 0;
}

/* --- the cases --- */

/* The timer fires, and whatever has an answer gives it. */
static void look(void)
{
	assert_true(fake.at > fake.now);
	fake.now = fake.at;
	fake.tick->ready(fake.tick);
	if (fake.answers)
		fake.answers->ready(fake.answers);
}

static void send_all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(qps); i++)
		qps[i].psn += qps[i].sends;
}

static void begin(void)
{
	reset();
	assert_int_equal(marks_open(&fake_nl), 0);
}

static void at_the_third_look(void **state)
{
	int i;

	(void)state;
	begin();
	for (i = 0; i < 2; i++) {
		look();
		send_all();
	}
	assert_int_equal(fake.marks, 0);
	look();
	assert_int_equal(fake.marks, TO_BE_MARKED);
	assert_int_equal(fake.now, SEC + 30 * SEC);
	/* The marked ones are not asked for any more. */
	look();
	assert_int_equal(fake.asked, 1);
	assert_int_equal(fake.query[0].qpn, 3);
	assert_int_equal(fake.marks, TO_BE_MARKED);
	assert_int_equal(fake.logged, 0);
	marks_close();
}

static void who_tells(void **state)
{
	int i;

	(void)state;
	begin();
	for (i = 0; i < 6; i++) {
		look();
		send_all();
		fake.told += 1000;
	}
	assert_false(qps[1].marked);
	assert_int_equal(fake.marks, TO_BE_MARKED - 1);
	marks_close();
}

/* What was answered before counts, and the loop does not wait for the rest. */
static void held_back(void **state)
{
	int i;

	(void)state;
	begin();
	fake.held = 2;
	for (i = 0; i < 3; i++) {
		look();
		assert_non_null(fake.answers);
		assert_int_equal(fake.at, fake.now + PSN_LIMIT_MS * MS);
		look();
		assert_null(fake.answers);
		send_all();
	}
	assert_true(qps[0].marked);
	assert_int_equal(fake.marks, 1);
	assert_int_equal(fake.logged, 1);
	/* The kernel does not let go of who has asked. */
	fake.stuck = true;
	look();
	assert_int_equal(fake.rounds, 3);
	fake.stuck = false;
	fake.held = 0;
	look();
	assert_int_equal(fake.rounds, 4);
	assert_int_equal(fake.logged, 1);
	fake.stuck = true;
	look();
	look();
	assert_int_equal(fake.logged, 2);
	marks_close();
}

/* One look, and all that send do so */
static void look_and_wait(void)
{
	look();
	if (fake.answers)
		look();
	send_all();
}

/* However few answer in time, each has its turn. */
static void too_many(void **state)
{
	size_t i;

	(void)state;
	begin();
	fake.in_time = 1;
	/* Three looks for each of the four that can be asked */
	for (i = 0; i < 12; i++)
		look_and_wait();
	assert_int_equal(fake.marks, TO_BE_MARKED);
	marks_close();
}

/* Those after one that is held back have their turn, too, and so have those before it. */
static void behind_held(void **state)
{
	size_t i;

	(void)state;
	begin();
	fake.held = 2;
	for (i = 0; i < 9; i++)
		look_and_wait();
	assert_true(qps[0].marked);
	assert_false(qps[1].marked);
	assert_true(qps[2].marked);
	marks_close();
}

static void without_module(void **state)
{
	(void)state;
	begin();
	fake.err = -ENOENT;
	look();
	look();
	assert_int_equal(fake.rounds, 0);
	marks_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_the_third_look),
		cmocka_unit_test(who_tells),
		cmocka_unit_test(held_back),
		cmocka_unit_test(too_many),
		cmocka_unit_test(behind_held),
		cmocka_unit_test(without_module),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
