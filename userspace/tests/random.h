/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers that look random, and are the same each time.
 */
#ifndef RISO_TEST_RANDOM_H
#define RISO_TEST_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Not 0; the test sets it. */
static uint64_t seed;

static inline uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Begins with the seed that the program was given, or with another one each time. */
static inline void random_begin(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : time(NULL) * UINT64_C(2654435761) | 1;
	printf("# seed %#llx\n", (unsigned long long)seed);
}

/* 0 <= x < num */
static inline uint64_t random_to(uint64_t num)
{
	return random_u64() % num;
}

/* 0 < x < 1 */
static inline double random_unit(void)
{
	return ((random_u64() >> 12) + 0.5) / (UINT64_C(1) << 52);
}

#endif /* RISO_TEST_RANDOM_H */
