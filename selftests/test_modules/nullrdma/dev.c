// SPDX-License-Identifier: GPL-2.0
/*
 * Devices and their ports: what the RDMA core asks of them, their addresses, and whether
 * a port is up.
 *
 * devs_lock protects &nr_end.dev: whoever looks for an address holds it, and a device
 * ends only after it was taken out. config_lock lets one change of the ports at a time
 * run. Everything here runs in process context and sleeps, except nr_find_end() and the
 * operations of address handles.
 */

#include <linux/err.h>
#include <linux/etherdevice.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "cq.h"
#include "dev.h"
#include "engine.h"
#include "mr.h"
#include "params.h"
#include "post.h"
#include "qp.h"
#include "wire.h"

/* IPv4, UDP, BTH, RETH and ICRC of a packet, which a netdev's MTU includes */
#define NR_IN_MTU	(20 + 8 + 12 + 16 + 4)
/* twice NDR; the headers of Linux 6.1 do not name it */
#define NR_SPEED_XDR	256

static DEFINE_SPINLOCK(devs_lock);
static DEFINE_MUTEX(config_lock);

/* --- what a port is --- */

static const struct nr_speed {
	u32 mbps;
	u8 width;
	u16 speed;
} speeds[] = {
	{ 2500, IB_WIDTH_1X, IB_SPEED_SDR },
	{ 10000, IB_WIDTH_1X, IB_SPEED_QDR },
	{ 25000, IB_WIDTH_1X, IB_SPEED_EDR },
	{ 40000, IB_WIDTH_4X, IB_SPEED_QDR },
	{ 50000, IB_WIDTH_1X, IB_SPEED_HDR },
	{ 100000, IB_WIDTH_4X, IB_SPEED_EDR },
	{ 200000, IB_WIDTH_4X, IB_SPEED_HDR },
	{ 400000, IB_WIDTH_4X, IB_SPEED_NDR },
	{ 800000, IB_WIDTH_4X, NR_SPEED_XDR },
	{ U32_MAX, IB_WIDTH_8X, NR_SPEED_XDR },
};

static int query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct nr_end *end = nr_get_end(ibdev);
	const struct nr_speed *speed = speeds;
	u32 told = READ_ONCE(end->port_speed);

	/* the slowest of the usual ones that is not slower */
	while (speed->mbps < READ_ONCE(end->mbps))
		speed++;
	attr->state = READ_ONCE(end->up) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = attr->state == IB_PORT_ACTIVE ?
		IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(end->mtu);
	attr->gid_tbl_len = NR_GIDS;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = NR_MAX_MSG;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->active_width = told == NR_SPEED_FITS ? speed->width : IB_WIDTH_1X;
	attr->active_speed = told == NR_SPEED_FITS ? speed->speed : told;
	return 0;
}

static int get_port_immutable(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->gid_tbl_len = NR_GIDS;
	immutable->pkey_tbl_len = 1;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static int query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = ibdev->node_guid;
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = ~(SZ_4K - 1);
	attr->max_qp = NR_MAX_QP - NR_FIRST_QP;
	attr->max_qp_wr = NR_MAX_WR;
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS |
		IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_RC_RNR_NAK_GEN;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->max_send_sge = NR_MAX_SGE;
	attr->max_recv_sge = NR_MAX_SGE;
	attr->max_sge_rd = NR_MAX_SGE;
	attr->max_cq = NR_MAX_QP;
	attr->max_cqe = NR_MAX_CQE;
	attr->max_mr = NR_MAX_MR - 1;
	attr->max_pd = NR_MAX_QP;
	attr->max_qp_rd_atom = NR_MAX_RD;
	attr->max_qp_init_rd_atom = NR_MAX_RD;
	attr->max_res_rd_atom = NR_MAX_RD * NR_MAX_QP;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_ah = INT_MAX;
	attr->max_fast_reg_page_list_len = NR_MAX_PAGES;
	attr->max_pkeys = 1;
	return 0;
}

static int alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static int dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

/* --- addresses --- */

/* The end that has the address, or NULL. Any context without nr_engine.lock. */
struct nr_end *nr_find_end(const union ib_gid *gid)
{
	struct nr_end *found = NULL;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&devs_lock, flags);
	for (i = 0; i < nr_num_ends && !found; i++) {
		const struct ib_gid_attr *attr;

		if (!nr_ends[i]->dev)
			continue;
		attr = rdma_find_gid_by_port(&nr_ends[i]->dev->ibdev, gid,
					     IB_GID_TYPE_ROCE_UDP_ENCAP, 1, NULL);
		if (IS_ERR(attr))
			continue;
		rdma_put_gid_attr(attr);
		found = nr_ends[i];
	}
	spin_unlock_irqrestore(&devs_lock, flags);
	return found;
}

static int create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		     struct ib_udata *udata)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(init->ah_attr);
	struct nr_ah *ah = to_nr_ah(ibah);

	ah->sgid = grh->sgid_attr->gid;
	ah->dgid = grh->dgid;
	ah->ipv4 = ipv6_addr_v4mapped((struct in6_addr *)&ah->dgid);
	ah->peer = nr_find_end(&ah->dgid);
	return 0;
}

static int destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}

/* --- up and down --- */

static void tell_port(struct nr_end *end, enum ib_event_type type)
{
	struct ib_event event = { .event = type, .element.port_num = 1 };

	if (!end->dev)
		return;
	event.device = &end->dev->ibdev;
	ib_dispatch_event(&event);
}

/* What the parameters and the netdev say becomes true, and is told. */
static void update_end(struct nr_end *end)
{
	u32 mbps = nr_get_param(&nr_rate_mbps, end->index);
	u32 delay_ns = nr_get_param(&nr_delay_ns, end->index);
	bool up = nr_get_param(&nr_link, end->index) && end->carrier;
	u32 speed = nr_get_param(&nr_port_speed, end->index);
	bool was_up = end->up, other;
	unsigned long flags;

	lockdep_assert_held(&config_lock);
	spin_lock_irqsave(&nr_engine.lock, flags);
	other = mbps != end->mbps || speed != end->port_speed;
	nr_engine.now = ktime_get_ns();
	nr_read_bells(end);
	nr_set_wire(end, mbps, delay_ns, nr_engine.now);
	WRITE_ONCE(end->port_speed, speed);
	WRITE_ONCE(end->up, up);
	nr_settle_wires(nr_engine.now);
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	nr_kick();
	/* A port that changes its speed goes down for it. */
	if (was_up && (!up || other))
		tell_port(end, IB_EVENT_PORT_ERR);
	if (up && (!was_up || other))
		tell_port(end, IB_EVENT_PORT_ACTIVE);
}

void nr_set_carrier(struct nr_end *end, bool carrier)
{
	mutex_lock(&config_lock);
	end->carrier = carrier;
	update_end(end);
	mutex_unlock(&config_lock);
}

void nr_apply_params(void)
{
	int i;

	mutex_lock(&config_lock);
	for (i = 0; i < nr_num_ends; i++)
		update_end(nr_ends[i]);
	mutex_unlock(&config_lock);
}

/* --- registration --- */

static const struct ib_device_ops ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,

	.alloc_mr = nr_alloc_mr,
	.alloc_pd = alloc_pd,
	.create_ah = create_ah,
	.create_cq = nr_create_cq,
	.create_qp = nr_create_qp,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = nr_dereg_mr,
	.destroy_ah = destroy_ah,
	.destroy_cq = nr_destroy_cq,
	.destroy_qp = nr_destroy_qp,
	.get_dma_mr = nr_get_dma_mr,
	.get_link_layer = get_link_layer,
	.get_port_immutable = get_port_immutable,
	.map_mr_sg = nr_map_mr_sg,
	.modify_qp = nr_modify_qp,
	.poll_cq = nr_poll_cq,
	.post_recv = nr_post_recv,
	.post_send = nr_post_send,
	.query_device = query_device,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.query_qp = nr_query_qp,
	.reg_user_mr = nr_reg_user_mr,
	.req_notify_cq = nr_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, nr_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, nr_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, nr_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, nr_qp, ibqp),
};

static u32 find_mtu(const struct net_device *netdev)
{
	u32 mtu = 4096;

	while (mtu > 256 && mtu + NR_IN_MTU > netdev->mtu)
		mtu /= 2;
	return mtu;
}

int nr_register_end(struct nr_end *end, struct net_device *netdev)
{
	struct ib_device *ibdev;
	struct nr_dev *dev;
	int err;

	end->mtu = find_mtu(netdev);
	end->ifindex = netdev->ifindex;
	nr_set_carrier(end, netif_running(netdev) && netif_carrier_ok(netdev));
	dev = ib_alloc_device(nr_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->end = end;
	ibdev = &dev->ibdev;
	strscpy(ibdev->node_desc, KBUILD_MODNAME, sizeof(ibdev->node_desc));
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = 1;
	ibdev->local_dma_lkey = NR_ALL_LKEY;
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, netdev->dev_addr);
	ib_set_device_ops(ibdev, &ops);
	err = ib_device_set_netdev(ibdev, netdev, 1);
	if (err)
		goto err_dealloc;
	/* Users of the device look for its address as soon as it is registered. */
	spin_lock_irq(&devs_lock);
	end->dev = dev;
	spin_unlock_irq(&devs_lock);
	err = ib_register_device(ibdev, "null%d", NULL);
	if (!err)
		return 0;
	spin_lock_irq(&devs_lock);
	end->dev = NULL;
	spin_unlock_irq(&devs_lock);
err_dealloc:
	ib_dealloc_device(ibdev);
	return err;
}

void nr_unregister_end(struct nr_end *end)
{
	struct nr_dev *dev = end->dev;

	if (!dev)
		return;
	ib_unregister_device(&dev->ibdev);
	mutex_lock(&config_lock);
	spin_lock_irq(&devs_lock);
	end->dev = NULL;
	spin_unlock_irq(&devs_lock);
	mutex_unlock(&config_lock);
	ib_dealloc_device(&dev->ibdev);
}
