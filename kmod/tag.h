/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tags of posted work requests. See tag.c.
 */
#ifndef RISO_TAG_H
#define RISO_TAG_H

#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "arbiter.h"

struct riso_flow;

enum {
	/* Tagged work requests that a flow may have out: a window of chunks, many times over */
	RISO_SLOTS = 64,
	/* With fewer, the queue of a short QP would run dry between two completions. */
	RISO_SLOTS_MIN = 8,
};

enum riso_slot_flags {
	RISO_SLOT_POSTED = BIT(0),	/* waits for its CQE */
	RISO_SLOT_SIGNALED = BIT(1),	/* the provider will report success */
	RISO_SLOT_ULP_SIGNALED = BIT(2),/* the ULP wants to know */
	RISO_SLOT_LAST = BIT(3),	/* the message ends with it */
	RISO_SLOT_CHUNK = BIT(4),	/* less than the whole message, or that in pieces */
	RISO_SLOT_FETCH = BIT(5),	/* each piece uses one of max_rd_atomic */
	RISO_SLOT_MARK = BIT(6),	/* our own: what was taken before it has ended */
};

/**
 * struct riso_slot - work requests given to the provider under our tag
 * @cqe: its address is the tag of the last one; harmless if anybody should call it
 * @inner: its address is the tag of pieces in front of that, which complete only if they fail
 * @wr_id: the ULP's own
 * @seq: number of the ULP's work request
 * @posted_ns: when
 * @queued_ns: when the ULP posted its work request
 * @wire: bytes it is charged in each direction, with those of the untagged work
 *	requests before it
 * @total: payload of the whole message
 * @wqes: send queue entries it stands for
 * @flags: RISO_SLOT_*
 * @pieces: work requests that carry @cqe or @inner, at least 1
 */
struct riso_slot {
	struct ib_cqe cqe;
	struct ib_cqe inner;
	u64 wr_id;
	u64 seq;
	u64 posted_ns;
	u64 queued_ns;
	u32 wire[RISO_DIRS];
	u32 total;
	u16 wqes;
	u8 flags;
	u8 pieces;
} __aligned(64);

/**
 * struct riso_slots - the tags of a flow
 * @slot: ring, a page of its own, so that a tag is found by its page
 * @flow: owner; NULL when the QP is gone
 * @qpn: of the QP
 * @class: of the flow; outlives it
 * @hash: in the table of tag pages, RCU
 * @zombie: in &riso_cq.zombies when the QP is gone
 * @rcu: frees it
 * @num: slots that may be used, and CQEs that are reserved
 * @head: where the next slot is taken
 * @tail: oldest slot that is not retired
 * @pieces: work requests out that carry a tag
 * @untagged: work requests posted since the last slot without a tag
 * @untagged_wire: their bytes
 * @sq_used: send queue entries in use
 * @rd_out: READs and atomics out
 * @err_seq: work request whose error was delivered last, U64_MAX for none
 * @refused_seq: the same, of which the provider had refused a part
 */
struct riso_slots {
	struct riso_slot *slot;
	struct riso_flow *flow;
	u32 qpn;
	enum riso_class class;
	struct hlist_node hash;
	struct list_head zombie;
	struct rcu_head rcu;
	u32 num;
	u32 head;
	u32 tail;
	u32 pieces;
	u32 untagged;
	u32 untagged_wire[RISO_DIRS];
	u32 sq_used;
	u32 rd_out;
	u64 err_seq;
	u64 refused_seq;
};

/**
 * riso_tag_room - how many more work requests may carry a tag
 * @s: slots of a flow
 *
 * Each takes a CQE if it fails, so no more may be out than CQEs are reserved.
 *
 * Return: how many, 0 if no slot is free.
 */
static inline u32 riso_tag_room(const struct riso_slots *s)
{
	return s->num - min(s->num, max(s->head - s->tail, s->pieces));
}

/**
 * riso_tag_at - the slot at a position of the ring
 * @s: slots of a flow
 * @pos: the position
 *
 * Return: the slot.
 */
static inline struct riso_slot *riso_tag_at(const struct riso_slots *s, u32 pos)
{
	return &s->slot[pos % s->num];
}

/**
 * riso_tag_next - the slot that riso_tag_take() will return
 * @s: slots of a flow, with room
 *
 * Return: the slot.
 */
static inline struct riso_slot *riso_tag_next(const struct riso_slots *s)
{
	return riso_tag_at(s, s->head);
}

/**
 * riso_tag_slot - the slot of a tag
 * @wr_id: of a completion, for which riso_tag_find() has found something
 *
 * Return: the slot.
 */
static inline struct riso_slot *riso_tag_slot(u64 wr_id)
{
	return (struct riso_slot *)((unsigned long)wr_id & ~(sizeof(struct riso_slot) - 1));
}

int riso_tag_alloc(struct riso_flow *f);
void riso_tag_free(struct riso_flow *f);
void riso_tag_note_out(struct riso_flow *f);
void riso_tag_note_idle(struct riso_flow *f);
void riso_tag_free_slots(struct riso_slots *s);
struct riso_slots *riso_tag_find(u64 wr_id);
struct riso_slot *riso_tag_oldest(const struct riso_slots *s);
bool riso_tag_has_pieces(const struct riso_slots *s);
bool riso_tag_is_marked(const struct riso_slots *s);
bool riso_tag_awaits(const struct riso_slots *s);
struct riso_slot *riso_tag_take(struct riso_slots *s, u32 pieces);
void riso_tag_give_back(struct riso_slots *s);
void riso_tag_shorten(struct riso_slots *s, struct riso_slot *slot, enum riso_dir dir,
		      u32 pieces, u32 wire);
void riso_tag_retire(struct riso_slots *s, struct riso_slot *slot);
void riso_tag_trim(struct riso_slots *s);

#endif /* RISO_TAG_H */
