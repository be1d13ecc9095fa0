/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that another processor reads or writes: loads, stores and barriers by one name, in the
 * kernel and in user space.
 *
 * The kernel has its own, which its checkers know. They are all that the engine takes from the
 * kernel besides the integers.
 */
#ifndef RISO_CORE_SHARED_H
#define RISO_CORE_SHARED_H

#ifdef __KERNEL__
#include <asm/barrier.h>
#include <linux/compiler.h>

#define riso_load(p)			READ_ONCE(*(p))
#define riso_store(p, v)		WRITE_ONCE(*(p), v)
/* Each caller says what it pairs with. */
#define riso_load_acquire(p)		smp_load_acquire(p)
/* Each caller says what it pairs with. */
#define riso_store_release(p, v)	smp_store_release(p, v)
/* Each caller says what it pairs with. */
#define riso_order_loads()		smp_rmb()
/* Each caller says what it pairs with. */
#define riso_order_stores()		smp_wmb()
#else
#define riso_load(p)			__atomic_load_n(p, __ATOMIC_RELAXED)
#define riso_store(p, v)		__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define riso_load_acquire(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define riso_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define riso_order_loads()		__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define riso_order_stores()		__atomic_thread_fence(__ATOMIC_RELEASE)
#endif

#endif /* RISO_CORE_SHARED_H */
