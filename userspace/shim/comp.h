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
void shim_comp_update(struct shim_cq *c);
void shim_comp_join(struct shim_qp *f);
bool shim_comp_push(struct shim_cq *c, const struct shim_soft *e);
void shim_comp_pop(struct shim_cq *c, struct shim_soft *e);
int shim_comp_poll(struct shim_cq *c, int num, struct ibv_wc *wc);
void shim_take_completions(struct shim_cq *c, uint32_t max);
bool shim_comp_may_reap(struct shim_cq *c);
void shim_comp_reap_most(struct shim_cq *c, uint32_t max);
void shim_comp_reap(struct shim_cq *c);
int shim_comp_grow(struct shim_cq *c, int asked);
int shim_comp_attach(struct shim_qp *f);
void shim_comp_detach(struct shim_qp *f);
void shim_comp_purge(struct shim_cq *c, uint32_t qp_num, struct shim_qp *f);

/**
 * shim_comp_seen - note that the program has polled
 * @c: the CQ; its member is locked
 */
static inline void shim_comp_seen(struct shim_cq *c)
{
	c->armed = false;
	c->owes = false;
	c->unseen = 0;
}

/**
 * shim_comp_shown - note that the present thread of the program gets a completion
 * @c: the CQ; its member is locked
 */
static inline void shim_comp_shown(struct shim_cq *c)
{
	pthread_t me = pthread_self();

	c->shown = !c->shown || c->shown == me ? me : SHIM_SEVERAL;
}

#endif /* SHIM_COMP_H */
