// SPDX-License-Identifier: GPL-2.0
/*
 * What the peer does with a message that arrives: it carries out a request and
 * acknowledges it, or refuses it, or nobody is there. A datagram goes to the queue pair
 * that it names, if that has room.
 *
 * Owns no state. All of it runs under nr_engine.lock, in the engine.
 */

#include <linux/align.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <net/ip.h>

#include "cq.h"
#include "engine.h"
#include "mem.h"
#include "mr.h"
#include "params.h"
#include "peer.h"
#include "request.h"
#include "wire.h"

/* what a port says when it has no receive, in us, by &enum ib_rnr_timeout */
static const u32 rnr_us[] = {
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880,
	163840, 245760, 327680, 491520,
};

static struct nr_qp *find_peer(const struct nr_qp *qp)
{
	struct nr_qp *rqp;

	if (!qp->peer || !qp->end->up || !qp->peer->up || qp->dest >= NR_MAX_QP)
		return NULL;
	rqp = qp->peer->qps[qp->dest];
	if (!rqp || (rqp->state != IB_QPS_RTR && rqp->state != IB_QPS_RTS) ||
	    rqp->dest != qp->number || rqp->peer != qp->end)
		return NULL;
	return rqp;
}

/* The ULP's timeout, or that of the module. */
static u64 get_timeout(const struct nr_qp *qp)
{
	u32 ms = READ_ONCE(nr_timeout_ms);

	if (ms)
		return (u64)ms * NSEC_PER_MSEC;
	/* 4096 ns, doubled so many times; 0 is for ever */
	return qp->attr.timeout ? 4096ULL << qp->attr.timeout : NR_NEVER;
}

/* Nobody answers. */
static void lose(struct nr_wqe *wqe, u64 t)
{
	u64 timeout = get_timeout(wqe->qp);

	wqe->qp->end->lost++;
	nr_begin_gap(wqe, NR_GAP_LOST, timeout == NR_NEVER ? NR_NEVER : t + timeout, t);
}

/* The acknowledgment leaves. With a refusal, nothing behind it is carried out. */
static void acknowledge(struct nr_wqe *wqe, enum ib_wc_status status, u64 t)
{
	struct nr_qp *qp = wqe->qp;
	struct nr_end *peer = qp->peer;

	if (unlikely(status != IB_WC_SUCCESS)) {
		nr_forget_gap(qp);
		qp->gap = NR_GAP_FATAL;
		nr_take_back(qp, wqe->idx + 1, t);
	}
	if (!peer->delay_ns) {
		nr_end_request(wqe, status, t);
		return;
	}
	wqe->status = status;
	wqe->when = max(t + peer->delay_ns, peer->last_ack);
	peer->last_ack = wqe->when;
	nr_append(wqe, &peer->acks);
	nr_expect(peer, wqe->when);
}

/* --- receives --- */

static bool has_receive(const struct nr_qp *rqp)
{
	/* Pairs with the release in nr_post_recv(). */
	return rqp->rq.done != smp_load_acquire(&rqp->rq.head);
}

static u64 count_room(const struct nr_rwqe *rwqe)
{
	u64 room = 0;
	u32 i;

	for (i = 0; i < rwqe->num_sge; i++)
		room += rwqe->sge[i].length;
	return room;
}

/* The next receive completes. @wc has what is not of every completion. */
static void complete_receive(struct nr_qp *rqp, struct ib_wc *wc, bool solicited, u64 t)
{
	struct nr_cq *cq = to_nr_cq(rqp->ibqp.recv_cq);
	struct nr_rwqe *rwqe = nr_get_rwqe(rqp, rqp->rq.done++);
	struct nr_cqe *cqe = nr_next_cqe(cq);

	if (unlikely(!cqe))
		return;
	wc->wr_id = rwqe->wr_id;
	wc->qp = &rqp->ibqp;
	wc->port_num = 1;
	cqe->wc = *wc;
	cqe->tail = &rqp->rq.tail;
	cqe->value = rqp->rq.done;
	nr_add_cqe(cq, cqe, solicited, t);
}

/* What the requester gets for it if the receive does not take a SEND. */
static enum ib_wc_status refuse_send(struct nr_qp *rqp, enum ib_wc_status status, u64 t)
{
	struct ib_wc wc = { .status = status, .opcode = IB_WC_RECV };

	complete_receive(rqp, &wc, true, t);
	return status == IB_WC_LOC_LEN_ERR ? IB_WC_REM_INV_REQ_ERR : IB_WC_REM_OP_ERR;
}

/* --- requests --- */

static enum ib_wc_status take_send(struct nr_wqe *wqe, struct nr_qp *rqp, u64 t)
{
	struct ib_wc wc = { .opcode = IB_WC_RECV, .byte_len = wqe->length };
	struct nr_rwqe *rwqe;
	struct nr_mem to, from;

	if (!has_receive(rqp))
		return IB_WC_RNR_RETRY_EXC_ERR;
	rwqe = nr_get_rwqe(rqp, rqp->rq.done);
	if (count_room(rwqe) < wqe->length)
		return refuse_send(rqp, IB_WC_LOC_LEN_ERR, t);
	if (!nr_may_use(rqp, rwqe->sge, rwqe->num_sge, IB_ACCESS_LOCAL_WRITE))
		return refuse_send(rqp, IB_WC_LOC_PROT_ERR, t);
	if (wqe->opcode == IB_WR_SEND_WITH_INV) {
		if (nr_invalidate(rqp->end, rqp->ibqp.pd, wqe->ex.invalidate_rkey))
			return IB_WC_REM_ACCESS_ERR;
		wc.wc_flags = IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = wqe->ex.invalidate_rkey;
	} else if (wqe->opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = wqe->ex.imm_data;
	}
	if (nr_is_moved(wqe->length)) {
		to = nr_mem_of_sges(rqp, rwqe->sge, rwqe->num_sge);
		from = nr_mem_of_request(wqe);
		nr_move(&to, &from, wqe->length);
	}
	complete_receive(rqp, &wc, wqe->flags & NR_SOLICITED, t);
	return IB_WC_SUCCESS;
}

/* The region that a request names, if the requester may do that to it. */
static struct nr_mr *find_target(const struct nr_wqe *wqe, struct nr_qp *rqp, int access)
{
	if (!(rqp->attr.qp_access_flags & access))
		return NULL;
	return nr_find_mr(rqp->end, rqp->ibqp.pd, wqe->rkey, wqe->raddr, wqe->length,
			  access);
}

/*
 * A WRITE puts its data into the region, a READ takes them from there. Those of a READ move at
 * once as well: what stands behind it may change them, and nobody looks at the requester's
 * memory before the answer is there.
 */
static enum ib_wc_status move_data(struct nr_wqe *wqe, struct nr_qp *rqp, int access)
{
	struct nr_mem region, own;
	struct nr_mr *mr;

	if (!wqe->length)
		return IB_WC_SUCCESS;
	mr = find_target(wqe, rqp, access);
	if (!mr)
		return IB_WC_REM_ACCESS_ERR;
	if (!nr_is_moved(wqe->length))
		return IB_WC_SUCCESS;
	region = nr_mem_of_region(rqp, mr, wqe->raddr, wqe->length);
	own = nr_mem_of_request(wqe);
	if (access == IB_ACCESS_REMOTE_READ)
		nr_move(&own, &region, wqe->length);
	else
		nr_move(&region, &own, wqe->length);
	return IB_WC_SUCCESS;
}

static enum ib_wc_status take_write_imm(struct nr_wqe *wqe, struct nr_qp *rqp, u64 t)
{
	struct ib_wc wc = {
		.opcode = IB_WC_RECV_RDMA_WITH_IMM,
		.byte_len = wqe->length,
		.wc_flags = IB_WC_WITH_IMM,
		.ex.imm_data = wqe->ex.imm_data,
	};
	enum ib_wc_status status;

	if (!has_receive(rqp))
		return IB_WC_RNR_RETRY_EXC_ERR;
	status = move_data(wqe, rqp, IB_ACCESS_REMOTE_WRITE);
	if (status == IB_WC_SUCCESS)
		complete_receive(rqp, &wc, wqe->flags & NR_SOLICITED, t);
	return status;
}

static enum ib_wc_status take_atomic(struct nr_wqe *wqe, struct nr_qp *rqp)
{
	struct nr_mem to = nr_mem_of_request(wqe);
	struct nr_mr *mr;
	u64 *word, old;

	if (wqe->length != sizeof(u64) || !IS_ALIGNED(wqe->raddr, sizeof(u64)))
		return IB_WC_REM_INV_REQ_ERR;
	mr = find_target(wqe, rqp, IB_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		return IB_WC_REM_ACCESS_ERR;
	word = nr_find_word(mr, wqe->raddr);
	old = *word;
	if (wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		*word = old + wqe->atomic.compare_add;
	else if (old == wqe->atomic.compare_add)
		*word = wqe->atomic.swap;
	nr_put(&to, &old, sizeof(old));
	return IB_WC_SUCCESS;
}

static enum ib_wc_status carry_out(struct nr_wqe *wqe, struct nr_qp *rqp, u64 t)
{
	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE:
		return move_data(wqe, rqp, IB_ACCESS_REMOTE_WRITE);
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return take_write_imm(wqe, rqp, t);
	case IB_WR_RDMA_READ:
		return move_data(wqe, rqp, IB_ACCESS_REMOTE_READ);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return take_atomic(wqe, rqp);
	default:
		return take_send(wqe, rqp, t);
	}
}

/* The requester waits as long as the peer says, unless it has done so often enough. */
static void wait_for_receive(struct nr_wqe *wqe, struct nr_qp *rqp, u64 t)
{
	struct nr_qp *qp = wqe->qp;
	u32 us = rnr_us[rqp->attr.min_rnr_timer % ARRAY_SIZE(rnr_us)];

	rqp->end->not_ready++;
	/* 7 is for ever */
	if (qp->attr.rnr_retry < 7 && qp->rnr++ >= qp->attr.rnr_retry) {
		acknowledge(wqe, IB_WC_RNR_RETRY_EXC_ERR, t);
		return;
	}
	nr_begin_gap(wqe, NR_GAP_RNR, t + qp->peer->delay_ns + us * NSEC_PER_USEC, t);
}

static void arrive_request(struct nr_wqe *wqe, u64 t)
{
	struct nr_qp *qp = wqe->qp;
	struct nr_qp *rqp = find_peer(qp);
	enum ib_wc_status status;

	if (unlikely(!rqp)) {
		lose(wqe, t);
		return;
	}
	if (unlikely(wqe->flags & NR_CARRIED_OUT))
		status = IB_WC_SUCCESS;
	else
		status = carry_out(wqe, rqp, t);
	if (status == IB_WC_RNR_RETRY_EXC_ERR) {
		wait_for_receive(wqe, rqp, t);
		return;
	}
	if (likely(status == IB_WC_SUCCESS)) {
		wqe->flags |= NR_CARRIED_OUT;
		if (wqe->flags & NR_FETCH) {
			nr_queue_answer(wqe, t);
			return;
		}
	} else {
		nr_raise(rqp, status == IB_WC_REM_ACCESS_ERR ? IB_EVENT_QP_ACCESS_ERR :
							       IB_EVENT_QP_REQ_ERR);
		nr_fail_qp(rqp, t);
		/* it was its own peer */
		if (rqp == qp)
			return;
	}
	acknowledge(wqe, status, t);
}

/* --- datagrams --- */

static void put_header(struct nr_mem *to, const struct nr_ah *ah, u32 length)
{
	union rdma_network_hdr hdr = {};

	if (ah->ipv4) {
		struct iphdr *ip = (struct iphdr *)&hdr.roce4grh;

		ip->version = 4;
		ip->ihl = 5;
		ip->ttl = 64;
		ip->protocol = IPPROTO_UDP;
		ip->tot_len = htons(sizeof(*ip) + length);
		memcpy(&ip->saddr, &ah->sgid.raw[12], sizeof(ip->saddr));
		memcpy(&ip->daddr, &ah->dgid.raw[12], sizeof(ip->daddr));
		ip_send_check(ip);
	} else {
		hdr.ibgrh.version_tclass_flow = cpu_to_be32(6 << 28);
		hdr.ibgrh.paylen = cpu_to_be16(length);
		hdr.ibgrh.next_hdr = IPPROTO_UDP;
		hdr.ibgrh.hop_limit = 64;
		hdr.ibgrh.sgid = ah->sgid;
		hdr.ibgrh.dgid = ah->dgid;
	}
	nr_put(to, &hdr, sizeof(hdr));
}

static void deliver(struct nr_wqe *wqe, u64 t)
{
	u32 length = wqe->length + sizeof(union rdma_network_hdr);
	const struct nr_ah *ah = wqe->ud.ah;
	struct ib_wc wc = {
		.opcode = IB_WC_RECV,
		.byte_len = length,
		.src_qp = wqe->qp->number,
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE,
		.network_hdr_type = ah->ipv4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6,
	};
	struct nr_rwqe *rwqe;
	struct nr_qp *rqp = NULL;
	struct nr_mem to, from;

	if (ah->peer && ah->peer->up && wqe->qp->end->up && wqe->ud.qpn < NR_MAX_QP)
		rqp = ah->peer->qps[wqe->ud.qpn];
	if (!rqp || rqp->init.qp_type == IB_QPT_RC || rqp->attr.qkey != wqe->ud.qkey ||
	    (rqp->state != IB_QPS_RTR && rqp->state != IB_QPS_RTS)) {
		wqe->qp->end->lost++;
		return;
	}
	rwqe = has_receive(rqp) ? nr_get_rwqe(rqp, rqp->rq.done) : NULL;
	if (!rwqe || count_room(rwqe) < length ||
	    !nr_may_use(rqp, rwqe->sge, rwqe->num_sge, IB_ACCESS_LOCAL_WRITE)) {
		rqp->end->not_ready++;
		return;
	}
	if (wqe->opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = wqe->ex.imm_data;
	}
	to = nr_mem_of_sges(rqp, rwqe->sge, rwqe->num_sge);
	from = nr_mem_of_request(wqe);
	put_header(&to, ah, wqe->length);
	nr_move(&to, &from, wqe->length);
	complete_receive(rqp, &wc, wqe->flags & NR_SOLICITED, t);
}

/* A message has come to the end of a wire. */
void nr_arrive(struct nr_wqe *wqe, u64 t)
{
	struct nr_qp *qp = wqe->qp;

	lockdep_assert_held(&nr_engine.lock);
	if (qp->init.qp_type != IB_QPT_RC) {
		deliver(wqe, t);
		nr_end_request(wqe, IB_WC_SUCCESS, t);
	} else if (wqe->state != NR_ANSWER) {
		arrive_request(wqe, t);
	} else if (likely(qp->end->up && qp->peer->up)) {
		nr_end_request(wqe, IB_WC_SUCCESS, t);
	} else {
		lose(wqe, t);
	}
}
