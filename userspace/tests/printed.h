/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What was printed into a file of the test.
 */
#ifndef RISO_TEST_PRINTED_H
#define RISO_TEST_PRINTED_H

#include <stdio.h>

/**
 * read_printed - read what is in a file, and close it
 * @file: what tmpfile() has returned
 * @got: where it goes, as a string
 * @size: how many bytes have room there
 */
static inline void read_printed(FILE *file, char *got, size_t size)
{
	rewind(file);
	got[fread(got, 1, size - 1, file)] = 0;
	fclose(file);
}

#endif /* RISO_TEST_PRINTED_H */
