// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The soft ring of a CQ: completions that wait for the program.
 *
 * Owns the ring, and whether a CQ is active: then the program's polls look into the ring, and
 * take the lock. Others find completions, and say what becomes of them.
 *
 * Locks: everything here runs under shim_member.lock, in threads of the program and in the
 * helper. It allocates no memory, except shim_soft_grow(), which ibv_create_qp() and
 * ibv_resize_cq() call under shim_size_lock. shim_soft_grow() takes shim_member.lock itself.
 */
#include <errno.h>
#include <stdlib.h>

#include "cq.h"
#include "ctx.h"
#include "guard.h"
#include "member.h"
#include "qp.h"
#include "slot.h"
#include "soft.h"

/**
 * shim_cq_update - bring shim_cq.active up to date
 * @c: the CQ
 */
void shim_cq_update(struct shim_cq *c)
{
	bool active = c->tagged || !LIST_EMPTY(&c->zombies) ||
		      c->soft_head != c->soft_tail;

	/* What the program did before was not noted. */
	if (active && !c->active) {
		shim_cq_seen(c);
		c->unknown = true;
		c->due = 0;
		c->awaits = false;
		c->hurried = false;
	}
	/* Pairs with the acquire in shim_cq_is_active(). */
	__atomic_store_n(&c->active, active, __ATOMIC_RELEASE);
}

/**
 * shim_soft_seen - note that the program has seen a completion
 * @e: the completion; the member of its flow is locked
 *
 * The program may post as many more.
 */
void shim_soft_seen(const struct shim_soft *e)
{
	/* Pairs with the acquire in shim_queue_stage(). */
	if (e->flow && e->seq >= e->flow->finished)
		__atomic_store_n(&e->flow->finished, e->seq + 1,
				 __ATOMIC_RELEASE);
}

/**
 * shim_soft_push - keep a completion for the program
 * @c: the CQ
 * @e: the completion
 *
 * Return: false if there is no room.
 */
bool shim_soft_push(struct shim_cq *c, const struct shim_soft *e)
{
	if (c->soft_tail - c->soft_head == c->soft_num)
		return false;
	c->soft[c->soft_tail++ % c->soft_num] = *e;
	shim_cq_set_calm(c, 0);
	return true;
}

/**
 * shim_soft_pop - give the program a completion that was kept
 * @c: a CQ with one
 * @e: filled in
 */
void shim_soft_pop(struct shim_cq *c, struct shim_soft *e)
{
	*e = c->soft[c->soft_head++ % c->soft_num];
	shim_soft_seen(e);
	if (c->older)
		c->older--;
	else
		shim_cq_due(c);
	if (c->soft_head == c->soft_tail) {
		c->soft_head = 0;
		c->soft_tail = 0;
	}
}

/**
 * shim_soft_grow - make room for all that the program may have in a CQ
 * @c: the CQ, of which nothing but the size is locked
 * @asked: entries that the program asks for
 *
 * The ring becomes no smaller, so what it holds has room.
 *
 * Return: 0; or ENOMEM, and nothing has changed.
 */
int shim_soft_grow(struct shim_cq *c, int asked)
{
	uint32_t num = asked + SHIM_SLOTS;
	struct shim_soft *ring, *old;
	uint32_t n = 0;

	if (num <= c->soft_num)
		return 0;
	ring = calloc(num, sizeof(*ring));
	if (!ring)
		return ENOMEM;
	shim_lock(&c->ctx->m->lock);
	while (c->soft_head != c->soft_tail)
		ring[n++] = c->soft[c->soft_head++ % c->soft_num];
	old = c->soft;
	c->soft = ring;
	c->soft_num = num;
	c->soft_head = 0;
	c->soft_tail = n;
	shim_unlock(&c->ctx->m->lock);
	free(old);
	return 0;
}

/**
 * shim_cq_await - note whether a completion is to come that the program has asked for
 * @f: the flow of which a piece has completed, or which is gone
 * @awaited: it is, as other pieces of its message are to complete
 */
void shim_cq_await(struct shim_qp *f, bool awaited)
{
	f->cq->awaited += awaited - f->awaited;
	f->awaited = awaited;
}

/**
 * shim_soft_purge - a queue pair is gone or was reset, and so is what it completed
 * @c: the CQ
 * @qp_num: of the queue pair
 * @f: its flow, if it has one, for CQs that do not tell the number
 *
 * The program has lost completions of the send queue then, so it gets none of those
 * either that the provider has left in the CQ: they are later ones. Its number may be that of
 * another flow by now, whose completions of the send queue stay. Nobody can tell whose a receive
 * is.
 */
void shim_soft_purge(struct shim_cq *c, uint32_t qp_num, struct shim_qp *f)
{
	uint32_t to = c->soft_head;
	uint32_t i;

	for (i = c->soft_head; i != c->soft_tail; i++) {
		const struct shim_soft *e = &c->soft[i % c->soft_num];

		if (f && e->flow == f)
			f->slots->cut_off = true;
		else if (e->flow || e->wc.qp_num != qp_num)
			c->soft[to++ % c->soft_num] = *e;
	}
	c->soft_tail = to;
	c->older = 0;
	/* The event of what it had completed may be on its way. */
	c->unknown = true;
	if (f && f->cq == c)
		shim_cq_await(f, false);
	c->hurried = false;
	shim_cq_update(c);
}
