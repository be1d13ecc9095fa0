/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a port can send, by the speed and the width that it tells.
 */
#ifndef RISO_CORE_PORT_H
#define RISO_CORE_PORT_H

#include "types.h"

/**
 * riso_port_rate - what a port can send
 * @speed: bits of the InfiniBand specification, of which the highest counts
 * @lanes: how many
 *
 * A speed that is newer than this table counts as twice the one before, for each bit: a rate
 * that is too high does less harm than one that holds an adapter back.
 *
 * Return: bytes per second, or 0 if the port tells nothing that can be.
 */
static inline __u64 riso_port_rate(__u32 speed, int lanes)
{
	/* Mbit/s of a lane: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR */
	static const __u32 mbit[] = {
		2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000,
	};
	enum { SPEEDS = sizeof(mbit) / sizeof(*mbit), LANES_MAX = 12, BITS_MAX = 16 };
	unsigned int bit = 0;

	if (!speed || speed >> BITS_MAX || lanes < 1 || lanes > LANES_MAX)
		return 0;
	while (speed >> (bit + 1))
		bit++;
	if (bit < SPEEDS)
		return (__u64)mbit[bit] * 125000 * lanes;
	return ((__u64)mbit[SPEEDS - 1] << (bit - SPEEDS + 1)) * 125000 * lanes;
}

#endif /* RISO_CORE_PORT_H */
