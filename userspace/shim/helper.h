/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helper threads. See helper.c.
 */
#ifndef SHIM_HELPER_H
#define SHIM_HELPER_H

struct shim_member;

int shim_retry_helper(struct shim_member *m);
void shim_unlock_and_drive(struct shim_member *m);

#endif /* SHIM_HELPER_H */
