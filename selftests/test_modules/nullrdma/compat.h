/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only file of nullrdma that looks at the kernel version. Everything here has one
 * meaning on all supported kernels (6.1 and later).
 */
#ifndef NULLRDMA_COMPAT_H
#define NULLRDMA_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

/* the structure that ib_device_ops.create_cq gets last, and that nullrdma ignores */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define nr_cq_arg ib_udata
#else
#define nr_cq_arg uverbs_attr_bundle
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

#endif /* NULLRDMA_COMPAT_H */
