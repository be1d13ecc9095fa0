// SPDX-License-Identifier: GPL-2.0
/*
 * What listeners are told, and whether what a dump lists has changed.
 *
 * This is a leaf: it sends what callers have filled in, and calls nothing of the module
 * except nl_msg.c, so that anything may call it.
 *
 * Owns the count of changes, which takes no lock and is for any context, and whether events
 * are sent, under event_lock. That is a mutex: telling may sleep. No lock of the module is
 * taken inside.
 */

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <net/genetlink.h>

#include "nl.h"
#include "nl_event.h"
#include "nl_gen.h"

/* Protects event_up: an id of a group that was given back may be another's. */
static DEFINE_MUTEX(event_lock);
static bool event_up;

/* Grows when there is one more or less of what a dump lists; never 0. */
static atomic_t registry_seq = ATOMIC_INIT(1);

void riso_nl_changed(void)
{
	if (!atomic_inc_return(&registry_seq))
		atomic_inc(&registry_seq);
}

/**
 * riso_nl_watch_changes - let a dump say whether it is consistent
 * @cb: the dump
 *
 * To be called at the begin and the end of each part of a dump: the message that
 * ends it says so if anything came or went since its begin.
 *
 * Context: any.
 */
void riso_nl_watch_changes(struct netlink_callback *cb)
{
	cb->seq = atomic_read(&registry_seq);
	if (!cb->prev_seq)
		cb->prev_seq = cb->seq;
}

/* Storage may wait for event_lock, so that nobody who has it may wait for storage. */
static void tell_listeners(u8 cmd, riso_nl_fill_fn fill, const char *dev, const void *what)
{
	struct sk_buff *msg;
	unsigned int noio;

	mutex_lock(&event_lock);
	noio = memalloc_noio_save();
	if (!event_up ||
	    !genl_has_listeners(&riso_nl_family, &init_net, RDMA_ISOLATE_NLGRP_EVENTS))
		goto unlock;
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		goto unlock;
	if (riso_nl_put_msg(msg, 0, 0, 0, cmd, fill, dev, what))
		nlmsg_free(msg);
	else
		genlmsg_multicast(&riso_nl_family, msg, 0, RDMA_ISOLATE_NLGRP_EVENTS,
				  GFP_KERNEL);
unlock:
	memalloc_noio_restore(noio);
	mutex_unlock(&event_lock);
}

void riso_nl_dev_event(const struct riso_dev_info *info)
{
	tell_listeners(RDMA_ISOLATE_CMD_DEV_NTF, riso_nl_fill_dev, NULL, info);
}

void riso_nl_budget_event(const char *dev, const struct riso_budget *budget)
{
	tell_listeners(RDMA_ISOLATE_CMD_BUDGET_NTF, riso_nl_fill_budget, dev, budget);
}

void riso_nl_ctrl_event(const char *dev, const struct riso_budget *budget)
{
	tell_listeners(RDMA_ISOLATE_CMD_CTRL_NTF, riso_nl_fill_budget, dev, budget);
}

void riso_nl_flow_event(const char *dev, const struct riso_flow_info *info,
			enum riso_flow_event event)
{
	static const u8 cmds[] = {
		[RISO_FLOW_NEWS] = RDMA_ISOLATE_CMD_FLOW_NTF,
		[RISO_FLOW_FAILED] = RDMA_ISOLATE_CMD_FLOW_ERROR_NTF,
		[RISO_FLOW_GONE] = RDMA_ISOLATE_CMD_FLOW_DEL_NTF,
	};

	tell_listeners(cmds[event], riso_nl_fill_flow, dev, info);
}

void riso_nl_fault_event(const char *dev, const struct riso_group_info *info)
{
	tell_listeners(RDMA_ISOLATE_CMD_GROUP_FAULT_NTF, riso_nl_fill_group, dev, info);
}

/**
 * riso_nl_start_events - the family is there
 *
 * Context: may sleep.
 */
void riso_nl_start_events(void)
{
	mutex_lock(&event_lock);
	event_up = true;
	mutex_unlock(&event_lock);
}

/**
 * riso_nl_stop_events - the family is about to go
 *
 * No event is sent, or being sent, when this returns.
 *
 * Context: may sleep.
 */
void riso_nl_stop_events(void)
{
	mutex_lock(&event_lock);
	event_up = false;
	mutex_unlock(&event_lock);
}
