// SPDX-License-Identifier: GPL-2.0
/*
 * One struct riso_dev for each ib_device: its life cycle.
 *
 * Owns the table of devices, and the way of a device
 * from idle through observed or enabled to draining and idle again.
 *
 * Disabling returns at once: flows drain while work in the background looks after
 * them, and the hooks are taken out when nothing of ours is left in any CQ. The
 * module cannot be unloaded before, because a device holds a reference to it from
 * enable until then. If an ib_device is removed while its completions do not come,
 * the hooks stay until its owners have destroyed their QPs.
 *
 * &riso_dev.control serialises changes of state and settings of a device; it is outside
 * &riso_dev.mutex, which is outside &riso_dev.lock. The table is read under RCU. tell_lock
 * keeps events of devices in order; it may be taken under &riso_dev.control.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "classify.h"
#include "config.h"
#include "cq.h"
#include "cq_poll.h"
#include "dev.h"
#include "flow.h"
#include "group.h"
#include "limits.h"
#include "manage.h"
#include "nl_event.h"
#include "notify.h"
#include "ops.h"
#include "peer.h"
#include "process.h"
#include "pump.h"
#include "sched.h"
#include "settings.h"
#include "trace.h"
#include "watch.h"
#include "work.h"

enum {
	/* How often to look whether another module has gone: nobody waits for it. */
	RISO_COVERED_POLL_MS = 1000,
	/* How long the removal of a device waits for what is out. A live path is sooner. */
	RISO_REMOVE_MS = 5000,
	/* More events of faults in a second would leave no room for others. */
	RISO_FAULT_BURST = 100,
};

static DEFINE_XARRAY(devs);

/* Held from reading a device until listeners are told, so that the last event is true. */
static DEFINE_MUTEX(tell_lock);

/* Its functions are client.c's. */
static struct ib_client *client;

static void dev_release(struct kref *ref)
{
	struct riso_dev *rd = container_of(ref, struct riso_dev, ref);

	put_device(&rd->ibdev->dev);
	riso_place_exit(&rd->places);
	free_percpu(rd->observed);
	kfree(rd);
}

void riso_dev_put(struct riso_dev *rd)
{
	kref_put(&rd->ref, dev_release);
}

/*
 * Who looks a device up takes no lock. One that leaves the table keeps its first reference
 * for a grace period: unhook() waits for one before the last riso_dev_put().
 */
struct riso_dev *riso_dev_get_by_name(const char *name)
{
	struct riso_dev *rd, *found = NULL;
	unsigned long index;

	rcu_read_lock();
	xa_for_each(&devs, index, rd) {
		if (!strcmp(rd->ibdev->name, name)) {
			kref_get(&rd->ref);
			found = rd;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

struct riso_dev *riso_dev_get_next(u32 index)
{
	unsigned long i = index;
	struct riso_dev *rd;

	rcu_read_lock();
	rd = xa_find(&devs, &i, U32_MAX, XA_PRESENT);
	if (rd)
		kref_get(&rd->ref);
	rcu_read_unlock();
	return rd;
}

struct riso_dev *riso_dev_of(struct ib_device *ibdev)
{
	return ib_get_client_data(ibdev, client);
}

static enum riso_believed_from find_why_believed(const struct riso_dev *rd)
{
	if (READ_ONCE(rd->delivered) > rd->cfg.max_rate)
		return RISO_BELIEVED_FROM_DELIVERED;
	if (rd->own.calibrated)
		return RISO_BELIEVED_FROM_SET;
	if (rd->own.max_rate == READ_ONCE(rd->proven_rate))
		return RISO_BELIEVED_FROM_DELIVERED;
	if (!READ_ONCE(rd->port_rate))
		return RISO_BELIEVED_FROM_NOTHING;
	/* Another one stays because of a SafeUtil above what the port tells. */
	return rd->own.max_rate == READ_ONCE(rd->port_rate) ? RISO_BELIEVED_FROM_PORT :
							      RISO_BELIEVED_FROM_SET;
}

/* Anybody may read this, and as often: it takes no lock that a post would wait for. */
void riso_dev_fill_info(struct riso_dev *rd, struct riso_dev_info *info)
{
	unsigned int seq;

	memset(info, 0, sizeof(*info));
	strscpy(info->name, rd->ibdev->name, sizeof(info->name));
	info->index = rd->index;
	info->ports = rd->ibdev->phys_port_cnt;
	info->state = READ_ONCE(rd->state);
	info->latency_flows = READ_ONCE(rd->latency_flows);
	info->managed_flows = READ_ONCE(rd->managed_flows);
	info->held = READ_ONCE(rd->held);
	info->processes = READ_ONCE(rd->num_processes);
	do {
		seq = read_seqcount_begin(&rd->cfg_seq);
		info->cfg = rd->own;
		info->believed_rate = max(rd->cfg.max_rate, READ_ONCE(rd->delivered));
		info->believed_from = find_why_believed(rd);
	} while (read_seqcount_retry(&rd->cfg_seq, seq));
}

/*
 * Tell listeners how a device is. Storage may wait for tell_lock, so that nobody who has it
 * may wait for storage: riso_nl_dev_event() allocates without I/O, nothing else allocates.
 */
static void tell_dev(struct riso_dev *rd)
{
	struct riso_dev_info info;

	mutex_lock(&tell_lock);
	riso_dev_fill_info(rd, &info);
	riso_nl_dev_event(&info);
	mutex_unlock(&tell_lock);
}

static void set_state(struct riso_dev *rd, enum riso_dev_state state)
{
	spin_lock_irq(&rd->lock);
	WRITE_ONCE(rd->state, state);
	spin_unlock_irq(&rd->lock);
	riso_process_refresh_all(rd);
}

/* To another state, with all flows; control held. */
static void enter(struct riso_dev *rd, enum riso_dev_state state)
{
	lockdep_assert_held(&rd->control);
	set_state(rd, state);
	riso_classify_all(rd);
	riso_observe_update(rd);
	riso_dev_lock(rd);
	riso_peer_restart(rd);
	riso_dev_unlock(rd);
}

void riso_dev_reclassify(void)
{
	struct riso_dev *rd;
	u32 index = 0;

	while ((rd = riso_dev_get_next(index))) {
		index = rd->index + 1;
		riso_classify_all(rd);
		riso_dev_put(rd);
	}
}

/* --- enable, disable, drain --- */

static int check_capable(struct riso_dev *rd, struct netlink_ext_ack *extack)
{
	if (rd->ibdev->phys_port_cnt != 1) {
		NL_SET_ERR_MSG(extack,
			       "devices with more than one port are not supported");
		return -EOPNOTSUPP;
	}
	if (rdma_protocol_iwarp(rd->ibdev, 1)) {
		NL_SET_ERR_MSG(extack, "iWARP devices are not supported");
		return -EOPNOTSUPP;
	}
	if (!rd->ibdev->ops.post_send || !rd->ibdev->ops.poll_cq) {
		NL_SET_ERR_MSG(extack, "the device has no kernel verbs");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Take all hooks out, and forget what they have registered. */
static void unhook(struct riso_dev *rd)
{
	/* QPs and CQs may go unnoticed once the hooks do: let go of them before. */
	riso_dev_lock(rd);
	rd->buried = true;
	riso_flow_release_all(rd);
	riso_cq_shut_all(rd);
	riso_dev_unlock(rd);
	riso_process_leave_all(rd);
	riso_ops_detach(rd);
	riso_dev_lock(rd);
	riso_flow_forget_all(rd);
	riso_peer_forget_all(rd);
	riso_cq_forget(rd);
	riso_dev_unlock(rd);
}

/*
 * The ib_device goes away, nothing of ours is in use: forget it. Until the hooks are out
 * a QP may come or go, which queues the drain work: the caller cancels that, and puts.
 *
 * While hooks of another module lead to ours, there is nothing that the caller may do:
 * false is returned, and the drain work goes on with it. Not so if this module is just
 * being unloaded: that waits.
 */
static bool bury(struct riso_dev *rd)
{
	mutex_lock(&rd->control);
	set_state(rd, RISO_DEV_GONE);
	mutex_unlock(&rd->control);
	tell_dev(rd);
	xa_erase(&devs, rd->index);
	riso_nl_changed();
	if (riso_ops_is_covered(rd) && try_module_get(THIS_MODULE)) {
		riso_process_leave_all(rd);
		WRITE_ONCE(rd->covered, true);
		riso_work_settle(rd);
		return false;
	}
	unhook(rd);
	return true;
}

/* The ib_device has gone: are our hooks no longer called? */
static void uncover(struct riso_dev *rd)
{
	if (riso_ops_is_covered(rd)) {
		queue_delayed_work(riso_wq, &rd->drain,
				   msecs_to_jiffies(RISO_COVERED_POLL_MS));
		return;
	}
	unhook(rd);
	/* This is the drain work: it cannot run beside itself. */
	cancel_delayed_work(&rd->drain);
	riso_dev_put(rd);
	module_put(THIS_MODULE);
}

/* Nothing is held or out any more: take the hooks out. */
static void finish(struct riso_dev *rd)
{
	bool removing, orphan;

	riso_ops_stop(rd);
	riso_dev_lock(rd);
	riso_manage_bare_all(rd);
	riso_dev_unlock(rd);
	mutex_lock(&rd->control);
	removing = rd->removing;
	orphan = rd->orphan;
	set_state(rd, removing ? RISO_DEV_GONE : RISO_DEV_IDLE);
	complete_all(&rd->drained);
	mutex_unlock(&rd->control);
	if (!removing)
		tell_dev(rd);
	if (orphan && bury(rd)) {
		/* This is the drain work: it cannot run beside itself. */
		cancel_delayed_work(&rd->drain);
		riso_dev_put(rd);
	}
	module_put(THIS_MODULE);
}

/*
 * Tell what has happened to flows, let go of those that have drained, and of the device
 * when all have.
 */
static void drain_work(struct work_struct *work)
{
	struct riso_dev *rd = container_of(to_delayed_work(work),
					   struct riso_dev, drain);
	bool leaving = READ_ONCE(rd->state) == RISO_DEV_DRAINING;
	bool settled, news;

	/* A QP that came or went while the device was forgotten has queued this. */
	if (READ_ONCE(rd->state) == RISO_DEV_GONE) {
		if (READ_ONCE(rd->covered))
			uncover(rd);
		return;
	}
	/* The reaper waits for one, see riso_cq_is_ours(). */
	start_poll_synchronize_rcu();
	riso_cq_reap(rd);
	riso_sched_run(rd);
	riso_dev_lock(rd);
	riso_notify_some(rd);
	settled = !riso_manage_settle_all(rd);
	if (leaving)
		settled = settled && riso_cq_idle(rd);
	/* It changes under the mutex. */
	news = rd->told_latency != !!rd->latency_flows;
	if (news)
		rd->told_latency = !rd->told_latency;
	riso_dev_unlock(rd);
	if (news)
		riso_settings_tell_ctrl(rd);
	if (leaving && settled) {
		/* Without its timer nothing is reaped: look once more. */
		riso_watch_stop(rd);
		riso_dev_lock(rd);
		settled = riso_cq_idle(rd);
		riso_dev_unlock(rd);
		if (settled) {
			finish(rd);
			return;
		}
		riso_watch_start(rd);
	}
	if (!settled)
		riso_work_settle(rd);
}

/* From idle to observe or enable; control held. */
static int start(struct riso_dev *rd, enum riso_dev_state state,
		 struct netlink_ext_ack *extack)
{
	int err;

	lockdep_assert_held(&rd->control);
	err = check_capable(rd, extack);
	if (err)
		return err;
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	err = riso_ops_start(rd);
	if (err) {
		module_put(THIS_MODULE);
		NL_SET_ERR_MSG(extack,
			       "another module has put hooks of its own on the device, unload it first");
		return err;
	}
	reinit_completion(&rd->drained);
	riso_watch_start(rd);
	enter(rd, state);
	return 0;
}

/* Back to idle, as soon as nothing is held or out; control held. */
static void stop(struct riso_dev *rd)
{
	lockdep_assert_held(&rd->control);
	enter(rd, RISO_DEV_DRAINING);
	mod_delayed_work(riso_wq, &rd->drain, 0);
}

static int set_mode(struct riso_dev *rd, enum riso_mode mode,
		    struct netlink_ext_ack *extack)
{
	enum riso_dev_state state = mode == RISO_MODE_ENABLE ? RISO_DEV_ENABLE : RISO_DEV_OBSERVE;
	int err = 0;

	lockdep_assert_held(&rd->control);
	if (riso_mode_of(rd->state) == mode)
		return 0;
	if (rd->state == RISO_DEV_DRAINING) {
		NL_SET_ERR_MSG(extack,
			       "the device is draining, try again when it is idle");
		return -EBUSY;
	}
	if (mode == RISO_MODE_DISABLE)
		stop(rd);
	else if (rd->state == RISO_DEV_IDLE)
		err = start(rd, state, extack);
	else
		enter(rd, state);
	if (!err)
		tell_dev(rd);
	return err;
}

/* Do listeners have to be told of another rate that is believed? They are told once. */
static bool has_rate_to_tell(struct riso_dev *rd)
{
	u64 delivered = READ_ONCE(rd->delivered);

	lockdep_assert_held(&rd->control);
	if (rd->removing || delivered == rd->told_rate)
		return false;
	rd->told_rate = delivered;
	return true;
}

int riso_dev_set(struct riso_dev *rd, const struct riso_change *chg,
		 struct netlink_ext_ack *extack)
{
	struct riso_cfg cfg;
	bool tell = false;
	int err;

	mutex_lock(&rd->control);
	if (rd->removing) {
		NL_SET_ERR_MSG(extack, "the device is being removed");
		err = -ENODEV;
		goto unlock;
	}
	cfg = rd->own;
	err = riso_config_merge(&cfg, chg, riso_config_guess(rd), extack);
	if (!err && (chg->mask & RISO_SET_MODE))
		err = set_mode(rd, chg->mode, extack);
	if (!err && (chg->mask & ~RISO_SET_MODE))
		riso_settings_own(rd, &cfg);
	if (!err && (chg->mask & RISO_SET_HISTOGRAM))
		riso_observe_update(rd);
	tell = has_rate_to_tell(rd);
unlock:
	mutex_unlock(&rd->control);
	if (tell)
		tell_dev(rd);
	return err;
}

/* The port may tell another rate. */
static void port_work(struct work_struct *work)
{
	struct riso_dev *rd = container_of(work, struct riso_dev, port);
	u64 rate = riso_config_read_port(rd->ibdev);
	bool changed = false;

	mutex_lock(&rd->control);
	/* What it has delivered it can, until the port is another. */
	if (rate && rate != rd->port_rate) {
		riso_settings_forget_rate(rd);
		WRITE_ONCE(rd->port_rate, rate);
		WRITE_ONCE(rd->proven_rate, 0);
	}
	/* Above a number that somebody has set it may be less than what the port tells. */
	if (!rd->own.calibrated)
		WRITE_ONCE(rd->proven_rate, max(rd->proven_rate, READ_ONCE(rd->delivered)));
	/* What a port could do before it went down, it may do again. */
	if (rate && !rd->removing)
		changed = riso_settings_follow_port(rd, riso_config_guess(rd));
	changed |= has_rate_to_tell(rd);
	mutex_unlock(&rd->control);
	if (changed)
		tell_dev(rd);
}

/**
 * riso_dev_read_port - have the rate of the port read again
 * @rd: a device that was created and is not removed
 *
 * Context: any.
 */
void riso_dev_read_port(struct riso_dev *rd)
{
	queue_work(riso_wq, &rd->port);
}

/* --- devices come and go --- */

/**
 * riso_dev_create - take up a device
 * @ibdev: the ib_device
 *
 * Its QPs are registered from now on, but no user can find it. All that can fail is done
 * here, except its files: once they are there, others may change it.
 *
 * Context: may sleep.
 * Return: the device, which riso_dev_of() finds from now on, or an error pointer.
 */
struct riso_dev *riso_dev_create(struct ib_device *ibdev)
{
	struct riso_dev *rd;
	int err = -ENOMEM;

	rd = kzalloc(sizeof(*rd), GFP_KERNEL);
	if (!rd)
		return ERR_PTR(err);
	rd->observed = alloc_percpu(struct riso_observed);
	if (!rd->observed)
		goto err_free;
	rd->ibdev = ibdev;
	rd->orig = ibdev->ops;
	rd->index = ibdev->index;
	kref_init(&rd->ref);
	mutex_init(&rd->mutex);
	mutex_init(&rd->control);
	ratelimit_state_init(&rd->faults, HZ, RISO_FAULT_BURST);
	/* Of those that are left out nothing is printed. */
	ratelimit_set_flags(&rd->faults, RATELIMIT_MSG_ON_RELEASE);
	spin_lock_init(&rd->lock);
	seqcount_spinlock_init(&rd->cfg_seq, &rd->lock);
	hash_init(rd->qps[false]);
	hash_init(rd->qps[true]);
	hash_init(rd->cqs);
	hash_init(rd->idents);
	hash_init(rd->tenants);
	INIT_LIST_HEAD(&rd->peers);
	xa_init(&rd->qpns);
	xa_init_flags(&rd->groups, XA_FLAGS_ALLOC1);
	riso_place_init(&rd->places);
	riso_rate_init(&rd->asked);
	riso_rate_init(&rd->turns);
	riso_rate_init(&rd->told);
	INIT_DELAYED_WORK(&rd->drain, drain_work);
	INIT_WORK(&rd->port, port_work);
	riso_settings_init(rd);
	init_completion(&rd->drained);
	riso_pump_init(rd);
	riso_watch_init(rd);
	rd->port_rate = riso_config_read_port(ibdev);
	rd->cfg = riso_config_begin(riso_config_guess(rd));
	rd->own = rd->cfg;
	spin_lock_irq(&rd->lock);
	riso_limits_update(rd);
	spin_unlock_irq(&rd->lock);

	err = riso_ops_attach(rd);
	if (err)
		goto err_percpu;
	get_device(&ibdev->dev);
	/* Its files and the table let others change it: what can fail comes before. */
	err = xa_reserve(&devs, rd->index, GFP_KERNEL);
	if (err)
		goto err_hook;
	ib_set_client_data(ibdev, client, rd);
	return rd;

err_hook:
	unhook(rd);
	cancel_delayed_work_sync(&rd->drain);
	put_device(&ibdev->dev);
err_percpu:
	free_percpu(rd->observed);
err_free:
	kfree(rd);
	return ERR_PTR(err);
}

/**
 * riso_dev_publish - let everybody know of a device
 * @rd: the device
 *
 * Context: may sleep.
 */
void riso_dev_publish(struct riso_dev *rd)
{
	xa_store(&devs, rd->index, rd, GFP_KERNEL);
	riso_nl_changed();
	tell_dev(rd);
}

/**
 * riso_dev_discard - undo riso_dev_create()
 * @rd: a device that was not published
 *
 * Context: may sleep.
 */
void riso_dev_discard(struct riso_dev *rd)
{
	xa_release(&devs, rd->index);
	unhook(rd);
	cancel_delayed_work_sync(&rd->drain);
	riso_dev_put(rd);
}

/**
 * riso_dev_remove - let go of a device whose ib_device goes
 * @rd: the device, without files
 *
 * Context: may sleep for seconds.
 */
void riso_dev_remove(struct riso_dev *rd)
{
	bool draining;

	mutex_lock(&rd->control);
	rd->removing = true;
	if (rd->state == RISO_DEV_OBSERVE || rd->state == RISO_DEV_ENABLE)
		stop(rd);
	draining = rd->state == RISO_DEV_DRAINING;
	mutex_unlock(&rd->control);
	cancel_work_sync(&rd->port);
	cancel_delayed_work_sync(&rd->lease);
	if (draining) {
		wait_for_completion_timeout(&rd->drained,
					    msecs_to_jiffies(RISO_REMOVE_MS));
		mutex_lock(&rd->control);
		/* Its owners go after us: the hooks stay until they have. */
		rd->orphan = rd->state == RISO_DEV_DRAINING;
		draining = rd->orphan;
		mutex_unlock(&rd->control);
	}
	if (draining)
		return;
	cancel_delayed_work_sync(&rd->drain);
	if (!bury(rd))
		return;
	cancel_delayed_work_sync(&rd->drain);
	riso_dev_put(rd);
}

/**
 * riso_dev_renamed - the ib_device has another name; rules go by it
 * @rd: the device
 *
 * Context: may sleep.
 */
void riso_dev_renamed(struct riso_dev *rd)
{
	riso_classify_all(rd);
	tell_dev(rd);
}

/* Tags are forgotten after one grace period, and freed after another. */
static void finish_work(void)
{
	riso_work_exit();
	rcu_barrier();
	rcu_barrier();
}

/**
 * riso_dev_init - take up all devices, now and as they appear
 * @c: what is called then
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int riso_dev_init(struct ib_client *c)
{
	int err;

	err = riso_work_init();
	if (err)
		return err;
	client = c;
	err = ib_register_client(client);
	/* Devices that were taken up have been left again. */
	if (err)
		finish_work();
	return err;
}

/**
 * riso_dev_exit - leave all devices as they were
 *
 * Context: may sleep for seconds.
 */
void riso_dev_exit(void)
{
	ib_unregister_client(client);
	finish_work();
}
