/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who groups are, and what they wait for.
 */
#ifndef RDMA_ISOLATE_GROUP_H
#define RDMA_ISOLATE_GROUP_H

#include <stdint.h>

#include <libmnl/libmnl.h>

/* as many as the kernel tells of */
enum { BEHIND_MAX = 8 };

/**
 * struct behind - the groups that a group waited for
 * @n: how many
 * @group: id of each
 * @used_ns: device time that it used, the longest first
 */
struct behind {
	unsigned int n;
	struct {
		uint32_t group;
		uint64_t used_ns;
	} of[BEHIND_MAX];
};

/* a module or task, its pid, and an address */
enum { WHO_LEN = 96 };

/* Name a group; a task may have given itself any bytes */
void group_who(const struct nlattr * const *attrs, char *who);

void behind_read(const struct nlmsghdr *nlh, struct behind *behind);

#endif /* RDMA_ISOLATE_GROUP_H */
