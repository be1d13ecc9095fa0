/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is looked at several times a second. See watch.c.
 */
#ifndef RISO_WATCH_H
#define RISO_WATCH_H

#include "dev.h"

void riso_watch_init(struct riso_dev *rd);
void riso_watch_start(struct riso_dev *rd);
void riso_watch_stop(struct riso_dev *rd);

#endif /* RISO_WATCH_H */
