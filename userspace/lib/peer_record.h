/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The record: what an agent tells another about the traffic between their two hosts.
 *
 * A record is full state, so one that is lost heals with the next. An agent writes it by RDMA
 * WRITE into memory of its peer, who may look while half of it has arrived. A tag over all of
 * it tells that, and, with a key that both have, that it comes from an agent of theirs.
 *
 * Each connection has an epoch, a random number that the end that reads chooses. A record of
 * another epoch is of another connection, and one whose sequence has been seen is not news. So
 * nothing that was written once can be written again later, whatever the clocks of the hosts say.
 *
 * Functions on bytes: no clock, no I/O, no lock.
 */
#ifndef RISO_PEER_RECORD_H
#define RISO_PEER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* A record as it is written, bytes: one packet on any path */
	RECORD_BYTES = 96,
	/* A key, bytes */
	RECORD_KEY = 32,
	/* Another version is another layout. */
	RECORD_VERSION = 1,
};

/* A rate without a limit */
#define RECORD_UNLIMITED UINT64_MAX

/**
 * struct peer_record - what a host tells a peer
 * @to: address of the peer, IPv4 as mapped in IPv6
 * @epoch: of the connection, chosen by the peer
 * @seq: number of the record in its epoch, from 1
 * @latency_to: groups of latency flows here that send to the peer, at most 65535
 * @bulk_to: groups of bandwidth and throughput flows here that send to the peer, at most 65535
 * @latency_from: groups of latency flows here that read from the peer, at most 65535
 * @bulk_from: groups of bandwidth and throughput flows here that read from the peer, at most
 *	65535
 * @used_to: what these sent lately, bytes per second
 * @used_from: what these read lately, bytes per second
 * @may_send: what the peer may send here, bytes per second, or RECORD_UNLIMITED
 * @may_read: what the peer may read from here, bytes per second, or RECORD_UNLIMITED
 * @wants_to: some of what is to be sent to the peer is held back
 * @wants_from: some of what is to be read from the peer is held back
 * @cut: there are latency flows here, so messages from the peer, or that it reads, have to be cut
 * @misses: messages of this host to the peer miss their target, and those to others do not
 * @window_ns: for how long a message that was late is in @current99_ns, ns
 * @current99_ns: 99th percentile of reference messages to the peer, ns; 0 for none
 * @target99_ns: what it should be at most, ns
 * @lease_ns: how long all this holds, ns
 *
 * Rates are told in units of 1000 bytes per second, rounded up.
 */
struct peer_record {
	uint8_t to[16];
	uint64_t epoch;
	uint64_t seq;
	uint32_t latency_to;
	uint32_t bulk_to;
	uint32_t latency_from;
	uint32_t bulk_from;
	uint64_t used_to;
	uint64_t used_from;
	uint64_t may_send;
	uint64_t may_read;
	bool wants_to;
	bool wants_from;
	bool cut;
	bool misses;
	uint64_t window_ns;
	uint64_t current99_ns;
	uint64_t target99_ns;
	uint64_t lease_ns;
};

/**
 * peer_record_write - write a record for a peer
 * @r: what to tell; what is larger than fits is told as the largest that does
 * @key: RECORD_KEY bytes, or NULL for a tag that anybody can make
 * @bytes: RECORD_BYTES, filled in
 */
void peer_record_write(const struct peer_record *r, const uint8_t *key, uint8_t *bytes);

/**
 * peer_record_read - read what a peer has written
 * @bytes: RECORD_BYTES; the peer may write to them meanwhile
 * @key: as peer_record_write() was given
 * @to: address of this host
 * @epoch: of the connection
 * @seq: the last record that was read, 0 for none
 * @r: filled in, if it is news
 * @wrong: set to NULL, or to what is wrong with it; half a record looks like one with a wrong key
 *
 * Return: true if there is a record that is news.
 */
bool peer_record_read(const uint8_t *bytes, const uint8_t *key, const uint8_t *to, uint64_t epoch,
		      uint64_t seq, struct peer_record *r, const char **wrong);

#endif /* RISO_PEER_RECORD_H */
