/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space processes that take part in the shares of a device.
 */
#ifndef RISO_GRANT_H
#define RISO_GRANT_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "../uapi/linux/rdma_isolate_user.h"
#include "arbiter.h"
#include "core/grantring.h"
#include "place.h"

struct riso_dev;
struct riso_group;
struct riso_peer_limit;
struct riso_process;

enum {
	/*
	 * Grants in a row that a process may leave unused before they get small. One that
	 * posts has two that it has not woken up for and two that it is posting, at most.
	 */
	RISO_UNUSED_SHRINK = 4,
	/* Grants in a row that it may leave unused before it gets no others. */
	RISO_UNUSED_STOP = 8,
};

/**
 * struct riso_process_path - one path of a process
 * @process: the process
 * @dir: its direction
 * @limit: what it is held to besides, or NULL; only behind the first RISO_DIRS paths
 * @flows: number of flows that take it, of those behind the first RISO_DIRS paths
 * @admitted: its limit lets it post, though others may still wait
 * @bound: in &riso_peer_limit.paths, if there is one
 * @waiting: in &riso_peer_limit.processes while the limit is used up and the process wants to post
 * @grant: the last two, as given; the page is never read back
 * @seq: number of the last
 * @want: what it wants beyond grants that are good, as read last
 * @behind: it had not taken the last grant then
 * @lapsed: one that it had not taken was void
 * @called: it has called since it was given one
 * @due: what it wanted of the last, cost bytes
 * @unused: grants given since it last posted half of @due under grants
 * @paid: cost bytes that it has posted under grants since then
 * @posted: &riso_upath.posted as read last
 * @done: &riso_upath.done as read last
 * @debt: &riso_upath.debt as read last
 * @passed: the sum of &riso_upassed.bytes as read last, for the first RISO_DIRS paths
 * @owed: debt that is not charged yet
 * @out: cost bytes that it may still have in the device, or put there
 * @load: its part of riso_pacer.load
 * @lately: cost bytes granted in the present period
 * @before: cost bytes granted in the period before
 * @since_ns: when the present period began
 */
struct riso_process_path {
	struct riso_process *process;
	enum riso_dir dir;
	struct riso_peer_limit *limit;
	u32 flows;
	bool admitted;
	struct list_head bound;
	struct list_head waiting;
	struct riso_grant grant[RISO_GRANTS];
	u32 seq;
	u64 want;
	bool behind;
	bool lapsed;
	bool called;
	u64 due;
	u32 unused;
	u64 paid;
	u64 posted;
	u64 done;
	u64 debt;
	u64 passed;
	u64 owed;
	u64 out;
	u64 load;
	u64 lately;
	u64 before;
	u64 since_ns;
};

/**
 * struct riso_process - a process that has the file open and is attached
 * @list: in &riso_dev.processes
 * @laden: in &riso_dev.laden while it has something in the device, as far as known
 * @rd: its device
 * @group: its share
 * @owner: whose place it has
 * @kpage: what it is told
 * @upage: what it tells
 * @load: sum of @path[].load
 * @pacings: &riso_dev.pacings when @kpage was written
 * @mode: what @kpage says
 * @classes: what @kpage says, one more when the rules treat a QP otherwise
 * @modes: changes with @mode, @classes and @gone
 * @gone: it has left, or its device has gone
 * @offset_ns: what its clock, of its time namespace, is ahead of ours
 * @grants: number of grants given, what @kpage says
 * @paths: number of elements of @path in use
 * @next: the element of @path that has its turn, by direction
 * @path: its paths; the first is RISO_TX, the second RISO_RX to whoever has no limit
 * @wait: where it waits for grants
 *
 * All under &riso_dev.lock but what is set before it joins: @rd, @group, @owner, @offset_ns,
 * the pages.
 */
struct riso_process {
	struct list_head list;
	struct list_head laden;
	struct riso_dev *rd;
	struct riso_group *group;
	struct riso_place_owner owner;
	struct riso_kpage *kpage;
	const struct riso_upage *upage;
	u64 load;
	u32 pacings;
	enum riso_user_mode mode;
	u32 classes;
	u32 modes;
	bool gone;
	s64 offset_ns;
	u32 grants;
	u32 paths;
	u32 next[RISO_DIRS];
	struct riso_process_path path[RISO_USER_PATHS];
	wait_queue_head_t wait;
};

/**
 * riso_grant_shrinks - has a process left several grants unused?
 * @ud: one path of the process
 *
 * Return: true if its next grant shall be the smallest that is of use.
 */
static inline bool riso_grant_shrinks(const struct riso_process_path *ud)
{
	return ud->unused >= RISO_UNUSED_SHRINK;
}

void riso_grant_init(struct riso_process *pr);
void riso_grant_forget(struct riso_process *pr);
u64 riso_grant_read(struct riso_process *pr, struct riso_process_path *ud, u64 now,
		    u64 *posted, u64 *debt);
u64 riso_grant_read_passed(struct riso_process *pr, enum riso_dir dir);
bool riso_grant_wishes(const struct riso_process *pr);
void riso_grant_give(struct riso_process *pr, struct riso_process_path *ud, u64 bytes,
		     u64 not_after, u64 now);
void riso_grant_add_path(struct riso_process *pr);
u32 riso_grant_cut(const struct riso_process *pr, const struct riso_process_path *ud);
void riso_grant_chunk(struct riso_process *pr, const struct riso_process_path *ud);
bool riso_grant_polls(const struct riso_process *pr);
void riso_grant_looked(struct riso_process *pr, u64 now);
void riso_grant_linger(struct riso_process *pr, u64 until);
void riso_grant_classes(struct riso_process *pr);
void riso_grant_pace(struct riso_process *pr, const struct riso_pacing *p);

#endif /* RISO_GRANT_H */
