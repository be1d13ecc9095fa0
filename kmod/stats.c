// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of a device and their names.
 *
 * The counters are under &riso_dev.lock, which whoever counts holds already; those
 * of observe mode are per CPU.
 */

#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/string.h>

#include "dev.h"
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
};

void riso_dev_stats(struct riso_dev *rd, u64 *vals)
{
	unsigned long flags;
	int cpu;

	spin_lock_irqsave(&rd->lock, flags);
	memcpy(vals, rd->stats, sizeof(rd->stats));
	spin_unlock_irqrestore(&rd->lock, flags);
	vals[RISO_STAT_CQE_REAPED] = atomic_long_read(&rd->reaped);
	for_each_possible_cpu(cpu) {
		const struct riso_observed *o = per_cpu_ptr(rd->observed, cpu);

		vals[RISO_STAT_OBSERVED_WRS] += o->wrs;
		vals[RISO_STAT_OBSERVED_BYTES] += o->bytes;
	}
}
