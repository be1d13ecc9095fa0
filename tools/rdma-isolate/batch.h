/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands that come from a file, one on each line.
 */
#ifndef RDMA_ISOLATE_BATCH_H
#define RDMA_ISOLATE_BATCH_H

#include "cmd.h"

enum { WORDS_MAX = 2 + 2 * ARGS_MAX };

/**
 * struct words - the words of a line
 * @n: how many
 * @word: them, inside the line
 */
struct words {
	int n;
	char *word[WORDS_MAX + 1];
};

/**
 * words_split - take a line apart
 * @line: changed
 * @words: the words
 *
 * Words end at blanks; # begins a comment. Inside of "" blanks and # are as any
 * other, \n is a line feed, and \ takes any other character as it is.
 *
 * Return: what is wrong with the line, or NULL.
 */
const char *words_split(char *line, struct words *words);

/**
 * struct batch - the commands of a file
 * @name: of the file
 * @n: how many
 * @lines: one for each command
 */
struct batch {
	const char *name;
	unsigned int n;
	struct batch_line {
		unsigned int number;
		char *text;
		struct command cmd;
	} *lines;
};

/**
 * batch_read - read the commands of a file
 * @name: the file, "-" is standard input
 * @batch: the commands
 *
 * Return: CMD_DONE, or another status after telling what is wrong.
 */
int batch_read(const char *name, struct batch *batch);
void batch_free(struct batch *batch);

/* Run them all; if one is refused, undo what the others have changed */
int batch_run(const char *name, struct printer *out);

#endif /* RDMA_ISOLATE_BATCH_H */
