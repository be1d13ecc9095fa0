/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arbiter: which flow posts next, and when.
 */
#ifndef RISO_ARBITER_H
#define RISO_ARBITER_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include "../uapi/linux/rdma_isolate_user.h"
#include "core/estimate.h"
#include "core/pacer.h"
#include "core/share.h"
#include "pressure.h"
#include "rule.h"

struct pid;
struct riso_cfg;
struct riso_dev;
struct riso_flow;
struct riso_slot;
struct riso_process;

/* Local to remote (WRITE, SEND, atomics) and remote to local (READ). */
enum riso_dir {
	RISO_TX,
	RISO_RX,
	RISO_DIRS,
};

/**
 * enum riso_tenant_kind - what makes groups one tenant
 * @RISO_TENANT_GROUP: nothing, it is one group
 * @RISO_TENANT_CONTAINER: their container
 * @RISO_TENANT_CGROUP: their control group
 * @RISO_TENANT_USER: their user
 */
enum riso_tenant_kind {
	RISO_TENANT_GROUP,
	RISO_TENANT_CONTAINER,
	RISO_TENANT_CGROUP,
	RISO_TENANT_USER,
};

/**
 * struct riso_tenant - groups that have one share of the device together
 * @hash: in &riso_dev.tenants
 * @kind: what makes them one
 * @key: the id of that group, container, control group or user
 * @groups: how many groups it has
 * @dir: place in the arbiter of each direction, under &riso_dev.lock
 *
 * All except @dir is under &riso_dev.mutex.
 */
struct riso_tenant {
	struct hlist_node hash;
	enum riso_tenant_kind kind;
	u64 key;
	u32 groups;
	struct riso_share_tenant dir[RISO_DIRS];
};

/**
 * struct riso_group_dir - a group's place in one arbiter
 * @share: its turns; in line while @flows is not empty or @asks
 * @flows: flows that have something to post, next one first
 * @asks: its process wants a grant
 * @slice_start_ns: when the slice began that @slice_bytes counts
 * @slice_bytes: bytes posted since then, for the rule of sparse groups
 * @turn_bytes: wire bytes that the group has posted since its turn began, debt too
 * @turn_ops: messages that the group has posted since its turn began, debt too
 * @wait: while it is in line
 */
struct riso_group_dir {
	struct riso_share_group share;
	struct list_head flows;
	bool asks;
	u64 slice_start_ns;
	u64 slice_bytes;
	u64 turn_bytes;
	u32 turn_ops;
	struct riso_wait wait;
};

/**
 * struct riso_passed - what went straight to the provider, of one CPU
 * @wrs: work requests
 * @bytes: payload
 */
struct riso_passed {
	u64 wrs;
	u64 bytes[RISO_DIRS];
};

/**
 * struct riso_group - flows that share one share of the device
 * @hash: in &riso_dev.idents, by @who
 * @tenant: with whom it shares; written under &riso_dev.mutex and &riso_dev.lock
 * @tgid: the process, NULL for a ULP; counted
 * @id: of this group on this device, given to no other of the next 2^32
 * @users: flows that belong to it, protected by &riso_dev.mutex
 * @weight: share against other groups
 * @who: what its flows have in common
 * @process: takes part by itself, or NULL
 * @senders: flows in RTS that it posts for under grants, written under &riso_dev.mutex
 * @rcu: frees it
 * @fault: what its process did wrong last
 * @faults: a bit for each kind that was seen
 * @told_faults: and of which listeners know, under &riso_dev.mutex
 * @dir: place in the arbiter of each direction
 * @bytes: payload posted by its flows, of those gone too
 * @wrs: work requests posted to their last byte
 * @used_ns: device time of what was posted, not divided by the weight
 * @active_ns: when that was last
 * @passed: what open flows of it have posted, or NULL
 * @folded: @passed was added to the counters of the device
 * @passed_seen: bytes of @passed when they were looked at last
 * @posted_seen: all bytes that it had posted then
 * @tally: flows of each class that take part, under &riso_dev.mutex
 * @pressure: what it had to wait
 *
 * For kernel flows one ULP that talks to one remote address, for user-space
 * flows one process.
 */
struct riso_group {
	struct hlist_node hash;
	struct riso_tenant *tenant;
	struct pid *tgid;
	u32 id;
	unsigned int users;
	u32 weight;
	struct riso_identity who;
	struct riso_process *process;
	u32 senders;
	struct rcu_head rcu;
	enum riso_fault fault;
	unsigned long faults;
	unsigned long told_faults;
	struct riso_group_dir dir[RISO_DIRS];
	u64 bytes[RISO_DIRS];
	u64 wrs;
	u64 used_ns;
	u64 active_ns;
	struct riso_passed __percpu *passed;
	bool folded;
	u64 passed_seen[RISO_DIRS];
	u64 posted_seen[RISO_DIRS];
	u32 tally[RISO_CLASSES];
	struct riso_pressure pressure;
};

/**
 * struct riso_group_info - a group as a dump shows it
 * @id: see &struct riso_group
 * @who: what its flows have in common
 * @weight: share against other groups
 * @flows: that belong to it
 * @tx_bytes: payload sent
 * @rx_bytes: payload fetched
 * @wrs: work requests posted to their last byte
 * @used_ns: device time of these
 * @shim: its process takes part by itself
 * @fault: what that did wrong last
 * @pressure: what it had to wait
 */
struct riso_group_info {
	u32 id;
	struct riso_identity who;
	u32 weight;
	u32 flows;
	u64 tx_bytes;
	u64 rx_bytes;
	u64 wrs;
	u64 used_ns;
	bool shim;
	enum riso_fault fault;
	struct riso_pressure_info pressure;
};

/**
 * struct riso_bound - what bounds the posts of a flow in one direction
 * @chunk: size that its messages are cut to, 0 is off
 * @share: chunks that may have a tag together, at least 1
 * @far: @chunk is larger than that of the device, to fill a path
 * @equal: nobody has set @chunk or the window, so chunks may be equal ones
 * @path: what its path holds, bytes
 * @left: what was left of a message that is cut, when @cut and @cut_wire were found for it;
 *	0 for none
 * @cut: size that it is cut to then
 * @cut_wire: wire bytes of its next chunk then
 */
struct riso_bound {
	u32 chunk;
	u32 share;
	bool far;
	bool equal;
	u64 path;
	u32 left;
	u32 cut;
	u32 cut_wire;
};

/**
 * struct riso_arb - state of one direction of a device
 * @share: whose turn it is
 * @pacer: when bulk may be posted
 * @estimate: what the device delivers
 * @process_load: bytes of &riso_pacer.load that processes say
 * @out: what flows have out
 * @busy_ns: since when flows have something out
 * @standing: part of &riso_pacer.load that flows have
 * @covered: what may be out of a shaped device, see riso_window_covered(), bytes
 * @bounds: number of what flows were bounded by last, never 0
 * @last: group served last
 * @last_ns: when that was
 * @turn_ns: when somebody had a turn last
 * @window_held: the window kept the next piece back; the clock as well, unless a timer paces
 * @contested_ns: until when more than one group is taken to be active
 * @hold: who waits
 */
struct riso_arb {
	struct riso_share_line share;
	struct riso_pacer pacer;
	struct riso_estimate estimate;
	u64 process_load;
	struct riso_out out;
	u64 busy_ns;
	u64 standing;
	u64 covered;
	u32 bounds;
	const struct riso_group *last;
	u64 last_ns;
	u64 turn_ns;
	bool window_held;
	u64 contested_ns;
	struct riso_waiters hold;
};

/**
 * struct riso_pacing - how processes shall post, the same for all of a device
 * @mode: enum riso_user_mode
 * @chunk: size that messages are cut to, 0 is off
 * @op_bytes: least cost of a work request
 * @slice_ns: length of a slice
 * @sparse: cost bytes without a grant in each
 * @window: cost bytes out, per queue pair
 * @rate: cost bytes per second of all together, 0 while nobody shapes
 * @over_target: Target99 is missed
 */
struct riso_pacing {
	enum riso_user_mode mode;
	u32 chunk;
	u32 op_bytes;
	u32 slice_ns;
	u64 sparse;
	u64 window;
	u64 rate;
	bool over_target;
};

/**
 * struct riso_bounds - settings that bound single flows
 * @max_rate: MaxRate, bytes per second
 * @chunk_bytes: size that messages are cut to
 * @inflight_bytes: cap on posted, uncompleted bytes
 */
struct riso_bounds {
	u64 max_rate;
	u32 chunk_bytes;
	u32 inflight_bytes;
};

/**
 * enum riso_list - where a flow that has something held stands
 * @RISO_LIST_GROUP: with its group, for a turn
 * @RISO_LIST_URGENT: in front of all, as debt
 * @RISO_LIST_PARKED: until the provider may have room again
 * @RISO_LIST_PEER: with others until its peer lets it post
 */
enum riso_list {
	RISO_LIST_GROUP,
	RISO_LIST_URGENT,
	RISO_LIST_PARKED,
	RISO_LIST_PEER,
};

/**
 * enum riso_cause - what a flow waits for, as the tracepoint throttle says it
 * @RISO_CAUSE_CLOCK: the device has work enough
 * @RISO_CAUSE_DEVICE: the window of the device is full
 * @RISO_CAUSE_FLOW: the flow's own window is full
 * @RISO_CAUSE_PATH: the limit of the path to its peer is used up
 */
enum riso_cause {
	RISO_CAUSE_CLOCK,
	RISO_CAUSE_DEVICE,
	RISO_CAUSE_FLOW,
	RISO_CAUSE_PATH,
};

#endif /* RISO_ARBITER_H */
