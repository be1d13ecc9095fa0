// SPDX-License-Identifier: GPL-2.0
/*
 * What other hosts may send to a receiver. See pool.h.
 */
#include "minmax.h"
#include "pool.h"

bool pool_is_filled(uint64_t used, uint64_t limit)
{
	return used >= (unsigned __int128)limit * POOL_USED_NUM / POOL_USED_DEN;
}

void pool_init(struct pool *p, uint64_t max_rate)
{
	aimd_defaults(&p->aimd, max_rate, 1);
	aimd_init(&p->state, &p->aimd);
	p->safe = max_rate;
}

uint64_t pool_step(struct pool *p, uint64_t max_rate, const struct pool_view *v)
{
	struct aimd_input in = {
		.now_ns = v->now_ns,
		.l = v->latency,
		.b = v->groups,
		.have_samples = v->current99_ns && v->target99_ns,
	};

	aimd_blame(&in, v->current99_ns);
	if (!pool_is_filled(v->used, min_u64(p->safe, max_rate)))
		aimd_forgive(&in, v->target99_ns);
	p->aimd.max_rate = max_rate;
	p->aimd.target99_ns = max_u64(v->target99_ns, 1);
	p->aimd.window_ns = v->window_ns;
	p->safe = aimd_step(&p->state, &p->aimd, &in).safe_util;
	return split_pool(p->safe, max_rate, v->latency, v->groups);
}

void pool_grant(enum split_law law, struct split_sender *s, uint32_t num, uint64_t pool,
		uint32_t latency)
{
	uint64_t groups = 0;
	uint64_t left = pool;
	uint32_t i;

	split_grant(law, s, num, pool, latency);
	if (law == SPLIT_LAW_PAPER)
		return;
	for (i = 0; i < num; i++) {
		groups += s[i].groups;
		left -= s[i].grant;
	}
	for (i = 0; i < num && groups; i++)
		s[i].grant += (unsigned __int128)left * s[i].groups / groups;
}
