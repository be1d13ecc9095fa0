/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic netlink family rdma_isolate.
 */
#ifndef RISO_NETLINK_H
#define RISO_NETLINK_H

struct riso_dev;
struct riso_flow_info;
struct riso_group_info;

/**
 * enum riso_flow_event - what listeners are told of a flow
 * @RISO_FLOW_NEWS: it is new, or changed
 * @RISO_FLOW_FAILED: a first work request of it has failed
 * @RISO_FLOW_GONE: it is gone
 */
enum riso_flow_event {
	RISO_FLOW_NEWS,
	RISO_FLOW_FAILED,
	RISO_FLOW_GONE,
};

int riso_nl_init(void);
void riso_nl_exit(void);

/**
 * riso_nl_changed - a device, flow, group or rule is new or gone
 *
 * Context: any.
 */
void riso_nl_changed(void);

/**
 * riso_nl_dev_event - tell listeners that the state of a device changed
 * @rd: the device, the caller holds a reference
 *
 * Does nothing before riso_nl_init() and after riso_nl_exit().
 *
 * Context: may sleep. Takes a lock that is not held around anything else, and
 * calls riso_dev_info().
 */
void riso_nl_dev_event(struct riso_dev *rd);

/**
 * riso_nl_budget_event - tell listeners that a lease has expired
 * @rd: the device, the caller holds a reference
 *
 * Does nothing before riso_nl_init() and after riso_nl_exit().
 *
 * Context: may sleep, not under &riso_dev.mutex.
 */
void riso_nl_budget_event(struct riso_dev *rd);

/**
 * riso_nl_ctrl_event - tell listeners of what an agent finds, or has to know
 * @rd: the device, the caller holds a reference
 *
 * Does nothing before riso_nl_init() and after riso_nl_exit().
 *
 * Context: may sleep, not under &riso_dev.mutex.
 */
void riso_nl_ctrl_event(struct riso_dev *rd);

/**
 * riso_nl_flow_event - tell listeners of a flow
 * @rd: its device
 * @info: the flow
 * @event: what is to be told
 *
 * Does nothing before riso_nl_init() and after riso_nl_exit().
 *
 * Context: may sleep. Takes a lock inside of which is nothing that a caller holds.
 */
void riso_nl_flow_event(struct riso_dev *rd, const struct riso_flow_info *info,
			enum riso_flow_event event);

/**
 * riso_nl_fault_event - tell listeners what a process did wrong
 * @rd: the device
 * @info: the group of the process
 *
 * Does nothing before riso_nl_init() and after riso_nl_exit().
 *
 * Context: may sleep. Takes a lock inside of which is nothing that a caller holds.
 */
void riso_nl_fault_event(struct riso_dev *rd, const struct riso_group_info *info);

#endif /* RISO_NETLINK_H */
