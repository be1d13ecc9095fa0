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

/*
 * The next 32 bits of a quotient. They are guessed from the upper half of @c. The highest bit
 * of @c is set, so the guess is at most 2 too large. @rest is smaller than @c.
 */
static inline __u64 riso_divide_digit(__u64 *rest, __u64 digit, __u64 c)
{
	__u64 high = c >> 32;
	__u64 low = c & 0xffffffff;
	__u64 guess = *rest / high;
	__u64 left = *rest - guess * high;

	while (!(left >> 32) && (guess >> 32 || guess * low > (left << 32 | digit))) {
		guess--;
		left += high;
	}
	*rest = (*rest << 32 | digit) - guess * c;
	return guess;
}

/**
 * riso_mul_div - multiply and divide without a product that overflows
 * @a: a factor
 * @b: the other factor
 * @c: the divisor, not 0
 *
 * Products of 64 bits take one division, longer ones take two. The kernel does not link the
 * compiler's function that divides 128 bits.
 *
 * Return: @a * @b / @c, rounded down; the largest number if it is larger.
 */
static inline __u64 riso_mul_div(__u64 a, __u64 b, __u64 c)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	__u64 rest = (__u64)(product >> 64);
	__u64 upper;
	int shift;

	if (!rest)
		return (__u64)product / c;
	if (rest >= c)
		return ~0ULL;
	shift = __builtin_clzll(c);
	c <<= shift;
	product <<= shift;
	rest = (__u64)(product >> 64);
	upper = riso_divide_digit(&rest, (__u64)product >> 32, c);
	return upper << 32 | riso_divide_digit(&rest, (__u64)product & 0xffffffff, c);
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
