/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The maps of what the shim knows. See registry.c.
 */
#ifndef SHIM_REGISTRY_H
#define SHIM_REGISTRY_H

#include "map.h"

extern struct shim_map shim_ctxs;
extern struct shim_map shim_qps;
extern struct shim_map shim_told;
extern struct shim_map shim_cqs;
extern struct shim_map shim_tags;

void shim_maps_lock(void);
void shim_maps_unlock(void);

#endif /* SHIM_REGISTRY_H */
