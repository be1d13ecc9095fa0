// SPDX-License-Identifier: GPL-2.0
/*
 * What a run tells: text that grows, and percentiles of samples.
 *
 * main.c's run_lock protects the text. Runs in process context.
 */

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "load.h"

char load_result[LOAD_RESULT];

void load_tell(const char *fmt, ...)
{
	size_t len = strlen(load_result);
	va_list args;

	va_start(args, fmt);
	vscnprintf(load_result + len, sizeof(load_result) - len, fmt, args);
	va_end(args);
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* The sample that so many thousandths are at most as large as */
u32 load_percentile(const u32 *sorted, u32 n, u32 thousandths)
{
	return n ? sorted[min((u64)n - 1, div_u64((u64)n * thousandths, 1000))] : 0;
}

void load_sort(u32 *samples, u32 n)
{
	sort(samples, n, sizeof(*samples), compare, NULL);
}
