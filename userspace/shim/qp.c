// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: what the program creates, changes, queries and destroys.
 *
 * Owns what is in the map of flows, which are the queue pairs that the shim governs, and in
 * the map of those that it does not govern and has told the kernel about. The shim governs RC queue
 * pairs of a device that takes part. All others go to the provider as they are, such as
 * those that a vendor's library made. The shim tells the kernel why it does not govern an
 * RC queue pair, as soon as it sees one. In sizes, flags and queries the program finds what
 * it asked for.
 *
 * Locks: everybody reads the maps without a lock. A flow enters the map before the program
 * knows its queue pair. It leaves the map under shim_class_lock, before the provider
 * destroys the queue pair. shim_member.lock protects the flow itself. The shim holds no
 * lock while it calls the provider from here.
 *
 * Everything here runs in threads of the program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/rdma_isolate.h>

#include "class.h"
#include "comp.h"
#include "cq.h"
#include "ctx.h"
#include "drain.h"
#include "guard.h"
#include "helper.h"
#include "member.h"
#include "post.h"
#include "qp.h"
#include "record.h"
#include "shim.h"
#include "slot.h"
#include "soft.h"
#include "wr.h"

/* What ibv_wr_* functions there are here: all up to ibv_wr_send_tso() */
enum { KNOWN_SEND_OPS = 2 * IBV_QP_EX_WITH_TSO - 1 };

/*
 * What a queue pair is created with, and what the program asked for; builders, only if it
 * asked for them. Without, a provider's queue pair may not even have the place for them.
 */
struct plan {
	struct shim_qp *f;
	struct ibv_qp_cap cap;
	int sq_sig_all;
	uint32_t extra;
	bool builders;
};

/* Why a queue pair is not governed: what the kernel is told, and what stderr says */
struct refusal {
	enum riso_reason reason;
	const char *text;
};

static const struct refusal plain_ctx = {
	RISO_REASON_SHIM_LIMIT, "nothing of this device is governed"
};
static const struct refusal foreign_cq = {
	RISO_REASON_SHIM_LIMIT, "its completion queue was not made through the shim"
};
static const struct refusal raw_cq = {
	RISO_REASON_SHIM_LIMIT, "the program reads its completion queue without libibverbs"
};
static const struct refusal no_send_queue = {
	RISO_REASON_SHIM_LIMIT, "it has no send queue"
};
static const struct refusal foreign_qp = {
	RISO_REASON_SHIM_LIMIT, "it was not made through the shim"
};
static const struct refusal no_cq_room = {
	RISO_REASON_NO_CQ_ROOM, "its completion queue cannot be made larger"
};
static const struct refusal unknown_opcode = {
	RISO_REASON_UNKNOWN_OPCODE, "it has operations that the shim does not know"
};
static const struct refusal no_memory = { RISO_REASON_MEMORY, "there is no memory" };

/* Give the program its own attributes again. */
static void shim_restore_attr(const struct plan *p, struct ibv_qp_init_attr *attr)
{
	attr->cap = p->cap;
	attr->sq_sig_all = p->sq_sig_all;
}

static void free_flow(struct shim_qp *f)
{
	shim_queue_free(f);
	pthread_mutex_destroy(&f->build.lock);
	free(f);
}

/* Get what can be got before there is a queue pair; why not, if that fails. */
static const struct refusal *prepare(struct shim_ctx *ctx, struct ibv_qp_init_attr *attr,
				     struct plan *p)
{
	struct shim_qp *f;
	struct shim_cq *c;

	p->cap = attr->cap;
	p->sq_sig_all = attr->sq_sig_all;
	c = attr->send_cq ? shim_map_find(&shim_cqs, attr->send_cq) : NULL;
	if (ctx->plain)
		return &plain_ctx;
	if (!attr->cap.max_send_wr)
		return &no_send_queue;
	if (!c || c->ctx != ctx)
		return &foreign_cq;
	if (shim_cq_is_raw(c))
		return &raw_cq;
	f = calloc(1, sizeof(*f));
	if (!f)
		return &no_memory;
	pthread_mutex_init(&f->build.lock, NULL);
	f->ctx = ctx;
	f->cq = c;
	f->sig_all = attr->sq_sig_all;
	f->class_wish = shim_get_default_wish();
	f->class_id = RISO_CLASS_BANDWIDTH;
	f->book[RISO_USER_RX] = RISO_USER_RX;
	if (!shim_reserve_entries(c)) {
		free_flow(f);
		return &no_cq_room;
	}
	p->f = f;
	p->extra = shim_add_capped(p->cap.max_send_wr, SHIM_SLOTS, ctx->max_qp_wr) -
		   p->cap.max_send_wr;
	attr->cap.max_send_wr += p->extra;
	attr->sq_sig_all = 0;
	return NULL;
}

/* There is no queue pair: undo prepare(). */
static void shim_discard_plan(struct plan *p)
{
	shim_unreserve_entries(p->f->cq);
	free_flow(p->f);
	p->f = NULL;
}

/* The queue pair is there: make it a flow; false if that fails. */
static bool adopt(struct plan *p, struct ibv_qp *qp, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_ex *ex = p->builders ? shim_real.qp_to_qp_ex(qp) : NULL;
	struct shim_qp *f = p->f;
	uint32_t real = attr->cap.max_send_wr;
	struct shim_member *m = f->ctx->m;
	int err;

	if (real < p->cap.max_send_wr + p->extra)
		real = p->cap.max_send_wr + p->extra;
	f->qp = qp;
	f->depth = real - p->extra;
	f->max_sge = attr->cap.max_send_sge;
	f->max_inline = attr->cap.max_inline_data;
	f->path.rtt_min = RISO_NEVER;
	f->lane = __atomic_fetch_add(&m->lanes, 1, __ATOMIC_RELAXED) % RISO_USER_LANES;
	f->ex = ex && ex->wr_start;
	if (shim_queue_alloc(f, real))
		return false;
	shim_lock(&shim_size_lock);
	err = shim_comp_attach(f);
	shim_unlock(&shim_size_lock);
	if (err)
		return false;
	if (shim_map_add(&shim_qps, qp, f)) {
		shim_lock(&m->lock);
		shim_comp_detach(f);
		shim_unlock(&m->lock);
		return false;
	}
	attr->cap.max_send_wr = f->depth;
	attr->sq_sig_all = p->sq_sig_all;
	shim_ask_refused(m);
	shim_qp_ask(f);
	if (f->ex)
		shim_wr_swap(f, ex);
	return true;
}

/* A queue pair goes straight to the provider: tell the kernel why. */
static void leave_alone(struct shim_ctx *ctx, struct ibv_qp *qp, const struct refusal *why)
{
	struct shim_member *m = ctx->m;

	shim_debug("%s: QP %u takes no part: %s", m->name, qp->qp_num, why->text);
	shim_map_del(&shim_told, qp);
	shim_map_add(&shim_told, qp, ctx);
	shim_lock(&shim_class_lock);
	shim_member_report(m, qp->qp_num, why->reason);
	shim_unlock(&shim_class_lock);
}

static struct ibv_qp *create_alone(struct shim_ctx *ctx, shim_create_qp_fn fn, void *arg,
				   struct ibv_qp_init_attr *attr, const struct refusal *why)
{
	struct ibv_qp *qp = fn(arg, attr);

	if (qp)
		leave_alone(ctx, qp, why);
	return qp;
}

/* Create a queue pair with @fn, governed if that is possible. */
static struct ibv_qp *create(struct shim_ctx *ctx, shim_create_qp_fn fn, void *arg,
			     struct ibv_qp_init_attr *attr, bool builders)
{
	struct plan p = { .builders = builders };
	const struct refusal *why;
	struct ibv_qp *qp;

	if (!ctx || attr->qp_type != IBV_QPT_RC)
		return fn(arg, attr);
	why = prepare(ctx, attr, &p);
	if (why)
		return create_alone(ctx, fn, arg, attr, why);
	qp = fn(arg, attr);
	if (!qp && p.extra) {
		attr->cap = p.cap;
		p.extra = 0;
		qp = fn(arg, attr);
	}
	if (!qp) {
		shim_restore_attr(&p, attr);
		shim_discard_plan(&p);
		return NULL;
	}
	if (adopt(&p, qp, attr))
		return qp;
	shim_real.destroy_qp(qp);
	shim_restore_attr(&p, attr);
	shim_discard_plan(&p);
	return create_alone(ctx, fn, arg, attr, &no_memory);
}

static struct ibv_qp *create_plain(void *arg, struct ibv_qp_init_attr *attr)
{
	return shim_real.create_qp(arg, attr);
}

/**
 * shim_create_qp - ibv_create_qp()
 * @pd: protection domain of the queue pair
 * @attr: what the program asks for, and what it gets
 *
 * Return: the queue pair, or NULL and errno.
 */
struct ibv_qp *shim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return create(shim_find_ctx(pd->context), create_plain, pd, attr, false);
}

/**
 * shim_create_qp_with - create a queue pair from extended attributes
 * @ctx: what is known of the device, or NULL
 * @fn: how the provider creates it
 * @arg: for @fn
 * @attr_ex: what the program asks for
 * @known: it posts nothing but what @attr_ex says
 *
 * The extended attributes begin with the plain ones.
 *
 * Return: the queue pair, or NULL.
 */
struct ibv_qp *shim_create_qp_with(struct shim_ctx *ctx, shim_create_qp_fn fn, void *arg,
				   struct ibv_qp_init_attr_ex *attr_ex, bool known)
{
	struct ibv_qp_init_attr *attr = (struct ibv_qp_init_attr *)attr_ex;
	bool builders = attr_ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	/* What is newer, such as an atomic write, cannot be told to post_send. */
	if (builders && (attr_ex->send_ops_flags & ~(uint64_t)KNOWN_SEND_OPS))
		known = false;
	if (ctx && attr->qp_type == IBV_QPT_RC && !known)
		return create_alone(ctx, fn, arg, attr, &unknown_opcode);
	return create(ctx, fn, arg, attr, builders);
}

static struct ibv_qp *create_extended(void *arg, struct ibv_qp_init_attr *attr)
{
	struct shim_ctx *ctx = arg;

	return ctx->create_qp_ex(ctx->context, (struct ibv_qp_init_attr_ex *)attr);
}

/**
 * shim_create_qp_ex - the program's create_qp_ex
 * @context: an open device
 * @attr: what the program asks for
 *
 * Return: the queue pair, or NULL.
 */
struct ibv_qp *shim_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr)
{
	struct shim_ctx *ctx = shim_find_ctx(context);

	return shim_create_qp_with(ctx, create_extended, ctx, attr, true);
}

/*
 * Govern a flow no longer; shim_class_lock is held. What it holds goes out, and what the provider
 * has no room for is waited for: the program would overtake it. False if it still has none.
 */
static bool release_flow(struct shim_qp *f)
{
	f->raw = true;
	shim_ask_and_drive(f);
	shim_queue_drain(f, false);
	return !shim_qp_holds(f);
}

/**
 * shim_release_qp - the program has got the memory of a send queue, and may post there
 * @qp: the queue pair
 *
 * Return: 0, or EBUSY if something is held that the provider had no room for in a second.
 */
int shim_release_qp(struct ibv_qp *qp)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	int err = 0;

	if (!f)
		return 0;
	shim_lock(&shim_class_lock);
	if ((!f->raw || shim_qp_holds(f)) && !release_flow(f))
		err = EBUSY;
	shim_unlock(&shim_class_lock);
	return err;
}

static bool completes_in(void *value, void *arg)
{
	struct shim_qp *f = value;

	return f->cq == arg && !f->raw;
}

/**
 * shim_release_cq - the program has got the memory of a CQ, and may poll there
 * @cq: the CQ
 *
 * It would see the completions of chunks. So nothing that completes there is governed, also
 * if it comes later.
 *
 * Return: 0, or EBUSY as shim_release_qp() for one of the queue pairs, or if something that was
 * governed has completions to come there.
 */
int shim_release_cq(struct ibv_cq *cq)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);
	struct shim_qp *f;
	int err = 0;

	if (!c)
		return 0;
	shim_lock(&shim_class_lock);
	__atomic_store_n(&c->raw, true, __ATOMIC_RELAXED);
	while ((f = shim_map_search(&shim_qps, completes_in, c)))
		if (!release_flow(f))
			err = EBUSY;
	shim_unlock(&shim_class_lock);
	shim_lock(&c->ctx->m->lock);
	shim_cq_update(c);
	if (c->active)
		err = EBUSY;
	shim_unlock(&c->ctx->m->lock);
	return err;
}

/* Its queue pair is about to go or to be reset: post no more until it is known. */
static void set_stopped(struct shim_qp *f, bool stopped)
{
	struct shim_member *m = f->ctx->m;

	shim_lock(&m->lock);
	f->stopped = stopped;
	if (!stopped)
		shim_queue_drive(m);
	shim_unlock_and_drive(m);
}

/**
 * shim_del_flow - take a flow out of the map
 * @f: the flow
 *
 * Nobody asks for its class then.
 */
void shim_del_flow(struct shim_qp *f)
{
	shim_lock(&shim_class_lock);
	shim_map_del(&shim_qps, f->qp);
	shim_unlock(&shim_class_lock);
}

/**
 * shim_forget_flow - forget a flow whose queue pair is gone
 * @f: a flow that is not in the map
 * @qp_num: the number that its queue pair had
 */
void shim_forget_flow(struct shim_qp *f, uint32_t qp_num)
{
	struct shim_member *m = f->ctx->m;

	shim_lock(&m->lock);
	shim_queue_drop(f);
	shim_soft_purge(f->cq, qp_num, f);
	shim_comp_detach(f);
	shim_member_publish(m);
	shim_unlock_and_drive(m);
	free_flow(f);
}

/* Take what is gone with a queue pair out of the soft ring, as providers do. */
static void purge(struct ibv_cq *cq, uint32_t qp_num, struct shim_qp *f)
{
	struct shim_cq *c = cq ? shim_map_find(&shim_cqs, cq) : NULL;

	if (!c)
		return;
	shim_lock(&c->ctx->m->lock);
	shim_soft_purge(c, qp_num, f);
	shim_unlock(&c->ctx->m->lock);
}

/**
 * shim_destroy_qp - ibv_destroy_qp()
 * @qp: the queue pair
 *
 * Return: 0 or an error.
 */
int shim_destroy_qp(struct ibv_qp *qp)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	struct ibv_cq *send_cq = qp->send_cq;
	struct ibv_cq *recv_cq = qp->recv_cq;
	uint32_t qp_num = qp->qp_num;
	int err;

	if (f) {
		shim_queue_drain(f, true);
		set_stopped(f, true);
		/* Another one may get its address as soon as it is gone. */
		shim_del_flow(f);
	}
	err = shim_real.destroy_qp(qp);
	if (err) {
		if (f) {
			shim_map_add(&shim_qps, qp, f);
			set_stopped(f, false);
		}
		return err;
	}
	purge(recv_cq, qp_num, f);
	if (!f) {
		shim_map_del(&shim_told, qp);
		purge(send_cq, qp_num, NULL);
		return 0;
	}
	/* The CQ may go as soon as it has no flow. */
	shim_unreserve_entries(f->cq);
	shim_forget_flow(f, qp_num);
	return 0;
}

/* Reset a queue pair. What was posted before is forgotten, and may complete nevertheless. */
static int shim_reset_qp(struct shim_qp *f, struct ibv_qp_attr *attr, int mask)
{
	struct shim_slots *s = shim_slots_alloc(f, f->slots->num);
	struct shim_member *m = f->ctx->m;
	int err;

	if (!s)
		return ENOMEM;
	shim_queue_drain(f, true);
	set_stopped(f, true);
	err = shim_real.modify_qp(f->qp, attr, mask);
	if (!err)
		purge(f->qp->recv_cq, f->qp->qp_num, f);
	shim_lock(&m->lock);
	f->stopped = false;
	if (!err) {
		shim_queue_drop(f);
		shim_soft_purge(f->cq, f->qp->qp_num, f);
		shim_comp_abandon(f->cq, f->slots);
		f->slots = s;
		memset(&f->sq, 0, sizeof(f->sq));
		f->timed_ns = 0;
		f->tail = 0;
		f->flush = false;
		/* Pairs with the acquire in shim_queue_stage(). */
		__atomic_store_n(&f->finished, f->accepted, __ATOMIC_RELEASE);
		if (f->state == SHIM_QP_LEAVING)
			shim_qp_step(f, SHIM_ON_CLEAR);
		shim_qp_pass(f);
		shim_cq_update(f->cq);
	}
	shim_queue_drive(m);
	shim_unlock_and_drive(m);
	if (err)
		shim_slots_free(s);
	return err;
}

/* Also of a queue pair whose creation nobody has seen, as that by a vendor's library */
static int modify_alone(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct shim_ctx *ctx = shim_find_ctx(qp->context);
	int err;

	err = shim_real.modify_qp(qp, attr, mask);
	if (!err && ctx && qp->qp_type == IBV_QPT_RC && (mask & IBV_QP_STATE) &&
	    attr->qp_state == IBV_QPS_RTS && !shim_map_find(&shim_told, qp))
		leave_alone(ctx, qp, &foreign_qp);
	return err;
}

/**
 * shim_modify_qp - ibv_modify_qp()
 * @qp: the queue pair
 * @attr: the new attributes
 * @mask: which of them are to be set
 *
 * Return: 0 or an error.
 */
int shim_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	struct shim_member *m;
	int err;

	if (!f)
		return modify_alone(qp, attr, mask);
	m = f->ctx->m;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		return shim_reset_qp(f, attr, mask);
	/* Without the shim the device would have what was posted before. */
	if ((mask & IBV_QP_STATE) &&
	    (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_SQD))
		shim_queue_drain(f, false);
	err = shim_real.modify_qp(qp, attr, mask);
	if (err)
		return err;
	shim_lock(&m->lock);
	if (mask & IBV_QP_PATH_MTU)
		f->mtu = 128U << attr->path_mtu;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		f->max_rd_atomic = attr->max_rd_atomic;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR) {
		shim_set_flush(f);
		shim_queue_drive(m);
	}
	shim_unlock_and_drive(m);
	return 0;
}

/**
 * shim_query_qp - ibv_query_qp()
 * @qp: the queue pair
 * @attr: filled in with the attributes
 * @mask: which of them are asked for
 * @init_attr: filled in with what the queue pair was created with
 *
 * Return: 0 or an error.
 */
int shim_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	int err;

	err = shim_real.query_qp(qp, attr, mask, init_attr);
	if (err || !f)
		return err;
	attr->cap.max_send_wr = f->depth;
	init_attr->cap.max_send_wr = f->depth;
	init_attr->sq_sig_all = f->sig_all;
	return 0;
}
