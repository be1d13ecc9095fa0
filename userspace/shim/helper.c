// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helper threads: they post what is held while the program makes no calls.
 *
 * While something is held, the program's own calls post what may be posted. The helper does
 * it when there are none. Each member has one helper, which starts when something has to
 * wait and sleeps while nothing does. It ends after a while without anything to do: a
 * process whose other threads are all gone ends by itself, whether it has closed its devices
 * or not.
 *
 * At every unlock shim_member.waiting says whether something is held. When that begins, the
 * thread that unlocks wakes the helper. The kernel forgets who wants no grants, so that
 * thread also tells the kernel whenever grants are wanted again.
 *
 * Locks: shim_members.lock protects whether there is a helper, and its sleep. Who wakes the
 * helper has unlocked the member. The helper takes shim_member.lock to serve, and waits for
 * the kernel without a lock.
 *
 * helper() and what it calls run in the helper. The rest runs in threads of the program,
 * shim_unlock_and_drive() in both.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "guard.h"
#include "helper.h"
#include "member.h"
#include "poller.h"
#include "post.h"
#include "qp.h"
#include "reap.h"
#include "registry.h"
#include "shim.h"
#include "soft.h"

/* How long the helper waits for the kernel, in microseconds. */
enum {
	WAIT_GRANT = 100000,	/* only for a grant */
	WAIT_COMPLETION = 100,	/* for the room that a completion makes */
	WAIT_PROGRAM = 1000,	/* if the program polls, or to tell what is done */
};

/*
 * A program that polls an active CQ in half of all times of 100 us posts by itself what is held. The
 * helper looks again after an eighth of the time for which it has polled so far, so that one that
 * computes for a while loses no more than that.
 */
enum {
	NAP_PART = 8,
	NAP_MIN = 1000,		/* microseconds */
	NAP_MAX = 100000,	/* microseconds: ten looks a second */
	/*
	 * Who polls calls 2 ms after the kernel looked last. A timer that is late by less makes up
	 * for what it missed.
	 */
	LATE_NS = 2000000,
};

/* Seconds without anything to do after which it ends. */
enum { IDLE = 1 };

/*
 * Bytes: many times what the calls of the provider and the page of soft completions need. The
 * program's thread-local variables are on it, too, and few programs have more than 64 KB of these.
 */
enum { STACK = 512 * 1024 };

static bool holds(const struct shim_member *m)
{
	return __atomic_load_n(&m->held, __ATOMIC_RELAXED);
}

/* Look at the page for a while, no longer than @w; true if there is something new. */
static bool spin(struct shim_member *m, const struct riso_ioc_wait *w)
{
	uint64_t most = w->timeout_us * 1000ULL;
	struct riso_ioc_wait ask = *w;
	uint64_t end;

	if (!m->spin_ns)
		return false;
	ask.timeout_us = 0;
	shim_wait_kernel(m, &ask);
	end = shim_sys.now() + (m->spin_ns < most ? m->spin_ns : most);
	do {
		if (shim_has_news(m->kpage, w->grants, w->mode))
			return true;
	} while (holds(m) && shim_sys.now() < end);
	return false;
}

static struct riso_ioc_wait known(struct shim_member *m, uint32_t timeout_us)
{
	uint32_t i;

	for (i = 0; i < m->terms.paths; i++)
		m->asked[i] = m->upage->path[i].want;
	return (struct riso_ioc_wait) {
		.grants = m->grants,
		.mode = m->mode,
		.timeout_us = timeout_us,
	};
}

/* How long the helper shall wait, 0 for no more. */
static uint32_t how_long(const struct shim_member *m)
{
	uint32_t timeout = WAIT_GRANT;
	const struct shim_qp *f;

	if (!m->held)
		return 0;
	TAILQ_FOREACH(f, &m->busy, busy) {
		if (!f->sq.signaled && !f->full)
			continue;
		if (f->full && f->cq->unseen > 1)
			return WAIT_COMPLETION;
		timeout = WAIT_PROGRAM;
	}
	return timeout;
}

/* Has the program polled all the time since the last look? Then, how long may the helper nap? */
static uint32_t how_long_nap(struct shim_member *m, bool forgets)
{
	uint64_t now = shim_sys.now();
	uint64_t polls = m->polls - m->polls_seen;
	uint64_t nap;

	/* For less than that it may just not have had a processor. */
	if (!forgets && now - m->looked_ns < NAP_MIN * 1000ULL)
		return m->naps ? NAP_MIN : 0;
	if (forgets || 2 * polls * SHIM_POLL_NS < now - m->looked_ns)
		m->polls_since = 0;
	else if (!m->polls_since)
		m->polls_since = now;
	m->polls_seen = m->polls;
	m->looked_ns = now;
	shim_member_set_naps(m, m->polls_since);
	if (!m->polls_since)
		return 0;
	nap = (now - m->polls_since) / NAP_PART / 1000;
	return nap < NAP_MIN ? NAP_MIN : nap < NAP_MAX ? nap : NAP_MAX;
}

/*
 * Take completions and grants, and post. Then @nap_us says how long to nap; else @w how to wait
 * for the kernel, if its time is not 0.
 */
static void serve(struct shim_member *m, struct riso_ioc_wait *w, uint32_t *nap_us)
{
	bool forgets = false;
	struct shim_qp *f;
	uint32_t i;

	shim_lock(&m->lock);
	m->round++;
	TAILQ_FOREACH(f, &m->busy, busy) {
		if ((!f->sq.signaled && !f->full) || f->cq->round == m->round)
			continue;
		f->cq->round = m->round;
		/* It polls others only. */
		forgets = forgets || f->cq->unseen;
		shim_cq_set_unseen(f->cq, f->cq->unseen + 1);
		shim_comp_reap(f->cq);
		shim_cq_update(f->cq);
	}
	*nap_us = how_long_nap(m, forgets);
	for (i = 0; i < m->terms.paths && !m->held; i++)
		m->book[i].ahead = 0;
	shim_queue_drive(m);
	m->waiting = m->held;
	if (!*nap_us)
		*w = known(m, how_long(m));
	shim_unlock(&m->lock);
}

/* Sleep until there may be something to do; false after IDLE without. */
static bool wait_idle(struct shim_member *m)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE;
	return pthread_cond_timedwait(&m->wake, &shim_members.lock, &until) != ETIMEDOUT;
}

/* Let the program post by itself for a while, or until it stops to poll. */
static void nap(struct shim_member *m, uint32_t us)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += us * 1000L;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	shim_lock(&shim_members.lock);
	if (m->refs && __atomic_load_n(&m->naps, __ATOMIC_RELAXED))
		pthread_cond_timedwait(&m->wake, &shim_members.lock, &until);
	shim_unlock(&shim_members.lock);
}

/* Lives until nothing was held for IDLE, or the last context is closed. */
static void *helper(void *arg)
{
	struct shim_member *m = arg;
	struct riso_ioc_wait w = { };
	uint32_t nap_us;

	/* Not the processor of the thread that began, which may poll there all the time. */
	shim_use_first_cpus();
	shim_lock(&shim_members.lock);
	while (m->refs) {
		if (!holds(m) && !__atomic_load_n(&m->naps, __ATOMIC_RELAXED)) {
			if (!wait_idle(m) && !holds(m))
				break;
			continue;
		}
		shim_unlock(&shim_members.lock);
		if (shim_member_stale(m))
			shim_qps_refresh(m);
		serve(m, &w, &nap_us);
		if (nap_us)
			nap(m, nap_us);
		else if (w.timeout_us && !spin(m, &w))
			shim_wait_kernel(m, &w);
		/* Nothing wakes it then: a provider that refuses may take it some other time. */
		if (__atomic_load_n(&m->gone, __ATOMIC_RELAXED))
			usleep(nap_us ? 0 : w.timeout_us);
		shim_lock(&shim_members.lock);
	}
	/* Who holds something from here on finds no helper, and starts one. */
	m->started = false;
	if (!m->refs)
		shim_free_member(m);
	shim_unlock(&shim_members.lock);
	return NULL;
}

/* Is this a thread that others of its processor wait for until it sleeps? */
static bool is_real_time(void)
{
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

/*
 * Signals are for the program's own threads. One of real-time priority may wait for what
 * the helper posts without sleeping: the helper is not of its kind, so that the kernel
 * lets it have a part of the time.
 */
static bool start_helper(struct shim_member *m)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	size_t size;
	int err;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (is_real_time())
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_getstacksize(&attr, &size);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = shim_sys.create_thread(&thread, &attr, helper, m);
	if (err == EINVAL) {
		/* This program has more of them than that. */
		pthread_attr_setstacksize(&attr, size);
		err = shim_sys.create_thread(&thread, &attr, helper, m);
	}
	if (!err)
		pthread_setname_np(thread, "rdma_isolate");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return !err;
}

/* False if there cannot be a helper, so that nothing may wait; its list is locked. */
static bool have_helper(struct shim_member *m)
{
	if (!m->started)
		m->started = start_helper(m);
	__atomic_store_n(&m->failed, !m->started, __ATOMIC_RELAXED);
	return m->started;
}

/* False if nothing may wait. */
static bool wake_helper(struct shim_member *m)
{
	bool failed, was_failed;

	shim_lock(&shim_members.lock);
	was_failed = m->failed;
	failed = was_failed || !have_helper(m);
	pthread_cond_signal(&m->wake);
	shim_unlock(&shim_members.lock);
	if (failed && !was_failed) {
		shim_qps_no_thread(m);
		/* They ask again with the next queue pair, for which there may be one. */
		__atomic_store_n(&m->refused, true, __ATOMIC_RELAXED);
	}
	return !failed;
}

/* Post once more; true if something is held still. */
static bool drive(struct shim_member *m)
{
	bool held;

	shim_lock(&m->lock);
	shim_queue_drive(m);
	held = m->held;
	m->waiting = held;
	shim_unlock(&m->lock);
	return held;
}

/* Grants are wanted, and the kernel does not know, or does not look as it said. */
static bool must_ask(struct shim_member *m)
{
	bool wants = false, asked = true;
	uint64_t now, looked, until;
	uint32_t i;

	/* What is wanted ahead only, it may look for when it likes. */
	if (m->naps && !m->held)
		return false;
	for (i = 0; i < m->terms.paths; i++) {
		if (!m->upage->path[i].want)
			continue;
		wants = true;
		asked = asked && m->asked[i];
	}
	if (!wants || !m->naps)
		return !asked;
	now = shim_sys.now();
	looked = __atomic_load_n(&m->kpage->looked, __ATOMIC_RELAXED);
	until = __atomic_load_n(&m->kpage->looks_until, __ATOMIC_RELAXED);
	if (looked < m->asked_ns)
		looked = m->asked_ns;
	if ((asked || now < until) && now < looked + LATE_NS)
		return false;
	m->asked_ns = now;
	return true;
}

/**
 * shim_unlock_and_drive - unlock a member where something may be held now
 * @m: the member
 */
void shim_unlock_and_drive(struct shim_member *m)
{
	/* One that naps looks before long. */
	bool begins = m->held && !m->waiting && !m->naps;
	bool asks = must_ask(m);
	struct riso_ioc_wait w;
	int saved;

	m->waiting = m->held;
	if (asks)
		w = known(m, 0);
	shim_unlock(&m->lock);
	if (!begins && !asks)
		return;
	saved = errno;
	if (asks) {
		shim_wait_kernel(m, &w);
		begins = drive(m) && begins;
	}
	if (begins && !wake_helper(m))
		drive(m);
	errno = saved;
}

/**
 * shim_wake_napping - the program may not poll for a while
 * @m: the member, not locked
 */
void shim_wake_napping(struct shim_member *m)
{
	/* What a signal handler does in the middle of a call, the helper sees before long. */
	if (!__atomic_load_n(&m->naps, __ATOMIC_RELAXED) || shim_is_in_call())
		return;
	shim_lock(&m->lock);
	m->polls_since = 0;
	m->polls_seen = m->polls;
	m->looked_ns = shim_sys.now();
	shim_member_set_naps(m, false);
	shim_member_publish(m);
	shim_unlock(&m->lock);
	shim_lock(&shim_members.lock);
	pthread_cond_signal(&m->wake);
	shim_unlock(&shim_members.lock);
}

/* Try once more to have a helper where there could be none; false if there still cannot. */
static bool retry_helper(struct shim_member *m)
{
	bool failed;

	shim_lock(&shim_members.lock);
	failed = m->failed && !have_helper(m);
	shim_unlock(&shim_members.lock);
	return !failed;
}

/**
 * shim_ask_and_drive - have a flow governed, and post what its class lets go out
 * @f: the flow, whose member is not locked; shim_class_lock is held
 */
void shim_ask_and_drive(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;

	shim_ask_kernel_and_lock(f, !m->attached || retry_helper(m));
	if (m->held)
		shim_queue_drive(m);
	shim_unlock_and_drive(m);
}

/* Does it hold something, and may its class have changed? */
static bool is_stale(void *value, void *arg)
{
	struct shim_qp *f = value;

	return f->ctx->m == arg && !shim_qp_is_fresh(f) && shim_qp_holds(f);
}

/**
 * shim_qps_refresh - ask for the classes of flows that hold something
 * @m: the member, not locked
 *
 * For those that the program does not post to. A flow leaves the map under
 * shim_class_lock, so those that are found stay.
 */
void shim_qps_refresh(struct shim_member *m)
{
	/* Before the kernel is asked, so that a change after its answer is noticed. */
	uint32_t classes = __atomic_load_n(&shim_member_kpage(m)->classes,
					   __ATOMIC_ACQUIRE);
	struct shim_qp *f;
	int saved = errno;

	shim_lock(&shim_class_lock);
	while ((f = shim_map_search(&shim_qps, is_stale, m)))
		shim_ask_and_drive(f);
	__atomic_store_n(&m->classes, classes, __ATOMIC_RELAXED);
	shim_unlock(&shim_class_lock);
	errno = saved;
}
