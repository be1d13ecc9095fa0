/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs. See qp.c.
 */
#ifndef SHIM_QP_H
#define SHIM_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <infiniband/verbs.h>
#include <linux/rdma_isolate_user.h>

#include "core/estimate.h"
#include "cq.h"
#include "post.h"
#include "registry.h"
#include "slot.h"
#include "state.h"
#include "wr.h"

struct shim_ctx;

/**
 * struct shim_qp - a flow: the traffic of a queue pair that the shim governs
 * @ctx: context of the queue pair
 * @cq: CQ of the send queue
 * @qp: the queue pair
 * @state: which way the work requests of the program take; changes only in shim_qp_step(),
 *	read without the lock
 * @classes: riso_kpage.classes when the kernel was asked for the class; read without the lock
 * @paced: its class is a paced one, so calls go straight only while the device is open; changes
 *	with @alone and @class_id, read without a lock
 * @limited: the kernel limits a path that it takes, so calls go straight only where its class is
 *	not a paced one; changes with @book, read without a lock
 * @sig_all: the program wants a completion of each work request
 * @ex: the queue pair has ibv_wr_* functions
 * @lane: what goes straight meanwhile is counted in this element of riso_upage.passed
 * @mtu: path MTU in bytes
 * @busy: entry of &shim_member.busy while something is held
 * @line: entry of what @place says
 * @place: where the flow waits while something is held
 * @in_line: number of its line, if it stands in one
 * @alone: the kernel does not govern the queue pair; changes under shim_class_lock and
 *	shim_member.lock
 * @raw: the program may post to the queue pair, or poll its CQ, without libibverbs, so the shim
 *	no longer governs it; under shim_class_lock
 * @class_wish: the class that the program asks for, whether it is allowed or not, or
 *	RISO_CLASS_BY_RULE; under shim_class_lock
 * @class_id: the class in force
 * @cut_imm: WRITEs with immediate data may be cut
 * @awaited: a completion that the program has asked for is still to come, as that of a piece of its
 *	message has come; changed by shim_cq_await()
 * @stopped: nothing may be posted, as the queue pair is being reset or destroyed
 * @flush: the queue pair is in error, so everything held goes out
 * @urge: everything held goes out, as something comes next that cannot wait
 * @depth: number of work requests that the program may have
 * @max_sge: number of elements that a work request may have
 * @max_inline: bytes of inline data that a work request may have
 * @max_rd_atomic: number of READs and atomics that the queue pair may have out
 * @accepted: number of work requests that the program has posted
 * @finished: number of work requests in @accepted whose completion the program has seen; read
 *	without the lock
 * @refusable: number of the first work request that can still be refused to its caller
 * @refusable_last: number of the last work request that can still be refused to its caller
 * @full: the piece that goes next waits for room, not for a grant
 * @book: numbers of the books that it counts in, by direction; changes with @class_id
 * @cost: cost bytes of this flow in shim_book.held, by direction
 * @refused: error of the provider for the record at the head, 0 if there is none
 * @progress_ns: when a piece was posted or paid for last, in nanoseconds of CLOCK_MONOTONIC
 * @path: how long the path is
 * @timed: a piece whose completion will tell that, if @timed_ns is not 0
 * @timed_ns: when it was posted
 * @rated_ns: when the present sample of @own_rate began
 * @rated_posted: cost bytes that the process had posted then
 * @own_rate: rate at which the process posts, cost bytes per second, 0 before it is known
 * @path_bytes: cost bytes that the path holds, as far as known
 * @sq: how far the flow has come
 * @tail: position behind the last record
 * @stride: bytes of a record
 * @recs: ring of @depth records
 * @sge: room for the elements of a batch
 * @slots: what the queue pair has posted
 * @build: work requests that ibv_wr_* functions are building
 * @real: functions of the provider for ibv_wr_*, if @ex
 *
 * Without another word a member is under shim_member.lock, or never changes.
 * What calls that go straight need is in the first 64 bytes.
 */
struct shim_qp {
	struct shim_ctx *ctx;
	struct shim_cq *cq;
	struct ibv_qp *qp;
	enum shim_qp_state state;
	uint32_t classes;
	bool paced;
	bool limited;
	bool sig_all;
	bool ex;
	uint32_t lane;
	uint32_t mtu;
	TAILQ_ENTRY(shim_qp) busy;
	TAILQ_ENTRY(shim_qp) line;
	enum shim_place place;
	uint32_t in_line;
	bool alone;
	bool raw;
	uint32_t class_wish;
	uint32_t class_id;
	bool cut_imm;
	bool awaited;
	bool stopped;
	bool flush;
	bool urge;
	uint32_t depth;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t max_rd_atomic;
	uint64_t accepted;
	uint64_t finished;
	uint64_t refusable;
	uint64_t refusable_last;
	bool full;
	uint32_t book[RISO_USER_DIRS];
	uint64_t cost[RISO_USER_DIRS];
	int refused;
	uint64_t progress_ns;
	struct riso_path path;
	const struct shim_slot *timed;
	uint64_t timed_ns;
	uint64_t rated_ns;
	uint64_t rated_posted;
	uint64_t own_rate;
	uint64_t path_bytes;
	struct shim_sq sq;
	uint64_t tail;
	uint32_t stride;
	void *recs;
	struct ibv_sge *sge;
	struct shim_slots *slots;
	struct shim_build build;
	struct ibv_qp_ex real;
};

typedef struct ibv_qp *(*shim_create_qp_fn)(void *arg, struct ibv_qp_init_attr *attr);

struct ibv_qp *shim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *shim_create_qp_with(struct shim_ctx *ctx, shim_create_qp_fn fn, void *arg,
				   struct ibv_qp_init_attr_ex *attr_ex, bool known);
struct ibv_qp *shim_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);
int shim_release_qp(struct ibv_qp *qp);
int shim_release_cq(struct ibv_cq *cq);
void shim_del_flow(struct shim_qp *f);
void shim_forget_flow(struct shim_qp *f, uint32_t qp_num);
int shim_destroy_qp(struct ibv_qp *qp);
int shim_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int shim_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);

/**
 * shim_qp_set_parts - set shim_sq.parts and shim_sq.silent, and count for the CQ what follows
 * @f: the flow; its member is locked
 * @parts: the new shim_sq.parts
 * @silent: the new shim_sq.silent
 */
static inline void shim_qp_set_parts(struct shim_qp *f, uint32_t parts,
				     uint32_t silent)
{
	struct shim_used *used = &f->cq->used;
	struct shim_sq *sq = &f->sq;

	used->open += (parts > 0) - (sq->parts > 0);
	used->bare += (parts && silent >= parts) - (sq->parts && sq->silent >= sq->parts);
	sq->parts = parts;
	sq->silent = silent;
}

/**
 * shim_qp_is_direct - tell whether calls of the program go straight to the provider
 * @f: the flow
 *
 * Without a lock. Pairs with the release in shim_qp_step().
 *
 * Return: true if they do.
 */
static inline bool shim_qp_is_direct(const struct shim_qp *f)
{
	return shim_state_is_direct(__atomic_load_n(&f->state, __ATOMIC_ACQUIRE));
}

/**
 * shim_qp_holds - tell whether a flow holds something
 * @f: the flow
 *
 * Without a lock. Nothing that depends on the answer is read.
 *
 * Return: true if it does.
 */
static inline bool shim_qp_holds(const struct shim_qp *f)
{
	return shim_state_holds(__atomic_load_n(&f->state, __ATOMIC_RELAXED));
}

/**
 * shim_count_slots - count the slots that are in use
 * @f: the flow; its member is locked
 *
 * Return: number of slots.
 */
static inline uint64_t shim_count_slots(const struct shim_qp *f)
{
	return f->sq.slot - f->slots->tail;
}

#endif /* SHIM_QP_H */
