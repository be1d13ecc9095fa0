/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a device and their names.
 */
#ifndef RISO_STATS_H
#define RISO_STATS_H

#include <linux/types.h>

#include "measure.h"

/* In the order of a statistics dump. A new one goes before RISO_STAT_SIZE. */
enum riso_stat {
	RISO_STAT_WR_QUEUED,
	RISO_STAT_WR_SPLIT,
	RISO_STAT_WHOLE_POSTED,
	RISO_STAT_WHOLE_BYTES,
	RISO_STAT_CHUNK_POSTED,
	RISO_STAT_CHUNK_BYTES,
	RISO_STAT_CHUNK_COMPLETED,
	RISO_STAT_WR_COMPLETED,
	RISO_STAT_CQE_HIDDEN,
	RISO_STAT_CQE_REAPED,
	RISO_STAT_DEBT_POSTED,
	RISO_STAT_THROTTLE_CLOCK,
	RISO_STAT_THROTTLE_WINDOW,
	RISO_STAT_POST_RETRY,
	RISO_STAT_POST_REFUSED,
	RISO_STAT_QUEUE_FULL,
	RISO_STAT_FLUSHED,
	RISO_STAT_OBSERVED_WRS,
	RISO_STAT_OBSERVED_BYTES,
	RISO_STAT_TIMER_FIRED,
	RISO_STAT_LATE_NS,
	RISO_STAT_OBSERVED_TX_BYTES,
	RISO_STAT_OBSERVED_RX_BYTES,
	RISO_STAT_PASSED_WRS,
	RISO_STAT_PASSED_BYTES,
	RISO_STAT_SIZE,	/* of the first size class, and so on */
	RISO_STAT_MAX = RISO_STAT_SIZE + RISO_SIZES,
};

extern const char * const riso_stat_names[RISO_STAT_MAX];

struct riso_dev;

/**
 * riso_dev_stats - read the counters of a device
 * @rd: the device
 * @vals: RISO_STAT_MAX values, in the order of &enum riso_stat
 *
 * Context: may sleep.
 */
void riso_dev_stats(struct riso_dev *rd, u64 *vals);

#endif /* RISO_STATS_H */
