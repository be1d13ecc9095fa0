/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calibration: what follows from what was measured of a device. Pure functions.
 */
#ifndef RISO_CALIBRATE_H
#define RISO_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Sizes that are tried: the powers of two from 1 KB to 1 MB */
	CALIBRATE_SIZES = 11,
	/* Pieces that are out at a time, at most */
	CALIBRATE_DEPTH = 1024,
	/* What a chunk has to reach of MaxRate */
	CALIBRATE_PERCENT = 95,
	/* SafeUtil in percent of MaxRate; the figures of Documentation/results are with it */
	CALIBRATE_SAFE_PERCENT = 97,
	/* How many times the median the 99th percentile is of a host that is not quiet */
	CALIBRATE_NOISY = 10,
};

/**
 * struct calibrate_seen - what was measured
 * @p50_ns: median of reference messages without load
 * @p99_ns: 99th percentile of reference messages without load
 * @rtt_min_ns: the shortest of them
 * @rate: bytes per second of the wire with messages of 1 MB
 * @ops: small messages per second
 * @num: how many sizes of pieces were tried
 * @size: these, the smallest first: bytes, and bytes per second of the wire
 */
struct calibrate_seen {
	uint64_t p50_ns;
	uint64_t p99_ns;
	uint64_t rtt_min_ns;
	uint64_t rate;
	uint64_t ops;
	unsigned int num;
	struct {
		uint64_t bytes;
		uint64_t rate;
	} size[CALIBRATE_SIZES];
};

/**
 * struct calibrate_advice - settings
 * @max_rate: bytes per second
 * @safe_util: bytes per second
 * @max_ops: messages per second
 * @chunk: bytes, or RDMA_ISOLATE_AUTO where the chunk of "auto" is large enough
 * @target99_ns: for an agent
 * @enough: @chunk reaches CALIBRATE_PERCENT; else none does, and it is the best
 * @noisy: something else was in the way of the messages, so all of it says little
 */
struct calibrate_advice {
	uint64_t max_rate;
	uint64_t safe_util;
	uint64_t max_ops;
	uint64_t chunk;
	uint64_t target99_ns;
	bool enough;
	bool noisy;
};

/**
 * calibrate_depth - pieces that are out at a time while a size is tried
 * @wire: of each, bytes of the wire, not 0
 * @rate: of the device, bytes per second of the wire
 * @rtt_ns: of the path
 *
 * The window of the module is a piece and a half where a piece is short, and the cover.
 *
 * Return: two, and what the path itself holds; CALIBRATE_DEPTH at most.
 */
unsigned int calibrate_depth(uint64_t wire, uint64_t rate, uint64_t rtt_ns);

/**
 * calibrate_safe_util - SafeUtil that leaves a device some room
 * @max_rate: bytes per second
 *
 * Return: bytes per second, rounded down to three digits of bits per second.
 */
uint64_t calibrate_safe_util(uint64_t max_rate);

/**
 * calibrate_advise - settings that suit what was measured
 * @seen: that; @num is not 0
 *
 * Rates are rounded down to three digits, those of bits per second: a MaxRate that is
 * too high costs more than one that is too low. Target99 is rounded up to
 * microseconds. All are in the ranges that the module takes.
 */
struct calibrate_advice calibrate_advise(const struct calibrate_seen *seen);

#endif /* RISO_CALIBRATE_H */
