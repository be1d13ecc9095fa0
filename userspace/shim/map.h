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
 * @mask: number of entries less one
 * @used: number of entries that are not free; removed ones are not free
 * @entry: the entries
 */
struct shim_map_table {
	struct shim_map_table *old;
	size_t mask;
	size_t used;
	struct shim_map_entry entry[];
};

/**
 * struct shim_map - a map
 * @lock: serialises those who change the map
 * @table: entries of the map; read without @lock
 */
struct shim_map {
	pthread_mutex_t lock;
	struct shim_map_table *table;
};

extern struct shim_map_table shim_map_none;

#define SHIM_MAP_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .table = &shim_map_none }

/*
 * The factor is 2^32 / golden ratio^2, which fits into an instruction. Addresses that have a
 * distance in common are spread by it.
 */
static inline size_t shim_map_hash(const struct shim_map_table *t, uintptr_t key)
{
	return ((uint64_t)key * 0x61c88647 >> 32) & t->mask;
}

/**
 * shim_map_find - look an address up
 * @map: the map
 * @key: the address; not NULL, as free entries have that
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
	for (i = shim_map_hash(t, (uintptr_t)key);; i = (i + 1) & t->mask) {
		/* Pairs with the release in put(). */
		k = __atomic_load_n(&t->entry[i].key, __ATOMIC_ACQUIRE);
		if (__builtin_expect(k == (uintptr_t)key, 1))
			return __atomic_load_n(&t->entry[i].value, __ATOMIC_RELAXED);
		if (!k)
			return NULL;
	}
}

int shim_map_add(struct shim_map *map, const void *key, void *value);
void shim_map_del(struct shim_map *map, const void *key);
void shim_map_del_value(struct shim_map *map, const void *key, const void *value);
void *shim_map_search(struct shim_map *map, bool (*match)(void *value, void *arg),
		      void *arg);

#endif /* SHIM_MAP_H */
