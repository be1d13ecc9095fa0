/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic netlink family rdma_isolate. See netlink.c.
 */
#ifndef RISO_NETLINK_H
#define RISO_NETLINK_H

int riso_nl_init(void);
void riso_nl_exit(void);

#endif /* RISO_NETLINK_H */
