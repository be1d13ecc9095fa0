/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The next batch of a flow. See batch.c.
 */
#ifndef RISO_BATCH_H
#define RISO_BATCH_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "ring.h"

enum {
	/* Work requests that one call of the provider's post_send takes, ... */
	RISO_BATCH = 32,
	/*
	 * ... of at most 8 records. A ring has so many more of these than the ULP may have work
	 * requests.
	 */
	RISO_BATCH_RECORDS = 8,
};

/**
 * struct riso_place - how far a flow has posted
 * @pos: position of the record that comes next
 * @seq: its number
 * @cur: how far it is cut
 */
struct riso_place {
	u64 pos;
	u64 seq;
	struct riso_cursor cur;
};

/**
 * struct riso_run - pieces of one message that have a tag together, or a whole message
 * @at: where the first one begins
 * @slot: their tag, NULL for a whole message without one
 * @num: how many
 * @len: bytes of each but the last
 * @bytes: of all
 * @wire: wire bytes of all
 * @ends: the message ends with them
 */
struct riso_run {
	struct riso_place at;
	struct riso_slot *slot;
	u32 num;
	u32 len;
	u32 bytes;
	u32 wire;
	bool ends;
};

/**
 * struct riso_batch - what the provider is being given
 * @num: work requests
 * @runs: runs of them
 * @charged: its group was charged for it
 * @dir: direction whose budget it takes
 * @first: the first work request
 * @untagged: &riso_slots.untagged before it
 * @untagged_wire: &riso_slots.untagged_wire before it
 * @after: where the flow stands when the provider has taken all
 * @run: the runs
 * @wr: work requests made for chunks
 * @sge: &riso_flow.max_sge elements for each of these
 */
struct riso_batch {
	u32 num;
	u32 runs;
	bool charged;
	enum riso_dir dir;
	struct ib_send_wr *first;
	u32 untagged;
	u32 untagged_wire[RISO_DIRS];
	struct riso_place after;
	struct riso_run run[RISO_BATCH];
	struct ib_rdma_wr wr[RISO_BATCH];
	struct ib_sge sge[];
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
 * @share: chunks that may have a tag together, at least 1
 * @bytes: wire bytes that may go out; one work request may exceed it
 * @end: first record that may not go out
 * @debt: what goes out is charged as debt, without a turn
 */
struct riso_quantum {
	u32 chunk;
	u32 share;
	u64 bytes;
	u64 end;
	bool debt;
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
 * @wire: their wire bytes
 * @ops: how many they are
 */
struct riso_untaken {
	u32 wire;
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

u64 riso_batch_size(const struct riso_flow *f);
int riso_batch_alloc(struct riso_flow *f);
void riso_batch_free(struct riso_flow *f);
bool riso_batch_next(struct riso_flow *f, u64 now, struct riso_next *next);
struct ib_send_wr *riso_batch_cut(struct riso_flow *f,
				  const struct riso_quantum *qt, u64 now,
				  u32 *wire);
enum riso_posted riso_batch_posted(struct riso_flow *f, int err,
				   const struct ib_send_wr *bad_wr, u64 now,
				   struct riso_untaken *rest);

#endif /* RISO_BATCH_H */
