// SPDX-License-Identifier: GPL-2.0
/*
 * What readers see of flows and groups.
 *
 * Anybody may ask in a loop: nothing here takes &riso_dev.mutex, nor &riso_dev.lock for a
 * flow. Walks are under RCU, and let others run after some steps. A reader in a PID
 * namespace sees what belongs to its processes.
 */

#include <linux/pid_namespace.h>
#include <linux/string.h>
#include <linux/user_namespace.h>

#include "group.h"
#include "line.h"
#include "observe.h"
#include "passed.h"
#include "reason.h"
#include "ring.h"
#include "show.h"

/* May the caller see what belongs to this process, or if it is NULL to the kernel? */
static bool is_visible(const struct riso_viewer *viewer, struct pid *tgid)
{
	return tgid ? pid_nr_ns(tgid, viewer->ns) : viewer->ns == &init_pid_ns;
}

/* As the viewer's namespaces have it */
static void translate_identity(const struct riso_viewer *viewer, struct pid *tgid,
			       struct riso_identity *who)
{
	if (viewer->ns == &init_pid_ns)
		return;
	who->pid = pid_nr_ns(tgid, viewer->ns);
	who->uid = from_kuid_munged(viewer->user_ns, make_kuid(&init_user_ns, who->uid));
	who->cgroup[0] = 0;
}

/**
 * riso_show_fill_flow - what a dump or an event shows of a flow
 * @f: the flow
 * @info: filled in
 *
 * Each number is of its own moment, as posts go on; but what was counted while observed is
 * not missing, nor there twice.
 *
 * Context: under RCU or &riso_dev.mutex.
 */
void riso_show_fill_flow(struct riso_flow *f, struct riso_flow_info *info)
{
	const struct riso_group *g = READ_ONCE(f->group);
	struct riso_dev *rd = f->rd;
	struct riso_passed passed;
	struct riso_traffic seen;
	unsigned int seq;
	int i;

	*info = (struct riso_flow_info) {
		.qpn = f->qpn,
		.class = READ_ONCE(f->class),
		/* Each of what it looks at is one word. */
		.reason = data_race(riso_reason_of(f)),
		.qp_type = f->qp_type,
		.qp_state = READ_ONCE(f->state),
		.rule_id = READ_ONCE(f->rule_id),
		.weight = READ_ONCE(f->weight),
		.group = g ? g->id : 0,
		.over_target = READ_ONCE(f->over_target),
		/* It may be late by what is told just now. */
		.around = data_race(riso_flow_is_around(f)),
		.chunks = READ_ONCE(f->chunks),
		.splits = READ_ONCE(f->splits),
		.queued = READ_ONCE(f->queued),
		.wait_ns = READ_ONCE(f->wait_ns),
		.rnr_timer = READ_ONCE(f->rnr_timer),
		.rnr_known = READ_ONCE(f->rnr_known),
		.error = READ_ONCE(f->error),
		/* It may be off by those that come and go just now. */
		.held = data_race(f->q.recs ? riso_ring_len(&f->q) : 0),
	};
	do {
		seq = read_seqcount_begin(&rd->cfg_seq);
		/* Of this the peer alone changes, which the loop is for. */
		data_race(info->who = f->who);
		riso_observe_sum(f, &seen);
		riso_passed_sum(READ_ONCE(f->passed), &passed);
		info->tx_bytes = READ_ONCE(f->bytes[RISO_TX]) + seen.n[RISO_SEEN_TX] +
				 passed.bytes[RISO_TX];
		info->rx_bytes = READ_ONCE(f->bytes[RISO_RX]) + seen.n[RISO_SEEN_RX] +
				 passed.bytes[RISO_RX];
		info->wrs = READ_ONCE(f->wrs) + seen.n[RISO_SEEN_WRS] + passed.wrs;
		for (i = 0; i < RISO_SIZES; i++)
			info->sizes[i] = READ_ONCE(f->sizes[i]) +
					 seen.n[RISO_SEEN_SIZE + i];
	} while (read_seqcount_retry(&rd->cfg_seq, seq));
}

/* One that is being created has no class yet. */
static bool is_shown(const struct riso_viewer *viewer, const struct riso_flow *f)
{
	/* Pairs with the release in riso_classify_flow(). */
	return smp_load_acquire(&f->shown) && is_visible(viewer, f->tgid);
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
 * riso_show_next_group - walk the groups of a device by id
 * @rd: the device
 * @id: first id to look at
 * @viewer: who looks
 * @info: filled in
 *
 * Context: may sleep.
 * Return: 0, or -ENOENT when there is none from @id on that the viewer may see.
 */
int riso_show_next_group(struct riso_dev *rd, u32 id, const struct riso_viewer *viewer,
			 struct riso_group_info *info)
{
	unsigned long index = id;
	struct riso_group *g;
	int visits = 0;

	rcu_read_lock();
	g = xa_find(&rd->groups, &index, U32_MAX, XA_PRESENT);
	while (g && !is_visible(viewer, g->tgid)) {
		riso_group_pass_over(&visits);
		g = xa_find_after(&rd->groups, &index, U32_MAX, XA_PRESENT);
	}
	if (g) {
		riso_line_group_info(rd, g, info);
		translate_identity(viewer, g->tgid, &info->who);
		hide_others(viewer, &info->pressure);
	}
	rcu_read_unlock();
	cond_resched();
	return g ? 0 : -ENOENT;
}

/**
 * riso_show_next_flow - walk the flows of a device by QP number
 * @rd: the device
 * @qpn: first number to look at
 * @viewer: who looks
 * @info: filled in
 *
 * Context: may sleep.
 * Return: 0, or -ENOENT when there is none from @qpn on that the viewer may see.
 */
int riso_show_next_flow(struct riso_dev *rd, u32 qpn, const struct riso_viewer *viewer,
			struct riso_flow_info *info)
{
	unsigned long index = qpn;
	struct riso_flow *f;
	int visits = 0;

	rcu_read_lock();
	f = xa_find(&rd->qpns, &index, U32_MAX, XA_PRESENT);
	while (f && !is_shown(viewer, f)) {
		riso_group_pass_over(&visits);
		f = xa_find_after(&rd->qpns, &index, U32_MAX, XA_PRESENT);
	}
	if (f) {
		riso_show_fill_flow(f, info);
		translate_identity(viewer, f->tgid, &info->who);
	}
	rcu_read_unlock();
	cond_resched();
	return f ? 0 : -ENOENT;
}
