/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages that end as they are posted.
 */
#ifndef NULLRDMA_INSTANT_H
#define NULLRDMA_INSTANT_H

#include "nullrdma.h"

void nr_end_at_once(struct nr_qp *qp, u32 head);

#endif /* NULLRDMA_INSTANT_H */
