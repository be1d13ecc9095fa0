// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Records: the work requests that a flow holds.
 *
 * Owns the ring of copied work requests and their order. Whatever the program posts on a
 * governed queue pair goes through the ring, also what goes out at once, so there is one
 * path and one order. Records are staged behind the tail first, and become part of the
 * queue all at once.
 *
 * Locks: shim_member.lock protects the ring. shim_queue_stage(), shim_queue_copy() and the
 * functions for inline data write behind the tail. The program's ibv_wr_* calls hold only
 * shim_build.lock there, which keeps others out. shim_queue_alloc() and shim_queue_free()
 * need no lock, as nobody else knows the flow. Nothing else here allocates memory.
 *
 * Runs in threads of the program and in the helper.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/rdma_isolate.h>

#include "core/wr.h"
#include "cq.h"
#include "ctx.h"
#include "line.h"
#include "member.h"
#include "pay.h"
#include "post.h"
#include "qp.h"
#include "record.h"
#include "slot.h"

enum {
	/* Bytes: what a path has at least in RoCE, until the queue pair tells its own */
	DEFAULT_MTU = 1024,
};

/**
 * shim_queue_alloc - get the memory of a flow
 * @f: a flow with depth, max_sge and max_inline set
 * @sq_entries: of the provider's send queue
 *
 * Return: 0 or ENOMEM.
 */
int shim_queue_alloc(struct shim_qp *f, uint32_t sq_entries)
{
	size_t sges = f->max_sge * sizeof(struct ibv_sge);
	size_t data = sizeof(struct ibv_sge) + f->max_inline;

	f->mtu = DEFAULT_MTU;
	f->refusable = UINT64_MAX;
	f->stride = (sizeof(struct shim_rec) + (sges > data ? sges : data) + 15) &
		    ~15U;
	f->recs = calloc(f->depth, f->stride);
	f->sge = calloc(SHIM_BATCH * (f->max_sge + 1), sizeof(*f->sge));
	f->slots = shim_slots_alloc(f, sq_entries);
	if (f->recs && f->sge && f->slots)
		return 0;
	shim_queue_free(f);
	return ENOMEM;
}

/**
 * shim_queue_free - give the memory of a flow back
 * @f: a flow that nobody uses
 */
void shim_queue_free(struct shim_qp *f)
{
	free(f->recs);
	free(f->sge);
	if (f->slots)
		shim_slots_free(f->slots);
	f->recs = NULL;
	f->sge = NULL;
	f->slots = NULL;
}

/**
 * shim_queue_rewind - begin at the front of the ring, which is in the cache
 * @f: the flow; its member is locked, and nothing is staged
 */
void shim_queue_rewind(struct shim_qp *f)
{
	if (shim_queue_len(f))
		return;
	f->sq.head = 0;
	f->tail = 0;
}

/**
 * shim_queue_stage - a record behind those that are held
 * @f: the flow; its build lock, or the lock of the member, is held
 * @n: how many have been staged before it
 *
 * Return: the record, or NULL if the program has posted more than it may.
 */
struct shim_rec *shim_queue_stage(struct shim_qp *f, uint32_t n)
{
	/* Pairs with the releases in shim_soft_seen(), shim_reset_qp() and shim_qp_step(). */
	uint64_t finished = __atomic_load_n(&f->finished, __ATOMIC_ACQUIRE);

	if (f->accepted + n - finished >= f->depth)
		return NULL;
	return shim_find_rec(f, f->tail + n);
}

/**
 * shim_queue_inline - a record brings its data with it
 * @rec: the record, without data so far
 */
void shim_queue_inline(struct shim_rec *rec)
{
	rec->wr.send_flags |= IBV_SEND_INLINE;
	rec->wr.num_sge = 0;
	rec->len = 0;
	rec->sge[0] = (struct ibv_sge) {
		.addr = (uintptr_t)&rec->sge[1],
	};
}

/**
 * shim_queue_inline_add - add to the data of a record
 * @f: the flow
 * @rec: the record
 * @data: bytes
 * @len: how many
 *
 * Return: 0, or EINVAL if they are too many.
 */
int shim_queue_inline_add(const struct shim_qp *f, struct shim_rec *rec,
			  const void *data, size_t len)
{
	if (len > f->max_inline - rec->len)
		return EINVAL;
	if (!len)
		return 0;
	memcpy((char *)&rec->sge[1] + rec->len, data, len);
	rec->len += len;
	rec->sge[0].length = rec->len;
	rec->wr.num_sge = 1;
	return 0;
}

/**
 * shim_queue_copy - copy a work request of the program
 * @f: the flow
 * @rec: where to
 * @wr: the work request
 *
 * Return: 0; EINVAL for what no provider would take; EOPNOTSUPP for an opcode that
 * is not known here.
 */
int shim_queue_copy(struct shim_qp *f, struct shim_rec *rec,
		    const struct ibv_send_wr *wr)
{
	uint64_t len = 0;
	int err = 0;
	int i;

	if (!riso_wr_is_user(wr->opcode))
		return EOPNOTSUPP;
	rec->wr = *wr;
	rec->wr.next = NULL;
	rec->wr.sg_list = rec->sge;
	rec->refused = false;
	rec->len = 0;
	if (!riso_wr_has_data(wr->opcode)) {
		rec->wr.num_sge = 0;
		return 0;
	}
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > f->max_sge)
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (len > RISO_MESSAGE_MAX)
		return EINVAL;
	rec->len = len;
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		if (wr->num_sge)
			memcpy(rec->sge, wr->sg_list,
			       wr->num_sge * sizeof(*rec->sge));
		return 0;
	}
	shim_queue_inline(rec);
	for (i = 0; i < wr->num_sge && !err; i++)
		err = shim_queue_inline_add(f, rec,
					    (void *)(uintptr_t)wr->sg_list[i].addr,
					    wr->sg_list[i].length);
	return err;
}

/**
 * shim_add_staged - take what was staged into the queue
 * @f: the flow; its member is locked
 * @num: how many records were staged
 * @now: time
 */
void shim_add_staged(struct shim_qp *f, uint32_t num, uint64_t now)
{
	struct shim_member *m = f->ctx->m;
	struct shim_rec *rec;
	uint64_t pos;

	if (!num)
		return;
	if (!shim_queue_len(f)) {
		TAILQ_INSERT_TAIL(&m->busy, f, busy);
		m->num_busy++;
		shim_line_join(f);
		shim_qp_step(f, SHIM_ON_HOLD);
		if (!f->cq->unseen)
			shim_cq_set_unseen(f->cq, 1);
	}
	__atomic_store_n(&m->held, m->held + num, __ATOMIC_RELAXED);
	f->tail += num;
	for (pos = f->tail - num; pos != f->tail; pos++) {
		rec = shim_find_rec(f, pos);
		rec->seq = f->accepted++;
		rec->queued_ns = now;
		rec->cost = shim_sum_cost(f, rec);
		if (f->sig_all)
			rec->wr.send_flags |= IBV_SEND_SIGNALED;
		shim_add_cost(f, shim_get_dir(rec), rec->cost);
	}
}

/**
 * shim_set_idle - note that a flow holds nothing any more
 * @f: the flow; its member is locked
 */
void shim_set_idle(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;

	TAILQ_REMOVE(&m->busy, f, busy);
	m->num_busy--;
	shim_line_leave(f);
	shim_qp_step(f, SHIM_ON_EMPTY);
	shim_qp_pass(f);
}

/**
 * shim_unhold_rec - stop counting a record among those that are held
 * @f: the flow; its member is locked
 * @rec: the record
 */
void shim_unhold_rec(struct shim_qp *f, struct shim_rec *rec)
{
	struct shim_member *m = f->ctx->m;

	shim_add_cost(f, shim_get_dir(rec), -(int64_t)rec->cost);
	rec->cost = 0;
	__atomic_store_n(&m->held, m->held - 1, __ATOMIC_RELAXED);
}

/**
 * shim_pop_head - drop the record at the head
 * @f: a flow that holds one; its member is locked
 */
void shim_pop_head(struct shim_qp *f)
{
	struct shim_rec *rec = shim_find_rec(f, f->sq.head);

	shim_forget_paid(f, rec);
	shim_unhold_rec(f, rec);
	f->sq.head++;
	memset(&f->sq.cur, 0, sizeof(f->sq.cur));
	shim_qp_set_parts(f, 0, f->sq.silent);
	if (!shim_queue_len(f))
		shim_set_idle(f);
}

/**
 * shim_truncate_queue - take back all records from a position on
 * @f: the flow; its member is locked
 * @pos: the position; nothing behind it was posted
 */
void shim_truncate_queue(struct shim_qp *f, uint64_t pos)
{
	if (pos == f->tail)
		return;
	while (f->tail != pos) {
		shim_unhold_rec(f, shim_find_rec(f, --f->tail));
		f->accepted--;
	}
	if (!shim_queue_len(f))
		shim_set_idle(f);
}

/**
 * shim_queue_drop - forget all that is held
 * @f: a flow that is being reset or destroyed
 */
void shim_queue_drop(struct shim_qp *f)
{
	while (shim_queue_len(f))
		shim_pop_head(f);
}

/**
 * shim_set_flush - note that the queue pair is in error
 * @f: the flow; its member is locked
 *
 * What it holds needs no grant from now on.
 */
void shim_set_flush(struct shim_qp *f)
{
	f->flush = true;
	if (shim_queue_len(f))
		shim_line_jump(f);
}
