/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The soft ring of a CQ. See soft.c.
 */
#ifndef SHIM_SOFT_H
#define SHIM_SOFT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cq.h"

struct shim_qp;

void shim_cq_update(struct shim_cq *c);
void shim_soft_seen(const struct shim_soft *e);
bool shim_soft_push(struct shim_cq *c, const struct shim_soft *e);
void shim_soft_pop(struct shim_cq *c, struct shim_soft *e);
int shim_soft_grow(struct shim_cq *c, int asked);
void shim_cq_await(struct shim_qp *f, bool awaited);
void shim_soft_purge(struct shim_cq *c, uint32_t qp_num, struct shim_qp *f);

/**
 * shim_cq_seen - note that the program has polled
 * @c: the CQ; its member is locked
 */
static inline void shim_cq_seen(struct shim_cq *c)
{
	c->armed = false;
	c->owes = false;
	c->unseen = 0;
}

/**
 * shim_cq_shown - note that the present thread of the program gets a completion
 * @c: the CQ; its member is locked
 */
static inline void shim_cq_shown(struct shim_cq *c)
{
	pthread_t me = pthread_self();

	c->shown = !c->shown || c->shown == me ? me : SHIM_SEVERAL;
}

/**
 * shim_cq_due - note that the program gets a completion that may have come after it armed the CQ
 * @c: the CQ; its member is locked
 */
static inline void shim_cq_due(struct shim_cq *c)
{
	c->due += c->awaits;
	c->awaits = false;
}

#endif /* SHIM_SOFT_H */
