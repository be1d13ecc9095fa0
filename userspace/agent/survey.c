// SPDX-License-Identifier: GPL-2.0
/*
 * What a device sends to its peers and reads from them, as the module counts it.
 *
 * The module counts bytes of a path while that has a limit. How many groups have flows to a peer it
 * does not count: all flows of the device are listed for that, more seldom the more there are.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"
#include "minmax.h"
#include "survey.h"

#define GROUPS_NS (100 * MS)
/* What was used that long ago says nothing of what is used now. */
#define SMOOTH_NS (2 * GROUPS_NS)
/* A group that has posted nothing for so long takes no part, as the module has it. */
#define ACTIVE_NS SEC

enum {
	/* What all flows are listed for takes no more than this part of the time. */
	GROUPS_PART = 50,
	/* State of a queue pair that can send, as the kernel numbers it */
	STATE_RTS = 3,
};

/**
 * struct survey_flow - that a group has flows to a peer
 * @peer: index of the peer
 * @group: id of the group
 * @latency: they are of class latency
 */
struct survey_flow {
	uint32_t peer;
	uint32_t group;
	bool latency;
};

/**
 * struct survey_group - what a group has used
 * @id: of the group
 * @used_ns: device time, ns
 * @read: bytes
 * @active_ns: when it was seen to use more, 0 for never
 */
struct survey_group {
	uint32_t id;
	uint64_t used_ns;
	uint64_t read;
	uint64_t active_ns;
};

void survey_address(const struct sockaddr *sa, uint8_t *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (sa->sa_family == AF_INET6) {
		memcpy(addr, &((const struct sockaddr_in6 *)sa)->sin6_addr, SURVEY_ADDR);
		return;
	}
	memcpy(addr, mapped, sizeof(mapped));
	memcpy(addr + sizeof(mapped), &((const struct sockaddr_in *)sa)->sin_addr, 4);
}

/* Send a request for a list. What changes meanwhile is in the next one. */
static bool list(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data)
{
	int err = nl_begin(nl);

	if (err)
		return false;
	do
		err = nl_part(nl, set, reply, data);
	while (err > 0);
	return !err;
}

/* NULL if it is none of the peers */
static struct survey_peer *find_peer(struct survey *s, const struct nlattr *attr)
{
	uint8_t addr[SURVEY_ADDR];
	unsigned int i;

	if (!attr || inet_pton(AF_INET6, mnl_attr_get_str(attr), addr) != 1)
		return NULL;
	for (i = 0; i < s->num; i++)
		if (!memcmp(s->peer[i].addr, addr, sizeof(addr)))
			return &s->peer[i];
	return NULL;
}

static void note_rate(struct survey_rate *r, uint64_t total, uint64_t ns)
{
	/* It is less than before where a limit has gone. */
	uint64_t more = total > r->total ? total - r->total : 0;
	uint64_t per_sec;

	if (r->known && ns) {
		per_sec = (unsigned __int128)more * SEC / ns;
		/* What begins is known at once. */
		r->per_sec = r->per_sec && ns < SMOOTH_NS ? (r->per_sec + per_sec) / 2 : per_sec;
	}
	r->total = total;
	r->known = true;
}

/* --- paths --- */

/**
 * struct reading - what is read at a time
 * @s: the survey
 * @ns: since the time before, 0 if there was none
 */
struct reading {
	struct survey *s;
	uint64_t ns;
};

static void on_path(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	const struct name_set *set = &name_set_path;
	const struct reading *r = data;
	struct survey_peer *p = find_peer(r->s, attrs[RDMA_ISOLATE_A_PATH_PEER]);
	uint64_t dir = nl_number(attrs, RDMA_ISOLATE_A_PATH_DIR, set);
	struct survey_way *w;
	uint64_t waits;

	(void)nlh;
	if (!p || dir >= SURVEY_DIRS)
		return;
	w = &p->way[dir];
	w->seen = true;
	w->rate = nl_number(attrs, RDMA_ISOLATE_A_PATH_RATE, set);
	w->stays = !nl_number(attrs, RDMA_ISOLATE_A_PATH_LEASE_NS, set);
	waits = nl_number(attrs, RDMA_ISOLATE_A_PATH_WAITS, set);
	w->waiting = waits != w->waits;
	w->waits = waits;
	note_rate(&w->used, nl_number(attrs, RDMA_ISOLATE_A_PATH_BYTES, set), r->ns);
}

static bool read_paths(struct survey *s, uint64_t now)
{
	struct reading r = { .s = s, .ns = s->paths_ns ? now - s->paths_ns : 0 };
	struct nlmsghdr *nlh;
	unsigned int i, dir;

	for (i = 0; i < s->num; i++)
		for (dir = 0; dir < SURVEY_DIRS; dir++)
			s->peer[i].way[dir].seen = false;
	nlh = nl_request(s->nl, RDMA_ISOLATE_CMD_PATH_GET, true);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_PATH_DEV, s->dev);
	if (!list(s->nl, &name_set_path, on_path, &r))
		return false;
	for (i = 0; i < s->num; i++)
		for (dir = 0; dir < SURVEY_DIRS; dir++)
			if (!s->peer[i].way[dir].seen)
				s->peer[i].way[dir] = (struct survey_way) { 0 };
	s->paths_ns = now;
	return true;
}

/* --- flows and groups --- */

/* The same with room for one more, or NULL */
static void *with_room(void *items, size_t num, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 64;

	if (num < *room)
		return items;
	items = realloc(items, more * size);
	if (items)
		*room = more;
	return items;
}

static void on_flow(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	const struct name_set *set = &name_set_flow;
	struct survey *s = data;
	const struct survey_peer *p = find_peer(s, attrs[RDMA_ISOLATE_A_FLOW_PEER]);
	struct survey_flow *flow;

	(void)nlh;
	/* Reference flows are nobody's. */
	if (!p || nl_number(attrs, RDMA_ISOLATE_A_FLOW_QP_STATE, set) != STATE_RTS ||
	    nl_number(attrs, RDMA_ISOLATE_A_FLOW_PID, set) == (uint64_t)getpid())
		return;
	flow = with_room(s->flow, s->num_flows, &s->flow_room, sizeof(*flow));
	/* Then there seem to be fewer. */
	if (!flow)
		return;
	s->flow = flow;
	flow[s->num_flows++] = (struct survey_flow) {
		.peer = p - s->peer,
		.group = nl_number(attrs, RDMA_ISOLATE_A_FLOW_GROUP, set),
		.latency = nl_number(attrs, RDMA_ISOLATE_A_FLOW_CLASS, set) == RISO_CLASS_LATENCY,
	};
}

static void on_group(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	const struct name_set *set = &name_set_group;
	struct survey *s = data;
	struct survey_group *g;

	(void)nlh;
	g = with_room(s->fresh, s->num_fresh, &s->fresh_room, sizeof(*g));
	/* As above */
	if (!g)
		return;
	s->fresh = g;
	g[s->num_fresh++] = (struct survey_group) {
		.id = nl_number(attrs, RDMA_ISOLATE_A_GROUP_ID, set),
		.used_ns = nl_number(attrs, RDMA_ISOLATE_A_GROUP_USED_NS, set),
		.read = nl_number(attrs, RDMA_ISOLATE_A_GROUP_RX_BYTES, set),
	};
}

static int compare_flow(const void *a, const void *b)
{
	const struct survey_flow *x = a, *y = b;

	if (x->peer != y->peer)
		return x->peer < y->peer ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->latency - y->latency;
}

static int compare_group(const void *a, const void *b)
{
	const struct survey_group *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static const struct survey_group *find_group(const struct survey *s, uint32_t id)
{
	const struct survey_group key = { .id = id };

	return s->num_groups ? bsearch(&key, s->group, s->num_groups, sizeof(key), compare_group) :
			       NULL;
}

/* What groups have used since the time before; those that are gone have used nothing. */
static void take_groups(struct survey *s, uint64_t now)
{
	uint64_t used = s->busy.total, read = s->read.total;
	uint64_t ns = s->groups_ns ? now - s->groups_ns : 0;
	struct survey_group *group = s->group;
	size_t i, room = s->group_room;

	if (s->num_fresh)
		qsort(s->fresh, s->num_fresh, sizeof(*s->fresh), compare_group);
	for (i = 0; i < s->num_fresh; i++) {
		struct survey_group *g = &s->fresh[i];
		const struct survey_group *was = find_group(s, g->id);
		uint64_t more = g->used_ns - (was ? min_u64(was->used_ns, g->used_ns) : 0);

		g->active_ns = more ? now : was ? was->active_ns : 0;
		used += more;
		read += g->read - (was ? min_u64(was->read, g->read) : 0);
	}
	s->group = s->fresh;
	s->num_groups = s->num_fresh;
	s->group_room = s->fresh_room;
	s->fresh = group;
	s->num_fresh = 0;
	s->fresh_room = room;
	note_rate(&s->busy, used, ns);
	note_rate(&s->read, read, ns);
	s->groups_ns = now;
}

static bool is_active(const struct survey *s, uint32_t id)
{
	const struct survey_group *g = find_group(s, id);

	return g && g->active_ns && s->groups_ns - g->active_ns < ACTIVE_NS;
}

static void count_groups(struct survey *s)
{
	unsigned int i;
	size_t n;

	for (i = 0; i < s->num; i++) {
		s->peer[i].latency = 0;
		s->peer[i].bulk = 0;
	}
	if (s->num_flows)
		qsort(s->flow, s->num_flows, sizeof(*s->flow), compare_flow);
	for (n = 0; n < s->num_flows; n++) {
		const struct survey_flow *f = &s->flow[n];

		if (n && !compare_flow(f, f - 1))
			continue;
		if (f->latency)
			s->peer[f->peer].latency++;
		else
			s->peer[f->peer].bulk += is_active(s, f->group);
	}
}

static bool read_groups(struct survey *s, uint64_t now)
{
	struct nlmsghdr *nlh;

	s->num_flows = 0;
	s->num_fresh = 0;
	nlh = nl_request(s->nl, RDMA_ISOLATE_CMD_FLOW_GET, true);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_FLOW_DEV, s->dev);
	if (!list(s->nl, &name_set_flow, on_flow, s))
		return false;
	nlh = nl_request(s->nl, RDMA_ISOLATE_CMD_GROUP_GET, true);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_GROUP_DEV, s->dev);
	if (!list(s->nl, &name_set_group, on_group, s))
		return false;
	take_groups(s, now);
	count_groups(s);
	s->due_ns = now + max_u64(GROUPS_NS, (now_ns() - now) * GROUPS_PART);
	return true;
}

bool survey_read(struct survey *s, uint64_t now)
{
	return read_paths(s, now) && (now < s->due_ns || read_groups(s, now));
}

void survey_free(struct survey *s)
{
	free(s->flow);
	free(s->group);
	free(s->fresh);
}
