// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A binary heap without an array.
 *
 * Owns the links between nodes. The tree is complete: node number n, counted from 1 row by
 * row, has the nodes 2n and 2n + 1 below it, so the bits of a number lead to its place. An
 * insertion and a removal take as many steps as a number has bits.
 */

#include "heap.h"

static bool is_before(const struct riso_heap_node *a, const struct riso_heap_node *b)
{
	return a->key < b->key || (a->key == b->key && a->order < b->order);
}

/* The pointer that leads to node @num, which may be the next free number; and its parent */
static struct riso_heap_node **find_link(struct riso_heap *heap, __u32 num,
					 struct riso_heap_node **parent)
{
	struct riso_heap_node **link = &heap->root;
	__u32 bit = 1;

	*parent = NULL;
	while (bit <= num / 2)
		bit *= 2;
	for (bit /= 2; bit; bit /= 2) {
		*parent = *link;
		link = num & bit ? &(*link)->right : &(*link)->left;
	}
	return link;
}

/* The pointer that leads to a node */
static struct riso_heap_node **link_to(struct riso_heap *heap, struct riso_heap_node *node)
{
	if (!node->parent)
		return &heap->root;
	return node->parent->left == node ? &node->parent->left : &node->parent->right;
}

/* Tell the nodes below a node where it is. */
static void adopt(struct riso_heap_node *node)
{
	if (node->left)
		node->left->parent = node;
	if (node->right)
		node->right->parent = node;
}

/* Exchange a node with the one above it. */
static void raise(struct riso_heap *heap, struct riso_heap_node *node)
{
	struct riso_heap_node *parent = node->parent;
	struct riso_heap_node *left = node->left, *right = node->right;

	*link_to(heap, parent) = node;
	node->parent = parent->parent;
	if (parent->left == node) {
		node->left = parent;
		node->right = parent->right;
	} else {
		node->left = parent->left;
		node->right = parent;
	}
	parent->left = left;
	parent->right = right;
	adopt(parent);
	adopt(node);
}

static void sift_up(struct riso_heap *heap, struct riso_heap_node *node)
{
	while (node->parent && is_before(node, node->parent))
		raise(heap, node);
}

static void sift_down(struct riso_heap *heap, struct riso_heap_node *node)
{
	struct riso_heap_node *first;

	for (;;) {
		first = node->left;
		if (node->right && is_before(node->right, first))
			first = node->right;
		if (!first || !is_before(first, node))
			return;
		raise(heap, first);
	}
}

/**
 * riso_heap_insert - put a node into a heap
 * @heap: the heap
 * @node: a node that is in no heap, with its key and order
 */
void riso_heap_insert(struct riso_heap *heap, struct riso_heap_node *node)
{
	struct riso_heap_node **link = find_link(heap, ++heap->num, &node->parent);

	node->left = NULL;
	node->right = NULL;
	*link = node;
	sift_up(heap, node);
}

/**
 * riso_heap_remove - take a node out of its heap
 * @heap: the heap
 * @node: the node
 */
void riso_heap_remove(struct riso_heap *heap, struct riso_heap_node *node)
{
	struct riso_heap_node *parent;
	struct riso_heap_node **link = find_link(heap, heap->num--, &parent);
	struct riso_heap_node *last = *link;

	*link = NULL;
	if (last == node)
		return;
	/* The last node takes the place. */
	*link_to(heap, node) = last;
	last->parent = node->parent;
	last->left = node->left;
	last->right = node->right;
	adopt(last);
	sift_up(heap, last);
	sift_down(heap, last);
}
