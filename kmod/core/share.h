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
 * @slice_ns: how far one may be ahead of the others when it comes, device time, ns
 */
struct riso_share_line {
	struct riso_heap line;
	__u64 vnow;
	__u64 order;
	__u64 slice_ns;
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
 * @node: in &riso_share_tenant.line while @in_line; its key is the vtime, the device time that
 *	it has used, divided by its weight, ns
 * @in_line: it stands in line
 */
struct riso_share_group {
	struct riso_heap_node node;
	bool in_line;
};

void riso_share_begin_tenant(const struct riso_share_line *s, struct riso_share_tenant *t);
void riso_share_begin_group(const struct riso_share_tenant *t, struct riso_share_group *g);
void riso_share_enter(struct riso_share_line *s, struct riso_share_tenant *t,
		      struct riso_share_group *g);
void riso_share_leave(struct riso_share_line *s, struct riso_share_tenant *t,
		      struct riso_share_group *g);
void riso_share_limit(const struct riso_share_line *s, struct riso_share_tenant *t,
		      struct riso_share_group *g);
void riso_share_charge(struct riso_share_line *s, struct riso_share_tenant *t,
		       struct riso_share_group *g, bool turn, __u64 ns, __u32 weight);
void riso_share_refund(struct riso_share_line *s, struct riso_share_tenant *t,
		       struct riso_share_group *g, __u64 ns, __u32 weight);

/**
 * riso_share_first - whose turn it is
 * @s: the turns
 *
 * Return: the group, or NULL if nobody is in line.
 */
static inline struct riso_share_group *riso_share_first(const struct riso_share_line *s)
{
	const char *tenant = (const char *)s->line.root;
	const struct riso_heap *line;

	if (!tenant)
		return NULL;
	tenant -= offsetof(struct riso_share_tenant, node);
	line = &((const struct riso_share_tenant *)tenant)->line;
	return (struct riso_share_group *)((char *)line->root -
					   offsetof(struct riso_share_group, node));
}

#endif /* RISO_CORE_SHARE_H */
