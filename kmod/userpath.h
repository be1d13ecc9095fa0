/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Paths of processes that are held to the limit of a peer.
 */
#ifndef RISO_USERPATH_H
#define RISO_USERPATH_H

#include "flow.h"
#include "grant.h"
#include "path.h"

/**
 * riso_userpath_is_held - has a process to wait for grants for a path?
 * @pr: the process
 * @ud: the path
 *
 * Return: true if so.
 */
static inline bool riso_userpath_is_held(const struct riso_process *pr,
					 const struct riso_process_path *ud)
{
	return pr->mode == RISO_USER_PACED || ud - pr->path >= RISO_DIRS;
}

void riso_userpath_bind(struct riso_flow *f, enum riso_dir dir, struct riso_peer_limit *l);
void riso_userpath_release(struct riso_flow *f);
void riso_userpath_unbind(struct riso_process_path *ud, u64 now);
void riso_userpath_forget(struct riso_dev *rd, struct riso_peer_limit *l);
void riso_userpath_cut(struct riso_peer_limit *l);
bool riso_userpath_takes(const struct riso_flow *f);
void riso_userpath_rest(struct riso_process_path *ud, u64 now);
bool riso_userpath_waits(struct riso_process_path *ud, u64 now);
u64 riso_userpath_credit(const struct riso_process_path *ud, u64 now);
void riso_userpath_charge(struct riso_process_path *ud, u64 wire, u64 now);
void riso_userpath_charge_debt(struct riso_process_path *ud, u64 wire, u64 span, u64 now);
struct riso_process_path *riso_userpath_first(struct riso_dev *rd, struct riso_peer_limit *l,
					      u64 now);

#endif /* RISO_USERPATH_H */
