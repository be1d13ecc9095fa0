// SPDX-License-Identifier: GPL-2.0
/*
 * Tags: what is posted, and how a completion finds it.
 *
 * Owns the tags that posted work requests carry in place of the ULP's wr_id. A tag is the
 * address of a member of a slot: cqe for the last work request of a run, inner for those in
 * front of it. The slots of a flow fill one page, and the page address is in a table,
 * so any wr_id can be looked up without following it. A slot is retired by its own
 * completion, or by a later one if it was not signaled, since the completions of a send
 * queue come in order.
 *
 * This is bookkeeping: whoever takes a slot charges its bytes, and whoever retires it
 * accounts for them.
 *
 * &riso_dev.lock covers the slots. The table is read under RCU and written under tag_lock.
 * Functions run in any context, except riso_tag_alloc(), which may sleep.
 */

#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "cq.h"
#include "dev.h"
#include "flow.h"
#include "tag.h"

enum { TAG_HASH_BITS = 10 };

static DEFINE_HASHTABLE(tag_pages, TAG_HASH_BITS);
static DEFINE_SPINLOCK(tag_lock);

static_assert(RISO_SLOTS * sizeof(struct riso_slot) <= PAGE_SIZE);

/* A tag that is polled around the hooks ends here, and nothing happens. */
static void tag_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

/**
 * riso_tag_find - whose tag is it?
 * @wr_id: of a completion
 *
 * Context: under RCU.
 * Return: the slots that it is one of, or NULL if it is no tag of ours.
 */
struct riso_slots *riso_tag_find(u64 wr_id)
{
	unsigned long page = (unsigned long)wr_id & PAGE_MASK;
	struct riso_slots *s;

	if (wr_id != (unsigned long)wr_id ||
	    wr_id % sizeof(struct riso_slot) & ~offsetof(struct riso_slot, inner))
		return NULL;
	hash_for_each_possible_rcu(tag_pages, s, hash, page)
		if ((unsigned long)s->slot == page)
			return s;
	return NULL;
}

/**
 * riso_tag_alloc - give a flow its tags
 * @f: a flow with room in its CQ
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int riso_tag_alloc(struct riso_flow *f)
{
	struct riso_slots *s;
	int i;

	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->slot = (struct riso_slot *)get_zeroed_page(GFP_KERNEL);
	if (!s->slot) {
		kfree(s);
		return -ENOMEM;
	}
	for (i = 0; i < RISO_SLOTS; i++) {
		s->slot[i].cqe.done = tag_done;
		s->slot[i].inner.done = tag_done;
	}
	s->num = f->cq_room;
	s->flow = f;
	s->qpn = f->qpn;
	s->err_seq = U64_MAX;
	s->refused_seq = U64_MAX;
	INIT_LIST_HEAD(&s->zombie);
	f->slots = s;
	spin_lock_irq(&tag_lock);
	hash_add_rcu(tag_pages, &s->hash, (unsigned long)s->slot);
	spin_unlock_irq(&tag_lock);
	return 0;
}

static void free_slots_rcu(struct rcu_head *head)
{
	struct riso_slots *s = container_of(head, struct riso_slots, rcu);

	free_page((unsigned long)s->slot);
	kfree(s);
}

static void forget_slots_rcu(struct rcu_head *head)
{
	struct riso_slots *s = container_of(head, struct riso_slots, rcu);
	unsigned long flags;

	spin_lock_irqsave(&tag_lock, flags);
	hash_del_rcu(&s->hash);
	spin_unlock_irqrestore(&tag_lock, flags);
	call_rcu(&s->rcu, free_slots_rcu);
}

/**
 * riso_tag_free_slots - free slots that no completion will be found for any more
 * @s: the slots, which no flow has
 *
 * Who polls around the hooks may have found a tag, and looks it up before he is done.
 *
 * Context: any.
 */
void riso_tag_free_slots(struct riso_slots *s)
{
	call_rcu(&s->rcu, forget_slots_rcu);
}

/**
 * riso_tag_free - take the tags of a flow back
 * @f: a flow that has none out
 *
 * Context: any.
 */
void riso_tag_free(struct riso_flow *f)
{
	if (f->slots)
		riso_tag_free_slots(f->slots);
	f->slots = NULL;
}

/**
 * riso_tag_note_out - a flow is about to have a slot out
 * @f: the flow, which becomes the last in &riso_dev.reap
 *
 * Context: under &riso_dev.lock.
 */
void riso_tag_note_out(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	if (list_empty(&f->reap) && !f->cq->flows_out++)
		riso_cq_tag(f->cq);
	list_move_tail(&f->reap, &f->rd->reap);
}

/**
 * riso_tag_note_idle - a flow has no slot out any more
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_tag_note_idle(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	if (list_empty(&f->reap))
		return;
	list_del_init(&f->reap);
	f->cq->flows_out--;
}

/**
 * riso_tag_oldest - the slot that should complete next
 * @s: slots of a flow
 *
 * Context: under &riso_dev.lock.
 * Return: the slot or NULL.
 */
struct riso_slot *riso_tag_oldest(const struct riso_slots *s)
{
	lockdep_assert_held(&s->flow->rd->lock);
	return s->head == s->tail ? NULL : riso_tag_at(s, s->tail);
}

/**
 * riso_tag_has_pieces - is a part of a work request out that is not its last?
 * @s: slots of a flow, or NULL
 *
 * Context: under &riso_dev.lock.
 * Return: true if so.
 */
bool riso_tag_has_pieces(const struct riso_slots *s)
{
	const struct riso_slot *slot;
	u32 pos;

	if (!s)
		return false;
	for (pos = s->tail; pos != s->head; pos++) {
		slot = riso_tag_at(s, pos);
		if ((slot->flags & RISO_SLOT_POSTED) && (slot->flags & RISO_SLOT_CHUNK) &&
		    (!(slot->flags & RISO_SLOT_LAST) || slot->pieces > 1))
			return true;
	}
	return false;
}

/**
 * riso_tag_take - take the next slot
 * @s: slots of a flow, with room for @pieces
 * @pieces: work requests that carry its tag
 *
 * The slot answers for all that was posted since the last one was taken, @pieces among it.
 *
 * Context: under &riso_dev.lock.
 * Return: the slot, which riso_tag_next() was before, to be filled in.
 */
struct riso_slot *riso_tag_take(struct riso_slots *s, u32 pieces)
{
	struct riso_slot *slot = riso_tag_next(s);
	int dir;

	lockdep_assert_held(&s->flow->rd->lock);
	WARN_ON_ONCE(riso_tag_room(s) < pieces);
	s->head++;
	s->pieces += pieces;
	slot->pieces = pieces;
	slot->wqes = s->untagged;
	s->untagged = 0;
	for (dir = 0; dir < RISO_DIRS; dir++) {
		slot->wire[dir] = s->untagged_wire[dir];
		s->untagged_wire[dir] = 0;
	}
	return slot;
}

/**
 * riso_tag_give_back - nothing was posted with the slot that was taken last
 * @s: slots of a flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_tag_give_back(struct riso_slots *s)
{
	struct riso_slot *slot;

	lockdep_assert_held(&s->flow->rd->lock);
	slot = riso_tag_at(s, --s->head);
	s->pieces -= slot->pieces;
	slot->flags = 0;
}

/**
 * riso_tag_shorten - the last pieces that a slot stands for were not posted
 * @s: slots of a flow
 * @slot: the slot, which keeps at least one piece
 * @dir: direction
 * @pieces: how many
 * @wire: their wire bytes
 *
 * No completion of success comes for what is left.
 *
 * Context: under &riso_dev.lock.
 */
void riso_tag_shorten(struct riso_slots *s, struct riso_slot *slot, enum riso_dir dir,
		      u32 pieces, u32 wire)
{
	lockdep_assert_held(&s->flow->rd->lock);
	s->pieces -= pieces;
	slot->pieces -= pieces;
	slot->wqes -= pieces;
	slot->wire[dir] -= wire;
	slot->flags &= ~(RISO_SLOT_SIGNALED | RISO_SLOT_LAST);
}

/**
 * riso_tag_retire - the work requests of a slot have ended
 * @s: slots of a flow
 * @slot: the slot
 *
 * Frees the send queue entries that the slot stands for. The bytes are for the caller to
 * account for.
 *
 * Context: under &riso_dev.lock.
 */
void riso_tag_retire(struct riso_slots *s, struct riso_slot *slot)
{
	slot->flags &= ~RISO_SLOT_POSTED;
	s->sq_used -= slot->wqes;
	s->pieces -= slot->pieces;
	if (slot->flags & RISO_SLOT_FETCH)
		s->rd_out -= slot->pieces;
}

/**
 * riso_tag_trim - free the oldest slots as far as they are retired
 * @s: slots of a flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_tag_trim(struct riso_slots *s)
{
	while (s->tail != s->head &&
	       !(riso_tag_at(s, s->tail)->flags & RISO_SLOT_POSTED))
		s->tail++;
}

static bool will_complete(const struct riso_slot *slot)
{
	return (slot->flags & RISO_SLOT_POSTED) && (slot->flags & RISO_SLOT_SIGNALED);
}

/**
 * riso_tag_is_marked - is a completion certain to come for all that was posted with a tag?
 * @s: slots of a flow
 *
 * Context: under &riso_dev.lock.
 * Return: true if so, or if nothing is out.
 */
bool riso_tag_is_marked(const struct riso_slots *s)
{
	return s->head == s->tail || will_complete(riso_tag_at(s, s->head - 1));
}

/**
 * riso_tag_awaits - is a completion certain to come?
 * @s: slots of a flow
 *
 * Context: under &riso_dev.lock.
 * Return: true if so.
 */
bool riso_tag_awaits(const struct riso_slots *s)
{
	u32 pos;

	for (pos = s->tail; pos != s->head; pos++)
		if (will_complete(riso_tag_at(s, pos)))
			return true;
	return false;
}
