// SPDX-License-Identifier: GPL-2.0
/*
 * steer.c with the law and the windows that it has, between a module and peers that do
 * what the test says, at a time that the test says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/genetlink.h>

#include "steer.h"

#define START (100 * SEC)
#define PERIOD (MS / 2)
#define MAX_RATE UINT64_C(1000000000)
#define OWN_UTIL UINT64_C(800000000)
#define TARGET UINT64_C(50000)
#define US UINT64_C(1000)

enum { OTHER = 77, PEERS = 2 };

/* What was lent */
struct lent {
	uint64_t lease_ns;
	uint64_t safe_util;
	uint32_t pid;
	uint32_t state;
	uint64_t target99_ns;
	uint64_t current99_ns;
};

/* What is there, and what was done. */
static struct {
	uint64_t now;
	struct source *timer;
	uint64_t at;
	unsigned int logged;
	/* the module */
	bool enforced;
	uint32_t ctrl;
	uint64_t target99;
	uint32_t groups[3];
	struct lent lent;
	uint64_t lease_end;
	bool alive;
	unsigned int asked;
	unsigned int sets;
	/* what was lent: the first, and since when and how often it was less than before */
	struct lent first;
	uint64_t less_ns;
	uint64_t least_gap_ns;
	/* the peers: when the message that is out completes */
	struct probe *peers[PEERS];
	uint64_t done[PEERS];
	bool hangs;
	uint64_t (*latency)(unsigned int peer);
} fake;

static struct conf conf;
static struct conf_dev dev;

/* --- the loop --- */

uint64_t now_ns(void)
{
	return fake.now;
}

int timer_open(struct source *s, void (*ready)(struct source *s))
{
	s->ready = ready;
	fake.timer = s;
	return 0;
}

void timer_close(struct source *s)
{
	(void)s;
	fake.timer = NULL;
}

void timer_set(struct source *s, uint64_t at_ns)
{
	(void)s;
	fake.at = at_ns;
}

bool timer_fired(struct source *s)
{
	(void)s;
	return true;
}

void log_line(const char *fmt, ...)
{
	(void)fmt;
	fake.logged++;
}

/* --- the module --- */

struct nl {
	uint8_t cmd;
	char request[1024];
	char answer[1024];
};

struct nlmsghdr *nl_request(struct nl *nl, uint8_t cmd, bool dump)
{
	assert_false(dump);
	nl->cmd = cmd;
	return mnl_nlmsg_put_header(nl->request);
}

void nl_put_number(struct nlmsghdr *nlh, const struct name_set *set, uint16_t attr,
		   uint64_t number)
{
	if (set->attrs[attr].type == NAME_U32)
		mnl_attr_put_u32(nlh, attr, number);
	else
		mnl_attr_put_u64(nlh, attr, number);
}

uint64_t nl_get_number(const struct nlattr *attr, const struct name_set *set)
{
	return set->attrs[mnl_attr_get_type(attr)].type == NAME_U32 ?
	       mnl_attr_get_u32(attr) : mnl_attr_get_u64(attr);
}

static bool is_lent(void)
{
	return fake.lent.pid && fake.now < fake.lease_end;
}

static uint64_t in_force(void)
{
	return is_lent() ? fake.lent.safe_util : OWN_UTIL;
}

/* All of a message by number */
static void attrs_of(const struct nlmsghdr *nlh, const struct nlattr **attrs)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, 0)
		attrs[mnl_attr_get_type(attr)] = attr;
}

static void put_dev(struct nlmsghdr *nlh)
{
	const struct name_set *set = &name_set_dev;

	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_STATE,
		      fake.enforced ? RISO_DEV_ENFORCE : RISO_DEV_OBSERVE);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_CTRL, fake.ctrl);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_MAX_RATE, MAX_RATE);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_SAFE_UTIL, OWN_UTIL);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_TARGET99_NS, fake.target99);
}

static void put_budget(struct nlmsghdr *nlh)
{
	const struct name_set *set = &name_set_budget;

	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_AGENT_PID,
		      is_lent() ? fake.lent.pid : 0);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, in_force());
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_TARGET99_NS,
		      is_lent() ? fake.lent.target99_ns : 0);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS,
		      fake.groups[RISO_CLASS_LATENCY]);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS,
		      fake.groups[RISO_CLASS_BANDWIDTH]);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS,
		      fake.groups[RISO_CLASS_THROUGHPUT]);
}

static int set_budget(const struct nlattr **attrs)
{
	const struct name_set *set = &name_set_budget;
	const struct nlattr * const *a = attrs;
	struct lent l = {
		.lease_ns = nl_number(a, RDMA_ISOLATE_A_BUDGET_LEASE_NS, set),
		.safe_util = nl_number(a, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, set),
		.pid = nl_number(a, RDMA_ISOLATE_A_BUDGET_AGENT_PID, set),
		.state = nl_number(a, RDMA_ISOLATE_A_BUDGET_CTRL_STATE, set),
		.target99_ns = nl_number(a, RDMA_ISOLATE_A_BUDGET_TARGET99_NS, set),
		.current99_ns = nl_number(a, RDMA_ISOLATE_A_BUDGET_CURRENT99_NS, set),
	};

	fake.sets++;
	assert_in_range(l.safe_util, RDMA_ISOLATE_RATE_MIN, MAX_RATE);
	if (is_lent() && fake.lent.pid == OTHER && fake.alive)
		return -EBUSY;
	if (!fake.first.pid)
		fake.first = l;
	if (l.safe_util < in_force()) {
		if (fake.less_ns && fake.now - fake.less_ns < fake.least_gap_ns)
			fake.least_gap_ns = fake.now - fake.less_ns;
		fake.less_ns = fake.now;
	}
	fake.lent = l;
	fake.lease_end = fake.now + l.lease_ns;
	return 0;
}

int nl_send(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data)
{
	const struct nlattr *got[NL_ATTRS_MAX] = { NULL }, *said[NL_ATTRS_MAX] = { NULL };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(nl->answer);

	attrs_of((const struct nlmsghdr *)nl->request, got);
	assert_string_equal(mnl_attr_get_str(got[set == &name_set_dev ?
						 RDMA_ISOLATE_A_DEV_NAME :
						 RDMA_ISOLATE_A_BUDGET_DEV]), dev.name);
	if (nl->cmd == RDMA_ISOLATE_CMD_BUDGET_SET)
		return set_budget(got);
	if (nl->cmd == RDMA_ISOLATE_CMD_DEV_GET)
		put_dev(nlh);
	else
		put_budget(nlh);
	fake.asked++;
	attrs_of(nlh, said);
	reply(said, nlh, data);
	return 0;
}

/* --- the peers --- */

int probe_open(struct probe *p)
{
	unsigned int i = 0;

	while (fake.peers[i])
		i++;
	assert_in_range(i, 0, PEERS - 1);
	fake.peers[i] = p;
	return 0;
}

void probe_close(struct probe *p)
{
	unsigned int i;

	for (i = 0; i < PEERS; i++)
		if (fake.peers[i] == p)
			fake.peers[i] = NULL;
}

static void completes(unsigned int i)
{
	struct probe *p = fake.peers[i];
	uint64_t ns = fake.now - p->posted_ns;

	fake.done[i] = 0;
	p->posted_ns = 0;
	p->sample(p, ns);
}

void probe_send(struct probe *p, uint64_t now)
{
	unsigned int i = fake.peers[1] == p;

	if (!p->ready || p->posted_ns)
		return;
	p->posted_ns = now;
	p->sent++;
	fake.done[i] = fake.hangs ? 0 : now + fake.latency(i);
	if (!p->spin_ns)
		return;
	if (!fake.done[i] || fake.done[i] > now + p->spin_ns) {
		fake.now = now + p->spin_ns;
		return;
	}
	fake.now = fake.done[i];
	completes(i);
}

/* For so long; the timer and completions at their times */
static void run(uint64_t ns)
{
	uint64_t end = fake.now + ns;

	for (;;) {
		int i, next = -1;

		for (i = 0; i < PEERS; i++)
			if (fake.done[i] &&
			    (next < 0 || fake.done[i] < fake.done[next]))
				next = i;
		if (next >= 0 && fake.done[next] <= end &&
		    (!fake.at || fake.done[next] < fake.at)) {
			fake.now = fake.done[next];
			completes(next);
		} else if (fake.at && fake.at <= end) {
			fake.now = fake.at;
			fake.at = 0;
			fake.timer->ready(fake.timer);
		} else {
			break;
		}
	}
	if (fake.now < end)
		fake.now = end;
}

/* --- what latencies may follow --- */

static uint64_t short_one(unsigned int peer)
{
	(void)peer;
	return 10 * US;
}

/* Nobody here can do anything about it. */
static uint64_t always_long(unsigned int peer)
{
	(void)peer;
	return 3 * TARGET;
}

/* It gets better here, but never good. */
static uint64_t half_as_long(unsigned int peer)
{
	(void)peer;
	return 2 * TARGET + 2 * TARGET * in_force() / MAX_RATE;
}

/* The target is met up to 60 % of MaxRate. */
static uint64_t has_a_knee(unsigned int peer)
{
	(void)peer;
	return in_force() > MAX_RATE / 10 * 6 ? 2 * TARGET : 10 * US;
}

/* --- tests --- */

static struct nl nl;
static struct steer *st;

static int set_up(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.now = START;
	fake.enforced = true;
	fake.ctrl = RISO_CTRL_AUTO;
	fake.target99 = TARGET;
	fake.latency = short_one;
	fake.least_gap_ns = SEC;
	conf = (struct conf) {
		.ref_period_ns = PERIOD, .window = 10000, .short_window = 200,
		.lease_ns = SEC,
	};
	dev = (struct conf_dev) {
		.name = "fake0", .n_peers = 1, .delta_ns = 5 * SEC,
	};
	return 0;
}

static void groups(uint32_t l, uint32_t b, uint32_t t)
{
	fake.groups[RISO_CLASS_LATENCY] = l;
	fake.groups[RISO_CLASS_BANDWIDTH] = b;
	fake.groups[RISO_CLASS_THROUGHPUT] = t;
}

static void connect_all(void)
{
	unsigned int i;

	for (i = 0; i < PEERS; i++)
		if (fake.peers[i])
			fake.peers[i]->ready = true;
}

static void start(uint32_t l, uint32_t b, uint32_t t)
{
	groups(l, b, t);
	st = steer_open(&nl, &conf, &dev);
	assert_non_null(st);
	connect_all();
}

static int all_ends(void **state)
{
	(void)state;
	steer_close(st);
	return fake.timer || fake.peers[0] || fake.peers[1];
}

/* No latency flow: MaxRate, and no message; renewed in time */
static void opens(void **state)
{
	(void)state;
	start(0, 1, 1);
	run(10 * SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_OPEN);
	assert_int_equal(fake.lent.safe_util, MAX_RATE);
	assert_int_equal(fake.lent.lease_ns, SEC);
	assert_in_range(fake.sets, 30, 32);
	assert_int_equal(fake.peers[0]->sent, 0);

	/* and none where it does not steer */
	groups(1, 1, 1);
	fake.ctrl = RISO_CTRL_MANUAL;
	run(10 * SEC);
	fake.ctrl = RISO_CTRL_AUTO;
	fake.enforced = false;
	run(10 * SEC);
	assert_in_range(fake.sets, 30, 32);
	assert_int_equal(fake.peers[0]->sent, 0);
}

/* As much as meets the target */
static void steers(void **state)
{
	(void)state;
	fake.latency = has_a_knee;
	start(1, 0, 1);
	run(10 * SEC);
	assert_in_range(fake.lent.safe_util, MAX_RATE / 100 * 51, MAX_RATE / 100 * 61);
	assert_int_equal(fake.lent.target99_ns, TARGET);
	assert_in_range(fake.lent.current99_ns, 10 * US, 2 * TARGET + TARGET / 32);
	assert_in_range(fake.peers[0]->sent, 10 * SEC / PERIOD / 10 * 9,
			10 * SEC / PERIOD / 10 * 11);
}

/* The same where the answer is there before the tick has ended */
static void steers_spinning(void **state)
{
	conf.spin_ns = 2 * TARGET;
	steers(state);
}

/* Not before the short window can have forgotten */
static void at_the_pace_of_the_short_window(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 1; i <= 2; i++) {
		set_up(NULL);
		conf.short_window = 200 * i;
		fake.latency = always_long;
		start(9, 1, 0);
		run(SEC);
		assert_in_range(fake.least_gap_ns, i * 125 * MS, i * 125 * MS + 10 * MS);
		if (i == 1)
			all_ends(NULL);
	}
}

static void unattainable(uint64_t what, uint64_t delta_ns, uint64_t util)
{
	dev.unattainable = what;
	dev.delta_ns = delta_ns;
	fake.latency = half_as_long;
	start(1, 1, 0);
	run(delta_ns);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	run(SEC / 2);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_UNATTAINABLE);
	assert_int_equal(fake.lent.safe_util, util);
}

static void keeps(void **state)
{
	(void)state;
	unattainable(CONF_KEEP, 2 * SEC, MAX_RATE / 2);
}

static void gives_up(void **state)
{
	(void)state;
	unattainable(CONF_GIVE_UP, 8 * SEC, MAX_RATE);
}

static void not_local(uint64_t what, uint64_t util)
{
	dev.not_local = what;
	fake.latency = always_long;
	start(1, 1, 0);
	run(5 * SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NOT_LOCAL);
	assert_int_equal(fake.lent.safe_util, util);
}

static void recovers(void **state)
{
	(void)state;
	not_local(CONF_RECOVER, MAX_RATE);
}

static void stays(void **state)
{
	(void)state;
	not_local(CONF_STAY, MAX_RATE / 2);
}

/* It halves at each sample, and asks nobody whether that helps. */
static void paper(void **state)
{
	(void)state;
	conf.law = CONF_LAW_PAPER;
	fake.latency = always_long;
	start(3, 1, 0);
	run(60 * MS);
	assert_int_equal(fake.lent.safe_util, MAX_RATE / 4);
	run(4 * SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	assert_int_equal(fake.lent.safe_util, MAX_RATE / 4);
}

/* It has a second to connect. */
static void no_peer(void **state)
{
	(void)state;
	groups(1, 1, 1);
	st = steer_open(&nl, &conf, &dev);
	run(SEC - 10 * MS);
	assert_int_equal(fake.sets, 0);
	run(30 * MS);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NO_PEER);
	assert_int_equal(fake.lent.safe_util, OWN_UTIL);
	connect_all();
	run(SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	assert_int_equal(fake.lent.safe_util, MAX_RATE);
}

/* What is out counts as it is, until nobody believes in an answer any more. */
static void hangs(void **state)
{
	(void)state;
	start(1, 1, 0);
	run(SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	fake.hangs = true;
	run(300 * MS);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	assert_true(fake.lent.safe_util < MAX_RATE / 10 * 9);
	run(SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NO_PEER);
	assert_int_equal(fake.lent.safe_util, OWN_UTIL);
}

/* What was measured before a pause says nothing of now. */
static void forgets(void **state)
{
	(void)state;
	fake.latency = always_long;
	start(1, 1, 0);
	run(SEC);
	groups(0, 1, 0);
	run(3 * SEC);
	assert_int_equal(fake.lent.safe_util, MAX_RATE);
	groups(1, 1, 0);
	fake.latency = short_one;
	steer_look(st);
	run(SEC / 2);
	assert_int_equal(fake.lent.safe_util, MAX_RATE);
	assert_in_range(fake.lent.current99_ns, 10 * US, 11 * US);
}

static uint64_t second_is_long(unsigned int peer)
{
	return peer ? 3 * TARGET : 10 * US;
}

static uint64_t first_is_long(unsigned int peer)
{
	return peer ? 10 * US : 3 * TARGET;
}

/* Enough for the 99th of the short window, and for nothing else */
static uint64_t first_has_spikes(unsigned int peer)
{
	static unsigned int i;

	return !peer && ++i % 40 == 0 ? 3 * TARGET : 10 * US;
}

/* The worst counts, and only what is its own: no peer misses the target in the end. */
static void two_peers(void **state)
{
	uint64_t less_ns, util;

	(void)state;
	dev.n_peers = 2;
	start(1, 1, 0);
	run(4 * SEC);
	assert_int_equal(fake.less_ns, 0);
	fake.latency = second_is_long;
	run(110 * MS);
	assert_true(fake.less_ns);
	fake.latency = short_one;
	run(400 * MS);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_TRACKING);
	assert_in_range(fake.lent.current99_ns, 3 * TARGET, 4 * TARGET);
	less_ns = fake.less_ns;
	util = fake.lent.safe_util;
	fake.latency = first_has_spikes;
	run(200 * MS);
	fake.latency = short_one;
	run(SEC);
	assert_int_equal(fake.less_ns, less_ns);
	assert_true(fake.lent.safe_util > util);
	fake.latency = first_is_long;
	run(30 * MS);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_MISSED);
	assert_in_range(fake.peers[1]->sent, fake.peers[0]->sent - 1,
			fake.peers[0]->sent + 1);
}

/* One that has died has left that. */
static void leaves(uint64_t safe_util, uint64_t target99_ns)
{
	fake.lent = (struct lent) {
		.safe_util = safe_util, .target99_ns = target99_ns, .pid = OTHER,
	};
	fake.lease_end = fake.now + SEC;
}

/* A living one is followed without a word, until it is no more. */
static void does_not_push(void **state)
{
	unsigned int i;

	(void)state;
	fake.alive = true;
	start(1, 1, 0);
	leaves(MAX_RATE / 10 * 7, TARGET);
	for (i = 0; i < 100; i++) {
		fake.lease_end = fake.now + SEC;
		run(SEC / 10);
	}
	assert_int_equal(fake.sets, 1);
	fake.lent.safe_util = MAX_RATE / 10 * 6;
	run(SEC / 10 * 9 - 10 * MS);
	assert_int_equal(fake.sets, 1);
	run(SEC / 5);
	assert_in_range(fake.first.safe_util, MAX_RATE / 10 * 6, MAX_RATE / 100 * 61);
	assert_int_equal(fake.lent.pid, getpid());

	/* Another one came while this was stopped. */
	fake.now += 2 * SEC;
	leaves(MAX_RATE / 10 * 7, TARGET);
	fake.sets = 0;
	run(SEC - 10 * MS);
	assert_in_range(fake.sets, 1, 2);
	run(SEC / 5);
	assert_int_equal(fake.lent.pid, getpid());
}

static void takes_over(void **state)
{
	(void)state;
	leaves(MAX_RATE / 10 * 6, 4 * 20 * US);
	fake.target99 = RDMA_ISOLATE_AUTO;
	start(1, 1, 0);
	run(SEC / 5);
	assert_int_equal(fake.first.safe_util, MAX_RATE / 10 * 6);
	assert_in_range(fake.first.target99_ns, 80 * US, 81 * US);
	assert_int_equal(fake.lent.pid, getpid());
}

/* Nothing is known of the target but when there is nothing else. */
static void finds_a_target(void **state)
{
	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	dev.not_local = CONF_STAY;
	start(1, 1, 0);
	run(SEC);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NONE);
	assert_int_equal(fake.lent.safe_util, OWN_UTIL);
	groups(1, 0, 0);
	run(SEC);
	assert_in_range(fake.lent.target99_ns, 40 * US, 41 * US);
	groups(1, 0, 1);
	fake.latency = always_long;
	run(SEC);
	assert_in_range(fake.lent.target99_ns, 40 * US, 41 * US);
	assert_true(fake.lent.safe_util < MAX_RATE);
}

static uint64_t wakes_up_late(unsigned int peer)
{
	(void)peer;
	return fake.now % (20 * MS) < MS ? 100 * TARGET : 10 * US;
}

/* Not even when that is what was measured last before bulk comes */
static void keeps_the_target(void **state)
{
	unsigned int i;

	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	start(1, 0, 0);
	for (i = 0; i < 2; i++) {
		groups(1, 0, 0);
		fake.latency = short_one;
		run(SEC);
		fake.latency = wakes_up_late;
		run(300 * MS);
		assert_true(fake.lent.current99_ns > 10 * TARGET);
		groups(1, 1, 0);
		run(SEC);
		assert_in_range(fake.lent.target99_ns, 40 * US, 41 * US);
	}
	/* It is another one when it is so for long. */
	groups(1, 0, 0);
	fake.latency = always_long;
	run(11 * SEC);
	assert_in_range(fake.lent.target99_ns, 12 * TARGET, 12 * TARGET + 12 * TARGET / 128);
}

static void gives_back(void **state)
{
	(void)state;
	start(1, 1, 0);
	run(SEC);
	assert_int_equal(fake.lent.safe_util, MAX_RATE);
	steer_give_back(st);
	steer_close(st);
	assert_int_equal(fake.lent.lease_ns, RDMA_ISOLATE_LEASE_MIN);
	assert_int_equal(fake.lent.safe_util, OWN_UTIL);
	assert_int_equal(fake.lent.state, RISO_CTRL_STATE_NONE);
	/* nothing if nothing was lent */
	fake.sets = 0;
	fake.enforced = false;
	start(1, 1, 0);
	run(SEC);
	steer_give_back(st);
	steer_close(st);
	assert_int_equal(fake.sets, 0);
}

/* Or it is left to the next one, with the target that was found. */
static void goes_on(void **state)
{
	struct lent last;

	(void)state;
	fake.target99 = RDMA_ISOLATE_AUTO;
	dev.not_local = CONF_STAY;
	start(1, 0, 0);
	run(SEC);
	groups(1, 1, 0);
	fake.latency = half_as_long;
	run(3 * SEC);
	last = fake.lent;
	assert_int_equal(last.safe_util, MAX_RATE / 2);
	steer_close(st);
	memset(&fake.first, 0, sizeof(fake.first));
	conf.law = CONF_LAW_PAPER;
	start(1, 1, 0);
	run(SEC / 10);
	assert_int_equal(fake.first.safe_util, last.safe_util);
	assert_int_equal(fake.first.target99_ns, last.target99_ns);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, all_ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(opens),
		CASE(steers),
		CASE(steers_spinning),
		CASE(at_the_pace_of_the_short_window),
		CASE(keeps),
		CASE(gives_up),
		CASE(recovers),
		CASE(stays),
		CASE(paper),
		CASE(no_peer),
		CASE(hangs),
		CASE(forgets),
		CASE(two_peers),
		CASE(does_not_push),
		CASE(takes_over),
		CASE(finds_a_target),
		CASE(keeps_the_target),
		CASE(goes_on),
		cmocka_unit_test_setup(gives_back, set_up),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_steer", tests, NULL, NULL);
}
