// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A map from addresses to what the shim knows of them, read without a lock.
 *
 * Owns the tables of a map. They use open addressing and are at most half full. An entry
 * never moves, so whoever looks an address up finds it while others come and go. A table
 * that has become too small is replaced by a larger copy. The old one stays for those who
 * still read it, which costs as much memory again at most.
 *
 * Lock: shim_map.lock is taken by those who change the map; nothing else is
 * taken inside it.
 *
 * Runs in any thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "guard.h"
#include "map.h"

enum { FIRST_NUM = 256 };

/* What a map has at first: one entry, which stays free. */
struct shim_map_table shim_map_none = { .used = 1, .entry = { { 0, NULL } } };

static struct shim_map_table *new_table(size_t num)
{
	struct shim_map_table *t;

	t = calloc(1, sizeof(*t) + sizeof(t->entry[0]) * num);
	if (!t)
		return NULL;
	t->mask = num - 1;
	return t;
}

static void put(struct shim_map_table *t, uintptr_t key, void *value)
{
	size_t i = shim_map_hash(t, key);

	while (t->entry[i].key > SHIM_MAP_REMOVED)
		i = (i + 1) & t->mask;
	if (!t->entry[i].key)
		t->used++;
	__atomic_store_n(&t->entry[i].value, value, __ATOMIC_RELAXED);
	/* Pairs with the acquire of the key in shim_map_find(). */
	__atomic_store_n(&t->entry[i].key, key, __ATOMIC_RELEASE);
}

/* Make room for another one; the lock is held. */
static bool make_room(struct shim_map *map)
{
	struct shim_map_table *old = map->table;
	struct shim_map_table *t;
	size_t i;

	if (old->used <= old->mask / 2)
		return true;
	t = new_table(old->mask ? 2 * (old->mask + 1) : FIRST_NUM);
	if (!t)
		return false;
	for (i = 0; i <= old->mask; i++)
		if (old->entry[i].key > SHIM_MAP_REMOVED)
			put(t, old->entry[i].key, old->entry[i].value);
	t->old = old;
	/* Pairs with the acquire of the table in shim_map_find(). */
	__atomic_store_n(&map->table, t, __ATOMIC_RELEASE);
	return true;
}

/**
 * shim_map_add - add an address
 * @map: the map
 * @key: an address that is not there, and not NULL
 * @value: what belongs to it
 *
 * Return: 0 or ENOMEM.
 */
int shim_map_add(struct shim_map *map, const void *key, void *value)
{
	bool room;

	shim_lock(&map->lock);
	room = make_room(map);
	if (room)
		put(map->table, (uintptr_t)key, value);
	shim_unlock(&map->lock);
	return room ? 0 : ENOMEM;
}

/* Remove an address; if @value is not NULL, only with that. */
static void del(struct shim_map *map, const void *key, const void *value)
{
	struct shim_map_table *t;
	size_t i;

	shim_lock(&map->lock);
	t = map->table;
	i = shim_map_hash(t, (uintptr_t)key);
	while (t->entry[i].key && t->entry[i].key != (uintptr_t)key)
		i = (i + 1) & t->mask;
	if (!t->entry[i].key || (value && t->entry[i].value != value))
		goto unlock;
	__atomic_store_n(&t->entry[i].key, SHIM_MAP_REMOVED, __ATOMIC_RELEASE);
	/* Nobody looks further than a free one, so what leads to it is free, too. */
	while (t->entry[i].key == SHIM_MAP_REMOVED && !t->entry[(i + 1) & t->mask].key) {
		__atomic_store_n(&t->entry[i].key, 0, __ATOMIC_RELEASE);
		t->used--;
		i = (i - 1) & t->mask;
	}
unlock:
	shim_unlock(&map->lock);
}

/**
 * shim_map_del - remove an address
 * @map: the map
 * @key: an address that nobody looks up any more; may be missing
 */
void shim_map_del(struct shim_map *map, const void *key)
{
	del(map, key, NULL);
}

/**
 * shim_map_del_value - remove an address, unless it has become that of another object
 * @map: the map
 * @key: the address; may be missing
 * @value: what belonged to it
 */
void shim_map_del_value(struct shim_map *map, const void *key, const void *value)
{
	del(map, key, value);
}

/**
 * shim_map_search - look a value up by what it is
 * @map: the map
 * @match: tells whether it is the one
 * @arg: for @match
 *
 * Return: the value or NULL.
 */
void *shim_map_search(struct shim_map *map, bool (*match)(void *value, void *arg),
		      void *arg)
{
	struct shim_map_table *t;
	void *found = NULL;
	size_t i;

	shim_lock(&map->lock);
	t = map->table;
	for (i = 0; i <= t->mask && !found; i++)
		if (t->entry[i].key > SHIM_MAP_REMOVED &&
		    match(t->entry[i].value, arg))
			found = t->entry[i].value;
	shim_unlock(&map->lock);
	return found;
}
