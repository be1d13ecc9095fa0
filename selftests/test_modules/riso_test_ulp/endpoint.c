// SPDX-License-Identifier: GPL-2.0
/*
 * Endpoints: one side of a case, with its device, its address and its protection
 * domain.
 *
 * Owns the list of the devices. ulp_devs_lock protects it and the number of users of
 * each device. It is taken inside main.c's case_lock. Everything here runs in process
 * context, and sleeps.
 */

#include <linux/err.h>
#include <linux/string.h>

#include "../verbs.h"
#include "buffer.h"
#include "endpoint.h"
#include "mr.h"

/* the devices, and who uses them */
DEFINE_MUTEX(ulp_devs_lock);
LIST_HEAD(ulp_devs);

int ulp_setup_ep(struct ulp_ep *ep, struct ulp_ep *peer, const char *name,
		 const char *pd_name)
{
	struct ulp_dev *rdev;
	struct ib_pd *pd;
	int err;

	ep->peer = peer;
	mutex_lock(&ulp_devs_lock);
	list_for_each_entry(rdev, &ulp_devs, node)
		if (!strcmp(dev_name(&rdev->dev->dev), name))
			ep->rdev = rdev;
	if (ep->rdev)
		ep->rdev->users++;
	mutex_unlock(&ulp_devs_lock);
	if (!ep->rdev)
		return -ENODEV;
	ep->dev = ep->rdev->dev;
	ep->port = rdma_start_port(ep->dev);
	err = test_find_gid(ep->dev, ep->port, &ep->mtu, &ep->gid, &ep->gid_index);
	if (err)
		return err;
	pd = __ib_alloc_pd(ep->dev, 0, pd_name);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ep->pd = pd;
	return 0;
}

void ulp_free_ep(struct ulp_ep *ep)
{
	ulp_dereg_mr(ep->mr_src);
	ulp_dereg_mr(ep->mr_dst);
	ulp_unmap_buf(ep, &ep->src);
	ulp_unmap_buf(ep, &ep->dst);
	if (ep->pd)
		ib_dealloc_pd(ep->pd);
	if (!ep->rdev)
		return;
	mutex_lock(&ulp_devs_lock);
	ep->rdev->users--;
	mutex_unlock(&ulp_devs_lock);
}
