/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A simulated adapter: it sends what it is given, first come, first served.
 */
#ifndef RISO_TEST_ADAPTER_H
#define RISO_TEST_ADAPTER_H

#include "core/units.h"

enum {
	/* More pieces than a window and the longest path hold */
	ADAPTER_PIECES = 1 << 18,
};

/**
 * struct adapter_piece - what was posted at once
 * @bytes: its bytes
 * @posted_ns: when it was posted
 * @left_ns: when its last byte leaves
 * @group: whose it is
 */
struct adapter_piece {
	__u64 bytes;
	__u64 posted_ns;
	__u64 left_ns;
	unsigned int group;
};

/**
 * struct adapter - a link with a queue in front of it
 * @rate: bytes per second
 * @delay_ns: from the last byte that leaves to the completion
 * @pieces: a ring of what is posted and not completed
 * @head: where the next piece goes
 * @tail: the oldest piece
 * @left_ns: when the last byte of all leaves
 * @idle_ns: time in which nothing was to be sent, since the first post
 */
struct adapter {
	__u64 rate;
	__u64 delay_ns;
	struct adapter_piece pieces[ADAPTER_PIECES];
	unsigned int head;
	unsigned int tail;
	__u64 left_ns;
	__u64 idle_ns;
};

void adapter_init(struct adapter *a, __u64 rate, __u64 delay_ns, __u64 now);
void adapter_post(struct adapter *a, __u64 bytes, unsigned int group, __u64 now);
const struct adapter_piece *adapter_oldest(const struct adapter *a);
__u64 adapter_next(const struct adapter *a);
void adapter_complete(struct adapter *a);
__u64 adapter_standing(const struct adapter *a, __u64 now);

#endif /* RISO_TEST_ADAPTER_H */
