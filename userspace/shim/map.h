/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A map from addresses to what the shim knows of them. See map.c.
 */
#ifndef SHIM_MAP_H
#define SHIM_MAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Key of an entry that was removed. */
enum { SHIM_MAP_REMOVED = 1 };

/**
 * struct shim_map_entry - a key and its value
 * @key: the address, 0 for never used, or SHIM_MAP_REMOVED
 * @value: what belongs to @key
 */
struct shim_map_entry {
	uintptr_t key;
	void *value;
};

/**
 * struct shim_map_table - the entries of a map
 * @old: the table in use before, which somebody may still be reading
 * @shift: bits by which a hash of 64 bits is shifted right, to be the index of an entry
 * @mask: number of entries less one
 * @used: number of entries that are not free; removed ones are not free
 * @entry: the entries
 */
struct shim_map_table {
	struct shim_map_table *old;
	unsigned int shift;
	size_t mask;
	size_t used;
	struct shim_map_entry entry[];
};

/**
 * struct shim_map - a map
 * @lock: serialises those who change the map
 * @table: entries of the map, NULL as long as there were none; read without @lock
 */
struct shim_map {
	pthread_mutex_t lock;
	struct shim_map_table *table;
};

#define SHIM_MAP_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }

static inline size_t shim_map_hash(const struct shim_map_table *t, uintptr_t key)
{
	return ((uint64_t)key >> 4) * 0x9e3779b97f4a7c15ULL >> t->shift;
}

/**
 * shim_map_find - look an address up
 * @map: the map
 * @key: the address
 *
 * Without a lock; others may add and remove other addresses meanwhile.
 *
 * Return: the value or NULL.
 */
static inline void *shim_map_find(const struct shim_map *map, const void *key)
{
	const struct shim_map_table *t;
	uintptr_t k;
	size_t i;

	/* Pairs with the release in make_room(). */
	t = __atomic_load_n(&map->table, __ATOMIC_ACQUIRE);
	if (!t)
		return NULL;
	for (i = shim_map_hash(t, (uintptr_t)key);; i = (i + 1) & t->mask) {
		/* Pairs with the release in put(). */
		k = __atomic_load_n(&t->entry[i].key, __ATOMIC_ACQUIRE);
		/* First, as 0 may be looked up: a free entry has the value of a removed one. */
		if (!k)
			return NULL;
		if (k == (uintptr_t)key)
			return __atomic_load_n(&t->entry[i].value,
					       __ATOMIC_RELAXED);
	}
}

int shim_map_add(struct shim_map *map, const void *key, void *value);
void shim_map_del(struct shim_map *map, const void *key);
void *shim_map_search(struct shim_map *map, bool (*match)(void *value, void *arg),
		      void *arg);

#endif /* SHIM_MAP_H */
