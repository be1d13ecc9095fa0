// SPDX-License-Identifier: GPL-2.0
/*
 * Settings from measurements.
 */
#include <linux/rdma_isolate.h>

#include "aimd.h"
#include "calibrate.h"
#include "core/chunk.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_US UINT64_C(1000)

static uint64_t clamp(uint64_t val, uint64_t min, uint64_t max)
{
	return val < min ? min : val > max ? max : val;
}

static uint64_t three_digits(uint64_t val)
{
	uint64_t unit = 1;

	while (val / unit >= 1000)
		unit *= 10;
	return val / unit * unit;
}

unsigned int calibrate_depth(uint64_t wire, uint64_t rate, uint64_t rtt_ns)
{
	unsigned __int128 path = (unsigned __int128)rate * rtt_ns / NS_PER_S / wire;

	return path < CALIBRATE_DEPTH - 2 ? path + 2 : CALIBRATE_DEPTH;
}

uint64_t calibrate_safe_util(uint64_t max_rate)
{
	uint64_t bits = (uint64_t)((unsigned __int128)max_rate * 8 * CALIBRATE_SAFE_PERCENT / 100);

	return clamp(three_digits(bits) / 8, RDMA_ISOLATE_RATE_MIN, max_rate);
}

struct calibrate_advice calibrate_advise(const struct calibrate_seen *seen)
{
	uint64_t target = AIMD_TARGET_TIMES * seen->p99_ns;
	struct calibrate_advice advice = {
		.max_rate = clamp(three_digits(seen->rate * 8) / 8,
				  RDMA_ISOLATE_RATE_MIN, RDMA_ISOLATE_RATE_MAX),
		.max_ops = three_digits(seen->ops),
		.target99_ns = clamp((target + NS_PER_US - 1) / NS_PER_US * NS_PER_US,
				     1, RDMA_ISOLATE_TARGET99_MAX),
		.noisy = seen->p99_ns > CALIBRATE_NOISY * seen->p50_ns,
	};
	unsigned int i, best = 0;

	for (i = 0; i < seen->num && !advice.enough; i++) {
		if (seen->size[i].rate > seen->size[best].rate)
			best = i;
		advice.enough = seen->size[best].rate * 100 >=
				seen->rate * CALIBRATE_PERCENT;
	}
	if (advice.enough && seen->size[best].bytes <= riso_chunk_auto(advice.max_rate))
		advice.chunk = RDMA_ISOLATE_AUTO;
	else
		advice.chunk = clamp(seen->size[best].bytes, RDMA_ISOLATE_CHUNK_MIN,
				     RDMA_ISOLATE_CHUNK_MAX);
	advice.safe_util = calibrate_safe_util(advice.max_rate);
	return advice;
}
