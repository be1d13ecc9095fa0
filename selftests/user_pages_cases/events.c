// SPDX-License-Identifier: GPL-2.0
/*
 * These functions look for an event that names a process and its fault.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest.h"
#include "pages.h"

/* Is there an event of this process now? */
bool pages_is_named(pid_t pid, const char *fault)
{
	FILE *file = fopen(pages_events, "r");
	char who[32], what[32], *line = NULL;
	bool found = false;
	size_t size = 0;

	if (!file)
		err(1, "%s", pages_events);
	snprintf(who, sizeof(who), "\"pid\":%d,", pid);
	snprintf(what, sizeof(what), "\"fault\":\"%s", fault);
	while (!found && getline(&line, &size, file) > 0)
		found = strstr(line, "\"group-fault\"") && strstr(line, who) &&
			strstr(line, what);
	free(line);
	fclose(file);
	return found;
}

/* An event says so, soon. */
bool pages_named(pid_t pid, const char *fault)
{
	int n;

	for (n = 0; n < 100 && !pages_is_named(pid, fault); n++)
		usleep(50000);
	if (n < 100)
		return true;
	ksft_print_msg("no event says %s of %d\n", fault, pid);
	return false;
}
