// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The heap and the turns of kmod/core, in millions of random steps: what must hold after
 * each of them is computed anew, by other means, from what was done.
 *
 * The seed is printed. An argument is the seed to begin with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/share.h"
#include "random.h"

enum {
	NODES = 70,
	HEAP_STEPS = 2000000,
	/* A group may stand in line alone, with few others or with many. */
	TENANTS = 12,
	GROUPS = 40,
	SHARE_STEPS = 8000000,
	/* The device time of a chunk, and how far one may be ahead that comes back, ns */
	CHUNK = 1000,
	SLICE = 5000,
	/* Steps in which nobody comes or goes */
	PHASE = 400,
};

/* --- the heap --- */

static struct riso_heap heap;
static struct riso_heap_node nodes[NODES];
static bool is_in[NODES];

static bool is_before(const struct riso_heap_node *a, const struct riso_heap_node *b)
{
	return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static const struct riso_heap_node *find_first(void)
{
	const struct riso_heap_node *first = NULL;
	int i;

	for (i = 0; i < NODES; i++)
		if (is_in[i] && (!first || is_before(&nodes[i], first)))
			first = &nodes[i];
	return first;
}

/* How many nodes are below this one, itself included; their links and order are right. */
static unsigned int check_below(const struct riso_heap_node *node)
{
	const struct riso_heap_node *const below[] = { node->left, node->right };
	unsigned int num = 1;
	int i;

	for (i = 0; i < 2; i++) {
		if (!below[i])
			continue;
		assert_ptr_equal(below[i]->parent, node);
		assert_true(is_before(node, below[i]));
		num += check_below(below[i]);
	}
	return num;
}

/* As many steps lead to the lowest node as the number of nodes has bits. */
static unsigned int depth_of(const struct riso_heap_node *node)
{
	return node ? 1 + depth_of(node->left) : 0;
}

static void check_heap(unsigned int num)
{
	unsigned int depth = depth_of(heap.root);

	assert_int_equal(heap.num, num);
	assert_int_equal(heap.root ? check_below(heap.root) : 0, num);
	assert_true(!num || (num >> (depth - 1)) == 1);
}

static void keeps_order(void **state)
{
	uint64_t order = 0;
	unsigned int num = 0;
	int step, i;

	(void)state;
	for (step = 0; step < HEAP_STEPS; step++) {
		i = random_to(NODES);
		if (is_in[i]) {
			riso_heap_remove(&heap, &nodes[i]);
			num--;
		} else {
			/* Few keys, so that many are equal */
			nodes[i].key = random_to(20);
			nodes[i].order = order++;
			riso_heap_insert(&heap, &nodes[i]);
			num++;
		}
		is_in[i] = !is_in[i];
		assert_ptr_equal(heap.root, find_first());
		if (step % 64 == 0)
			check_heap(num);
	}
}

/* --- turns --- */

struct group {
	struct riso_share_group share;
	struct riso_share_tenant *tenant;
	uint32_t weight;
	bool served;		/* since anybody came */
	uint64_t vtime;		/* as it should be */
};

static struct riso_share_line line;
static struct riso_share_tenant tenants[GROUPS];
static struct group groups[GROUPS];

/* Each is a tenant, with a weight of its own; or they have few tenants. */
static void begin_world(bool shared)
{
	int i;

	memset(&line, 0, sizeof(line));
	memset(tenants, 0, sizeof(tenants));
	memset(groups, 0, sizeof(groups));
	line.vnow = random_to(1000000);
	line.slice_ns = SLICE;
	for (i = 0; i < GROUPS; i++)
		riso_share_begin_tenant(&line, &tenants[i]);
	for (i = 0; i < GROUPS; i++) {
		groups[i].tenant = &tenants[shared ? (int)random_to(TENANTS) : i];
		groups[i].weight = shared ? 100 : 1 + random_to(1000);
		riso_share_begin_group(groups[i].tenant, &groups[i].share);
	}
}

static void come_or_go(struct group *g)
{
	uint64_t vnow = g->tenant->vnow;

	if (g->share.in_line) {
		riso_share_leave(&line, g->tenant, &g->share);
	} else {
		riso_share_enter(&line, g->tenant, &g->share);
		/* Nobody brings along more than a slice, and nobody loses anything. */
		assert_true(g->share.node.key + SLICE >= vnow);
		assert_true(g->tenant->node.key + SLICE >= line.vnow);
		assert_true(g->share.node.key >= g->vtime);
	}
	g->vtime = g->share.node.key;
}

static struct group *first(void)
{
	struct riso_share_group *share = riso_share_first(&line);

	return share ? (struct group *)((char *)share - offsetof(struct group, share)) : NULL;
}

/*
 * The one who was served had the smallest vtime of all in line. So it is not ahead of
 * another one that stands there by more than what it got at last, a chunk: each has its
 * share within a chunk, for its weight.
 */
static void check_fair(const struct group *a, const struct group *b)
{
	uint64_t chunk = CHUNK * RISO_WEIGHT_DEFAULT / a->weight;

	if (!a->served || !a->share.in_line || !b->share.in_line || a->tenant != b->tenant)
		return;
	if (a->share.node.key > b->share.node.key + chunk)
		fail_msg("%llu ahead, %llu allowed",
			 (unsigned long long)(a->share.node.key - b->share.node.key),
			 (unsigned long long)chunk);
}

/* The same of tenants; all groups have the same weight where these have several. */
static void check_tenants(const struct group *a, const struct group *b)
{
	uint64_t chunk = CHUNK * RISO_WEIGHT_DEFAULT / a->weight;

	if (a->served && b->share.in_line)
		assert_true(a->tenant->node.key <= b->tenant->node.key + chunk);
}

static void serve(struct group *g)
{
	uint64_t ns = 1 + random_to(CHUNK);
	uint64_t before = g->share.node.key;
	uint64_t tenant = g->tenant->node.key;

	assert_true(g->share.in_line);
	riso_share_charge(&line, g->tenant, &g->share, true, ns, g->weight);
	/* Who comes now begins where it was, at least. */
	assert_true(line.vnow >= tenant && g->tenant->vnow >= before);
	/* All of it was charged, and what was not used is given back to the last bit. */
	assert_int_equal(g->share.node.key, before + ns * RISO_WEIGHT_DEFAULT / g->weight);
	if (random_to(8) == 0) {
		riso_share_refund(&line, g->tenant, &g->share, ns, g->weight);
		assert_int_equal(g->share.node.key, before);
		return;
	}
	g->served = true;
	g->vtime = g->share.node.key;
}

/* The first tenant has the smallest vtime of all in line, and its first group of its own. */
static void check_first(const struct group *g)
{
	int i;

	for (i = 0; i < GROUPS; i++) {
		const struct group *other = &groups[i];

		if (!other->share.in_line)
			continue;
		assert_true(g->tenant->node.key <= other->tenant->node.key);
		if (other->tenant == g->tenant)
			assert_true(g->share.node.key <= other->share.node.key);
	}
}

static void one_phase(int steps)
{
	struct group *g = NULL;
	int step, i, j;

	for (i = random_to(GROUPS); i; i--)
		come_or_go(&groups[random_to(GROUPS)]);
	for (i = 0; i < GROUPS; i++)
		groups[i].served = false;
	for (step = 0; step < steps; step++) {
		g = first();
		if (!g)
			return;
		serve(g);
	}
	check_first(first());
	for (i = 0; i < GROUPS; i++) {
		/* None has come to less or more than it was charged. */
		assert_true(!groups[i].vtime || groups[i].share.node.key == groups[i].vtime);
		for (j = 0; j < GROUPS; j++) {
			check_fair(&groups[i], &groups[j]);
			check_tenants(&groups[i], &groups[j]);
		}
	}
}

static void shares_fairly(void **state)
{
	int step;

	(void)state;
	for (step = 0; step < SHARE_STEPS; step += PHASE) {
		if (step % (PHASE * 64) == 0)
			begin_world(random_to(2));
		one_phase(PHASE);
	}
}

/* Those who use the same take turns in the order in which they came. */
static void takes_turns(void **state)
{
	int round, i;

	(void)state;
	begin_world(false);
	for (i = 0; i < GROUPS; i++) {
		groups[i].weight = RISO_WEIGHT_DEFAULT;
		come_or_go(&groups[i]);
	}
	for (round = 0; round < 100; round++) {
		for (i = 0; i < GROUPS; i++) {
			assert_ptr_equal(first(), &groups[i]);
			riso_share_charge(&line, groups[i].tenant, &groups[i].share, true,
					  CHUNK, RISO_WEIGHT_DEFAULT);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_order),
		cmocka_unit_test(takes_turns),
		cmocka_unit_test(shares_fairly),
	};

	random_begin(argc, argv);
	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
