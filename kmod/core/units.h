/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bytes, rates and times, and how one becomes another.
 */
#ifndef RISO_CORE_UNITS_H
#define RISO_CORE_UNITS_H

#include "types.h"

/* Nanoseconds of a second */
#define RISO_SECOND	1000000000ULL

static inline __u64 riso_min(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static inline __u64 riso_max(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/**
 * riso_mul_div - multiply and divide without a product that overflows
 * @a: a factor
 * @b: the other factor
 * @c: the divisor, not 0
 *
 * Products of 64 bits take one division. Longer ones are divided bit by bit, as the kernel
 * has no library that divides 128 bits.
 *
 * Return: @a * @b / @c, rounded down; the largest number if it is larger.
 */
static inline __u64 riso_mul_div(__u64 a, __u64 b, __u64 c)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	__u64 rest = (__u64)(product >> 64);
	__u64 low = (__u64)product;
	int bit;

	if (!rest)
		return low / c;
	if (rest >= c)
		return ~0ULL;
	/* Bits of the quotient push those of the product out of @low. */
	for (bit = 0; bit < 64; bit++) {
		bool carry = rest >> 63;

		rest = rest << 1 | low >> 63;
		low <<= 1;
		if (carry || rest >= c) {
			rest -= c;
			low |= 1;
		}
	}
	return low;
}

/**
 * riso_time_of - how long something takes
 * @amount: bytes or messages, at most 2^34
 * @rate: of these in a second
 *
 * Return: ns, 0 if @rate is 0.
 */
static inline __u64 riso_time_of(__u64 amount, __u64 rate)
{
	return rate ? amount * RISO_SECOND / rate : 0;
}

/**
 * riso_bytes_in - how much goes in a time
 * @ns: the time
 * @rate: bytes per second
 *
 * Return: bytes, rounded down.
 */
static inline __u64 riso_bytes_in(__u64 ns, __u64 rate)
{
	return riso_mul_div(ns, rate, RISO_SECOND);
}

#endif /* RISO_CORE_UNITS_H */
