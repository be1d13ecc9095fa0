// SPDX-License-Identifier: GPL-2.0
/*
 * Makes the timers of rdma_isolate late, as those of a loaded machine are.
 *
 * A kprobe on hrtimer_start_range_ns() adds to the time of each timer whose function belongs to
 * that module. It is for x86-64 only, where the handler knows the place of an argument.
 *
 *	insmod riso_test_late.ko us=5000
 *	echo 10000 > /sys/module/riso_test_late/parameters/us
 *
 * As long as it is there, rdma_isolate stays.
 *
 * Owns the kprobe. Its handler runs in any context that starts a timer, and takes no lock.
 */
#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/ptrace.h>

#include "target.h"

static unsigned int us;
module_param(us, uint, 0644);
MODULE_PARM_DESC(us, "us that timers are late (default 0)");

static atomic_t timers;
module_param_named(timers, timers.counter, int, 0444);
MODULE_PARM_DESC(timers, "timers that were late");

static struct module *target;

static int start_late(struct kprobe *p, struct pt_regs *regs)
{
	struct hrtimer *timer = (void *)regs_get_kernel_argument(regs, 0);

	if (!within_module((unsigned long)timer->function, target))
		return 0;
	/* the second argument, the time */
	regs->si += READ_ONCE(us) * (unsigned long)NSEC_PER_USEC;
	atomic_inc(&timers);
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "hrtimer_start_range_ns",
	.pre_handler = start_late,
};

static int __init late_init(void)
{
	int err;

	target = test_get_module("rdma_isolate");
	if (!target)
		return -ENOENT;
	err = register_kprobe(&probe);
	if (err)
		module_put(target);
	return err;
}

static void __exit late_exit(void)
{
	unregister_kprobe(&probe);
	module_put(target);
}

module_init(late_init);
module_exit(late_exit);

MODULE_DESCRIPTION("Makes the timers of rdma_isolate late");
MODULE_LICENSE("GPL");
