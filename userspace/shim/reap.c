// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The reaper: completions that are polled on behalf of the program.
 *
 * Owns the choice of how many may be taken, and the poll itself, of plain and extended CQs.
 *
 * The reaper polls when the program does not, while something is held. What belongs to
 * the program goes to the soft ring, the first thing that its next poll finds. Some
 * programs arm a CQ and sleep without another poll, as the provider raises an event at
 * once if it holds something that the program has not polled. The provider does not know
 * of the soft ring. So when a CQ is armed with something there, the next piece that is
 * posted has a completion, which raises an event. If nothing is held, the last piece had
 * one that nobody has polled, or that is still to come.
 *
 * A CQ that is armed for solicited completions only gets no event of ours. There the
 * reaper takes one completion of the program while the CQ is armed, for which there was an
 * event. It takes none while the CQ is not armed, unless the program has not polled for
 * long.
 *
 * Locks: everything here runs under shim_member.lock, in threads of the program and in the
 * helper. It allocates no memory. An extended CQ is polled with shim_cq.session locked, too.
 * The session comes before the member, so it is only tried here.
 */
#include "comp.h"
#include "cq.h"
#include "ctx.h"
#include "reap.h"
#include "shim.h"
#include "slot.h"
#include "soft.h"

/* A program that has not polled for so many rounds of the helper waits otherwise. */
enum { UNSEEN = 100 };

/**
 * shim_cqex_snapshot - copy what the provider shows
 * @c: an extended CQ; the session is locked
 * @e: filled in
 */
void shim_cqex_snapshot(const struct shim_cq *c, struct shim_soft *e)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)c->cq;

	*e = (struct shim_soft) {
		.wc = {
			.wr_id = cq->wr_id,
			.status = cq->status,
		},
	};
	if (e->wc.status != IBV_WC_SUCCESS) {
		e->wc.vendor_err = c->real.read_vendor_err(cq);
		if (c->real.read_qp_num)
			e->wc.qp_num = c->real.read_qp_num(cq);
		return;
	}
	e->wc.opcode = c->real.read_opcode(cq);
	if (c->real.read_wc_flags)
		e->wc.wc_flags = c->real.read_wc_flags(cq);
	if (c->real.read_byte_len)
		e->wc.byte_len = c->real.read_byte_len(cq);
	if (c->real.read_imm_data)
		e->wc.imm_data = c->real.read_imm_data(cq);
	if (c->real.read_qp_num)
		e->wc.qp_num = c->real.read_qp_num(cq);
	if (c->real.read_src_qp)
		e->wc.src_qp = c->real.read_src_qp(cq);
	if (c->real.read_slid)
		e->wc.slid = c->real.read_slid(cq);
	if (c->real.read_sl)
		e->wc.sl = c->real.read_sl(cq);
	if (c->real.read_dlid_path_bits)
		e->wc.dlid_path_bits = c->real.read_dlid_path_bits(cq);
	if (c->real.read_completion_ts)
		e->ts = c->real.read_completion_ts(cq);
	if (c->real.read_completion_wallclock_ns)
		e->wallclock = c->real.read_completion_wallclock_ns(cq);
	if (c->real.read_cvlan)
		e->cvlan = c->real.read_cvlan(cq);
	if (c->real.read_flow_tag)
		e->flow_tag = c->real.read_flow_tag(cq);
	if (c->real.read_tm_info)
		c->real.read_tm_info(cq, &e->tm);
}

/**
 * shim_cqex_fill - fill the soft ring
 * @c: an extended CQ; the session and the member are locked
 * @max: completions wanted
 *
 * One completion a session of the provider: when next_poll finds no more, that of rxe
 * ends the session by itself, and its end_poll loses what comes next.
 *
 * Return: as start_poll.
 */
int shim_cqex_fill(struct shim_cq *c, uint32_t max)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)c->cq;
	uint32_t room = c->soft_num - (c->soft_tail - c->soft_head);
	struct ibv_poll_cq_attr attr = {};
	struct shim_soft e;
	int err;

	while (room && max) {
		err = c->real.start_poll(cq, &attr);
		if (err) {
			if (err == ENOENT)
				shim_comp_bury(c);
			return err;
		}
		shim_cqex_snapshot(c, &e);
		if (shim_comp_translate(&e)) {
			shim_soft_push(c, &e);
			room--;
			max--;
		}
		c->real.end_poll(cq);
	}
	return 0;
}

/**
 * shim_cq_try - keep the program from polling a CQ, if it does not do so now
 * @c: the CQ
 *
 * Its session comes before the member, which may be locked here all the same.
 *
 * Return: false if the program polls it.
 */
bool shim_cq_try(struct shim_cq *c)
{
	return !pthread_mutex_trylock(&c->session);
}

/**
 * shim_cq_leave - the opposite of shim_cq_try()
 * @c: the CQ
 */
void shim_cq_leave(struct shim_cq *c)
{
	pthread_mutex_unlock(&c->session);
}

/**
 * shim_cqex_try - keep the program from polling an extended CQ, if it does not do so now
 * @c: the CQ; one that is not extended is left alone, as no session of it lasts beyond a call
 *
 * Return: false if the program polls it.
 */
bool shim_cqex_try(struct shim_cq *c)
{
	return !c->ex || shim_cq_try(c);
}

/**
 * shim_cqex_leave - the opposite of shim_cqex_try()
 * @c: the CQ
 */
void shim_cqex_leave(struct shim_cq *c)
{
	if (c->ex)
		shim_cq_leave(c);
}

/* How many completions of the program may be taken? See above. */
static uint32_t may_reap(const struct shim_cq *c)
{
	if (!__atomic_load_n(&c->solicited, __ATOMIC_RELAXED))
		return UINT32_MAX;
	if (c->armed && c->soft_head == c->soft_tail)
		return 1;
	return c->unseen < UNSEEN ? 0 : UINT32_MAX;
}

static void reap(struct shim_cq *c, uint32_t max)
{
	struct ibv_wc wc[SHIM_POLL];
	struct shim_soft e = {};
	uint32_t room;
	int got, want, i;

	do {
		room = c->soft_num - (c->soft_tail - c->soft_head);
		if (room > max)
			room = max;
		want = room < SHIM_POLL ? room : SHIM_POLL;
		if (!want)
			return;
		got = c->ctx->ops.poll_cq(c->cq, want, wc);
		for (i = 0; i < got; i++) {
			e.wc = wc[i];
			if (shim_comp_translate(&e) && shim_soft_push(c, &e))
				max--;
		}
	} while (got == want);
	if (got >= 0)
		shim_comp_bury(c);
}

/**
 * shim_take_completions - poll a CQ on behalf of the program
 * @c: the CQ; nobody else polls it
 * @max: completions of the program that may be taken
 */
void shim_take_completions(struct shim_cq *c, uint32_t max)
{
	if (c->ex)
		shim_cqex_fill(c, max);
	else
		reap(c, max);
	c->looked_ns = shim_sys.now();
}

/**
 * shim_comp_may_reap - could somebody poll a CQ on behalf of the program?
 * @c: the CQ
 *
 * Return: false while the program polls it.
 */
bool shim_comp_may_reap(struct shim_cq *c)
{
	if (!shim_cqex_try(c))
		return false;
	shim_cqex_leave(c);
	return true;
}

/**
 * shim_comp_reap_most - poll on behalf of the program, unless it does so itself
 * @c: the CQ
 * @max: completions of the program that may be taken
 */
void shim_comp_reap_most(struct shim_cq *c, uint32_t max)
{
	if (!shim_cq_try(c))
		return;
	shim_take_completions(c, max);
	shim_cq_leave(c);
}

/**
 * shim_comp_reap - poll on behalf of the program
 * @c: the CQ
 */
void shim_comp_reap(struct shim_cq *c)
{
	uint32_t max = may_reap(c);

	if (!max)
		return;
	shim_comp_reap_most(c, max);
	if (max == 1 && c->soft_head != c->soft_tail)
		shim_cq_set_unseen(c, 1);
}
