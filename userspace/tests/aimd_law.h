/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A law of userspace/lib/aimd.c with its state and its input, for the tests of that file.
 */
#ifndef RISO_TEST_AIMD_LAW_H
#define RISO_TEST_AIMD_LAW_H

#include <stdint.h>

#include "aimd.h"

#define LAW_MAX_RATE UINT64_C(5000000000)
#define LAW_TARGET UINT64_C(10000)
#define LAW_PERIOD UINT64_C(500000)
#define SECOND UINT64_C(1000000000)

static struct aimd_params law_params;
static struct aimd_state law_aimd;
static struct aimd_input law_input;

static inline void law_begin(enum aimd_law law, uint32_t l, uint32_t b, uint32_t t)
{
	aimd_defaults(&law_params, LAW_MAX_RATE, LAW_TARGET);
	law_params.law = law;
	aimd_init(&law_aimd, &law_params);
	law_input = (struct aimd_input) {
		.now_ns = SECOND, .l = l, .b = b, .t = t, .have_samples = true,
	};
}

/* One step, a period later, with the same reading in both windows */
static inline struct aimd_output law_step(uint64_t latency)
{
	law_input.now_ns += LAW_PERIOD;
	law_input.current99_ns = latency;
	law_input.short99_ns = latency;
	law_input.short95_ns = latency;
	return aimd_step(&law_aimd, &law_params, &law_input);
}

#endif /* RISO_TEST_AIMD_LAW_H */
