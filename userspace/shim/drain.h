/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Draining a queue pair. See drain.c.
 */
#ifndef SHIM_DRAIN_H
#define SHIM_DRAIN_H

#include <stdbool.h>

struct shim_qp;

void shim_queue_drain(struct shim_qp *f, bool goes);

#endif /* SHIM_DRAIN_H */
