/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Class, group and management of flows. See classify.c.
 */
#ifndef RISO_CLASSIFY_H
#define RISO_CLASSIFY_H

#include "flow.h"

void riso_classify_flow(struct riso_flow *f);
void riso_classify_all(struct riso_dev *rd);

#endif /* RISO_CLASSIFY_H */
