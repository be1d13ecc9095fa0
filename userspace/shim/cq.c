// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CQs: what the program creates, resizes and destroys.
 *
 * Owns what is in the map of CQs, and the entries that a CQ has on top of those that the
 * program asked for. Completions that the program does not see take these entries. The
 * program is told the size that it asked for.
 *
 * Locks: everybody reads the map without a lock. shim_size_lock protects the sizes, and
 * the reservations of flows. shim_cq.resize is held while the provider resizes a CQ for the
 * program. The provider may wait for a session then, so shim_size_lock is released. A new
 * flow has its CQ resized under shim_size_lock, but only if no session is open.
 *
 * Everything here runs in threads of the program.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "cqex.h"
#include "ctx.h"
#include "guard.h"
#include "reap.h"
#include "shim.h"
#include "slot.h"
#include "soft.h"

/* What is known of the sizes of CQs; who holds it waits for no session. */
pthread_mutex_t shim_size_lock = PTHREAD_MUTEX_INITIALIZER;

enum {
	/* Entries that a CQ is made larger by, so that it seldom has to be resized. */
	CQ_EXTRA = 4 * SHIM_SLOTS,
	/* And that it is made larger by at most. */
	CQ_EXTRA_MAX = 8 * SHIM_SLOTS,
	/* What struct ibv_cq_init_attr_ex may say that it has */
	KNOWN_ATTR = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD,
};

static struct shim_cq *new_cq(struct shim_ctx *ctx, int asked)
{
	struct shim_cq *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->ctx = ctx;
	c->asked = asked;
	c->spare = SHIM_SPARE;
	LIST_INIT(&c->zombies);
	TAILQ_INIT(&c->crowd);
	TAILQ_INIT(&c->queue);
	pthread_mutex_init(&c->session, NULL);
	pthread_mutex_init(&c->resize, NULL);
	return c;
}

/**
 * shim_free_cq - free what is known of a CQ
 * @c: a CQ that is not in the map, or NULL
 */
void shim_free_cq(struct shim_cq *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->resize);
	pthread_mutex_destroy(&c->session);
	free(c->soft);
	free(c);
}

/* A new CQ may have the address of one that is gone, and whose thread is about to say so. */
static void forget_old(struct ibv_cq *cq)
{
	if (cq)
		shim_map_del(&shim_cqs, cq);
}

/* Put a CQ into the map. Without memory for that it is like a CQ that the shim does not know. */
static struct shim_cq *shim_add_cq(struct shim_ctx *ctx, struct ibv_cq *cq, int asked)
{
	struct shim_cq *c = new_cq(ctx, asked);

	if (!c)
		return NULL;
	c->cq = cq;
	if (shim_map_add(&shim_cqs, cq, c)) {
		shim_free_cq(c);
		return NULL;
	}
	return c;
}

/**
 * shim_add_capped - add to a number that the device limits
 * @asked: what the program asks for
 * @more: how many to add
 * @max: limit of the device
 *
 * Return: the sum, or @max if that is less; @asked if it is out of range itself.
 */
int shim_add_capped(int asked, int more, int max)
{
	if (asked <= 0 || asked > max)
		return asked;
	return max - asked < more ? max : asked + more;
}

/*
 * Providers round the size of a CQ up to a power of two, and keep one entry free. Take what
 * that gives for nothing, if it is neither too little nor more than CQ_EXTRA.
 */
static int extra_entries(int asked)
{
	int full = 1;

	if (asked <= 0 || asked > INT32_MAX / 2)
		return 0;
	while (full <= asked)
		full *= 2;
	full -= asked + 1;
	return full < SHIM_SLOTS || full > CQ_EXTRA ? CQ_EXTRA : full;
}

/**
 * shim_create_cq - ibv_create_cq()
 * @context: an open device
 * @cqe: entries that the program asks for
 * @cq_context: what the program gets with each event
 * @channel: channel of the events, or NULL
 * @comp_vector: which of the interrupts of the device raises the events
 *
 * Return: the CQ, or NULL and errno.
 */
struct ibv_cq *shim_create_cq(struct ibv_context *context, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct shim_ctx *ctx = shim_find_ctx(context);
	struct ibv_cq *cq;
	int real = cqe;

	if (ctx && ctx->plain)
		ctx = NULL;
	if (ctx)
		real = shim_add_capped(cqe, extra_entries(cqe), ctx->max_cqe);
	cq = shim_real.create_cq(context, real, cq_context, channel, comp_vector);
	if (!cq && real != cqe)
		cq = shim_real.create_cq(context, cqe, cq_context, channel,
					 comp_vector);
	forget_old(cq);
	if (cq && ctx)
		shim_add_cq(ctx, cq, cqe);
	return cq;
}

/* A copy; what @attr does not say it has may be behind its end. */
static struct ibv_cq_init_attr_ex copy_attr(const struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_init_attr_ex own = {};

	memcpy(&own, attr, attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? sizeof(own) :
	       offsetof(struct ibv_cq_init_attr_ex, parent_domain));
	return own;
}

/**
 * shim_create_cq_with - create an extended CQ
 * @ctx: what is known of the device, or NULL
 * @fn: how the provider creates it
 * @arg: for @fn
 * @attr: what the program asks for
 *
 * The helper polls a CQ besides the program, so it cannot be one of a single thread. The
 * program may ask by ibv_poll_cq() for what the helper has polled, so the CQ tells all that
 * an ibv_wc has. What the program asks for stays as it is, also during the call: other threads
 * may use it. What has more than the shim knows cannot be copied, so that CQ is left alone.
 *
 * Return: the CQ, or NULL.
 */
struct ibv_cq_ex *shim_create_cq_with(struct shim_ctx *ctx, shim_create_cq_fn fn, void *arg,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_init_attr_ex own;
	struct ibv_cq_ex *cq;
	struct shim_cq *c;
	uint32_t cqe;

	if (!ctx || ctx->plain || (attr->comp_mask & ~KNOWN_ATTR) ||
	    (attr->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS)) {
		cq = fn(arg, attr);
		forget_old(cq ? ibv_cq_ex_to_cq(cq) : NULL);
		return cq;
	}
	own = copy_attr(attr);
	cqe = own.cqe;
	if (own.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		own.flags &= ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	if (cqe <= INT32_MAX)
		own.cqe = shim_add_capped(cqe, extra_entries(cqe), ctx->max_cqe);
	own.wc_flags |= IBV_WC_STANDARD_FLAGS;
	cq = fn(arg, &own);
	if (!cq && own.cqe != cqe) {
		own.cqe = cqe;
		cq = fn(arg, &own);
	}
	if (!cq && own.wc_flags != attr->wc_flags) {
		own.wc_flags = attr->wc_flags;
		cq = fn(arg, &own);
	}
	if (!cq)
		return NULL;
	forget_old(ibv_cq_ex_to_cq(cq));
	c = shim_add_cq(ctx, ibv_cq_ex_to_cq(cq), cqe);
	if (c)
		shim_cqex_swap(c, cq, own.wc_flags);
	return cq;
}

static struct ibv_cq_ex *create_extended(void *arg, struct ibv_cq_init_attr_ex *attr)
{
	struct shim_ctx *ctx = arg;

	return ctx->create_cq_ex(ctx->context, attr);
}

/**
 * shim_create_cq_ex - the program's create_cq_ex
 * @context: an open device
 * @attr: what the program asks for
 *
 * Return: the CQ, or NULL.
 */
struct ibv_cq_ex *shim_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct shim_ctx *ctx = shim_find_ctx(context);

	return shim_create_cq_with(ctx, create_extended, ctx, attr);
}

/* What its flows would like, with the size locked */
static int wanted_extra(const struct shim_cq *c)
{
	return c->reserved < CQ_EXTRA_MAX ? c->reserved : CQ_EXTRA_MAX;
}

/* Its size has changed; it is locked. Who has asked for all of it has overcommitted it. */
static void update_spare(struct shim_cq *c)
{
	int spare = c->cq->cqe - c->asked;

	__atomic_store_n(&c->spare, spare < SHIM_SPARE ? SHIM_SPARE : spare,
			 __ATOMIC_RELAXED);
}

/*
 * Let the provider resize a CQ. It may wait for a session of another thread, which may wait
 * for the lock of the sizes: that is released meanwhile.
 */
static int resize_unlocked(struct shim_cq *c, int cqe)
{
	int err;

	shim_unlock(&shim_size_lock);
	err = shim_real.resize_cq(c->cq, cqe);
	shim_lock(&shim_size_lock);
	return err;
}

/* With entries for chunks on top, also of flows that come meanwhile; the sizes are locked. */
static int resize_with_extra(struct shim_cq *c, int cqe)
{
	int max = c->ctx->max_cqe;
	int extra = wanted_extra(c);
	int err = resize_unlocked(c, shim_add_capped(cqe, extra, max));
	int asked = err ? c->asked : cqe;

	while (wanted_extra(c) > extra) {
		extra = wanted_extra(c);
		if (asked + extra > c->cq->cqe)
			resize_unlocked(c, shim_add_capped(asked, extra, max));
	}
	c->asked = asked;
	update_spare(c);
	return err;
}

/**
 * shim_resize_cq - ibv_resize_cq()
 * @cq: the CQ
 * @cqe: entries that the program asks for
 *
 * The entries for chunks come on top, as far as the device goes. Near its limit the program
 * gets what it asks for all the same: its flows keep posting, so that all but SHIM_SPARE
 * entries are safe to be filled, and no other flow finds room.
 *
 * Return: 0 or an error.
 */
int shim_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);
	int err = 0;

	if (!c)
		return shim_real.resize_cq(cq, cqe);
	shim_lock(&c->resize);
	shim_lock(&shim_size_lock);
	/*
	 * Before anything has changed, and for a flow that comes meanwhile, too; what is
	 * too large is the provider's to refuse.
	 */
	if (cqe > 0 && cqe <= c->ctx->max_cqe)
		err = shim_soft_grow(c, cqe);
	if (!err)
		err = resize_with_extra(c, cqe);
	shim_unlock(&shim_size_lock);
	shim_unlock(&c->resize);
	return err;
}

/**
 * shim_destroy_cq - ibv_destroy_cq()
 * @cq: the CQ
 *
 * The provider may refuse it, and others use the CQ meanwhile. So it is in the map until it is
 * gone.
 *
 * Return: 0 or an error.
 */
int shim_destroy_cq(struct ibv_cq *cq)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);
	int err;

	/* With a queue pair it stays. */
	if (!c || c->flows)
		return shim_real.destroy_cq(cq);
	err = shim_real.destroy_cq(cq);
	if (err)
		return err;
	/* Another one may have its address by now. */
	shim_map_del_value(&shim_cqs, cq, c);
	shim_comp_bury(c);
	shim_free_cq(c);
	return 0;
}

/* Unless the provider may have to wait for a session, which may be that of this thread. */
static void try_resize(struct shim_cq *c, int cqe)
{
	if (!shim_cqex_try(c))
		return;
	shim_real.resize_cq(c->cq, cqe);
	shim_cqex_leave(c);
}

/* Is there room for the chunks of one more flow? What the CQ has is locked. */
static bool find_room(struct shim_cq *c)
{
	int want = c->asked + wanted_extra(c);

	if (want > c->cq->cqe && want <= c->ctx->max_cqe)
		try_resize(c, want);
	return c->cq->cqe - c->asked >= SHIM_SPARE;
}

/**
 * shim_reserve_entries - get entries of a CQ for the chunks of one more flow
 * @c: the CQ
 *
 * The flow may share the entries of the others. Somebody else may resize the CQ just now, and
 * wait for a session: he sees the flow when that is done, and gets entries for it.
 *
 * Return: false if there are none.
 */
bool shim_reserve_entries(struct shim_cq *c)
{
	bool ok = true;

	shim_lock(&shim_size_lock);
	c->reserved += SHIM_SLOTS;
	if (!pthread_mutex_trylock(&c->resize)) {
		ok = find_room(c);
		if (!ok)
			c->reserved -= SHIM_SLOTS;
		update_spare(c);
		pthread_mutex_unlock(&c->resize);
	}
	shim_unlock(&shim_size_lock);
	return ok;
}

/**
 * shim_unreserve_entries - the opposite of shim_reserve_entries()
 * @c: the CQ
 */
void shim_unreserve_entries(struct shim_cq *c)
{
	shim_lock(&shim_size_lock);
	c->reserved -= SHIM_SLOTS;
	shim_unlock(&shim_size_lock);
}
