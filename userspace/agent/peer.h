/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a device has measured with one peer.
 */
#ifndef RISO_PEER_H
#define RISO_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "aimd.h"
#include "conf.h"
#include "percentile.h"
#include "probe.h"

/**
 * struct peer - whom a device measures with
 * @probe: the reference flow
 * @conf: settings of the agent
 * @period_ns: from the last reference message to the next, 0 before the first
 * @all: the long window
 * @late: the short one
 * @last_ns: when the last sample came
 */
struct peer {
	struct probe probe;
	const struct conf *conf;
	uint64_t period_ns;
	struct percentile all;
	struct percentile late;
	uint64_t last_ns;
};

/* It connects, until it is closed. False if there is no memory; it is to be closed in any case. */
bool peer_open(struct peer *p, const struct conf *conf, const char *dev,
	       const union conf_addr *addr);
void peer_close(struct peer *p);
/* Send a reference message, unless one is out; the next one is sent after @period_ns. */
void peer_send(struct peer *p, uint64_t period_ns);
/* A reference message is out: what it takes is measured. */
bool peer_is_out(const struct peer *p);
/* It is connected and answers. */
bool peer_is_there(const struct peer *p, uint64_t now);
/* What was measured until now says nothing of what comes. */
void peer_forget(struct peer *p);
/*
 * What was measured with it; false if there is nothing to go by. The message that is out
 * is a sample as soon as it keeps a twentieth of the short window from being sent.
 */
bool peer_has_measured(const struct peer *p, uint64_t now, struct aimd_input *in);

#endif /* RISO_PEER_H */
