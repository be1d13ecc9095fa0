/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The next batch of a flow. See batch.c.
 */
#ifndef RISO_BATCH_H
#define RISO_BATCH_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "ring.h"

/**
 * struct riso_mark - where a flow stood before a work request of a batch
 * @head: &riso_ring.head
 * @seq: &riso_ring.seq
 * @cur: &riso_ring.cur
 * @slot_head: &riso_slots.head
 * @untagged: &riso_slots.untagged
 * @untagged_wire: &riso_slots.untagged_wire
 * @sq_used: &riso_slots.sq_used
 * @rd_out: &riso_slots.rd_out
 * @wr: the work request
 */
struct riso_mark {
	u64 head;
	u64 seq;
	struct riso_cursor cur;
	u32 slot_head;
	u32 untagged;
	u32 untagged_wire[RISO_DIRS];
	u32 sq_used;
	u32 rd_out;
	struct ib_send_wr *wr;
};

/**
 * struct riso_batch - what the provider is being given
 * @wr: work requests made for chunks
 * @mark: one for each work request, and one for when the provider has taken them all
 * @num: work requests
 * @charged: its group was charged for it
 */
struct riso_batch {
	struct ib_rdma_wr wr[RISO_BATCH];
	struct riso_mark mark[RISO_BATCH + 1];
	u32 num;
	bool charged;
};

/**
 * struct riso_next - what a flow posts next
 * @dir: direction whose budget it takes
 * @left: bytes of the message that are left
 * @cut: they may go in pieces
 */
struct riso_next {
	enum riso_dir dir;
	u32 left;
	bool cut;
};

/**
 * struct riso_quantum - what the scheduler lets a flow post
 * @chunk: size to cut to, 0 is off
 * @bytes: wire bytes that may go out; one work request may exceed it
 * @end: first record that may not go out
 * @debt: what goes out is charged as debt, without a turn
 * @held: the window had kept it back
 */
struct riso_quantum {
	u32 chunk;
	u64 bytes;
	u64 end;
	bool debt;
	bool held;
};

/**
 * enum riso_posted - what came of a batch
 * @RISO_POSTED_ALL: the provider took it
 * @RISO_POSTED_RETRY: it did not take all, try again at &riso_flow.retry_ns
 * @RISO_POSTED_REFUSED: it will not take it
 */
enum riso_posted {
	RISO_POSTED_ALL,
	RISO_POSTED_RETRY,
	RISO_POSTED_REFUSED,
};

/**
 * struct riso_untaken - work requests of a batch that the provider did not take
 * @wire: their wire bytes, by direction
 * @ops: how many they are
 */
struct riso_untaken {
	u32 wire[RISO_DIRS];
	u32 ops;
};

/**
 * riso_piece_len - how much of a message goes out next
 * @next: what is left of it
 * @chunk: size that messages are cut to, 0 is off
 *
 * Return: bytes.
 */
static inline u32 riso_piece_len(const struct riso_next *next, u32 chunk)
{
	return next->cut ? riso_chunk_next(next->left, chunk) : next->left;
}

bool riso_batch_next(struct riso_flow *f, u64 now, struct riso_next *next);
struct ib_send_wr *riso_batch_cut(struct riso_flow *f,
				  const struct riso_quantum *qt, u64 now,
				  u32 *wire);
enum riso_posted riso_batch_posted(struct riso_flow *f, int err,
				   const struct ib_send_wr *bad_wr, u64 now,
				   struct riso_untaken *rest);

#endif /* RISO_BATCH_H */
