/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only place that looks at the kernel version. Everything here has one
 * meaning on all supported kernels (6.1 and later).
 */
#ifndef RISO_COMPAT_H
#define RISO_COMPAT_H

#include <linux/cgroup.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/version.h>

/* The last argument of ib_device_ops.create_cq; never looked at here. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define RISO_CREATE_CQ_ARG struct ib_udata
#else
#define RISO_CREATE_CQ_ARG struct uverbs_attr_bundle
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma,
				vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/*
 * Path of the present task's control group in the one hierarchy of version 2, as the
 * host has it. False if there is none, or it is longer than that.
 */
static inline bool riso_cgroup_path(char *path, size_t size)
{
#ifdef CONFIG_CGROUPS
	int len;

	rcu_read_lock();
	len = cgroup_path(task_dfl_cgroup(current), path, size);
	rcu_read_unlock();
	return len > 0 && len < size;
#else
	return false;
#endif
}

/*
 * Ids of the control groups of version 2 that the present task is in: from the root of
 * its cgroup namespace, or in the initial one its own alone. The outermost comes first.
 * Returns how many, @max at most; none for the root of all.
 */
static inline u32 riso_cgroup_ids(u64 *ids, u32 max)
{
	u32 num = 0;
#ifdef CONFIG_CGROUPS
	struct cgroup *cgrp;
	int outer, depth;

	rcu_read_lock();
	cgrp = task_dfl_cgroup(current);
	outer = current->nsproxy->cgroup_ns->root_cset->dfl_cgrp->level;
	/* A task may be outside of what its namespace shows. */
	if (!outer || outer > cgrp->level)
		outer = cgrp->level;
	for (depth = cgrp->level; depth && depth >= outer; depth--) {
		if (depth - outer < max) {
			ids[depth - outer] = cgroup_id(cgrp);
			num = max_t(u32, num, depth - outer + 1);
		}
		cgrp = cgroup_parent(cgrp);
	}
	rcu_read_unlock();
#endif
	return num;
}

#endif /* RISO_COMPAT_H */
