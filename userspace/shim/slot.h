/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a queue pair has posted. See slot.c.
 */
#ifndef SHIM_SLOT_H
#define SHIM_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "map.h"

struct shim_cq;
struct shim_qp;

enum {
	/* Chunks of a flow that may be out, and completions that nobody sees. */
	SHIM_SLOTS = 32,
};

enum {
	SHIM_SLOT_POSTED = 1,	/* not completed yet */
	SHIM_SLOT_SIGNALED = 2,	/* the provider was asked for a completion */
	SHIM_SLOT_ASKED = 4,	/* the program asked for one */
	SHIM_SLOT_LAST = 8,	/* last piece of its message */
	SHIM_SLOT_CHUNK = 16,	/* piece of a message that was cut */
	SHIM_SLOT_FETCH = 32,	/* takes one of max_rd_atomic */
	SHIM_SLOT_EXTRA = 64,	/* takes a spare entry of the CQ, struct shim_used */
};

/**
 * struct shim_slot - a posted work request; its address is the wr_id
 * @wr_id: the program's own
 * @seq: number of the program's work request
 * @cost: cost bytes
 * @total: bytes of the whole message
 * @flags: SHIM_SLOT_*
 * @dir: direction
 */
struct shim_slot {
	uint64_t wr_id;
	uint64_t seq;
	uint64_t cost;
	uint32_t total;
	uint16_t flags;
	uint16_t dir;
};

/**
 * struct shim_used - what the flows of a CQ take of its spare entries
 * @hidden: pieces posted and not polled that have a completion which nobody sees
 * @extra: pieces with %SHIM_SLOT_EXTRA, posted and not known to be complete
 * @open: messages of which pieces are out, and others are still to be posted
 * @bare: open messages without a piece out that was asked a completion for
 *
 * When a queue pair fails, each piece that is out takes an entry of the CQ. The program has
 * one entry for each of its work requests. The oldest piece of a message that is out has
 * that, until the program is told of the message. The others are extra:
 *
 *	extra + bare <= spare entries
 *
 * So a bare message can always post one more piece, with a completion, and no flow has to
 * wait for another one. More is posted while extra + open is less than the spare entries,
 * so that the rest of a message goes out at once when its queue pair is torn down.
 */
struct shim_used {
	uint32_t hidden;
	uint32_t extra;
	uint32_t open;
	uint32_t bare;
};

/**
 * struct shim_slots - what a queue pair has posted
 * @zombie: in &shim_cq.zombies when the queue pair is gone or was reset
 * @flow: whose; NULL then
 * @num: as many as the provider's send queue has entries
 * @tail: the oldest that has not completed; the youngest is &shim_sq.slot
 * @used: of a zombie, what may be in the CQ
 * @err_seq: the program's work request that failed last
 * @failed_seq: the one that the provider did not take, and all behind is flushed
 * @cut_off: completions were lost with the queue pair, and so are the later ones
 * @slot: the slots, on pages of their own, which are in the map of tags
 */
struct shim_slots {
	LIST_ENTRY(shim_slots) zombie;
	struct shim_qp *flow;
	uint32_t num;
	uint64_t tail;
	struct shim_used used;
	uint64_t err_seq;
	uint64_t failed_seq;
	bool cut_off;
	struct shim_slot *slot;
};

LIST_HEAD(shim_zombies, shim_slots);

extern struct shim_map shim_tags;

struct shim_slots *shim_slots_alloc(struct shim_qp *f, uint32_t num);
void shim_slots_free(struct shim_slots *s);
struct shim_slots *shim_find_tag(uint64_t wr_id);
void shim_retire_slots(struct shim_slots *s, struct shim_slot *slot, bool failed);
void shim_comp_bury(struct shim_cq *c);
void shim_comp_abandon(struct shim_cq *c, struct shim_slots *s);

/**
 * shim_slot_hidden - does its completion say nothing to the program?
 * @slot: the slot
 *
 * Return: true if there is one that the program did not ask for.
 */
static inline bool shim_slot_hidden(const struct shim_slot *slot)
{
	const unsigned int own = SHIM_SLOT_LAST | SHIM_SLOT_ASKED;

	return (slot->flags & SHIM_SLOT_SIGNALED) && (slot->flags & own) != own;
}

#endif /* SHIM_SLOT_H */
