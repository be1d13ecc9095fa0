// SPDX-License-Identifier: GPL-2.0
/*
 * Percentiles of the last N latencies: percentile.h.
 *
 * Owns the numbering of buckets. No lock and no clock; the caller's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "percentile.h"

enum { SUB = 1 << PERCENTILE_SUB_BITS };

_Static_assert(PERCENTILE_BUCKETS <= UINT16_MAX + 1, "a bucket's number fits the ring");
_Static_assert(PERCENTILE_BUCKETS % PERCENTILE_GROUP == 0, "groups are whole");

/*
 * The leading 1 and the SUB_BITS bits behind it say where @ns is in its power of
 * two, and how far they were shifted says in which. Numbers without a gap: those of
 * a power of two end at 2 * SUB - 1 + shift * SUB, where the next begin.
 */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift = 0;

	if (ns > PERCENTILE_MAX_NS)
		ns = PERCENTILE_MAX_NS;
	if (ns >= 2 * SUB)
		shift = 63 - __builtin_clzll(ns) - PERCENTILE_SUB_BITS;
	return (ns >> shift) + shift * SUB;
}

/* The largest latency that lies in @bucket */
static uint64_t bucket_end(unsigned int bucket)
{
	unsigned int shift = bucket < 2 * SUB ? 0 : bucket / SUB - 1;

	return ((uint64_t)(bucket - shift * SUB + 1) << shift) - 1;
}

int percentile_init(struct percentile *p, uint32_t size)
{
	memset(p, 0, sizeof(*p));
	if (!size)
		return -EINVAL;
	p->ring = calloc(size, sizeof(*p->ring));
	if (!p->ring)
		return -ENOMEM;
	p->size = size;
	return 0;
}

void percentile_free(struct percentile *p)
{
	free(p->ring);
	memset(p, 0, sizeof(*p));
}

void percentile_reset(struct percentile *p)
{
	p->num = 0;
	p->next = 0;
	memset(p->bucket, 0, sizeof(p->bucket));
	memset(p->group, 0, sizeof(p->group));
}

void percentile_add(struct percentile *p, uint64_t ns)
{
	unsigned int bucket = bucket_of(ns);

	if (p->num == p->size) {
		unsigned int oldest = p->ring[p->next];

		p->bucket[oldest]--;
		p->group[oldest / PERCENTILE_GROUP]--;
	} else {
		p->num++;
	}
	p->ring[p->next] = bucket;
	p->bucket[bucket]++;
	p->group[bucket / PERCENTILE_GROUP]++;
	if (++p->next == p->size)
		p->next = 0;
}

uint32_t percentile_count(const struct percentile *p)
{
	return p->num;
}

uint64_t percentile_get(const struct percentile *p, uint32_t ppm)
{
	unsigned int group = 0, i;
	uint64_t rank;

	if (!p->num)
		return 0;
	if (ppm > PERCENTILE_MAX)
		ppm = PERCENTILE_MAX;
	rank = ((uint64_t)p->num * ppm + PERCENTILE_MAX - 1) / PERCENTILE_MAX;
	if (!rank)
		rank = 1;
	while (rank > p->group[group])
		rank -= p->group[group++];
	i = group * PERCENTILE_GROUP;
	while (rank > p->bucket[i])
		rank -= p->bucket[i++];
	return bucket_end(i);
}
