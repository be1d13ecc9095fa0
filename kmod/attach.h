/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How processes come to take part, and leave. See attach.c.
 */
#ifndef RISO_ATTACH_H
#define RISO_ATTACH_H

#include "grant.h"

int riso_attach_report(struct riso_dev *rd, u32 qpn, enum riso_reason reason);
int riso_attach_register(struct riso_process *pr, u32 qpn, enum riso_class *class, bool wishes,
			 bool *cut_imm, u32 *path);
int riso_attach_admit(struct riso_process *pr, u32 qpn);
void riso_attach_dismiss(struct riso_process *pr);
void riso_attach_put_group(struct riso_process *pr);

#endif /* RISO_ATTACH_H */
