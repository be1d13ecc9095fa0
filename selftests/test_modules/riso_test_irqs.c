// SPDX-License-Identifier: GPL-2.0
/*
 * Tells for how long rdma_isolate keeps interrupts off, with what it calls meanwhile.
 *
 * Three things are timed: its timer, which runs in hard interrupt context; posts and polls
 * that are called with interrupts off; and what it does under a lock that turns them off, from
 * the moment when it has the lock. The probes cost time themselves. What those of locks take is
 * measured when the module is loaded, and subtracted where locks are taken in what is timed. What
 * is seen of nothing is measured as well, for locks and for functions, and told beside the times.
 * It is for x86-64 only, where the handlers know the places of arguments.
 *
 *	insmod riso_test_irqs.ko
 *	cat /sys/module/riso_test_irqs/parameters/timer_ns
 *
 * As long as it is there, rdma_isolate stays.
 *
 * Owns the probes, and what they have seen: all of it belongs to the CPU, while interrupts are
 * off; the longest times belong to all CPUs, and one of two that come at once may be lost.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <asm/processor-flags.h>

#include "target.h"

/* locks that are taken to know what the probes cost */
#define IRQS_TIMED	1000

static unsigned long timer_ns;
module_param(timer_ns, ulong, 0644);
MODULE_PARM_DESC(timer_ns, "longest time that the timer took, ns");

static unsigned long call_ns;
module_param(call_ns, ulong, 0644);
MODULE_PARM_DESC(call_ns, "longest post or poll that was called with interrupts off, ns");

static unsigned long lock_ns;
module_param(lock_ns, ulong, 0644);
MODULE_PARM_DESC(lock_ns, "longest time under a lock that turned interrupts off, ns");

static unsigned long pair_ns;
module_param(pair_ns, ulong, 0444);
MODULE_PARM_DESC(pair_ns, "what the probes add to taking a lock and releasing it, ns");

static unsigned long empty_lock_ns;
module_param(empty_lock_ns, ulong, 0444);
MODULE_PARM_DESC(empty_lock_ns, "what is measured of a lock that nothing is done under, ns");

static unsigned long empty_call_ns;
module_param(empty_call_ns, ulong, 0444);
MODULE_PARM_DESC(empty_call_ns,
		 "what is measured of a function that does nothing, a timer's or another, ns");

/**
 * struct span - a time that goes on with interrupts off
 * @began: when it began, 0 if none goes on
 * @locks: locks that were released before
 */
struct span {
	u64 began;
	u64 locks;
};

static struct module *target;
static DEFINE_PER_CPU(struct span, held);
static DEFINE_PER_CPU(u64, released);

static void begin_span(struct span *s)
{
	s->locks = __this_cpu_read(released);
	s->began = ktime_get_mono_fast_ns();
}

static void end_span(struct span *s, unsigned long *longest)
{
	u64 ns = ktime_get_mono_fast_ns() - s->began;

	ns -= min(ns, (__this_cpu_read(released) - s->locks) * READ_ONCE(pair_ns));
	s->began = 0;
	if (ns > READ_ONCE(*longest))
		WRITE_ONCE(*longest, ns);
}

static unsigned long nothing_ns;

/* --- the timer, posts and polls --- */

/* A return that is not 0 says that the end is of no interest. */
static int function_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!irqs_disabled())
		return 1;
	begin_span((struct span *)ri->data);
	return 0;
}

static int timer_ends(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	end_span((struct span *)ri->data, &timer_ns);
	return 0;
}

static int call_ends(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	end_span((struct span *)ri->data, &call_ns);
	return 0;
}

static int nothing_ends(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	end_span((struct span *)ri->data, &nothing_ns);
	return 0;
}

/* What the probes of functions are tried on */
static noinline void do_nothing(void)
{
	barrier();
}

/* --- locks --- */

/* At its entry a function has the address that it returns to on top of its stack. */
static int lock_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	unsigned long caller = *(unsigned long *)kernel_stack_pointer(regs);

	return irqs_disabled() || !within_module(caller, target);
}

static int lock_ends(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	begin_span(this_cpu_ptr(&held));
	return 0;
}

static int unlock_irq(struct kprobe *p, struct pt_regs *regs)
{
	struct span *s = this_cpu_ptr(&held);

	if (s->began)
		end_span(s, &lock_ns);
	__this_cpu_inc(released);
	return 0;
}

static int unlock_irqrestore(struct kprobe *p, struct pt_regs *regs)
{
	/* the second argument, the flags */
	if (regs->si & X86_EFLAGS_IF)
		return unlock_irq(p, regs);
	__this_cpu_inc(released);
	return 0;
}

#define FUNCTION(name, end) {						\
	.kp.symbol_name = name,						\
	.entry_handler = function_begins,				\
	.handler = end,							\
	.data_size = sizeof(struct span),				\
}

#define LOCK(name) {							\
	.kp.symbol_name = name,						\
	.entry_handler = lock_begins,					\
	.handler = lock_ends,						\
}

static struct kretprobe returns[] = {
	FUNCTION("rdma_isolate:timer_fired", timer_ends),
	FUNCTION("rdma_isolate:hook_post_send", call_ends),
	FUNCTION("rdma_isolate:hook_poll_cq", call_ends),
	FUNCTION("riso_test_irqs:do_nothing", nothing_ends),
	LOCK("_raw_spin_lock_irqsave"),
	LOCK("_raw_spin_lock_irq"),
};

static struct kprobe unlocks[] = {
	{ .symbol_name = "_raw_spin_unlock_irqrestore", .pre_handler = unlock_irqrestore },
	{ .symbol_name = "_raw_spin_unlock_irq", .pre_handler = unlock_irq },
};

static void unregister_all(int num_returns, int num_unlocks)
{
	while (num_unlocks--)
		unregister_kprobe(&unlocks[num_unlocks]);
	while (num_returns--)
		unregister_kretprobe(&returns[num_returns]);
}

static int register_all(void)
{
	int r, u, err;

	for (r = 0; r < ARRAY_SIZE(returns); r++) {
		err = register_kretprobe(&returns[r]);
		if (err) {
			pr_err("no probe of %s\n", returns[r].kp.symbol_name);
			unregister_all(r, 0);
			return err;
		}
	}
	for (u = 0; u < ARRAY_SIZE(unlocks); u++) {
		err = register_kprobe(&unlocks[u]);
		if (err) {
			unregister_all(r, u);
			return err;
		}
	}
	return 0;
}

/* ns that it takes to take a lock and to release it, where interrupts are off */
static u64 time_pair(void)
{
	DEFINE_SPINLOCK(lock);
	unsigned long flags, inner;
	u64 ns;
	int i;

	local_irq_save(flags);
	ns = ktime_get_mono_fast_ns();
	for (i = 0; i < IRQS_TIMED; i++) {
		spin_lock_irqsave(&lock, inner);
		spin_unlock_irqrestore(&lock, inner);
	}
	ns = ktime_get_mono_fast_ns() - ns;
	local_irq_restore(flags);
	return div_u64(ns, IRQS_TIMED);
}

/* What is measured of a lock of our own, nearly always */
static u64 time_empty_lock(void)
{
	struct module *of = target;
	DEFINE_SPINLOCK(lock);
	unsigned long flags;
	u64 least = U64_MAX;
	int i;

	WRITE_ONCE(target, THIS_MODULE);
	for (i = 0; i < IRQS_TIMED; i++) {
		lock_ns = 0;
		spin_lock_irqsave(&lock, flags);
		spin_unlock_irqrestore(&lock, flags);
		if (lock_ns)
			least = min_t(u64, least, lock_ns);
	}
	WRITE_ONCE(target, of);
	return least;
}

/* What is measured of a function of our own, nearly always */
static u64 time_empty_call(void)
{
	unsigned long flags;
	u64 least = U64_MAX;
	int i;

	for (i = 0; i < IRQS_TIMED; i++) {
		nothing_ns = 0;
		local_irq_save(flags);
		do_nothing();
		local_irq_restore(flags);
		if (nothing_ns)
			least = min_t(u64, least, nothing_ns);
	}
	return least;
}

static int __init irqs_init(void)
{
	u64 bare = time_pair();
	int err;

	target = test_get_module("rdma_isolate");
	if (!target)
		return -ENOENT;
	err = register_all();
	if (err) {
		module_put(target);
		return err;
	}
	pair_ns = time_pair() - bare;
	empty_lock_ns = time_empty_lock();
	empty_call_ns = time_empty_call();
	timer_ns = 0;
	call_ns = 0;
	lock_ns = 0;
	return 0;
}

static void __exit irqs_exit(void)
{
	unregister_all(ARRAY_SIZE(returns), ARRAY_SIZE(unlocks));
	module_put(target);
}

module_init(irqs_init);
module_exit(irqs_exit);

MODULE_DESCRIPTION("Tells for how long rdma_isolate keeps interrupts off");
MODULE_LICENSE("GPL");
