/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The terminal: what is drawn on it, its keys, and signals while it is in use.
 */
#ifndef RDMA_ISOLATE_TERM_H
#define RDMA_ISOLATE_TERM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <termios.h>

/**
 * enum term_event - why a wait is over
 * @TERM_TIME: so much time has passed
 * @TERM_DRAW: the size is another, or the terminal was in other hands
 * @TERM_QUIT: the operator wants to leave
 */
enum term_event {
	TERM_TIME,
	TERM_DRAW,
	TERM_QUIT,
};

/**
 * struct term - a terminal in use
 * @signals: where signals come from
 * @keys: there are keys to be read
 * @mask: of signals, as it was
 * @modes: of the terminal, as they were
 */
struct term {
	int signals;
	bool keys;
	sigset_t mask;
	struct termios modes;
};

/* Begin to use standard output and, if it is one, standard input; or tell why not */
bool term_open(struct term *term);

/* Leave it as it was, with the cursor below what was drawn */
void term_close(struct term *term);

/**
 * term_wait - wait for a key or a signal
 * @term: the terminal
 * @until_ns: how long at most, by CLOCK_MONOTONIC
 *
 * A signal that ends the tool does so here, once the terminal is as it was.
 */
enum term_event term_wait(struct term *term, uint64_t until_ns);

/* Lines and columns */
void term_size(unsigned int *lines, unsigned int *columns);

/* Write a text from the first line on, cut off where the terminal ends */
void term_draw(FILE *file, const char *text, unsigned int lines,
	       unsigned int columns);

#endif /* RDMA_ISOLATE_TERM_H */
