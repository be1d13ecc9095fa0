/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tags of posted work requests. See tag.c.
 */
#ifndef RISO_TAG_H
#define RISO_TAG_H

#include <linux/list.h>
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
	RISO_SLOT_LAST = BIT(3),	/* last chunk of its message */
	RISO_SLOT_CHUNK = BIT(4),	/* less than the whole message */
	RISO_SLOT_FETCH = BIT(5),	/* uses one of max_rd_atomic */
	RISO_SLOT_MARK = BIT(6),	/* our own: what was taken before it has ended */
	RISO_SLOT_HELD = BIT(7),	/* the window had kept it back */
};

/**
 * struct riso_slot - a work request given to the provider under our tag
 * @cqe: its address is the tag; harmless if anybody should call it
 * @wr_id: the ULP's own
 * @seq: number of the ULP's work request
 * @posted_ns: when
 * @queued_ns: when the ULP posted its work request
 * @wire: bytes it is charged in each direction, with those of the untagged work
 *	requests before it
 * @bytes: payload
 * @total: payload of the whole message
 * @wqes: send queue entries it stands for
 * @flags: RISO_SLOT_*
 */
struct riso_slot {
	struct ib_cqe cqe;
	u64 wr_id;
	u64 seq;
	u64 posted_ns;
	u64 queued_ns;
	u32 wire[RISO_DIRS];
	u32 bytes;
	u32 total;
	u16 wqes;
	u16 flags;
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
 * @num: slots that may be used, what the CQ has room for
 * @head: where the next slot is taken
 * @tail: oldest slot that is not retired
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
	u32 untagged;
	u32 untagged_wire[RISO_DIRS];
	u32 sq_used;
	u32 rd_out;
	u64 err_seq;
	u64 refused_seq;
};

static inline bool riso_tag_has_slot(const struct riso_slots *s)
{
	return s->head - s->tail < s->num;
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

int riso_tag_alloc(struct riso_flow *f);
void riso_tag_free(struct riso_flow *f);
void riso_tag_note_out(struct riso_flow *f);
void riso_tag_note_idle(struct riso_flow *f);
void riso_tag_free_slots(struct riso_slots *s);
struct riso_slots *riso_tag_find(u64 wr_id);
struct riso_slot *riso_tag_oldest(const struct riso_slots *s);
bool riso_tag_has_pieces(const struct riso_slots *s);
bool riso_tag_awaits(const struct riso_slots *s);
struct riso_slot *riso_tag_take(struct riso_slots *s);
void riso_tag_untag(struct riso_flow *f, u32 head, const u32 *untagged_wire, u32 *wire);
void riso_tag_retire(struct riso_slots *s, struct riso_slot *slot);
void riso_tag_trim(struct riso_slots *s);

#endif /* RISO_TAG_H */
