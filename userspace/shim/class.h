/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Classes. See class.c.
 */
#ifndef SHIM_CLASS_H
#define SHIM_CLASS_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "ask.h"

uint32_t shim_get_default_wish(void);
void shim_qp_ask(struct shim_qp *f);
int shim_set_class(struct ibv_qp *qp, uint32_t class_id);
int shim_over_target(struct ibv_qp *qp);

/**
 * shim_qp_refresh - ask for the class again if it may have changed, and see to an open device
 * @f: the flow; nothing is locked
 */
static inline void shim_qp_refresh(struct shim_qp *f)
{
	if (!shim_qp_is_fresh(f))
		shim_qp_ask(f);
	if (shim_qp_is_shut(f) && shim_qp_is_direct(f))
		shim_ask_to_close(f);
}

#endif /* SHIM_CLASS_H */
