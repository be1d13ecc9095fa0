/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lesser and the larger of two numbers.
 */
#ifndef RISO_MINMAX_H
#define RISO_MINMAX_H

#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif /* RISO_MINMAX_H */
