/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Endpoints: one side of a case, with its device, its address and its protection
 * domain. Process context.
 */
#ifndef RISO_TEST_ULP_ENDPOINT_H
#define RISO_TEST_ULP_ENDPOINT_H

#include <linux/list.h>
#include <linux/mutex.h>

#include "ulp.h"

struct ulp_dev {
	struct list_head node;
	struct ib_device *dev;
	u32 users;
};

/* Users of the list take ulp_devs_lock, inside case_lock. */
extern struct mutex ulp_devs_lock;
extern struct list_head ulp_devs;

int ulp_setup_ep(struct ulp_ep *ep, struct ulp_ep *peer, const char *name,
		 const char *pd_name);
void ulp_free_ep(struct ulp_ep *ep);

#endif /* RISO_TEST_ULP_ENDPOINT_H */
