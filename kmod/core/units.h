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
 * The next 32 bits of a quotient, by a guess from the upper half of the divisor. That begins
 * with a bit that is set, so the guess is at most 2 too large. @rest is smaller than @c.
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
 * Products of 64 bits take one division. Longer ones take two, as the kernel has no library
 * that divides 128 bits.
 *
 * Return: @a * @b / @c, rounded down; the largest number if it is larger.
 */
static inline __u64 riso_mul_div(__u64 a, __u64 b, __u64 c)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	__u64 rest = (__u64)(product >> 64);
	__u64 low = (__u64)product;
	__u64 quotient;
	int shift;

	if (!rest)
		return low / c;
	if (rest >= c)
		return ~0ULL;
	shift = __builtin_clzll(c);
	product <<= shift;
	rest = (__u64)(product >> 64);
	low = (__u64)product;
	quotient = riso_divide_digit(&rest, low >> 32, c << shift) << 32;
	return quotient | riso_divide_digit(&rest, low & 0xffffffff, c << shift);
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
