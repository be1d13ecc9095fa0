// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Extended CQs: ibv_start_poll() and what follows.
 *
 * Owns the functions that the shim swaps in struct ibv_cq_ex. While no flow completes in
 * the CQ, a session is the provider's own. Otherwise the completions of the provider are
 * copied to the soft ring first, with all that the CQ can tell of them, and the program is
 * shown those.
 *
 * Locks: shim_cq.session is held from start_poll to end_poll, as providers hold one of
 * their own. It protects the completion that is shown. The reaper, who comes under
 * shim_member.lock, only tries it. Who arms the CQ, and who has it resized for the chunks of
 * one more flow, only try it, too.
 *
 * Everything here runs in threads of the program. reap.c has what the reaper runs, too.
 */
#include <errno.h>

#include "comp.h"
#include "cq.h"
#include "cqex.h"
#include "cqpoll.h"
#include "ctx.h"
#include "guard.h"
#include "member.h"
#include "poller.h"
#include "reap.h"
#include "slot.h"
#include "soft.h"

static struct shim_cq *find(struct ibv_cq_ex *cq)
{
	return shim_map_find(&shim_cqs, cq);
}

/* Show the next completion; the session is locked. */
static int show_next(struct shim_cq *c)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)c->cq;
	int err = 0;

	shim_lock(&c->ctx->m->lock);
	if (c->soft_head == c->soft_tail)
		err = shim_cqex_fill(c, SHIM_POLL);
	if (c->soft_head != c->soft_tail) {
		shim_soft_pop(c, &c->cur);
		err = 0;
	} else if (!err) {
		err = ENOENT;
	}
	if (!err) {
		cq->wr_id = c->cur.wc.wr_id;
		cq->status = c->cur.wc.status;
	}
	shim_end_poll(c, !err);
	return err;
}

/* A flow has come since the session began: from here on the soft ring is shown. */
static int take_over(struct shim_cq *c)
{
	struct shim_soft e;

	shim_cqex_snapshot(c, &e);
	/* The provider's lock goes before that of the member is taken. */
	c->real.end_poll((struct ibv_cq_ex *)c->cq);
	shim_lock(&c->ctx->m->lock);
	if (shim_comp_translate(&e))
		shim_soft_push(c, &e);
	shim_unlock(&c->ctx->m->lock);
	c->snap = true;
	return show_next(c);
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct shim_cq *c = find(cq);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	if (shim_cq_is_active(c) && shim_is_nested())
		return EDEADLK;
	pthread_mutex_lock(&c->session);
	c->snap = shim_cq_is_active(c);
	err = c->snap ? show_next(c) : c->real.start_poll(cq, attr);
	if (!err && !c->snap && shim_cq_is_active(c))
		err = take_over(c);
	if (err)
		pthread_mutex_unlock(&c->session);
	return err;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);
	int err;

	if (c->snap)
		return show_next(c);
	err = c->real.next_poll(cq);
	return !err && shim_cq_is_active(c) ? take_over(c) : err;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	if (!c->snap)
		c->real.end_poll(cq);
	pthread_mutex_unlock(&c->session);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.opcode : c->real.read_opcode(cq);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.vendor_err : c->real.read_vendor_err(cq);
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.byte_len : c->real.read_byte_len(cq);
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.imm_data : c->real.read_imm_data(cq);
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.qp_num : c->real.read_qp_num(cq);
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.src_qp : c->real.read_src_qp(cq);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.wc_flags : c->real.read_wc_flags(cq);
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.slid : c->real.read_slid(cq);
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.sl : c->real.read_sl(cq);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wc.dlid_path_bits : c->real.read_dlid_path_bits(cq);
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.ts : c->real.read_completion_ts(cq);
}

static uint16_t read_cvlan(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.cvlan : c->real.read_cvlan(cq);
}

static uint32_t read_flow_tag(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.flow_tag : c->real.read_flow_tag(cq);
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	struct shim_cq *c = find(cq);

	return c->snap ? c->cur.wallclock : c->real.read_completion_wallclock_ns(cq);
}

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *tm)
{
	struct shim_cq *c = find(cq);

	if (c->snap)
		*tm = c->cur.tm;
	else
		c->real.read_tm_info(cq, tm);
}

/**
 * shim_cqex_swap - put our functions in front of those the provider has
 * @c: what is known of the CQ; it is in the map already
 * @cq: the CQ
 * @wc_flags: what can be read there, as the provider was asked
 *
 * With an old libibverbs the provider has something else in the place of the last four functions.
 * It creates no CQ with their flags then.
 */
void shim_cqex_swap(struct shim_cq *c, struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	c->ex = true;
	c->real = *cq;
	if (!(wc_flags & IBV_WC_EX_WITH_CVLAN))
		c->real.read_cvlan = NULL;
	if (!(wc_flags & IBV_WC_EX_WITH_FLOW_TAG))
		c->real.read_flow_tag = NULL;
	if (!(wc_flags & IBV_WC_EX_WITH_TM_INFO))
		c->real.read_tm_info = NULL;
	if (!(wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
		c->real.read_completion_wallclock_ns = NULL;
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	if (cq->read_opcode)
		cq->read_opcode = read_opcode;
	if (cq->read_vendor_err)
		cq->read_vendor_err = read_vendor_err;
	if (cq->read_byte_len)
		cq->read_byte_len = read_byte_len;
	if (cq->read_imm_data)
		cq->read_imm_data = read_imm_data;
	if (cq->read_qp_num)
		cq->read_qp_num = read_qp_num;
	if (cq->read_src_qp)
		cq->read_src_qp = read_src_qp;
	if (cq->read_wc_flags)
		cq->read_wc_flags = read_wc_flags;
	if (cq->read_slid)
		cq->read_slid = read_slid;
	if (cq->read_sl)
		cq->read_sl = read_sl;
	if (cq->read_dlid_path_bits)
		cq->read_dlid_path_bits = read_dlid_path_bits;
	if (cq->read_completion_ts)
		cq->read_completion_ts = read_completion_ts;
	if (c->real.read_cvlan)
		cq->read_cvlan = read_cvlan;
	if (c->real.read_flow_tag)
		cq->read_flow_tag = read_flow_tag;
	if (c->real.read_tm_info)
		cq->read_tm_info = read_tm_info;
	if (c->real.read_completion_wallclock_ns)
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
