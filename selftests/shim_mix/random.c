// SPDX-License-Identifier: GPL-2.0
/*
 * These functions draw random numbers, all of which follow from a seed.
 */
#include "mix.h"

/* A counter, hashed: the whole state is one number. */
__u64 mix_draw_from(__u64 *state)
{
	__u64 x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

unsigned int mix_below(__u64 *rng, unsigned int n)
{
	return mix_draw_from(rng) % n;
}

bool mix_once_in(__u64 *rng, unsigned int n)
{
	return !mix_below(rng, n);
}
