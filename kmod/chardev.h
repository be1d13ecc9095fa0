/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /dev/rdma_isolate: how processes take part in the shares of a device.
 */
#ifndef RISO_CHARDEV_H
#define RISO_CHARDEV_H

int riso_chardev_init(void);
void riso_chardev_exit(void);

#endif /* RISO_CHARDEV_H */
