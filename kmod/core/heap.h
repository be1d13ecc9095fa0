/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A heap of nodes that are part of what they stand for: the smallest key is at the root,
 * and of equal keys the one that was inserted first.
 */
#ifndef RISO_CORE_HEAP_H
#define RISO_CORE_HEAP_H

#include "types.h"

/**
 * struct riso_heap_node - a place in a heap
 * @parent: the node above, NULL for the root
 * @left: one of the two nodes below, or NULL
 * @right: the other one
 * @key: the smallest comes first
 * @order: decides between equal keys
 */
struct riso_heap_node {
	struct riso_heap_node *parent;
	struct riso_heap_node *left;
	struct riso_heap_node *right;
	__u64 key;
	__u64 order;
};

/**
 * struct riso_heap - a heap; one of zeroes is empty
 * @root: the first node, NULL in an empty heap
 * @num: number of nodes
 */
struct riso_heap {
	struct riso_heap_node *root;
	__u32 num;
};

void riso_heap_insert(struct riso_heap *heap, struct riso_heap_node *node);
void riso_heap_remove(struct riso_heap *heap, struct riso_heap_node *node);

#endif /* RISO_CORE_HEAP_H */
