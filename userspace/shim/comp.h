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

bool shim_comp_translate(struct shim_soft *e);
void shim_comp_join(struct shim_qp *f);
int shim_comp_attach(struct shim_qp *f);
void shim_comp_detach(struct shim_qp *f);

#endif /* SHIM_COMP_H */
