/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs that send what nobody has told the module of. See around.c.
 */
#ifndef RISO_AROUND_H
#define RISO_AROUND_H

#include "flow.h"

int riso_around_mark(struct riso_dev *rd, u32 qpn, u32 group, struct netlink_ext_ack *extack);

#endif /* RISO_AROUND_H */
