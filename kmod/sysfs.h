/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings of a device as files.
 */
#ifndef RISO_SYSFS_H
#define RISO_SYSFS_H

struct riso_dev;

int riso_sysfs_add(struct riso_dev *rd);
void riso_sysfs_remove(struct riso_dev *rd);

#endif /* RISO_SYSFS_H */
