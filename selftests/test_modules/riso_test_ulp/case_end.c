// SPDX-License-Identifier: GPL-2.0
/*
 * The case of queue pairs that end while SENDs wait, in three ways: by an error, by
 * their destruction, and by the connection manager.
 *
 * It needs riso_test_layer under the module that is tested. The case runs in process
 * context under main.c's case_lock. cm_handle_event() runs in the work queue of the
 * connection manager. &ulp_cm.done hands its result over to the case, and &ulp_cm.lock
 * covers the peer and the round, so that a round ends after its request was accepted.
 */

#include <linux/completion.h>
#include <linux/err.h>
#include <linux/in.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>

#include "case.h"
#include "ctx.h"
#include "ending.h"
#include "fail.h"
#include "layer.h"
#include "qp.h"

/* the port of the listener, and the longest that each step of a connection takes */
#define ULP_CM_PORT	7471
#define ULP_CM_MS	10000

struct ulp_cm {
	struct ulp_ctx *ctx;
	struct ib_cq *cq;
	struct rdma_cm_id *id;
	struct rdma_cm_id *peer;
	struct completion done;
	struct mutex lock;	/* see above */
	int status;
	u32 round;
};

/* No request is of this round. */
#define ULP_CM_CLOSED	U32_MAX

/* A request that was sent twice may come once more, in a later round. */
static bool cm_expects(const struct ulp_cm *cm, const struct rdma_conn_param *param)
{
	u32 round;

	if (cm->peer || param->private_data_len < sizeof(round))
		return false;
	memcpy(&round, param->private_data, sizeof(round));
	return round == cm->round;
}

static int cm_accept(struct ulp_cm *cm, struct rdma_cm_id *id, struct ib_cq *cq)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ib_qp_init_attr attr;
	int err;

	ulp_init_ending(&attr, cq);
	err = rdma_create_qp(id, cm->ctx->b.pd, &attr) ? : rdma_accept(id, &param);
	if (!err)
		cm->peer = id;
	else if (id->qp)
		rdma_destroy_qp(id);
	return err;
}

static int cm_handle_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ulp_cm *cm = id->context;
	int err = -ESTALE;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		mutex_lock(&cm->lock);
		if (cm_expects(cm, &event->param.conn))
			err = cm_accept(cm, id, cm->ctx->qb[0].scq->cq);
		mutex_unlock(&cm->lock);
		return err;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* of the peer's own: only ours counts */
		if (id != cm->id)
			return 0;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		cm->status = event->status ? : -ECONNABORTED;
	}
	complete(&cm->done);
	return 0;
}

static int cm_wait(struct ulp_cm *cm)
{
	if (!wait_for_completion_timeout(&cm->done, msecs_to_jiffies(ULP_CM_MS)))
		return -ETIMEDOUT;
	return cm->status;
}

static void cm_fill_addr(struct sockaddr_in *sin, const union ib_gid *gid, u16 port)
{
	*sin = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};
	memcpy(&sin->sin_addr, gid->raw + 12, sizeof(sin->sin_addr));
}

static int cm_connect(struct ulp_cm *cm)
{
	struct rdma_conn_param param = {
		.private_data = &cm->round,
		.private_data_len = sizeof(cm->round),
		.rnr_retry_count = 7,
		.retry_count = 7,
	};
	struct sockaddr_in src, dst;
	struct ib_qp_init_attr attr;
	int err;

	cm_fill_addr(&src, &cm->ctx->a.gid, 0);
	cm_fill_addr(&dst, &cm->ctx->b.gid, ULP_CM_PORT);
	ulp_init_ending(&attr, cm->cq);
	init_completion(&cm->done);
	cm->status = 0;
	cm->id = rdma_create_id(&init_net, cm_handle_event, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(cm->id))
		return PTR_ERR(cm->id);
	err = rdma_resolve_addr(cm->id, (struct sockaddr *)&src,
				(struct sockaddr *)&dst, ULP_CM_MS) ? :
	      cm_wait(cm) ? :
	      rdma_resolve_route(cm->id, ULP_CM_MS) ? : cm_wait(cm) ? :
	      rdma_create_qp(cm->id, cm->ctx->a.pd, &attr) ? :
	      rdma_connect(cm->id, &param) ? : cm_wait(cm);
	return err;
}

static void cm_close(struct ulp_cm *cm)
{
	if (cm->id->qp)
		rdma_destroy_qp(cm->id);
	rdma_destroy_id(cm->id);
	/* The reply is out before the one who accepts has done. */
	mutex_lock(&cm->lock);
	cm->round = ULP_CM_CLOSED;
	mutex_unlock(&cm->lock);
	if (!cm->peer)
		return;
	rdma_destroy_qp(cm->peer);
	rdma_destroy_id(cm->peer);
}

static int post_ending(struct ulp_ctx *ctx, struct ib_qp *qp, u32 n)
{
	const struct ib_send_wr *bad;
	struct ib_sge sge = {
		.addr = ctx->a.src.dma + ULP_BASE,
		.length = ctx->arg.len,
		.lkey = ctx->a.pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err = 0;

	while (!err && n--)
		err = ib_post_send(qp, &wr, &bad);
	return err;
}

/* One round. Says in @held whether something still waited when the queue pair ended. */
static int end_one(struct ulp_ctx *ctx, struct ulp_cm *cm, u32 round, bool *held)
{
	struct riso_test_seen before, waiting, after;
	u32 n = 1 + round % ULP_ENDING;
	u32 way = round % 3;
	struct ulp_qp qp = {};
	int err;

	mutex_lock(&cm->lock);
	cm->round = round;
	cm->peer = NULL;
	mutex_unlock(&cm->lock);
	err = way == 2 ? cm_connect(cm) : ulp_open_ending(ctx, &qp, cm->cq);
	if (err && way == 2)
		cm_close(cm);
	if (err)
		return err;
	ulp_layer_read(ctx, &before);
	err = post_ending(ctx, way == 2 ? cm->id->qp : qp.qp, n);
	ulp_layer_read(ctx, &waiting);
	if (way == 0)
		err = err ? : ulp_modify_qp(ctx, &qp, IB_QPS_ERR);
	else if (way == 2)
		err = err ? : rdma_disconnect(cm->id);
	if (way == 2)
		cm_close(cm);
	else
		ib_destroy_qp(qp.qp);
	ulp_layer_read(ctx, &after);
	*held = waiting.sends - before.sends < n;
	if (after.sends - before.sends != n || after.late_sends != before.late_sends)
		ulp_fail(ctx, "round %u: of %u SENDs %llu were given before the end, %llu after",
			 round, n, after.sends - before.sends,
			 after.late_sends - before.late_sends);
	return err;
}

/* What was accepted is given to the device before a queue pair ends. */
int ulp_case_end(struct ulp_ctx *ctx)
{
	struct riso_test_seen seen;
	struct ulp_cm cm = { .ctx = ctx };
	struct rdma_cm_id *listener;
	struct sockaddr_in sin;
	u32 i, n = ctx->arg.count ? : 30, waited = 0;
	bool held;
	int err;

	mutex_init(&cm.lock);
	ctx->verify = ULP_VERIFY_NONE;
	err = ulp_connect(ctx);
	if (err || !ulp_layer_read(ctx, &seen))
		return err ? : -EIO;
	cm.cq = ib_alloc_cq(ctx->a.dev, ctx, 4 * ULP_ENDING, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cm.cq))
		return PTR_ERR(cm.cq);
	listener = rdma_create_id(&init_net, cm_handle_event, &cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener)) {
		err = PTR_ERR(listener);
		goto free_cq;
	}
	cm_fill_addr(&sin, &ctx->b.gid, ULP_CM_PORT);
	err = rdma_bind_addr(listener, (struct sockaddr *)&sin) ? :
	      rdma_listen(listener, 8);
	for (i = 0; !err && i < n && !ulp_is_hopeless(ctx); i++) {
		err = end_one(ctx, &cm, i, &held);
		waited += held;
		cond_resched();
	}
	if (err)
		ulp_fail(ctx, "round %u failed with %d", i, err);
	else if (waited < n / 2)
		ulp_fail(ctx, "something waited in %u of %u rounds only", waited, n);
	rdma_destroy_id(listener);
free_cq:
	ib_free_cq(cm.cq);
	return err;
}
