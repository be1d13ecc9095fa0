// SPDX-License-Identifier: GPL-2.0
/*
 * The module, the peers and the time of fake_steer.h.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/genetlink.h>

#include "fake_steer.h"
#include "minmax.h"

#define START (100 * SEC)

struct fake_steer fake;
struct conf fake_conf;
struct conf_dev fake_dev;
struct steer *fake_st;

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

struct nl fake_nl;

struct nlmsghdr *nl_request(struct nl *nl, uint8_t cmd, bool dump)
{
	assert_false(dump);
	nl->cmd = cmd;
	return mnl_nlmsg_put_header(nl->request);
}

static bool is_lent(void)
{
	return fake.lent.pid && fake.now < fake.lease_end;
}

uint64_t fake_in_force(void)
{
	return is_lent() ? fake.lent.safe_util : FAKE_OWN_UTIL;
}

uint32_t fake_chunk_in_force(void)
{
	uint32_t chunk = is_lent() ? fake.lent.chunk : fake.chunk;

	return chunk == RDMA_ISOLATE_AUTO ? FAKE_AUTO_CHUNK : chunk;
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
		      fake.enabled ? RISO_DEV_ENABLE : RISO_DEV_OBSERVE);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_CTRL, fake.ctrl);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_MAX_RATE, FAKE_MAX_RATE);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_BELIEVED_RATE, FAKE_MAX_RATE);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_SAFE_UTIL, FAKE_OWN_UTIL);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_CHUNK_BYTES, fake.chunk);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_DEV_TARGET99_NS, fake.target99);
}

static void put_budget(struct nlmsghdr *nlh)
{
	const struct name_set *set = &name_set_budget;

	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_AGENT_PID,
		      is_lent() ? fake.lent.pid : 0);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, fake_in_force());
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES, fake_chunk_in_force());
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
	struct fake_lent l = {
		.lease_ns = nl_number(a, RDMA_ISOLATE_A_BUDGET_LEASE_NS, set),
		.safe_util = nl_number(a, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, set),
		.chunk = nl_number(a, RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES, set),
		.pid = nl_number(a, RDMA_ISOLATE_A_BUDGET_AGENT_PID, set),
		.state = nl_number(a, RDMA_ISOLATE_A_BUDGET_CTRL_STATE, set),
		.target99_ns = nl_number(a, RDMA_ISOLATE_A_BUDGET_TARGET99_NS, set),
		.current99_ns = nl_number(a, RDMA_ISOLATE_A_BUDGET_CURRENT99_NS, set),
		.peer_latency = nl_number(a, RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS, set),
	};

	fake.sets++;
	assert_in_range(l.safe_util, RDMA_ISOLATE_RATE_MIN, FAKE_MAX_RATE);
	if (is_lent() && fake.lent.pid == FAKE_OTHER && fake.alive)
		return -EBUSY;
	if (!fake.first.pid)
		fake.first = l;
	if (l.safe_util < fake_in_force()) {
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
						 RDMA_ISOLATE_A_DEV_DEV :
						 RDMA_ISOLATE_A_BUDGET_DEV]), fake_dev.name);
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
	assert_in_range(i, 0, FAKE_PEERS - 1);
	fake.peers[i] = p;
	return 0;
}

void probe_close(struct probe *p)
{
	unsigned int i;

	for (i = 0; i < FAKE_PEERS; i++)
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
void fake_run(uint64_t ns)
{
	uint64_t end = fake.now + ns;

	for (;;) {
		int i, next = -1;

		for (i = 0; i < FAKE_PEERS; i++)
			if (fake.done[i] &&
			    (next < 0 || fake.done[i] < fake.done[next]))
				next = i;
		if (next >= 0 && fake.done[next] <= end &&
		    (!fake.at || fake.done[next] < fake.at)) {
			fake.now = max_u64(fake.now, fake.done[next]);
			completes(next);
		} else if (fake.at && fake.at <= end) {
			fake.now = max_u64(fake.now, fake.at);
			fake.at = 0;
			fake.timer->ready(fake.timer);
		} else {
			break;
		}
	}
	if (fake.now < end)
		fake.now = end;
}

/* --- other agents --- */

struct exchange {
	unsigned int peers;
};

static struct exchange exchange;

struct exchange *exchange_open(struct nl *nl, const struct conf *conf, const char *dev)
{
	(void)nl;
	(void)conf;
	(void)dev;
	exchange.peers = 0;
	return &exchange;
}

void exchange_close(struct exchange *ex)
{
	(void)ex;
}

void exchange_add_peer(struct exchange *ex, struct probe *probe)
{
	(void)probe;
	ex->peers++;
}

void exchange_note(struct exchange *ex, unsigned int peer, uint64_t current99_ns,
		   uint64_t target99_ns, bool not_local)
{
	assert_in_range(peer, 0, ex->peers - 1);
	fake.noted[peer].current99_ns = current99_ns;
	fake.noted[peer].target99_ns = target99_ns;
	fake.noted[peer].not_local = not_local;
}

bool exchange_is_shared(const struct exchange *ex, uint64_t now)
{
	(void)ex;
	(void)now;
	return fake.shared;
}

bool exchange_is_elsewhere(const struct exchange *ex, unsigned int peer, uint64_t now)
{
	(void)now;
	assert_in_range(peer, 0, ex->peers - 1);
	return fake.elsewhere[peer];
}

uint32_t exchange_latency(const struct exchange *ex)
{
	(void)ex;
	return fake.peer_latency;
}

uint64_t exchange_reserved(const struct exchange *ex)
{
	(void)ex;
	return fake.reserved;
}

uint64_t exchange_target(const struct exchange *ex)
{
	(void)ex;
	return fake.peer_latency ? FAKE_TARGET : 0;
}

bool exchange_complain(const struct exchange *ex, uint64_t target99_ns, struct aimd_input *in)
{
	(void)ex;
	if (!fake.peer_latency)
		return false;
	assert_int_equal(target99_ns, FAKE_TARGET);
	aimd_blame(in, fake_in_force() > fake.complaint_util ? 2 * FAKE_TARGET :
							      FAKE_TARGET / 2);
	return true;
}

uint64_t exchange_step(struct exchange *ex, const struct exchange_view *v)
{
	unsigned int i;

	fake.lists++;
	for (i = 0; i < ex->peers; i++)
		fake.lists_while_out += !!fake.peers[i]->posted_ns;
	fake.now += fake.list_ns;
	return v->now_ns + (fake.list_ns ? 20 * MS : fake_conf.lease_ns / 3);
}

/* --- what latencies may follow --- */

uint64_t fake_short_one(unsigned int peer)
{
	(void)peer;
	return 10 * US;
}

/* Nobody here can do anything about it. */
uint64_t fake_always_long(unsigned int peer)
{
	(void)peer;
	return 3 * FAKE_TARGET;
}

/* It gets better here, but never good. */
uint64_t fake_half_as_long(unsigned int peer)
{
	(void)peer;
	return 2 * FAKE_TARGET + 2 * FAKE_TARGET * fake_in_force() / FAKE_MAX_RATE;
}

/* --- a case --- */

int fake_set_up(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.now = START;
	fake.enabled = true;
	fake.ctrl = RISO_CTRL_AUTO;
	fake.target99 = FAKE_TARGET;
	fake.chunk = RDMA_ISOLATE_AUTO;
	fake.latency = fake_short_one;
	fake.least_gap_ns = SEC;
	fake_conf = (struct conf) {
		.ref_period_ns = FAKE_PERIOD, .window = 10000, .short_window = 200,
		.lease_ns = SEC,
	};
	fake_dev = (struct conf_dev) {
		.name = "fake0", .n_peers = 1, .delta_ns = 5 * SEC,
	};
	return 0;
}

void fake_groups(uint32_t l, uint32_t b, uint32_t t)
{
	fake.groups[RISO_CLASS_LATENCY] = l;
	fake.groups[RISO_CLASS_BANDWIDTH] = b;
	fake.groups[RISO_CLASS_THROUGHPUT] = t;
}

void fake_connect_all(void)
{
	unsigned int i;

	for (i = 0; i < FAKE_PEERS; i++)
		if (fake.peers[i])
			fake.peers[i]->ready = true;
}

void fake_start(uint32_t l, uint32_t b, uint32_t t)
{
	fake_groups(l, b, t);
	fake_st = steer_open(&fake_nl, &fake_conf, &fake_dev);
	assert_non_null(fake_st);
	fake_connect_all();
}

int fake_all_ends(void **state)
{
	(void)state;
	steer_close(fake_st);
	return fake.timer || fake.peers[0] || fake.peers[1];
}
