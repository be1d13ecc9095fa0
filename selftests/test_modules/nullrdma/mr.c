// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: all of memory for the DMA key, and lists of pages that a work request
 * registers.
 *
 * Owns the table of an end's regions. nr_engine.lock protects the table and what a
 * region gives access to. map_mr_sg changes a region that is not valid, so no lock
 * protects the list of its pages. Regions come and go in process context.
 */

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "mr.h"

/* what REG_MR may give the peer, and what a region of all memory has */
#define NR_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

static struct nr_mr *create_mr(struct ib_pd *ibpd, u32 npages)
{
	struct nr_end *end = nr_get_end(ibpd->device);
	struct nr_mr *mr;
	unsigned long flags;
	u32 i, idx = 0;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	if (npages)
		mr->pages = kvmalloc_array(npages, sizeof(*mr->pages), GFP_KERNEL);
	if (npages && !mr->pages) {
		kfree(mr);
		return ERR_PTR(-ENOMEM);
	}
	mr->pd = ibpd;
	mr->maxpages = npages;

	spin_lock_irqsave(&nr_engine.lock, flags);
	for (i = 0; i < NR_MAX_MR; i++) {
		idx = (end->next_mr + i) & (NR_MAX_MR - 1);
		if (idx && !end->mrs[idx])
			break;
	}
	if (i < NR_MAX_MR) {
		end->next_mr = idx + 1;
		end->mrs[idx] = mr;
	}
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	if (i == NR_MAX_MR) {
		kvfree(mr->pages);
		kfree(mr);
		return ERR_PTR(-ENOMEM);
	}
	mr->key = idx << 8;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	return mr;
}

struct ib_mr *nr_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct nr_mr *mr = create_mr(ibpd, 0);
	unsigned long flags;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	spin_lock_irqsave(&nr_engine.lock, flags);
	mr->access = access;
	mr->all = true;
	mr->valid = true;
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	return &mr->ibmr;
}

struct ib_mr *nr_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct nr_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG || !max_num_sg || max_num_sg > NR_MAX_PAGES)
		return ERR_PTR(-EINVAL);
	mr = create_mr(ibpd, max_num_sg);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ibmr;
}

/* The core takes no device without it. There are no users to call it. */
struct ib_mr *nr_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt,
			     int access, struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int set_page(struct ib_mr *ibmr, u64 addr)
{
	struct nr_mr *mr = to_nr_mr(ibmr);

	if (mr->npages == mr->maxpages)
		return -ENOMEM;
	mr->pages[mr->npages++] = addr;
	return 0;
}

int nr_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		 unsigned int *sg_offset)
{
	struct nr_mr *mr = to_nr_mr(ibmr);

	mr->npages = 0;
	mr->page_shift = ilog2(ibmr->page_size);
	return ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, set_page);
}

int nr_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct nr_end *end = nr_get_end(ibmr->device);
	struct nr_mr *mr = to_nr_mr(ibmr);
	unsigned long flags;

	spin_lock_irqsave(&nr_engine.lock, flags);
	end->mrs[mr->key >> 8] = NULL;
	spin_unlock_irqrestore(&nr_engine.lock, flags);
	kvfree(mr->pages);
	kfree(mr);
	return 0;
}

/* The region that gives this access to these bytes, or NULL. */
struct nr_mr *nr_find_mr(struct nr_end *end, struct ib_pd *pd, u32 key, u64 addr,
			 u32 length, int access)
{
	u32 idx = key >> 8;
	struct nr_mr *mr;

	lockdep_assert_held(&nr_engine.lock);
	mr = idx < NR_MAX_MR ? end->mrs[idx] : NULL;
	if (!mr || !mr->valid || mr->key != key || mr->pd != pd ||
	    (mr->access & access) != access)
		return NULL;
	if (!mr->all && (addr < mr->iova || length > mr->length ||
			 addr - mr->iova > mr->length - length))
		return NULL;
	return mr;
}

/* What a REG_MR does. */
enum ib_wc_status nr_register(struct nr_wqe *wqe)
{
	struct nr_mr *mr = wqe->reg.mr;
	struct nr_qp *qp = wqe->qp;

	lockdep_assert_held(&nr_engine.lock);
	if (mr->valid || mr->all || mr->pd != qp->ibqp.pd ||
	    (mr->key ^ wqe->reg.key) >> 8 || (wqe->reg.access & ~NR_ACCESS))
		return IB_WC_MW_BIND_ERR;
	mr->key = wqe->reg.key;
	mr->access = wqe->reg.access;
	mr->iova = mr->ibmr.iova;
	mr->length = mr->ibmr.length;
	mr->valid = true;
	return IB_WC_SUCCESS;
}

/* What a LOCAL_INV does, and the receiver of a SEND_WITH_INV. */
enum ib_wc_status nr_invalidate(struct nr_end *end, struct ib_pd *pd, u32 key)
{
	u32 idx = key >> 8;
	struct nr_mr *mr;

	lockdep_assert_held(&nr_engine.lock);
	mr = idx < NR_MAX_MR ? end->mrs[idx] : NULL;
	if (!mr || mr->key != key || mr->pd != pd || mr->all)
		return IB_WC_MW_BIND_ERR;
	mr->valid = false;
	return IB_WC_SUCCESS;
}
