/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose turn it is: the rule is in share.c.
 */
#ifndef RISO_CORE_SHARE_H
#define RISO_CORE_SHARE_H

#include "heap.h"

enum {
	/* Weight of a group that no rule gives another one. */
	RISO_WEIGHT_DEFAULT = 100,
};

/**
 * struct riso_share_line - the turns of one direction of a device
 * @line: tenants with a group in line, by vtime
 * @vnow: vtime at which the last tenant was served, ns
 * @order: insertions so far, for turns among equals
 */
struct riso_share_line {
	struct riso_heap line;
	__u64 vnow;
	__u64 order;
};

/**
 * struct riso_share_tenant - groups that have one share together
 * @node: in &riso_share_line.line while @line is not empty; its key is the vtime, the device time
 *	that the groups have used, divided by their weights, ns
 * @line: its groups in line, by vtime
 * @vnow: vtime at which the last of its groups was served, ns
 */
struct riso_share_tenant {
	struct riso_heap_node node;
	struct riso_heap line;
	__u64 vnow;
};

/**
 * struct riso_share_group - one that takes turns
 * @node: in &riso_share_tenant.line while it is in line; its key is the vtime, the device
 *	time that it has used, divided by its weight, ns
 */
struct riso_share_group {
	struct riso_heap_node node;
};

void riso_share_begin_tenant(const struct riso_share_line *s, struct riso_share_tenant *t);
void riso_share_begin_group(const struct riso_share_tenant *t, struct riso_share_group *g);
void riso_share_enter(struct riso_share_line *s, struct riso_share_tenant *t,
		      struct riso_share_group *g, __u64 slice_ns);
void riso_share_leave(struct riso_share_line *s, struct riso_share_tenant *t,
		      struct riso_share_group *g);
struct riso_share_group *riso_share_first(const struct riso_share_line *s);
void riso_share_serve(struct riso_share_line *s, struct riso_share_tenant *t,
		      const struct riso_share_group *g);
void riso_share_charge(struct riso_share_line *s, struct riso_share_tenant *t,
		       struct riso_share_group *g, bool in_line, __u64 ns, __u32 weight);
void riso_share_refund(struct riso_share_line *s, struct riso_share_tenant *t,
		       struct riso_share_group *g, bool in_line, __u64 ns, __u32 weight);

#endif /* RISO_CORE_SHARE_H */
