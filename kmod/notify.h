/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Telling listeners. See notify.c.
 */
#ifndef RISO_NOTIFY_H
#define RISO_NOTIFY_H

#include "flow.h"

void riso_notify_news(struct riso_flow *f);
void riso_notify_error(struct riso_flow *f);
void riso_notify_gone(struct riso_flow *f);
void riso_notify_faults(struct riso_dev *rd, struct riso_group *g);
void riso_notify_some(struct riso_dev *rd);

#endif /* RISO_NOTIFY_H */
