// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events of CQs: the program arms a CQ, and waits for its events.
 *
 * Completions of pieces raise events, too. An event that says nothing to the program is
 * acknowledged here, and its CQ is armed again.
 *
 * Locks: shim_member.lock protects what the program has armed and seen. A CQ is armed
 * without it while the CQ is not active, or while a session is open there. No lock is held
 * while ibv_get_cq_event() sleeps.
 *
 * Everything here runs in threads of the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "cq.h"
#include "ctx.h"
#include "event.h"
#include "guard.h"
#include "helper.h"
#include "member.h"
#include "poller.h"
#include "post.h"
#include "reap.h"
#include "shim.h"
#include "soft.h"

enum {
	NS_PER_MS = 1000000,
	/*
	 * 100 ms: for so long a call is held that has found an event, if that was for a chunk. Most
	 * messages do not take longer.
	 */
	PATIENCE_NS = 100 * NS_PER_MS,
};

/*
 * The program arms a CQ that is active; its member is locked. Where it waits for an event of any
 * completion already, it still does.
 */
static void note_armed(struct shim_cq *c, int solicited_only)
{
	c->armed = true;
	if (!c->awaits)
		c->older = c->soft_tail - c->soft_head;
	if (!c->awaits || c->solicited)
		__atomic_store_n(&c->solicited, solicited_only, __ATOMIC_RELAXED);
	c->awaits = true;
	c->owes = c->soft_head != c->soft_tail;
	shim_cq_set_unseen(c, 1);
}

/*
 * Some providers lock an extended CQ from start_poll to end_poll, and who arms it waits
 * for that, as without the shim. It may not be with a lock that the session needs. What is polled
 * from now on may have an event.
 */
static int arm_in_session(struct shim_cq *c, int solicited_only)
{
	struct shim_member *m = c->ctx->m;

	shim_lock(&m->lock);
	note_armed(c, solicited_only);
	shim_unlock(&m->lock);
	return c->ctx->ops.req_notify_cq(c->cq, solicited_only);
}

/* Arm a CQ whose completions have to be translated. */
static __attribute__((noinline)) int arm_active(struct shim_cq *c, int solicited_only)
{
	struct shim_member *m = c->ctx->m;
	int err;

	if (shim_is_nested())
		return EDEADLK;
	if (!shim_cqex_try(c))
		return arm_in_session(c, solicited_only);
	shim_lock(&m->lock);
	note_armed(c, solicited_only);
	err = c->ctx->ops.req_notify_cq(c->cq, solicited_only);
	shim_unlock(&m->lock);
	shim_cqex_leave(c);
	return err;
}

/**
 * shim_req_notify_cq - the program's req_notify_cq
 * @cq: the CQ
 * @solicited_only: arm it for solicited completions only
 *
 * While nothing has to be translated, a lock would cost more than all else that the
 * shim does with a small message. The reaper then takes a CQ for one that is not armed,
 * and leaves it alone, until the program has polled.
 *
 * Return: 0 or an error.
 */
int shim_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);
	int err;

	if (!c)
		return shim_find_ctx(cq->context)->ops.req_notify_cq(cq, solicited_only);
	if (shim_cq_is_active(c)) {
		err = arm_active(c, solicited_only);
	} else {
		__atomic_store_n(&c->solicited, solicited_only, __ATOMIC_RELAXED);
		err = c->ctx->ops.req_notify_cq(cq, solicited_only);
	}
	shim_wake_napping(c->ctx->m);
	return err;
}

/* Take a completion for the program, if none waits; true if one waits. Nobody else polls. */
static bool shim_fetch_completion(struct shim_cq *c)
{
	if (c->soft_head == c->soft_tail)
		shim_take_completions(c, 1);
	return c->soft_head != c->soft_tail;
}

/* The program is told of an event; the member is locked. */
static void note_told(struct shim_cq *c)
{
	c->shown = 0;
	c->unknown = false;
	if (c->due)
		c->due--;
	else
		c->awaits = false;
}

/* Is an event to come that the program is told of? A solicited one may be none of ours. */
static bool wakes_up_later(const struct shim_cq *c)
{
	return c->awaited && !__atomic_load_n(&c->solicited, __ATOMIC_RELAXED);
}

/* Is something paced, of which events of chunks may come? */
static bool is_paced(const struct shim_member *m)
{
	return __atomic_load_n(&m->held, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&m->hidden, __ATOMIC_RELAXED);
}

/*
 * May an event be for something that the program has polled? Then who waits for it has to hear of
 * it, or of what is to come, at least.
 */
static bool may_be_older(const struct shim_cq *c)
{
	return c->due || (c->shown && c->shown != pthread_self()) ||
	       (c->unknown && !wakes_up_later(c));
}

/* Arm a CQ for the program again, as nothing has come; true if something comes meanwhile. */
static bool arm_again(struct shim_cq *c)
{
	int solicited = __atomic_load_n(&c->solicited, __ATOMIC_RELAXED);

	return c->ctx->ops.req_notify_cq(c->cq, solicited) || shim_fetch_completion(c);
}

/*
 * May an event be that of a chunk? What there is to poll goes to the soft ring, so that it is not
 * taken for something that comes later.
 */
static bool may_be_chunk(struct shim_cq *c)
{
	bool may;

	/* The program sees what has completed as soon as it has armed the CQ and polls. */
	c->woken = true;
	may = !shim_fetch_completion(c) && !may_be_older(c) && !arm_again(c);
	c->woken = false;
	return may;
}

/**
 * shim_comp_is_news - was an event raised for a completion of the program?
 * @c: the CQ, whose event is not acknowledged
 *
 * If not, it is armed again. Where another thread has polled something since an event was
 * told last, this one may have been for that, and the one who waits has to hear of it. So may
 * who has armed the CQ and has polled something that came later, before its event came. Where
 * nothing is paced and no message is to end, it is news, and what is there stays with the provider.
 *
 * Return: true if it was, or if that cannot be told.
 */
bool shim_comp_is_news(struct shim_cq *c)
{
	struct shim_member *m = c->ctx->m;
	bool may_look, news = true;

	if (!shim_cq_is_active(c))
		return true;
	shim_lock(&m->lock);
	/*
	 * Others may poll without the lock: their completions must not be overtaken. Who has a
	 * session open looks himself, and may have the provider's lock.
	 */
	may_look = (is_paced(m) || c->awaited) && c->active && !c->joining && shim_cq_try(c);
	if (may_look) {
		news = !may_be_chunk(c);
		shim_cq_leave(c);
	}
	if (news)
		note_told(c);
	/* The program is there and sleeps: the helper need not look for it. */
	shim_cq_set_unseen(c, 1);
	if (shim_member_news(m))
		shim_queue_drive(m);
	shim_cq_update(c);
	shim_unlock_and_drive(m);
	return news;
}

/* The program is told of an event, whatever it was raised for; @waited for another one in vain. */
static void tell_any(struct shim_cq *c, bool waited)
{
	shim_lock(&c->ctx->m->lock);
	note_told(c);
	c->hurried |= waited;
	shim_unlock(&c->ctx->m->lock);
}

/* May the program be held that has found an event? Once for each message. */
static bool may_wait(struct shim_cq *c)
{
	bool may;

	shim_lock(&c->ctx->m->lock);
	may = !c->hurried;
	shim_unlock(&c->ctx->m->lock);
	return may;
}

/* May a call that finds no event sleep? */
static bool may_sleep(const struct ibv_comp_channel *channel)
{
	int flags = fcntl(channel->fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

/*
 * Is there an event, or will there be one until then? The thread may have one in its hands, which
 * it would take along if it was cancelled.
 */
static bool has_event(const struct ibv_comp_channel *channel, uint64_t until)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	uint64_t now = shim_sys.now();
	int state, n;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	n = poll(&p, 1, until > now ? (until - now) / NS_PER_MS : 0);
	pthread_setcancelstate(state, NULL);
	return n > 0;
}

/*
 * The next event that says something to the program. Who may not sleep gets any. Who finds one may
 * have been woken up in poll(), and have other things to do: it gets any after a while. Who has
 * slept since before anything was paced gets any after a while, too.
 */
static __attribute__((noinline)) int get_news(struct ibv_comp_channel *channel,
					      struct ibv_cq **cq, void **cq_context,
					      const struct shim_member *m)
{
	uint64_t until = 0;
	struct shim_cq *c;
	bool any, found;
	int err;

	if (shim_is_refused())
		return -1;
	found = !is_paced(m) || has_event(channel, 0);
	for (;;) {
		err = shim_real.get_cq_event(channel, cq, cq_context);
		if (err)
			return err;
		c = shim_map_find(&shim_cqs, *cq);
		if (!c || shim_comp_is_news(c))
			return 0;
		any = !may_sleep(channel);
		if (!until)
			until = shim_sys.now() + PATIENCE_NS;
		if (any || (found && !(may_wait(c) && shim_sys.now() < until &&
				       has_event(channel, until)))) {
			tell_any(c, !any);
			return 0;
		}
		shim_real.ack_cq_events(*cq, 1);
	}
}

/**
 * shim_get_cq_event - ibv_get_cq_event()
 * @channel: the channel
 * @cq: filled in with the CQ that has an event
 * @cq_context: filled in with what the program gave shim_create_cq()
 *
 * Completions of chunks raise events, too. A call that sleeps here sleeps on, if something
 * was paced when it began. One that finds an event may come from a program that was woken up
 * elsewhere, as in poll(), and may not be held here for long: then it finds an empty CQ, as
 * programs have to expect. What a chunk has raised may be found after all its message is out.
 *
 * Return: 0, or -1 and errno.
 */
int shim_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		      void **cq_context)
{
	struct shim_ctx *ctx = shim_find_ctx(channel->context);

	if (ctx)
		shim_wake_napping(ctx->m);
	if (ctx && __atomic_load_n(&ctx->tagged, __ATOMIC_RELAXED))
		return get_news(channel, cq, cq_context, ctx->m);
	return shim_real.get_cq_event(channel, cq, cq_context);
}
