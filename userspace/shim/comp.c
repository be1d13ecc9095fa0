// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions: those of pieces become the one that the program asked for.
 *
 * Owns what becomes of a completion of the provider, and the reaper.
 *
 * The reaper polls when the program does not, while something is held. What belongs to
 * the program goes to the soft ring, the first thing that its next poll finds. Some
 * programs arm a CQ and sleep without another poll, as the provider raises an event at
 * once if it holds something that the program has not polled. The provider does not know
 * of the soft ring. So when a CQ is armed with something there, the next piece that is
 * posted has a completion, which raises an event. If nothing is held, the last piece had
 * one that nobody has polled, or that is still to come.
 *
 * A CQ that is armed for solicited completions only gets no event of ours. There the
 * reaper takes one completion of the program while the CQ is armed, for which there was an
 * event. It takes none while the CQ is not armed, unless the program has not polled for
 * long.
 *
 * Locks: everything here runs under shim_member.lock, in threads of the program and in the
 * helper. It allocates no memory, except shim_comp_attach(), which ibv_create_qp() calls
 * under shim_size_lock. shim_comp_poll(), shim_comp_join() and shim_comp_attach() take
 * shim_member.lock themselves. A CQ that is not active is polled and armed without the lock.
 */
#include <errno.h>

#include "comp.h"
#include "core/chunk.h"
#include "cqex.h"
#include "ctx.h"
#include "guard.h"
#include "helper.h"
#include "member.h"
#include "poller.h"
#include "post.h"
#include "qp.h"
#include "record.h"
#include "slot.h"
#include "soft.h"

/* A program that has not polled for so many rounds of the helper waits otherwise. */
enum { UNSEEN = 100 };

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
			s->flow->flush = true;
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
 * Returns when nobody polls its CQ without the lock any more. The CQ stays active until
 * %SHIM_ON_GOVERN.
 */
void shim_comp_join(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;
	bool was_active;

	shim_lock(&m->lock);
	was_active = f->cq->active;
	shim_qp_step(f, SHIM_ON_JOIN);
	shim_unlock(&m->lock);
	if (!was_active)
		shim_pollers_wait();
}

/* Translate @num completions in place. Returns the number that the program shall see. */
static int shim_translate_all(int num, struct ibv_wc *wc)
{
	struct shim_soft e;
	int kept = 0;
	int i;

	for (i = 0; i < num; i++) {
		e.wc = wc[i];
		if (!shim_comp_translate(&e))
			continue;
		shim_soft_seen(&e);
		wc[kept++] = e.wc;
	}
	return kept;
}

static int poll_governed(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	struct shim_soft e;
	int n = 0;
	int got;

	while (n < num && c->soft_head != c->soft_tail) {
		shim_soft_pop(c, &e);
		wc[n++] = e.wc;
	}
	while (n < num) {
		int want = num - n;

		got = c->ctx->ops.poll_cq(c->cq, want, wc + n);
		if (got < 0)
			return n ? n : got;
		n += shim_translate_all(got, wc + n);
		if (got < want) {
			shim_comp_bury(c);
			break;
		}
	}
	return n;
}

/* The program has polled, and was shown something; unlocks. */
static void end_poll(struct shim_cq *c, bool shown)
{
	struct shim_member *m = c->ctx->m;

	if (shown)
		shim_cq_shown(c);
	shim_cq_seen(c);
	if (shim_member_news(m))
		shim_queue_drive(m);
	shim_cq_update(c);
	shim_unlock_and_drive(m);
}

/**
 * shim_comp_poll - what the program's poll_cq does with an active CQ
 * @c: the CQ
 * @num: completions wanted
 * @wc: room for them
 *
 * Return: how many; fewer than @num means that the CQ is empty.
 */
int shim_comp_poll(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	int n;

	/* A session that began without a flow has the provider's lock. */
	if (c->ex)
		shim_lock(&c->session);
	shim_lock(&c->ctx->m->lock);
	n = poll_governed(c, num, wc);
	end_poll(c, n > 0);
	if (c->ex)
		shim_unlock(&c->session);
	if (shim_member_stale(c->ctx->m))
		shim_qps_refresh(c->ctx->m);
	return n;
}

/* How many completions of the program may be taken? See above. */
static uint32_t may_reap(const struct shim_cq *c)
{
	if (!__atomic_load_n(&c->solicited, __ATOMIC_RELAXED))
		return UINT32_MAX;
	if (c->armed && c->soft_head == c->soft_tail)
		return 1;
	return c->unseen < UNSEEN ? 0 : UINT32_MAX;
}

static void reap(struct shim_cq *c, uint32_t max)
{
	struct ibv_wc wc[SHIM_POLL];
	struct shim_soft e = {};
	uint32_t room;
	int got, want, i;

	do {
		room = c->soft_num - (c->soft_tail - c->soft_head);
		if (room > max)
			room = max;
		want = room < SHIM_POLL ? room : SHIM_POLL;
		if (!want)
			return;
		got = c->ctx->ops.poll_cq(c->cq, want, wc);
		for (i = 0; i < got; i++) {
			e.wc = wc[i];
			if (shim_comp_translate(&e) && shim_soft_push(c, &e))
				max--;
		}
	} while (got == want);
	if (got >= 0)
		shim_comp_bury(c);
}

/**
 * shim_take_completions - poll a CQ on behalf of the program
 * @c: the CQ; nobody else polls it
 * @max: completions of the program that may be taken
 */
void shim_take_completions(struct shim_cq *c, uint32_t max)
{
	if (c->ex)
		shim_cqex_fill(c, max);
	else
		reap(c, max);
}

/**
 * shim_comp_may_reap - could somebody poll a CQ on behalf of the program?
 * @c: the CQ
 *
 * Return: false while the program polls it.
 */
bool shim_comp_may_reap(struct shim_cq *c)
{
	if (!shim_cqex_try(c))
		return false;
	shim_cqex_leave(c);
	return true;
}

/**
 * shim_comp_reap_most - poll on behalf of the program, unless it does so itself
 * @c: the CQ
 * @max: completions of the program that may be taken
 */
void shim_comp_reap_most(struct shim_cq *c, uint32_t max)
{
	if (!shim_cqex_try(c))
		return;
	shim_take_completions(c, max);
	shim_cqex_leave(c);
}

/**
 * shim_comp_reap - poll on behalf of the program
 * @c: the CQ
 */
void shim_comp_reap(struct shim_cq *c)
{
	uint32_t max = may_reap(c);

	if (!max)
		return;
	shim_comp_reap_most(c, max);
	if (max == 1 && c->soft_head != c->soft_tail)
		c->unseen = 1;
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
 * @f: the flow, which is gone; its slots become a zombie
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
