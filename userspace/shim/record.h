/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The work requests that a flow holds. See record.c.
 */
#ifndef SHIM_RECORD_H
#define SHIM_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <linux/rdma_isolate_user.h>

#include "core/wr.h"
#include "qp.h"

/**
 * struct shim_rec - a copied work request
 * @wr: the work request, with wr_id and flags of the program
 * @seq: number of the work request, counted by shim_qp.accepted
 * @queued_ns: when the program posted the work request, in nanoseconds of CLOCK_MONOTONIC
 * @cost: cost bytes of what is neither posted nor paid for yet
 * @len: bytes of the message
 * @refused: the provider does not take the work request, which is empty now
 * @sge: elements of the work request; inline data follow the first
 */
struct shim_rec {
	struct ibv_send_wr wr;
	uint64_t seq;
	uint64_t queued_ns;
	uint64_t cost;
	uint32_t len;
	bool refused;
	struct ibv_sge sge[];
};

int shim_queue_alloc(struct shim_qp *f, uint32_t sq_entries);
void shim_queue_free(struct shim_qp *f);
void shim_queue_rewind(struct shim_qp *f);
struct shim_rec *shim_queue_stage(struct shim_qp *f, uint32_t n);
void shim_queue_inline(struct shim_rec *rec);
int shim_queue_inline_add(const struct shim_qp *f, struct shim_rec *rec,
			  const void *data, size_t len);
int shim_queue_copy(struct shim_qp *f, struct shim_rec *rec,
		    const struct ibv_send_wr *wr);
void shim_add_staged(struct shim_qp *f, uint32_t num, uint64_t now);
void shim_set_idle(struct shim_qp *f);
void shim_unhold_rec(struct shim_qp *f, struct shim_rec *rec);
void shim_pop_head(struct shim_qp *f);
void shim_truncate_queue(struct shim_qp *f, uint64_t pos);
void shim_queue_drop(struct shim_qp *f);
void shim_set_flush(struct shim_qp *f);

/**
 * shim_queue_len - count the records that a flow holds
 * @f: the flow; its member is locked
 *
 * Return: number of records.
 */
static inline uint64_t shim_queue_len(const struct shim_qp *f)
{
	return f->tail - f->sq.head;
}

/**
 * shim_find_rec - find the record at a position
 * @f: the flow
 * @pos: the position in its queue
 *
 * Return: the record.
 */
static inline struct shim_rec *shim_find_rec(const struct shim_qp *f, uint64_t pos)
{
	return f->recs + (size_t)(pos % f->depth) * f->stride;
}

/**
 * shim_get_dir - get the direction of a record
 * @rec: the record
 *
 * Return: the direction in which its data go.
 */
static inline enum riso_user_dir shim_get_dir(const struct shim_rec *rec)
{
	return riso_wr_is_read(rec->wr.opcode) ? RISO_USER_RX : RISO_USER_TX;
}

/**
 * shim_get_book - get the book that a record counts in
 * @f: the flow; its member is locked
 * @rec: the record
 *
 * Return: the number of the book, and of the path.
 */
static inline uint32_t shim_get_book(const struct shim_qp *f, const struct shim_rec *rec)
{
	return f->book[shim_get_dir(rec)];
}

#endif /* SHIM_RECORD_H */
