// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of a device and their names.
 *
 * The counters are under &riso_dev.lock, which whoever counts holds already; those
 * of observe mode are per CPU.
 */

#include <linux/kernel.h>
#include <linux/string.h>

#include "dev.h"
#include "passed.h"
#include "stats.h"

const char * const riso_stat_names[RISO_STAT_MAX] = {
	[RISO_STAT_WR_QUEUED] = "wr_queued",
	[RISO_STAT_WR_SPLIT] = "wr_split",
	[RISO_STAT_WHOLE_POSTED] = "whole_posted",
	[RISO_STAT_WHOLE_BYTES] = "whole_bytes",
	[RISO_STAT_CHUNK_POSTED] = "chunk_posted",
	[RISO_STAT_CHUNK_BYTES] = "chunk_bytes",
	[RISO_STAT_CHUNK_COMPLETED] = "chunk_completed",
	[RISO_STAT_WR_COMPLETED] = "wr_completed",
	[RISO_STAT_CQE_HIDDEN] = "cqe_hidden",
	[RISO_STAT_CQE_REAPED] = "cqe_reaped",
	[RISO_STAT_DEBT_POSTED] = "debt_posted",
	[RISO_STAT_THROTTLE_CLOCK] = "throttle_clock",
	[RISO_STAT_THROTTLE_WINDOW] = "throttle_window",
	[RISO_STAT_POST_RETRY] = "post_retry",
	[RISO_STAT_POST_REFUSED] = "post_refused",
	[RISO_STAT_QUEUE_FULL] = "queue_full",
	[RISO_STAT_FLUSHED] = "flushed",
	[RISO_STAT_OBSERVED_WRS] = "observed_wrs",
	[RISO_STAT_OBSERVED_BYTES] = "observed_bytes",
	[RISO_STAT_TIMER_FIRED] = "timer_fired",
	[RISO_STAT_LATE_NS] = "late_ns",
	[RISO_STAT_OBSERVED_TX_BYTES] = "observed_tx_bytes",
	[RISO_STAT_OBSERVED_RX_BYTES] = "observed_rx_bytes",
	[RISO_STAT_PASSED_WRS] = "passed_wrs",
	[RISO_STAT_PASSED_BYTES] = "passed_bytes",
	[RISO_STAT_SIZE + RISO_SIZE_64] = "size_64",
	[RISO_STAT_SIZE + RISO_SIZE_256] = "size_256",
	[RISO_STAT_SIZE + RISO_SIZE_1K] = "size_1k",
	[RISO_STAT_SIZE + RISO_SIZE_4K] = "size_4k",
	[RISO_STAT_SIZE + RISO_SIZE_16K] = "size_16k",
	[RISO_STAT_SIZE + RISO_SIZE_64K] = "size_64k",
	[RISO_STAT_SIZE + RISO_SIZE_256K] = "size_256k",
	[RISO_STAT_SIZE + RISO_SIZE_1M] = "size_1m",
	[RISO_STAT_SIZE + RISO_SIZE_MORE] = "size_more",
};

void riso_dev_stats(struct riso_dev *rd, u64 *vals)
{
	struct riso_traffic seen;
	struct riso_passed sum;
	struct riso_group *g;
	unsigned long flags;
	unsigned long id;
	unsigned int seq;

	rcu_read_lock();
	do {
		seq = read_seqcount_begin(&rd->cfg_seq);
		spin_lock_irqsave(&rd->lock, flags);
		memcpy(vals, rd->stats, sizeof(rd->stats));
		spin_unlock_irqrestore(&rd->lock, flags);
		xa_for_each(&rd->groups, id, g) {
			if (READ_ONCE(g->folded))
				continue;
			riso_passed_sum(READ_ONCE(g->passed), &sum);
			vals[RISO_STAT_PASSED_WRS] += sum.wrs;
			vals[RISO_STAT_PASSED_BYTES] += sum.bytes[RISO_TX] + sum.bytes[RISO_RX];
		}
	} while (read_seqcount_retry(&rd->cfg_seq, seq));
	rcu_read_unlock();
	vals[RISO_STAT_CQE_REAPED] = atomic_long_read(&rd->reaped);
	riso_observe_total(rd, &seen);
	vals[RISO_STAT_OBSERVED_WRS] = seen.n[RISO_SEEN_WRS];
	vals[RISO_STAT_OBSERVED_TX_BYTES] = seen.n[RISO_SEEN_TX];
	vals[RISO_STAT_OBSERVED_RX_BYTES] = seen.n[RISO_SEEN_RX];
	vals[RISO_STAT_OBSERVED_BYTES] = seen.n[RISO_SEEN_TX] +
					 seen.n[RISO_SEEN_RX];
	memcpy(&vals[RISO_STAT_SIZE], &seen.n[RISO_SEEN_SIZE],
	       RISO_SIZES * sizeof(*vals));
}
