/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the agents of several hosts tell each other about one device, and what follows from it.
 */
#ifndef RISO_EXCHANGE_H
#define RISO_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "aimd.h"
#include "conf.h"
#include "nl.h"
#include "probe.h"

struct exchange;

/**
 * struct exchange_view - what the steering of the device knows
 * @now_ns: time
 * @latency: groups of latency flows here
 * @bulk: groups of other flows here
 * @max_rate: MaxRate, bytes per second
 * @safe_util: SafeUtil of what is sent, bytes per second
 * @chunk: bytes of a chunk, 0 for off
 */
struct exchange_view {
	uint64_t now_ns;
	uint32_t latency;
	uint32_t bulk;
	uint64_t max_rate;
	uint64_t safe_util;
	uint32_t chunk;
};

/**
 * exchange_open - begin
 * @nl: requests to the module
 * @conf: settings of the agent, which outlive it
 * @dev: the device
 *
 * Return: NULL if there is no memory for it.
 */
struct exchange *exchange_open(struct nl *nl, const struct conf *conf, const char *dev);
void exchange_close(struct exchange *ex);
/* A peer, whose probe outlives it; they are numbered from 0. */
void exchange_add_peer(struct exchange *ex, struct probe *probe);
/**
 * exchange_note - note what reference messages to a peer take now
 * @ex: the exchange
 * @peer: number of the peer
 * @current99_ns: their 99th percentile, ns; 0 for unknown
 * @target99_ns: what it should be at most, 0 for unknown
 * @not_local: the law has found that SafeUtil here does not matter
 */
void exchange_note(struct exchange *ex, unsigned int peer, uint64_t current99_ns,
		   uint64_t target99_ns, bool not_local);
/*
 * Is a miss towards this peer the peer's? If what is sent here does not fill what may be sent, and
 * the agent there says that what it is sent fills that.
 */
bool exchange_is_elsewhere(const struct exchange *ex, unsigned int peer, uint64_t now);
/*
 * Does anybody else send bulk to this host, or to whom it has latency flows to? Then it has to
 * measure, and does not measure what messages take alone.
 */
bool exchange_is_shared(const struct exchange *ex, uint64_t now);
/* Groups of latency flows of other hosts that this device answers */
uint32_t exchange_latency(const struct exchange *ex);
/* What other hosts may read, and so nobody may send, bytes per second */
uint64_t exchange_reserved(const struct exchange *ex);
/* What reference messages of the host that misses most should take, ns; 0 for unknown */
uint64_t exchange_target(const struct exchange *ex);
/*
 * Hold against the device what other hosts have measured while it was full, in terms of the target
 * here; false if that says nothing of the target: they have measured nothing, or they miss nothing
 * and this host has measured itself, and may.
 */
bool exchange_complain(const struct exchange *ex, uint64_t target99_ns, struct aimd_input *in);

/**
 * exchange_step - hear, decide and tell
 * @ex: the exchange
 * @v: what is known
 *
 * Return: when to call it again, ns.
 */
uint64_t exchange_step(struct exchange *ex, const struct exchange_view *v);

#endif /* RISO_EXCHANGE_H */
