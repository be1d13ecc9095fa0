/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How an error message begins: with the program, and with the line of the file that
 * the command came from.
 */
#ifndef RDMA_ISOLATE_ERROR_H
#define RDMA_ISOLATE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

/**
 * error_from - the commands that follow come from a file
 * @file: its name, NULL for the command line
 * @line: number of the line
 */
void error_from(const char *file, unsigned int line);

/* Do the commands come from a file? */
bool error_is_of_file(void);

/* Print the begin of an error message to stderr */
void error_begin(void);

/* Print a whole one */
void error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void verror(const char *format, va_list args)
	__attribute__((format(printf, 1, 0)));

#endif /* RDMA_ISOLATE_ERROR_H */
