/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Classes. See class.c.
 */
#ifndef SHIM_CLASS_H
#define SHIM_CLASS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "ctx.h"
#include "member.h"
#include "qp.h"

extern pthread_mutex_t shim_class_lock;

uint32_t shim_get_default_wish(void);
void shim_qp_ask(struct shim_qp *f);
void shim_qps_refresh(struct shim_member *m);
void shim_ask_refused(struct shim_member *m);
void shim_qps_no_thread(struct shim_member *m);
int shim_set_class(struct ibv_qp *qp, uint32_t class_id);
int shim_over_target(struct ibv_qp *qp);

/**
 * shim_qp_fresh - tell whether the class of a flow is up to date
 * @f: the flow
 *
 * Without a lock and without a barrier: a stale answer only delays the next question.
 *
 * Return: false if the kernel may have changed the class.
 */
static inline bool shim_qp_fresh(const struct shim_qp *f)
{
	return __atomic_load_n(&shim_member_kpage(f->ctx->m)->classes,
			       __ATOMIC_RELAXED) ==
	       __atomic_load_n(&f->classes, __ATOMIC_RELAXED);
}

/**
 * shim_qp_refresh - ask for the class again if it may have changed
 * @f: the flow; nothing is locked
 */
static inline void shim_qp_refresh(struct shim_qp *f)
{
	if (!shim_qp_fresh(f))
		shim_qp_ask(f);
}

#endif /* SHIM_CLASS_H */
