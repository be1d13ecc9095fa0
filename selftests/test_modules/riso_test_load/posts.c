// SPDX-License-Identifier: GPL-2.0
/*
 * How many small messages CPUs post and poll, each with a queue pair and a CQ of its own.
 *
 * One thread for each queue pair, bound to a CPU, posts a message and polls until it has ended.
 * The process that writes reads their counts meanwhile, and sleeps. Each thread writes its own
 * cache line only.
 */

#include <linux/cache.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "load.h"

/* messages after which a thread lets others have the CPU */
#define POSTS_STRETCH	256

/**
 * struct poster - a thread that posts
 * @load: what it belongs to
 * @qp: its queue pair
 * @task: the thread
 * @posts: messages that have ended
 */
struct poster {
	struct load *load;
	struct load_qp *qp;
	struct task_struct *task;
	u64 posts;
} ____cacheline_aligned;

static int post_one(struct poster *p)
{
	struct ib_wc wc;
	int n;

	n = load_post(p->load, p->qp, false, p->load->arg.small);
	if (n)
		return n;
	while (!(n = ib_poll_cq(p->qp->cq, 1, &wc))) {
		cpu_relax();
		cond_resched();
		if (kthread_should_stop())
			return -ETIMEDOUT;
	}
	return n < 0 || wc.status != IB_WC_SUCCESS ? -EIO : 0;
}

static int post_all(void *arg)
{
	struct poster *p = arg;
	int err = 0;

	while (!err && !kthread_should_stop()) {
		err = post_one(p);
		WRITE_ONCE(p->posts, p->posts + 1);
		if (p->posts % POSTS_STRETCH == 0)
			cond_resched();
	}
	if (err)
		WRITE_ONCE(p->load->failed, err);
	/* Whoever stops it waits until it asks to be stopped. */
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

static int setup_poster(struct load *l, struct poster *p, u32 i, unsigned int cpu)
{
	struct load_qp *q = &l->bulk[i];
	struct ib_cq *cq = load_create_cq(l, NULL, 2 * LOAD_COSTS);
	int err;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	q->cq = cq;
	q->own_cq = true;
	l->nbulk = i + 1;
	err = load_setup_qp(l, q, 0, cq);
	if (err)
		return err;
	p->load = l;
	p->qp = q;
	p->task = kthread_create(post_all, p, "riso_post/%u", cpu);
	if (IS_ERR(p->task)) {
		err = PTR_ERR(p->task);
		p->task = NULL;
		return err;
	}
	kthread_bind(p->task, cpu);
	return 0;
}

static u64 sum_posts(const struct load *l, const struct poster *p)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < l->arg.qps; i++)
		sum += READ_ONCE(p[i].posts);
	return sum;
}

static void tell_posts(struct load *l, const struct poster *p)
{
	u32 i;

	for (i = 0; i < l->arg.windows; i++) {
		u64 was = sum_posts(l, p);
		u64 began = ktime_get_ns();

		msleep(l->arg.window_ms);
		load_tell("%s{\"ns\": %llu, \"posts\": %llu}", i ? ", " : "{\"windows\": [",
			  ktime_get_ns() - began, sum_posts(l, p) - was);
	}
	load_tell("]}\n");
}

int load_run_posts(struct load *l)
{
	struct poster *p;
	u32 i;
	int err = 0;

	if (l->arg.qps > num_online_cpus())
		return -EINVAL;
	p = kcalloc(l->arg.qps, sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	for (i = 0; !err && i < l->arg.qps; i++)
		err = setup_poster(l, &p[i], i, cpumask_nth(i, cpu_online_mask));
	if (!err) {
		for (i = 0; i < l->arg.qps; i++)
			wake_up_process(p[i].task);
		msleep(l->arg.wait_ms);
		tell_posts(l, p);
	}
	for (i = 0; i < l->arg.qps; i++)
		if (p[i].task)
			kthread_stop(p[i].task);
	kfree(p);
	return err ? : READ_ONCE(l->failed);
}
