// SPDX-License-Identifier: GPL-2.0
/*
 * The registry of flows (one for each QP) and groups.
 *
 * Owns the life of &struct riso_flow and &struct riso_group: which QPs are managed
 * and, if not, why; the class and group that rules give them; the state of the QP as
 * far as posting depends on it.
 *
 * A QP is managed only if everything about it is known to be safe: a kernel RC QP
 * that was created while we were loaded, of a ULP on the list below or named by a
 * rule, whose send CQ is polled by event and has room. All others are listed with
 * the reason and never touched.
 *
 * &riso_dev.mutex serialises everything here except what shows flows and groups, which
 * anybody may ask for in a loop: that takes neither it nor &riso_dev.lock for a flow, and
 * walks under RCU. Flows are looked up under RCU, in any context, by hook.c. Changes to
 * what the post path looks at are made under &riso_dev.lock inside the mutex.
 */

#include <linux/jhash.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/swap.h>

#include "compat.h"
#include "dev.h"
#include "flow.h"
#include "grant.h"
#include "limits.h"
#include "line.h"
#include "netlink.h"
#include "process.h"
#include "sched.h"
#include "trace.h"

/*
 * Owners of protection domains that are managed without a rule. Initiators are
 * among them though they hardly send bulk: their capsules must stay behind it.
 */
static const char * const ulps[] = {
	"nvmet_rdma", "nvme_rdma", "ib_isert", "ib_srpt", "ib_iser", "ib_srp",
	"rpcrdma", "rds_rdma", "smc", "ksmbd", "cifs", "9pnet_rdma",
	"rtrs_core",
};

enum {
	/* Queues of all devices together may take this part of the memory. */
	RISO_MEMORY_SHARE = 64,
	/* Events of their flows that listeners are told of for each owner, in the long run... */
	RISO_NEWS_NS = 10 * NSEC_PER_MSEC,
	/* ...and at once. */
	RISO_NEWS_BURST = 100,
	/* Flows that are looked at in one go, whether listeners may be told of them now. */
	RISO_NEWS_VISITS = 32,
	/* Flows or groups that a reader looks at before others may run. */
	RISO_VISITS = 32,
};

static atomic64_t memory_used;

static bool listed(const char *ulp)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ulps); i++)
		if (!strcmp(ulps[i], ulp))
			return true;
	return false;
}

/* --- groups --- */

static u32 hash_identity(const struct riso_identity *who)
{
	u32 hash = jhash(who->ulp, strlen(who->ulp), who->pid);

	return who->peer_known ? jhash(&who->peer, sizeof(who->peer), hash) : hash;
}

static bool same_group(const struct riso_identity *a,
		       const struct riso_identity *b)
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
static enum riso_tenant_kind sharing(const struct riso_dev *rd, const struct riso_group *g,
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

	kind = sharing(rd, g, &key);
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
 * riso_flow_share_all - whom groups share with may have changed
 * @rd: the device
 *
 * A group for which there is no memory stays where it is. Others have the mutex meanwhile:
 * a group that comes then has the new ones.
 *
 * Context: &riso_dev.mutex, may sleep.
 */
void riso_flow_share_all(struct riso_dev *rd)
{
	struct riso_tenant *t, *old;
	struct riso_group *g;
	unsigned long id;
	u32 held = 0;

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
		riso_dev_pass(rd, &held, 1);
	}
}

static void free_group_rcu(struct rcu_head *head)
{
	struct riso_group *g = container_of(head, struct riso_group, rcu);

	put_pid(g->tgid);
	kfree(g);
}

static void put_group(struct riso_dev *rd, struct riso_group *g)
{
	if (!g || --g->users)
		return;
	xa_erase(&rd->groups, g->id);
	hash_del(&g->hash);
	put_tenant(g->tenant);
	call_rcu(&g->rcu, free_group_rcu);
	riso_nl_changed();
}

/* The number of a process may be another's by now, its struct pid is not. */
static struct riso_group *find_group(struct riso_dev *rd,
				     const struct riso_identity *who,
				     const struct pid *tgid)
{
	struct riso_group *g;

	hash_for_each_possible(rd->idents, g, hash, hash_identity(who))
		if (g->tgid == tgid && same_group(&g->who, who))
			return g;
	return NULL;
}

static struct riso_group *new_group(struct riso_dev *rd,
				    const struct riso_identity *who, struct pid *tgid)
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

static struct riso_group *get_group(struct riso_dev *rd, const struct riso_flow *f)
{
	struct riso_identity who = f->who;
	struct riso_group *g;

	/* A process is one group, whoever it talks to. */
	if (who.pid)
		who.peer_known = false;
	g = find_group(rd, &who, f->tgid) ?: new_group(rd, &who, f->tgid);
	if (g)
		g->users++;
	return g;
}

/* --- what a flow is, and may be --- */

static enum riso_reason judge(const struct ib_qp *qp,
			      const struct ib_qp_init_attr *attr, bool user)
{
	if (qp->qp_type == IB_QPT_SMI || qp->qp_type == IB_QPT_GSI)
		return RISO_REASON_SPECIAL_QP;
	/* A target side of XRC made by user space has no PD. */
	if (qp->qp_type != IB_QPT_RC || !qp->pd || qp->real_qp != qp ||
	    attr->xrcd)
		return RISO_REASON_QP_TYPE;
	if (user)
		return RISO_REASON_USER_QP;
	if (attr->create_flags || qp->integrity_en)
		return RISO_REASON_CREATE_FLAGS;
	if (attr->sq_sig_type == IB_SIGNAL_ALL_WR)
		return RISO_REASON_SIGNAL_ALL;
	if (attr->send_cq->poll_ctx == IB_POLL_DIRECT)
		return RISO_REASON_POLL_DIRECT;
	return RISO_REASON_NONE;
}

static bool wanted(const struct riso_flow *f)
{
	return f->unfit == RISO_REASON_NONE && f->class != RISO_CLASS_LATENCY &&
	       (f->rule_id || listed(f->who.ulp));
}

/* The agent's own: what measures shall not be measured. */
static bool is_reference(const struct riso_flow *f)
{
	/* data_race(): whoever changes it goes through all flows after. */
	return f->who.pid && f->who.pid == data_race(f->rd->steer.pid);
}

static enum riso_reason reason(const struct riso_flow *f)
{
	/* Whoever changes it goes through all flows after. */
	enum riso_state state = READ_ONCE(f->rd->state);

	if (is_reference(f))
		return RISO_REASON_REFERENCE;
	if (f->report != RISO_REASON_NONE && !f->shim)
		return f->report;
	if (f->unfit != RISO_REASON_NONE && !f->shim)
		return f->unfit;
	if (f->class == RISO_CLASS_LATENCY)
		return RISO_REASON_LATENCY_CLASS;
	if (!wanted(f) && !f->shim)
		return RISO_REASON_ULP_NOT_LISTED;
	if (!f->cq_room && !f->shim)
		return RISO_REASON_NO_CQ_ROOM;
	if (state == RISO_STATE_OBSERVE)
		return RISO_REASON_OBSERVE_ONLY;
	if (state != RISO_STATE_ENFORCE)
		return RISO_REASON_DISABLED;
	if (f->no_memory)
		return RISO_REASON_MEMORY;
	return RISO_REASON_NONE;
}

static int make_ready(struct riso_flow *f)
{
	u64 size;

	if (f->q.recs)
		return 0;
	size = riso_queue_size(f);
	if (atomic64_add_return(size, &memory_used) >
	    (totalram_pages() << PAGE_SHIFT) / RISO_MEMORY_SHARE)
		goto err_used;
	if (riso_queue_alloc(f))
		goto err_used;
	if (!f->slots && riso_comp_alloc(f))
		goto err_queue;
	spin_lock_irq(&f->rd->lock);
	list_add_tail(&f->managed, &f->rd->managed);
	spin_unlock_irq(&f->rd->lock);
	return 0;

err_queue:
	riso_queue_free(f);
err_used:
	atomic64_sub(size, &memory_used);
	return -ENOMEM;
}

static void make_bare(struct riso_flow *f)
{
	if (!f->q.recs)
		return;
	spin_lock_irq(&f->rd->lock);
	list_del_init(&f->managed);
	riso_sched_forget(f);
	spin_unlock_irq(&f->rd->lock);
	riso_queue_free(f);
	atomic64_sub(riso_queue_size(f), &memory_used);
}

/* Count the flow in its group, or no longer if it is @gone; mutex held. */
static void tally(struct riso_flow *f, bool gone)
{
	bool counts = f->class == RISO_CLASS_LATENCY ? f->counted : f->shim || f->q.recs;

	lockdep_assert_held(&f->rd->mutex);
	if (f->tallied)
		--*f->tallied;
	f->tallied = counts && !gone && f->group ? &f->group->tally[f->class] : NULL;
	if (f->tallied)
		++*f->tallied;
}

/* Under &riso_dev.lock. */
static void set_mode(struct riso_flow *f, enum riso_flow_mode mode)
{
	struct riso_dev *rd = f->rd;
	u32 managed = rd->managed_flows;

	lockdep_assert_held(&rd->lock);
	managed -= f->mode == RISO_FLOW_MANAGED;
	managed += mode == RISO_FLOW_MANAGED;
	WRITE_ONCE(rd->managed_flows, managed);
	rd->draining_flows -= f->mode == RISO_FLOW_DRAIN;
	rd->draining_flows += mode == RISO_FLOW_DRAIN;
	WRITE_ONCE(f->mode, mode);
}

/**
 * riso_flow_refresh_all - what bounds flows may have changed
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 */
void riso_flow_refresh_all(struct riso_dev *rd)
{
	struct riso_flow *f;

	lockdep_assert_held(&rd->mutex);
	list_for_each_entry(f, &rd->managed, managed) {
		spin_lock_irq(&rd->lock);
		riso_sched_refresh(f);
		spin_unlock_irq(&rd->lock);
	}
}

static void count_latency(struct riso_flow *f, bool latency)
{
	struct riso_dev *rd = f->rd;
	bool refresh;

	if (f->counted == latency)
		return;
	f->counted = latency;
	spin_lock_irq(&rd->lock);
	WRITE_ONCE(rd->latency_flows, rd->latency_flows + (latency ? 1 : -1));
	f->over_target = latency && riso_over_target(rd);
	refresh = riso_limits_update(rd);
	spin_unlock_irq(&rd->lock);
	if (refresh)
		riso_flow_refresh_all(rd);
	riso_process_refresh_all(rd);
	riso_sched_run(rd);
	/* The drain work tells of the first and the last one. */
	if (rd->told_latency != !!rd->latency_flows)
		riso_dev_settle(rd);
}

/* What the flow holds and posts counts for its new group from now on. */
static void leave_group(struct riso_flow *f, struct riso_group *old,
			struct riso_group *g)
{
	u32 held = f->q.recs ? riso_queue_len(&f->q) : 0;
	u64 now = ktime_get_ns();

	if (held) {
		riso_pressure_hold(&g->pressure, held);
		riso_pressure_release(&old->pressure, held);
	}
	if (f->posting) {
		riso_pressure_serve(&g->pressure, true, now);
		riso_pressure_serve(&old->pressure, false, now);
	}
}

/* Put the flow into its group; a live one moves with what it holds. */
static void join_group(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;
	struct riso_group *g = get_group(rd, f);
	struct riso_group *old = f->group;

	if (!g)
		return;
	tally(f, true);
	spin_lock_irq(&rd->lock);
	riso_sched_remove(f);
	if (old && old != g)
		leave_group(f, old, g);
	f->group = g;
	g->weight = f->weight;
	riso_sched_wake(f);
	spin_unlock_irq(&rd->lock);
	put_group(rd, old);
}

/* May the caller see what belongs to this process, or if it is NULL to the kernel? */
static bool is_visible(const struct riso_viewer *viewer, struct pid *tgid)
{
	return tgid ? pid_nr_ns(tgid, viewer->ns) : viewer->ns == &init_pid_ns;
}

/* As the viewer's namespaces have it */
static void translate(const struct riso_viewer *viewer, struct pid *tgid,
		      struct riso_identity *who)
{
	if (viewer->ns == &init_pid_ns)
		return;
	who->pid = pid_nr_ns(tgid, viewer->ns);
	who->uid = from_kuid_munged(viewer->user_ns, make_kuid(&init_user_ns, who->uid));
	who->cgroup[0] = 0;
}

/*
 * Under RCU or the mutex. Each number is of its own moment, as posts go on; but what was
 * counted while observed is not missing, nor there twice.
 */
static void fill_info(struct riso_flow *f, struct riso_flow_info *info)
{
	const struct riso_group *g = READ_ONCE(f->group);
	struct riso_dev *rd = f->rd;
	struct riso_traffic seen;
	unsigned int seq;
	int i;

	*info = (struct riso_flow_info) {
		.qpn = f->qpn,
		.class = READ_ONCE(f->class),
		/* Each of what it looks at is one word. */
		.reason = data_race(reason(f)),
		.qp_type = f->qp_type,
		.qp_state = READ_ONCE(f->state),
		.rule_id = READ_ONCE(f->rule_id),
		.weight = READ_ONCE(f->weight),
		.group = g ? g->id : 0,
		.over_target = READ_ONCE(f->over_target),
		.chunks = READ_ONCE(f->chunks),
		.splits = READ_ONCE(f->splits),
		.queued = READ_ONCE(f->queued),
		.wait_ns = READ_ONCE(f->wait_ns),
		.rnr_timer = READ_ONCE(f->rnr_timer),
		.rnr_known = READ_ONCE(f->rnr_known),
		.error = READ_ONCE(f->error),
		/* It may be off by those that come and go just now. */
		.held = data_race(f->q.recs ? riso_queue_len(&f->q) : 0),
	};
	do {
		seq = read_seqcount_begin(&rd->cfg_seq);
		/* Of this the peer alone changes, which the loop is for. */
		data_race(info->who = f->who);
		riso_observe_sum(f, &seen);
		info->tx_bytes = READ_ONCE(f->bytes[RISO_TX]) + seen.n[RISO_SEEN_TX];
		info->rx_bytes = READ_ONCE(f->bytes[RISO_RX]) + seen.n[RISO_SEEN_RX];
		info->wrs = READ_ONCE(f->wrs) + seen.n[RISO_SEEN_WRS];
		for (i = 0; i < RISO_SIZES; i++)
			info->sizes[i] = READ_ONCE(f->sizes[i]) +
					 seen.n[RISO_SEEN_SIZE + i];
	} while (read_seqcount_retry(&rd->cfg_seq, seq));
}

static void tell(struct riso_flow *f, enum riso_flow_event event)
{
	struct riso_flow_info info;

	fill_info(f, &info);
	riso_nl_flow_event(f->rd, &info, event);
}

static void tell_error(struct riso_flow *f)
{
	enum ib_wc_status error = READ_ONCE(f->error);

	if (f->told_error == error)
		return;
	f->told_error = error;
	if (error != IB_WC_SUCCESS)
		tell(f, RISO_FLOW_FAILED);
}

/* Listeners have to be told of it, soon. */
static void owe_news(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->lock);
	if (list_empty(&f->news) && f->who.pid)
		list_add_tail(&f->news, &rd->news);
	else if (list_empty(&f->news))
		list_add(&f->news, &rd->news);
	riso_dev_settle(rd);
}

/* Of what programs do, which may be as often as they like, not everything is told. */
static bool may_tell(const struct riso_flow *f)
{
	return !f->who.pid ||
	       riso_rate_take(&f->rd->told, riso_place_key(&f->who.owner), RISO_NEWS_NS,
			      RISO_NEWS_BURST);
}

/* A rule never changes: its id stands for the weight. */
static void tell_news(struct riso_flow *f)
{
	if (f->told && f->told_reason == reason(f) && f->told_class == f->class &&
	    f->told_rule == f->rule_id && f->told_over == f->over_target)
		return;
	/* The drain work tells the last of what a process has changed too often. */
	if (!may_tell(f)) {
		spin_lock_irq(&f->rd->lock);
		owe_news(f);
		spin_unlock_irq(&f->rd->lock);
		return;
	}
	f->told_over = f->over_target;
	f->told_reason = reason(f);
	f->told_class = f->class;
	f->told_rule = f->rule_id;
	f->told = true;
	tell(f, RISO_FLOW_NEWS);
}

/* Of each kind once, and of many groups not all, so that nobody can make much noise. */
static void tell_faults(struct riso_dev *rd, struct riso_group *g)
{
	unsigned long faults = READ_ONCE(g->faults) & ~g->told_faults;
	struct riso_group_info info;

	for (; faults; faults &= faults - 1) {
		riso_line_group_info(rd, g, &info);
		info.fault = __ffs(faults);
		g->told_faults |= BIT(info.fault);
		if (__ratelimit(&rd->faults))
			riso_nl_fault_event(rd, &info);
	}
}

/* Class, group and management, from rules and state; mutex held. */
static void update(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;
	struct riso_rule_spec rule;
	enum riso_flow_mode mode;
	enum riso_class was;
	bool could;

	lockdep_assert_held(&rd->mutex);
	if (rd->buried)
		return;
	was = f->class;
	could = f->choose;
	if (riso_rule_match(&f->who, rd->ibdev->name, &rule)) {
		f->choose = rule.choose;
		f->class = f->wishes && f->choose ? f->wish : rule.class;
		f->rule_id = rule.id;
		f->weight = rule.weight;
	} else {
		f->choose = false;
		f->class = RISO_CLASS_BANDWIDTH;
		f->rule_id = 0;
		f->weight = RISO_WEIGHT_DEFAULT;
	}
	join_group(f);
	if (wanted(f) && !f->cq_room)
		riso_comp_reserve(f, f->qp->send_cq);

	f->no_memory = false;
	if (reason(f) == RISO_REASON_NONE && !f->shim)
		f->no_memory = !f->group || make_ready(f);
	spin_lock_irq(&rd->lock);
	if (f->slots)
		f->slots->class = f->class;
	if (f->group && f->group->user && (f->class != was || f->choose != could))
		riso_grant_classes(f->group->user);
	mode = f->mode;
	if (f->q.recs && reason(f) == RISO_REASON_NONE)
		mode = RISO_FLOW_MANAGED;
	else if (mode == RISO_FLOW_MANAGED)
		mode = RISO_FLOW_DRAIN;
	set_mode(f, mode);
	riso_sched_wake(f);
	spin_unlock_irq(&rd->lock);
	riso_comp_use(f, mode == RISO_FLOW_MANAGED);
	if (mode == RISO_FLOW_DRAIN)
		riso_dev_settle(rd);
	count_latency(f, f->class == RISO_CLASS_LATENCY &&
		      f->unfit != RISO_REASON_SPECIAL_QP &&
		      f->state == IB_QPS_RTS && !is_reference(f));
	tally(f, false);
	/* Pairs with the acquire in is_shown(). */
	smp_store_release(&f->shown, true);
	tell_news(f);
}

/**
 * riso_flow_update_all - rules or the state of a device have changed
 * @rd: the device
 *
 * Programs may have any number of flows: others have the mutex meanwhile. What comes then
 * finds the change by itself.
 *
 * Context: may sleep.
 */
void riso_flow_update_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	unsigned long qpn;
	u32 held = 0;

	riso_dev_lock(rd);
	xa_for_each(&rd->qpns, qpn, f) {
		update(f);
		riso_dev_pass(rd, &held, RISO_WALK_UPDATE);
	}
	riso_dev_unlock(rd);
}

/* --- life --- */

/* Of a path that is longer, the begin is what rules look at. */
static void identify_cgroup(struct riso_identity *who)
{
	char *path = kmalloc(PATH_MAX, GFP_KERNEL);

	if (!path)
		return;
	if (riso_cgroup_path(path, PATH_MAX))
		strscpy(who->cgroup, path, sizeof(who->cgroup));
	kfree(path);
}

static void identify(struct riso_flow *f, bool user)
{
	struct riso_identity *who = &f->who;

	if (user) {
		get_task_comm(who->comm, current->group_leader);
		who->pid = task_tgid_nr(current);
		who->uid = from_kuid(&init_user_ns, current_uid());
		f->tgid = get_task_pid(current, PIDTYPE_TGID);
		riso_place_identify(&who->owner);
		identify_cgroup(who);
	} else if (f->qp->pd && f->qp->pd->res.kern_name) {
		/* rdma_cm stamps its own name on QPs, the PD has the ULP's. */
		strscpy(who->ulp, f->qp->pd->res.kern_name, sizeof(who->ulp));
	}
}

/**
 * riso_flow_create - a QP was created
 * @rd: its device
 * @qp: the QP
 * @attr: as it was created
 * @user: by a user-space program
 *
 * A QP that there is no memory for is not registered, and so not managed.
 *
 * Context: may sleep.
 */
void riso_flow_create(struct riso_dev *rd, struct ib_qp *qp,
		      const struct ib_qp_init_attr *attr, bool user)
{
	struct riso_flow *f, *old;

	f = kzalloc(sizeof(*f), user ? GFP_KERNEL_ACCOUNT : GFP_KERNEL);
	if (!f)
		return;
	f->qp = qp;
	f->rd = rd;
	f->qpn = qp->qp_num;
	f->qp_type = qp->qp_type;
	f->sq_depth = max(attr->cap.max_send_wr, 1u);
	f->max_sge = max(attr->cap.max_send_sge, 1u);
	f->max_inline = attr->cap.max_inline_data;
	f->unfit = judge(qp, attr, user);
	f->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	f->mtu = ib_mtu_enum_to_int(IB_MTU_1024);
	riso_path_restart(&f->path, 0);
	INIT_LIST_HEAD(&f->news);
	INIT_LIST_HEAD(&f->managed);
	INIT_LIST_HEAD(&f->arb);
	INIT_LIST_HEAD(&f->reap);
	INIT_DELAYED_WORK(&f->refuse, riso_comp_refuse);
	identify(f, user);

	riso_dev_lock(rd);
	/*
	 * Some providers number special QPs alike: one of them is enough. Another that
	 * has the number is being destroyed.
	 */
	old = xa_load(&rd->qpns, f->qpn);
	if (rd->buried || (old && !READ_ONCE(old->dying)) ||
	    xa_err(xa_store(&rd->qpns, f->qpn, f, GFP_KERNEL))) {
		riso_dev_unlock(rd);
		put_pid(f->tgid);
		kfree(f);
		return;
	}
	update(f);
	riso_observe_flow(f, NULL);
	hash_add_rcu(rd->qps[user], &f->hash, (unsigned long)qp);
	riso_nl_changed();
	trace_flow_create(f, reason(f));
	riso_dev_unlock(rd);
}

/**
 * riso_flow_pause - let nobody post for a flow
 * @f: the flow
 *
 * Returns when nobody is in the provider's post_send() for it any more.
 *
 * Context: may sleep.
 */
void riso_flow_pause(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	spin_lock_irq(&rd->lock);
	f->paused = true;
	riso_sched_remove(f);
	spin_unlock_irq(&rd->lock);
	wait_event(rd->wait, !READ_ONCE(f->posting));
	/* The one that posted may still be on its way out. */
	spin_lock_irq(&rd->lock);
	spin_unlock_irq(&rd->lock);
	/* This may change the QP, and post. */
	cancel_delayed_work_sync(&f->refuse);
}

/**
 * riso_flow_resume - undo riso_flow_pause()
 * @f: the flow
 *
 * Context: may sleep.
 */
void riso_flow_resume(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	spin_lock_irq(&rd->lock);
	f->paused = false;
	if (f->refused)
		queue_delayed_work(riso_wq, &f->refuse, 0);
	riso_sched_wake(f);
	spin_unlock_irq(&rd->lock);
	riso_sched_run(rd);
}

/* RESET completes nothing: forget what is held and what is out; paused, mutex held. */
static void reset(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->mutex);
	cancel_delayed_work_sync(&f->refuse);
	tell_error(f);
	f->told_error = IB_WC_SUCCESS;
	riso_observe_reset(f);
	spin_lock_irq(&rd->lock);
	f->flush = false;
	f->refused = false;
	f->told_refused = false;
	f->marked = false;
	WRITE_ONCE(f->error, IB_WC_SUCCESS);
	f->retry_ns = 0;
	f->retries = 0;
	f->fail_ns = 0;
	f->debt = false;
	if (f->q.recs) {
		riso_queue_drop(f);
		riso_sched_forget(f);
	}
	spin_unlock_irq(&rd->lock);
	if (!f->q.recs)
		return;
	riso_comp_abandon(f);
	if (riso_comp_alloc(f)) {
		f->no_memory = true;
		spin_lock_irq(&rd->lock);
		set_mode(f, RISO_FLOW_PASS);
		spin_unlock_irq(&rd->lock);
		make_bare(f);
	}
}

/* Its process is given grants while it has such a flow; mutex held. */
static void count_sender(struct riso_flow *f, bool sends)
{
	lockdep_assert_held(&f->rd->mutex);
	if (f->sends == sends)
		return;
	f->sends = sends;
	WRITE_ONCE(f->group->senders, f->group->senders + (sends ? 1 : -1));
}

static u32 mtu_of(const struct ib_qp_attr *attr)
{
	int mtu = ib_mtu_enum_to_int(attr->path_mtu);

	return mtu > 0 ? mtu : ib_mtu_enum_to_int(IB_MTU_1024);
}

/* What no rule, group or class goes by; under &riso_dev.lock. */
static void note_attr(struct riso_flow *f, const struct ib_qp_attr *attr, int mask)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->lock);
	if (mask & IB_QP_PATH_MTU) {
		f->mtu = mtu_of(attr);
		rd->mtu = max(rd->mtu, f->mtu);
	}
	if (mask & IB_QP_MIN_RNR_TIMER) {
		f->rnr_timer = attr->min_rnr_timer;
		f->rnr_known = true;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		f->max_rd_atomic = attr->max_rd_atomic;
}

/* Is it no more than that? */
static bool is_minor(const struct riso_flow *f, const struct ib_qp_attr *attr, int mask)
{
	return !(mask & IB_QP_AV) &&
	       (!(mask & IB_QP_STATE) || attr->qp_state == READ_ONCE(f->state));
}

/**
 * riso_flow_modified - a QP was changed
 * @f: the flow
 * @attr: to what
 * @mask: which of @attr
 *
 * Context: may sleep.
 */
void riso_flow_modified(struct riso_flow *f, const struct ib_qp_attr *attr,
			int mask)
{
	struct riso_dev *rd = f->rd;

	/* A program may do that all day: nobody has to wait for it. */
	if (f->who.pid && is_minor(f, attr, mask)) {
		spin_lock_irq(&rd->lock);
		note_attr(f, attr, mask);
		spin_unlock_irq(&rd->lock);
		return;
	}
	riso_dev_lock(rd);
	spin_lock_irq(&rd->lock);
	if ((mask & IB_QP_AV) &&
	    (rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH)) {
		write_seqcount_begin(&rd->cfg_seq);
		f->who.peer = rdma_ah_read_grh(&attr->ah_attr)->dgid;
		f->who.peer_known = true;
		write_seqcount_end(&rd->cfg_seq);
	}
	note_attr(f, attr, mask);
	if (mask & IB_QP_STATE) {
		f->state = attr->qp_state;
		if (f->state == IB_QPS_ERR)
			f->flush = true;
	}
	riso_sched_wake(f);
	spin_unlock_irq(&rd->lock);
	if ((mask & IB_QP_STATE) && attr->qp_state == IB_QPS_RESET)
		reset(f);
	if (f->shim)
		count_sender(f, f->state == IB_QPS_RTS);
	update(f);
	riso_dev_unlock(rd);
	riso_sched_run(rd);
}

static void set_shim(struct riso_flow *f, bool shim)
{
	if (!f->group)
		return;
	f->shim = shim;
	count_sender(f, shim && f->state == IB_QPS_RTS);
}

static void free_flow_rcu(struct rcu_head *head)
{
	struct riso_flow *f = container_of(head, struct riso_flow, rcu);

	riso_observe_free(f);
	put_pid(f->tgid);
	kfree(f);
}

/**
 * riso_flow_destroyed - a QP is gone
 * @f: the flow, paused; not to be used after
 *
 * Context: may sleep.
 */
void riso_flow_destroyed(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	cancel_delayed_work_sync(&f->refuse);
	riso_dev_lock(rd);
	trace_flow_destroy(f, reason(f));
	tell_error(f);
	if (f->told && may_tell(f))
		tell(f, RISO_FLOW_GONE);
	hash_del_rcu(&f->hash);
	/* Another QP may have the number already. */
	xa_cmpxchg(&rd->qpns, f->qpn, f, NULL, GFP_KERNEL);
	riso_nl_changed();
	if (f->q.recs) {
		spin_lock_irq(&rd->lock);
		riso_queue_drop(f);
		spin_unlock_irq(&rd->lock);
		make_bare(f);
	}
	spin_lock_irq(&rd->lock);
	set_mode(f, RISO_FLOW_PASS);
	list_del_init(&f->news);
	spin_unlock_irq(&rd->lock);
	riso_comp_use(f, false);
	riso_comp_abandon(f);
	riso_comp_release(f);
	count_latency(f, false);
	set_shim(f, false);
	tally(f, true);
	put_group(rd, f->group);
	riso_dev_unlock(rd);
	call_rcu(&f->rcu, free_flow_rcu);
}

/* --- processes that post under grants --- */

/**
 * riso_flow_check_all - let flows go on that are stuck, and tell what processes did wrong
 * @rd: the device
 *
 * Context: may sleep.
 */
void riso_flow_check_all(struct riso_dev *rd)
{
	struct riso_group *g;
	struct riso_flow *f;
	unsigned long id;
	u32 held = 0;

	riso_dev_lock(rd);
	list_for_each_entry(f, &rd->managed, managed) {
		spin_lock_irq(&rd->lock);
		riso_sched_unstick(f, ktime_get_ns());
		spin_unlock_irq(&rd->lock);
	}
	xa_for_each(&rd->groups, id, g) {
		tell_faults(rd, g);
		riso_dev_pass(rd, &held, 1);
	}
	riso_dev_unlock(rd);
}

/* The flow of a QP that the caller may post under grants for; mutex held. */
static struct riso_flow *find_owned(struct riso_dev *rd, u32 qpn)
{
	struct riso_flow *f = rd->buried ? NULL : xa_load(&rd->qpns, qpn);

	lockdep_assert_held(&rd->mutex);
	if (!f || f->unfit != RISO_REASON_USER_QP || f->tgid != task_tgid(current))
		return NULL;
	return f;
}

/**
 * riso_flow_report - show why a process does not govern a QP of its own
 * @rd: the device
 * @qpn: number of the QP
 * @reason: why, or RISO_REASON_NONE for a QP that nothing keeps it from governing
 *
 * Context: the process itself, may sleep.
 * Return: 0; -ENOENT if the process has no such QP.
 */
int riso_flow_report(struct riso_dev *rd, u32 qpn, enum riso_reason reason)
{
	struct riso_flow *f;

	riso_dev_lock(rd);
	f = find_owned(rd, qpn);
	if (f && f->report != reason) {
		f->report = reason;
		if (reason != RISO_REASON_NONE)
			set_shim(f, false);
		update(f);
	}
	riso_dev_unlock(rd);
	return f ? 0 : -ENOENT;
}

/**
 * riso_flow_register - a process posts for a QP under grants
 * @rd: the device
 * @qpn: number of the QP
 * @class: what it would like, if @wishes; the class in force
 * @wishes: @class counts
 *
 * Context: the process itself, may sleep.
 * Return: 0; -ENOENT if the process has no such QP; -EPERM if it may not choose.
 */
int riso_flow_register(struct riso_dev *rd, u32 qpn, enum riso_class *class,
		       bool wishes)
{
	struct riso_rule_spec rule;
	struct riso_flow *f;
	int err = 0;

	riso_dev_lock(rd);
	f = find_owned(rd, qpn);
	if (!f) {
		err = -ENOENT;
		goto unlock;
	}
	if (wishes && (!riso_rule_match(&f->who, rd->ibdev->name, &rule) ||
		       !rule.choose)) {
		err = -EPERM;
		goto unlock;
	}
	set_shim(f, true);
	f->report = RISO_REASON_NONE;
	f->wishes = wishes;
	f->wish = *class;
	update(f);
	*class = f->class;
unlock:
	riso_dev_unlock(rd);
	return err;
}

/**
 * riso_flow_admit - let a process take part
 * @u: the process; its device is set
 * @qpn: number of a QP of its own
 *
 * Context: the process itself, may sleep.
 * Return: 0; -ENOENT if the process has no such QP; -EUSERS or -EDQUOT if there is no
 * place for it, which the QP shows from then on; -EBUSY if it takes part already;
 * -ENODEV; -ENOMEM.
 */
int riso_flow_admit(struct riso_user *u, u32 qpn)
{
	struct riso_dev *rd = u->rd;
	struct riso_flow *f;
	int err = -ENOENT;

	riso_dev_lock(rd);
	f = find_owned(rd, qpn);
	if (!f)
		goto unlock;
	u->owner = f->who.owner;
	err = f->group ? riso_place_take(&rd->places, &u->owner) : -ENOMEM;
	if (err == -EUSERS || err == -EDQUOT) {
		f->report = RISO_REASON_NO_PLACE;
		update(f);
	}
	if (err)
		goto unlock;
	u->group = f->group;
	spin_lock_irq(&rd->lock);
	err = riso_process_join(u);
	spin_unlock_irq(&rd->lock);
	if (err) {
		riso_place_give_back(&rd->places, &u->owner);
		goto unlock;
	}
	u->group->users++;
	f->report = RISO_REASON_NONE;
	update(f);
unlock:
	riso_dev_unlock(rd);
	return err;
}

/**
 * riso_flow_dismiss - a process takes part no longer
 * @u: the process, which registers nothing any more
 *
 * Its group stays until riso_flow_group_put(). It may have any number of flows: others have
 * the mutex meanwhile, and the device may even go.
 *
 * Context: may sleep.
 */
void riso_flow_dismiss(struct riso_user *u)
{
	struct riso_dev *rd = u->rd;
	struct riso_flow *f;
	unsigned long qpn;
	u32 held = 0;

	riso_dev_lock(rd);
	xa_for_each(&rd->qpns, qpn, f) {
		bool own = f->shim && f->group == u->group;

		if (own) {
			set_shim(f, false);
			f->wishes = false;
			update(f);
		}
		riso_dev_pass(rd, &held, own ? RISO_WALK_UPDATE : 1);
	}
	/* Until here the process cannot take part anew, with the same flows. */
	riso_place_give_back(&rd->places, &u->owner);
	spin_lock_irq(&rd->lock);
	riso_process_leave(u);
	spin_unlock_irq(&rd->lock);
	riso_dev_unlock(rd);
}

/**
 * riso_flow_group_put - a process that was dismissed is gone
 * @u: the process
 *
 * Context: may sleep.
 */
void riso_flow_group_put(struct riso_user *u)
{
	struct riso_dev *rd = u->rd;

	riso_dev_lock(rd);
	tell_faults(rd, u->group);
	put_group(rd, u->group);
	riso_dev_unlock(rd);
}

/**
 * riso_flow_surrender - a flow posts what is not known here
 * @f: the flow; what it holds, and posts until that is gone, still goes in order
 *
 * Context: under &riso_dev.lock.
 */
void riso_flow_surrender(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	f->unfit = RISO_REASON_UNKNOWN_OPCODE;
	f->cq->uses -= f->cq_uses;
	f->cq_uses = 0;
	set_mode(f, RISO_FLOW_DRAIN);
	owe_news(f);
}

/**
 * riso_flow_failed - a work request of a flow has failed
 * @f: the flow
 * @status: how
 *
 * Remembers the first, which listeners are told of soon.
 *
 * Context: under &riso_dev.lock.
 */
void riso_flow_failed(struct riso_flow *f, enum ib_wc_status status)
{
	lockdep_assert_held(&f->rd->lock);
	if (f->error != IB_WC_SUCCESS || status == IB_WC_WR_FLUSH_ERR)
		return;
	WRITE_ONCE(f->error, status);
	owe_news(f);
}

/**
 * riso_flow_tell_some - tell listeners of some of the flows that they have to be told of
 * @rd: the device
 *
 * That is, which have failed while posting, which are not managed any more since, and what
 * their processes have changed too often. What is left over is the drain work's, some time
 * later.
 *
 * Context: &riso_dev.mutex.
 */
void riso_flow_tell_some(struct riso_dev *rd)
{
	int visits = RISO_NEWS_VISITS;
	struct riso_flow *f, *last;

	lockdep_assert_held(&rd->mutex);
	spin_lock_irq(&rd->lock);
	/* Those that have to wait for longer go behind it. */
	last = list_empty(&rd->news) ? NULL :
	       list_last_entry(&rd->news, struct riso_flow, news);
	for (f = NULL; last && f != last && visits; visits--) {
		f = list_first_entry(&rd->news, struct riso_flow, news);
		list_del_init(&f->news);
		spin_unlock_irq(&rd->lock);
		tell_news(f);
		tell_error(f);
		spin_lock_irq(&rd->lock);
	}
	if (!list_empty(&rd->news))
		riso_dev_settle(rd);
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_flow_held - work requests in the queue of a flow
 * @f: the flow
 *
 * Context: any.
 * Return: how many.
 */
u32 riso_flow_held(struct riso_flow *f)
{
	unsigned long flags;
	u32 held;

	spin_lock_irqsave(&f->rd->lock, flags);
	held = f->q.recs ? riso_queue_len(&f->q) : 0;
	spin_unlock_irqrestore(&f->rd->lock, flags);
	return held;
}

/* Leave a flow alone that has drained. False if one is to drain and has not. */
static bool settle(struct riso_flow *f)
{
	if (f->mode == RISO_FLOW_PASS)
		return true;
	if (f->mode == RISO_FLOW_MANAGED)
		return f->rd->state == RISO_STATE_ENFORCE;
	if (riso_queue_len(&f->q) || f->posting ||
	    (f->slots && f->slots->head != f->slots->tail))
		return false;
	set_mode(f, RISO_FLOW_PASS);
	return true;
}

/**
 * riso_flow_settle_all - leave alone the flows that have drained
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 * Return: how many flows are still draining.
 */
u32 riso_flow_settle_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	u32 draining = 0;
	bool settled;

	lockdep_assert_held(&rd->mutex);
	/* Programs can have the drain work run without end: it looks no further then. */
	spin_lock_irq(&rd->lock);
	settled = !rd->draining_flows &&
		  (rd->state == RISO_STATE_ENFORCE || !rd->managed_flows);
	spin_unlock_irq(&rd->lock);
	if (settled)
		return 0;
	list_for_each_entry(f, &rd->managed, managed) {
		spin_lock_irq(&rd->lock);
		draining += !settle(f);
		spin_unlock_irq(&rd->lock);
	}
	return draining;
}

/**
 * riso_flow_bare_all - give the memory of queues and tags back
 * @rd: a device whose hooks for posting and polling are gone
 *
 * Context: &riso_dev.mutex.
 */
void riso_flow_bare_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	unsigned long qpn;

	lockdep_assert_held(&rd->mutex);
	xa_for_each(&rd->qpns, qpn, f) {
		make_bare(f);
		riso_comp_free(f);
		tally(f, false);
	}
}

/**
 * riso_flow_release_all - use no CQ any more
 * @rd: a device that is leaving
 *
 * Context: &riso_dev.mutex.
 */
void riso_flow_release_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	unsigned long qpn;

	lockdep_assert_held(&rd->mutex);
	xa_for_each(&rd->qpns, qpn, f)
		riso_comp_release(f);
}

/**
 * riso_flow_forget_all - drop the registry of a device without hooks
 * @rd: the device
 *
 * Context: &riso_dev.mutex.
 */
void riso_flow_forget_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	unsigned long qpn;

	lockdep_assert_held(&rd->mutex);
	xa_for_each(&rd->qpns, qpn, f) {
		xa_erase(&rd->qpns, qpn);
		hash_del_rcu(&f->hash);
		spin_lock_irq(&rd->lock);
		list_del_init(&f->news);
		spin_unlock_irq(&rd->lock);
		tally(f, true);
		put_group(rd, f->group);
		call_rcu(&f->rcu, free_flow_rcu);
	}
}

/* One that is being created has no class yet. */
static bool is_shown(const struct riso_viewer *viewer, const struct riso_flow *f)
{
	/* Pairs with the release in update(). */
	return smp_load_acquire(&f->shown) && is_visible(viewer, f->tgid);
}

/* A walk under RCU has looked at one more: let others run after some. */
static void pass_over(int *visits)
{
	if (++*visits % RISO_VISITS)
		return;
	rcu_read_unlock();
	cond_resched();
	rcu_read_lock();
}

/* Whom a group waits behind is nothing that a container may know. */
static void hide_others(const struct riso_viewer *viewer, struct riso_pressure_info *p)
{
	int i;

	if (viewer->ns == &init_pid_ns)
		return;
	for (i = 0; i < RISO_BEHIND && p->behind[i].group; i++)
		p->others_ns += p->behind[i].ns;
	p->behind[0].group = 0;
}

/**
 * riso_flow_group_next - walk the groups of a device by id
 * @rd: the device
 * @id: first id to look at
 * @viewer: who looks
 * @info: filled in
 *
 * Context: may sleep.
 * Return: 0, or -ENOENT when there is none from @id on that the viewer may see.
 */
int riso_flow_group_next(struct riso_dev *rd, u32 id, const struct riso_viewer *viewer,
			 struct riso_group_info *info)
{
	unsigned long index = id;
	struct riso_group *g;
	int visits = 0;

	rcu_read_lock();
	g = xa_find(&rd->groups, &index, U32_MAX, XA_PRESENT);
	while (g && !is_visible(viewer, g->tgid)) {
		pass_over(&visits);
		g = xa_find_after(&rd->groups, &index, U32_MAX, XA_PRESENT);
	}
	if (g) {
		riso_line_group_info(rd, g, info);
		translate(viewer, g->tgid, &info->who);
		hide_others(viewer, &info->pressure);
	}
	rcu_read_unlock();
	cond_resched();
	return g ? 0 : -ENOENT;
}

/* Has it something to do, or had so a moment ago? It may change while it is looked at. */
static bool is_active(const struct riso_group *g, u64 now)
{
	u64 last = READ_ONCE(g->active_ns);
	int dir;

	for (dir = 0; dir < RISO_DIRS; dir++)
		if (!list_empty(&g->dir[dir].flows) || READ_ONCE(g->dir[dir].asks))
			return true;
	return last && now < last + NSEC_PER_SEC;
}

/**
 * riso_flow_count_groups - how many groups take part (L, B and T)
 * @rd: the device
 * @groups: by class: of latency, those with a flow in RTS; of the others, those that
 *	are active, each in one
 *
 * Context: may sleep.
 */
void riso_flow_count_groups(struct riso_dev *rd, u32 *groups)
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
		pass_over(&visits);
	}
	rcu_read_unlock();
}

/**
 * riso_flow_info_next - walk the flows of a device by QP number
 * @rd: the device
 * @qpn: first number to look at
 * @viewer: who looks
 * @info: filled in
 *
 * Context: may sleep.
 * Return: 0, or -ENOENT when there is none from @qpn on that the viewer may see.
 */
int riso_flow_info_next(struct riso_dev *rd, u32 qpn, const struct riso_viewer *viewer,
			struct riso_flow_info *info)
{
	unsigned long index = qpn;
	struct riso_flow *f;
	int visits = 0;

	rcu_read_lock();
	f = xa_find(&rd->qpns, &index, U32_MAX, XA_PRESENT);
	while (f && !is_shown(viewer, f)) {
		pass_over(&visits);
		f = xa_find_after(&rd->qpns, &index, U32_MAX, XA_PRESENT);
	}
	if (f) {
		fill_info(f, info);
		translate(viewer, f->tgid, &info->who);
	}
	rcu_read_unlock();
	cond_resched();
	return f ? 0 : -ENOENT;
}
