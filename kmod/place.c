// SPDX-License-Identifier: GPL-2.0
/*
 * Places: how many processes of one owner may take part in a device.
 *
 * Owns the counts of places, and says whom a process belongs to. That is chosen so that
 * nobody is many:
 * - Processes of a container are those in one PID namespace right below the initial one, or,
 *   if they are in the initial one, in one cgroup namespace, that the administrator of the
 *   host made. They can leave neither, whatever namespaces and control groups they make.
 *   They count for the container alone: its users have numbers like those of the host.
 * - The users of a user namespace that another user made are that one user, who may have
 *   many numbers there; so are PID namespaces in it no containers.
 * - All others belong to their user.
 *
 * &riso_dev.mutex protects the counts. Everything here may sleep.
 */

#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/pid_namespace.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "place.h"

enum {
	/*
	 * Who takes part anew is given a few grants before it has posted anything. An owner
	 * may do that once in 50 ms in the long run...
	 */
	RISO_TAKE_NS = 50 * NSEC_PER_MSEC,
	/* ...and at once as often as the programs of a host may start together, and again. */
	RISO_TAKE_BURST = 2 * RISO_PLACES_MAX,
};

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
	xa_init(&p->containers);
	riso_rate_init(&p->taken);
}

/**
 * riso_place_exit - free the memory of a device's places
 * @p: the places, none of which is taken
 */
void riso_place_exit(struct riso_places *p)
{
	xa_destroy(&p->uids);
	xa_destroy(&p->containers);
}

/* The user that made the outermost namespace above this one. */
static kuid_t maker_of(const struct user_namespace *ns)
{
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return ns->owner;
}

/* Has the administrator of the host made what belongs to this namespace? */
static bool is_of_host(const struct user_namespace *ns)
{
	return ns == &init_user_ns || uid_eq(maker_of(ns), GLOBAL_ROOT_UID);
}

/* A number that no other container has, or 0 outside of all. */
static u32 find_container(void)
{
	const struct pid_namespace *ns = task_active_pid_ns(current);

	if (ns == &init_pid_ns)
		return riso_cgroup_ns();
	while (ns->parent != &init_pid_ns)
		ns = ns->parent;
	return is_of_host(ns->user_ns) ? ns->ns.inum : 0;
}

/**
 * riso_place_identify - find out whom the present process belongs to
 * @owner: filled in
 *
 * Context: process.
 */
void riso_place_identify(struct riso_place_owner *owner)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = ns == &init_user_ns ? current_uid() : maker_of(ns);

	owner->uid = from_kuid(&init_user_ns, uid);
	owner->container = find_container();
	owner->cgroup = riso_cgroup_id();
}

static struct xarray *counts_of(struct riso_places *p, const struct riso_place_owner *owner)
{
	return owner->container ? &p->containers : &p->uids;
}

/**
 * riso_place_take - give a process a place
 * @p: the places of the device
 * @owner: whom the process belongs to
 *
 * Context: &riso_dev.mutex.
 * Return: 0; -EUSERS when all places are taken; -EDQUOT when the owner has too many, or
 * takes them too often; -ENOMEM. After an error nothing is counted but the try.
 */
int riso_place_take(struct riso_places *p, const struct riso_place_owner *owner)
{
	struct xarray *counts = counts_of(p, owner);
	int err;

	if (p->used >= RISO_PLACES_MAX)
		return -EUSERS;
	if (!riso_place_is_free(count_of(counts, riso_place_key(owner)), p->used))
		return -EDQUOT;
	if (!riso_rate_take(&p->taken, riso_place_key(owner), RISO_TAKE_NS, RISO_TAKE_BURST))
		return -EDQUOT;
	err = add_one(counts, riso_place_key(owner));
	if (!err)
		p->used++;
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
	take_one_off(counts_of(p, owner), riso_place_key(owner));
	p->used--;
}
