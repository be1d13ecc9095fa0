// SPDX-License-Identifier: GPL-2.0
/*
 * The module, the clock and the other agents of fake_exchange.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <linux/genetlink.h>

#include "fake_exchange.h"
#include "minmax.h"
#include "serve.h"

#define DEV "fake0"
#define HERE "10.0.0.1"

enum { CHUNK = 4096 };

struct fake_exchange fake;
struct conf fake_conf;
struct exchange *fake_ex;
struct exchange_view fake_view;
const char * const fake_peer_name[FAKE_PEERS] = { "10.0.0.2", "10.0.0.3" };

/* --- the clock, and what is logged --- */

uint64_t now_ns(void)
{
	return fake.now;
}

void log_line(const char *fmt, ...)
{
	(void)fmt;
	fake.logged++;
}

/* --- the module --- */

struct nl {
	uint8_t cmd;
	bool dump;
	char request[1024];
	char answer[1024];
};

static struct nl nl;

struct nlmsghdr *nl_request(struct nl *on, uint8_t cmd, bool dump)
{
	on->cmd = cmd;
	on->dump = dump;
	return mnl_nlmsg_put_header(on->request);
}

static void attrs_of(const struct nlmsghdr *nlh, const struct nlattr **attrs)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, 0)
		attrs[mnl_attr_get_type(attr)] = attr;
}

/* As the module does: IPv4 as mapped in IPv6 */
static void put_peer(struct nlmsghdr *nlh, uint16_t attr, const char *name)
{
	char text[INET6_ADDRSTRLEN];

	snprintf(text, sizeof(text), "::ffff:%s", name);
	mnl_attr_put_strz(nlh, attr, text);
}

static void answer(nl_reply_fn reply, void *data)
{
	const struct nlattr *attrs[NL_ATTRS_MAX] = { NULL };
	struct nlmsghdr *nlh = (struct nlmsghdr *)nl.answer;

	attrs_of(nlh, attrs);
	reply(attrs, nlh, data);
}

static void list_paths(nl_reply_fn reply, void *data)
{
	const struct name_set *set = &name_set_path;
	unsigned int i, dir;

	for (i = 0; i < FAKE_PEERS; i++) {
		for (dir = 0; dir < 2; dir++) {
			const struct fake_path *p = &fake.path[i][dir];
			struct nlmsghdr *nlh = mnl_nlmsg_put_header(nl.answer);

			if (!p->there)
				continue;
			put_peer(nlh, RDMA_ISOLATE_A_PATH_PEER, fake_peer_name[i]);
			nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_DIR, dir);
			nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_RATE, p->rate);
			nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_LEASE_NS, p->lease);
			nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_BYTES, p->bytes);
			nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_WAITS, p->waits);
			answer(reply, data);
		}
	}
}

static void list_flows(nl_reply_fn reply, void *data)
{
	const struct name_set *set = &name_set_flow;
	unsigned int i;

	fake.listed++;
	for (i = 0; i < fake.flows; i++) {
		const struct fake_flow *f = &fake.flow[i];
		struct nlmsghdr *nlh = mnl_nlmsg_put_header(nl.answer);

		if (f->peer)
			put_peer(nlh, RDMA_ISOLATE_A_FLOW_PEER, f->peer);
		nl_put_number(nlh, set, RDMA_ISOLATE_A_FLOW_GROUP, f->group);
		nl_put_number(nlh, set, RDMA_ISOLATE_A_FLOW_CLASS, f->class);
		nl_put_number(nlh, set, RDMA_ISOLATE_A_FLOW_QP_STATE, f->state);
		nl_put_number(nlh, set, RDMA_ISOLATE_A_FLOW_PID, f->pid);
		answer(reply, data);
	}
}

static void list_groups(nl_reply_fn reply, void *data)
{
	const struct name_set *set = &name_set_group;
	struct nlmsghdr *nlh;
	unsigned int id;

	/* In no order */
	for (id = FAKE_GROUPS; id--;) {
		nlh = mnl_nlmsg_put_header(nl.answer);
		nl_put_number(nlh, set, RDMA_ISOLATE_A_GROUP_ID, id);
		nl_put_number(nlh, set, RDMA_ISOLATE_A_GROUP_USED_NS, fake.group[id].used_ns);
		nl_put_number(nlh, set, RDMA_ISOLATE_A_GROUP_RX_BYTES, fake.group[id].read);
		answer(reply, data);
	}
}

static int set_path(void)
{
	const struct name_set *set = &name_set_path;
	const struct nlattr *a[NL_ATTRS_MAX] = { NULL };
	const struct nlattr * const *got = a;
	struct fake_path *p;
	unsigned int i;

	attrs_of((struct nlmsghdr *)nl.request, a);
	assert_string_equal(mnl_attr_get_str(a[RDMA_ISOLATE_A_PATH_DEV]), DEV);
	fake.sets++;
	for (i = 0; i < FAKE_PEERS; i++)
		if (!strcmp(fake_peer_name[i], mnl_attr_get_str(a[RDMA_ISOLATE_A_PATH_PEER])))
			break;
	assert_in_range(i, 0, FAKE_PEERS - 1);
	if (fake.refuses[i])
		return -ENOSPC;
	p = &fake.path[i][nl_number(got, RDMA_ISOLATE_A_PATH_DIR, set)];
	p->rate = nl_number(got, RDMA_ISOLATE_A_PATH_RATE, set);
	p->cut = nl_number(got, RDMA_ISOLATE_A_PATH_CUT, set);
	p->lease = nl_number(got, RDMA_ISOLATE_A_PATH_LEASE_NS, set);
	assert_int_equal(p->lease, FAKE_LEASE);
	p->there = p->rate;
	assert_true(!p->rate || (p->rate >= RDMA_ISOLATE_RATE_MIN && p->rate <= FAKE_RATE));
	assert_true(p->rate || !p->cut);
	return 0;
}

int nl_send(struct nl *on, const struct name_set *set, nl_reply_fn reply, void *data)
{
	(void)set;
	(void)data;
	assert_false(on->dump || reply);
	assert_int_equal(on->cmd, RDMA_ISOLATE_CMD_PATH_SET);
	return set_path();
}

int nl_begin(struct nl *on)
{
	assert_true(on->dump);
	return 0;
}

int nl_part(struct nl *on, const struct name_set *set, nl_reply_fn reply, void *data)
{
	(void)set;
	switch (on->cmd) {
	case RDMA_ISOLATE_CMD_PATH_GET:
		fake.asked++;
		list_paths(reply, data);
		return 0;
	case RDMA_ISOLATE_CMD_FLOW_GET:
		list_flows(reply, data);
		return 0;
	default:
		assert_int_equal(on->cmd, RDMA_ISOLATE_CMD_GROUP_GET);
		list_groups(reply, data);
		return 0;
	}
}

/* --- other agents --- */

const char *talk_hear(struct talk *t, const uint8_t *to, const uint8_t *key, uint64_t now)
{
	(void)key;
	/* A case writes what comes, with the time of it. */
	assert_int_equal(to[15], 1);
	assert_true(t->last_ns <= now);
	return fake.wrong;
}

bool talk_holds(const struct talk *t, uint64_t now)
{
	return t->last_ns && now - t->last_ns < t->last.lease_ns;
}

int talk_say(struct talk *t, struct ibv_qp *qp, const struct peer_record *r, const uint8_t *key,
	     uint64_t now)
{
	(void)qp;
	(void)key;
	t->told = *r;
	t->told_ns = now;
	return 0;
}

int probe_say(struct probe *p, const struct peer_record *r, const uint8_t *key)
{
	assert_true(p->ready);
	fake.num_said++;
	fake.said[p - fake.probe] = *r;
	return talk_say(&p->talk, NULL, r, key, fake.now);
}

void serve_talk(serve_fn fn, void *arg)
{
	unsigned int i;

	for (i = 0; i < fake.guests; i++)
		fn(arg, &fake.guest_id[i], &fake.guest[i]);
}

struct ibv_context *cm_device(const char *name)
{
	assert_string_equal(name, DEV);
	return &fake.device;
}

static void set_address(struct sockaddr_storage *to, const char *name)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	in->sin_family = AF_INET;
	assert_int_equal(inet_pton(AF_INET, name, &in->sin_addr), 1);
}

void fake_answers(unsigned int i, uint64_t may_send, bool full)
{
	fake.probe[i].talk.last = (struct peer_record) {
		.may_send = may_send, .may_read = RECORD_UNLIMITED, .cut = full, .misses = full,
		.lease_ns = FAKE_LEASE,
	};
	fake.probe[i].talk.last_ns = fake.now;
}

void fake_tells(unsigned int i, struct peer_record r)
{
	r.lease_ns = FAKE_LEASE;
	fake.guest[i].last = r;
	fake.guest[i].last_ns = fake.now;
	fake.guests = max_u64(fake.guests, i + 1);
}

uint64_t fake_may_send(unsigned int i)
{
	return fake.guest[i].told_ns ? min_u64(fake.guest[i].told.may_send, FAKE_RATE) :
				       FAKE_RATE;
}

void fake_guest_comes_from(unsigned int i, const char *name)
{
	set_address(&fake.guest_id[i].route.addr.dst_storage, name);
}

void fake_guest_goes_to(unsigned int i, const char *name)
{
	set_address(&fake.guest_id[i].route.addr.src_storage, name);
}

/* --- a case --- */

static void add_peer(unsigned int i)
{
	static struct rdma_cm_id id[FAKE_PEERS];
	struct probe *p = &fake.probe[i];

	set_address((struct sockaddr_storage *)&p->peer, fake_peer_name[i]);
	snprintf(p->name, sizeof(p->name), "%s", fake_peer_name[i]);
	p->id = &id[i];
	p->ready = true;
	set_address(&id[i].route.addr.src_storage, HERE);
	exchange_add_peer(fake_ex, p);
}

int fake_set_up(void **state)
{
	char name[INET_ADDRSTRLEN];
	unsigned int i;

	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.now = 100 * SEC;
	fake_conf = (struct conf) {
		.lease_ns = FAKE_LEASE, .ref_period_ns = MS / 2, .short_window = 200,
	};
	fake_view = (struct exchange_view) {
		.bulk = 1, .max_rate = FAKE_RATE, .safe_util = FAKE_RATE, .chunk = CHUNK,
	};
	fake_ex = exchange_open(&nl, &fake_conf, DEV);
	assert_non_null(fake_ex);
	for (i = 0; i < FAKE_PEERS; i++)
		add_peer(i);
	for (i = 0; i < FAKE_GUESTS; i++) {
		fake.guest_id[i].verbs = &fake.device;
		set_address(&fake.guest_id[i].route.addr.src_storage, HERE);
		snprintf(name, sizeof(name), "10.0.0.%u", 9 + i);
		fake_guest_comes_from(i, name);
	}
	return 0;
}

int fake_all_ends(void **state)
{
	(void)state;
	exchange_close(fake_ex);
	return 0;
}

uint64_t fake_step(void)
{
	fake_view.now_ns = fake.now;
	return exchange_step(fake_ex, &fake_view);
}

void fake_run(uint64_t ns, uint64_t to_first, uint64_t all)
{
	uint64_t end = fake.now + ns;

	while (fake.now < end) {
		fake_step();
		fake.now += FAKE_STEP;
		fake.path[0][RISO_PATH_TX].bytes += to_first * FAKE_STEP / SEC;
		fake.group[0].used_ns += FAKE_STEP * all / FAKE_RATE;
	}
}

void fake_add_flow(const char *peer, uint32_t group, uint32_t class)
{
	fake.flow[fake.flows++] = (struct fake_flow) {
		.peer = peer, .group = group, .class = class, .state = FAKE_RTS, .pid = 1,
	};
}
