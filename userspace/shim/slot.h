/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a queue pair has posted. See slot.c.
 */
#ifndef SHIM_SLOT_H
#define SHIM_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "registry.h"

struct shim_cq;
struct shim_qp;

enum {
	/*
	 * Pieces of cut messages of a flow that may be out, and completions of a flow that the
	 * program does not see. The send queue and the CQ are made larger by as many entries.
	 */
	SHIM_SLOTS = 32,
};

enum {
	SHIM_SLOT_POSTED = 1,	/* not completed yet */
	SHIM_SLOT_SIGNALED = 2,	/* the shim asked the provider for a completion */
	SHIM_SLOT_ASKED = 4,	/* the program asked for a completion */
	SHIM_SLOT_LAST = 8,	/* last piece of its message */
	SHIM_SLOT_CHUNK = 16,	/* piece of a message that was cut */
	SHIM_SLOT_FETCH = 32,	/* takes one of the queue pair's max_rd_atomic */
	SHIM_SLOT_EXTRA = 64,	/* takes a spare entry of the CQ, struct shim_used */
};

/**
 * struct shim_slot - a posted work request; its address is the wr_id
 * @wr_id: wr_id of the program
 * @seq: number of the program's work request
 * @cost: cost bytes of the posted work request
 * @total: bytes of the whole message
 * @flags: SHIM_SLOT_*
 * @book: number of the book that it counts in
 */
struct shim_slot {
	uint64_t wr_id;
	uint64_t seq;
	uint64_t cost;
	uint32_t total;
	uint16_t flags;
	uint16_t book;
};

/**
 * struct shim_used - what the flows of a CQ take of its spare entries
 * @hidden: number of pieces that are out and have a completion which the program does not see
 * @extra: number of pieces with %SHIM_SLOT_EXTRA that are out
 * @open: number of messages of which pieces are out, and others are still to be posted
 * @bare: number of open messages that have no piece with a completion out
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
 * @zombie: entry of &shim_cq.zombies once the queue pair is gone or was reset
 * @flow: the flow; NULL once the queue pair is gone or was reset
 * @num: number of slots that may be in use, which is that of entries of the provider's send queue
 * @mask: number of slots less one; a power of two of them, so that no slot takes a division
 * @tail: number of the oldest slot that has not completed; &shim_sq.slot is behind the youngest
 * @used: entries of the CQ that a zombie may still take
 * @err_seq: number of the program's work request that failed last, UINT64_MAX if none did
 * @failed_seq: number of the program's work request that the provider did not take, so that
 *	all behind it is flushed; UINT64_MAX if there is none
 * @cut_off: completions went with the queue pair, so the program gets no later ones either
 * @slot: the slots, on pages of their own, which are in the map of tags
 */
struct shim_slots {
	LIST_ENTRY(shim_slots) zombie;
	struct shim_qp *flow;
	uint32_t num;
	uint32_t mask;
	uint64_t tail;
	struct shim_used used;
	uint64_t err_seq;
	uint64_t failed_seq;
	bool cut_off;
	struct shim_slot *slot;
};

LIST_HEAD(shim_zombies, shim_slots);

struct shim_slots *shim_slots_alloc(struct shim_qp *f, uint32_t num);
void shim_slots_free(struct shim_slots *s);
struct shim_slots *shim_find_tag(uint64_t wr_id);
void shim_retire_slots(struct shim_slots *s, struct shim_slot *slot, bool failed);
void shim_comp_bury(struct shim_cq *c);
void shim_comp_abandon(struct shim_cq *c, struct shim_slots *s);

/**
 * shim_slots_at - find a slot by its number
 * @s: the slots
 * @pos: the number, counted from the first piece of the queue pair
 *
 * Return: the slot.
 */
static inline struct shim_slot *shim_slots_at(const struct shim_slots *s, uint64_t pos)
{
	return &s->slot[pos & s->mask];
}

/**
 * shim_slot_hidden - tell whether a slot has a completion that the program does not see
 * @slot: the slot
 *
 * Return: true if so.
 */
static inline bool shim_slot_hidden(const struct shim_slot *slot)
{
	const unsigned int own = SHIM_SLOT_LAST | SHIM_SLOT_ASKED;

	return (slot->flags & SHIM_SLOT_SIGNALED) && (slot->flags & own) != own;
}

#endif /* SHIM_SLOT_H */
