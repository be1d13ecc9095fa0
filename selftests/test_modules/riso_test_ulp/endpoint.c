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
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "buffer.h"
#include "endpoint.h"
#include "mr.h"

/* the devices, and who uses them */
DEFINE_MUTEX(ulp_devs_lock);
LIST_HEAD(ulp_devs);

static int query_ep(struct ulp_ep *ep)
{
	struct ib_port_attr attr;
	int i, err;

	ep->port = rdma_start_port(ep->dev);
	err = ib_query_port(ep->dev, ep->port, &attr);
	if (err)
		return err;
	ep->mtu = attr.active_mtu;
	for (i = 0; i < attr.gid_tbl_len; i++) {
		const struct ib_gid_attr *gid;
		bool found;

		gid = rdma_get_gid_attr(ep->dev, ep->port, i);
		if (IS_ERR(gid))
			continue;
		found = gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
			ipv6_addr_v4mapped((struct in6_addr *)&gid->gid);
		ep->gid = gid->gid;
		rdma_put_gid_attr(gid);
		if (found) {
			ep->gid_index = i;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

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
	err = query_ep(ep);
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
