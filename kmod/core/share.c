// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whose turn it is: virtual time, in the manner of start-time fair queueing.
 *
 * Owns the virtual times. What a group posts advances its vtime by the device time that it
 * takes, divided by its weight, and the smallest vtime goes first. So neither large messages
 * nor many queue pairs earn more (paper, 4.2). Groups belong to tenants, which have a vtime
 * of the same kind: the first tenant is served, and of its groups the first.
 *
 * Who comes back into the line is at most a slice ahead of those that are being served, and
 * a new one is where they are. A step takes time that grows with the logarithm of how many
 * are in line.
 */

#include "share.h"
#include "units.h"

static void insert(struct riso_share_line *s, struct riso_heap *line,
		   struct riso_heap_node *node)
{
	node->order = s->order++;
	riso_heap_insert(line, node);
}

static void limit_node(struct riso_heap_node *node, __u64 vnow, __u64 slice_ns)
{
	if (node->key + slice_ns < vnow)
		node->key = vnow - slice_ns;
}

/**
 * riso_share_limit - a group comes, or has its turn without standing in line
 * @s: the turns
 * @t: its tenant
 * @g: the group, not in line
 *
 * A group may be served before the others for a slice at most: credit beyond that is lost.
 */
void riso_share_limit(const struct riso_share_line *s, struct riso_share_tenant *t,
		      struct riso_share_group *g)
{
	if (!t->line.num)
		limit_node(&t->node, s->vnow, s->slice_ns);
	limit_node(&g->node, t->vnow, s->slice_ns);
}

/**
 * riso_share_begin_tenant - a new tenant has used as much as the others
 * @s: the turns
 * @t: the tenant, of zeroes
 */
void riso_share_begin_tenant(const struct riso_share_line *s, struct riso_share_tenant *t)
{
	t->node.key = s->vnow;
}

/**
 * riso_share_begin_group - a group that comes to a tenant has used as much as its others
 * @t: the tenant
 * @g: the group, not in line
 */
void riso_share_begin_group(const struct riso_share_tenant *t, struct riso_share_group *g)
{
	g->node.key = t->vnow;
}

/**
 * riso_share_enter - a group stands in line from now on
 * @s: the turns
 * @t: its tenant
 * @g: the group, not in line
 */
void riso_share_enter(struct riso_share_line *s, struct riso_share_tenant *t,
		      struct riso_share_group *g)
{
	riso_share_limit(s, t, g);
	if (!t->line.num)
		insert(s, &s->line, &t->node);
	insert(s, &t->line, &g->node);
	g->in_line = true;
}

/**
 * riso_share_leave - a group does not stand in line any more
 * @s: the turns
 * @t: its tenant
 * @g: the group, in line
 */
void riso_share_leave(struct riso_share_line *s, struct riso_share_tenant *t,
		      struct riso_share_group *g)
{
	g->in_line = false;
	riso_heap_remove(&t->line, &g->node);
	if (!t->line.num)
		riso_heap_remove(&s->line, &t->node);
}

/* Change the vtime of a node, which goes behind others of the same then. */
static void move(struct riso_share_line *s, struct riso_heap *line, struct riso_heap_node *node,
		 bool in_line, __u64 vtime)
{
	if (in_line)
		riso_heap_remove(line, node);
	node->key = vtime;
	if (in_line)
		insert(s, line, node);
}

/**
 * riso_share_charge - a group has used device time
 * @s: the turns
 * @t: its tenant
 * @g: the group
 * @turn: it was its turn
 * @ns: device time
 * @weight: of the group, not 0
 *
 * With @turn, the virtual time moves to that of this group: who comes later begins there. A
 * group that finds nobody in line may have its turn without standing there, after
 * riso_share_limit().
 */
void riso_share_charge(struct riso_share_line *s, struct riso_share_tenant *t,
		       struct riso_share_group *g, bool turn, __u64 ns, __u32 weight)
{
	__u64 share = ns * RISO_WEIGHT_DEFAULT / weight;

	if (turn) {
		s->vnow = riso_max(s->vnow, t->node.key);
		t->vnow = riso_max(t->vnow, g->node.key);
	}
	move(s, &t->line, &g->node, g->in_line, g->node.key + share);
	move(s, &s->line, &t->node, t->line.num, t->node.key + share);
}

/**
 * riso_share_refund - a group was charged for what it did not use
 * @s: the turns
 * @t: its tenant
 * @g: the group
 * @ns: device time
 * @weight: of the group, not 0
 */
void riso_share_refund(struct riso_share_line *s, struct riso_share_tenant *t,
		       struct riso_share_group *g, __u64 ns, __u32 weight)
{
	__u64 share = ns * RISO_WEIGHT_DEFAULT / weight;

	move(s, &t->line, &g->node, g->in_line,
	     g->node.key - (share < g->node.key ? share : g->node.key));
	move(s, &s->line, &t->node, t->line.num,
	     t->node.key - (share < t->node.key ? share : t->node.key));
}
