// SPDX-License-Identifier: GPL-2.0
/*
 * These functions count the calls of a function of the module, with a kprobe.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "pages.h"

#define TRACING "/sys/kernel/tracing/"

/* Count how often a function of the module is called. */
void pages_start_counting(const char *function)
{
	char line[160];

	snprintf(line, sizeof(line), "echo 'p:riso/calls %s' >" TRACING "kprobe_events",
		 function);
	if (system(line) || system("echo 1 >" TRACING "events/riso/calls/enable"))
		errx(1, "kprobes");
}

/* How often that was, until now */
unsigned long long pages_stop_counting(void)
{
	unsigned long long hits = 0;
	char name[64] = "";
	FILE *f;

	f = fopen(TRACING "kprobe_profile", "r");
	if (!f || fscanf(f, "%63s %llu", name, &hits) != 2)
		errx(1, "kprobes: no profile");
	fclose(f);
	if (system("echo 0 >" TRACING "events/riso/calls/enable") ||
	    system("echo >" TRACING "kprobe_events"))
		errx(1, "kprobes");
	return hits;
}
