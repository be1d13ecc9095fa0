/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Paths: what holds for what is sent to a peer, or read from it.
 */
#ifndef RISO_PATH_H
#define RISO_PATH_H

#include <linux/list.h>
#include <linux/types.h>

struct riso_dev;

enum {
	/* Lines of flows that wait for a peer: few groups of a device send to the same one. */
	RISO_PEER_LINES = 16,
};

/**
 * struct riso_peer_limit - what holds in one direction
 * @rate: bytes per second of wire, 0 for no limit
 * @cut: messages are cut
 * @end_ns: until when, 0 for ever
 * @next_ns: until when the path has work at @rate
 * @debt_ns: until when it was believed what processes say that they posted without a grant
 * @bytes: wire bytes posted
 * @waits: times that a flow had to wait
 * @num: number of flows in @waiting
 * @line: the next of @waiting that has its turn
 * @waiting: flows that wait, in lines by their groups; the one that began first is first
 * @paths: paths of processes that are held to it
 * @processes: those of them that wait, the one that began first is first
 * @busy: in &riso_dev.busy_peers, since a flow or a process has begun to wait
 */
struct riso_peer_limit {
	u64 rate;
	bool cut;
	u64 end_ns;
	u64 next_ns;
	u64 debt_ns;
	u64 bytes;
	u64 waits;
	u32 num;
	u32 line;
	struct list_head waiting[RISO_PEER_LINES];
	struct list_head paths;
	struct list_head processes;
	struct list_head busy;
};

/**
 * riso_path_is_set - is there anything in a limit that may hold?
 * @l: the limit
 *
 * Return: true if so.
 */
static inline bool riso_path_is_set(const struct riso_peer_limit *l)
{
	return l->rate || l->cut;
}

u64 riso_path_when(const struct riso_peer_limit *l, u64 now);
u64 riso_path_credit(const struct riso_dev *rd, const struct riso_peer_limit *l, u64 now);
void riso_path_charge(const struct riso_dev *rd, struct riso_peer_limit *l, u64 wire, u64 now);
void riso_path_charge_debt(const struct riso_dev *rd, struct riso_peer_limit *l, u64 wire,
			   u64 span, u64 now);
void riso_path_refund(struct riso_peer_limit *l, u64 wire);
void riso_path_init(struct riso_peer_limit *l);

#endif /* RISO_PATH_H */
