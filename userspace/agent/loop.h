/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the agent waits for.
 */
#ifndef RISO_LOOP_H
#define RISO_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct source - a file descriptor that something is done for when it is readable
 * @fd: -1 if it is none
 * @ready: called then; may remove any source
 */
struct source {
	int fd;
	void (*ready)(struct source *s);
};

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

uint64_t now_ns(void);

/* 0 or a negative errno */
int loop_open(void);
void loop_close(void);
int loop_add(struct source *s);
/* Nothing if it is none; the descriptor stays open. */
void loop_remove(struct source *s);
/* Until loop_stop() */
void loop_run(void);
void loop_stop(void);

/* A timer, added already; 0 or a negative errno */
int timer_open(struct source *s, void (*ready)(struct source *s));
void timer_close(struct source *s);
/* Once, at a time of now_ns(); 0 is never */
void timer_set(struct source *s, uint64_t at_ns);
/* In @ready: has it fired? */
bool timer_fired(struct source *s);

void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* RISO_LOOP_H */
