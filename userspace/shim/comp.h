/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completions. See comp.c.
 */
#ifndef SHIM_COMP_H
#define SHIM_COMP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "cq.h"

struct shim_qp;

enum {
	/*
	 * Completions that one poll takes from the provider. The array for them is on the
	 * stack, also on that of the helper.
	 */
	SHIM_POLL = 16,
};

bool shim_comp_translate(struct shim_soft *e);
void shim_comp_join(struct shim_qp *f);
int shim_comp_poll(struct shim_cq *c, int num, struct ibv_wc *wc);
void shim_take_completions(struct shim_cq *c, uint32_t max);
bool shim_comp_may_reap(struct shim_cq *c);
void shim_comp_reap_most(struct shim_cq *c, uint32_t max);
void shim_comp_reap(struct shim_cq *c);
int shim_comp_attach(struct shim_qp *f);
void shim_comp_detach(struct shim_qp *f);

#endif /* SHIM_COMP_H */
