// SPDX-License-Identifier: GPL-2.0
/*
 * The begin of error messages.
 */
#include <stdio.h>

#include "error.h"

static const char *from_file;
static unsigned int from_line;

void error_from(const char *file, unsigned int line)
{
	from_file = file;
	from_line = line;
}

bool error_is_of_file(void)
{
	return from_file;
}

void error_begin(void)
{
	fputs("rdma-isolate: ", stderr);
	if (from_file)
		fprintf(stderr, "%s:%u: ", from_file, from_line);
}

void verror(const char *format, va_list args)
{
	error_begin();
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	verror(format, args);
	va_end(args);
}
