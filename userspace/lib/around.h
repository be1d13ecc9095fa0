/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which queue pairs of programs post around the shim, by looking at them again and again. Pure
 * functions.
 *
 * The send queue of a reliable connection numbers its packets, whoever has posted. A number that
 * moves while the process tells the module of nothing is a hint: a provider may also set it back,
 * or send again what was posted before. Two looks in a row have to agree.
 */
#ifndef RISO_AROUND_H
#define RISO_AROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/rdma_isolate.h>

enum {
	/* Intervals between looks, one after the other, in which a queue pair has to send */
	AROUND_INTERVALS = 2,
};

/**
 * struct around_flow - a queue pair of a program that can send, as one look finds it
 * @dev: name of its device
 * @index: number of its device
 * @qpn: number of the queue pair
 * @group: id of the flow's group
 * @pid: its process
 * @comm: name of that
 * @shim: its process posts for it under grants, and tells of what it posts
 * @told: what the process has told of, bytes; 0 without @shim
 * @marked: the module knows already that it posts around
 * @asked: this look has come to it
 * @err: why the RDMA core has not told of it, an errno; 0 if it has
 * @answered: it can send, and @psn is known
 * @psn: number of its next packet
 * @settled: nothing that the process has told of is on its way
 * @strikes: intervals in a row in which it has sent, and the process told of nothing
 */
struct around_flow {
	char dev[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	uint32_t index;
	uint32_t qpn;
	uint32_t group;
	uint32_t pid;
	char comm[RDMA_ISOLATE_COMM_MAX + 1];
	bool shim;
	uint64_t told;
	bool marked;
	bool asked;
	int err;
	bool answered;
	uint32_t psn;
	bool settled;
	unsigned int strikes;
};

/**
 * struct around_look - all of them
 * @flow: those, by device and number once around_sort() has been called
 * @n: how many
 */
struct around_look {
	struct around_flow *flow;
	size_t n;
};

/* Put the flows of a look in order. */
void around_sort(struct around_look *look);

/**
 * around_find - find a flow
 * @look: where, in order
 * @index: number of the device
 * @qpn: number of the queue pair
 *
 * Return: the flow, or NULL.
 */
struct around_flow *around_find(const struct around_look *look, uint32_t index, uint32_t qpn);

/**
 * around_compare - see what has happened since the look before
 * @last: the look before, in order
 * @now: this one, in order; &around_flow.settled and &around_flow.strikes are filled in
 *
 * A flow that has not answered begins anew.
 */
void around_compare(const struct around_look *last, struct around_look *now);

/* Does it seem to post around the shim? */
bool around_is_seen(const struct around_flow *flow);

/* Forget all. */
void around_clear(struct around_look *look);

#endif /* RISO_AROUND_H */
