// SPDX-License-Identifier: GPL-2.0
/*
 * These functions make, poll and destroy CQs, plain and extended ones.
 */
#include <errno.h>
#include <string.h>

#include "mix.h"

void mix_create_cq(struct mix_queue *q, struct mix_end *e, bool ex, bool events)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = q->depth,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	q->chan = events ? ibv_create_comp_channel(e->ctx) : NULL;
	if (events && !q->chan)
		mix_fail("channel: %s", strerror(errno));
	attr.channel = q->chan;
	q->ex = ex ? ibv_create_cq_ex(e->ctx, &attr) : NULL;
	q->cq = q->ex ? ibv_cq_ex_to_cq(q->ex) :
			ibv_create_cq(e->ctx, q->depth, NULL, q->chan, 0);
	if (!q->cq || q->cq->cqe < (int)q->depth)
		mix_fail("CQ of %u: %s", q->depth, strerror(errno));
}

void mix_destroy_cq(struct mix_queue *q)
{
	if (!q->cq)
		return;
	if (q->events)
		ibv_ack_cq_events(q->cq, q->events);
	if (ibv_destroy_cq(q->cq) || (q->chan && ibv_destroy_comp_channel(q->chan)))
		mix_fail("destroy a CQ: %s", strerror(errno));
}

int mix_poll_ex(struct ibv_cq_ex *ex, int num, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = {};
	int err = ibv_start_poll(ex, &attr);
	int n = 0;

	if (err)
		return err == ENOENT ? 0 : -err;
	do {
		wc[n] = (struct ibv_wc) {
			.wr_id = ex->wr_id,
			.status = ex->status,
			.qp_num = ibv_wc_read_qp_num(ex),
		};
		if (!ex->status) {
			wc[n].opcode = ibv_wc_read_opcode(ex);
			wc[n].wc_flags = ibv_wc_read_wc_flags(ex);
			wc[n].byte_len = ibv_wc_read_byte_len(ex);
			wc[n].imm_data = ibv_wc_read_imm_data(ex);
		}
		/* See rdma_isolate_set_class() in mix.h. */
		if (mix_needs_care())
			num = 1;
	} while (++n < num && !(err = ibv_next_poll(ex)));
	ibv_end_poll(ex);
	return err && err != ENOENT ? -err : n;
}
