/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Posting what a flow holds. See post.c.
 */
#ifndef SHIM_POST_H
#define SHIM_POST_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "core/chunk.h"

struct shim_piece;
struct shim_member;
struct shim_qp;

enum {
	/*
	 * Work requests that one call of the provider's post_send takes. They are on the stack,
	 * each with a struct mark.
	 */
	SHIM_BATCH = 16,
};

/**
 * struct shim_sq - how far a flow has come; copied to undo what was not posted
 * @head: position of the record that goes next
 * @cur: how much of the message at @head has been posted
 * @paid: cost bytes that were paid for the next piece of the message at @head
 * @slot: number of the slot that is taken next
 * @parts: number of pieces of the message at @head that are out; no younger ones are out
 * @direct: work requests went straight to the provider, and no completion was asked for since
 * @signaled: number of work requests that are out with a completion
 * @hidden: number of those in @signaled whose completion the program did not ask for
 * @chunks: number of pieces of cut messages that are out
 * @fetches: number of READs and atomics that are out
 * @silent: number of work requests that were posted since the last one with a completion
 * @quiet: cost bytes of the work requests in @silent
 * @cost: cost bytes of all that is out
 *
 * What is out was posted, and is not known to be complete.
 */
struct shim_sq {
	uint64_t head;
	struct riso_cursor cur;
	uint64_t paid;
	uint64_t slot;
	uint32_t parts;
	bool direct;
	uint32_t signaled;
	uint32_t hidden;
	uint32_t chunks;
	uint32_t fetches;
	uint32_t silent;
	uint64_t quiet;
	uint64_t cost;
};

void shim_make_piece(struct shim_qp *f, const struct shim_piece *p, bool open,
		     struct ibv_send_wr *wr, struct ibv_sge *sge);
void shim_count_posted(struct shim_qp *f, uint64_t pos);
void shim_queue_drive(struct shim_member *m);
void shim_urge_flow(struct shim_qp *f);
int shim_queue_publish(struct shim_qp *f, uint32_t num, bool whole);

#endif /* SHIM_POST_H */
