/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What other agents tell about a device, as far as it is believed.
 */
#ifndef RISO_HEAR_H
#define RISO_HEAR_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "conf.h"
#include "split.h"
#include "survey.h"
#include "talk.h"

enum {
	/* Agents that have connected to this one: beside them this host has a share. */
	CALLERS = SPLIT_SENDERS - 1,
};

/**
 * struct caller - an agent that has connected to this one
 * @talk: the connection's; like @id it is there until the step ends
 * @id: the connection
 * @addr: its address, and which of this host it has connected to
 * @record: what it has told, as far as it is believed
 */
struct caller {
	struct talk *talk;
	struct rdma_cm_id *id;
	uint8_t addr[2][SURVEY_ADDR];
	struct peer_record record;
};

/**
 * struct hear - what is heard of a device
 * @conf: settings of the agent
 * @dev: the device
 * @device: its context, which is only compared
 * @device_ns: when to look that up again
 * @caller: whose records hold, in this step
 * @num: how many
 * @latency: groups of latency flows that they have to this host
 * @wrong_ns: not before then is logged what is wrong with a record
 */
struct hear {
	const struct conf *conf;
	const char *dev;
	struct ibv_context *device;
	uint64_t device_ns;
	struct caller caller[CALLERS];
	unsigned int num;
	uint32_t latency;
	uint64_t wrong_ns;
};

/* Read what the other end of a connection has told last, and log what is wrong with that. */
void hear_record(struct hear *h, struct rdma_cm_id *id, struct talk *talk, uint64_t now);
/* Read what all have told who are connected to the device, and note whose records hold. */
void hear_callers(struct hear *h, uint64_t now);
/* Is it that of a caller? */
bool hear_has(const struct hear *h, const struct talk *talk);
/* Those who have called may leave from here on. */
void hear_forget_callers(struct hear *h);

#endif /* RISO_HEAR_H */
