// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fake provider's own ibv_wr_*: as many as the tests use. They record which work
 * requests reach the provider, and drop the data.
 */
#include <string.h>

#include "fake_qp.h"
#include "fake_verbs.h"
#include "fake_wr.h"

static void fake_wr_start(struct ibv_qp_ex *ex)
{
	((struct fake_qp *)ex)->num_built = 0;
}

static struct ibv_send_wr *fake_build(struct ibv_qp_ex *ex, int opcode)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	struct ibv_send_wr *wr = &qp->built[qp->num_built++];

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = ex->wr_id;
	wr->send_flags = ex->wr_flags;
	wr->opcode = opcode;
	return wr;
}

static void fake_wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = fake_build(ex, IBV_WR_RDMA_WRITE);

	wr->wr.rdma.remote_addr = addr;
	wr->wr.rdma.rkey = rkey;
}

static void fake_wr_send(struct ibv_qp_ex *ex)
{
	fake_build(ex, IBV_WR_SEND);
}

static void fake_wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	fake_build(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void fake_wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	fake_build(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void fake_wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw,
			    uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = fake_build(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void fake_wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
			    uint32_t length)
{
	(void)ex;
	(void)lkey;
	(void)addr;
	(void)length;
}

static void fake_wr_set_sge_list(struct ibv_qp_ex *ex, size_t num,
				 const struct ibv_sge *sge)
{
	(void)ex;
	(void)num;
	(void)sge;
}

static void fake_wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t len)
{
	(void)ex;
	(void)addr;
	(void)len;
}

static void fake_wr_set_inline_list(struct ibv_qp_ex *ex, size_t num,
				    const struct ibv_data_buf *buf)
{
	(void)ex;
	(void)num;
	(void)buf;
}

static int fake_wr_complete(struct ibv_qp_ex *ex)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	uint32_t i;
	int err = 0;

	fake_syscall();
	for (i = 0; i < qp->num_built && !err; i++)
		err = fake_post_one(qp, &qp->built[i]);
	return err;
}

static void fake_wr_abort(struct ibv_qp_ex *ex)
{
	((struct fake_qp *)ex)->num_built = 0;
}

struct ibv_qp *fake_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr)
{
	struct fake_qp *qp = fake_new_qp((struct ibv_qp_init_attr *)attr);

	(void)context;
	if (!qp)
		return NULL;
	qp->ex.wr_start = fake_wr_start;
	qp->ex.wr_rdma_write = fake_wr_rdma_write;
	qp->ex.wr_send = fake_wr_send;
	qp->ex.wr_send_inv = fake_wr_send_inv;
	qp->ex.wr_local_inv = fake_wr_local_inv;
	qp->ex.wr_bind_mw = fake_wr_bind_mw;
	qp->ex.wr_set_sge = fake_wr_set_sge;
	qp->ex.wr_set_sge_list = fake_wr_set_sge_list;
	qp->ex.wr_set_inline_data = fake_wr_set_inline_data;
	qp->ex.wr_set_inline_data_list = fake_wr_set_inline_list;
	qp->ex.wr_complete = fake_wr_complete;
	qp->ex.wr_abort = fake_wr_abort;
	return &qp->ex.qp_base;
}
