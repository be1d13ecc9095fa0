/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hooks: what the operations of an ib_device do in the provider's place. See hook.c.
 */
#ifndef RISO_HOOK_H
#define RISO_HOOK_H

#include "dev.h"

/* Devices by index, for the hooks and for ops.c alone. */
extern struct riso_dev *riso_hook_devs[];

/* The hooks: ops.c says which of them are in place when. */
extern const struct ib_device_ops riso_hook_ops;

/*
 * The RDMA core hands indices out in a circle, so they exceed the table. Where two devices
 * have one entry, the second is refused.
 */
static inline struct riso_dev **riso_hook_entry(u32 index)
{
	return &riso_hook_devs[index % RISO_MAX_DEVS];
}

#endif /* RISO_HOOK_H */
