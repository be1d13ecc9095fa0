// SPDX-License-Identifier: GPL-2.0
/*
 * Who may send how much to one receiver. The rules are in split.h.
 */
#include <stdlib.h>

#include "minmax.h"
#include "split.h"

/* @value * @num / @den without overflow, if the result fits */
static uint64_t scale(uint64_t value, uint64_t num, uint64_t den)
{
	return (unsigned __int128)value * num / den;
}

/* By what each of their groups demands: who demands least is served first. */
static int compare_demand(const void *a, const void *b)
{
	const struct split_sender *x = *(const struct split_sender *const *)a;
	const struct split_sender *y = *(const struct split_sender *const *)b;
	unsigned __int128 dx = (unsigned __int128)x->demand * y->groups;
	unsigned __int128 dy = (unsigned __int128)y->demand * x->groups;

	return (dx > dy) - (dx < dy);
}

static void grant_maxmin(struct split_sender *s, uint32_t num, uint64_t pool)
{
	struct split_sender *order[SPLIT_SENDERS];
	uint64_t groups = 0;
	uint32_t n = 0;
	uint32_t i;

	for (i = 0; i < num; i++) {
		s[i].grant = 0;
		if (!s[i].groups)
			continue;
		groups += s[i].groups;
		order[n++] = &s[i];
	}
	qsort(order, n, sizeof(*order), compare_demand);
	for (i = 0; i < n; i++) {
		uint64_t fair = scale(pool, order[i]->groups, groups);

		order[i]->grant = min_u64(order[i]->demand, fair);
		pool -= order[i]->grant;
		groups -= order[i]->groups;
	}
}

static void grant_paper(struct split_sender *s, uint32_t num, uint64_t pool, uint64_t latency)
{
	uint64_t groups = latency;
	uint32_t i;

	for (i = 0; i < num; i++)
		groups += s[i].groups;
	for (i = 0; i < num; i++)
		s[i].grant = groups ? scale(pool, s[i].groups, groups) : 0;
}

uint64_t split_demand(uint64_t used, bool backlogged, uint32_t chunk)
{
	if (backlogged)
		return SPLIT_UNBOUNDED;
	return scale(used, SPLIT_GROW_NUM, SPLIT_GROW_DEN) +
	       (uint64_t)SPLIT_BEGIN_CHUNKS * SPLIT_BEGIN_HZ * chunk;
}

uint64_t split_pool(uint64_t safe, uint64_t max_rate, uint32_t latency, uint32_t groups)
{
	uint64_t floor;

	if (!latency)
		return max_rate;
	floor = scale(max_rate, groups, (uint64_t)latency + groups);
	return min_u64(max_u64(safe, floor), max_rate);
}

void split_grant(enum split_law law, struct split_sender *s, uint32_t num, uint64_t pool,
		 uint32_t latency)
{
	if (law == SPLIT_LAW_PAPER)
		grant_paper(s, num, pool, latency);
	else
		grant_maxmin(s, num, pool);
}
