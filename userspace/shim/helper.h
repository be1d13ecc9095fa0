/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helper threads. See helper.c.
 */
#ifndef SHIM_HELPER_H
#define SHIM_HELPER_H

struct shim_member;
struct shim_qp;

void shim_unlock_and_drive(struct shim_member *m);
void shim_ask_and_drive(struct shim_qp *f);
void shim_qps_refresh(struct shim_member *m);
void shim_wake_napping(struct shim_member *m);

#endif /* SHIM_HELPER_H */
