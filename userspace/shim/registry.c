// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The registry: the maps of what the shim knows.
 *
 * Owns the maps, and no more: what is in them belongs to the files that add and remove it.
 *
 * Locks: everybody reads the maps without a lock. Each map has a lock of its own for those who
 * change it, see map.c. shim_maps_lock() takes these in the order of the table below.
 *
 * Runs in any thread.
 */
#include "registry.h"
#include "shim.h"

/* Contexts, see ctx.c. */
struct shim_map shim_ctxs = SHIM_MAP_INIT;

/* Flows by their queue pair, see qp.c. */
struct shim_map shim_qps = SHIM_MAP_INIT;

/* Queue pairs that are not governed, and of which the kernel knows why. See qp.c. */
struct shim_map shim_told = SHIM_MAP_INIT;

/* CQs, see cq.c. */
struct shim_map shim_cqs = SHIM_MAP_INIT;

/* Pages of slots, see slot.c. */
struct shim_map shim_tags = SHIM_MAP_INIT;

static struct shim_map *const maps[] = {
	&shim_ctxs, &shim_qps, &shim_cqs, &shim_tags, &shim_told,
};

/**
 * shim_maps_lock - let nobody change a map
 *
 * For fork().
 */
void shim_maps_lock(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(maps); i++)
		pthread_mutex_lock(&maps[i]->lock);
}

/**
 * shim_maps_unlock - the opposite of shim_maps_lock()
 */
void shim_maps_unlock(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(maps); i++)
		pthread_mutex_unlock(&maps[i]->lock);
}
