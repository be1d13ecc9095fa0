/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module tells those who listen. See nl_event.c.
 */
#ifndef RISO_NL_EVENT_H
#define RISO_NL_EVENT_H

struct riso_budget;
struct riso_dev_info;
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

/**
 * riso_nl_changed - a device, flow, group or rule is new or gone
 *
 * Context: any.
 */
void riso_nl_changed(void);

/*
 * The functions below tell listeners what the caller has filled in. They do nothing before
 * riso_nl_init() and after riso_nl_exit().
 *
 * Context: may sleep. They take a lock inside which no other of this module is taken.
 */

/**
 * riso_nl_dev_event - tell listeners that the state of a device changed
 * @info: the device
 */
void riso_nl_dev_event(const struct riso_dev_info *info);

/**
 * riso_nl_budget_event - tell listeners that a lease has expired
 * @dev: name of the device
 * @budget: what is in force now
 */
void riso_nl_budget_event(const char *dev, const struct riso_budget *budget);

/**
 * riso_nl_ctrl_event - tell listeners what an agent finds, or has to know
 * @dev: name of the device
 * @budget: what is in force, and what the agent finds
 */
void riso_nl_ctrl_event(const char *dev, const struct riso_budget *budget);

/**
 * riso_nl_flow_event - tell listeners of a flow
 * @dev: name of its device
 * @info: the flow
 * @event: what has happened to it
 */
void riso_nl_flow_event(const char *dev, const struct riso_flow_info *info,
			enum riso_flow_event event);

/**
 * riso_nl_fault_event - tell listeners what a process did wrong
 * @dev: name of the device
 * @info: the group of the process
 */
void riso_nl_fault_event(const char *dev, const struct riso_group_info *info);

#endif /* RISO_NL_EVENT_H */
