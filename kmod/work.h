/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The workqueue of the module. See work.c.
 */
#ifndef RISO_WORK_H
#define RISO_WORK_H

#include <linux/workqueue.h>

#include "dev.h"

/* Work of ours: all of it is done before the module goes. */
extern struct workqueue_struct *riso_wq;

int riso_work_init(void);
void riso_work_exit(void);
void riso_work_settle(struct riso_dev *rd);

#endif /* RISO_WORK_H */
