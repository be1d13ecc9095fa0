// SPDX-License-Identifier: GPL-2.0
/*
 * The case of a completion that outlives its queue pair in a poll.
 *
 * It needs riso_test_layer under the module that is tested, which holds the poll up.
 * The case runs in process context under main.c's case_lock. poll_once() runs in a work
 * item. The case reads what that has found after it has flushed the work item.
 */

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "case.h"
#include "cq.h"
#include "ctx.h"
#include "ending.h"
#include "fail.h"
#include "layer.h"
#include "qp.h"

/* the longest that the case waits for the poll */
#define ULP_HELD_MS	5000

struct ulp_poller {
	struct work_struct work;
	struct ib_cq *cq;
	struct ib_cqe cqe;
	struct ib_wc wc;
	int found;
};

/* Waits until the poll that is held up has come so far. */
static int wait_held(struct ulp_ctx *ctx, const struct ib_cq *cq, int far)
{
	unsigned long end = jiffies + msecs_to_jiffies(ULP_HELD_MS);
	int come;

	while ((come = ulp_layer_hold(ctx, cq)) < far && time_before(jiffies, end))
		usleep_range(1000, 2000);
	if (come >= far)
		return 0;
	ulp_fail(ctx, "the poll that is held up has come as far as %d", come);
	return -ETIMEDOUT;
}

static void poll_once(struct work_struct *work)
{
	struct ulp_poller *p = container_of(work, struct ulp_poller, work);

	p->found = ib_poll_cq(p->cq, 1, &p->wc);
}

/* A governed queue pair comes, fails and goes, and the CQ is polled empty. */
static int fail_one(struct ulp_ctx *ctx, struct ulp_poller *p)
{
	const struct ib_send_wr *bad;
	struct ulp_qp qp = {};
	struct ib_sge sge = {
		.addr = ctx->a.src.dma + ULP_BASE,
		.length = ctx->arg.len,
		.lkey = ctx->a.pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &p->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ib_wc wc;
	int err;

	err = ulp_open_ending(ctx, &qp, p->cq);
	if (err)
		return err;
	/* in error before: nothing goes over the wire */
	err = ulp_modify_qp(ctx, &qp, IB_QPS_ERR) ? : ib_post_send(qp.qp, &wr, &bad) ? :
	      wait_held(ctx, p->cq, 2);
	ib_destroy_qp(qp.qp);
	while (ib_poll_cq(p->cq, 1, &wc) > 0)
		ulp_fail(ctx, "there was one more completion");
	return err;
}

/*
 * All this happens while somebody polls a CQ that nobody governed when he began. What he
 * has found meanwhile is still the completion that was asked for.
 */
int ulp_case_stale(struct ulp_ctx *ctx)
{
	struct ib_cq_init_attr attr = { .cqe = 4 * ULP_ENDING };
	struct ulp_poller p = {};
	int err;

	ctx->verify = ULP_VERIFY_NONE;
	err = ulp_connect(ctx);
	if (err)
		return err;
	p.cq = ib_create_cq(ctx->a.dev, NULL, ulp_cq_event, NULL, &attr);
	if (IS_ERR(p.cq))
		return PTR_ERR(p.cq);
	INIT_WORK_ONSTACK(&p.work, poll_once);
	ulp_layer_hold(ctx, p.cq);
	queue_work(system_unbound_wq, &p.work);
	err = wait_held(ctx, p.cq, 1) ? : fail_one(ctx, &p);
	/* longer than a grace period that waits for nobody */
	msleep(ULP_ON_THE_WIRE_MS);
	ulp_layer_hold(ctx, NULL);
	flush_work(&p.work);
	destroy_work_on_stack(&p.work);
	if (!err && (p.found != 1 || p.wc.wr_cqe != &p.cqe))
		ulp_fail(ctx, "%d completions were found, not the one that was asked for",
			 p.found);
	ib_destroy_cq(p.cq);
	return err;
}
