/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work requests that the provider refuses. See refuse.c.
 */
#ifndef RISO_REFUSE_H
#define RISO_REFUSE_H

#include <linux/types.h>

struct riso_flow;
struct work_struct;

bool riso_refuse_is_due(const struct riso_flow *f);
void riso_refuse_queue(struct riso_flow *f);
void riso_refuse_work(struct work_struct *work);

#endif /* RISO_REFUSE_H */
