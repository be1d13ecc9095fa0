// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions: those of pieces become the one that the program asked for.
 *
 * Owns what becomes of a completion of the provider, and which flows complete in a CQ.
 *
 * Locks: everything here runs under shim_member.lock, in threads of the program and in the
 * helper. It allocates no memory, except shim_comp_attach(), which ibv_create_qp() calls
 * under shim_size_lock. shim_comp_join() and shim_comp_attach() take shim_member.lock
 * themselves.
 */
#include <errno.h>

#include "comp.h"
#include "core/chunk.h"
#include "ctx.h"
#include "guard.h"
#include "member.h"
#include "pay.h"
#include "poller.h"
#include "qp.h"
#include "record.h"
#include "slot.h"
#include "soft.h"

/**
 * shim_comp_translate - from a completion of the provider to one of the program
 * @e: the completion, whose wr_id and status are the provider's
 *
 * Return: true if the program shall see it.
 */
bool shim_comp_translate(struct shim_soft *e)
{
	struct shim_slots *s = shim_find_tag(e->wc.wr_id);
	bool success = e->wc.status == IBV_WC_SUCCESS;
	struct shim_slot *slot;
	enum riso_verdict verdict;
	bool told;

	e->flow = NULL;
	if (!s)
		return true;
	slot = (struct shim_slot *)(uintptr_t)e->wc.wr_id;
	if (!(slot->flags & SHIM_SLOT_POSTED))
		return false;
	if (success && s->flow)
		shim_measure_path(s->flow, slot);
	shim_retire_slots(s, slot, !success);
	if (s->cut_off)
		return false;
	/* What failed in the place of later ones, push_failed(), may come before it. */
	told = success ? slot->seq == s->err_seq :
			 s->err_seq != UINT64_MAX && slot->seq <= s->err_seq;
	verdict = riso_merge(success, slot->flags & SHIM_SLOT_LAST,
			     slot->flags & SHIM_SLOT_ASKED, told);
	if (!success) {
		if (!told)
			s->err_seq = slot->seq;
		if (s->flow)
			shim_set_flush(s->flow);
	}
	if (s->flow && (slot->flags & SHIM_SLOT_ASKED)) {
		shim_cq_await(s->flow, success && verdict == RISO_HIDE);
		s->flow->cq->hurried &= s->flow->awaited;
	}
	if (verdict == RISO_HIDE)
		return false;
	e->wc.wr_id = slot->wr_id;
	if (!success && slot->seq == s->failed_seq)
		e->wc.status = IBV_WC_LOC_QP_OP_ERR;
	if (success && (slot->flags & SHIM_SLOT_CHUNK))
		e->wc.byte_len = slot->total;
	e->flow = s->flow;
	e->seq = slot->seq;
	return true;
}

/**
 * shim_comp_join - make a CQ ready for the tags of a flow
 * @f: the flow; shim_class_lock is held, and its member is not locked
 *
 * Returns when nobody polls its CQ without the lock any more. Until then who looks for an event's
 * cause takes nothing from the provider: it would overtake what such a poll takes. The CQ stays
 * active until %SHIM_ON_GOVERN.
 */
void shim_comp_join(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;
	bool was_active;

	shim_lock(&m->lock);
	was_active = f->cq->active;
	shim_qp_step(f, SHIM_ON_JOIN);
	f->cq->joining = !was_active;
	shim_unlock(&m->lock);
	if (was_active)
		return;
	shim_pollers_wait();
	shim_lock(&m->lock);
	f->cq->joining = false;
	/* What these polls returned was not noted either. */
	f->cq->unknown = true;
	shim_unlock(&m->lock);
}

/**
 * shim_comp_attach - a flow will complete here
 * @f: the flow; nothing is posted yet, and nothing but the size of the CQ is locked
 *
 * Return: 0 or ENOMEM.
 */
int shim_comp_attach(struct shim_qp *f)
{
	struct shim_cq *c = f->cq;

	if (shim_soft_grow(c, c->asked))
		return ENOMEM;
	shim_lock(&c->ctx->m->lock);
	c->flows++;
	shim_unlock(&c->ctx->m->lock);
	return 0;
}

/**
 * shim_comp_detach - a flow will complete here no more
 * @f: the flow, which is gone, and so is what it completed; its slots become a zombie
 */
void shim_comp_detach(struct shim_qp *f)
{
	struct shim_cq *c = f->cq;

	shim_comp_abandon(c, f->slots);
	f->slots = NULL;
	c->flows--;
	shim_qp_step(f, SHIM_ON_DETACH);
	shim_cq_update(c);
}
