/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Peers: what a device may send to another host, or read from it.
 */
#ifndef RISO_PEER_H
#define RISO_PEER_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

#include "flow.h"
#include "path.h"

enum {
	/* Peers of a device that have a limit: an agent has 16, and an operator may have more. */
	RISO_MAX_PEERS = 1024,
};

/**
 * struct riso_peer_spec - a limit in one direction, as it is set and shown
 * @gid: address of the peer, IPv4 as mapped in IPv6
 * @dir: direction
 * @rate: bytes per second of wire, 0 for no limit
 * @cut: messages are cut also while this device has no latency flow
 * @lease_ns: how long it holds, 0 for until it is changed
 * @bytes: wire bytes that were posted under it
 * @waits: times that a flow had to wait for it
 */
struct riso_peer_spec {
	union ib_gid gid;
	enum riso_dir dir;
	u64 rate;
	bool cut;
	u64 lease_ns;
	u64 bytes;
	u64 waits;
};

/**
 * struct riso_peer - a host that has a limit
 * @list: in &riso_dev.peers
 * @gid: its address
 * @gone: it has no limit any more, and flows are to forget it
 * @limit: what holds, by direction
 */
struct riso_peer {
	struct list_head list;
	union ib_gid gid;
	bool gone;
	struct riso_peer_limit limit[RISO_DIRS];
};

/**
 * riso_peer_cuts - are messages of a flow cut for its peer's sake?
 * @f: the flow
 * @dir: direction
 *
 * Context: under &riso_dev.lock.
 * Return: true if so.
 */
static inline bool riso_peer_cuts(const struct riso_flow *f, enum riso_dir dir)
{
	return f->peer && f->peer->limit[dir].cut;
}

/**
 * riso_peer_is_contended - do other flows, or processes, wait for a flow's peer?
 * @f: the flow
 * @dir: direction
 *
 * Context: under &riso_dev.lock.
 * Return: true if some do.
 */
static inline bool riso_peer_is_contended(const struct riso_flow *f, enum riso_dir dir)
{
	const struct riso_peer_limit *l = f->peer ? &f->peer->limit[dir] : NULL;

	return l && l->rate && (l->num > (f->waits_for == l) || !list_empty(&l->processes));
}

u64 riso_peer_when(const struct riso_flow *f, enum riso_dir dir, u64 now);
void riso_peer_wait(struct riso_flow *f, enum riso_dir dir, u64 now);
void riso_peer_leave(struct riso_flow *f, u64 now);
struct riso_peer_limit *riso_peer_next_busy(struct riso_dev *rd);
struct riso_flow *riso_peer_first(struct riso_dev *rd, struct riso_peer_limit *l, u64 now);
u64 riso_peer_credit(const struct riso_flow *f, enum riso_dir dir, u64 now);
void riso_peer_charge(struct riso_flow *f, enum riso_dir dir, u64 wire, u64 now);
void riso_peer_refund(struct riso_flow *f, enum riso_dir dir, u64 wire);
struct riso_peer *riso_peer_find(const struct riso_dev *rd, const union ib_gid *gid);
int riso_peer_set(struct riso_dev *rd, const struct riso_peer_spec *spec, bool *rebound,
		  struct netlink_ext_ack *extack);
bool riso_peer_expire(struct riso_dev *rd, u64 now);
bool riso_peer_next(struct riso_dev *rd, u32 *index, struct riso_peer_spec *spec);
void riso_peer_restart(struct riso_dev *rd);
void riso_peer_forget_all(struct riso_dev *rd);

#endif /* RISO_PEER_H */
