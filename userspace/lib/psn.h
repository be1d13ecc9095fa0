/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the RDMA core tells of the packets of queue pairs. A process of its own asks: a program can
 * hold back the answer for a queue pair of its own, and the kernel then does not even let go of
 * who has asked.
 */
#ifndef RISO_PSN_H
#define RISO_PSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	/* After so long there will be no more answers. */
	PSN_LIMIT_MS = 2000,
};

/**
 * struct psn_query - a queue pair that is asked for
 * @index: number of its device, which has one port
 * @qpn: its number there
 */
struct psn_query {
	uint32_t index;
	uint32_t qpn;
};

/**
 * struct psn_answer - what is known of a queue pair
 * @of: which it is
 * @err: why the core does not tell of it, an errno; 0 if it does
 * @sends: it can send, and @psn is known
 * @psn: number of its next packet, 24 bits
 */
struct psn_answer {
	struct psn_query of;
	int err;
	bool sends;
	uint32_t psn;
};

/**
 * struct psn - a process that asks
 * @pid: its number, 0 if there is none
 * @fd: where its answers come from, without waiting; readable at its end, too. -1 if there is none
 */
struct psn {
	pid_t pid;
	int fd;
};

/**
 * psn_begin - ask for some queue pairs
 * @p: as it is before the first use, without a process or a file, or ended by psn_end()
 * @query: which
 * @n: how many; with 0 there is no process, and no answer
 *
 * Return: 0; -EBUSY as long as the kernel does not let go of the process before; another negative
 * errno.
 */
int psn_begin(struct psn *p, const struct psn_query *query, size_t n);

/**
 * psn_read - take an answer
 * @p: who asks
 * @answer: filled in
 *
 * They come in the order in which they were asked for.
 *
 * Return: 1; 0 if there are no more; -EAGAIN if there is none now.
 */
int psn_read(struct psn *p, struct psn_answer *answer);

/* End it, whether all have answered or not. Does not wait. */
void psn_end(struct psn *p);

#endif /* RISO_PSN_H */
