/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What several parts of riso_test_layer use: the provider's operations and two
 * parameters. main.c owns them.
 *
 * The operations do not change while the device has those of this module. Any context
 * reads all of it without a lock.
 */
#ifndef RISO_TEST_LAYER_PARTS_H
#define RISO_TEST_LAYER_PARTS_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* what SMC asks for, and more */
#define LAYER_MAX_CQE	65536

extern struct ib_device_ops layer_orig;

/* errno that posts are refused with, 0 for none */
extern int layer_refuse;
/* the device says that its CQs may be twice as large */
extern bool layer_deep;

#endif /* RISO_TEST_LAYER_PARTS_H */
