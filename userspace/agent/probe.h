/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The reference flow to one peer.
 */
#ifndef RISO_PROBE_H
#define RISO_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "cm.h"
#include "loop.h"
#include "talk.h"

/**
 * struct probe - the reference flow from one device to one peer
 * @user: where events of the connection go
 * @dev: the device
 * @peer: where to
 * @name: of the peer, as text
 * @sample: called with each latency, ns
 * @spin_ns: for how long to look for the completion before waiting for it
 * @id: the connection, NULL if there is none
 * @retry: for the next try
 * @back_off: until that, ns
 * @told: what was logged of the last try
 * @ready: messages can be sent
 * @cq: where they complete
 * @stamped: the same, with the time by the clock of the device; NULL if it has none
 * @clock_khz: of that
 * @clock_mask: its bits
 * @posted_ticks: @posted_ns by that
 * @chan: and tell so
 * @done: the channel as a source
 * @mr: the memory that @bytes are sent from
 * @bytes: what is sent
 * @addr: where the peer has it written to
 * @rkey: key of that memory of the peer
 * @talk: records to the peer and from it
 * @posted_ns: when the one that is out was posted, 0 if none is
 * @sent: how many were posted
 * @lost: how many of them did not complete
 */
struct probe {
	struct cm_user user;
	const char *dev;
	union conf_addr peer;
	char name[INET6_ADDRSTRLEN];
	void (*sample)(struct probe *p, uint64_t ns);
	uint64_t spin_ns;
	struct rdma_cm_id *id;
	struct source retry;
	uint64_t back_off;
	const char *told;
	bool ready;
	struct ibv_cq *cq;
	struct ibv_cq_ex *stamped;
	uint64_t clock_khz;
	uint64_t clock_mask;
	uint64_t posted_ticks;
	struct ibv_comp_channel *chan;
	struct source done;
	struct ibv_mr *mr;
	char bytes[CM_BYTES];
	uint64_t addr;
	uint32_t rkey;
	struct talk talk;
	uint64_t posted_ns;
	uint64_t sent;
	uint64_t lost;
};

/* 0 or a negative errno; then it connects, and again, until it is closed; @done is -1. */
int probe_open(struct probe *p);
void probe_close(struct probe *p);
/* Write a record to the peer; 0, or the errors of talk_say(), after which it may be tried again. */
int probe_say(struct probe *p, const struct peer_record *r, const uint8_t *key);
/* Send one, unless one is out already. */
void probe_send(struct probe *p, uint64_t now);

#endif /* RISO_PROBE_H */
