/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended CQs. See cqex.c.
 */
#ifndef SHIM_CQEX_H
#define SHIM_CQEX_H

#include <infiniband/verbs.h>

struct shim_cq;

void shim_cqex_swap(struct shim_cq *c, struct ibv_cq_ex *cq, uint64_t wc_flags);

#endif /* SHIM_CQEX_H */
