/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What keeps a device posting. See pump.c.
 */
#ifndef RISO_PUMP_H
#define RISO_PUMP_H

#include "dev.h"

void riso_pump_init(struct riso_dev *rd);
void riso_pump_start(struct riso_dev *rd);
void riso_pump_stop(struct riso_dev *rd);
void riso_pump_cancel(struct riso_dev *rd);

#endif /* RISO_PUMP_H */
