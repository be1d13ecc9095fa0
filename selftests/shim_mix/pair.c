// SPDX-License-Identifier: GPL-2.0
/*
 * These functions make, connect, reset and destroy the two queue pairs of a pair.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mix.h"

enum { INLINE = 96 };

/* At the device @dev; @cap is what it has then. */
static struct ibv_qp *create_qp(struct mix_pair *p, unsigned int dev,
				struct ibv_qp_cap *cap, bool builders, bool sig_all)
{
	struct mix_queue *q = &p->w->queue[mix_group_of[p->shape.thread]][dev];
	struct mix_end *e = &p->w->end[dev];
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = q->cq,
		.recv_cq = q->cq,
		.cap = *cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = mix_group_of[p->shape.thread] && e->domain ? e->domain : e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
	};
	struct ibv_qp_attr qp_attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	if (builders)
		qp = ibv_create_qp_ex(e->ctx, &attr);
	else
		qp = ibv_create_qp(attr.pd, (struct ibv_qp_init_attr *)&attr);
	if (!qp)
		mix_fail("queue pair: %s", strerror(errno));
	if (ibv_query_qp(qp, &qp_attr, IBV_QP_CAP, &init))
		mix_fail("query a queue pair: %s", strerror(errno));
	/* Some kernels round the depths up for who asks later. */
	if (init.cap.max_send_wr < attr.cap.max_send_wr ||
	    init.cap.max_recv_wr < attr.cap.max_recv_wr ||
	    init.cap.max_send_sge != attr.cap.max_send_sge ||
	    init.cap.max_recv_sge != attr.cap.max_recv_sge ||
	    init.cap.max_inline_data != attr.cap.max_inline_data ||
	    init.sq_sig_all != sig_all)
		mix_fail("a queue pair of %u is one of %u, with %u inline bytes %u",
			 attr.cap.max_send_wr, init.cap.max_send_wr,
			 attr.cap.max_inline_data, init.cap.max_inline_data);
	if (attr.cap.max_send_wr < cap->max_send_wr ||
	    attr.cap.max_recv_wr < cap->max_recv_wr ||
	    attr.cap.max_send_sge < cap->max_send_sge ||
	    attr.cap.max_inline_data < cap->max_inline_data)
		mix_fail("the queue pair has less than it should");
	*cap = attr.cap;
	return qp;
}

static void create_peer(struct mix_pair *p)
{
	unsigned int to = !p->shape.from;
	struct ibv_qp_cap cap = {
		.max_send_wr = 1, .max_recv_wr = p->shape.depth,
		.max_send_sge = MIX_MAX_SGE, .max_recv_sge = MIX_MAX_SGE,
	};

	p->b = create_qp(p, to, &cap, false, false);
	p->qpn_b = p->b->qp_num;
}

void mix_pair_create(struct mix_pair *p)
{
	p->cap = (struct ibv_qp_cap) {
		.max_send_wr = p->shape.depth, .max_recv_wr = 1,
		.max_send_sge = MIX_MAX_SGE, .max_recv_sge = MIX_MAX_SGE,
		.max_inline_data = INLINE,
	};
	p->a = create_qp(p, p->shape.from, &p->cap, p->shape.builders,
			 p->shape.sig_all);
	p->ax = p->shape.builders ? ibv_qp_to_qp_ex(p->a) : NULL;
	p->qpn_a = p->a->qp_num;
	create_peer(p);
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);

	if (err)
		mix_fail("to state %d: %s", attr->qp_state, strerror(err));
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	modify(qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void to_rts(struct ibv_qp *qp, const struct mix_end *e, const struct mix_end *peer,
		   __u32 peer_qpn, __u32 psn, unsigned int rd_atomic)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = e->port.active_mtu,
		.dest_qp_num = peer_qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = e->rd_atomic,
		.min_rnr_timer = 12,
		.ah_attr = {
			.port_num = 1,
			.is_global = 1,
			.grh = {
				.dgid = peer->gid,
				.sgid_index = e->gid_index,
				.hop_limit = 64,
			},
		},
	};

	modify(qp, &attr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	/* 4 s: an answer may take long on a slow machine without being lost. */
	attr.timeout = 20;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = rd_atomic;
	modify(qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void mix_pair_connect(struct mix_pair *p)
{
	const struct mix_end *e = &p->w->end[p->shape.from];
	const struct mix_end *peer = &p->w->end[!p->shape.from];
	unsigned int rd_atomic = p->large ? 16 : 1 << mix_below(&p->rng, 5);
	__u32 psn = mix_below(&p->rng, 1 << 24);
	unsigned int i;

	if (rd_atomic > peer->rd_atomic)
		rd_atomic = peer->rd_atomic;
	to_init(p->a);
	to_init(p->b);
	for (i = 0; !p->large && i < p->shape.depth; i++)
		mix_post_recv(p, &p->recv[i]);
	to_rts(p->b, peer, e, p->qpn_a, psn, rd_atomic);
	to_rts(p->a, e, peer, p->qpn_b, psn, rd_atomic);
}

static void begin(struct mix_pair *p)
{
	memset(p->local, MIX_FILL, mix_area_size(p));
	memset(p->remote, MIX_FILL, (p->large ? 1 : 2) * mix_area_size(p));
	p->posted = 0;
	p->retired = 0;
	p->silent = 0;
	p->may_fail = false;
	p->failed = 0;
	p->bad_seq = UINT64_MAX;
}

/*
 * As after mix_pair_create(). rxe takes what the old peer still sends for an answer to the
 * new one: it is another queue pair, and comes when that is over. And rxe may go on where
 * the queue stood before the reset; it knows that it is empty after another one.
 */
void mix_pair_reset(struct mix_pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	modify(p->a, &attr, 0);
	if (ibv_destroy_qp(p->b))
		mix_fail("destroy a queue pair: %s", strerror(errno));
	usleep(200000);
	modify(p->a, &attr, 0);
	create_peer(p);
	/* Some providers leave what has completed. */
	while (mix_poll_all(p->w))
		;
	begin(p);
}

void mix_pair_destroy(struct mix_pair *p)
{
	if (ibv_destroy_qp(p->a) || ibv_destroy_qp(p->b))
		mix_fail("destroy a queue pair: %s", strerror(errno));
}

void mix_pair_open(struct mix_pair *p, struct mix_world *w, const struct mix_shape *shape,
		   unsigned int index)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct mix_end *e = &w->end[shape->from];
	struct mix_end *peer = &w->end[!shape->from];
	size_t size;

	*p = (struct mix_pair) {
		.w = w,
		.shape = *shape,
		.index = index,
		.rng = w->seed * 1000 + index,
		.inbox_rng = ~w->seed * 1000 + index,
		.stride = (1u << shape->bits) + 512,
		.large = w->large,
		.bad_seq = UINT64_MAX,
	};
	pthread_mutex_init(&p->lock, NULL);
	size = mix_area_size(p);
	p->local = mmap(NULL, 3 * size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p->op = calloc(shape->depth, sizeof(*p->op));
	p->recv = calloc(shape->depth, sizeof(*p->recv));
	if (p->local == MAP_FAILED || !p->op || !p->recv)
		mix_fail("no memory");
	p->remote = p->local + size;
	p->inbox = p->remote + size;
	begin(p);
	p->mr_a = ibv_reg_mr(e->pd, p->local, size, IBV_ACCESS_LOCAL_WRITE);
	p->mr_b = ibv_reg_mr(peer->pd, p->remote, (p->large ? 1 : 2) * size, access);
	if (!p->mr_a || !p->mr_b)
		mix_fail("memory: %s", strerror(errno));
	mix_pair_create(p);
	mix_pair_connect(p);
}

void mix_pair_close(struct mix_pair *p)
{
	mix_pair_destroy(p);
	if (!mix_is_clean(p->local, (p->large ? 2 : 3) * mix_area_size(p)))
		mix_fail("pair %u: something was changed elsewhere", p->index);
	if (ibv_dereg_mr(p->mr_a) || ibv_dereg_mr(p->mr_b))
		mix_fail("memory: %s", strerror(errno));
	munmap(p->local, 3 * mix_area_size(p));
	free(p->op);
	free(p->recv);
}
