// SPDX-License-Identifier: GPL-2.0
/*
 * How processes come to take part, and leave.
 *
 * Owns what the process of a flow says of it: whether it posts for it under grants, why not,
 * and which class it wishes. &riso_dev.mutex serialises it. The caller is the process itself
 * or closes its file.
 */

#include <linux/sched.h>

#include "attach.h"
#include "classify.h"
#include "group.h"
#include "manage.h"
#include "notify.h"
#include "peer.h"
#include "process.h"
#include "userpath.h"

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
 * riso_attach_report - show why a process does not govern a QP of its own
 * @rd: the device
 * @qpn: number of the QP
 * @reason: why, or RISO_REASON_NONE for a QP that nothing keeps it from governing
 *
 * Context: the process itself, may sleep.
 * Return: 0; -ENOENT if the process has no such QP.
 */
int riso_attach_report(struct riso_dev *rd, u32 qpn, enum riso_reason reason)
{
	struct riso_flow *f;

	riso_dev_lock(rd);
	f = find_owned(rd, qpn);
	if (f && f->report != reason) {
		f->report = reason;
		if (reason != RISO_REASON_NONE) {
			riso_manage_set_shim(f, false);
			f->wishes = false;
		}
		riso_classify_flow(f);
	}
	riso_dev_unlock(rd);
	return f ? 0 : -ENOENT;
}

/*
 * Which paths a flow of a process takes: those of its peer, where that has limits. Nobody is held
 * where the device holds nothing, or as class latency.
 */
static void find_paths(struct riso_flow *f, u32 *path)
{
	struct riso_dev *rd = f->rd;
	struct riso_peer *p = NULL;
	int dir;

	if (f->who.peer_known && rd->state == RISO_DEV_ENABLE && f->class != RISO_CLASS_LATENCY)
		p = riso_peer_find(rd, &f->who.peer);
	spin_lock_irq(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++) {
		riso_userpath_bind(f, dir, p ? &p->limit[dir] : NULL);
		path[dir] = f->takes[dir];
	}
	spin_unlock_irq(&rd->lock);
}

/**
 * riso_attach_register - a process posts for a QP under grants
 * @pr: the process
 * @qpn: number of the QP
 * @class: what it would like, if @wishes; the class in force
 * @wishes: @class counts
 * @cut_imm: whether WRITEs with immediate data may be cut
 * @path: which paths of the process it takes, by direction
 *
 * Context: the process itself, may sleep.
 * Return: 0; -ENOENT if the process has no such QP; -EPERM if it may not choose.
 */
int riso_attach_register(struct riso_process *pr, u32 qpn, enum riso_class *class, bool wishes,
			 bool *cut_imm, u32 *path)
{
	struct riso_dev *rd = pr->rd;
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
	riso_manage_set_shim(f, true);
	f->report = RISO_REASON_NONE;
	f->wishes = wishes;
	f->wish = *class;
	riso_classify_flow(f);
	*class = f->class;
	*cut_imm = f->cut_imm;
	find_paths(f, path);
unlock:
	riso_dev_unlock(rd);
	return err;
}

/**
 * riso_attach_admit - let a process take part
 * @pr: the process; its device is set
 * @qpn: number of a QP of its own
 *
 * Context: the process itself, may sleep.
 * Return: 0; -ENOENT if the process has no such QP; -EUSERS or -EDQUOT if there is no
 * place for it, which the QP shows from then on; -EBUSY if it takes part already;
 * -ENODEV; -ENOMEM.
 */
int riso_attach_admit(struct riso_process *pr, u32 qpn)
{
	struct riso_dev *rd = pr->rd;
	struct riso_flow *f;
	int err = -ENOENT;

	riso_dev_lock(rd);
	f = find_owned(rd, qpn);
	if (!f)
		goto unlock;
	pr->owner = f->who.owner;
	err = f->group ? riso_place_take(&rd->places, &pr->owner) : -ENOMEM;
	if (err == -EUSERS || err == -EDQUOT) {
		f->report = RISO_REASON_NO_PLACE;
		riso_classify_flow(f);
	}
	if (err)
		goto unlock;
	pr->group = f->group;
	spin_lock_irq(&rd->lock);
	err = riso_process_join(pr);
	spin_unlock_irq(&rd->lock);
	if (err) {
		riso_place_give_back(&rd->places, &pr->owner);
		goto unlock;
	}
	pr->group->users++;
	f->report = RISO_REASON_NONE;
	riso_classify_flow(f);
unlock:
	riso_dev_unlock(rd);
	return err;
}

/**
 * riso_attach_dismiss - a process takes part no longer
 * @pr: the process, which registers nothing any more
 *
 * Its group stays until riso_attach_put_group(). It may have any number of flows: others have
 * the mutex meanwhile, and the device may even go.
 *
 * Context: may sleep.
 */
void riso_attach_dismiss(struct riso_process *pr)
{
	struct riso_dev *rd = pr->rd;
	struct riso_flow *f;
	unsigned long qpn;
	u32 cost = 0;

	riso_dev_lock(rd);
	xa_for_each(&rd->qpns, qpn, f) {
		bool own = f->shim && f->group == pr->group;

		if (own) {
			riso_manage_set_shim(f, false);
			f->wishes = false;
			riso_classify_flow(f);
		}
		riso_dev_pass(rd, &cost, own ? RISO_WALK_UPDATE : 1);
	}
	/* Until here the process cannot take part anew, with the same flows. */
	riso_place_give_back(&rd->places, &pr->owner);
	spin_lock_irq(&rd->lock);
	riso_process_leave(pr);
	spin_unlock_irq(&rd->lock);
	riso_dev_unlock(rd);
}

/**
 * riso_attach_put_group - a process that was dismissed is gone
 * @pr: the process
 *
 * Context: may sleep.
 */
void riso_attach_put_group(struct riso_process *pr)
{
	struct riso_dev *rd = pr->rd;

	riso_dev_lock(rd);
	riso_notify_faults(rd, pr->group);
	riso_group_put(rd, pr->group);
	riso_dev_unlock(rd);
}
