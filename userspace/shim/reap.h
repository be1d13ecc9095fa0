/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reaper. See reap.c.
 */
#ifndef SHIM_REAP_H
#define SHIM_REAP_H

#include <stdbool.h>
#include <stdint.h>

struct shim_cq;
struct shim_soft;

enum {
	/*
	 * Completions that one poll takes from the provider. The array for them is on the
	 * stack, also on that of the helper.
	 */
	SHIM_POLL = 16,
};

void shim_cqex_snapshot(const struct shim_cq *c, struct shim_soft *e);
int shim_cqex_fill(struct shim_cq *c, uint32_t max);
bool shim_cq_try(struct shim_cq *c);
void shim_cq_leave(struct shim_cq *c);
bool shim_cqex_try(struct shim_cq *c);
void shim_cqex_leave(struct shim_cq *c);
void shim_take_completions(struct shim_cq *c, uint32_t max);
bool shim_comp_may_reap(struct shim_cq *c);
void shim_comp_reap_most(struct shim_cq *c, uint32_t max);
void shim_comp_reap(struct shim_cq *c);

#endif /* SHIM_REAP_H */
