/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only file of the test modules that looks at the kernel version. Everything here has
 * one meaning on all supported kernels (6.1 and later).
 */
#ifndef RISO_TEST_COMPAT_H
#define RISO_TEST_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

/* The last argument of ib_device_ops.create_cq; never looked at here. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define TEST_CREATE_CQ_ARG struct ib_udata
#else
#define TEST_CREATE_CQ_ARG struct uverbs_attr_bundle
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

/* rxe runs its completer for an answer at once, even while the QP is being reset. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define TEST_RXE_RESET_RACES 1
#else
#define TEST_RXE_RESET_RACES 0
#endif

#endif /* RISO_TEST_COMPAT_H */
