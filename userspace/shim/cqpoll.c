// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program's ibv_poll_cq().
 *
 * Owns what a poll of an active CQ does: it takes completions from the soft ring first and
 * translates what the provider has. Then it posts what may be posted, and has the kernel
 * asked for classes that may have changed.
 *
 * Locks: an active CQ is polled under shim_member.lock, and an extended one under
 * shim_cq.session, too. A CQ that is not active is polled without a lock, see poller.c.
 *
 * Everything here runs in threads of the program.
 */
#include <errno.h>

#include "comp.h"
#include "cq.h"
#include "cqpoll.h"
#include "ctx.h"
#include "guard.h"
#include "helper.h"
#include "member.h"
#include "poller.h"
#include "post.h"
#include "shim.h"
#include "slot.h"
#include "soft.h"

/* Translate @num completions in place. Returns the number that the program shall see. */
static int shim_translate_all(int num, struct ibv_wc *wc)
{
	struct shim_soft e;
	int kept = 0;
	int i;

	for (i = 0; i < num; i++) {
		e.wc = wc[i];
		if (!shim_comp_translate(&e))
			continue;
		shim_soft_seen(&e);
		wc[kept++] = e.wc;
	}
	return kept;
}

static int poll_governed(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	struct shim_soft e;
	int n = 0;
	int got;

	while (n < num && c->soft_head != c->soft_tail) {
		shim_soft_pop(c, &e);
		wc[n++] = e.wc;
	}
	while (n < num) {
		int want = num - n;

		got = c->ctx->ops.poll_cq(c->cq, want, wc + n);
		if (got < 0)
			return n ? n : got;
		n += shim_translate_all(got, wc + n);
		if (got < want) {
			shim_comp_bury(c);
			break;
		}
	}
	return n;
}

/**
 * shim_end_poll - the program has polled: post what may be posted now
 * @c: the CQ; its member is locked, and unlocked by this
 * @shown: the program was shown a completion
 */
void shim_end_poll(struct shim_cq *c, bool shown)
{
	struct shim_member *m = c->ctx->m;

	c->looked_ns = shim_sys.now();
	if (c->looked_ns - m->polled_ns >= SHIM_POLL_NS) {
		m->polled_ns = c->looked_ns;
		m->polls++;
	}
	if (shown)
		shim_cq_shown(c);
	shim_cq_seen(c);
	if (shim_member_news(m))
		shim_queue_drive(m);
	shim_cq_update(c);
	/* Flows that go straight from now on tell no more what is done. */
	if (!c->active)
		shim_member_publish(m);
	shim_unlock_and_drive(m);
}

/* A signal handler polls in the middle of another call, which is announced already if it polls. */
static int poll_nested(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	if (shim_cq_is_active(c) && shim_is_nested())
		return -EDEADLK;
	return c->ctx->ops.poll_cq(c->cq, num, wc);
}

/* All but the short way of shim_poll_cq(). Fewer than @num means that the CQ is empty. */
static __attribute__((noinline)) int poll_locked(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	int n;

	if (shim_is_in_call())
		return poll_nested(c, num, wc);
	/* A session that began without a flow has the provider's lock. */
	if (c->ex)
		shim_lock(&c->session);
	shim_lock(&c->ctx->m->lock);
	c->woken = c->armed;
	n = poll_governed(c, num, wc);
	c->woken = false;
	shim_end_poll(c, n > 0);
	if (c->ex)
		shim_unlock(&c->session);
	if (shim_member_stale(c->ctx->m))
		shim_qps_refresh(c->ctx->m);
	return n;
}

/* A CQ that the shim does not know */
static __attribute__((noinline)) int poll_unknown(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	return shim_find_ctx(cq->context)->ops.poll_cq(cq, num, wc);
}

/* It has become active since the program called. */
static __attribute__((noinline)) int poll_late(struct shim_cq *c, int num, struct ibv_wc *wc,
					       uint32_t turn)
{
	shim_poll_end(turn);
	return poll_locked(c, num, wc);
}

/* The poll cannot begin without the lock, except if the thread has not been known so far. */
static __attribute__((noinline)) int poll_slowly(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	if (shim_cq_is_active(c) || c->ex || shim_is_in_call() || !shim_poller_add())
		return poll_locked(c, num, wc);
	return shim_poll_cq(c->cq, num, wc);
}

/**
 * shim_poll_cq - the program's poll_cq
 * @cq: the CQ
 * @num: completions wanted
 * @wc: room for them
 *
 * While the CQ is not active, it only looks the CQ up and writes the number of the poll.
 *
 * Return: how many there are, or a negative error.
 */
int shim_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);
	uint32_t turn;
	int n;

	if (!c)
		return poll_unknown(cq, num, wc);
	if (c->ex || !shim_poll_begin(&turn))
		return poll_slowly(c, num, wc);
	if (shim_cq_is_active(c))
		return poll_late(c, num, wc, turn);
	n = c->ctx->ops.poll_cq(cq, num, wc);
	shim_poll_end(turn);
	return n;
}
