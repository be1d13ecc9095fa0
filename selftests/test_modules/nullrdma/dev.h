/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices and ports. nr_find_end() may be called in any context without nr_engine.lock.
 * All else sleeps, except the operations of address handles.
 */
#ifndef NULLRDMA_DEV_H
#define NULLRDMA_DEV_H

#include "nullrdma.h"

struct net_device;

int nr_register_end(struct nr_end *end, struct net_device *netdev);
void nr_unregister_end(struct nr_end *end);
struct nr_end *nr_find_end(const union ib_gid *gid);
void nr_set_carrier(struct nr_end *end, bool carrier);
void nr_apply_params(void);

#endif /* NULLRDMA_DEV_H */
