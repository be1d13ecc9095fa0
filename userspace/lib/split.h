/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may send how much to one receiver: the receiver's pool, and how senders split it.
 *
 * Functions on numbers: no clock, no I/O, no allocation, no lock. The same rule splits what a
 * host sends in answer to READs: its readers are the senders then. Extends section 4.4 of the
 * paper (Justitia, NSDI '22), whose own rule is SPLIT_LAW_PAPER: each bulk group of any sender
 * gets MaxRate / (L + B + T), used or not.
 *
 * SPLIT_LAW_MAXMIN is weighted max-min fair: a sender gets what it demands, but no more than its
 * weight's part of what those leave who demand less. So what one does not use others may.
 */
#ifndef RISO_SPLIT_H
#define RISO_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Senders to one receiver, and the receiver itself: an agent has up to 256 guests. */
	SPLIT_SENDERS = 257,
	/*
	 * A sender that is not backlogged demands 5/4 of what it used, so that it can grow by a
	 * quarter from one record to the next ...
	 */
	SPLIT_GROW_NUM = 5,
	SPLIT_GROW_DEN = 4,
	/* ... and two chunks in 10 ms, so that it can begin. */
	SPLIT_BEGIN_CHUNKS = 2,
	SPLIT_BEGIN_HZ = 100,
};

/* A demand without a bound */
#define SPLIT_UNBOUNDED UINT64_MAX

enum split_law {
	SPLIT_LAW_MAXMIN,
	SPLIT_LAW_PAPER,
};

/**
 * struct split_sender - one host that sends to the receiver
 * @groups: its groups of bandwidth and throughput flows (B + T), its weight; 0 gets nothing
 * @demand: what it would like to send, bytes per second; see split_demand()
 * @grant: what it may send, bytes per second; filled in
 */
struct split_sender {
	uint32_t groups;
	uint64_t demand;
	uint64_t grant;
};

/**
 * split_demand - tell what a sender would like to send
 * @used: what it sent lately, bytes per second
 * @backlogged: it holds work that waits for its grant
 * @chunk: bytes of a chunk
 *
 * Return: bytes per second, or SPLIT_UNBOUNDED for one that is backlogged.
 */
uint64_t split_demand(uint64_t used, bool backlogged, uint32_t chunk);

/**
 * split_pool - tell what all senders of bulk together may send to a receiver
 * @safe: SafeUtil that its law would like, bytes per second
 * @max_rate: MaxRate of the receiver, bytes per second
 * @latency: latency groups that send to it (L)
 * @groups: groups of bandwidth and throughput flows of all senders
 *
 * The guarantee of section 4.2 of the paper: at least @groups / (@latency + @groups) of MaxRate.
 *
 * Return: bytes per second; MaxRate without latency groups.
 */
uint64_t split_pool(uint64_t safe, uint64_t max_rate, uint32_t latency, uint32_t groups);

/**
 * split_grant - split a pool
 * @law: how
 * @s: the senders; each gets its grant
 * @num: how many there are, at most SPLIT_SENDERS
 * @pool: bytes per second; 0 to 10^12
 * @latency: latency groups that send to the receiver, for SPLIT_LAW_PAPER
 *
 * The grants do not depend on the order of the senders, except for less than a byte per second
 * for each of them.
 */
void split_grant(enum split_law law, struct split_sender *s, uint32_t num, uint64_t pool,
		 uint32_t latency);

#endif /* RISO_SPLIT_H */
