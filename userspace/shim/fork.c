// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fork().
 *
 * After fork() the child goes on as though there were no shim: its members look at empty
 * pages of their own, as the kernel's are not inherited, and all its flows go straight to
 * the provider.
 *
 * Locks: the fork handlers take shim_class_lock and the locks behind it, in the order of
 * shim.h, so the child finds what these protect at rest. They do not use shim_lock(): the
 * count of guard.c must stay as it was, as it tells whether the thread forks inside a call
 * of the shim.
 *
 * The handlers run in the thread that forks. They are registered when the library is loaded:
 * those that a program registers later run before them, with none of these locks held. Those of
 * its malloc() run after them: who holds a lock of ours may be waiting for memory.
 */
#include <stdlib.h>

#include "ask.h"
#include "cq.h"
#include "ctx.h"
#include "guard.h"
#include "member.h"
#include "poller.h"
#include "qp.h"
#include "record.h"
#include "registry.h"
#include "shim.h"

/**
 * shim_qps_forked - flows go straight to the provider from here on
 *
 * In a child. What is held is the parent's.
 */
static void shim_qps_forked(void)
{
	struct shim_map_table *t = shim_qps.table;
	size_t i;

	for (i = 0; t && i <= t->mask; i++) {
		struct shim_qp *f = t->entry[i].value;

		if (t->entry[i].key <= SHIM_MAP_REMOVED)
			continue;
		f->alone = true;
		f->paced = false;
		f->build.open = false;
		f->classes = f->ctx->m->kpage->classes;
		shim_queue_drop(f);
		shim_qp_pass(f);
		/* Whatever pieces are out. */
		shim_qp_step(f, SHIM_ON_PASS);
	}
}

/*
 * Other threads of the parent poll. An extended CQ may be polled by this one. What waits for the
 * program, and whom an event is to wake up, is the parent's.
 */
static void shim_cqs_forked(void)
{
	struct shim_map_table *t = shim_cqs.table;
	size_t i;

	for (i = 0; t && i <= t->mask; i++) {
		struct shim_cq *c = t->entry[i].value;

		if (t->entry[i].key <= SHIM_MAP_REMOVED)
			continue;
		if (!c->ex)
			pthread_mutex_init(&c->session, NULL);
		c->armed = false;
		c->owes = false;
		c->awaits = false;
		c->soft_head = 0;
		c->soft_tail = 0;
	}
}

/*
 * Take all locks before fork().
 *
 * A signal handler may fork inside a call of the shim, as to start a debugger. Such a thread
 * would wait here for its own locks for ever, so it takes none. Its child has them locked, with
 * all that is the parent's, and can do nothing but exec or _exit().
 */
static void shim_prepare_fork(void)
{
	struct shim_member *m;

	if (shim_is_in_call())
		return;
	pthread_mutex_lock(&shim_class_lock);
	pthread_mutex_lock(&shim_size_lock);
	shim_pollers_lock();
	pthread_mutex_lock(&shim_members.lock);
	TAILQ_FOREACH(m, &shim_members.list, list)
		pthread_mutex_lock(&m->lock);
	shim_maps_lock();
}

/* The opposite of shim_prepare_fork() */
static void shim_unlock_all(void)
{
	struct shim_member *m;

	if (shim_is_in_call())
		return;
	shim_maps_unlock();
	TAILQ_FOREACH(m, &shim_members.list, list)
		pthread_mutex_unlock(&m->lock);
	pthread_mutex_unlock(&shim_members.lock);
	shim_pollers_unlock();
	pthread_mutex_unlock(&shim_size_lock);
	pthread_mutex_unlock(&shim_class_lock);
}

/* Let the child go on without the kernel. */
static void shim_enter_child(void)
{
	struct shim_member *m;

	if (shim_is_in_call())
		return;
	TAILQ_FOREACH(m, &shim_members.list, list) {
		m->gone = true;
		shim_member_close_file(m);
		m->attached = false;
		m->kpage = &shim_no_kpage;
		m->upage = &shim_no_upage;
		/* The child may open the device anew. */
		m->dev[0] = 0;
		shim_init_wake(m);
		m->naps = false;
		m->started = false;
		m->failed = false;
	}
	shim_members.told = false;
	/* Other threads wait for locks of the parent. */
	shim_waiters = 0;
	shim_qps_forked();
	shim_cqs_forked();
	shim_pollers_forked();
	shim_unlock_all();
}

static void __attribute__((constructor)) handle_forks(void)
{
	/* A malloc() of the program registers its handlers when it is called first. */
	void *volatile memory = malloc(1);

	free(memory);
	pthread_atfork(shim_prepare_fork, shim_unlock_all, shim_enter_child);
}
