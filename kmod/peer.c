// SPDX-License-Identifier: GPL-2.0
/*
 * Peers: what a device may send to another host, or read from it.
 *
 * A host that has latency flows, or whose link others fill, tells how much each of its peers may
 * send there, or read from there (sections 4.4 and 6.7 of the paper; Documentation/design/hosts.rst).
 * An agent, or the operator, sets that here. A flow whose peer has no credit waits aside, so that
 * flows to others have their turns.
 *
 * Owns &riso_dev.peers, &riso_flow.peer, the clocks of peers, and the lists of flows that wait for
 * them. &riso_dev.mutex protects the list of peers; &riso_dev.lock protects what is in it, which flow
 * has which, and &riso_dev.busy_peers.
 */

#include <linux/ktime.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "limits.h"
#include "nl_event.h"
#include "peer.h"
#include "userpath.h"

/* Flows that leave a limit under the lock together */
enum { FREE_MAX = 64 };

/* The limit that a flow has, or NULL */
static struct riso_peer_limit *limit_of(const struct riso_flow *f, enum riso_dir dir)
{
	return f->peer && f->peer->limit[dir].rate ? &f->peer->limit[dir] : NULL;
}

/**
 * riso_peer_when - when may a flow post again, as far as its peer goes?
 * @f: the flow
 * @dir: direction
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 * Return: time, ns; 0 for now.
 */
u64 riso_peer_when(const struct riso_flow *f, enum riso_dir dir, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	return f->peer ? riso_path_when(&f->peer->limit[dir], now) : 0;
}

/**
 * riso_peer_wait - let a flow wait for its peer
 * @f: the flow, which stands nowhere
 * @dir: direction
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_peer_wait(struct riso_flow *f, enum riso_dir dir, u64 now)
{
	struct riso_peer_limit *l = &f->peer->limit[dir];

	lockdep_assert_held(&f->rd->lock);
	l->waits++;
	l->num++;
	f->waits_for = l;
	list_add_tail(&f->arb, &l->waiting[f->group->id % RISO_PEER_LINES]);
	if (list_empty(&l->busy))
		list_add_tail(&l->busy, &f->rd->busy_peers);
	riso_pressure_aside(&f->group->pressure, true, now);
}

/**
 * riso_peer_leave - a flow does not wait for its peer any longer
 * @f: the flow, which stands nowhere any more
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_peer_leave(struct riso_flow *f, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	f->waits_for->num--;
	f->waits_for = NULL;
	riso_pressure_aside(&f->group->pressure, false, now);
}

/* The first flow of the line whose turn it is, or NULL if none waits */
static struct riso_flow *first_waiting(struct riso_peer_limit *l)
{
	struct riso_flow *f;
	int i;

	for (i = 0; i < RISO_PEER_LINES; i++) {
		f = list_first_entry_or_null(&l->waiting[l->line++ % RISO_PEER_LINES],
					     struct riso_flow, arb);
		if (f)
			return f;
	}
	return NULL;
}

/**
 * riso_peer_next_busy - find the next limit for which flows may wait
 * @rd: the device
 *
 * Limits have their turns.
 *
 * Context: under &riso_dev.lock.
 * Return: the limit, or NULL if there is none.
 */
struct riso_peer_limit *riso_peer_next_busy(struct riso_dev *rd)
{
	struct riso_peer_limit *l;

	lockdep_assert_held(&rd->lock);
	l = list_first_entry_or_null(&rd->busy_peers, struct riso_peer_limit, busy);
	if (l)
		list_move_tail(&l->busy, &rd->busy_peers);
	return l;
}

/**
 * riso_peer_first - find a flow that need not wait any longer
 * @rd: the device
 * @l: the limit that it waits for
 * @now: time, ns
 *
 * If none need not, &riso_dev.want_ns is when one need not. Groups have their turns, however many
 * flows of each wait.
 *
 * Context: under &riso_dev.lock.
 * Return: the flow, where it stands, or NULL.
 */
struct riso_flow *riso_peer_first(struct riso_dev *rd, struct riso_peer_limit *l, u64 now)
{
	struct riso_flow *f = first_waiting(l);
	u64 when = riso_path_when(l, now);

	lockdep_assert_held(&rd->lock);
	if (!f) {
		if (list_empty(&l->processes))
			list_del_init(&l->busy);
		return NULL;
	}
	if (!when)
		return f;
	rd->want_ns = min(rd->want_ns, when - RISO_TICK_NS);
	return NULL;
}

/**
 * riso_peer_credit - how much may a flow post in its turn, as far as its peer goes?
 * @f: the flow, which does not wait for it
 * @dir: direction
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 * Return: wire bytes; a piece that is larger goes all the same.
 */
u64 riso_peer_credit(const struct riso_flow *f, enum riso_dir dir, u64 now)
{
	const struct riso_peer_limit *l = limit_of(f, dir);

	lockdep_assert_held(&f->rd->lock);
	return l ? riso_path_credit(f->rd, l, now) : U64_MAX;
}

/**
 * riso_peer_charge - a flow posts to its peer
 * @f: the flow
 * @dir: direction
 * @wire: wire bytes
 * @now: time, ns
 *
 * Context: under &riso_dev.lock.
 */
void riso_peer_charge(struct riso_flow *f, enum riso_dir dir, u64 wire, u64 now)
{
	lockdep_assert_held(&f->rd->lock);
	if (f->peer)
		riso_path_charge(f->rd, &f->peer->limit[dir], wire, now);
}

/**
 * riso_peer_refund - give back what a flow was charged for a post that was not taken
 * @f: the flow
 * @dir: direction
 * @wire: wire bytes
 *
 * Context: under &riso_dev.lock.
 */
void riso_peer_refund(struct riso_flow *f, enum riso_dir dir, u64 wire)
{
	lockdep_assert_held(&f->rd->lock);
	if (f->peer)
		riso_path_refund(&f->peer->limit[dir], wire);
}

/**
 * riso_peer_find - find the peer of a flow, which is to be connected
 * @rd: the device
 * @gid: address of the other end
 *
 * Context: &riso_dev.mutex; the peer is there as long as that is held, or a flow has it.
 * Return: the peer, or NULL if it has no limit.
 */
struct riso_peer *riso_peer_find(const struct riso_dev *rd, const union ib_gid *gid)
{
	struct riso_peer *p;

	lockdep_assert_held(&rd->mutex);
	list_for_each_entry(p, &rd->peers, list)
		if (!memcmp(&p->gid, gid, sizeof(*gid)))
			return p;
	return NULL;
}

static bool goes_to(const struct riso_flow *f, const struct riso_peer *p)
{
	return f->who.peer_known && !memcmp(&f->who.peer, &p->gid, sizeof(p->gid));
}

/* Let flows of the kernel have a peer that has come. */
static void bind_all(struct riso_dev *rd, struct riso_peer *p)
{
	struct riso_flow *f;
	int bucket;

	hash_for_each(rd->qps[false], bucket, f, hash) {
		spin_lock_irq(&rd->lock);
		if (goes_to(f, p))
			f->peer = p;
		spin_unlock_irq(&rd->lock);
	}
}

/* Have processes ask for the paths of their queue pairs again, where one has got a limit. */
static void tell_processes(struct riso_dev *rd, const struct riso_peer *p)
{
	struct riso_flow *f;
	int bucket;

	hash_for_each(rd->qps[true], bucket, f, hash) {
		if (!f->shim || !goes_to(f, p))
			continue;
		spin_lock_irq(&rd->lock);
		if (f->group && f->group->process)
			riso_grant_classes(f->group->process);
		spin_unlock_irq(&rd->lock);
	}
}

/* Let flows of the kernel forget peers that are gone. */
static void unbind_gone(struct riso_dev *rd)
{
	struct riso_flow *f;
	int bucket;

	hash_for_each(rd->qps[false], bucket, f, hash) {
		spin_lock_irq(&rd->lock);
		if (f->peer && f->peer->gone)
			f->peer = NULL;
		spin_unlock_irq(&rd->lock);
	}
}

static bool has_limit(const struct riso_peer *p)
{
	return riso_path_is_set(&p->limit[RISO_TX]) || riso_path_is_set(&p->limit[RISO_RX]);
}

/* Flows that wait for a limit that has ended try again soon. No other one joins them. */
static void free_waiting(struct riso_dev *rd, struct riso_peer_limit *l)
{
	struct riso_flow *f;
	u64 now;
	int n;

	do {
		spin_lock_irq(&rd->lock);
		now = ktime_get_ns();
		for (n = 0; n < FREE_MAX && (f = first_waiting(l)); n++) {
			list_move_tail(&f->arb, &rd->parked);
			f->list = RISO_LIST_PARKED;
			riso_peer_leave(f, now);
		}
		if (!f) {
			riso_userpath_forget(rd, l);
			list_del_init(&l->busy);
		}
		spin_unlock_irq(&rd->lock);
	} while (f);
}

static void bury_peer(struct riso_dev *rd, struct riso_peer *p, struct list_head *graves)
{
	spin_lock_irq(&rd->lock);
	p->gone = true;
	spin_unlock_irq(&rd->lock);
	list_move_tail(&p->list, graves);
	rd->num_peers--;
}

/* All flows are looked at once, for all peers that are gone. */
static void drop_buried(struct riso_dev *rd, struct list_head *graves)
{
	struct riso_peer *p, *next;
	int dir;

	if (list_empty(graves))
		return;
	unbind_gone(rd);
	list_for_each_entry_safe(p, next, graves, list) {
		for (dir = 0; dir < RISO_DIRS; dir++)
			free_waiting(rd, &p->limit[dir]);
		kfree(p);
	}
	riso_nl_changed();
}

static void drop_peer(struct riso_dev *rd, struct riso_peer *p)
{
	LIST_HEAD(graves);

	bury_peer(rd, p, &graves);
	drop_buried(rd, &graves);
}

static struct riso_peer *add_peer(struct riso_dev *rd, const union ib_gid *gid,
				  struct netlink_ext_ack *extack)
{
	struct riso_peer *p;
	int dir;

	if (rd->num_peers == RISO_MAX_PEERS) {
		NL_SET_ERR_MSG(extack, "the device has limits for 1024 peers, which is the most");
		return ERR_PTR(-ENOSPC);
	}
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return ERR_PTR(-ENOMEM);
	p->gid = *gid;
	for (dir = 0; dir < RISO_DIRS; dir++)
		riso_path_init(&p->limit[dir]);
	list_add_tail(&p->list, &rd->peers);
	rd->num_peers++;
	riso_nl_changed();
	return p;
}

/**
 * riso_peer_set - set what may be sent to a peer, or read from it
 * @rd: the device
 * @spec: the limit; one of no rate that does not cut is none
 * @rebound: set to true if riso_manage_refresh_all() has to be called, also after an error;
 *	riso_sched_run() always has
 * @extack: says what was wrong
 *
 * Context: &riso_dev.mutex, may sleep.
 * Return: 0, -ENODEV, -ENOSPC or -ENOMEM, then nothing was changed.
 */
int riso_peer_set(struct riso_dev *rd, const struct riso_peer_spec *spec, bool *rebound,
		  struct netlink_ext_ack *extack)
{
	struct riso_peer *p = riso_peer_find(rd, &spec->gid);
	u64 now = ktime_get_ns();
	struct riso_peer_limit *l;
	bool added = false;
	u64 rest;

	lockdep_assert_held(&rd->mutex);
	*rebound = false;
	if (rd->buried) {
		NL_SET_ERR_MSG(extack, "the device goes away");
		return -ENODEV;
	}
	if (!p) {
		if (!spec->rate && !spec->cut)
			return 0;
		if (rd->num_peers == RISO_MAX_PEERS)
			*rebound = riso_peer_expire(rd, now);
		p = add_peer(rd, &spec->gid, extack);
		if (IS_ERR(p))
			return PTR_ERR(p);
		added = true;
	}
	spin_lock_irq(&rd->lock);
	l = &p->limit[spec->dir];
	/* What is on its way takes as long as with the new rate, but keeps nobody for long. */
	if (l->next_ns > now && spec->rate) {
		rest = riso_mul_div(l->next_ns - now, l->rate, spec->rate);
		l->next_ns = now + min(rest, max_t(u64, l->next_ns - now, NSEC_PER_SEC));
	}
	*rebound = *rebound || added || l->cut != spec->cut || !l->rate != !spec->rate;
	l->rate = spec->rate;
	if (l->cut != spec->cut) {
		l->cut = spec->cut;
		riso_userpath_cut(l);
	}
	l->end_ns = spec->lease_ns ? now + spec->lease_ns : 0;
	/* The timer looks who need not wait any longer. */
	rd->want_ns = now;
	spin_unlock_irq(&rd->lock);
	if (!has_limit(p)) {
		drop_peer(rd, p);
		return 0;
	}
	if (added)
		bind_all(rd, p);
	if (*rebound)
		tell_processes(rd, p);
	return 0;
}

/**
 * riso_peer_expire - end the limits whose time has come
 * @rd: the device
 * @now: time, ns
 *
 * Context: &riso_dev.mutex, may sleep.
 * Return: true if one has ended: then riso_manage_refresh_all() has to be called.
 */
bool riso_peer_expire(struct riso_dev *rd, u64 now)
{
	struct riso_peer *p, *next;
	LIST_HEAD(graves);
	bool ended = false;
	int dir;

	lockdep_assert_held(&rd->mutex);
	list_for_each_entry_safe(p, next, &rd->peers, list) {
		for (dir = 0; dir < RISO_DIRS; dir++) {
			struct riso_peer_limit *l = &p->limit[dir];

			if (!l->end_ns || now < l->end_ns)
				continue;
			spin_lock_irq(&rd->lock);
			l->rate = 0;
			l->cut = false;
			l->end_ns = 0;
			spin_unlock_irq(&rd->lock);
			free_waiting(rd, l);
			ended = true;
		}
		if (!has_limit(p))
			bury_peer(rd, p, &graves);
	}
	drop_buried(rd, &graves);
	return ended;
}

/**
 * riso_peer_next - what a dump shows of the limits of a device
 * @rd: the device
 * @index: number of the limit, two for each peer; advanced behind the one that is shown
 * @spec: filled in
 *
 * Context: &riso_dev.mutex.
 * Return: false if there is none behind.
 */
bool riso_peer_next(struct riso_dev *rd, u32 *index, struct riso_peer_spec *spec)
{
	u64 now = ktime_get_ns();
	struct riso_peer *p;
	u32 i = 0;
	int dir;

	lockdep_assert_held(&rd->mutex);
	list_for_each_entry(p, &rd->peers, list) {
		for (dir = 0; dir < RISO_DIRS; dir++) {
			const struct riso_peer_limit *l = &p->limit[dir];

			if (i++ < *index || (!l->rate && !l->cut) ||
			    (l->end_ns && now >= l->end_ns))
				continue;
			*index = i;
			spin_lock_irq(&rd->lock);
			*spec = (struct riso_peer_spec) {
				.gid = p->gid,
				.dir = dir,
				.rate = l->rate,
				.cut = l->cut,
				.lease_ns = l->end_ns ? l->end_ns - now : 0,
				.bytes = l->bytes,
				.waits = l->waits,
			};
			spin_unlock_irq(&rd->lock);
			return true;
		}
	}
	return false;
}

/**
 * riso_peer_restart - the device has begun or ceased to hold what is posted
 * @rd: the device
 *
 * Processes ask for the paths of their queue pairs again.
 *
 * Context: &riso_dev.mutex, may sleep.
 */
void riso_peer_restart(struct riso_dev *rd)
{
	struct riso_peer *p;
	int dir;

	lockdep_assert_held(&rd->mutex);
	list_for_each_entry(p, &rd->peers, list) {
		for (dir = 0; dir < RISO_DIRS; dir++) {
			spin_lock_irq(&rd->lock);
			riso_userpath_forget(rd, &p->limit[dir]);
			spin_unlock_irq(&rd->lock);
		}
		tell_processes(rd, p);
	}
}

/**
 * riso_peer_forget_all - end all limits of a device
 * @rd: the device
 *
 * Context: &riso_dev.mutex, may sleep.
 */
void riso_peer_forget_all(struct riso_dev *rd)
{
	struct riso_peer *p, *next;
	LIST_HEAD(graves);

	lockdep_assert_held(&rd->mutex);
	list_for_each_entry_safe(p, next, &rd->peers, list)
		bury_peer(rd, p, &graves);
	drop_buried(rd, &graves);
}
