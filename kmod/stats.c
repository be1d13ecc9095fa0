// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of a device and their names.
 *
 * The counters are under &riso_dev.lock, which whoever counts holds already; those
 * of observe mode are per CPU. Readers walk the groups under RCU, and may sleep in between.
 */

#include <linux/kernel.h>
#include <linux/string.h>

#include "dev.h"
#include "group.h"
#include "passed.h"
#include "stats.h"

/* Where groups go all the time the fourth sum has to do. What it lacks the next look finds. */
enum { RISO_STAT_TRIES = 4 };

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

/*
 * Copy the counters, and add those of the groups that are not among them. Returns false if a
 * group has gone meanwhile, which may be in neither.
 */
static bool sum_counters(struct riso_dev *rd, u64 *vals)
{
	struct riso_passed sum;
	struct riso_group *g;
	unsigned long id;
	int visits = 0;
	bool same;
	u64 folds;

	spin_lock_irq(&rd->lock);
	memcpy(vals, rd->stats, sizeof(rd->stats));
	folds = rd->folds;
	spin_unlock_irq(&rd->lock);
	rcu_read_lock();
	xa_for_each(&rd->groups, id, g) {
		if (!READ_ONCE(g->folded)) {
			riso_passed_sum(READ_ONCE(g->passed), &sum);
			vals[RISO_STAT_PASSED_WRS] += sum.wrs;
			vals[RISO_STAT_PASSED_BYTES] += sum.bytes[RISO_TX] + sum.bytes[RISO_RX];
		}
		riso_group_pass_over(&visits);
	}
	rcu_read_unlock();
	spin_lock_irq(&rd->lock);
	same = rd->folds == folds;
	spin_unlock_irq(&rd->lock);
	return same;
}

void riso_dev_stats(struct riso_dev *rd, u64 *vals)
{
	int tries = RISO_STAT_TRIES;
	struct riso_traffic seen;

	while (!sum_counters(rd, vals) && --tries)
		cond_resched();
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
