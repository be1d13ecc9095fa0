// SPDX-License-Identifier: GPL-2.0
/*
 * Rules that give a flow its class and weight.
 *
 * Owns the rules, by id. The first rule that matches, in the order in which they were
 * added, which is that of their ids, decides; a flow that none matches is of bandwidth
 * class with an equal share, as in the paper (4.1). A rule that names nothing would match
 * everything, management included, and is refused.
 *
 * rule_lock, a mutex, serialises changes. Rules are read under RCU: anybody may show them,
 * and as often. A change does not touch the flows that exist: whoever makes it calls
 * riso_dev_reclassify() next.
 */

#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/netlink.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "nl_event.h"
#include "rule.h"

struct rule {
	struct rcu_head rcu;
	struct riso_rule_spec spec;
};

static DEFINE_MUTEX(rule_lock);
static DEFINE_XARRAY(rules);
static u32 rule_count;
static u32 last_id;

/* Is it @cgroup or below? */
static bool within(const char *path, const char *cgroup)
{
	size_t len = strlen(cgroup);

	if (strncmp(path, cgroup, len))
		return false;
	return !path[len] || path[len] == '/' || cgroup[len - 1] == '/';
}

static bool matches(const struct riso_rule_spec *r,
		    const struct riso_identity *who, const char *dev)
{
	if (r->dev[0] && strcmp(r->dev, dev))
		return false;
	if (r->ulp[0] && strcmp(r->ulp, who->ulp))
		return false;
	if (r->comm[0] && strcmp(r->comm, who->comm))
		return false;
	/* Kernel ULPs belong to no user. */
	if (r->has_uid && (!who->pid || r->uid != who->uid))
		return false;
	if (r->cgroup[0] && !within(who->cgroup, r->cgroup))
		return false;
	if (r->has_peer && (!who->peer_known ||
			    memcmp(&r->peer, &who->peer, sizeof(r->peer))))
		return false;
	return true;
}

/**
 * riso_rule_match - find the rule for a flow
 * @who: what is known of the flow
 * @dev: name of its device
 * @out: the rule
 *
 * Context: any.
 * Return: true if there is one.
 */
bool riso_rule_match(const struct riso_identity *who, const char *dev,
		     struct riso_rule_spec *out)
{
	XA_STATE(xas, &rules, 0);
	bool found = false;
	struct rule *r;

	rcu_read_lock();
	xas_for_each(&xas, r, U32_MAX) {
		if (xas_retry(&xas, r))
			continue;
		found = matches(&r->spec, who, dev);
		if (found) {
			*out = r->spec;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/* Is it the same rule, except for its id? */
static bool is_same(const struct riso_rule_spec *a, const struct riso_rule_spec *b)
{
	return !strcmp(a->dev, b->dev) && !strcmp(a->ulp, b->ulp) &&
	       !strcmp(a->comm, b->comm) && !strcmp(a->cgroup, b->cgroup) &&
	       a->has_uid == b->has_uid && (!a->has_uid || a->uid == b->uid) &&
	       a->has_peer == b->has_peer &&
	       (!a->has_peer || !memcmp(&a->peer, &b->peer, sizeof(a->peer))) &&
	       a->class == b->class && a->weight == b->weight && a->choose == b->choose &&
	       a->cut_imm == b->cut_imm;
}

static bool is_there(const struct riso_rule_spec *spec)
{
	unsigned long id;
	struct rule *r;

	lockdep_assert_held(&rule_lock);
	xa_for_each(&rules, id, r)
		if (is_same(&r->spec, spec))
			return true;
	return false;
}

/**
 * riso_rule_add - add a rule behind all others
 * @spec: the rule, which names something; its id does not count
 * @id: the id that it got
 * @extack: says what was wrong
 *
 * Context: may sleep. The caller reclassifies all flows if this succeeds.
 * Return: 0; -EINVAL if its class or weight are out of range; -EEXIST if there is one
 * that says the same; -ENOSPC if there are too many; -ENOMEM.
 */
int riso_rule_add(const struct riso_rule_spec *spec, u32 *id,
		  struct netlink_ext_ack *extack)
{
	struct rule *r;
	int err = 0;

	if (spec->class > RISO_CLASS_BANDWIDTH) {
		NL_SET_ERR_MSG(extack,
			       "class is latency, throughput or bandwidth");
		return -EINVAL;
	}
	if (spec->weight < RISO_WEIGHT_MIN || spec->weight > RISO_WEIGHT_MAX) {
		NL_SET_ERR_MSG(extack, "weight is 1 to 10000");
		return -EINVAL;
	}
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	r->spec = *spec;
	mutex_lock(&rule_lock);
	if (is_there(spec)) {
		NL_SET_ERR_MSG(extack, "there is a rule that says the same");
		err = -EEXIST;
	} else if (rule_count >= RISO_RULES_MAX || last_id == U32_MAX) {
		NL_SET_ERR_MSG(extack, "there may be 1024 rules at most");
		err = -ENOSPC;
	} else {
		r->spec.id = last_id + 1;
		err = xa_err(xa_store(&rules, r->spec.id, r, GFP_KERNEL));
	}
	if (err) {
		mutex_unlock(&rule_lock);
		kfree(r);
		return err;
	}
	rule_count++;
	*id = ++last_id;
	mutex_unlock(&rule_lock);
	riso_nl_changed();
	return 0;
}

/**
 * riso_rule_del - delete a rule
 * @id: the rule
 * @extack: says what was wrong
 *
 * Context: may sleep. The caller reclassifies all flows if this succeeds.
 * Return: 0 or -ENOENT.
 */
int riso_rule_del(u32 id, struct netlink_ext_ack *extack)
{
	struct rule *r;

	mutex_lock(&rule_lock);
	r = xa_erase(&rules, id);
	if (r)
		rule_count--;
	mutex_unlock(&rule_lock);
	if (!r) {
		NL_SET_ERR_MSG(extack, "no rule has this id");
		return -ENOENT;
	}
	kfree_rcu(r, rcu);
	riso_nl_changed();
	return 0;
}

/**
 * riso_rule_next - walk the rules
 * @id: smallest id that counts
 * @out: the rule with the smallest id of at least @id
 *
 * Context: any.
 * Return: 0 or -ENOENT.
 */
int riso_rule_next(u32 id, struct riso_rule_spec *out)
{
	unsigned long index = id;
	struct rule *r;

	rcu_read_lock();
	r = xa_find(&rules, &index, U32_MAX, XA_PRESENT);
	if (r)
		*out = r->spec;
	rcu_read_unlock();
	return r ? 0 : -ENOENT;
}

/**
 * riso_rule_exit - free all rules
 */
void riso_rule_exit(void)
{
	unsigned long id;
	struct rule *r;

	xa_for_each(&rules, id, r)
		kfree(r);
	xa_destroy(&rules);
}
