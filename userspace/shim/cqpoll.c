// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program's ibv_poll_cq().
 *
 * Owns what a poll of an active CQ does: it takes completions from the soft ring first and
 * translates what the provider has. Then it posts what may be posted, and has the kernel
 * asked for classes that may have changed.
 *
 * Locks: an active CQ is polled under shim_cq.session. What is found there is translated under
 * shim_member.lock, too. A CQ that is not active is polled without a lock, see poller.c.
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

/* In place of a number of completions: the provider was not polled. */
enum { NOT_ASKED = -1 };

/* Translate @num completions in place. Returns the number that the program shall see. */
static int shim_translate_all(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	struct shim_soft e;
	int kept = 0;
	int i;

	for (i = 0; i < num; i++) {
		e.wc = wc[i];
		if (!shim_comp_translate(&e))
			continue;
		shim_soft_seen(&e);
		shim_cq_due(c);
		wc[kept++] = e.wc;
	}
	return kept;
}

/* Those that were kept, up to @num */
static int pop_kept(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	struct shim_soft e;
	int n = 0;

	while (n < num && c->soft_head != c->soft_tail) {
		shim_soft_pop(c, &e);
		wc[n++] = e.wc;
	}
	return n;
}

/*
 * The provider has given @got already, when nothing was kept; or it was not asked, if that is
 * NOT_ASKED. A queue pair may have gone since, and have left something in the CQ: so only who finds
 * the CQ empty here may bury.
 */
static int poll_governed(struct shim_cq *c, int num, struct ibv_wc *wc, int got)
{
	bool is_empty = got >= 0 && got < num;
	int n = 0;
	int want;

	if (got > 0)
		n = shim_translate_all(c, got, wc);
	n += pop_kept(c, num - n, wc + n);
	while (n < num && !is_empty) {
		want = num - n;
		got = c->ctx->ops.poll_cq(c->cq, want, wc + n);
		if (got < 0)
			return n ? n : got;
		n += shim_translate_all(c, got, wc + n);
		is_empty = got < want;
		if (is_empty)
			shim_comp_bury(c);
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
	if (c->soft_head == c->soft_tail && LIST_EMPTY(&c->zombies) && !c->unseen)
		shim_cq_set_calm(c, m->polled_ns + SHIM_POLL_NS);
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

/*
 * The next poll that finds nothing has something to do: as @calm_until says, or for what the kernel
 * has done meanwhile.
 */
static bool is_restless(const struct shim_cq *c)
{
	return shim_member_has_grants(c->ctx->m) ||
	       shim_sys.now() >= __atomic_load_n(&c->calm_until, __ATOMIC_RELAXED);
}

/*
 * Poll with the session. Threads that poll CQs of their own and find nothing do not wait for each
 * other, nor for who posts.
 */
static int poll_in_session(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	int got = NOT_ASKED;
	int n;

	/* Nothing is kept then, and in a session nobody else takes what the provider has. */
	if (__atomic_load_n(&c->calm_until, __ATOMIC_RELAXED)) {
		got = c->ctx->ops.poll_cq(c->cq, num, wc);
		if (got < 0 || (!got && !is_restless(c)))
			return got;
	}
	shim_lock(&c->ctx->m->lock);
	c->woken = c->armed;
	n = poll_governed(c, num, wc, got);
	c->woken = false;
	shim_end_poll(c, n > 0);
	return n;
}

/* All but the short way of shim_poll_cq(). Fewer than @num means that the CQ is empty. */
static __attribute__((noinline)) int poll_locked(struct shim_cq *c, int num, struct ibv_wc *wc)
{
	int n;

	if (shim_is_in_call())
		return poll_nested(c, num, wc);
	/* One that began without a flow has the lock of an extended CQ's provider. */
	shim_lock(&c->session);
	n = poll_in_session(c, num, wc);
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
