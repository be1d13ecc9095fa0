// SPDX-License-Identifier: GPL-2.0
/*
 * Places: how many processes of one owner may take part in a device.
 *
 * Owns what is counted of each owner, and says whom a process belongs to. That is chosen so
 * that nobody is many:
 * - Processes of a container are those in one PID namespace right below the initial one, or,
 *   if they are in the initial one, in one cgroup namespace, that the administrator of the
 *   host made. They leave the former by no namespace that they make, and the latter by a
 *   user namespace with a cgroup namespace alone. They count for the container alone: its
 *   users have numbers like those of the host.
 * - The users of a user namespace that another user made are that one user, who may have
 *   many numbers there; so are PID namespaces in it no containers.
 * - All others belong to their user.
 *
 * &riso_dev.mutex protects the counts. Everything here may sleep.
 */

#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
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

/**
 * struct owner - who has places, or had some a while ago
 * @num: how many
 * @taken_ns: up to when its turns to take one are used up
 */
struct owner {
	u32 num;
	s64 taken_ns;
};

/* Those that may do as much as one that has never had a place */
static void forget_idle(struct xarray *owners, s64 now)
{
	struct owner *o;
	unsigned long key;

	xa_for_each(owners, key, o) {
		if (o->num || o->taken_ns > now)
			continue;
		xa_erase(owners, key);
		kfree(o);
	}
}

static struct owner *get_owner(struct xarray *owners, unsigned long key, s64 now)
{
	struct owner *o = xa_load(owners, key);

	if (o)
		return o;
	forget_idle(owners, now);
	o = kzalloc(sizeof(*o), GFP_KERNEL);
	if (!o || !xa_err(xa_store(owners, key, o, GFP_KERNEL)))
		return o;
	kfree(o);
	return NULL;
}

/**
 * riso_place_init - make the places of a new device
 * @p: the places
 */
void riso_place_init(struct riso_places *p)
{
	xa_init(&p->uids);
	xa_init(&p->containers);
}

/**
 * riso_place_exit - free the memory of a device's places
 * @p: the places, none of which is taken
 */
void riso_place_exit(struct riso_places *p)
{
	forget_idle(&p->uids, S64_MAX);
	forget_idle(&p->containers, S64_MAX);
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
	/* A process of a container may have made it, with a user namespace. */
	if (!is_of_host(ns->user_ns) ||
	    (ns->user_ns != &init_user_ns && riso_cgroup_ns()))
		return riso_cgroup_ns();
	return ns->ns.inum;
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

static struct xarray *owners_of(struct riso_places *p, const struct riso_place_owner *owner)
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
 * takes them too often; -ENOMEM. After an error nothing is counted.
 */
int riso_place_take(struct riso_places *p, const struct riso_place_owner *owner)
{
	s64 now = ktime_get_ns();
	struct owner *o;

	if (p->used >= RISO_PLACES_MAX)
		return -EUSERS;
	o = get_owner(owners_of(p, owner), riso_place_key(owner), now);
	if (!o)
		return -ENOMEM;
	if (!riso_place_is_free(o->num, p->used) ||
	    o->taken_ns > now + RISO_TAKE_BURST * (s64)RISO_TAKE_NS)
		return -EDQUOT;
	o->taken_ns = max(o->taken_ns, now) + RISO_TAKE_NS;
	o->num++;
	p->used++;
	return 0;
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
	struct owner *o = xa_load(owners_of(p, owner), riso_place_key(owner));

	o->num--;
	p->used--;
}
