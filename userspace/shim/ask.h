/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the kernel is asked for. See ask.c.
 */
#ifndef SHIM_ASK_H
#define SHIM_ASK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "ctx.h"
#include "member.h"
#include "qp.h"

extern pthread_mutex_t shim_class_lock;

int shim_ask_class_and_lock(struct shim_qp *f, uint32_t wish);
void shim_ask_kernel_and_lock(struct shim_qp *f, bool may_wait);
void shim_ask_to_close(struct shim_qp *f);
void shim_ask_refused(struct shim_member *m);
void shim_qps_no_thread(struct shim_member *m);

/**
 * shim_qp_is_fresh - tell whether the class of a flow is up to date
 * @f: the flow
 *
 * Without a lock and without a barrier: a stale answer only delays the next question.
 *
 * Return: false if the kernel may have changed the class.
 */
static inline bool shim_qp_is_fresh(const struct shim_qp *f)
{
	return __atomic_load_n(&shim_member_kpage(f->ctx->m)->classes,
			       __ATOMIC_RELAXED) ==
	       __atomic_load_n(&f->classes, __ATOMIC_RELAXED);
}

/**
 * shim_qp_is_shut - tell whether calls that go straight shall do so no longer
 * @f: the flow
 *
 * Without a lock and without a barrier, as above.
 *
 * Return: true if it is open no longer, and the class is a paced one.
 */
static inline bool shim_qp_is_shut(const struct shim_qp *f)
{
	return __atomic_load_n(&f->paced, __ATOMIC_RELAXED) && !shim_qp_is_open(f);
}

#endif /* SHIM_ASK_H */
