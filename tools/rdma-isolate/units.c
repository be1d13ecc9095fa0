// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers with units. A number has at most six digits behind its point, so
 * that a part of the largest unit still fits 64 bits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "units.h"

#define FRACTION UINT64_C(1000000)
#define KI UINT64_C(1024)

struct unit {
	const char *name;
	uint64_t factor;
};

/* bits per second; upper and lower case mean the same */
static const struct unit bit_units[] = {
	{ "tbit", UINT64_C(1000000000000) },
	{ "gbit", 1000000000 },
	{ "mbit", 1000000 },
	{ "kbit", 1000 },
	{ "bit", 1 },
	{ NULL, 0 },
};

/* bytes per second; a small b would be read as bits, so case counts */
static const struct unit byte_units[] = {
	{ "TB/s", UINT64_C(1000000000000) },
	{ "GB/s", 1000000000 },
	{ "MB/s", 1000000 },
	{ "kB/s", 1000 },
	{ "KB/s", 1000 },
	{ "TiB/s", KI * KI * KI * KI },
	{ "GiB/s", KI * KI * KI },
	{ "MiB/s", KI * KI },
	{ "KiB/s", KI },
	{ "B/s", 1 },
	{ NULL, 0 },
};

static const struct unit size_units[] = {
	{ "g", KI * KI * KI },
	{ "m", KI * KI },
	{ "k", KI },
	{ "", 1 },
	{ "GiB", KI * KI * KI },
	{ "MiB", KI * KI },
	{ "KiB", KI },
	{ "B", 1 },
	{ NULL, 0 },
};

static const struct unit time_units[] = {
	{ "min", UINT64_C(60000000000) },
	{ "s", 1000000000 },
	{ "ms", 1000000 },
	{ "us", 1000 },
	{ "ns", 1 },
	{ NULL, 0 },
};

typedef int (*compare_fn)(const char *a, const char *b);

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* whole part and millionths; returns where the unit begins, NULL if no number */
static const char *number_parse(const char *text, uint64_t *whole,
				uint64_t *part)
{
	uint64_t place = FRACTION / 10;

	*whole = 0;
	*part = 0;

	if (!is_digit(*text))
		return NULL;
	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(*whole, 10, whole) ||
		    __builtin_add_overflow(*whole, (uint64_t)(*text - '0'),
					   whole))
			return NULL;

	if (*text != '.')
		return text;
	if (!is_digit(*++text))
		return NULL;
	for (; is_digit(*text); text++, place /= 10) {
		if (!place)
			return NULL;
		*part += place * (*text - '0');
	}
	return text;
}

static bool unit_parse(const char *text, const struct unit *units,
		       compare_fn compare, uint64_t *val)
{
	uint64_t whole, part;

	text = number_parse(text, &whole, &part);
	if (!text)
		return false;

	for (; units->name; units++) {
		if (compare(text, units->name))
			continue;
		if (part * units->factor % FRACTION)
			return false;
		return !__builtin_mul_overflow(whole, units->factor, val) &&
		       !__builtin_add_overflow(*val, part * units->factor /
					       FRACTION, val);
	}
	return false;
}

bool count_parse(const char *text, uint64_t *val)
{
	uint64_t part;

	text = number_parse(text, val, &part);
	return text && !*text && !part;
}

bool rate_parse(const char *text, uint64_t *bytes_per_s)
{
	uint64_t bits;

	if (unit_parse(text, bit_units, strcasecmp, &bits)) {
		*bytes_per_s = bits / 8;
		return *bytes_per_s;
	}
	return unit_parse(text, byte_units, strcmp, bytes_per_s) &&
	       *bytes_per_s;
}

bool size_parse(const char *text, uint64_t *bytes)
{
	return unit_parse(text, size_units, strcasecmp, bytes);
}

bool time_parse(const char *text, uint64_t *ns)
{
	return unit_parse(text, time_units, strcmp, ns);
}

static const char *unit_format(uint64_t val, const struct unit *unit,
			       uint64_t part, int digits, char *buf)
{
	int len;

	len = snprintf(buf, UNITS_LEN, "%" PRIu64, val / unit->factor);
	if (part) {
		len += snprintf(buf + len, UNITS_LEN - len, ".%0*" PRIu64,
				digits, part);
		while (buf[len - 1] == '0')
			len--;
	}
	snprintf(buf + len, UNITS_LEN - len, "%s", unit->name);
	return buf;
}

/* The largest unit that needs no more than six digits behind the point */
const char *rate_format(uint64_t bytes_per_s, char *buf)
{
	const struct unit *unit = bit_units;
	uint64_t bits, rest;

	if (__builtin_mul_overflow(bytes_per_s, 8, &bits)) {
		snprintf(buf, UNITS_LEN, "%" PRIu64 "B/s", bytes_per_s);
		return buf;
	}

	for (; unit->factor > 1; unit++) {
		rest = bits % unit->factor;
		if (bits >= unit->factor &&
		    rest * FRACTION % unit->factor == 0)
			return unit_format(bits, unit,
					   rest * FRACTION / unit->factor, 6,
					   buf);
	}
	return unit_format(bits, unit, 0, 0, buf);
}

/* The largest unit, rounded down to three digits behind the point */
const char *rate_format_short(uint64_t bytes_per_s, char *buf)
{
	const struct unit *unit = bit_units;
	uint64_t bits;

	if (__builtin_mul_overflow(bytes_per_s, 8, &bits))
		return rate_format(bytes_per_s, buf);
	while (unit->factor > 1 && bits < unit->factor)
		unit++;
	return unit_format(bits, unit,
			   bits % unit->factor * 1000 / unit->factor, 3, buf);
}

/* The largest unit that needs no point */
const char *size_format(uint64_t bytes, char *buf)
{
	const struct unit *unit = size_units;

	while (*unit->name && (!bytes || bytes % unit->factor))
		unit++;
	return unit_format(bytes, unit, 0, 0, buf);
}

/* Rounded down to three digits behind the point */
const char *time_format(uint64_t ns, char *buf)
{
	const struct unit *unit = time_units + 1;

	while (unit->factor > 1 && ns < unit->factor)
		unit++;
	return unit_format(ns, unit,
			   ns % unit->factor * 1000 / unit->factor, 3, buf);
}
