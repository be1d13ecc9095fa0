// SPDX-License-Identifier: GPL-2.0
/*
 * The load: large messages that are posted again and again, beside small ones.
 *
 * Large messages are posted by the process that writes at first, and then by the handlers of
 * their completions, in softirq: &load.out is atomic, and one CQ is polled by one CPU at a
 * time. Small ones are posted by a timer and end in a handler, both in hard interrupt context
 * on CPUs of their own: &load.began tells one of the other.
 */

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/sched/signal.h>
#include <linux/tick.h>

#include "../compat.h"
#include "load.h"

static ktime_t us_of(u32 us)
{
	return ns_to_ktime((u64)us * NSEC_PER_USEC);
}

/* A signaled WRITE of as many bytes as @sge says */
void load_init_wr(const struct load *l, struct load_qp *q, struct ib_sge *sge,
		  struct ib_rdma_wr *wr)
{
	sge->addr = l->a.dma;
	sge->lkey = q->qp->pd->local_dma_lkey;
	*wr = (struct ib_rdma_wr) {
		.wr = {
			.wr_cqe = &q->cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = sge,
			.num_sge = 1,
		},
		.remote_addr = l->b.dma,
		.rkey = q->peer->pd->unsafe_global_rkey,
	};
}

int load_post(struct load *l, struct load_qp *q, bool read, u32 len)
{
	struct ib_sge sge = { .length = len };
	struct ib_rdma_wr wr;

	load_init_wr(l, q, &sge, &wr);
	if (read)
		wr.wr.opcode = IB_WR_RDMA_READ;
	return ib_post_send(q->qp, &wr.wr, NULL);
}

static void post_large(struct load *l, struct load_qp *q)
{
	int err;

	atomic_inc(&l->out);
	err = load_post(l, q, l->arg.read, l->arg.len);
	if (err) {
		atomic_dec(&l->out);
		WRITE_ONCE(l->failed, err);
	}
}

void load_large_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct load_qp *q = container_of(wc->wr_cqe, struct load_qp, cqe);
	struct load *l = q->load;

	if (wc->status != IB_WC_SUCCESS)
		WRITE_ONCE(l->failed, wc->status);
	else
		WRITE_ONCE(q->bytes, q->bytes + l->arg.len);
	if (!READ_ONCE(l->stop) && !READ_ONCE(l->failed))
		post_large(l, q);
	atomic_dec(&l->out);
}

/* Those that were not sent since this one was out would have waited for its end as well. */
static void keep_sample(struct load *l, u64 took)
{
	u64 every = l->arg.every_us * (u64)NSEC_PER_USEC;

	for (;; took -= every) {
		if (l->nsamples == LOAD_MAX_SAMPLES)
			return;
		l->samples[l->nsamples++] = min_t(u64, took, U32_MAX);
		if (took <= every)
			return;
	}
}

/* In hard interrupt context: how late softirqs are is not measured. */
static void poll_small(struct irq_work *work)
{
	struct load *l = container_of(work, struct load, poll);
	struct ib_wc wc;

	ib_req_notify_cq(l->small.cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(l->small.cq, 1, &wc) > 0) {
		if (wc.status != IB_WC_SUCCESS)
			WRITE_ONCE(l->failed, wc.status);
		else if (READ_ONCE(l->record))
			keep_sample(l, ktime_get_ns() - l->began);
		/* Pairs with the acquire in send_small(). */
		smp_store_release(&l->began, 0);
	}
}

/* rxe has the CQ locked here. */
static void small_done(struct ib_cq *cq, void *context)
{
	struct load *l = context;

	if (cq->device->ops.driver_id == RDMA_DRIVER_RXE)
		irq_work_queue(&l->poll);
	else
		poll_small(&l->poll);
}

static enum hrtimer_restart send_small(struct hrtimer *timer)
{
	struct load *l = container_of(timer, struct load, timer);

	/* Pairs with the release in poll_small(). */
	if (!smp_load_acquire(&l->began)) {
		l->began = ktime_get_ns();
		if (load_post(l, &l->small, false, l->arg.small)) {
			WRITE_ONCE(l->failed, -EIO);
			WRITE_ONCE(l->began, 0);
		}
	}
	hrtimer_forward_now(timer, us_of(l->arg.every_us));
	return READ_ONCE(l->stop) ? HRTIMER_NORESTART : HRTIMER_RESTART;
}

void load_init_traffic(struct load *l)
{
	init_irq_work(&l->poll, poll_small);
	hrtimer_setup(&l->timer, send_small, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
}

static u64 sum_bytes(const struct load *l, u32 group)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < l->nbulk; i++)
		if (i / l->arg.qps == group)
			sum += READ_ONCE(l->bulk[i].bytes);
	return sum;
}

static void sleep_ms(u32 ms)
{
	ktime_t t = ms_to_ktime(ms);

	set_current_state(TASK_INTERRUPTIBLE);
	schedule_hrtimeout(&t, HRTIMER_MODE_REL);
}

static u64 get_idle_us(void)
{
	u64 sum = 0;
	int cpu;

	for_each_online_cpu(cpu)
		sum += get_cpu_idle_time_us(cpu, NULL);
	return sum;
}

static void tell_windows(struct load *l)
{
	u32 i, g;

	for (i = 0; i < l->arg.windows && !READ_ONCE(l->failed) && !signal_pending(current); i++) {
		u64 was[2] = { sum_bytes(l, 0), sum_bytes(l, 1) };
		u64 idle = get_idle_us();
		u64 began = ktime_get_ns();

		sleep_ms(l->arg.window_ms);
		load_tell("%s{\"ns\": %llu", i ? ", " : "", ktime_get_ns() - began);
		for (g = 0; g < l->arg.groups; g++)
			load_tell(", \"bytes%u\": %llu", g, sum_bytes(l, g) - was[g]);
		load_tell(", \"idle_us\": %llu}", get_idle_us() - idle);
	}
}

static int drain(struct load *l)
{
	u32 ms;

	WRITE_ONCE(l->stop, true);
	hrtimer_cancel(&l->timer);
	for (ms = 0; atomic_read(&l->out) || READ_ONCE(l->began); ms++) {
		if (ms == LOAD_END_MS)
			return -ETIMEDOUT;
		usleep_range(1000, 2000);
	}
	return READ_ONCE(l->failed) ? -EIO : 0;
}

int load_run_traffic(struct load *l)
{
	u32 i, k;
	int err;

	if (l->arg.every_us) {
		struct ib_cq *cq = load_create_cq(l, small_done, 16);

		if (IS_ERR(cq))
			return PTR_ERR(cq);
		l->small.cq = cq;
		l->small.own_cq = true;
		err = load_setup_qp(l, &l->small, LOAD_SMALL, cq);
		if (err)
			return err;
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	}
	for (; l->nbulk < l->arg.groups * l->arg.qps; l->nbulk++) {
		err = load_setup_qp(l, &l->bulk[l->nbulk], l->nbulk / l->arg.qps, NULL);
		if (err) {
			l->nbulk++;
			return err;
		}
	}
	err = load_setup_mute(l);
	if (err)
		return err;
	if (l->arg.every_us)
		hrtimer_start(&l->timer, us_of(l->arg.every_us), HRTIMER_MODE_REL_HARD);
	for (k = 0; k < max(l->arg.depth, l->arg.depth2); k++)
		for (i = 0; i < l->nbulk; i++)
			if (k < (i < l->arg.qps ? l->arg.depth : l->arg.depth2))
				post_large(l, &l->bulk[i]);
	if (l->arg.wait_ms)
		sleep_ms(l->arg.wait_ms);
	WRITE_ONCE(l->record, true);
	load_tell("{\"windows\": [");
	tell_windows(l);
	err = drain(l);
	load_sort(l->samples, l->nsamples);
	load_tell("], \"samples\": %u", l->nsamples);
	load_tell(", \"p50_ns\": %u", load_percentile(l->samples, l->nsamples, 500));
	load_tell(", \"p99_ns\": %u", load_percentile(l->samples, l->nsamples, 990));
	load_tell(", \"p99_9_ns\": %u}\n", load_percentile(l->samples, l->nsamples, 999));
	return err;
}
