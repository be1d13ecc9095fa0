/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One struct riso_dev for each ib_device: its life cycle and its settings.
 */
#ifndef RISO_DEV_H
#define RISO_DEV_H

#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/ratelimit_types.h>
#include <linux/percpu.h>
#include <linux/sched/mm.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "arbiter.h"
#include "observe.h"
#include "place.h"
#include "rate.h"
#include "stats.h"

struct netlink_ext_ack;

enum {
	/* So many devices are hooked at once; two whose index is alike modulo it are not. */
	RISO_MAX_DEVS = 256,
	/* Buckets: a chain is short with some thousands of QPs, and hundreds of CQs or groups. */
	RISO_QP_HASH_BITS = 10,
	RISO_CQ_HASH_BITS = 8,
	RISO_GROUP_HASH_BITS = 8,
	RISO_OPS = sizeof(struct ib_device_ops) / sizeof(void *),
};

/**
 * riso_mode_of - the mode that led to a state
 * @state: of a device
 *
 * Return: the mode.
 */
static inline enum riso_mode riso_mode_of(enum riso_dev_state state)
{
	if (state == RISO_DEV_OBSERVE)
		return RISO_MODE_OBSERVE;
	return state == RISO_DEV_ENABLE ? RISO_MODE_ENABLE : RISO_MODE_DISABLE;
}

/**
 * struct riso_cfg - settings of a device
 * @max_rate: what the port can send, bytes per second of wire (MaxRate)
 * @max_ops: messages per second that the device can send (MaxOps), 0 is off
 * @safe_util: what shaped flows may use together, bytes per second (SafeUtil)
 * @chunk_bytes: size that messages are cut to, 0 is off, or RISO_AUTO
 * @token_bytes: bytes of one turn (TokenBytes), RISO_AUTO derives it
 * @token_ops: messages of one turn (TokenOps), RISO_AUTO derives it
 * @inflight_bytes: cap on posted, uncompleted bytes beyond the path's own,
 *	0 is off, RISO_AUTO is as riso_pacer_window() and the cover say
 * @calibrated: @max_rate was set by somebody, not guessed from the port
 * @histogram: measure times from post to completion in observe mode
 * @target99_ns: what the agent steers for (Target99), RISO_AUTO leaves it to the agent
 * @ctrl: whether there may be an agent
 * @share: which processes have one share together
 */
struct riso_cfg {
	u64 max_rate;
	u64 max_ops;
	u64 safe_util;
	u32 chunk_bytes;
	u32 token_bytes;
	u32 token_ops;
	u32 inflight_bytes;
	bool calibrated;
	bool histogram;
	u32 target99_ns;
	enum riso_ctrl ctrl;
	enum riso_share_by share;
};

/**
 * struct riso_steer - the agent that steers a device, and what it finds
 * @pid: its process, 0 for none
 * @state: what it makes of the following
 * @peer_latency: groups of latency flows of other hosts that the device answers
 * @target99_ns: what it steers for (Target99)
 * @current99_ns: what it has measured (Current99), 0 for nothing
 */
struct riso_steer {
	u32 pid;
	enum riso_ctrl_state state;
	u32 peer_latency;
	u32 target99_ns;
	u64 current99_ns;
};

/**
 * struct riso_budget - what shaped flows of a device may use now
 * @cfg: settings in force
 * @lease_ns: how long they are lent, 0 if they are the operator's own
 * @pace: what the clock of each direction runs at, bytes per second
 * @steer: who has lent them
 * @groups: that take part, by class, see riso_group_count_active()
 */
struct riso_budget {
	struct riso_cfg cfg;
	u64 lease_ns;
	u64 pace[RISO_DIRS];
	struct riso_steer steer;
	u32 groups[RISO_CLASS_BANDWIDTH + 1];
};

/**
 * struct riso_change - a set of settings to change at once
 * @mask: which members of @cfg count, bits RISO_SET_*
 * @mode: the new mode, if RISO_SET_MODE
 * @cfg: the new values
 * @lease_ns: how long they hold, 0 for until they are changed
 * @steer: of the agent that lends them
 */
struct riso_change {
	u32 mask;
	enum riso_mode mode;
	struct riso_cfg cfg;
	u64 lease_ns;
	struct riso_steer steer;
};

#define RISO_SET_MODE		BIT(0)
#define RISO_SET_MAX_RATE	BIT(1)
#define RISO_SET_MAX_OPS	BIT(2)
#define RISO_SET_SAFE_UTIL	BIT(3)
#define RISO_SET_CHUNK_BYTES	BIT(4)
#define RISO_SET_TOKEN_BYTES	BIT(5)
#define RISO_SET_TOKEN_OPS	BIT(6)
#define RISO_SET_INFLIGHT_BYTES	BIT(7)
#define RISO_SET_HISTOGRAM	BIT(8)
#define RISO_SET_TARGET99_NS	BIT(9)
#define RISO_SET_CTRL		BIT(10)
#define RISO_SET_SHARE		BIT(11)

#define RISO_AUTO		U32_MAX

/**
 * struct riso_dev - an ib_device as this module sees it
 * @ibdev: the device
 * @orig: its operations as they were before any hook
 * @hooked: operations that a hook of ours is called for, a bit for each pointer in @orig
 * @srcu: hooks that sleep
 * @observed: counters and histograms of observe mode
 * @observing: posts are counted, under @control
 * @timing: completions are measured for @observed, under @control
 * @qps: flows by QP, read under RCU, written under @mutex. Flows of the kernel are in the
 *	first table and flows of programs in the second: a program with many QPs does not
 *	lengthen the chains that posts of the kernel search
 * @cqs: shadows of kernel CQs by CQ, read under RCU, written under @mutex
 * @ref: holders of a pointer to this
 * @index: of @ibdev
 * @peers: hosts that have a limit, under @mutex
 * @num_peers: how many, under @mutex
 * @mutex: flows, groups, CQ shadows and their life; taken by hooks that may sleep, and
 *	by riso_dev_lock() only
 * @noio: what riso_dev_unlock() restores, under @mutex
 * @control: changes of state and settings, outside @mutex; dev.c alone takes it
 * @state: written under @control
 * @qpns: flows by QP number, read under RCU, written under @mutex
 * @groups: groups by id, read under RCU, written under @mutex
 * @idents: groups by who they are, under @mutex
 * @tenants: by what makes them one, under @mutex
 * @next_group: id to be tried next, under @mutex
 * @places: of processes, under @mutex
 * @asked: how often owners asked for a look at their page; without a lock
 * @turns: how often owners did what takes @mutex; without a lock
 * @told: how often listeners were told of what a user changed; without a lock
 * @lease: ends what @lease_end says, under @control
 * @drain: finishes what disable or removal began
 * @drained: completes when @drain has finished
 * @port: reads the rate of the port
 * @port_events: has that done when the port changes
 * @removing: the ib_device is going, under @control
 * @orphan: the ib_device has gone and its owners have not, under @control
 * @covered: the ib_device has gone, and hooks of another module lead to ours
 * @buried: QPs and CQs may be gone without notice, under @mutex
 * @faults: how often listeners are told of these
 * @told_latency: listeners know that there are latency flows, under @mutex
 * @reaped: completions taken on behalf of ULPs
 * @lock: all below, queues and slots; never held over a call of the provider that
 *	posts, taken inside &riso_cq.poll_lock
 * @cfg_seq: covers @cfg, @own, @lease_end and @steer, and of flows their peer and what
 *	was counted while observed, for who reads them without @lock
 * @cfg: settings in force
 * @latency_flows: latency flows in RTS
 * @held: work requests in the queues
 * @asking: directions in which processes want grants, of all processes
 * @last_dir: the direction served last
 * @chunk_ns: time of a chunk at SafeUtil
 * @window: bytes that may stand in a shaped device
 * @timer_ns: when @timer fires, U64_MAX when it is not armed
 * @want_ns: when @timer shall fire, collected during a run
 * @late_ns: how late the timer was lately at worst
 * @late_at_ns: when @late_ns was noted
 * @linger_ns: until then it is looked at what processes want that are granted something and poll
 * @ran_ns: when the scheduler ran last
 * @look_ns: how long the timer waits before it looks for completions that nobody polls, where
 *	completions drive
 * @looked_for_ns: when it has looked for them last
 * @looks: the timer is armed for nothing else
 * @urgent: flows that post as debt
 * @chunk: size that messages are cut to, 0 is off: what &riso_cfg.chunk_bytes comes to
 * @full: several groups fill the device
 * @paces_chunks: @chunk_ns is long enough for a timer to pace single chunks
 * @running: @timer may be armed
 * @drops: processes that may still leave the line in this run
 * @grants: grants that may still be given in this run, by direction
 * @num_processes: number of processes in @processes
 * @mtu: the largest of a path so far, bytes
 * @delivered: rate at which completions came that was above MaxRate, bytes per second, or 0
 * @port_rate: what the port told last, bytes per second, 0 for nothing so far, under @control
 * @proven_rate: the largest @delivered beside a MaxRate that was guessed, since @port_rate
 *	changed, under @control
 * @told_rate: @delivered as listeners were told last, under @control
 * @shaped_ns: when @was_shaped was set last
 * @reap: flows with slots unretired, the one that posted longest ago first
 * @stale: such flows that are stale, in the same order: those in @reap have posted later
 * @reap_bucket: of @cqs, where the reaper goes on if there are more flows than it looks at
 * @quiet: CQs whose owners the reaper wakes up
 * @arb: one arbiter for each direction
 * @stats: counters
 * @folds: how often counts of a group that goes were added to @stats
 * @timer: runs the scheduler for the clock, or looks for completions
 * @parked: flows whose provider queue was full
 * @busy_peers: limits of peers that flows wait for, or have waited for
 * @managed: flows that have a queue, under @mutex
 * @news: flows of which listeners have to be told, those of the kernel first
 * @processes: processes that take part
 * @laden: those of @processes that have something in the device
 * @wait: where one waits for a flow to have done posting
 * @managed_flows: flows that are queued and paced
 * @draining_flows: flows that are queued, and then left alone
 * @was_shaped: messages are cut and paced, as seen at the last change
 * @pacings: number of changes of @pacing
 * @lately_ns: time in which the device sends half of an open window
 * @toggled_ns: when @was_shaped changed last
 * @bounds: settings that flows were refreshed for last
 * @pacing: how processes shall post
 * @own: settings of the operator, in force when nothing is lent
 * @lease_end: until when @cfg is lent, ns, or 0
 * @steer: the agent that lends @cfg, written under @control
 * @watch: work that looks for flows that are stuck, and averages
 * @averaged_ns: when @watch averaged last
 * @checked_ns: when @watch looked for flows that are stuck last
 * @looked_ns: when @watch looked last at what groups have posted
 * @several_ns: when several groups had posted, as seen last
 * @above: rate above MaxRate that was seen last, bytes per second, or 0
 * @full_ns: until when groups are taken to fill the device
 */
struct riso_dev {
	/* read on every post and poll, written when hooks come and go */
	struct ib_device *ibdev;
	struct ib_device_ops orig;
	DECLARE_BITMAP(hooked, RISO_OPS);
	struct srcu_struct srcu;
	struct riso_observed __percpu *observed;
	bool observing;
	bool timing;
	DECLARE_HASHTABLE(qps[2], RISO_QP_HASH_BITS);
	DECLARE_HASHTABLE(cqs, RISO_CQ_HASH_BITS);

	struct kref ref;
	u32 index;
	struct mutex mutex;	/* see above */
	unsigned int noio;
	struct mutex control;	/* see above */
	enum riso_dev_state state;
	struct xarray qpns;
	struct xarray groups;
	DECLARE_HASHTABLE(idents, RISO_GROUP_HASH_BITS);
	DECLARE_HASHTABLE(tenants, RISO_GROUP_HASH_BITS);
	u32 next_group;
	struct riso_places places;
	struct list_head peers;
	u32 num_peers;
	struct riso_rate asked;
	struct riso_rate turns;
	struct riso_rate told;
	struct delayed_work lease;
	struct delayed_work drain;
	struct completion drained;
	struct work_struct port;
	struct ib_event_handler port_events;
	bool removing;
	bool orphan;
	bool covered;
	bool buried;
	struct ratelimit_state faults;
	bool told_latency;
	atomic_long_t reaped;

	spinlock_t lock ____cacheline_aligned_in_smp; /* see above */
	seqcount_spinlock_t cfg_seq;
	struct riso_cfg cfg;

	/* looked at with each post and completion */
	u32 latency_flows;
	u32 held;
	u32 asking;
	enum riso_dir last_dir;
	u32 chunk;
	u64 chunk_ns;
	u64 window;
	u64 timer_ns;
	u64 want_ns;
	u64 late_ns;
	u64 late_at_ns;
	u64 linger_ns;
	u64 ran_ns;
	u64 look_ns;
	u64 looked_for_ns;
	struct list_head urgent;
	bool looks;
	bool paces_chunks;
	bool full;
	bool running;
	int drops;

	int grants[RISO_DIRS];
	u32 num_processes;
	u32 mtu;
	u64 delivered;
	u64 port_rate;
	u64 proven_rate;
	u64 told_rate;
	u64 shaped_ns;
	struct list_head reap;
	struct list_head stale;
	u32 reap_bucket;
	struct list_head quiet;
	struct riso_arb arb[RISO_DIRS];
	u64 stats[RISO_STAT_MAX];
	u64 folds;
	struct hrtimer timer;

	/* seldom */
	struct list_head parked;
	struct list_head busy_peers;
	struct list_head managed;
	struct list_head news;
	struct list_head processes;
	struct list_head laden;
	wait_queue_head_t wait;
	u32 managed_flows;
	u32 draining_flows;
	bool was_shaped;
	u32 pacings;
	u64 lately_ns;
	u64 toggled_ns;
	struct riso_bounds bounds;
	struct riso_pacing pacing;
	struct riso_cfg own;
	u64 lease_end;
	struct riso_steer steer;

	/* of the watch alone */
	struct delayed_work watch;
	u64 averaged_ns;
	u64 checked_ns;
	u64 looked_ns;
	u64 several_ns;
	u64 above;
	u64 full_ns;
};

/**
 * struct riso_dev_info - a device as a dump shows it
 * @name: of the ib_device
 * @index: of the ib_device
 * @ports: of the ib_device
 * @state: see &enum riso_dev_state
 * @cfg: settings of the operator
 * @latency_flows: latency flows in RTS (L)
 * @managed_flows: flows that are queued and paced
 * @held: work requests in the queues
 * @processes: processes that take part by themselves
 * @believed_rate: what chunks and windows go by, bytes per second
 * @believed_from: why
 */
struct riso_dev_info {
	char name[IB_DEVICE_NAME_MAX];
	u32 index;
	u32 ports;
	enum riso_dev_state state;
	struct riso_cfg cfg;
	u32 latency_flows;
	u32 managed_flows;
	u32 held;
	u32 processes;
	u64 believed_rate;
	enum riso_believed_from believed_from;
};

/**
 * riso_dev_lock - lock the registry of a device
 * @rd: the device
 *
 * Storage that reconnects comes here, and what waits for memory may wait for storage. So
 * no allocation waits for I/O until riso_dev_unlock().
 *
 * Context: may sleep.
 */
static inline void riso_dev_lock(struct riso_dev *rd)
{
	mutex_lock(&rd->mutex);
	rd->noio = memalloc_noio_save();
}

/**
 * riso_dev_unlock - undo riso_dev_lock()
 * @rd: the device
 *
 * Context: may sleep.
 */
static inline void riso_dev_unlock(struct riso_dev *rd)
{
	memalloc_noio_restore(rd->noio);
	mutex_unlock(&rd->mutex);
}

/*
 * A walk with the mutex lets others have it after so much: looking at a flow or a group is
 * 1, bringing a flow up to date RISO_WALK_UPDATE. With few rules it is some 100 us.
 */
enum {
	RISO_WALK_HOLD = 256,
	RISO_WALK_UPDATE = 8,
};

/**
 * riso_dev_pass - let others have the registry between two steps of a walk by index
 * @rd: the device
 * @cost: units that this hold of the mutex has cost so far
 * @step: units that the last step cost
 *
 * Context: &riso_dev.mutex, may sleep.
 */
static inline void riso_dev_pass(struct riso_dev *rd, u32 *cost, u32 step)
{
	lockdep_assert_held(&rd->mutex);
	*cost += step;
	if (*cost < RISO_WALK_HOLD)
		return;
	*cost = 0;
	riso_dev_unlock(rd);
	cond_resched();
	riso_dev_lock(rd);
}

int riso_dev_init(struct ib_client *c);
void riso_dev_exit(void);
struct riso_dev *riso_dev_create(struct ib_device *ibdev);
void riso_dev_publish(struct riso_dev *rd);
void riso_dev_discard(struct riso_dev *rd);
void riso_dev_remove(struct riso_dev *rd);
void riso_dev_renamed(struct riso_dev *rd);
void riso_dev_read_port(struct riso_dev *rd);

/**
 * riso_dev_get_by_name - look up a device and take a reference
 * @name: name of the ib_device
 *
 * Context: process.
 * Return: the device, to be put with riso_dev_put(), or NULL.
 */
struct riso_dev *riso_dev_get_by_name(const char *name);

/**
 * riso_dev_get_next - walk the devices by ib_device index
 * @index: first index to look at
 *
 * Context: process.
 * Return: the first device with an index of at least @index, with a reference,
 * or NULL when there is none.
 */
struct riso_dev *riso_dev_get_next(u32 index);
void riso_dev_put(struct riso_dev *rd);

/**
 * riso_dev_of - a device that somebody holds anyway
 * @ibdev: its ib_device
 *
 * Context: any, between its addition and its removal.
 * Return: the device.
 */
struct riso_dev *riso_dev_of(struct ib_device *ibdev);

/**
 * riso_dev_set - change the settings of a device, all or nothing
 * @rd: the device
 * @chg: what to change
 * @extack: says what was wrong and what is allowed
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, then nothing was changed.
 */
int riso_dev_set(struct riso_dev *rd, const struct riso_change *chg,
		 struct netlink_ext_ack *extack);

/**
 * riso_dev_fill_info - what a dump shows of a device
 * @rd: the device
 * @info: filled in
 *
 * Context: process.
 */
void riso_dev_fill_info(struct riso_dev *rd, struct riso_dev_info *info);

/**
 * riso_dev_reclassify - the rules have changed
 *
 * Context: may sleep.
 */
void riso_dev_reclassify(void);

#endif /* RISO_DEV_H */
