// SPDX-License-Identifier: GPL-2.0
/*
 * These functions poll for completions, and check and count each.
 */
#include <string.h>
#include <unistd.h>

#include "mix.h"

enum { MAX_POLL = 16 };

bool mix_cuts_imm;
bool mix_goes_straight;
unsigned long mix_pieces;

/* Done with all that nobody needs any more. */
static void retire(struct mix_pair *p)
{
	while (p->retired != p->posted) {
		struct mix_op *op = mix_op_at(p, p->retired);

		if (!op->flushed && (!op->sent || !op->received))
			return;
		if (op->feeds && p->retired + 1 != p->posted) {
			const struct mix_op *next = mix_op_at(p, p->retired + 1);

			if (!next->sent && !next->flushed)
				return;
		}
		if (!op->flushed) {
			mix_check_data(op);
			if (op->own_local)
				mix_clean_local(op);
			if (op->own_remote)
				memset(op->remote, MIX_FILL, mix_is_send(op) ? 0 : op->len);
			__atomic_fetch_add(&p->w->bytes, op->len, __ATOMIC_RELAXED);
		}
		p->retired++;
	}
}

static bool is_signaled(const struct mix_pair *p, const struct mix_op *op)
{
	return p->shape.sig_all || (op->flags & IBV_SEND_SIGNALED);
}

static enum ibv_wc_opcode completes_as(const struct mix_op *op)
{
	switch (op->opcode) {
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return IBV_WC_SEND;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	default:
		return IBV_WC_RDMA_WRITE;
	}
}

/* Errors begin somewhere, and then everything has one. */
static void check_error(struct mix_pair *p, const struct mix_op *op, __u64 seq,
			enum ibv_wc_status status)
{
	if (!p->may_fail)
		mix_fail("pair %u: opcode %d, %u bytes, flags %x: %s", p->index,
			 op->opcode, op->len, op->flags, ibv_wc_status_str(status));
	if (p->failed && seq != p->fail_seq + 1)
		mix_fail("flushed is %llu after %llu", seq,
			 p->fail_seq);
	if (!p->failed && p->bad_seq < p->posted && !op->bad)
		mix_fail("%llu has failed, not %llu: %s", seq,
			 p->bad_seq, ibv_wc_status_str(status));
	if (status != (op->bad ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR))
		mix_fail("%llu: %s", seq, ibv_wc_status_str(status));
	p->failed++;
	p->fail_seq = seq;
}

static void check_success(const struct mix_pair *p, const struct mix_op *op,
			  const struct ibv_wc *wc)
{
	if (p->failed || op->bad)
		mix_fail("success after an error");
	if (!is_signaled(p, op))
		mix_fail("a completion that nobody asked for");
	if (wc->opcode != completes_as(op))
		mix_fail("opcode %d completes as %d", op->opcode, wc->opcode);
	if ((op->opcode == IBV_WR_RDMA_READ || mix_is_atomic(op)) &&
	    wc->byte_len != op->len)
		mix_fail("opcode %d of %u bytes completes with %u", op->opcode, op->len,
			 wc->byte_len);
}

static void on_send(struct mix_pair *p, const struct ibv_wc *wc, bool ordered)
{
	struct mix_op *op = NULL;
	__u64 seq, t;

	for (seq = p->retired; seq != p->posted; seq++) {
		op = mix_op_at(p, seq);
		if (op->wr_id == wc->wr_id)
			break;
		if (ordered && is_signaled(p, op) && !op->seen)
			mix_fail("a completion (%s) has overtaken one of opcode %d, %u bytes",
				 ibv_wc_status_str(wc->status), op->opcode, op->len);
	}
	if (seq == p->posted || op->seen)
		mix_fail("a completion too many: %s",
			 ibv_wc_status_str(wc->status));
	if (wc->status)
		check_error(p, op, seq, wc->status);
	else
		check_success(p, op, wc);
	op->seen = true;
	op->flushed = wc->status;
	for (t = p->retired; t != seq; t++) {
		if (!is_signaled(p, mix_op_at(p, t)))
			mix_op_at(p, t)->sent = true;
	}
	op->sent = !op->flushed;
	retire(p);
}

static struct mix_op *find_sent_to(struct mix_pair *p, __u64 recv_no)
{
	__u64 seq;

	for (seq = p->retired; seq != p->posted; seq++) {
		struct mix_op *op = mix_op_at(p, seq);

		if (mix_takes_recv(op) && op->recv_no == recv_no)
			return op;
		/* What was written before a message is there when that is. */
		if (mix_is_write(op))
			mix_check_data(op);
	}
	mix_fail("a receive of nothing");
}

/* Does a receive tell the length of its message, or of a last piece that it was cut to? */
static bool has_length(const struct mix_op *op, __u32 byte_len)
{
	if (!mix_cuts_imm || mix_is_send(op) || byte_len == op->len)
		return byte_len == op->len;
	__atomic_add_fetch(&mix_pieces, 1, __ATOMIC_RELAXED);
	return byte_len && byte_len < op->len;
}

static void on_recv(struct mix_pair *p, const struct ibv_wc *wc, bool ordered)
{
	struct mix_recv *r = NULL;
	struct mix_op *op;
	unsigned int i;
	bool send;

	for (i = 0; i < p->shape.depth; i++) {
		r = &p->recv[i];
		if (r->wr_id == wc->wr_id)
			break;
	}
	if (i == p->shape.depth || wc->status)
		mix_fail("a receive: %s", ibv_wc_status_str(wc->status));
	if (ordered && r->no != p->received)
		mix_fail("a receive has overtaken others");
	op = find_sent_to(p, r->no);
	send = mix_is_send(op);
	if (op->received || !has_length(op, wc->byte_len) ||
	    wc->opcode != (send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM) ||
	    !!(wc->wc_flags & IBV_WC_WITH_IMM) != mix_has_imm(op) ||
	    (mix_has_imm(op) && wc->imm_data != op->imm))
		mix_fail("pair %u: opcode %d of %u bytes, flags %x, is received as %d of %u",
			 p->index, op->opcode, op->len, op->flags, wc->opcode,
			 wc->byte_len);
	if (send)
		mix_check_sges(op, r->sge, r->num_sge, "received");
	else
		mix_check_data(op);
	for (i = 0; send && i < (unsigned int)r->num_sge; i++)
		memset(mix_addr_of(&r->sge[i]), MIX_FILL, r->sge[i].length);
	op->received = true;
	p->received++;
	mix_post_recv(p, r);
	retire(p);
}

static void on_completion(struct mix_world *w, unsigned int dev, const struct ibv_wc *wc,
			  bool ordered)
{
	unsigned int i;

	for (i = 0; i < w->num_pairs; i++) {
		struct mix_pair *p = &w->pair[i];
		bool sent = p->shape.from == dev && p->qpn_a == wc->qp_num;

		if (!sent && (p->shape.from == dev || p->qpn_b != wc->qp_num))
			continue;
		pthread_mutex_lock(&p->lock);
		if (sent)
			on_send(p, wc, ordered);
		else
			on_recv(p, wc, ordered);
		pthread_mutex_unlock(&p->lock);
		__atomic_fetch_add(&mix_beats, 1, __ATOMIC_RELAXED);
		return;
	}
	mix_fail("a completion of no queue pair: %u, %s, opcode %d", wc->qp_num,
		 ibv_wc_status_str(wc->status), wc->opcode);
}

/* How many have come. */
unsigned int mix_poll_group(struct mix_world *w, unsigned int group)
{
	static __thread __u64 state;
	struct ibv_wc wc[MAX_POLL];
	unsigned int dev, sum = 0;
	int i, n, num;

	for (dev = 0; dev < 2; dev++) {
		struct mix_queue *q = &w->queue[group][dev];

		if (!q->cq)
			continue;
		num = 1 + mix_draw_from(&state) % MAX_POLL;
		n = q->ex ? mix_poll_ex(q->ex, num, wc) : ibv_poll_cq(q->cq, num, wc);
		if (n < 0 || n > num)
			mix_fail("poll: %d of %d", n, num);
		for (i = 0; i < n; i++)
			on_completion(w, dev, &wc[i], group || w->num_threads < 2);
		sum += n;
	}
	return sum;
}

unsigned int mix_poll_all(struct mix_world *w)
{
	unsigned int group, sum = 0;

	for (group = 0; group < MIX_MAX_GROUPS; group++)
		sum += mix_poll_group(w, group);
	return sum;
}

/* Nothing may come any more, not even late. */
void mix_must_be_empty(struct mix_world *w)
{
	int i;

	for (i = 0; i < 20; i++) {
		if (mix_poll_all(w))
			mix_fail("a completion too many");
		usleep(1000);
	}
}
