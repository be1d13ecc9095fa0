/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Percentiles of the last N latencies.
 *
 * Takes the place of the count-min sketch of section 4.2.1 of the paper: latencies
 * are whole numbers from a bounded range, so they can be counted exactly, in buckets
 * as wide as the error that is allowed. One instance has one owner and no lock;
 * memory is allocated by percentile_init() alone.
 */
#ifndef RISO_PERCENTILE_H
#define RISO_PERCENTILE_H

#include <stdint.h>

/* What is longer (about 68.7 s) counts as this. */
#define PERCENTILE_MAX_NS ((UINT64_C(1) << PERCENTILE_MAX_BITS) - 1)

/* A rank in parts per million of the samples, for percentile_get() */
#define PERCENTILE_P50 500000
#define PERCENTILE_P99 990000
#define PERCENTILE_P99_9 999000
#define PERCENTILE_MAX 1000000

enum {
	PERCENTILE_MAX_BITS = 36,
	/*
	 * Each power of two has 2^7 buckets, so a bucket that begins at v is at most
	 * v / 128 wide. Below 2^8 each latency has its own.
	 */
	PERCENTILE_SUB_BITS = 7,
	PERCENTILE_BUCKETS = (PERCENTILE_MAX_BITS - PERCENTILE_SUB_BITS + 1)
			     << PERCENTILE_SUB_BITS,
	/* Buckets that have a sum of their own, which keeps a look-up short */
	PERCENTILE_GROUP = 64,
	PERCENTILE_GROUPS = PERCENTILE_BUCKETS / PERCENTILE_GROUP,
};

/**
 * struct percentile - a window over the last latencies; 16 kB, not for a small stack
 * @ring: bucket of each sample in the window
 * @size: samples that the window holds
 * @num: samples in it now
 * @next: where in @ring the next one goes, in place of the oldest
 * @bucket: how many samples lie in each bucket
 * @group: how many lie in each PERCENTILE_GROUP buckets
 *
 * All of it belongs to percentile.c.
 */
struct percentile {
	uint16_t *ring;
	uint32_t size;
	uint32_t num;
	uint32_t next;
	uint32_t bucket[PERCENTILE_BUCKETS];
	uint32_t group[PERCENTILE_GROUPS];
};

/**
 * percentile_init - an empty window
 * @p: what to set up, to be given to percentile_free()
 * @size: how many samples it is to hold, 2 bytes each
 *
 * Return: 0, -EINVAL when @size is 0, -ENOMEM. After an error there is nothing to
 * free, but percentile_free() may be called.
 */
int percentile_init(struct percentile *p, uint32_t size);
void percentile_free(struct percentile *p);

/* Forgets all samples. */
void percentile_reset(struct percentile *p);

/* Adds a latency in ns, and forgets the oldest when the window is full. O(1) */
void percentile_add(struct percentile *p, uint64_t ns);

/* Samples that are in the window */
uint32_t percentile_count(const struct percentile *p);

/**
 * percentile_get - the latency of a rank
 * @p: the window
 * @ppm: the rank, up to PERCENTILE_MAX (what is more counts as that)
 *
 * The nearest-rank definition: of n samples in order the one at n x @ppm / 10^6,
 * rounded up, and the first for 0. Where there are too few for the rank that is the
 * largest: the 99.9th of less than 1000 samples, the 99th of less than 100.
 *
 * The answer is the upper end of the bucket that this sample lies in: never less
 * than the sample (clamped to PERCENTILE_MAX_NS), and more by less than 1/128 of
 * it; exact below 256 ns. Looks at no more than PERCENTILE_GROUPS +
 * PERCENTILE_GROUP counters.
 *
 * Return: ns, 0 when the window is empty.
 */
uint64_t percentile_get(const struct percentile *p, uint32_t ppm);

#endif /* RISO_PERCENTILE_H */
