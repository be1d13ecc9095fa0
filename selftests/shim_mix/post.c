// SPDX-License-Identifier: GPL-2.0
/*
 * These functions post receives, and work requests, in lists or by the builders.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "mix.h"

static void build_data(struct ibv_qp_ex *qp, struct mix_op *op)
{
	struct ibv_data_buf buf[MIX_MAX_SGE];
	int i;

	if (!(op->flags & IBV_SEND_INLINE)) {
		if (op->num_sge == 1)
			ibv_wr_set_sge(qp, op->sge[0].lkey, op->sge[0].addr,
				       op->sge[0].length);
		else
			ibv_wr_set_sge_list(qp, op->num_sge, op->sge);
		return;
	}
	for (i = 0; i < op->num_sge; i++) {
		buf[i].addr = mix_addr_of(&op->sge[i]);
		buf[i].length = op->sge[i].length;
	}
	if (op->num_sge == 1)
		ibv_wr_set_inline_data(qp, buf[0].addr, buf[0].length);
	else
		ibv_wr_set_inline_data_list(qp, op->num_sge, buf);
}

static void build(struct ibv_qp_ex *qp, struct mix_op *op)
{
	__u64 remote = (uintptr_t)op->remote;

	qp->wr_id = op->wr_id;
	qp->wr_flags = op->flags;
	switch (op->opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, op->rkey, remote);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, op->rkey, remote, op->imm);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, op->rkey, remote);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, op->imm);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, op->rkey, remote, op->compare);
		break;
	default:
		ibv_wr_atomic_cmp_swp(qp, op->rkey, remote, op->compare, op->swap);
	}
	build_data(qp, op);
}

static void copy_out(const struct mix_op *op, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	memcpy(sge, op->sge, sizeof(op->sge));
	*wr = (struct ibv_send_wr) {
		.wr_id = op->wr_id,
		.sg_list = sge,
		.num_sge = op->num_sge,
		.opcode = op->opcode,
		.send_flags = op->flags,
		.imm_data = op->imm,
	};
	if (mix_is_atomic(op)) {
		wr->wr.atomic.remote_addr = (uintptr_t)op->remote;
		wr->wr.atomic.compare_add = op->compare;
		wr->wr.atomic.swap = op->swap;
		wr->wr.atomic.rkey = op->rkey;
	} else {
		wr->wr.rdma.remote_addr = (uintptr_t)op->remote;
		wr->wr.rdma.rkey = op->rkey;
	}
}

/* Post so many at once; @last gets a completion. Nobody else has the pair. */
void mix_pair_post(struct mix_pair *p, unsigned int num, bool last)
{
	struct ibv_sge sge[MIX_MAX_LIST][MIX_MAX_SGE];
	struct ibv_send_wr wr[MIX_MAX_LIST], *bad;
	struct mix_op *op[MIX_MAX_LIST];
	unsigned int i;
	int err;

	for (i = 0; i < num; i++)
		op[i] = mix_draw_op(p, i ? op[i - 1] : NULL, last && i == num - 1);
	if (p->shape.builders) {
		if (mix_once_in(&p->rng, 16)) {
			ibv_wr_start(p->ax);
			build(p->ax, op[0]);
			ibv_wr_abort(p->ax);
		}
		ibv_wr_start(p->ax);
		for (i = 0; i < num; i++)
			build(p->ax, op[i]);
		err = ibv_wr_complete(p->ax);
	} else {
		for (i = 0; i < num; i++) {
			copy_out(op[i], &wr[i], sge[i]);
			if (i)
				wr[i - 1].next = &wr[i];
		}
		err = ibv_post_send(p->a, wr, &bad);
		memset(wr, MIX_FILL, sizeof(wr));
		memset(sge, MIX_FILL, sizeof(sge));
	}
	if (err)
		mix_fail("posting %u: %s", num, strerror(err));
	/* These may be used anew at once. */
	for (i = 0; i < num; i++) {
		if (!(op[i]->flags & IBV_SEND_INLINE))
			continue;
		mix_clean_local(op[i]);
		op[i]->own_local = false;
	}
}

void mix_post_recv(struct mix_pair *p, struct mix_recv *r)
{
	__u8 *at = p->inbox + (r - p->recv) * p->stride + MIX_GAP;
	struct ibv_recv_wr *bad, wr = { .sg_list = r->sge };

	r->wr_id = mix_draw_from(&p->inbox_rng);
	r->no = p->recvs++;
	r->num_sge = mix_cut(&p->inbox_rng, r->sge, at, 1u << p->shape.bits, MIX_MAX_SGE,
			     p->mr_b->lkey);
	wr.wr_id = r->wr_id;
	wr.num_sge = r->num_sge;
	if (ibv_post_recv(p->b, &wr, &bad))
		mix_fail("post a receive: %s", strerror(errno));
}
