// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_post_send() and ibv_bind_mw() of the program.
 *
 * Work requests of a governed flow become records. Those of a flow that passes go straight
 * to the provider, as do those of queue pairs that the shim does not know.
 *
 * Locks: posting takes shim_member.lock. Where the queue pair has ibv_wr_* functions it
 * takes shim_build.lock before that, so nobody is between ibv_wr_start() and
 * ibv_wr_complete(). A flow that passes is posted to without a lock.
 *
 * Everything here runs in threads of the program.
 */
#include <errno.h>
#include <stddef.h>

#include "class.h"
#include "ctx.h"
#include "guard.h"
#include "helper.h"
#include "passed.h"
#include "pay.h"
#include "poller.h"
#include "post.h"
#include "qp.h"
#include "record.h"
#include "send.h"

/* Work requests that go straight to the provider with a completion that is ours to ask for */
enum { DIRECT_BATCH = 32 };

/* The one of a chain that is @num behind its first */
static struct ibv_send_wr *wr_behind(struct ibv_send_wr *first, size_t num)
{
	while (num--)
		first = first->next;
	return first;
}

/*
 * Queue pairs of class latency: each work request is asked a completion for, in copies,
 * as the program may not see its own changed.
 */
static int post_all_signaled(struct shim_qp *f, struct ibv_send_wr *wr,
			     struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr copy[DIRECT_BATCH];
	struct ibv_send_wr *bad, *first;
	int err, n, i;

	while (wr) {
		first = wr;
		for (n = 0; n < DIRECT_BATCH && wr; n++, wr = wr->next) {
			copy[n] = *wr;
			copy[n].next = &copy[n + 1];
			copy[n].send_flags |= IBV_SEND_SIGNALED;
		}
		copy[n - 1].next = NULL;
		bad = NULL;
		err = f->ctx->ops.post_send(f->qp, copy, &bad);
		if (err) {
			/* One that names none, as rxe may, has taken none. */
			for (i = n - 1; i && bad != &copy[i]; i--)
				;
			*bad_wr = wr_behind(first, i);
			return err;
		}
	}
	return 0;
}

/* An opcode that is unknown here cannot wait. */
static int post_unknown(struct shim_qp *f, const struct ibv_send_wr *wr)
{
	struct ibv_send_wr copy = *wr;
	struct ibv_send_wr *bad;

	if (shim_queue_len(f))
		return EINVAL;
	copy.next = NULL;
	if (f->sig_all)
		copy.send_flags |= IBV_SEND_SIGNALED;
	return f->ctx->ops.post_send(f->qp, &copy, &bad);
}

/**
 * shim_queue_post - what the program's post_send does
 * @f: the flow; its member is locked
 * @wr: first of a chain
 * @bad_wr: the first that was not taken, if any
 *
 * Return: 0 or an error.
 */
static int shim_queue_post(struct shim_qp *f, struct ibv_send_wr *wr,
			   struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr *first = wr;
	struct shim_rec *rec;
	uint64_t before;
	uint32_t num = 0;
	int err = 0;
	int ret;

	for (;;) {
		shim_queue_rewind(f);
		for (; wr; wr = wr->next) {
			rec = shim_queue_stage(f, num);
			err = rec ? shim_queue_copy(f, rec, wr) : ENOMEM;
			if (err)
				break;
			num++;
		}
		before = f->accepted;
		ret = shim_queue_publish(f, num, false);
		if (ret) {
			for (; before != f->accepted; before++)
				first = first->next;
			*bad_wr = first;
			return ret;
		}
		if (err == EOPNOTSUPP)
			err = post_unknown(f, wr);
		if (err) {
			*bad_wr = wr;
			return err;
		}
		if (!wr || !wr->next)
			return 0;
		wr = wr->next;
		first = wr;
		num = 0;
	}
}

/**
 * shim_queue_bind - what the program's bind_mw does
 * @f: the flow; its member is locked
 * @mw: the memory window
 * @bind: how
 *
 * It changes @mw at once, so it cannot wait: what is held goes out before it.
 *
 * Return: 0 or an error.
 */
static int shim_queue_bind(struct shim_qp *f, struct ibv_mw *mw,
			   struct ibv_mw_bind *bind)
{
	struct ibv_mw_bind copy = *bind;
	struct shim_rec *rec;
	struct ibv_send_wr wr;
	struct shim_used used;
	struct shim_sq sq;
	struct shim_piece p;
	int err;

	shim_urge_flow(f);
	rec = shim_queue_stage(f, 0);
	if (shim_queue_len(f) || !rec)
		return ENOMEM;
	*rec = (struct shim_rec) {
		.wr = {
			.wr_id = bind->wr_id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = bind->send_flags |
				      (f->sig_all ? IBV_SEND_SIGNALED : 0),
		},
		.seq = f->accepted,
	};
	p = (struct shim_piece) { .rec = rec, .last = true };
	shim_keep_spare(f);
	if (!shim_has_room(f, &p, true))
		return ENOMEM;
	used = f->cq->used;
	sq = f->sq;
	shim_make_piece(f, &p, true, &wr, f->sge);
	f->sq.head = sq.head;
	copy.wr_id = wr.wr_id;
	copy.send_flags = wr.send_flags;
	err = f->ctx->ops.bind_mw(f->qp, mw, &copy);
	if (err) {
		f->sq = sq;
		f->cq->used = used;
		return err;
	}
	shim_count_posted(f, sq.slot);
	f->accepted++;
	return 0;
}

/* Nobody is between ibv_wr_start() and ibv_wr_complete() then. */
static void lock_to_post(struct shim_qp *f)
{
	if (f->ex)
		shim_lock(&f->build.lock);
	shim_lock(&f->ctx->m->lock);
}

static void unlock_posted(struct shim_qp *f)
{
	shim_unlock_and_drive(f->ctx->m);
	if (f->ex)
		shim_unlock(&f->build.lock);
}

/* What a chain costs that goes straight, by direction */
static void sum_chain(const struct shim_qp *f, const struct ibv_send_wr *wr, uint64_t *cost)
{
	uint64_t len;
	int i;

	for (; wr; wr = wr->next) {
		len = 0;
		for (i = 0; i < wr->num_sge && riso_wr_has_data(wr->opcode); i++)
			len += wr->sg_list[i].length;
		cost[shim_wr_dir(wr->opcode)] += shim_qp_price(f, len);
	}
}

/*
 * What has gone straight is counted, for the kernel to see who uses the device. Once the provider
 * has the work requests they may be complete, and another thread may have freed them.
 */
static int post_direct(struct shim_qp *f, struct ibv_send_wr *wr,
		       struct ibv_send_wr **bad_wr)
{
	uint64_t cost[RISO_USER_DIRS] = { 0 };
	int err, dir;

	if (shim_qp_counts(f))
		sum_chain(f, wr, cost);
	err = f->sig_all ? post_all_signaled(f, wr, bad_wr) :
			   f->ctx->ops.post_send(f->qp, wr, bad_wr);
	for (dir = 0; dir < RISO_USER_DIRS && !err; dir++)
		if (cost[dir])
			shim_qp_count(f, dir, cost[dir]);
	return err;
}

/* All but the short way of shim_post_send(). */
static __attribute__((noinline)) int post_governed(struct shim_qp *f,
						   struct ibv_send_wr *wr,
						   struct ibv_send_wr **bad_wr)
{
	int err;

	if (!shim_is_in_call())
		shim_qp_refresh(f);
	if (shim_qp_is_direct(f))
		return post_direct(f, wr, bad_wr);
	if (shim_is_nested()) {
		*bad_wr = wr;
		return EDEADLK;
	}
	lock_to_post(f);
	/* Its CQ may not be active any more. */
	if (shim_qp_is_direct(f))
		err = post_direct(f, wr, bad_wr);
	else
		err = shim_queue_post(f, wr, bad_wr);
	unlock_posted(f);
	return err;
}

/*
 * A flow of a paced class while all go straight. Not inline: shim_post_send() is shorter without
 * it for flows that are not counted.
 */
static __attribute__((noinline)) int post_counted(struct shim_qp *f, struct ibv_send_wr *wr,
						  struct ibv_send_wr **bad_wr)
{
	if (shim_qp_is_shut(f))
		return post_governed(f, wr, bad_wr);
	return post_direct(f, wr, bad_wr);
}

/* A queue pair that the shim does not govern */
static __attribute__((noinline)) int post_alone(struct ibv_qp *qp, struct ibv_send_wr *wr,
						struct ibv_send_wr **bad_wr)
{
	return shim_find_ctx(qp->context)->ops.post_send(qp, wr, bad_wr);
}

/**
 * shim_post_send - the program's post_send
 * @qp: the queue pair
 * @wr: first of a chain
 * @bad_wr: the first that was not taken, if any
 *
 * Programs of class latency come here, and so do all while the device is open. They only look
 * two things up.
 *
 * Return: 0 or an error.
 */
int shim_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);

	if (!f)
		return post_alone(qp, wr, bad_wr);
	if (!__builtin_expect(shim_qp_is_fresh(f) && shim_qp_is_direct(f) && !f->sig_all, 1))
		return post_governed(f, wr, bad_wr);
	if (shim_qp_counts(f))
		return post_counted(f, wr, bad_wr);
	return f->ctx->ops.post_send(qp, wr, bad_wr);
}

static int bind_direct(struct shim_qp *f, struct ibv_mw *mw,
		       const struct ibv_mw_bind *bind)
{
	struct ibv_mw_bind copy = *bind;

	if (f->sig_all)
		copy.send_flags |= IBV_SEND_SIGNALED;
	return f->ctx->ops.bind_mw(f->qp, mw, &copy);
}

/**
 * shim_bind_mw - the program's bind_mw
 * @qp: the queue pair
 * @mw: the memory window
 * @bind: how
 *
 * Return: 0 or an error.
 */
int shim_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	int err;

	if (!f)
		return shim_find_ctx(qp->context)->ops.bind_mw(qp, mw, bind);
	if (shim_qp_is_direct(f))
		return bind_direct(f, mw, bind);
	if (shim_is_nested())
		return EDEADLK;
	lock_to_post(f);
	if (shim_qp_is_direct(f))
		err = bind_direct(f, mw, bind);
	else
		err = shim_queue_bind(f, mw, bind);
	unlock_posted(f);
	return err;
}
