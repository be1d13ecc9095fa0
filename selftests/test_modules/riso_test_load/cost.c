// SPDX-License-Identifier: GPL-2.0
/*
 * What a post and a poll cost, with interrupts off.
 *
 * Runs in the process that writes, and sleeps.
 */

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/math64.h>

#include "load.h"

/* The module looks twice, at most a quarter of a second apart, before it lets a CQ go. */
#define LOAD_REST_MS	1000

static int poll_own(struct ib_cq *cq, u32 want, u32 *costs)
{
	u64 end = ktime_get_ns() + LOAD_END_MS * (u64)NSEC_PER_MSEC;
	unsigned long flags;
	struct ib_wc wc;
	u32 got = 0;
	u64 began;
	int n;

	while (got < want) {
		local_irq_save(flags);
		began = ktime_get_ns();
		n = ib_poll_cq(cq, 1, &wc);
		began = ktime_get_ns() - began;
		local_irq_restore(flags);
		if (n < 0 || (n && wc.status != IB_WC_SUCCESS))
			return -EIO;
		if (n && costs)
			costs[got] = began;
		got += n;
		if (!n && ktime_get_ns() > end)
			return -ETIMEDOUT;
		if (!n)
			usleep_range(50, 100);
	}
	return 0;
}

/* Post one chain, and poll for it; what it costs is told by the adapter's clock. */
static int measure_cost(struct load *l, struct load_qp *q, struct ib_cq *cq, u32 at)
{
	struct ib_sge sge = { .length = l->arg.small };
	struct ib_rdma_wr wr[16];
	u32 n = l->arg.chain, i;
	unsigned long flags;
	u64 began;
	int err;

	for (i = 0; i < n; i++) {
		load_init_wr(l, q, &sge, &wr[i]);
		wr[i].wr.next = i + 1 < n ? &wr[i + 1].wr : NULL;
	}
	local_irq_save(flags);
	began = ktime_get_ns();
	err = ib_post_send(q->qp, &wr[0].wr, NULL);
	l->samples[at] = div_u64(ktime_get_ns() - began, n);
	local_irq_restore(flags);
	if (err)
		return err;
	/* The adapter has all of it when it is polled for. */
	usleep_range(100, 200);
	return poll_own(cq, n, l->samples + LOAD_COSTS + at * n);
}

int load_run_cost(struct load *l)
{
	struct load_qp *q = &l->small;
	u32 rounds = LOAD_COSTS, i;
	u32 *polls = l->samples + LOAD_COSTS;
	int err;

	q->cq = load_create_cq(l, NULL, 2 * LOAD_COSTS);
	if (IS_ERR(q->cq)) {
		err = PTR_ERR(q->cq);
		q->cq = NULL;
		return err;
	}
	q->own_cq = true;
	err = load_setup_qp(l, q, l->arg.managed ? 0 : LOAD_SMALL, q->cq);
	if (err)
		return err;
	if (l->arg.shared) {
		l->nbulk = 1;
		err = load_setup_qp(l, &l->bulk[0], l->arg.managed ? LOAD_SMALL : 0, q->cq) ? :
		      measure_cost(l, &l->bulk[0], q->cq, 0);
		if (err)
			return err;
		/* Nothing of that queue pair is in the CQ any more. */
		msleep(LOAD_REST_MS);
	}
	for (i = 0; i < rounds; i++) {
		err = measure_cost(l, q, q->cq, i);
		if (err)
			return err;
	}
	load_sort(l->samples, rounds);
	load_sort(polls, rounds * l->arg.chain);
	load_tell("{\"post_ns\": %u, \"poll_ns\": %u}\n", load_percentile(l->samples, rounds, 500),
		  load_percentile(polls, rounds * l->arg.chain, 500));
	return 0;
}
