// SPDX-License-Identifier: GPL-2.0
/*
 * The workqueue of the module.
 *
 * Owns it from load to unload. Whoever is in a context that may not sleep leaves to it what
 * has to.
 */

#include "work.h"

enum {
	/* Flows that drain are looked at every 10 ms. */
	RISO_DRAIN_POLL_MS = 10,
};

struct workqueue_struct *riso_wq;

/**
 * riso_work_init - make the workqueue
 *
 * Storage may wait for what its work does, and memory for storage: it has a thread of its
 * own for when there is no memory.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int riso_work_init(void)
{
	riso_wq = alloc_workqueue("rdma_isolate", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return riso_wq ? 0 : -ENOMEM;
}

/**
 * riso_work_exit - wait for all work, and free the workqueue
 *
 * Context: may sleep.
 */
void riso_work_exit(void)
{
	destroy_workqueue(riso_wq);
}

/**
 * riso_work_settle - let the drain work look at a device soon
 * @rd: the device
 *
 * It tells listeners what they are owed, and sees to it that flows that drain get there.
 *
 * Context: any.
 */
void riso_work_settle(struct riso_dev *rd)
{
	queue_delayed_work(riso_wq, &rd->drain, msecs_to_jiffies(RISO_DRAIN_POLL_MS));
}
