// SPDX-License-Identifier: GPL-2.0
/*
 * The model: what a device that splits nothing would have written.
 *
 * It replays the work requests in the order in which they were posted, and compares
 * both destination buffers, guard areas included, with the result. The sources must
 * hold what they held at first.
 *
 * Runs in process context under main.c's case_lock, when the queue pairs are gone:
 * nobody changes the ledger or the buffers any more.
 */

#include <linux/minmax.h>
#include <linux/string.h>

#include "buffer.h"
#include "fail.h"
#include "model.h"
#include "op.h"
#include "ulp.h"

static u32 find_byte(const struct ulp_op *op, u32 pos, u32 *run)
{
	u32 i, n = ulp_count_sges(op);

	for (i = 0; i + 1 < n; i++)
		if (pos < ulp_find_cut(op, i + 1))
			break;
	*run = ulp_find_cut(op, i + 1) - pos;
	return op->loff + pos + i * ULP_GAP;
}

/*
 * Where the bytes of @rec from @pos on come from and where they go, in the
 * model or really. Returns how many of them lie in one piece at both ends.
 */
static u32 find_span(const struct ulp_rec *rec, const struct ulp_rec *rcv, u32 pos,
		     bool real, void **dst, void **src)
{
	const struct ulp_op *op = &rec->op;
	struct ulp_ep *ep = rec->lane->qp->ep;
	struct ulp_ep *peer = ep->peer;
	void *mine = real ? ep->dst.va : ep->model;
	void *theirs = real ? peer->dst.va : peer->model;
	u32 run, run_rcv;
	u32 loff = find_byte(op, pos, &run);

	if (ulp_fills_local(rec)) {
		*dst = mine + loff;
		*src = peer->src.va + op->roff + pos;
		return run;
	}
	*src = (op->from_dst ? ep->model : ep->src.va) + loff;
	if (rcv) {
		*dst = theirs + find_byte(&rcv->op, pos, &run_rcv);
		return min(run, run_rcv);
	}
	*dst = theirs + op->roff + pos;
	return run;
}

static void replay_recv(const struct ulp_rec *rec, const struct ulp_rec *rcv)
{
	const struct ulp_op *op = &rec->op;
	struct ulp_ctx *ctx = rec->lane->ctx;
	enum ib_wc_opcode opcode = IB_WC_RECV;
	int flags = 0;
	u32 ex = 0;

	if (op->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		opcode = IB_WC_RECV_RDMA_WITH_IMM;
	if (op->opcode == IB_WR_RDMA_WRITE_WITH_IMM ||
	    op->opcode == IB_WR_SEND_WITH_IMM) {
		flags = IB_WC_WITH_IMM;
		ex = op->imm;
	}
	if (op->opcode == IB_WR_SEND_WITH_INV) {
		flags = IB_WC_WITH_INVALIDATE;
		ex = op->mr->rkey;
	}
	if (rcv->status != IB_WC_SUCCESS)
		ulp_fail(ctx, "lane %u: receive %u did not complete",
			 rcv->lane->id, rcv->idx);
	else if (rcv->byte_len != op->len || rcv->opcode != opcode)
		ulp_fail(ctx, "lane %u: receive %u has byte_len %u, opcode %d, not %u, %d",
			 rcv->lane->id, rcv->idx, rcv->byte_len, rcv->opcode,
			 op->len, opcode);
	else if ((rcv->wc_flags & flags) != flags || (flags && rcv->wc_ex != ex))
		ulp_fail(ctx, "lane %u: receive %u has flags %#x with %#x, not %#x with %#x",
			 rcv->lane->id, rcv->idx, rcv->wc_flags, rcv->wc_ex,
			 flags, ex);
}

static struct ulp_rec *take_next_recv(struct ulp_rec *rec)
{
	struct ulp_lane *lane = rec->lane->qp->peer->recv;

	if (!lane || lane->replay->next == &lane->recs) {
		ulp_fail(rec->lane->ctx, "lane %u: request %u has no receive",
			 rec->lane->id, rec->idx);
		return NULL;
	}
	lane->replay = lane->replay->next;
	return list_entry(lane->replay, struct ulp_rec, node);
}

static void replay_rec(struct ulp_rec *rec)
{
	const struct ulp_op *op = &rec->op;
	struct ulp_ep *ep = rec->lane->qp->ep;
	struct ulp_rec *rcv = NULL;
	void *dst, *src;
	u32 pos, run;

	if (ulp_is_atomic(op)) {
		u64 *word = ep->peer->model + op->roff;
		u64 old = *word;

		if (op->opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
			*word += op->add;
		else if (*word == op->add)
			*word = op->swap;
		memcpy(ep->model + op->loff, &old, sizeof(old));
		return;
	}
	if (ulp_is_send(op) || op->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		rcv = take_next_recv(rec);
		if (!rcv)
			return;
		replay_recv(rec, rcv);
		if (!ulp_is_send(op))
			rcv = NULL;
	}
	for (pos = 0; pos < op->len; pos += run) {
		run = find_span(rec, rcv, pos, false, &dst, &src);
		memcpy(dst, src, run);
	}
}

static size_t count_same(const u8 *a, const u8 *b, size_t len)
{
	size_t i = 0;

	while (len - i >= SZ_4K && !memcmp(a + i, b + i, SZ_4K))
		i += SZ_4K;
	while (i < len && a[i] == b[i])
		i++;
	return i;
}

/*
 * A request that did not succeed may have moved its first bytes, if all
 * before it moved all of theirs. Take what was moved over into the model.
 * @open tells whether that is still so, for data that come and that go.
 */
static void replay_prefix(struct ulp_rec *rec, bool open[2])
{
	bool in = ulp_fills_local(rec);
	const struct ulp_op *op = &rec->op;
	u32 pos, run, same = 0, moved = 0;
	void *dst, *src, *was;

	for (pos = 0; pos < op->len; pos += run) {
		run = find_span(rec, NULL, pos, true, &dst, &src);
		same = count_same(dst, src, run);
		moved = pos + same;
		if (same < run)
			break;
	}
	if (!open[in])
		moved = 0;
	/* what lies behind the MR must not change */
	if (op->reach)
		moved = min(moved, op->reach);
	for (pos = 0; pos < moved; pos += run) {
		run = find_span(rec, NULL, pos, false, &was, &src);
		run = min(run, moved - pos);
		memcpy(was, src, run);
	}
	if (moved == op->len)
		return;
	open[in] = false;
	if (!rec->lane->ctx->fails_here)
		open[!in] = false;
}

static void compare_bufs(struct ulp_ctx *ctx, const u8 *got, const u8 *want,
			 const char *name)
{
	size_t first, i, n = 0;

	first = count_same(got, want, ULP_BUF_SIZE);
	if (first == ULP_BUF_SIZE)
		return;
	for (i = first; i < ULP_BUF_SIZE; i++)
		n += got[i] != want[i];
	ulp_fail(ctx, "%s: %zu bytes differ, the first at %#zx: %#x, not %#x",
		 name, n, first, got[first], want[first]);
}

void ulp_verify(struct ulp_ctx *ctx)
{
	int n = min(atomic_read(&ctx->nrecs), ULP_MAX_RECS);
	bool open[2] = { true, true };
	int i;

	if (ctx->verify == ULP_VERIFY_NONE)
		return;

	if (ctx->arg.mutate == ULP_MUT_BYTE || ctx->arg.mutate == ULP_MUT_GUARD) {
		u32 off = ctx->arg.mutate == ULP_MUT_BYTE ? ULP_BASE :
							    ULP_BUF_SIZE - 1;

		((u8 *)ctx->a.dst.va)[off] ^= 1;
		((u8 *)ctx->b.dst.va)[off] ^= 1;
	}
	for (i = 0; i < n; i++) {
		struct ulp_rec *rec = &ctx->recs[i];

		if (rec->dropped || rec->recv || ulp_is_local(&rec->op))
			continue;
		if (ctx->verify == ULP_VERIFY_ALL ||
		    rec->status == IB_WC_SUCCESS)
			replay_rec(rec);
		else
			replay_prefix(rec, open);
	}
	compare_bufs(ctx, ctx->a.dst.va, ctx->a.model, "destination a");
	compare_bufs(ctx, ctx->b.dst.va, ctx->b.model, "destination b");
	compare_bufs(ctx, ctx->a.src.va, ulp_patterns[0], "source a");
	compare_bufs(ctx, ctx->b.src.va, ulp_patterns[2], "source b");
}
