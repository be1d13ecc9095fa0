// SPDX-License-Identifier: GPL-2.0
/*
 * Both ends of a load: devices, their addresses and buffers, CQs and queue pairs.
 *
 * Owns no state and takes no lock. Runs in the process that writes, and sleeps.
 */

#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/mm.h>

#include "../verbs.h"
#include "load.h"

static const char * const pd_names[] = { "riso_load0", "riso_load1", "riso_load_small" };

int load_setup_end(struct load_end *e, const char *name, u32 size)
{
	int i, err;

	e->size = size;
	e->dev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	if (!e->dev)
		return -ENODEV;
	e->port = rdma_start_port(e->dev);
	err = test_find_gid(e->dev, e->port, &e->mtu, &e->gid, &e->gid_index);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(e->pd); i++) {
		struct ib_pd *pd = __ib_alloc_pd(e->dev, IB_PD_UNSAFE_GLOBAL_RKEY, pd_names[i]);

		if (IS_ERR(pd))
			return PTR_ERR(pd);
		e->pd[i] = pd;
	}
	e->va = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, get_order(e->size));
	if (!e->va)
		return -ENOMEM;
	e->dma = ib_dma_map_single(e->dev, e->va, e->size, DMA_BIDIRECTIONAL);
	return ib_dma_mapping_error(e->dev, e->dma) ? -EIO : 0;
}

void load_free_end(struct load_end *e)
{
	int i;

	if (!e->dev)
		return;
	if (e->dma && !ib_dma_mapping_error(e->dev, e->dma))
		ib_dma_unmap_single(e->dev, e->dma, e->size, DMA_BIDIRECTIONAL);
	free_pages((unsigned long)e->va, get_order(e->size));
	for (i = 0; i < ARRAY_SIZE(e->pd); i++)
		if (e->pd[i])
			ib_dealloc_pd(e->pd[i]);
	ib_device_put(e->dev);
}

static struct ib_qp *create_qp(struct load *l, struct ib_pd *pd, struct ib_cq *cq, u32 depth)
{
	struct ib_qp_init_attr attr;

	if (!depth)
		depth = max3(l->arg.depth, l->arg.depth2, (u32)LOAD_COSTS) + 1;
	test_init_qp(&attr, cq, depth);
	return ib_create_qp(pd, &attr);
}

static int raise_qp(struct load *l, struct ib_qp *qp, const struct ib_qp *peer,
		    const struct load_end *e, const struct load_end *other)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = e->port,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = e->mtu;
	attr.dest_qp_num = peer->qp_num;
	attr.max_dest_rd_atomic = l->arg.rdatomic;
	attr.min_rnr_timer = IB_RNR_TIMER_000_64;
	attr.ah_attr.type = rdma_ah_find_type(e->dev, e->port);
	rdma_ah_set_grh(&attr.ah_attr, (union ib_gid *)&other->gid, 0, e->gid_index, 64, 0);
	rdma_ah_set_port_num(&attr.ah_attr, e->port);
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTS;
	attr.timeout = 18;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = l->arg.rdatomic;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* @cq is that of another queue pair, or NULL for one of its own that the core polls. */
int load_setup_qp(struct load *l, struct load_qp *q, int pd, struct ib_cq *cq)
{
	struct ib_cq *own;
	int err;

	q->load = l;
	q->cqe.done = load_large_done;
	if (!cq) {
		own = ib_alloc_cq(l->a.dev, l, 2 * (q->depth ? : LOAD_MAX_DEPTH), 0,
				  IB_POLL_SOFTIRQ);
		if (IS_ERR(own))
			return PTR_ERR(own);
		q->cq = own;
		cq = own;
	}
	own = ib_alloc_cq(l->b.dev, l, 4, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(own))
		return PTR_ERR(own);
	q->peer_cq = own;
	q->qp = create_qp(l, l->a.pd[pd], cq, q->depth);
	if (IS_ERR(q->qp)) {
		err = PTR_ERR(q->qp);
		q->qp = NULL;
		return err;
	}
	q->peer = create_qp(l, l->b.pd[pd], q->peer_cq, q->depth);
	if (IS_ERR(q->peer)) {
		err = PTR_ERR(q->peer);
		q->peer = NULL;
		return err;
	}
	err = raise_qp(l, q->qp, q->peer, &l->a, &l->b);
	if (err || q->mute)
		return err;
	return raise_qp(l, q->peer, q->qp, &l->b, &l->a);
}

void load_free_qp(struct load_qp *q)
{
	if (q->qp)
		ib_destroy_qp(q->qp);
	if (q->peer)
		ib_destroy_qp(q->peer);
	if (q->cq && q->own_cq) {
		irq_work_sync(&q->load->poll);
		ib_destroy_cq(q->cq);
	} else if (q->cq) {
		ib_free_cq(q->cq);
	}
	if (q->peer_cq)
		ib_free_cq(q->peer_cq);
}

/* A CQ that nobody but us polls */
struct ib_cq *load_create_cq(struct load *l, ib_comp_handler handler, u32 entries)
{
	const struct ib_cq_init_attr attr = { .cqe = entries };

	return ib_create_cq(l->a.dev, handler, NULL, l, &attr);
}
