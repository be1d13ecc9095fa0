/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What two agents tell each other over a connection: a record each way.
 */
#ifndef RISO_TALK_H
#define RISO_TALK_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "peer_record.h"

/* What a record says of its lease is believed up to that, ns. */
#define TALK_LEASE_MAX UINT64_C(10000000000)

/* wr_id of what is written to the peer: no other work request of the agent has one. */
#define TALK_WR_ID 1

/**
 * struct talk_place - where an end reads, as it tells the other one
 * @addr: address of its slot
 * @rkey: of that
 * @epoch: what records for it have to carry
 */
struct talk_place {
	uint64_t addr;
	uint32_t rkey;
	uint64_t epoch;
};

/**
 * struct talk_excuse - for how long nothing is held back for a peer, as it did not help it
 * @until_ns: until then
 * @span_ns: for how long the last time, 0 for never
 */
struct talk_excuse {
	uint64_t until_ns;
	uint64_t span_ns;
};

/**
 * struct talk - one end of a connection
 * @slot_mr: of @slot, which the peer may write
 * @out_mr: of @out, which it may not
 * @slot: the record of the peer, while it writes there or not
 * @out: the record that is written to the peer
 * @epoch: of records that come
 * @heard: sequence of the last one that was read, 0 for none
 * @peer: where to write, with rkey 0 as long as that is not known
 * @said: sequence of the last record that was posted, 0 for none
 * @is_out: it has not completed
 * @doubted: something was wrong with the slot when it was read last
 * @last: the last record that came
 * @last_ns: when, 0 for none so far
 * @told: the last record that was posted
 * @told_ns: when, 0 for none so far
 * @excused: what the peer has measured is not to be mended here
 */
struct talk {
	struct ibv_mr *slot_mr;
	struct ibv_mr *out_mr;
	uint8_t slot[RECORD_BYTES];
	uint8_t out[RECORD_BYTES];
	uint64_t epoch;
	uint64_t heard;
	struct talk_place peer;
	uint64_t said;
	bool is_out;
	bool doubted;
	struct peer_record last;
	uint64_t last_ns;
	struct peer_record told;
	uint64_t told_ns;
	struct talk_excuse excused;
};

/* NULL, or what went wrong; it may be closed in any case. */
const char *talk_open(struct talk *t, struct ibv_pd *pd);
/* Nothing if it is not open. Before the queue pair's protection domain goes */
void talk_close(struct talk *t);
/* Where the peer may write */
void talk_tell_place(const struct talk *t, struct talk_place *place);
/* The peer has said where it reads. */
void talk_learn_place(struct talk *t, const struct talk_place *place);
/*
 * Write a record to the peer, with the next sequence and the peer's epoch. Returns 0, EBUSY while
 * one is out, ENOTCONN as long as its place is not known, or the error of the post.
 */
int talk_say(struct talk *t, struct ibv_qp *qp, const struct peer_record *r, const uint8_t *key,
	     uint64_t now);
/* What talk_say() has posted is complete. */
void talk_said(struct talk *t);
/*
 * Read what the peer has written to the host of address @to. Returns NULL, or what is wrong with
 * it if that was so the time before, too: half of a record may have arrived.
 */
const char *talk_hear(struct talk *t, const uint8_t *to, const uint8_t *key, uint64_t now);
/* Does what was heard last hold? */
bool talk_holds(const struct talk *t, uint64_t now);

#endif /* RISO_TALK_H */
