// SPDX-License-Identifier: GPL-2.0
/*
 * Posts: refused, taken in part, or given to the provider.
 *
 * Owns the number of work requests that are taken before the first is refused, which is
 * atomic. Parameters are read without a lock. Posts come in any context.
 */

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "../riso_test_layer.h"
#include "layer.h"
#include "post.h"
#include "qp.h"
#include "seen.h"

/* work requests that are taken before the first is refused */
static atomic_t take;

static bool alias;
module_param(alias, bool, 0644);
MODULE_PARM_DESC(alias, "IB_WR_RESERVED1 is another name of RDMA_WRITE");

static unsigned int part;
module_param(part, uint, 0644);
MODULE_PARM_DESC(part, "work requests of a chain that are taken, for the rest there is no room; 0 for all");

static bool sink;
module_param(sink, bool, 0644);
MODULE_PARM_DESC(sink, "SENDs are taken, never sent and never completed");

/**
 * riso_test_layer_refuse - refuse posts from now on
 * @error: errno, or 0 to take them again
 * @num: work requests that are taken before
 */
void riso_test_layer_refuse(int error, unsigned int num)
{
	atomic_set(&take, num);
	WRITE_ONCE(layer_refuse, error);
}
EXPORT_SYMBOL_GPL(riso_test_layer_refuse);

static size_t size_of(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_REG_MR:
		return sizeof(struct ib_reg_wr);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return sizeof(struct ib_atomic_wr);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RESERVED1:
		return sizeof(struct ib_rdma_wr);
	default:
		return sizeof(struct ib_send_wr);
	}
}

/* One by one, as many of a chain as @num says; where it ends is told in @bad_wr. */
static int post_each(struct ib_qp *qp, const struct ib_send_wr *wr, atomic_t *num,
		     const struct ib_send_wr **bad_wr)
{
	for (; wr && (!num || atomic_dec_if_positive(num) >= 0); wr = wr->next) {
		const struct ib_send_wr *bad;
		union {
			struct ib_send_wr wr;
			struct ib_rdma_wr rdma;
			struct ib_atomic_wr atomic;
			struct ib_reg_wr reg;
		} one;
		int err;

		memcpy(&one, wr, size_of(wr->opcode));
		one.wr.next = NULL;
		if (alias && one.wr.opcode == IB_WR_RESERVED1)
			one.wr.opcode = IB_WR_RDMA_WRITE;
		err = layer_orig.post_send(qp, &one.wr, &bad);
		if (err) {
			*bad_wr = wr;
			return err;
		}
	}
	*bad_wr = wr;
	return 0;
}

static bool is_send(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_SEND || wr->opcode == IB_WR_SEND_WITH_IMM ||
	       wr->opcode == IB_WR_SEND_WITH_INV;
}

int layer_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr)
{
	int error = READ_ONCE(layer_refuse);
	unsigned int most = READ_ONCE(part);
	const struct ib_send_wr *w;
	struct layer_qp *lq;
	u32 sends = 0;
	atomic_t room;
	bool ready;
	int err;

	if (qp->uobject || qp->qp_type != IB_QPT_RC)
		return layer_orig.post_send(qp, wr, bad_wr);
	atomic64_inc(&layer_posts);
	if (preemptible())
		atomic64_inc(&layer_preemptible);
	rcu_read_lock();
	lq = layer_find_qp(qp);
	ready = lq && READ_ONCE(lq->ready);
	layer_note_call(lq);
	rcu_read_unlock();
	if ((error || most) && lq) {
		atomic_set(&room, most);
		err = post_each(qp, wr, error ? &take : &room, bad_wr);
		if (err || !*bad_wr)
			return err;
		atomic64_inc(&layer_refused);
		return error ? -error : -ENOMEM;
	}
	for (w = wr; w; w = w->next)
		sends += is_send(w);
	if (sends && sink)
		err = 0;
	else if (alias && lq)
		err = post_each(qp, wr, NULL, bad_wr);
	else
		err = layer_orig.post_send(qp, wr, bad_wr);
	if (!err)
		atomic64_add(sends, ready ? &layer_sends : &layer_late_sends);
	return err;
}
