/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a message costs on the wire.
 *
 * The kernel module, the verbs shim and the unit tests compile this same file.
 */
#ifndef RISO_CORE_COST_H
#define RISO_CORE_COST_H

#include "types.h"

/**
 * riso_wire_bytes - what a message costs on the wire
 * @payload: bytes of the message
 * @mtu: path MTU in bytes, not 0
 * @header: bytes around the payload of each packet
 *
 * A message without payload is one packet.
 *
 * Return: bytes.
 */
static inline __u64 riso_wire_bytes(__u64 payload, __u32 mtu, __u32 header)
{
	__u64 packets = payload ? (payload + mtu - 1) / mtu : 1;

	return payload + packets * header;
}

/* Ethernet, IPv4, UDP, BTH and ICRC of each packet; RETH of each message. */
enum {
	RISO_PACKET_HEADER = 14 + 20 + 8 + 12 + 4,
	RISO_MESSAGE_HEADER = 16,
};

/**
 * riso_piece_wire - what a chunk, or a message that goes out whole, is counted as
 * @payload: its bytes
 * @mtu: path MTU in bytes, not 0
 *
 * Return: bytes, of which max-rate is how many there can be in a second.
 */
static inline __u64 riso_piece_wire(__u64 payload, __u32 mtu)
{
	return riso_wire_bytes(payload, mtu, RISO_PACKET_HEADER) +
	       RISO_MESSAGE_HEADER;
}

#endif /* RISO_CORE_COST_H */
