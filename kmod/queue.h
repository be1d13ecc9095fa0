/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Held work requests of one flow.
 */
#ifndef RISO_QUEUE_H
#define RISO_QUEUE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "arbiter.h"
#include "core/chunk.h"
#include "core/cost.h"
#include "core/wr.h"

struct riso_flow;
struct riso_rec;
struct riso_slot;

/*
 * Work requests that one call of the provider's post_send takes. A ring has so many more
 * records than the ULP may have work requests.
 */
enum { RISO_BATCH = 8 };

/**
 * struct riso_ring - copied work requests, oldest first
 * @recs: ring of @depth records of @stride bytes
 * @scratch: @max_sge elements for each chunk of a batch
 * @stride: bytes of a record
 * @depth: records
 * @head: oldest record that the provider has not taken whole
 * @tail: where the next record goes
 * @cur: how far the record at @head is cut
 * @seq: number of the record at @head, counts all work requests of the flow
 * @batch_end: where @head will be when the provider has taken what it is being given
 * @sparse_end: records before this one go at once, by the rule of sparse groups
 * @told_end: behind the last record that the peer is told of
 */
struct riso_ring {
	void *recs;
	struct ib_sge *scratch;
	u32 stride;
	u32 depth;
	u64 head;
	u64 tail;
	struct riso_cursor cur;
	u64 seq;
	u64 batch_end;
	u64 sparse_end;
	u64 told_end;
};

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
 */
struct riso_batch {
	struct ib_rdma_wr wr[RISO_BATCH];
	struct riso_mark mark[RISO_BATCH + 1];
	u32 num;
};

static inline u32 riso_ring_len(const struct riso_ring *q)
{
	return q->tail - q->head;
}

/* Is something held that the peer is told of? */
static inline bool riso_ring_tells(const struct riso_ring *q)
{
	return q->head < q->told_end;
}

static inline bool riso_ring_is_sparse(const struct riso_ring *q)
{
	return q->head < q->sparse_end;
}

/**
 * struct riso_quantum - what the arbiter lets a flow post
 * @chunk: size to cut to, 0 is off
 * @bytes: wire bytes that may go out; one work request may exceed it
 * @end: record that may not, nor any behind it
 * @debt: nothing is measured, all goes
 */
struct riso_quantum {
	u32 chunk;
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
 * @wire: their wire bytes, by direction
 * @ops: how many they are
 */
struct riso_untaken {
	u32 wire[RISO_DIRS];
	u32 ops;
};

u64 riso_ring_size(const struct riso_flow *f);
int riso_ring_alloc(struct riso_flow *f);
void riso_ring_free(struct riso_flow *f);
bool riso_ring_knows(const struct ib_send_wr *wr);
int riso_ring_add(struct riso_flow *f, const struct ib_send_wr *wr, u64 now);
u32 riso_batch_next(const struct riso_flow *f, u32 chunk);
void riso_ring_sum(const struct riso_flow *f, u64 *wire);
u64 riso_ring_since(const struct riso_flow *f);
u32 riso_batch_fetches(const struct riso_flow *f);
enum riso_dir riso_ring_dir(const struct riso_flow *f);
struct ib_send_wr *riso_batch_cut(struct riso_flow *f,
				  const struct riso_quantum *qt, u64 now,
				  u32 *wire);
enum riso_posted riso_batch_posted(struct riso_flow *f, int err,
				   const struct ib_send_wr *bad_wr, u64 now,
				   struct riso_untaken *rest);
void riso_ring_drop(struct riso_flow *f);
void riso_ring_kill(struct riso_flow *f, u64 seq);
bool riso_batch_ready(struct riso_flow *f, u64 now);
bool riso_ring_pop(struct riso_flow *f, u64 *wr_id);

#endif /* RISO_QUEUE_H */
