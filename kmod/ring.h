/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ring of work requests that a flow holds. See ring.c.
 */
#ifndef RISO_RING_H
#define RISO_RING_H

#include <linux/math64.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "arbiter.h"
#include "core/chunk.h"
#include "core/cost.h"
#include "core/wr.h"

struct riso_flow;

/**
 * struct riso_ring - copied work requests, oldest first
 * @recs: ring of @depth records of @stride bytes
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
 * struct riso_rec - a copied work request
 * @wr: the work request; wr_id and flags are ours while posted
 * @rdma: its container for RDMA_WRITE and RDMA_READ
 * @atomic: its container for atomics
 * @reg: its container for REG_MR
 * @container: as large as that of any opcode
 * @wr_id: the ULP's own
 * @queued_ns: when the ULP posted it
 * @send_flags: the ULP's own
 * @len: bytes of the message
 * @dead: its error was reported, drop what is left of it
 * @sge: its elements; inline data follow the first
 */
struct riso_rec {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
		union riso_container {
			struct ib_rdma_wr rdma;
			struct ib_atomic_wr atomic;
			struct ib_ud_wr ud;
			struct ib_reg_wr reg;
		} container;
	};
	u64 wr_id;
	u64 queued_ns;
	int send_flags;
	u32 len;
	bool dead;
	struct ib_sge sge[];
};

/**
 * riso_wr_bytes - payload of a work request
 * @wr: the work request, with data
 *
 * Return: bytes.
 */
static inline u64 riso_wr_bytes(const struct ib_send_wr *wr)
{
	u64 bytes = 0;
	int i;

	if (likely(wr->num_sge == 1))
		return wr->sg_list[0].length;
	for (i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

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
 * riso_ring_at - a record by its position
 * @q: the ring
 * @pos: from &riso_ring.head on, before &riso_ring.tail
 *
 * Return: the record.
 */
static inline struct riso_rec *riso_ring_at(const struct riso_ring *q, u64 pos)
{
	u32 index;

	div_u64_rem(pos, q->depth, &index);
	return q->recs + (size_t)index * q->stride;
}

/* The direction whose budget a record takes. */
static inline enum riso_dir riso_rec_dir(const struct riso_rec *rec)
{
	return riso_wr_is_read(rec->wr.opcode) ? RISO_RX : RISO_TX;
}

u64 riso_ring_size(const struct riso_flow *f);
int riso_ring_alloc(struct riso_flow *f);
void riso_ring_free(struct riso_flow *f);
int riso_ring_add(struct riso_flow *f, const struct ib_send_wr *wr, u64 now, u64 *wire);
u64 riso_ring_since(const struct riso_flow *f);
void riso_ring_drop_head(struct riso_flow *f);
bool riso_ring_pop(struct riso_flow *f, u64 *wr_id);
void riso_ring_drop(struct riso_flow *f);
void riso_ring_kill(struct riso_flow *f, u64 seq);

#endif /* RISO_RING_H */
