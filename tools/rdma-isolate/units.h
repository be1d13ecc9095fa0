/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers with units, as the operator writes and reads them. Pure functions.
 * What a format function writes, the parse function of the same unit reads
 * back to the same number, except for times and short rates, which are rounded.
 */
#ifndef RDMA_ISOLATE_UNITS_H
#define RDMA_ISOLATE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* room for the longest text of a format function, with its NUL */
enum { UNITS_LEN = 40 };

/* what the parse functions take, for help and errors */
#define COUNT_ALLOWED "a whole number"
#define RATE_ALLOWED \
	"a number with bit, kbit, mbit, gbit, tbit (per second)" \
	" or B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s"
#define SIZE_ALLOWED \
	"bytes, or a number with k, m, g or KiB, MiB, GiB (of 1024)"
#define TIME_ALLOWED "a number with ns, us, ms, s or min"

/* Each returns false when the text is anything else or does not fit. */
bool count_parse(const char *text, uint64_t *val);
bool rate_parse(const char *text, uint64_t *bytes_per_s);
bool size_parse(const char *text, uint64_t *bytes);
bool time_parse(const char *text, uint64_t *ns);

/* Each returns its buffer, which has UNITS_LEN bytes. */
const char *rate_format(uint64_t bytes_per_s, char *buf);
const char *rate_format_short(uint64_t bytes_per_s, char *buf);
const char *size_format(uint64_t bytes, char *buf);
const char *time_format(uint64_t ns, char *buf);

#endif /* RDMA_ISOLATE_UNITS_H */
