// SPDX-License-Identifier: GPL-2.0
/*
 * The operations of an ib_device: how hooks take their place, and leave it.
 *
 * Owns the pointers in &ib_device.ops; nothing else of ours writes them. All users of the
 * RDMA core call through these pointers without a lock, so a pointer is exchanged
 * in one step, and what it led to may still run, or be about to run, until every
 * RCU reader is through (interrupts, softirqs) and every task that was preempted
 * between loading the pointer and returning has slept or left (Tasks RCU; Debian's
 * kernels are preemptible). Hooks that sleep are under SRCU of the device as well, since
 * a task that sleeps in one is quiescent for Tasks RCU.
 *
 * Another module may put a hook of its own on top, which leads to ours. Ours then stays,
 * as does all that it looks at, until that module has gone. Meanwhile it passes on.
 *
 * From load on, creation, changes and destruction of QPs and CQs are hooked, to
 * register them. Posting and polling are hooked while a device is observed or
 * enabled: polling comes first and goes last, so that no completion with our tag can be
 * polled around us.
 *
 * Everything here runs in process context and may sleep. Of one device one call runs at a time.
 */

#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/srcu.h>

#include "dev.h"
#include "hook.h"
#include "ops.h"

/* How often to look whether another module has gone, ms: an operator waits for it. */
enum { RISO_COVERED_MS = 100 };

/* Nobody has the pointers of before: for hooks that do not sleep. */
static void wait_for_atomic_hooks(void)
{
	synchronize_rcu();
	synchronize_rcu_tasks();
}

/*
 * Nobody is in a hook that was taken out before, or about to enter it. Between its first
 * instruction and srcu_read_lock() a hook does not sleep, so Tasks RCU covers that.
 */
static void wait_for_hooks(struct riso_dev *rd)
{
	wait_for_atomic_hooks();
	synchronize_srcu(&rd->srcu);
	synchronize_rcu_tasks();
}

#define OP(name) offsetof(struct ib_device_ops, name)

static void *op_of(const struct ib_device_ops *ops, size_t op)
{
	return *(void *const *)((const void *)ops + op);
}

/* Put @to in the place of @from. True if it is there now. */
static bool swap_op(struct riso_dev *rd, size_t op, void *from, void *to)
{
	void **slot = (void *)&rd->ibdev->ops + op;
	void *was = cmpxchg(slot, from, to);

	return was == from || was == to;
}

/* Hooks are installed in this order and removed in the reverse one. */
static const size_t life_ops[] = {
	OP(destroy_cq), OP(post_destroy_cq), OP(destroy_qp), OP(drain_sq),
	OP(modify_qp), OP(create_cq), OP(create_qp),
};

static const size_t poll_ops[] = { OP(req_notify_cq), OP(poll_cq) };

static const size_t post_ops[] = { OP(post_send) };

static unsigned int bit_of(size_t op)
{
	return op / sizeof(void *);
}

/* Has another module put a hook of its own on top, that leads to ours? */
static bool is_below(const struct riso_dev *rd, size_t op)
{
	void *now = op_of(&rd->ibdev->ops, op);

	return test_bit(bit_of(op), rd->hooked) && now != op_of(&riso_hook_ops, op) &&
	       now != op_of(&rd->orig, op);
}

/*
 * What the provider does not have stays so. False if a hook of another module that does not lead to
 * ours is in a place.
 */
static bool swap_in(struct riso_dev *rd, const size_t *ops, size_t num)
{
	bool all = true;
	size_t i;

	for (i = 0; i < num; i++) {
		void *orig = op_of(&rd->orig, ops[i]);

		if (!orig || is_below(rd, ops[i]))
			continue;
		if (swap_op(rd, ops[i], orig, op_of(&riso_hook_ops, ops[i])))
			set_bit(bit_of(ops[i]), rd->hooked);
		else
			all = false;
	}
	return all;
}

/* A hook that another module's leads to stays. */
static void restore(struct riso_dev *rd, const size_t *ops, size_t num)
{
	while (num--) {
		void *hook = op_of(&riso_hook_ops, ops[num]);

		if (test_bit(bit_of(ops[num]), rd->hooked) &&
		    swap_op(rd, ops[num], hook, op_of(&rd->orig, ops[num])))
			clear_bit(bit_of(ops[num]), rd->hooked);
	}
}

/*
 * Another module may have read ours just before it was taken out, and have put its own there since:
 * that leads to ours, too. @was are the operations that were hooked before; who read one has stored
 * his by now.
 */
static void note_late(struct riso_dev *rd, const unsigned long *was)
{
	unsigned int bit;

	for_each_set_bit(bit, was, RISO_OPS)
		if (op_of(&rd->ibdev->ops, bit * sizeof(void *)) !=
		    op_of(&rd->orig, bit * sizeof(void *)))
			set_bit(bit, rd->hooked);
}

/**
 * riso_ops_attach - register what is created from now on
 * @rd: a device that nobody else knows yet
 *
 * Context: may sleep, but not for long: the RDMA core holds its locks.
 * Return: 0; -EBUSY when another device has its place; -ENOMEM.
 */
int riso_ops_attach(struct riso_dev *rd)
{
	int err;

	if (*riso_hook_entry(rd->index))
		return -EBUSY;
	err = init_srcu_struct(&rd->srcu);
	if (err)
		return err;
	WRITE_ONCE(*riso_hook_entry(rd->index), rd);
	/* A hook must see the device that it is called for. */
	synchronize_rcu();
	swap_in(rd, life_ops, ARRAY_SIZE(life_ops));
	return 0;
}

/* Is a hook of ours in its place, or below another module's? */
static bool is_called(const struct riso_dev *rd)
{
	/* Nobody but us has the device any more. */
	if (kref_read(&rd->ibdev->dev.kobj.kref) == 1)
		return false;
	return !bitmap_empty(rd->hooked, RISO_OPS);
}

/**
 * riso_ops_is_covered - do hooks of another module lead to ours?
 * @rd: the device
 *
 * Return: true if ours can neither be taken out nor go.
 */
bool riso_ops_is_covered(const struct riso_dev *rd)
{
	unsigned int bit;

	if (!is_called(rd))
		return false;
	for_each_set_bit(bit, rd->hooked, RISO_OPS)
		if (is_below(rd, bit * sizeof(void *)))
			return true;
	return false;
}

/**
 * riso_ops_detach - the device is as it was
 * @rd: a device with neither posting nor polling hooked, as far as we can help
 *
 * Waits for modules whose hooks lead to ours to take theirs out.
 *
 * Context: may sleep for seconds.
 */
void riso_ops_detach(struct riso_dev *rd)
{
	DECLARE_BITMAP(was, RISO_OPS);

	if (riso_ops_is_covered(rd))
		dev_warn(&rd->ibdev->dev,
			 "waiting for another module to take its hooks out\n");
	do {
		while (riso_ops_is_covered(rd))
			msleep(RISO_COVERED_MS);
		bitmap_copy(was, rd->hooked, RISO_OPS);
		restore(rd, post_ops, ARRAY_SIZE(post_ops));
		restore(rd, poll_ops, ARRAY_SIZE(poll_ops));
		restore(rd, life_ops, ARRAY_SIZE(life_ops));
		wait_for_hooks(rd);
		note_late(rd, was);
	} while (is_called(rd));
	WRITE_ONCE(*riso_hook_entry(rd->index), NULL);
	cleanup_srcu_struct(&rd->srcu);
}

/**
 * riso_ops_stop - undo riso_ops_start()
 * @rd: a device with no tag and no reaped completion left
 *
 * Context: may sleep for seconds.
 */
void riso_ops_stop(struct riso_dev *rd)
{
	DECLARE_BITMAP(was, RISO_OPS);

	bitmap_copy(was, rd->hooked, RISO_OPS);
	restore(rd, post_ops, ARRAY_SIZE(post_ops));
	wait_for_atomic_hooks();
	restore(rd, poll_ops, ARRAY_SIZE(poll_ops));
	wait_for_atomic_hooks();
	note_late(rd, was);
}

/**
 * riso_ops_start - see every post and every completion from now on
 * @rd: the device
 *
 * Context: may sleep for seconds.
 * Return: 0, or -EBUSY if a hook of another module that does not lead to ours is there. When it
 * goes it would put back what it has found, and tags would be polled around us.
 */
int riso_ops_start(struct riso_dev *rd)
{
	bool all = swap_in(rd, poll_ops, ARRAY_SIZE(poll_ops));

	wait_for_atomic_hooks();
	if (all && swap_in(rd, post_ops, ARRAY_SIZE(post_ops)))
		return 0;
	riso_ops_stop(rd);
	return -EBUSY;
}
