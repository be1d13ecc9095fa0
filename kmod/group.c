// SPDX-License-Identifier: GPL-2.0
/*
 * The registry of groups and tenants.
 *
 * Owns the life of &struct riso_group and &struct riso_tenant: which flows share, and which
 * groups have one share together. &riso_dev.mutex serialises it; what takes turns is written
 * under &riso_dev.lock inside the mutex. Readers walk the groups under RCU.
 */

#include <linux/jhash.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "dev.h"
#include "group.h"
#include "line.h"
#include "nl_event.h"
#include "passed.h"

static u32 hash_identity(const struct riso_identity *who)
{
	u32 hash = jhash(who->ulp, strlen(who->ulp), who->pid);

	return who->peer_known ? jhash(&who->peer, sizeof(who->peer), hash) : hash;
}

static bool same_group(const struct riso_identity *a, const struct riso_identity *b)
{
	if (a->pid != b->pid || strcmp(a->ulp, b->ulp) ||
	    a->peer_known != b->peer_known)
		return false;
	return !a->peer_known || !memcmp(&a->peer, &b->peer, sizeof(a->peer));
}

/*
 * What makes a group one tenant with others. A user may be let make control groups, so
 * that these tell root's processes apart only.
 */
static enum riso_tenant_kind find_sharing(const struct riso_dev *rd, const struct riso_group *g,
					  u64 *key)
{
	const struct riso_place_owner *owner = &g->who.owner;
	/* data_race(): whoever changes it goes through all groups after. */
	enum riso_share_by share = data_race(rd->own.share);

	if (!g->who.pid || share == RISO_SHARE_PROCESS) {
		*key = g->id;
		return RISO_TENANT_GROUP;
	}
	if (share == RISO_SHARE_CGROUP && owner->container) {
		*key = owner->container;
		return RISO_TENANT_CONTAINER;
	}
	if (share == RISO_SHARE_CGROUP && !owner->uid) {
		*key = owner->cgroup;
		return RISO_TENANT_CGROUP;
	}
	*key = owner->uid;
	return RISO_TENANT_USER;
}

static struct riso_tenant *get_tenant(struct riso_dev *rd, const struct riso_group *g)
{
	struct riso_tenant *t;
	enum riso_tenant_kind kind;
	int dir;
	u64 key;

	kind = find_sharing(rd, g, &key);
	hash_for_each_possible(rd->tenants, t, hash, key) {
		if (t->kind != kind || t->key != key)
			continue;
		t->groups++;
		return t;
	}
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return NULL;
	t->kind = kind;
	t->key = key;
	t->groups = 1;
	spin_lock_irq(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++)
		riso_share_begin_tenant(&rd->arb[dir].share, &t->dir[dir]);
	spin_unlock_irq(&rd->lock);
	hash_add(rd->tenants, &t->hash, key);
	return t;
}

static void put_tenant(struct riso_tenant *t)
{
	if (--t->groups)
		return;
	hash_del(&t->hash);
	kfree(t);
}

/**
 * riso_group_share_all - whom groups share with may have changed
 * @rd: the device
 *
 * A group for which there is no memory stays where it is. Others have the mutex meanwhile:
 * a group that comes then has the new ones.
 *
 * Context: &riso_dev.mutex, may sleep.
 */
void riso_group_share_all(struct riso_dev *rd)
{
	struct riso_tenant *t, *old;
	struct riso_group *g;
	unsigned long id;
	u32 cost = 0;

	lockdep_assert_held(&rd->mutex);
	xa_for_each(&rd->groups, id, g) {
		t = get_tenant(rd, g);
		old = g->tenant;
		if (t && t != old) {
			spin_lock_irq(&rd->lock);
			riso_line_enter_tenant(rd, g, t);
			spin_unlock_irq(&rd->lock);
		}
		if (t)
			put_tenant(old);
		riso_dev_pass(rd, &cost, 1);
	}
}

static void free_group_rcu(struct rcu_head *head)
{
	struct riso_group *g = container_of(head, struct riso_group, rcu);

	free_percpu(g->passed);
	put_pid(g->tgid);
	kfree(g);
}

/*
 * The group goes: its counts become those of the device. A reader who sees that it happened
 * adds up anew, see riso_dev_stats(). A group of a program has no counts: programs, which may
 * come and go all the time, keep no reader busy.
 */
static void fold_passed(struct riso_dev *rd, struct riso_group *g)
{
	struct riso_passed sum;
	int dir;

	if (!g->passed)
		return;
	riso_passed_sum(g->passed, &sum);
	spin_lock_irq(&rd->lock);
	rd->folds++;
	rd->stats[RISO_STAT_PASSED_WRS] += sum.wrs;
	for (dir = 0; dir < RISO_DIRS; dir++)
		rd->stats[RISO_STAT_PASSED_BYTES] += sum.bytes[dir];
	g->folded = true;
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_group_put - a flow or process belongs to a group no longer
 * @rd: the device
 * @g: the group, or NULL; not to be used after, except under RCU
 *
 * Context: &riso_dev.mutex.
 */
void riso_group_put(struct riso_dev *rd, struct riso_group *g)
{
	lockdep_assert_held(&rd->mutex);
	if (!g || --g->users)
		return;
	fold_passed(rd, g);
	xa_erase(&rd->groups, g->id);
	hash_del(&g->hash);
	put_tenant(g->tenant);
	call_rcu(&g->rcu, free_group_rcu);
	riso_nl_changed();
}

/* The number of a process may be another's by now, its struct pid is not. */
static struct riso_group *find_group(struct riso_dev *rd, const struct riso_identity *who,
				     const struct pid *tgid)
{
	struct riso_group *g;

	hash_for_each_possible(rd->idents, g, hash, hash_identity(who))
		if (g->tgid == tgid && same_group(&g->who, who))
			return g;
	return NULL;
}

static struct riso_group *new_group(struct riso_dev *rd, const struct riso_identity *who,
				    struct pid *tgid)
{
	struct riso_group *g;
	int dir;

	g = kzalloc(sizeof(*g), GFP_KERNEL);
	if (!g)
		return NULL;
	g->who = *who;
	g->weight = RISO_WEIGHT_DEFAULT;
	for (dir = 0; dir < RISO_DIRS; dir++) {
		INIT_LIST_HEAD(&g->dir[dir].flows);
		g->dir[dir].wait.p = &g->pressure;
	}
	/* After 2^32 groups those that are still there keep their id. */
	if (xa_alloc_cyclic(&rd->groups, &g->id, NULL, xa_limit_32b, &rd->next_group,
			    GFP_KERNEL) < 0)
		goto err_free;
	g->tenant = get_tenant(rd, g);
	if (!g->tenant)
		goto err_release_id;
	g->tgid = get_pid(tgid);
	spin_lock_irq(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++)
		riso_share_begin_group(&g->tenant->dir[dir], &g->dir[dir].share);
	spin_unlock_irq(&rd->lock);
	hash_add(rd->idents, &g->hash, hash_identity(who));
	/* The id has its memory. */
	xa_store(&rd->groups, g->id, g, GFP_KERNEL);
	riso_nl_changed();
	return g;

err_release_id:
	xa_release(&rd->groups, g->id);
err_free:
	kfree(g);
	return NULL;
}

/**
 * riso_group_get - find or make the group of a flow
 * @rd: the device
 * @f: the flow
 *
 * Context: &riso_dev.mutex, may sleep.
 * Return: the group, to be put with riso_group_put(), or NULL if there is no memory.
 */
struct riso_group *riso_group_get(struct riso_dev *rd, const struct riso_flow *f)
{
	struct riso_identity who = f->who;
	struct riso_group *g;

	lockdep_assert_held(&rd->mutex);
	/* A process is one group, whoever it talks to. */
	if (who.pid)
		who.peer_known = false;
	g = find_group(rd, &who, f->tgid) ?: new_group(rd, &who, f->tgid);
	if (g)
		g->users++;
	return g;
}

/* Has it something to do, or had so a moment ago? It may change while it is looked at. */
static bool is_active(const struct riso_group *g, u64 now)
{
	u64 last = READ_ONCE(g->active_ns);
	int dir;

	if (READ_ONCE(g->pressure.asides))
		return true;
	for (dir = 0; dir < RISO_DIRS; dir++)
		if (!list_empty(&g->dir[dir].flows) || READ_ONCE(g->dir[dir].asks))
			return true;
	return last && now < last + NSEC_PER_SEC;
}

/**
 * riso_group_count_active - how many groups take part (L, B and T)
 * @rd: the device
 * @groups: by class: of latency, those with a flow in RTS; of the others, those that
 *	are active, each in one
 *
 * Context: may sleep.
 */
void riso_group_count_active(struct riso_dev *rd, u32 *groups)
{
	u64 now = ktime_get_ns();
	struct riso_group *g;
	unsigned long id;
	int visits = 0;

	memset(groups, 0, RISO_CLASSES * sizeof(*groups));
	rcu_read_lock();
	xa_for_each(&rd->groups, id, g) {
		if (READ_ONCE(g->tally[RISO_CLASS_LATENCY]))
			groups[RISO_CLASS_LATENCY]++;
		if (is_active(g, now) && READ_ONCE(g->tally[RISO_CLASS_BANDWIDTH]))
			groups[RISO_CLASS_BANDWIDTH]++;
		else if (is_active(g, now) && READ_ONCE(g->tally[RISO_CLASS_THROUGHPUT]))
			groups[RISO_CLASS_THROUGHPUT]++;
		riso_group_pass_over(&visits);
	}
	rcu_read_unlock();
}
