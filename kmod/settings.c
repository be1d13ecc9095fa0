// SPDX-License-Identifier: GPL-2.0
/*
 * Which settings are in force: the operator's own, or lent ones.
 *
 * An agent that steers a device lends it settings for a while; when nobody renews the lease,
 * the operator's are in force again.
 *
 * &riso_dev.control serialises changes. What posts look at is written under &riso_dev.lock,
 * and inside &riso_dev.cfg_seq for readers that take no lock. It may sleep.
 */

#include <linux/ktime.h>
#include <linux/netlink.h>
#include <linux/pid.h>
#include <linux/sched.h>

#include "classify.h"
#include "config.h"
#include "group.h"
#include "limits.h"
#include "manage.h"
#include "nl_event.h"
#include "process.h"
#include "sched.h"
#include "settings.h"
#include "trace.h"
#include "work.h"

static const struct riso_steer nobody;

/* Lent until @lease_end, or the operator's own if that is 0; control held. */
static void put_in_force(struct riso_dev *rd, const struct riso_cfg *cfg,
			 const struct riso_steer *steer, u64 lease_end)
{
	enum riso_share_by share = rd->own.share;
	struct riso_steer was;
	bool refresh;

	lockdep_assert_held(&rd->control);
	spin_lock_irq(&rd->lock);
	write_seqcount_begin(&rd->cfg_seq);
	/* What was seen was above the MaxRate of then. */
	if (cfg->max_rate != rd->cfg.max_rate || cfg->calibrated != rd->cfg.calibrated) {
		WRITE_ONCE(rd->delivered, 0);
		rd->above = 0;
	}
	was = rd->steer;
	rd->steer = *steer;
	rd->cfg = *cfg;
	rd->lease_end = lease_end;
	if (!lease_end)
		rd->own = *cfg;
	refresh = riso_limits_update(rd);
	write_seqcount_end(&rd->cfg_seq);
	spin_unlock_irq(&rd->lock);
	if (refresh || rd->own.share != share) {
		riso_dev_lock(rd);
		riso_manage_refresh_all(rd);
		riso_group_share_all(rd);
		riso_dev_unlock(rd);
	}
	riso_process_refresh_all(rd);
	riso_sched_run(rd);
	if (was.pid != steer->pid)
		riso_classify_all(rd);
	if (was.state != steer->state)
		riso_settings_tell_ctrl(rd);
}

/* An agent that has died leaves its lease to the next one. */
static bool is_alive(u32 pid)
{
	struct task_struct *task;
	bool alive;

	rcu_read_lock();
	task = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_TGID);
	alive = task && !READ_ONCE(task->exit_state);
	rcu_read_unlock();
	return alive;
}

/**
 * riso_settings_lend - change settings for a while, all or nothing
 * @rd: the device
 * @chg: what to change, and for how long
 * @extack: says what was wrong and what is allowed
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, then nothing was changed.
 */
int riso_settings_lend(struct riso_dev *rd, const struct riso_change *chg,
		       struct netlink_ext_ack *extack)
{
	struct riso_cfg cfg;
	int err;

	if (chg->lease_ns < RDMA_ISOLATE_LEASE_MIN || chg->lease_ns > RDMA_ISOLATE_LEASE_MAX) {
		NL_SET_ERR_MSG(extack, "lease is 1 ms to 1 hour");
		return -ERANGE;
	}
	mutex_lock(&rd->control);
	if (rd->removing) {
		NL_SET_ERR_MSG(extack, "the device is being removed");
		err = -ENODEV;
		goto unlock;
	}
	err = -EBUSY;
	if (chg->steer.pid && rd->own.ctrl == RISO_CTRL_MANUAL) {
		NL_SET_ERR_MSG(extack, "ctrl of the device is manual");
		goto unlock;
	}
	if (rd->steer.pid && rd->steer.pid != chg->steer.pid &&
	    (!chg->steer.pid || is_alive(rd->steer.pid))) {
		NL_SET_ERR_MSG(extack,
			       "an agent steers the device; with ctrl manual it does not");
		goto unlock;
	}
	cfg = rd->cfg;
	err = riso_config_merge(&cfg, chg, riso_config_guess(rd), extack);
	if (err)
		goto unlock;
	put_in_force(rd, &cfg, &chg->steer, ktime_get_ns() + chg->lease_ns);
	/* Neither what is rounded off nor the present jiffy may make it early. */
	mod_delayed_work(riso_wq, &rd->lease,
			 nsecs_to_jiffies(chg->lease_ns) + 2);
unlock:
	mutex_unlock(&rd->control);
	return err;
}

/* Nobody has renewed the lease, unless that happened just now. */
static void lease_expired(struct work_struct *work)
{
	struct riso_dev *rd = container_of(to_delayed_work(work),
					   struct riso_dev, lease);
	struct riso_budget budget;
	bool over = false;
	u64 now;

	mutex_lock(&rd->control);
	now = ktime_get_ns();
	if (rd->lease_end > now) {
		/* Jiffies are not that clock, and may be ahead of it. */
		mod_delayed_work(riso_wq, &rd->lease,
				 nsecs_to_jiffies(rd->lease_end - now) + 1);
	} else if (rd->lease_end) {
		over = true;
		put_in_force(rd, &rd->own, &nobody, 0);
		trace_budget_expire(rd);
	}
	mutex_unlock(&rd->control);
	if (!over)
		return;
	riso_settings_fill_budget(rd, &budget);
	riso_nl_budget_event(rd->ibdev->name, &budget);
}

/**
 * riso_settings_own - let the operator's own settings hold from now on
 * @rd: the device
 * @cfg: the settings
 *
 * Context: &riso_dev.control, may sleep.
 */
void riso_settings_own(struct riso_dev *rd, const struct riso_cfg *cfg)
{
	lockdep_assert_held(&rd->control);
	put_in_force(rd, cfg, &nobody, 0);
}

/**
 * riso_settings_follow_port - the port tells its rate
 * @rd: the device
 * @rate: bytes per second
 *
 * Context: &riso_dev.control, may sleep.
 * Return: true if MaxRate of the operator's settings has changed.
 */
bool riso_settings_follow_port(struct riso_dev *rd, u64 rate)
{
	struct riso_cfg own = rd->own, lent = rd->cfg;
	struct riso_steer steer = rd->steer;

	lockdep_assert_held(&rd->control);
	if (!riso_config_follow_port(&own, rate))
		return false;
	if (!rd->lease_end) {
		put_in_force(rd, &own, &nobody, 0);
		return true;
	}
	spin_lock_irq(&rd->lock);
	write_seqcount_begin(&rd->cfg_seq);
	rd->own = own;
	write_seqcount_end(&rd->cfg_seq);
	spin_unlock_irq(&rd->lock);
	if (riso_config_follow_port(&lent, rate))
		put_in_force(rd, &lent, &steer, rd->lease_end);
	return true;
}

/**
 * riso_settings_believe_rate - go by a rate above MaxRate
 * @rd: the device
 * @rate: what it delivers, bytes per second; 0 to go by MaxRate
 *
 * MaxRate may have changed since that was seen.
 *
 * Context: may sleep.
 */
void riso_settings_believe_rate(struct riso_dev *rd, u64 rate)
{
	bool refresh = false;

	spin_lock_irq(&rd->lock);
	if (!rate || rd->above) {
		WRITE_ONCE(rd->delivered, rate);
		refresh = riso_limits_update(rd);
	}
	spin_unlock_irq(&rd->lock);
	if (refresh) {
		riso_dev_lock(rd);
		riso_manage_refresh_all(rd);
		riso_dev_unlock(rd);
	}
	riso_process_refresh_all(rd);
}

/**
 * riso_settings_forget_rate - the device may be faster or slower than it was
 * @rd: the device
 *
 * Context: may sleep.
 */
void riso_settings_forget_rate(struct riso_dev *rd)
{
	int dir;

	spin_lock_irq(&rd->lock);
	for (dir = 0; dir < RISO_DIRS; dir++)
		riso_estimate_restart(&rd->arb[dir].estimate);
	rd->above = 0;
	spin_unlock_irq(&rd->lock);
	riso_settings_believe_rate(rd, 0);
}

/**
 * riso_settings_budget - what is in force
 * @rd: the device
 * @budget: filled in, except for the groups
 *
 * Context: may sleep, not under &riso_dev.lock.
 */
void riso_settings_budget(struct riso_dev *rd, struct riso_budget *budget)
{
	u64 now = ktime_get_ns();
	unsigned int seq;
	u64 lease_end, whole;
	int dir;

	do {
		seq = read_seqcount_begin(&rd->cfg_seq);
		budget->cfg = rd->cfg;
		budget->cfg.chunk_bytes = rd->chunk;
		budget->steer = rd->steer;
		lease_end = rd->lease_end;
		whole = riso_whole(rd);
	} while (read_seqcount_retry(&rd->cfg_seq, seq));
	budget->lease_ns = lease_end ? max(lease_end, now + 1) - now : 0;
	for (dir = 0; dir < RISO_DIRS; dir++)
		budget->pace[dir] =
			riso_estimate_pace(budget->cfg.safe_util, whole,
					   READ_ONCE(rd->arb[dir].estimate.ceiling));
}

/**
 * riso_settings_fill_budget - what is in force, and how many groups take part
 * @rd: the device
 * @budget: filled in
 *
 * Context: may sleep.
 */
void riso_settings_fill_budget(struct riso_dev *rd, struct riso_budget *budget)
{
	riso_settings_budget(rd, budget);
	riso_group_count_active(rd, budget->groups);
}

/**
 * riso_settings_tell_ctrl - tell listeners what an agent finds, or has to know
 * @rd: the device, the caller holds a reference
 *
 * Context: may sleep, not under &riso_dev.mutex.
 */
void riso_settings_tell_ctrl(struct riso_dev *rd)
{
	struct riso_budget budget;

	riso_settings_fill_budget(rd, &budget);
	riso_nl_ctrl_event(rd->ibdev->name, &budget);
}

/**
 * riso_settings_init - let a new device have leases
 * @rd: the device
 */
void riso_settings_init(struct riso_dev *rd)
{
	INIT_DELAYED_WORK(&rd->lease, lease_expired);
}
