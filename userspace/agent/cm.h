/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections between agents.
 */
#ifndef RISO_CM_H
#define RISO_CM_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

#include "conf.h"
#include "talk.h"

/* Another version is another protocol: its agents are refused. */
enum { CM_VERSION = 2 };

#define CM_MAGIC 0x5249534fu

/**
 * struct cm_hello - what agents say when they connect; all in network byte order
 * @magic: CM_MAGIC
 * @version: CM_VERSION
 * @pad: 0
 * @rkey: of the memory that the peer may write, 0 from the one that connects
 * @size: bytes of that memory, 0 from the one that connects
 * @addr: address of that memory, 0 from the one that connects
 * @slot_addr: address of the slot that records of the peer are written to
 * @slot_rkey: of that
 * @pad2: 0
 * @epoch: what these records have to carry
 */
struct cm_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t pad;
	uint32_t rkey;
	uint32_t size;
	uint64_t addr;
	uint64_t slot_addr;
	uint32_t slot_rkey;
	uint32_t pad2;
	uint64_t epoch;
} __attribute__((packed));

enum {
	/* What a reference message writes */
	CM_BYTES = 10,
	/* What may be written, as much as the largest chunk */
	CM_MEMORY = 1 << 20,
};

/**
 * struct cm_event - what has happened to a connection
 * @type: which
 * @id: of it; of RDMA_CM_EVENT_CONNECT_REQUEST a new one
 * @status: errno or reason
 * @hello: what the other end said
 * @heard: it said something as long as that
 */
struct cm_event {
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	int status;
	struct cm_hello hello;
	bool heard;
};

/**
 * struct cm_user - the context of each rdma_cm_id
 * @event: called for each event of it; may destroy the id
 */
struct cm_user {
	void (*event)(struct cm_user *user, const struct cm_event *e);
};

/* 0 or a negative errno */
int cm_open(void);
void cm_close(void);
struct rdma_cm_id *cm_id(struct cm_user *user);
struct ibv_context *cm_device(const char *name);
/* Is this its name now? */
bool cm_is_called(struct ibv_context *ctx, const char *name);
/*
 * An address of the device to reach @dst from, that of the route to there if it is one;
 * false if it has none of this kind
 */
bool cm_source(const char *dev, const union conf_addr *dst, union conf_addr *src);
/* @place: of the slot, or NULL for none */
void cm_say(struct cm_hello *h, uint64_t addr, uint32_t rkey, const struct talk_place *place);
/* Where the other end has its slot */
void cm_place(const struct cm_hello *h, struct talk_place *place);
/* What has happened, without what belongs to librdmacm */
void cm_hear(struct cm_event *e, const struct rdma_cm_event *got);
/* NULL, or what is wrong with what the other end said */
const char *cm_wrong(const struct cm_event *e);
/* Why there is no connection, by the event that has said so */
const char *cm_why(const struct cm_event *e);

#endif /* RISO_CM_H */
