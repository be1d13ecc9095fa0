// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests as the verbs take them: built from a record of the ledger, posted, and
 * overwritten.
 *
 * Owns no state and takes no lock. ulp_post(), and ulp_post_chain() of one request, may
 * be called in any context, hard interrupts included. ulp_post_chain() of more, and
 * ulp_post_recv(), sleep.
 */

#include <linux/slab.h>
#include <linux/string.h>

#include "cq.h"
#include "fail.h"
#include "lane.h"
#include "op.h"
#include "wr.h"

struct ulp_wr {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
		struct ib_recv_wr recv;
	};
	struct ib_sge sge[ULP_MAX_SGE];
	struct ulp_rec *rec;
	u8 data[ULP_INLINE];
};

static struct ulp_buf *get_local_buf(struct ulp_ep *ep, const struct ulp_rec *rec)
{
	return ulp_fills_local(rec) || rec->op.from_dst ? &ep->dst : &ep->src;
}

static int fill_sges(struct ulp_wr *w, struct ulp_ep *ep, const struct ulp_rec *rec)
{
	const struct ulp_op *op = &rec->op;
	struct ulp_buf *buf = get_local_buf(ep, rec);
	u32 lkey = op->lmr ? op->lmr->lkey : ep->pd->local_dma_lkey;
	u32 i, n = op->len ? ulp_count_sges(op) : 0;

	for (i = 0; i < n; i++) {
		u32 cut = ulp_find_cut(op, i);
		u32 off = op->loff + cut + i * ULP_GAP;

		w->sge[i].addr = buf->dma + off;
		w->sge[i].length = ulp_find_cut(op, i + 1) - cut;
		w->sge[i].lkey = lkey;
		if (op->flags & IB_SEND_INLINE) {
			memcpy(w->data + cut, buf->va + off, w->sge[i].length);
			w->sge[i].addr = (uintptr_t)(w->data + cut);
		}
	}
	if (op->bad_lkey)
		w->sge[n - 1].lkey = ~lkey;
	return n;
}

static void build_wr(struct ulp_wr *w, struct ulp_rec *rec)
{
	const struct ulp_op *op = &rec->op;
	struct ulp_ep *ep = rec->lane->qp->ep;
	struct ulp_ep *peer = ep->peer;
	bool read = op->opcode == IB_WR_RDMA_READ;
	struct ib_mr *mr = read ? peer->mr_src : peer->mr_dst;
	u64 raddr = (read ? peer->src.dma : peer->dst.dma) + op->roff;
	u32 rkey = op->rmr ? op->rmr->rkey : mr ? mr->rkey : 0;

	memset(w, 0, sizeof(*w));
	w->rec = rec;
	w->wr.opcode = op->opcode;
	w->wr.send_flags = op->flags;
	w->wr.sg_list = w->sge;
	if (ulp_uses_wr_id(rec->lane->ctx->arg.cq))
		w->wr.wr_id = rec->wr_id;
	else
		w->wr.wr_cqe = op->hidden ? NULL : &rec->cqe;

	switch (op->opcode) {
	case IB_WR_REG_MR:
		w->reg.mr = op->mr;
		w->reg.key = op->mr->rkey;
		w->reg.access = IB_ACCESS_LOCAL_WRITE | ULP_REMOTE;
		return;
	case IB_WR_LOCAL_INV:
		w->wr.ex.invalidate_rkey = op->mr->rkey;
		return;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		w->atomic.remote_addr = raddr;
		w->atomic.rkey = rkey;
		w->atomic.compare_add = op->add;
		w->atomic.swap = op->swap;
		break;
	case IB_WR_SEND_WITH_INV:
		w->wr.ex.invalidate_rkey = op->mr->rkey;
		break;
	case IB_WR_SEND_WITH_IMM:
		w->wr.ex.imm_data = cpu_to_be32(op->imm);
		break;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		w->wr.ex.imm_data = cpu_to_be32(op->imm);
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case IB_WR_RESERVED1:
		w->rdma.remote_addr = raddr;
		w->rdma.rkey = rkey;
		break;
	default:
		break;
	}
	w->wr.num_sge = fill_sges(w, ep, rec);
}

/*
 * Post a chain. Whatever the provider keeps it must have copied when it
 * returns, so everything is overwritten then. The number of those accepted
 * is told in @accepted, if the caller knows that not all of them may be.
 */
int ulp_post_chain(struct ulp_lane *lane, const struct ulp_op *ops, u32 n,
		   u32 *accepted)
{
	struct ib_send_wr *const nowhere = (void *)&lane->posted;
	const struct ib_send_wr *bad = nowhere;
	struct ulp_ctx *ctx = lane->ctx;
	struct ulp_wr *w;
	u32 i, good = n;
	int err;

	w = n == 1 ? kmalloc(sizeof(*w), GFP_ATOMIC) :
		     kvmalloc_array(n, sizeof(*w), GFP_KERNEL);
	if (!w) {
		ulp_fail(ctx, "no memory for %u work requests", n);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		struct ulp_rec *rec = ulp_append_rec(lane, &ops[i], false);

		if (!rec) {
			kvfree(w);
			return -ENOSPC;
		}
		build_wr(&w[i], rec);
		if (i)
			w[i - 1].wr.next = &w[i].wr;
	}
	err = ib_post_send(lane->qp->qp, &w[0].wr, &bad);
	if (err) {
		for (good = 0; good < n; good++)
			if (bad == &w[good].wr)
				break;
		if (good == n)
			ulp_fail(ctx, "lane %u: post failed with %d and %s bad_wr",
				 lane->id, err, bad == nowhere ? "no" : "a foreign");
		for (i = n; i > good; i--)
			ulp_drop_rec(w[i - 1].rec);
	}
	if (accepted)
		*accepted = good;
	else if (err)
		ulp_fail(ctx, "lane %u: post of %u failed at %u with %d",
			 lane->id, n, good, err);
	memset(w, 0x5a, n * sizeof(*w));
	kvfree(w);
	return err;
}

int ulp_post(struct ulp_lane *lane, const struct ulp_op *op)
{
	return ulp_post_chain(lane, op, 1, NULL);
}

int ulp_post_recv(struct ulp_lane *lane, u32 off, u32 len, u32 nsge,
		  enum ulp_expect expect)
{
	const struct ulp_op op = {
		.len = len, .loff = off, .nsge = nsge, .expect = expect,
	};
	struct ulp_qp *qp = lane->qp;
	const struct ib_recv_wr *bad;
	struct ulp_rec *rec;
	struct ulp_wr *w;
	int err;

	w = kzalloc(sizeof(*w), GFP_KERNEL);
	rec = w ? ulp_append_rec(lane, &op, true) : NULL;
	if (!rec) {
		kfree(w);
		return -ENOMEM;
	}
	if (ulp_uses_wr_id(lane->ctx->arg.cq))
		w->recv.wr_id = rec->wr_id;
	else
		w->recv.wr_cqe = &rec->cqe;
	w->recv.sg_list = w->sge;
	w->recv.num_sge = fill_sges(w, qp->ep, rec);
	err = qp->srq ? ib_post_srq_recv(qp->srq, &w->recv, &bad) :
			ib_post_recv(qp->qp, &w->recv, &bad);
	if (err) {
		ulp_drop_rec(rec);
		ulp_fail(lane->ctx, "lane %u: post of a receive failed with %d",
			 lane->id, err);
	}
	memset(w, 0x5a, sizeof(*w));
	kfree(w);
	return err;
}
