/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The integers of the engine, in the kernel and in user space.
 *
 * All files of this directory are pure: they take times and counts and return decisions.
 * They take no lock, read no clock and allocate nothing. Whoever calls them holds a lock if
 * one is needed.
 */
#ifndef RISO_CORE_TYPES_H
#define RISO_CORE_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#endif

/* A time that does not come, a rate or a delay that is not known */
#define RISO_NEVER	(~0ULL)

#endif /* RISO_CORE_TYPES_H */
