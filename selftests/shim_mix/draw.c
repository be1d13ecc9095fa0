// SPDX-License-Identifier: GPL-2.0
/*
 * These functions draw work requests at random, and give each its place.
 */
#include <stdint.h>
#include <string.h>

#include "mix.h"

/* There is one place more than needed, for what goes beyond its end. */
size_t mix_area_size(const struct mix_pair *p)
{
	return (p->shape.depth + 1) * p->stride;
}

struct mix_op *mix_op_at(const struct mix_pair *p, __u64 seq)
{
	return &p->op[seq % p->shape.depth];
}

/* Cut @len bytes into at most @max pieces of some place, in any order. */
int mix_cut(__u64 *rng, struct ibv_sge *sge, __u8 *at, __u32 len, int max,
	    __u32 lkey)
{
	int num = 1 + mix_below(rng, max);
	bool back = mix_once_in(rng, 3);
	__u32 left = len;
	int i, k;

	if (num > (int)len)
		num = len;
	for (i = 0; i < num; i++) {
		sge[i].length = left;
		if (i < num - 1)
			sge[i].length = 1 + mix_below(rng, left - (num - 1 - i));
		left -= sge[i].length;
	}
	for (k = 0; k < num; k++) {
		i = back ? num - 1 - k : k;
		sge[i].addr = (uintptr_t)at;
		sge[i].lkey = lkey;
		at += sge[i].length + MIX_GAP;
	}
	return num;
}

static __u32 draw_len(struct mix_pair *p)
{
	__u32 max = 1u << p->shape.bits;
	__u32 size = 1u << mix_below(&p->rng, p->shape.bits + 1);

	if (p->large)
		return max - mix_below(&p->rng, 64);
	return mix_once_in(&p->rng, 5) ? size : mix_below(&p->rng, size + 1);
}

/*
 * After a reset the first one is a READ. rxe keeps over a reset that it was taking the
 * answer to a READ. Of 6.1 it then takes the first acknowledgment of a WRITE for an error,
 * completes that with success and moves the queue pair to ERR (rxe_completer() warns of
 * it, check_ack() is where). The answer to a READ ends that.
 */
static enum ibv_wr_opcode draw_opcode(struct mix_pair *p)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_CMP_AND_SWP,
	};

	if (p->large && !p->posted)
		return IBV_WR_RDMA_READ;
	return opcodes[mix_below(&p->rng, p->large ? 2 :
				 sizeof(opcodes) / sizeof(*opcodes))];
}

/* Does it take the data of the one before it? */
static bool borrow(struct mix_pair *p, struct mix_op *op, struct mix_op *prev)
{
	if (!prev || !prev->len || mix_once_in(&p->rng, 2))
		return false;
	op->own_remote = !(op->opcode == IBV_WR_RDMA_READ && mix_is_write(prev));
	op->own_local = !(op->opcode == IBV_WR_RDMA_WRITE &&
			  prev->opcode == IBV_WR_RDMA_READ);
	if (op->own_remote && op->own_local)
		return false;
	prev->feeds = true;
	op->key = prev->key;
	op->len = prev->len;
	if (!op->own_remote) {
		op->remote = prev->remote;
		return true;
	}
	op->flags |= IBV_SEND_FENCE;
	op->num_sge = prev->num_sge;
	memcpy(op->sge, prev->sge, sizeof(op->sge));
	return true;
}

static void draw_atomic(struct mix_pair *p, struct mix_op *op)
{
	op->len = 8;
	op->remote = (__u8 *)(((uintptr_t)op->remote + 7) & ~7ul);
	op->compare = mix_once_in(&p->rng, 2) ? op->key : mix_draw_from(&p->rng);
	op->swap = mix_draw_from(&p->rng);
}

/* Make the next work request; @prev is the one before it in the same list. */
struct mix_op *mix_draw_op(struct mix_pair *p, struct mix_op *prev, bool last)
{
	struct mix_op *op = mix_op_at(p, p->posted);
	size_t place = p->posted % p->shape.depth * p->stride + MIX_GAP;
	__u8 *local = p->local + place + mix_below(&p->rng, 64);
	bool one_sge = p->shape.builders && mix_needs_care();
	bool borrowed;

	*op = (struct mix_op) {
		.wr_id = mix_draw_from(&p->rng),
		.key = mix_draw_from(&p->rng),
		.opcode = draw_opcode(p),
		.imm = mix_draw_from(&p->rng),
		.remote = p->remote + place + mix_below(&p->rng, 64),
		.rkey = p->mr_b->rkey,
		.len = draw_len(p),
		.own_local = true,
		.own_remote = true,
		.bad = p->posted == p->bad_seq,
	};
	op->received = !mix_takes_recv(op);
	if (!op->received)
		op->recv_no = p->sends++;
	if (mix_once_in(&p->rng, 8))
		op->flags |= IBV_SEND_FENCE;
	if (mix_takes_recv(op) && mix_once_in(&p->rng, 3))
		op->flags |= IBV_SEND_SOLICITED;
	borrowed = borrow(p, op, prev);
	if (mix_is_atomic(op)) {
		draw_atomic(p, op);
		local = (__u8 *)(((uintptr_t)local + 7) & ~7ul);
	}
	if (op->own_local)
		op->num_sge = mix_cut(&p->rng, op->sge, local, op->len,
				      one_sge || mix_is_atomic(op) ? 1 : MIX_MAX_SGE,
				      p->mr_a->lkey);
	if (!borrowed && op->len && op->len <= p->cap.max_inline_data &&
	    (mix_is_write(op) || mix_is_send(op)) && mix_once_in(&p->rng, 2))
		op->flags |= IBV_SEND_INLINE;
	if (op->bad && mix_once_in(&p->rng, 2))
		op->rkey ^= 0x5500;
	else if (op->bad)
		op->remote = p->remote + mix_area_size(p) - op->len / 2;
	/* Another list must find room when all that will complete has. */
	if (last || mix_once_in(&p->rng, 3) || p->silent + 1 > p->shape.depth - p->shape.list)
		op->flags |= IBV_SEND_SIGNALED;
	p->silent = op->flags & IBV_SEND_SIGNALED ? 0 : p->silent + 1;
	p->posted++;

	if (op->bad)
		return op;
	if (mix_is_atomic(op))
		*mix_word_at(op->remote) = op->key;
	else if (op->opcode == IBV_WR_RDMA_READ && op->own_remote)
		mix_fill(op->remote, op->len, op->key, 0);
	else if (op->opcode != IBV_WR_RDMA_READ && op->own_local)
		mix_fill_local(op);
	return op;
}
