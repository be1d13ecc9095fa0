// SPDX-License-Identifier: GPL-2.0
/*
 * These threads post on their pairs and poll, until mix_world_end() stops them.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mix.h"

/* Post the next list if there is room; whether the pair needs more. */
static bool serve(struct mix_pair *p, bool *posted)
{
	bool stop = __atomic_load_n(&p->w->stop, __ATOMIC_RELAXED);
	bool busy;

	pthread_mutex_lock(&p->lock);
	if (!p->next)
		p->next = 1 + mix_below(&p->rng, p->shape.list);
	if (stop)
		p->next = 1;
	if (!p->closed && p->posted - p->retired + p->next <= p->shape.depth) {
		mix_pair_post(p, p->next, stop);
		p->closed = stop;
		p->next = 0;
		*posted = true;
	}
	busy = !p->closed || p->retired != p->posted;
	pthread_mutex_unlock(&p->lock);
	return busy;
}

static void wait_for_event(struct mix_queue *q)
{
	struct pollfd fd[2] = {
		{ .fd = q[0].chan->fd, .events = POLLIN },
		{ .fd = q[1].chan->fd, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *context;
	int dev, n;

	do
		n = poll(fd, 2, -1);
	while (n < 0 && errno == EINTR);
	for (dev = 0; dev < 2; dev++) {
		if (!(fd[dev].revents & POLLIN))
			continue;
		if (ibv_get_cq_event(q[dev].chan, &cq, &context) || cq != q[dev].cq)
			mix_fail("an event: %s", strerror(errno));
		q[dev].events++;
	}
}

static void idle(struct mix_world *w, unsigned int group, unsigned int *turns)
{
	struct mix_queue *q = w->queue[group];

	if (!q[0].chan) {
		if (++*turns % 16 == 0)
			usleep(200);
		return;
	}
	if (ibv_req_notify_cq(q[0].cq, 0) || ibv_req_notify_cq(q[1].cq, 0))
		mix_fail("arm a CQ: %s", strerror(errno));
	if (!mix_poll_group(w, group))
		wait_for_event(q);
}

struct worker {
	struct mix_world *w;
	unsigned int thread;
};

static void *work(void *arg)
{
	struct worker me = *(struct worker *)arg;
	unsigned int group = mix_group_of[me.thread];
	unsigned int i, turns = 0;
	bool busy, posted;

	free(arg);
	do {
		busy = false;
		posted = false;
		for (i = 0; i < me.w->num_pairs; i++)
			if (me.w->pair[i].shape.thread == me.thread)
				busy |= serve(&me.w->pair[i], &posted);
		if (busy && !mix_poll_group(me.w, group) && !posted)
			idle(me.w, group, &turns);
	} while (busy);
	return NULL;
}

void mix_world_start(struct mix_world *w)
{
	unsigned int i;

	for (i = 0; i < w->num_threads; i++) {
		struct worker *me = malloc(sizeof(*me));

		*me = (struct worker) { w, i };
		if (pthread_create(&w->thread[i], NULL, work, me))
			mix_fail("no thread");
	}
}

void mix_world_end(struct mix_world *w)
{
	unsigned int i;

	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < w->num_threads; i++)
		pthread_join(w->thread[i], NULL);
	mix_must_be_empty(w);
}
