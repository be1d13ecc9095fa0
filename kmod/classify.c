// SPDX-License-Identifier: GPL-2.0
/*
 * Class, group and management of flows: what rules, wishes and states make of them.
 *
 * Owns class, rule and weight of &struct riso_flow, under &riso_dev.mutex. It may sleep.
 */

#include "classify.h"
#include "cq.h"
#include "grant.h"
#include "manage.h"
#include "notify.h"
#include "open.h"
#include "reason.h"
#include "sched.h"
#include "tag.h"
#include "turn.h"
#include "work.h"

/**
 * riso_classify_flow - bring class, group and management of a flow up to date
 * @f: the flow
 *
 * They follow from the rules, what the process wishes, the QP and the state of the device.
 *
 * Context: &riso_dev.mutex, may sleep.
 */
void riso_classify_flow(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;
	struct riso_rule_spec rule;
	enum riso_flow_mode mode;
	enum riso_class was;
	bool could, cut, latency;

	lockdep_assert_held(&rd->mutex);
	if (rd->buried)
		return;
	was = f->rule_class;
	could = f->choose;
	cut = f->cut_imm;
	if (riso_rule_match(&f->who, rd->ibdev->name, &rule)) {
		f->choose = rule.choose;
		f->cut_imm = rule.cut_imm;
		f->rule_class = rule.class;
		f->rule_id = rule.id;
		f->weight = rule.weight;
	} else {
		f->choose = false;
		f->cut_imm = false;
		f->rule_class = RISO_CLASS_BANDWIDTH;
		f->rule_id = 0;
		f->weight = RISO_WEIGHT_DEFAULT;
	}
	f->class = f->wishes && f->choose ? f->wish : f->rule_class;
	riso_manage_join_group(f);
	if (riso_reason_wants(f) && !f->cq_room)
		riso_cq_reserve(f, f->qp->send_cq);

	f->no_memory = false;
	if (riso_reason_of(f) == RISO_REASON_NONE && !f->shim)
		f->no_memory = !f->group || riso_manage_make_ready(f);
	if (f->q.recs && f->group)
		riso_open_equip(f);
	spin_lock_irq(&rd->lock);
	if (f->slots)
		f->slots->class = f->class;
	/* What is new asks by itself, and who wishes a class is answered. */
	if (f->shown && f->group && f->group->process &&
	    (f->rule_class != was || f->choose != could || f->cut_imm != cut))
		riso_grant_classes(f->group->process);
	mode = f->mode;
	if (f->q.recs && riso_reason_of(f) == RISO_REASON_NONE)
		mode = RISO_FLOW_MANAGED;
	else if (mode == RISO_FLOW_MANAGED)
		mode = RISO_FLOW_DRAIN;
	riso_manage_set_mode(f, mode);
	riso_turn_wake(f, ktime_get_ns());
	spin_unlock_irq(&rd->lock);
	riso_cq_use(f, mode == RISO_FLOW_MANAGED);
	if (mode == RISO_FLOW_DRAIN)
		riso_work_settle(rd);
	latency = f->class == RISO_CLASS_LATENCY && f->unfit != RISO_REASON_SPECIAL_QP &&
		  f->state == IB_QPS_RTS && !riso_reason_is_reference(f);
	riso_manage_count_latency(f, latency);
	riso_manage_tally(f, false);
	/* Pairs with the acquire in is_shown(). */
	smp_store_release(&f->shown, true);
	riso_notify_news(f);
}

/**
 * riso_classify_all - rules or the state of a device have changed
 * @rd: the device
 *
 * Programs may have any number of flows: others have the mutex meanwhile. What comes then
 * finds the change by itself.
 *
 * Context: may sleep.
 */
void riso_classify_all(struct riso_dev *rd)
{
	struct riso_flow *f;
	unsigned long qpn;
	u32 cost = 0;

	riso_dev_lock(rd);
	xa_for_each(&rd->qpns, qpn, f) {
		riso_classify_flow(f);
		riso_dev_pass(rd, &cost, RISO_WALK_UPDATE);
	}
	riso_dev_unlock(rd);
	riso_sched_run(rd);
}
