// SPDX-License-Identifier: GPL-2.0
/*
 * These processes write to their page what is not true. The cases check that they gain nothing
 * and that an event names them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../share.h"
#include "pages.h"

static bool stop;

static void *scribble(void *arg)
{
	struct share *s = arg;
	unsigned int seed = 1;
	__u32 *word = (__u32 *)s->u;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		word[rand_r(&seed) % (sizeof(*s->u) / 4)] =
			rand_r(&seed) & 1 ? rand_r(&seed) : -(rand_r(&seed) % 3);
	return NULL;
}

static int liar(struct share *unused)
{
	struct share s = share_join();
	pthread_t thread;

	(void)unused;
	pthread_create(&thread, NULL, scribble, &s);
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED))
		share_wait(&s, 100);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return 0;
}

/* It says that it has posted more than there is. */
static int boaster(struct share *unused)
{
	struct share s = share_join();

	(void)unused;
	s.u->path[0].want = 1;
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED)) {
		s.u->path[0].posted += 1ull << 34;
		s.u->path[0].debt += 1ull << 34;
		s.u->path[0].taken = s.k->path[0].seq;
		share_wait(&s, 0);
		usleep(1000);
	}
	return 0;
}

bool pages_lying(void)
{
	return pages_has_half_beside(liar, "counters");
}

bool pages_boasting(void)
{
	return pages_has_half_beside(boaster, "counters");
}

/* It takes a grant that was never given. */
static int thief(struct share *unused)
{
	struct share s = share_join();

	(void)unused;
	s.u->path[0].taken = 7;
	return share_wait(&s, 0);
}

bool pages_stealing(void)
{
	pid_t pid;

	return !pages_in_child(thief, NULL, &pid) && pages_named(pid, "taken");
}
