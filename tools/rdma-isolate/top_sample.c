// SPDX-License-Identifier: GPL-2.0
/*
 * Samples of devices, groups and paths, and what happened between two of them.
 * Counters only grow, except for what was taken back, which counts as nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "top.h"

static uint32_t u32_of(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u32(attr) : 0;
}

static uint64_t u64_of(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u64(attr) : 0;
}

/* Room for one more; NULL, and the sample knows, if there is none. */
static void *grow(struct top_sample *sample, void *array, unsigned int n,
		  size_t size)
{
	void *more = reallocarray(array, n + 1, size);

	if (!more)
		sample->no_memory = true;
	return more;
}

static struct top_dev *find_dev(struct top_sample *sample,
				const struct nlattr *name)
{
	unsigned int i;

	for (i = 0; name && i < sample->n; i++)
		if (!strcmp(sample->devs[i].name, mnl_attr_get_str(name)))
			return &sample->devs[i];
	return NULL;
}

void top_read_dev(const struct nlattr * const *attrs,
		  const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *name = attrs[RDMA_ISOLATE_A_DEV_DEV];
	struct top_sample *sample = data;
	struct top_dev *dev;
	void *devs;

	(void)nlh;
	if (!name)
		return;
	devs = grow(sample, sample->devs, sample->n, sizeof(*sample->devs));
	if (!devs)
		return;
	sample->devs = devs;
	dev = &sample->devs[sample->n++];
	*dev = (struct top_dev) {
		.index = u32_of(attrs[RDMA_ISOLATE_A_DEV_INDEX]),
		.state = u32_of(attrs[RDMA_ISOLATE_A_DEV_STATE]),
		.max_rate = u64_of(attrs[RDMA_ISOLATE_A_DEV_MAX_RATE]),
		.target99_ns = u32_of(attrs[RDMA_ISOLATE_A_DEV_TARGET99_NS]),
	};
	snprintf(dev->name, sizeof(dev->name), "%s", mnl_attr_get_str(name));
}

void top_read_budget(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data)
{
	struct top_dev *dev = find_dev(data, attrs[RDMA_ISOLATE_A_BUDGET_DEV]);
	uint32_t target = u32_of(attrs[RDMA_ISOLATE_A_BUDGET_TARGET99_NS]);

	(void)nlh;
	if (!dev)
		return;
	dev->safe_util = u64_of(attrs[RDMA_ISOLATE_A_BUDGET_SAFE_UTIL]);
	dev->lease_ns = u64_of(attrs[RDMA_ISOLATE_A_BUDGET_LEASE_NS]);
	dev->agent_pid = u32_of(attrs[RDMA_ISOLATE_A_BUDGET_AGENT_PID]);
	dev->ctrl_state = u32_of(attrs[RDMA_ISOLATE_A_BUDGET_CTRL_STATE]);
	if (target)
		dev->target99_ns = target;
	dev->current99_ns = u64_of(attrs[RDMA_ISOLATE_A_BUDGET_CURRENT99_NS]);
	dev->latency_groups =
		u32_of(attrs[RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS]);
	dev->bandwidth_groups =
		u32_of(attrs[RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS]);
	dev->throughput_groups =
		u32_of(attrs[RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS]);
}

void top_read_group(const struct nlattr * const *attrs,
		    const struct nlmsghdr *nlh, void *data)
{
	struct top_dev *dev = find_dev(data, attrs[RDMA_ISOLATE_A_GROUP_DEV]);
	struct top_group *group;
	void *groups;

	(void)nlh;
	if (!dev)
		return;
	groups = grow(data, dev->groups, dev->n, sizeof(*dev->groups));
	if (!groups)
		return;
	dev->groups = groups;
	group = &dev->groups[dev->n++];
	*group = (struct top_group) {
		.id = u32_of(attrs[RDMA_ISOLATE_A_GROUP_ID]),
		.used_ns = u64_of(attrs[RDMA_ISOLATE_A_GROUP_USED_NS]),
		.bytes = u64_of(attrs[RDMA_ISOLATE_A_GROUP_TX_BYTES]) +
			 u64_of(attrs[RDMA_ISOLATE_A_GROUP_RX_BYTES]),
		.stall_ns = u64_of(attrs[RDMA_ISOLATE_A_GROUP_STALL_NS]),
	};
	group_who(attrs, group->who);
}

static int by_id(const void *a, const void *b)
{
	const struct top_group *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int by_share(const void *a, const void *b)
{
	const struct top_group *x = a, *y = b;

	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	if (x->rate != y->rate)
		return x->rate < y->rate ? 1 : -1;
	return by_id(a, b);
}

/* The kernel lists groups in the order of their ids. */
void top_read_flow(const struct nlattr * const *attrs,
		   const struct nlmsghdr *nlh, void *data)
{
	struct top_dev *dev = find_dev(data, attrs[RDMA_ISOLATE_A_FLOW_DEV]);
	const struct nlattr *class = attrs[RDMA_ISOLATE_A_FLOW_CLASS];
	struct top_group key = {
		.id = u32_of(attrs[RDMA_ISOLATE_A_FLOW_GROUP])
	};
	struct top_group *group;

	(void)nlh;
	if (!dev || !dev->n || !class)
		return;
	group = bsearch(&key, dev->groups, dev->n, sizeof(key), by_id);
	if (group && mnl_attr_get_u32(class) < name_class.n)
		group->classes |= 1u << mnl_attr_get_u32(class);
}

void top_read_path(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	struct top_dev *dev = find_dev(data, attrs[RDMA_ISOLATE_A_PATH_DEV]);
	const struct nlattr *peer = attrs[RDMA_ISOLATE_A_PATH_PEER];
	struct top_path *path;
	void *paths;

	(void)nlh;
	if (!dev || !peer)
		return;
	paths = grow(data, dev->paths, dev->num_paths, sizeof(*dev->paths));
	if (!paths)
		return;
	dev->paths = paths;
	path = &dev->paths[dev->num_paths++];
	*path = (struct top_path) {
		.dir = u32_of(attrs[RDMA_ISOLATE_A_PATH_DIR]),
		.limit = u64_of(attrs[RDMA_ISOLATE_A_PATH_RATE]),
		.lease_ns = u64_of(attrs[RDMA_ISOLATE_A_PATH_LEASE_NS]),
		.bytes = u64_of(attrs[RDMA_ISOLATE_A_PATH_BYTES]),
		.waits = u64_of(attrs[RDMA_ISOLATE_A_PATH_WAITS]),
	};
	snprintf(path->peer, sizeof(path->peer), "%s", mnl_attr_get_str(peer));
}

static int by_peer(const void *a, const void *b)
{
	const struct top_path *x = a, *y = b;
	int order = strcmp(x->peer, y->peer);

	return order ? order : (x->dir > y->dir) - (x->dir < y->dir);
}

static int by_use(const void *a, const void *b)
{
	const struct top_path *x = a, *y = b;

	if (x->used != y->used)
		return x->used < y->used ? 1 : -1;
	if (x->rate != y->rate)
		return x->rate < y->rate ? 1 : -1;
	return by_peer(a, b);
}

static uint64_t grown(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

uint64_t top_part(uint64_t of, uint64_t whole)
{
	if (of >= whole)
		return whole ? 10000 : 0;
	return of * (long double)10000 / whole;
}

static uint64_t rate_of(uint64_t bytes, uint64_t ns)
{
	return ns ? bytes * (long double)1000000000 / ns : 0;
}

/* A group that was not there before has begun with nothing. */
static void compare_groups(const struct top_dev *old, struct top_dev *new, uint64_t ns)
{
	static const struct top_group none;
	const struct top_group *was;
	struct top_group *group;
	uint64_t sum = 0;

	for (group = new->groups; group < new->groups + new->n; group++) {
		was = old && old->n ? bsearch(group, old->groups, old->n,
					      sizeof(*was), by_id) : NULL;
		if (!was)
			was = &none;
		group->share = grown(was->used_ns, group->used_ns);
		sum += group->share;
		group->wait = top_part(grown(was->stall_ns, group->stall_ns), ns);
		group->rate = rate_of(grown(was->bytes, group->bytes), ns);
	}
	for (group = new->groups; group < new->groups + new->n; group++)
		group->share = top_part(group->share, sum);
}

/* So has a path. */
static void compare_paths(const struct top_dev *old, struct top_dev *new, uint64_t ns)
{
	static const struct top_path none;
	const struct top_path *was;
	struct top_path *path;

	for (path = new->paths; path < new->paths + new->num_paths; path++) {
		was = old && old->num_paths ? bsearch(path, old->paths, old->num_paths,
						      sizeof(*was), by_peer) : NULL;
		if (!was)
			was = &none;
		path->rate = rate_of(grown(was->bytes, path->bytes), ns);
		path->used = top_part(path->rate, path->limit);
		path->waited = grown(was->waits, path->waits);
	}
}

static void sort(void *array, unsigned int n, size_t size, int (*order)(const void *, const void *))
{
	if (n)
		qsort(array, n, size, order);
}

/* A device keeps its index when it gets another name. */
void top_compare(struct top_sample *old, struct top_sample *new)
{
	const struct top_dev *was;
	struct top_dev *dev;

	new->interval_ns = grown(old->when_ns, new->when_ns);
	for (dev = old->devs; dev < old->devs + old->n; dev++) {
		sort(dev->groups, dev->n, sizeof(*dev->groups), by_id);
		sort(dev->paths, dev->num_paths, sizeof(*dev->paths), by_peer);
	}
	for (dev = new->devs; dev < new->devs + new->n; dev++) {
		for (was = old->devs; was < old->devs + old->n; was++)
			if (was->index == dev->index)
				break;
		if (was == old->devs + old->n)
			was = NULL;
		compare_groups(was, dev, new->interval_ns);
		compare_paths(was, dev, new->interval_ns);
		sort(dev->groups, dev->n, sizeof(*dev->groups), by_share);
		sort(dev->paths, dev->num_paths, sizeof(*dev->paths), by_use);
	}
}

void top_free(struct top_sample *sample)
{
	unsigned int i;

	for (i = 0; i < sample->n; i++) {
		free(sample->devs[i].groups);
		free(sample->devs[i].paths);
	}
	free(sample->devs);
	*sample = (struct top_sample) {};
}
