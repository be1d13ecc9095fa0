// SPDX-License-Identifier: GPL-2.0
/*
 * Makes the timers of another module late, as a loaded machine does.
 *
 * A kprobe on hrtimer_start_range_ns() adds to the time of each timer whose function belongs to
 * that module. The time and the module are parameters. It is for x86-64 only, where the handler
 * knows the place of an argument.
 *
 *	insmod riso_test_late.ko module=rdma_isolate us=5000
 *	echo 10000 > /sys/module/riso_test_late/parameters/us
 *
 * Remove it before the other module, as it remembers the addresses of functions.
 *
 * Owns the kprobe, and under seen_lock what is known of functions and @delayed. The handler runs
 * in any context that starts a timer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/spinlock.h>
#include <linux/string.h>

/* functions that are remembered: more than a small machine starts timers of */
#define LATE_SEEN	32

static char *module = "rdma_isolate";
module_param(module, charp, 0444);
MODULE_PARM_DESC(module, "module whose timers are late (default rdma_isolate)");

static unsigned int us;
module_param(us, uint, 0644);
MODULE_PARM_DESC(us, "us that they are late (default 0)");

static unsigned long delayed;
module_param(delayed, ulong, 0444);
MODULE_PARM_DESC(delayed, "timers that were late");

static DEFINE_RAW_SPINLOCK(seen_lock);
static struct {
	const void *function;
	bool ours;
} seen[LATE_SEEN];
static unsigned int num_seen;
static char in_module[MODULE_NAME_LEN + 3];

/* Looking a symbol up takes long, so the newest answers are kept. */
static bool is_ours(const void *function)
{
	char name[KSYM_SYMBOL_LEN];
	unsigned int i;

	for (i = 0; i < LATE_SEEN; i++)
		if (seen[i].function == function)
			return seen[i].ours;
	snprintf(name, sizeof(name), "%ps", function);
	i = num_seen++ % LATE_SEEN;
	seen[i].function = function;
	seen[i].ours = strstr(name, in_module);
	return seen[i].ours;
}

static int start_late(struct kprobe *p, struct pt_regs *regs)
{
	struct hrtimer *timer = (void *)regs_get_kernel_argument(regs, 0);
	unsigned long flags;

	raw_spin_lock_irqsave(&seen_lock, flags);
	if (is_ours(timer->function)) {
		/* the second argument, the time */
		regs->si += READ_ONCE(us) * (unsigned long)NSEC_PER_USEC;
		delayed++;
	}
	raw_spin_unlock_irqrestore(&seen_lock, flags);
	return 0;
}

NOKPROBE_SYMBOL(start_late);

static struct kprobe probe = {
	.symbol_name = "hrtimer_start_range_ns",
	.pre_handler = start_late,
};

static int __init late_init(void)
{
	/* "%ps" makes "function [module]" of a module's function. */
	snprintf(in_module, sizeof(in_module), "[%s]", module);
	return register_kprobe(&probe);
}

static void __exit late_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(late_init);
module_exit(late_exit);

MODULE_DESCRIPTION("Makes the timers of another module late");
MODULE_LICENSE("GPL");
