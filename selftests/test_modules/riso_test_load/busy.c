// SPDX-License-Identifier: GPL-2.0
/*
 * What messages cost the CPU from their posts to the last completion.
 *
 * A thread that runs when nothing else can counts, and so tells how long the CPU had nothing to
 * do. The rest is what the messages cost: the posts, the adapter's and the module's interrupts
 * and timers, the polls and the wake-up of who waits. One message is waited for before the next
 * one is posted, and what comes after its completion is counted with the next one. There is one
 * CPU only, so that nothing runs elsewhere.
 *
 * The process that writes runs the messages, and sleeps. The handler of completions runs in
 * softirq: &struct busy.left belongs to it while messages are out. &struct busy.count is
 * written by the thread, and read while that does not run.
 */

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <uapi/linux/sched.h>
#include <uapi/linux/sched/types.h>

#include "load.h"

/* rounds that are measured: one tick among them adds less than a thousandth */
#define BUSY_ROUNDS	128
/* counts that are timed before: 50 us on a machine that takes 1 ns for an instruction */
#define BUSY_TIMED	10000
/* counts after which the thread looks whether it shall end, some 100 us */
#define BUSY_STRETCH	20000

/**
 * struct busy - messages of one queue pair, and the thread that counts
 * @load: what it belongs to
 * @qp: queue pair that posts
 * @cqe: for the last one of each chain
 * @done: all chains have ended
 * @left: chains that have not ended
 * @failed: status of one that failed
 * @wr: work requests of a round
 * @sge: their memory
 * @thread: counts while nothing else runs
 * @ready: @timed_ns is known
 * @count: how often it has counted
 * @timed_ns: what it takes to count BUSY_TIMED times
 */
struct busy {
	struct load *load;
	struct load_qp *qp;
	struct ib_cqe cqe;
	struct completion done;
	u32 left;
	int failed;
	struct ib_rdma_wr *wr;
	struct ib_sge sge;
	struct task_struct *thread;
	struct completion ready;
	u64 count;
	u64 timed_ns;
};

static noinline void count_until(struct busy *b, u32 max)
{
	while (max-- && !need_resched())
		WRITE_ONCE(b->count, b->count + 1);
}

/* True if nobody wanted the CPU meanwhile. */
static bool time_counts(struct busy *b)
{
	u64 was = b->count;
	u64 began;

	local_irq_disable();
	began = ktime_get_ns();
	count_until(b, BUSY_TIMED);
	b->timed_ns = ktime_get_ns() - began;
	local_irq_enable();
	return b->count - was == BUSY_TIMED;
}

static int count_idle(void *arg)
{
	struct busy *b = arg;

	while (!time_counts(b))
		cond_resched();
	complete(&b->ready);
	while (!kthread_should_stop()) {
		count_until(b, BUSY_STRETCH);
		cond_resched();
	}
	return 0;
}

static int start_counting(struct busy *b)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_IDLE,
	};
	int err;

	init_completion(&b->ready);
	b->thread = kthread_create(count_idle, b, "riso_idle");
	if (IS_ERR(b->thread)) {
		err = PTR_ERR(b->thread);
		b->thread = NULL;
		return err;
	}
	err = sched_setattr_nocheck(b->thread, &attr);
	if (err)
		return err;
	wake_up_process(b->thread);
	return wait_for_completion_interruptible(&b->ready);
}

static void chain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct busy *b = container_of(wc->wr_cqe, struct busy, cqe);

	if (wc->status != IB_WC_SUCCESS)
		b->failed = wc->status;
	if (!--b->left)
		complete(&b->done);
}

static int make_messages(struct busy *b)
{
	const struct load_args *arg = &b->load->arg;
	u32 i;

	b->wr = kvcalloc(arg->count, sizeof(*b->wr), GFP_KERNEL);
	if (!b->wr)
		return -ENOMEM;
	b->sge.length = arg->size;
	for (i = 0; i < arg->count; i++) {
		struct ib_rdma_wr *wr = &b->wr[i];
		bool last = i + 1 == arg->count || (i + 1) % arg->chain == 0;

		load_init_wr(b->load, b->qp, &b->sge, wr);
		wr->wr.wr_cqe = &b->cqe;
		wr->wr.send_flags = last ? IB_SEND_SIGNALED : 0;
		wr->wr.next = last ? NULL : &wr[1].wr;
	}
	return 0;
}

static int run_round(struct busy *b)
{
	const struct load_args *arg = &b->load->arg;
	u32 i;
	int err;

	b->left = DIV_ROUND_UP(arg->count, arg->chain);
	reinit_completion(&b->done);
	for (i = 0; i < arg->count; i += arg->chain) {
		err = ib_post_send(b->qp->qp, &b->wr[i].wr, NULL);
		if (err)
			return err;
	}
	if (!wait_for_completion_timeout(&b->done, msecs_to_jiffies(LOAD_END_MS)))
		return -ETIMEDOUT;
	return b->failed ? -EIO : 0;
}

static int run_rounds(struct busy *b)
{
	u64 warm = ktime_get_ns() + b->load->arg.wait_ms * (u64)NSEC_PER_MSEC;
	u64 began, count, wall, idle;
	u32 warmed = 0;
	int i, err;

	do {
		err = run_round(b);
		if (err)
			return err;
		warmed++;
	} while (ktime_get_ns() < warm);
	count = READ_ONCE(b->count);
	began = ktime_get_ns();
	for (i = 0; i < BUSY_ROUNDS; i++) {
		err = run_round(b);
		if (err)
			return err;
	}
	wall = ktime_get_ns() - began;
	idle = div_u64((READ_ONCE(b->count) - count) * b->timed_ns, BUSY_TIMED);
	load_tell("{\"count\": %u, \"rounds\": %u", b->load->arg.count, warmed + BUSY_ROUNDS);
	load_tell(", \"busy_ns\": %llu", div_u64(wall - min(wall, idle), BUSY_ROUNDS));
	load_tell(", \"wall_ns\": %llu}\n", div_u64(wall, BUSY_ROUNDS));
	return 0;
}

int load_run_busy(struct load *l)
{
	struct busy b = { .load = l, .qp = &l->bulk[0], .cqe.done = chain_done };
	int err;

	if (num_online_cpus() > 1)
		return -EOPNOTSUPP;
	init_completion(&b.done);
	l->nbulk = 1;
	/* A latency flow that sends nothing is enough for bulk to be cut. */
	err = load_setup_qp(l, b.qp, 0, NULL) ? :
	      load_setup_qp(l, &l->small, LOAD_SMALL, NULL) ? :
	      make_messages(&b) ? : start_counting(&b) ? : run_rounds(&b);
	if (b.thread)
		kthread_stop(b.thread);
	kvfree(b.wr);
	return err;
}
