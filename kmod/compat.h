/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only place that looks at the kernel version. Everything here has one
 * meaning on all supported kernels (6.1 and later).
 */
#ifndef RISO_COMPAT_H
#define RISO_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/mm.h>
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

#endif /* RISO_COMPAT_H */
