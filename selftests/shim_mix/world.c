// SPDX-License-Identifier: GPL-2.0
/*
 * These functions open and close all devices, CQs and pairs of a run.
 */
#include <errno.h>
#include <string.h>

#include "mix.h"

static const char *const devices[] = { "rxe0", "rxe1" };
const unsigned int mix_group_of[MIX_MAX_THREADS] = { 0, 0, 1, 2 };

void mix_world_open(struct mix_world *w, __u64 seed, const struct mix_shape *shape,
		    unsigned int num, bool large)
{
	unsigned int i, dev, group;

	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->large = large;
	for (i = 0; i < num; i++) {
		group = mix_group_of[shape[i].thread];
		w->queue[group][0].depth += shape[i].depth;
		w->queue[group][1].depth += shape[i].depth;
		if (shape[i].thread >= w->num_threads)
			w->num_threads = shape[i].thread + 1;
	}
	for (dev = 0; dev < 2; dev++) {
		mix_open_end(&w->end[dev], devices[dev]);
		for (group = 0; group < MIX_MAX_GROUPS; group++)
			if (w->queue[group][dev].depth)
				mix_create_cq(&w->queue[group][dev], &w->end[dev],
					      (seed + group) % 2, group == 1);
	}
	for (i = 0; i < num; i++) {
		mix_pair_open(&w->pair[i], w, &shape[i], i);
		w->num_pairs++;
	}
	mix_watched = w;
}

void mix_world_close(struct mix_world *w)
{
	unsigned int i, dev, group;

	mix_watched = NULL;
	for (i = 0; i < w->num_pairs; i++)
		mix_pair_close(&w->pair[i]);
	for (dev = 0; dev < 2; dev++) {
		struct mix_end *e = &w->end[dev];

		for (group = 0; group < MIX_MAX_GROUPS; group++)
			mix_destroy_cq(&w->queue[group][dev]);
		if ((e->domain && ibv_dealloc_pd(e->domain)) ||
		    (e->td && ibv_dealloc_td(e->td)) ||
		    ibv_dealloc_pd(e->pd) || ibv_close_device(e->ctx))
			mix_fail("close %s: %s", devices[dev], strerror(errno));
	}
}
