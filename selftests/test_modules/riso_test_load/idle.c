// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs that post once. Some have sent one small message, and send no more: most of those
 * of a server. Others have a large message out, and their peer does not answer.
 *
 * They belong to the first group of large messages. Runs in the process that writes, and
 * sleeps. Completions run in softirq: &load.out is atomic.
 */

#include <linux/delay.h>
#include <linux/err.h>

#include "load.h"

/* work requests that one may have out */
#define IDLE_DEPTH	4

static void idle_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct load_qp *q = container_of(wc->wr_cqe, struct load_qp, cqe);

	if (wc->status != IB_WC_SUCCESS)
		WRITE_ONCE(q->load->failed, wc->status);
	atomic_dec(&q->load->out);
}

static int setup_one(struct load *l, struct load_qp *q)
{
	int err;

	q->depth = IDLE_DEPTH;
	err = load_setup_qp(l, q, 0, NULL);
	if (err)
		return err;
	q->cqe.done = idle_done;
	atomic_inc(&l->out);
	err = load_post(l, q, false, l->arg.small);
	if (err)
		atomic_dec(&l->out);
	return err;
}

/* As many as are asked for, and wait for their messages. */
int load_setup_idle(struct load *l)
{
	u32 ms;
	int err;

	while (l->nidle < l->arg.idle) {
		err = setup_one(l, &l->idle[l->nidle++]);
		if (err)
			return err;
	}
	for (ms = 0; atomic_read(&l->out); ms++) {
		if (ms == LOAD_END_MS)
			return -ETIMEDOUT;
		usleep_range(1000, 2000);
	}
	return READ_ONCE(l->failed) ? -EIO : 0;
}

/* They fail, or go with their queue pair. */
static void mute_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* As many as are asked for. Nobody waits for their messages. */
int load_setup_mute(struct load *l)
{
	u32 all = l->arg.idle + l->arg.mute;
	struct load_qp *q;
	int err = 0;

	while (!err && l->nidle < all) {
		q = &l->idle[l->nidle++];
		q->mute = true;
		err = load_setup_qp(l, q, 0, NULL);
		q->cqe.done = mute_done;
		err = err ? : load_post(l, q, l->arg.read, l->arg.len);
	}
	return err;
}
