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
#include <linux/proc_ns.h>
#include <linux/user_namespace.h>
#include <linux/version.h>

/* Hooks are waited for by Tasks RCU, which falls back to RCU where it is not built. */
#if defined(CONFIG_PREEMPTION) && !defined(CONFIG_TASKS_RCU)
#error "a preemptible kernel needs CONFIG_TASKS_RCU"
#endif

/* The last argument of ib_device_ops.create_cq; never looked at here. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define RISO_CREATE_CQ_ARG struct ib_udata
#else
#define RISO_CREATE_CQ_ARG struct uverbs_attr_bundle
#endif

/* What genl_family.pre_doit is told of the operation; never looked at here. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define RISO_GENL_OP struct genl_ops
#else
#define RISO_GENL_OP struct genl_split_ops
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

/* Id of the present task's control group in that hierarchy, 0 for the root of all. */
static inline u64 riso_cgroup_id(void)
{
	u64 id = 0;
#ifdef CONFIG_CGROUPS
	struct cgroup *cgrp;

	rcu_read_lock();
	cgrp = task_dfl_cgroup(current);
	if (cgroup_parent(cgrp))
		id = cgroup_id(cgrp);
	rcu_read_unlock();
#endif
	return id;
}

/* Number of a cgroup namespace that the host's administrator made, or 0. */
static inline u32 riso_cgroup_ns(void)
{
#ifdef CONFIG_CGROUPS
	const struct cgroup_namespace *ns = current->nsproxy->cgroup_ns;

	if (ns->ns.inum != PROC_CGROUP_INIT_INO && ns->user_ns == &init_user_ns)
		return ns->ns.inum;
#endif
	return 0;
}

#endif /* RISO_COMPAT_H */
