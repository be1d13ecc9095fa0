// SPDX-License-Identifier: GPL-2.0
/*
 * Who posts around the shim.
 */
#include <stdlib.h>
#include <string.h>

#include "around.h"

static int compare_flows(const void *a, const void *b)
{
	const struct around_flow *one = a, *two = b;

	if (one->index != two->index)
		return one->index < two->index ? -1 : 1;
	if (one->qpn != two->qpn)
		return one->qpn < two->qpn ? -1 : 1;
	return 0;
}

void around_sort(struct around_look *look)
{
	if (look->n)
		qsort(look->flow, look->n, sizeof(*look->flow), compare_flows);
}

struct around_flow *around_find(const struct around_look *look, uint32_t index, uint32_t qpn)
{
	struct around_flow key = { .index = index, .qpn = qpn };

	if (!look->n)
		return NULL;
	return bsearch(&key, look->flow, look->n, sizeof(*look->flow), compare_flows);
}

/* A group is never another's, and a queue pair without the shim is looked at otherwise. */
static bool is_same(const struct around_flow *one, const struct around_flow *two)
{
	return one->group == two->group && one->shim == two->shim && one->answered;
}

static void compare_flow(const struct around_flow *before, struct around_flow *f)
{
	if (!before || !is_same(before, f)) {
		/* What it has told of may take many looks to be sent. */
		f->settled = !f->told;
	} else if (before->told != f->told) {
		f->settled = false;
	} else if (before->psn == f->psn) {
		f->settled = true;
	} else {
		f->settled = before->settled;
		f->strikes = f->settled ? before->strikes + 1 : 0;
	}
}

void around_compare(const struct around_look *last, struct around_look *now)
{
	size_t i;

	for (i = 0; i < now->n; i++) {
		struct around_flow *f = &now->flow[i];

		f->strikes = 0;
		if (f->answered)
			compare_flow(around_find(last, f->index, f->qpn), f);
	}
}

bool around_is_seen(const struct around_flow *flow)
{
	return flow->strikes >= AROUND_INTERVALS;
}

void around_clear(struct around_look *look)
{
	free(look->flow);
	look->flow = NULL;
	look->n = 0;
}
