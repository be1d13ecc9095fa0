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
	/* Work requests given to the provider at once. */
	SHIM_BATCH = 8,
};

/**
 * struct shim_sq - how far a flow has come; copied to undo what was not posted
 * @head: the record to go next
 * @cur: how much of it has gone
 * @paid: what was paid for its next piece already
 * @slot: the slot to be taken next
 * @parts: of the message at @head, the pieces that are out; the youngest of all
 * @direct: work requests went straight to the provider, and no completion was asked for since
 * @signaled: posted with a completion
 * @hidden: of those, the ones that the program did not ask for
 * @chunks: pieces of messages that were cut
 * @fetches: READs and atomics
 * @silent: posted since the last one with a completion
 * @quiet: cost bytes of these
 * @cost: cost bytes
 *
 * From @signaled on: of what is posted and not known to be complete.
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
void shim_queue_drain(struct shim_qp *f, bool goes);
int shim_queue_publish(struct shim_qp *f, uint32_t num, bool whole);

#endif /* SHIM_POST_H */
