/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * fork(). See fork.c.
 */
#ifndef SHIM_FORK_H
#define SHIM_FORK_H

void shim_prepare_fork(void);
void shim_unlock_all(void);
void shim_enter_child(void);

#endif /* SHIM_FORK_H */
