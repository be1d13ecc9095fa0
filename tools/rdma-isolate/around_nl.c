// SPDX-License-Identifier: GPL-2.0
/*
 * Gathers what is to be known of queue pairs that may post around the shim: which there are, what
 * they send and what their processes tell of.
 *
 * What is told is read after what is sent, so that of what was told before nothing is missing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/rdma_isolate.h>

#include "around_nl.h"
#include "error.h"

enum {
	/* As the kernel numbers types and states of queue pairs */
	TYPE_RC = 2,
	STATE_RTS = 3,
};

/* Devices whose flows are looked at */
struct devs {
	struct dev {
		char name[RDMA_ISOLATE_DEV_NAME_MAX + 1];
		uint32_t index;
		uint64_t state;
	} *dev;
	size_t n;
};

struct listing {
	struct devs devs;
	struct around_look *look;
	bool no_memory;
};

static void add_dev(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	uint64_t state = nl_number(attrs, RDMA_ISOLATE_A_DEV_STATE, &name_set_dev);
	struct listing *listing = data;
	struct dev *dev;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_DEV_DEV] || !attrs[RDMA_ISOLATE_A_DEV_INDEX] ||
	    (state != RISO_DEV_ENABLE && state != RISO_DEV_OBSERVE))
		return;
	dev = realloc(listing->devs.dev, (listing->devs.n + 1) * sizeof(*dev));
	if (!dev) {
		listing->no_memory = true;
		return;
	}
	listing->devs.dev = dev;
	dev += listing->devs.n++;
	snprintf(dev->name, sizeof(dev->name), "%s",
		 mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_DEV]));
	dev->index = mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_INDEX]);
	dev->state = state;
}

static const struct dev *find_dev(const struct devs *devs, const char *name)
{
	size_t i;

	for (i = 0; i < devs->n; i++)
		if (!strcmp(devs->dev[i].name, name))
			return &devs->dev[i];
	return NULL;
}

/* Of these the process tells of nothing. */
static bool is_without_shim(uint64_t reason)
{
	return reason == RISO_REASON_USER_QP || reason == RISO_REASON_SHIM_LIMIT ||
	       reason == RISO_REASON_UNKNOWN_OPCODE || reason == RISO_REASON_NO_PLACE ||
	       reason == RISO_REASON_NO_THREAD || reason == RISO_REASON_NO_CQ_ROOM ||
	       reason == RISO_REASON_MEMORY;
}

static bool is_looked_at(const struct nlattr * const *attrs)
{
	const struct name_set *set = &name_set_flow;
	uint64_t reason = nl_number(attrs, RDMA_ISOLATE_A_FLOW_REASON, set);

	return attrs[RDMA_ISOLATE_A_FLOW_PID] && attrs[RDMA_ISOLATE_A_FLOW_DEV] &&
	       nl_number(attrs, RDMA_ISOLATE_A_FLOW_QP_TYPE, set) == TYPE_RC &&
	       nl_number(attrs, RDMA_ISOLATE_A_FLOW_QP_STATE, set) == STATE_RTS &&
	       nl_number(attrs, RDMA_ISOLATE_A_FLOW_CLASS, set) != RISO_CLASS_LATENCY &&
	       (reason == RISO_REASON_NONE || is_without_shim(reason));
}

static void add_flow(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *comm = attrs[RDMA_ISOLATE_A_FLOW_COMM];
	const struct name_set *set = &name_set_flow;
	struct listing *listing = data;
	struct around_look *look = listing->look;
	struct around_flow *f;
	const struct dev *dev;

	(void)nlh;
	if (!is_looked_at(attrs))
		return;
	dev = find_dev(&listing->devs, mnl_attr_get_str(attrs[RDMA_ISOLATE_A_FLOW_DEV]));
	if (!dev)
		return;
	f = realloc(look->flow, (look->n + 1) * sizeof(*f));
	if (!f) {
		listing->no_memory = true;
		return;
	}
	look->flow = f;
	f += look->n++;
	*f = (struct around_flow) {
		.index = dev->index,
		.qpn = nl_number(attrs, RDMA_ISOLATE_A_FLOW_QPN, set),
		.group = nl_number(attrs, RDMA_ISOLATE_A_FLOW_GROUP, set),
		.pid = nl_number(attrs, RDMA_ISOLATE_A_FLOW_PID, set),
		.shim = nl_number(attrs, RDMA_ISOLATE_A_FLOW_REASON, set) == RISO_REASON_NONE,
		.marked = nl_number(attrs, RDMA_ISOLATE_A_FLOW_AROUND, set),
	};
	memcpy(f->dev, dev->name, sizeof(f->dev));
	snprintf(f->comm, sizeof(f->comm), "%s", comm ? mnl_attr_get_str(comm) : "?");
}

int around_list(struct nl *nl, struct around_look *look)
{
	struct listing listing = { .look = look };
	int err;

	look->flow = NULL;
	look->n = 0;
	nl_request(nl, RDMA_ISOLATE_CMD_DEV_GET, true);
	err = nl_send(nl, &name_set_dev, add_dev, &listing);
	if (!err && listing.devs.n) {
		nl_request(nl, RDMA_ISOLATE_CMD_FLOW_GET, true);
		err = nl_send(nl, &name_set_flow, add_flow, &listing);
	}
	free(listing.devs.dev);
	if (!err && listing.no_memory) {
		error("%s", strerror(ENOMEM));
		err = -ENOMEM;
	}
	if (err)
		around_clear(look);
	around_sort(look);
	return err;
}

int around_ask(struct psn *p, const struct around_look *look, size_t first)
{
	struct psn_query *query = calloc(look->n + 1, sizeof(*query));
	size_t i, n = 0;
	int err;

	if (!query)
		return -ENOMEM;
	for (i = 0; i < look->n; i++) {
		const struct around_flow *f = &look->flow[(first + i) % look->n];

		if (f->marked)
			continue;
		query[n].index = f->index;
		query[n++].qpn = f->qpn;
	}
	err = psn_begin(p, query, n);
	free(query);
	return err;
}

bool around_take(struct psn *p, struct around_look *look)
{
	struct psn_answer answer;
	struct around_flow *f;
	int got;

	while ((got = psn_read(p, &answer)) > 0) {
		f = around_find(look, answer.of.index, answer.of.qpn);
		if (!f)
			continue;
		f->asked = true;
		f->err = answer.err;
		f->answered = answer.sends;
		f->psn = answer.psn;
	}
	return got;
}

/* A group has an id of its own on each device. */
static void note_told(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	const struct name_set *set = &name_set_group;
	uint64_t id = nl_number(attrs, RDMA_ISOLATE_A_GROUP_ID, set);
	struct around_look *look = data;
	size_t i;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_GROUP_DEV] ||
	    !nl_number(attrs, RDMA_ISOLATE_A_GROUP_SHIM, set))
		return;
	for (i = 0; i < look->n; i++) {
		struct around_flow *f = &look->flow[i];

		if (f->shim && f->group == id &&
		    !strcmp(f->dev, mnl_attr_get_str(attrs[RDMA_ISOLATE_A_GROUP_DEV])))
			f->told = nl_number(attrs, RDMA_ISOLATE_A_GROUP_TX_BYTES, set) +
				  nl_number(attrs, RDMA_ISOLATE_A_GROUP_RX_BYTES, set);
	}
}

int around_read_told(struct nl *nl, struct around_look *look)
{
	bool any = false;
	size_t i;

	for (i = 0; i < look->n; i++)
		any = any || look->flow[i].shim;
	if (!any)
		return 0;
	nl_request(nl, RDMA_ISOLATE_CMD_GROUP_GET, true);
	return nl_send(nl, &name_set_group, note_told, look);
}
