/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Places: how many processes of one owner may take part in a device.
 */
#ifndef RISO_PLACE_H
#define RISO_PLACE_H

#include <linux/types.h>
#include <linux/xarray.h>

enum {
	/* Processes that may take part in a device. */
	RISO_PLACES_MAX = 512,
};

/**
 * struct riso_places - the places of a device, under &riso_dev.mutex
 * @used: how many are taken
 * @uids: what each user has outside of containers
 * @containers: what each container has
 */
struct riso_places {
	u32 used;
	struct xarray uids;
	struct xarray containers;
};

/**
 * struct riso_place_owner - who has a place
 * @uid: user of the process, or the one that made its outermost user namespace
 * @container: number of the namespace that is its container, 0 outside of all
 * @cgroup: id of its control group
 */
struct riso_place_owner {
	uid_t uid;
	u32 container;
	u64 cgroup;
};

void riso_place_identify(struct riso_place_owner *owner);

/* What an owner is counted by: numbers of namespaces are far above those of users. */
static inline unsigned long riso_place_key(const struct riso_place_owner *owner)
{
	return owner->container ?: owner->uid;
}

/* The same of the present process. */
static inline unsigned long riso_place_own_key(void)
{
	struct riso_place_owner owner;

	riso_place_identify(&owner);
	return riso_place_key(&owner);
}

/**
 * riso_place_is_free - may an owner have one more place?
 * @own: places of the owner
 * @used: places that are taken, those included
 *
 * Nobody has more places than are left. So the first owner may have half of all, the
 * next one half of the rest, and no one owner fills the device.
 *
 * Return: true if so.
 */
static inline bool riso_place_is_free(u32 own, u32 used)
{
	return own < RISO_PLACES_MAX - used;
}

void riso_place_init(struct riso_places *p);
void riso_place_exit(struct riso_places *p);
int riso_place_take(struct riso_places *p, const struct riso_place_owner *owner);
void riso_place_give_back(struct riso_places *p, const struct riso_place_owner *owner);

#endif /* RISO_PLACE_H */
