// SPDX-License-Identifier: GPL-2.0
/*
 * Paths of processes that are held to the limit of a peer.
 *
 * A process counts what it sends to a peer with a limit, or reads from it, in a path of its own
 * (uapi/linux/rdma_isolate_user.h), and gets grants for that as for its other paths, but no more
 * than the limit allows. A path whose limit is used up waits aside; other paths of the process
 * have their turns.
 *
 * Owns which path of a process has which limit, and the lists of paths that wait. All of it is
 * under &riso_dev.lock, in any context.
 */

#include <linux/ktime.h>
#include <linux/minmax.h>

#include "dev.h"
#include "limits.h"
#include "userpath.h"

static void stop_waiting(struct riso_process_path *ud, u64 now)
{
	if (list_empty(&ud->waiting))
		return;
	list_del_init(&ud->waiting);
	riso_pressure_aside(&ud->process->group->pressure, false, now);
}

/* The path of a process for a limit, bound to it; that of @dir if the process has too many. */
static u32 seek_path(struct riso_process *pr, struct riso_peer_limit *l, enum riso_dir dir)
{
	struct riso_process_path *ud;
	u32 unused = RISO_USER_PATHS;
	u32 i;

	for (i = RISO_DIRS; i < pr->paths; i++) {
		ud = &pr->path[i];
		if (ud->limit == l)
			return i;
		if (!ud->limit && !ud->flows && ud->dir == dir)
			unused = min(unused, i);
	}
	/* One that was never used has no grants of another limit. */
	if (pr->paths < RISO_USER_PATHS)
		unused = pr->paths;
	else if (unused == RISO_USER_PATHS)
		return dir;
	ud = &pr->path[unused];
	ud->dir = dir;
	ud->limit = l;
	list_add_tail(&ud->bound, &l->paths);
	riso_grant_chunk(pr, ud);
	if (unused == pr->paths)
		riso_grant_add_path(pr);
	return unused;
}

/**
 * riso_userpath_unbind - hold a path to no limit
 * @ud: the path
 * @now: time, ns
 */
void riso_userpath_unbind(struct riso_process_path *ud, u64 now)
{
	lockdep_assert_held(&ud->process->rd->lock);
	stop_waiting(ud, now);
	list_del_init(&ud->bound);
	ud->limit = NULL;
	ud->owed = 0;
}

/* A flow takes another path. The one that nobody takes any more is free for another limit. */
static void leave_path(struct riso_process *pr, u32 i, u64 now)
{
	struct riso_process_path *ud = &pr->path[i];

	if (i < RISO_DIRS || !ud->flows || --ud->flows)
		return;
	riso_userpath_unbind(ud, now);
}

/**
 * riso_userpath_bind - let a flow take the path of its process for a limit
 * @f: the flow, which its process posts for
 * @dir: direction
 * @l: the limit, or NULL; one that is not set is none
 *
 * &riso_flow.takes says which path it is.
 */
void riso_userpath_bind(struct riso_flow *f, enum riso_dir dir, struct riso_peer_limit *l)
{
	struct riso_process *pr = f->group ? f->group->process : NULL;
	u32 was = f->takes[dir];
	u32 to = dir;

	lockdep_assert_held(&f->rd->lock);
	if (pr && l && riso_path_is_set(l))
		to = seek_path(pr, l, dir);
	if (pr && to >= RISO_DIRS)
		pr->path[to].flows++;
	f->takes[dir] = to;
	if (pr)
		leave_path(pr, was, ktime_get_ns());
}

/**
 * riso_userpath_release - let a flow take no path with a limit
 * @f: the flow
 */
void riso_userpath_release(struct riso_flow *f)
{
	int dir;

	for (dir = 0; dir < RISO_DIRS; dir++)
		riso_userpath_bind(f, dir, NULL);
}

/**
 * riso_userpath_takes - does a flow take a path with a limit?
 * @f: the flow
 *
 * Return: true if so.
 */
bool riso_userpath_takes(const struct riso_flow *f)
{
	return f->takes[RISO_TX] >= RISO_DIRS || f->takes[RISO_RX] >= RISO_DIRS;
}

/**
 * riso_userpath_rest - a process wants nothing for a path
 * @ud: the path
 * @now: time, ns
 */
void riso_userpath_rest(struct riso_process_path *ud, u64 now)
{
	lockdep_assert_held(&ud->process->rd->lock);
	stop_waiting(ud, now);
	ud->admitted = false;
}

/**
 * riso_userpath_forget - a limit has ended
 * @rd: the device
 * @l: the limit
 *
 * Its processes ask for the paths of their queue pairs again. Until then they go on as before, and
 * get what they want.
 */
void riso_userpath_forget(struct riso_dev *rd, struct riso_peer_limit *l)
{
	struct riso_process_path *ud, *next;
	u64 now = ktime_get_ns();

	lockdep_assert_held(&rd->lock);
	list_for_each_entry_safe(ud, next, &l->paths, bound) {
		riso_userpath_unbind(ud, now);
		riso_grant_chunk(ud->process, ud);
		riso_grant_classes(ud->process);
	}
}

/**
 * riso_userpath_cut - a limit wants messages to be cut, or does no longer
 * @l: the limit
 */
void riso_userpath_cut(struct riso_peer_limit *l)
{
	struct riso_process_path *ud;

	list_for_each_entry(ud, &l->paths, bound)
		riso_grant_chunk(ud->process, ud);
}

/* Do flows, or other paths, wait for the limit of a path? */
static bool is_contended(const struct riso_process_path *ud)
{
	const struct riso_peer_limit *l = ud->limit;

	return l->rate && (l->num || !(list_empty(&l->processes) ||
				       (list_is_singular(&l->processes) &&
					!list_empty(&ud->waiting))));
}

/**
 * riso_userpath_waits - does the limit of a path keep it from posting?
 * @ud: the path of a process that wants something
 * @now: time, ns
 *
 * Then it waits aside, as it does where others wait, until all of them may try again.
 *
 * Return: true if so.
 */
bool riso_userpath_waits(struct riso_process_path *ud, u64 now)
{
	struct riso_peer_limit *l = ud->limit;
	struct riso_dev *rd = ud->process->rd;
	u64 when = l ? riso_path_when(l, now) : 0;

	lockdep_assert_held(&rd->lock);
	if (!l || (!when && (ud->admitted || !is_contended(ud)))) {
		stop_waiting(ud, now);
		return false;
	}
	ud->admitted = false;
	rd->want_ns = min(rd->want_ns, when ? when - RISO_TICK_NS : now);
	if (!list_empty(&ud->waiting))
		return true;
	l->waits++;
	list_add_tail(&ud->waiting, &l->processes);
	if (list_empty(&l->busy))
		list_add_tail(&l->busy, &rd->busy_peers);
	riso_pressure_aside(&ud->process->group->pressure, true, now);
	return true;
}

/**
 * riso_userpath_credit - how large may a grant be, as far as the limit of a path goes?
 * @ud: the path
 * @now: time, ns
 *
 * Return: wire bytes.
 */
u64 riso_userpath_credit(const struct riso_process_path *ud, u64 now)
{
	return ud->limit ? riso_path_credit(ud->process->rd, ud->limit, now) : U64_MAX;
}

/**
 * riso_userpath_charge - a process may post
 * @ud: the path
 * @wire: wire bytes
 * @now: time, ns
 */
void riso_userpath_charge(struct riso_process_path *ud, u64 wire, u64 now)
{
	ud->admitted = false;
	if (ud->limit)
		riso_path_charge(ud->process->rd, ud->limit, wire, now);
}

/**
 * riso_userpath_charge_debt - a process says that it has posted without a grant
 * @ud: the path
 * @wire: wire bytes
 * @span: what was said before this long ago does not count, ns
 * @now: time, ns
 */
void riso_userpath_charge_debt(struct riso_process_path *ud, u64 wire, u64 span, u64 now)
{
	if (ud->limit)
		riso_path_charge_debt(ud->process->rd, ud->limit, wire, span, now);
}

/**
 * riso_userpath_first - find a path that need not wait any longer
 * @rd: the device
 * @l: the limit that it waits for
 * @now: time, ns
 *
 * If none need not, &riso_dev.want_ns is when one need not.
 *
 * Return: the path, which does not wait any more, or NULL.
 */
struct riso_process_path *riso_userpath_first(struct riso_dev *rd, struct riso_peer_limit *l,
					      u64 now)
{
	struct riso_process_path *ud;
	u64 when;

	lockdep_assert_held(&rd->lock);
	ud = list_first_entry_or_null(&l->processes, struct riso_process_path, waiting);
	if (!ud)
		return NULL;
	when = riso_path_when(l, now);
	if (when) {
		rd->want_ns = min(rd->want_ns, when - RISO_TICK_NS);
		return NULL;
	}
	stop_waiting(ud, now);
	ud->admitted = true;
	return ud;
}
