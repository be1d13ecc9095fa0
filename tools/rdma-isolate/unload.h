/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Unloads the module, or says who keeps it.
 */
#ifndef RDMA_ISOLATE_UNLOAD_H
#define RDMA_ISOLATE_UNLOAD_H

/* CMD_DONE, or CMD_REFUSED after telling why */
int unload_module(void);

#endif /* RDMA_ISOLATE_UNLOAD_H */
