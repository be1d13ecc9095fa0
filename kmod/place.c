// SPDX-License-Identifier: GPL-2.0
/*
 * Places: how many processes of one owner may take part in a device.
 *
 * Owns the counts of places by user and by control group. Owners are chosen so that
 * nobody is many of them:
 * - The users of a user namespace are the one user that made it, who may have many
 *   numbers there.
 * - A control group of a cgroup namespace counts with all above it in that namespace: a
 *   container that may make control groups gets no more places by that.
 *
 * &riso_dev.mutex protects the counts. Everything here may sleep.
 */

#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "place.h"

static u32 count_of(struct xarray *xa, unsigned long owner)
{
	return xa_to_value(xa_load(xa, owner) ?: xa_mk_value(0));
}

static int add_one(struct xarray *xa, unsigned long owner)
{
	return xa_err(xa_store(xa, owner, xa_mk_value(count_of(xa, owner) + 1),
			       GFP_KERNEL));
}

static void take_one_off(struct xarray *xa, unsigned long owner)
{
	u32 num = count_of(xa, owner);

	/* This entry is there, so neither needs memory. */
	if (num > 1)
		xa_store(xa, owner, xa_mk_value(num - 1), GFP_KERNEL);
	else
		xa_erase(xa, owner);
}

/**
 * riso_place_init - make the places of a new device
 * @p: the places
 */
void riso_place_init(struct riso_places *p)
{
	xa_init(&p->uids);
	xa_init(&p->cgroups);
}

/**
 * riso_place_exit - free the memory of a device's places
 * @p: the places, none of which is taken
 */
void riso_place_exit(struct riso_places *p)
{
	xa_destroy(&p->uids);
	xa_destroy(&p->cgroups);
}

/* The user that made the outermost user namespace of the process, or its own. */
static kuid_t outer_uid(void)
{
	const struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return current_uid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return ns->owner;
}

/**
 * riso_place_identify - find out whom the present process belongs to
 * @owner: filled in
 *
 * Context: process.
 */
void riso_place_identify(struct riso_place_owner *owner)
{
	owner->uid = from_kuid(&init_user_ns, outer_uid());
	owner->levels = riso_cgroup_ids(owner->cgroup, RISO_PLACE_LEVELS);
}

/**
 * riso_place_take - give a process a place
 * @p: the places of the device
 * @owner: whom the process belongs to
 *
 * Context: &riso_dev.mutex.
 * Return: 0; -EUSERS when all places are taken; -EDQUOT when the user, or one of the
 * control groups, has too many; -ENOMEM. After an error nothing is counted.
 */
int riso_place_take(struct riso_places *p, const struct riso_place_owner *owner)
{
	int err;
	u32 i;

	if (p->used >= RISO_PLACES_MAX)
		return -EUSERS;
	if (!riso_place_is_free(count_of(&p->uids, owner->uid), p->used))
		return -EDQUOT;
	for (i = 0; i < owner->levels; i++)
		if (!riso_place_is_free(count_of(&p->cgroups, owner->cgroup[i]), p->used))
			return -EDQUOT;
	err = add_one(&p->uids, owner->uid);
	if (err)
		return err;
	for (i = 0; i < owner->levels; i++) {
		err = add_one(&p->cgroups, owner->cgroup[i]);
		if (err)
			goto err_cgroups;
	}
	p->used++;
	return 0;

err_cgroups:
	while (i--)
		take_one_off(&p->cgroups, owner->cgroup[i]);
	take_one_off(&p->uids, owner->uid);
	return err;
}

/**
 * riso_place_give_back - a process has its place no longer
 * @p: the places of the device
 * @owner: as it was given to riso_place_take()
 *
 * Context: &riso_dev.mutex.
 */
void riso_place_give_back(struct riso_places *p, const struct riso_place_owner *owner)
{
	u32 i;

	for (i = 0; i < owner->levels; i++)
		take_one_off(&p->cgroups, owner->cgroup[i]);
	take_one_off(&p->uids, owner->uid);
	p->used--;
}
