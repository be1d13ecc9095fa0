// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Slots: what a queue pair has posted.
 *
 * Owns the tags that posted work requests carry in place of the program's wr_id. A tag is
 * the address of a slot. The pages of the slots are in a map, so any wr_id can be looked up
 * without following it. The completions of a send queue come in order, so one completion
 * retires all slots up to its own.
 *
 * Tags outlive their queue pair: some providers leave the completions of a destroyed queue
 * pair in the CQ. Its slots wait among the zombies of the CQ, until the CQ has once been
 * polled empty.
 *
 * Locks: shim_member.lock protects the slots. shim_slots_alloc() and shim_slots_free() need
 * no lock, as no completion refers to these slots. Everybody reads the map without a lock.
 *
 * Runs in threads of the program and in the helper.
 */
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "ctx.h"
#include "line.h"
#include "member.h"
#include "qp.h"
#include "slot.h"

/* Bytes; a tag is the address of a slot, and the map has one entry for each page of them */
enum { PAGE = 4096 };

_Static_assert(PAGE % sizeof(struct shim_slot) == 0, "a slot has one page");

/* Bytes of the slots, in whole pages */
static size_t slots_size(uint32_t mask)
{
	return (((size_t)mask + 1) * sizeof(struct shim_slot) + PAGE - 1) / PAGE * PAGE;
}

/**
 * shim_slots_alloc - get slots
 * @f: whose
 * @num: how many may be in use, not 0
 *
 * Return: the slots, in the map of tags; or NULL.
 */
struct shim_slots *shim_slots_alloc(struct shim_qp *f, uint32_t num)
{
	struct shim_slots *s;
	uint32_t mask = 0;
	size_t size, off;

	while (mask < num - 1)
		mask = 2 * mask + 1;
	size = slots_size(mask);
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->slot = aligned_alloc(PAGE, size);
	if (!s->slot)
		goto free_slots;
	memset(s->slot, 0, size);
	for (off = 0; off < size; off += PAGE)
		if (shim_map_add(&shim_tags, (char *)s->slot + off, s))
			goto free_pages;
	s->flow = f;
	s->num = num;
	s->mask = mask;
	s->err_seq = UINT64_MAX;
	s->failed_seq = UINT64_MAX;
	return s;

free_pages:
	while (off) {
		off -= PAGE;
		shim_map_del(&shim_tags, (char *)s->slot + off);
	}
	free(s->slot);
free_slots:
	free(s);
	return NULL;
}

/**
 * shim_slots_free - give slots back
 * @s: slots that no completion refers to
 */
void shim_slots_free(struct shim_slots *s)
{
	size_t size = slots_size(s->mask);
	size_t off;

	for (off = 0; off < size; off += PAGE)
		shim_map_del(&shim_tags, (char *)s->slot + off);
	free(s->slot);
	free(s);
}

/**
 * shim_find_tag - find the slots that a completion belongs to
 * @wr_id: what the completion carries
 *
 * Return: the slots, or NULL if @wr_id is no tag.
 */
struct shim_slots *shim_find_tag(uint64_t wr_id)
{
	struct shim_slots *s;

	if (wr_id != (uintptr_t)wr_id || wr_id % sizeof(struct shim_slot) || wr_id < PAGE)
		return NULL;
	s = shim_map_find(&shim_tags, (void *)(uintptr_t)(wr_id & ~(PAGE - 1ULL)));
	if (!s || (wr_id - (uintptr_t)s->slot) / sizeof(struct shim_slot) > s->mask)
		return NULL;
	return s;
}

/* Give back what a slot took: the provider is known to have completed it. */
static void shim_retire_slot(struct shim_qp *f, struct shim_slot *slot)
{
	struct shim_member *m = f->ctx->m;
	struct shim_sq *sq = &f->sq;
	uint64_t out = sq->slot - f->slots->tail;

	m->retired = true;
	m->book[slot->book].done += slot->cost;
	sq->cost -= slot->cost;
	if (slot->flags & SHIM_SLOT_CHUNK)
		sq->chunks--;
	if (slot->flags & SHIM_SLOT_FETCH)
		sq->fetches--;
	if (slot->flags & SHIM_SLOT_EXTRA)
		f->cq->used.extra--;
	if (out < sq->parts)
		shim_qp_set_parts(f, out, sq->silent);
	if (!(slot->flags & SHIM_SLOT_SIGNALED))
		return;
	sq->signaled--;
	if (!shim_slot_hidden(slot))
		return;
	sq->hidden--;
	f->cq->used.hidden--;
	__atomic_store_n(&m->hidden, m->hidden - 1, __ATOMIC_RELAXED);
}

/* The piece that had the program's entry for its message leaves it to the next one. */
static void pass_entry(struct shim_qp *f, const struct shim_slot *slot)
{
	struct shim_slots *s = f->slots;
	struct shim_slot *next = shim_slots_at(s, s->tail);

	if ((slot->flags & SHIM_SLOT_EXTRA) || s->tail == f->sq.slot ||
	    next->seq != slot->seq)
		return;
	next->flags &= ~SHIM_SLOT_EXTRA;
	f->cq->used.extra--;
}

/**
 * shim_retire_slots - retire all slots up to one
 * @s: the slots
 * @slot: the last one to retire
 * @failed: @slot has failed
 *
 * If @slot has failed the program is told, and has its entry of the CQ again.
 */
void shim_retire_slots(struct shim_slots *s, struct shim_slot *slot, bool failed)
{
	struct shim_slot *oldest;

	do {
		oldest = shim_slots_at(s, s->tail++);
		oldest->flags &= ~SHIM_SLOT_POSTED;
		if (!s->flow)
			continue;
		shim_retire_slot(s->flow, oldest);
		if (oldest != slot || !failed)
			pass_entry(s->flow, oldest);
	} while (oldest != slot);
	if (s->flow)
		shim_line_come_back(s->flow);
	if (!s->flow || s->tail != s->flow->sq.slot)
		return;
	s->flow->sq.silent = 0;
	s->flow->sq.quiet = 0;
	/* The CQ stays active until this completion is with the program. */
	if (s->flow->state == SHIM_QP_LEAVING || shim_qp_passes(s->flow)) {
		shim_qp_step(s->flow, SHIM_ON_PASS);
		shim_qp_step(s->flow, SHIM_ON_CLEAR);
	}
}

/**
 * shim_comp_bury - the CQ was polled empty, no tag of a zombie is left
 * @c: the CQ
 */
void shim_comp_bury(struct shim_cq *c)
{
	struct shim_slots *s;

	while ((s = LIST_FIRST(&c->zombies))) {
		LIST_REMOVE(s, zombie);
		c->used.hidden -= s->used.hidden;
		c->used.extra -= s->used.extra;
		shim_slots_free(s);
		shim_line_make_room(c);
	}
}

/**
 * shim_comp_abandon - what these slots posted is gone, but may still complete
 * @c: the CQ
 * @s: the slots
 */
void shim_comp_abandon(struct shim_cq *c, struct shim_slots *s)
{
	struct shim_used used = c->used;
	struct shim_qp *f = s->flow;
	uint64_t pos;

	if (s->tail == f->sq.slot) {
		shim_slots_free(s);
		return;
	}
	for (pos = s->tail; pos != f->sq.slot; pos++)
		shim_retire_slot(f, shim_slots_at(s, pos));
	s->used.hidden = used.hidden - c->used.hidden;
	s->used.extra = used.extra - c->used.extra;
	/* They stay in the CQ until that is polled. */
	c->used = used;
	s->flow = NULL;
	LIST_INSERT_HEAD(&c->zombies, s, zombie);
	shim_cq_set_calm(c, 0);
}
