/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of rdma-isolate-calibrate share.
 */
#ifndef RISO_MEASURE_LINK_H
#define RISO_MEASURE_LINK_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "calibrate.h"
#include "conf.h"

enum {
	/* Connections that the load is spread over */
	LINKS = 4,
	/* Work requests that each has room for */
	LINK_WRS = CALIBRATE_DEPTH / LINKS,
	/* The peer does not answer any more. */
	GIVE_UP_S = 15,
};

/**
 * struct link - the way to the agent of another host
 * @dev: the device that is measured
 * @peer: where to, with its port
 * @name: of the peer, as text
 * @qp: one for each connection
 * @cq: where all messages complete
 * @chan: and tell so
 * @mr: what is sent, CM_MEMORY bytes
 * @addr: where the peer has it written to, CM_MEMORY bytes
 * @rkey: key of that memory of the peer
 * @mtu: of the path
 */
struct link {
	const char *dev;
	union conf_addr peer;
	char name[INET6_ADDRSTRLEN];
	struct ibv_qp *qp[LINKS];
	struct ibv_cq *cq;
	struct ibv_comp_channel *chan;
	struct ibv_mr *mr;
	uint64_t addr;
	uint32_t rkey;
	uint32_t mtu;
};

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Says what comes now, and how long it takes at least. */
void begin(const char *what, unsigned int seconds);

/* Ends the program when it cannot connect, after telling why. */
void link_open(struct link *l);
/* Ends the program when a message fails, after telling why. */
void measure(struct link *l, struct calibrate_seen *seen);

#endif /* RISO_MEASURE_LINK_H */
