// SPDX-License-Identifier: GPL-2.0
/*
 * Creates and destroys queue pairs, each with a completion queue of its own, as storage
 * does that reconnects.
 *
 *	insmod riso_test_reconnect.ko dev=rxe0 rounds=1000
 *
 * The parameters tell afterwards what creating a queue pair took: "sleeps", how often the
 * task slept in it, in all rounds; "longest_us", the longest of them. A task that waits for
 * nobody sleeps never, however busy the machine is. "may_wait_for_io" and "waits_for_no_io"
 * count the allocations of rdma_isolate meanwhile, by what a lack of memory would lead to.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <rdma/ib_verbs.h>

static char *dev = "rxe0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "name of the RDMA device");

static unsigned int rounds = 1000;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "queue pairs to create");

static unsigned long sleeps;
module_param(sleeps, ulong, 0444);
MODULE_PARM_DESC(sleeps, "times that the task slept while it created them");

static unsigned long longest_us;
module_param(longest_us, ulong, 0444);
MODULE_PARM_DESC(longest_us, "longest time that creating one took, microseconds");

static atomic_t may_wait_for_io;
module_param_named(may_wait_for_io, may_wait_for_io.counter, int, 0444);
MODULE_PARM_DESC(may_wait_for_io, "queues and tags whose memory might have waited for I/O");

static atomic_t waits_for_no_io;
module_param_named(waits_for_no_io, waits_for_no_io.counter, int, 0444);
MODULE_PARM_DESC(waits_for_no_io, "queues and tags whose memory did not");

static int rr_allocates(struct kprobe *probe, struct pt_regs *regs)
{
	if (current->flags & PF_MEMALLOC_NOIO)
		atomic_inc(&waits_for_no_io);
	else
		atomic_inc(&may_wait_for_io);
	return 0;
}

static struct kprobe rr_queue = {
	.symbol_name = "riso_ring_alloc",
	.pre_handler = rr_allocates,
};

static struct kprobe rr_tags = {
	.symbol_name = "riso_tag_alloc",
	.pre_handler = rr_allocates,
};

static struct kprobe *rr_probes[] = { &rr_queue, &rr_tags };

static void rr_event(struct ib_event *event, void *context)
{
}

static int rr_round(struct ib_device *ibdev, struct ib_pd *pd)
{
	struct ib_qp_init_attr attr = {
		.event_handler = rr_event,
		.cap = {
			.max_send_wr = 64, .max_recv_wr = 16,
			.max_send_sge = 4, .max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	unsigned long slept;
	struct ib_cq *cq;
	struct ib_qp *qp;
	ktime_t began;

	cq = ib_alloc_cq(ibdev, NULL, 128, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	began = ktime_get();
	slept = current->nvcsw;
	qp = ib_create_qp(pd, &attr);
	sleeps += current->nvcsw - slept;
	longest_us = max_t(unsigned long, longest_us, ktime_us_delta(ktime_get(), began));
	if (!IS_ERR(qp))
		ib_destroy_qp(qp);
	ib_free_cq(cq);
	return PTR_ERR_OR_ZERO(qp);
}

static int __init rr_init(void)
{
	struct ib_device *ibdev;
	struct ib_pd *pd;
	unsigned int i;
	int err = 0;

	ibdev = ib_device_get_by_name(dev, RDMA_DRIVER_UNKNOWN);
	if (!ibdev)
		return -ENODEV;
	pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(pd)) {
		err = PTR_ERR(pd);
		goto put;
	}
	err = register_kprobes(rr_probes, ARRAY_SIZE(rr_probes));
	if (err)
		goto free_pd;
	for (i = 0; !err && i < rounds; i++)
		err = rr_round(ibdev, pd);
	unregister_kprobes(rr_probes, ARRAY_SIZE(rr_probes));
free_pd:
	ib_dealloc_pd(pd);
put:
	ib_device_put(ibdev);
	return err;
}

static void __exit rr_exit(void)
{
}

module_init(rr_init);
module_exit(rr_exit);
MODULE_DESCRIPTION("Storage that reconnects, for the tests of rdma_isolate");
MODULE_LICENSE("GPL");
