/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * fork(). See fork.c.
 */
#ifndef SHIM_FORK_H
#define SHIM_FORK_H

void shim_handle_forks(void);

#endif /* SHIM_FORK_H */
