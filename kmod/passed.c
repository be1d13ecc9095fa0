// SPDX-License-Identifier: GPL-2.0
/*
 * Counts of what went straight to the provider, of a flow or a group.
 *
 * Each CPU has its own, written by the hook of posts without a lock, in any context. Owns
 * nothing: flows and groups have the memory, and free it a grace period after they are gone.
 */

#include <linux/gfp.h>
#include <linux/percpu.h>
#include <linux/string.h>

#include "passed.h"

/**
 * riso_passed_alloc - make counts
 *
 * Memory of each CPU is not waited for: who allocates it may wait for another who does, and
 * that one for storage.
 *
 * Context: any.
 * Return: the counts, all 0, or NULL.
 */
struct riso_passed __percpu *riso_passed_alloc(void)
{
	return alloc_percpu_gfp(struct riso_passed, GFP_NOWAIT | __GFP_NOWARN);
}

/**
 * riso_passed_sum - add up the counts of all CPUs
 * @passed: the counts, or NULL
 * @sum: filled in
 *
 * Context: any; whose counts they are is held, or found under RCU.
 */
void riso_passed_sum(const struct riso_passed __percpu *passed, struct riso_passed *sum)
{
	int cpu, dir;

	memset(sum, 0, sizeof(*sum));
	if (!passed)
		return;
	for_each_possible_cpu(cpu) {
		const struct riso_passed *p = per_cpu_ptr(passed, cpu);

		sum->wrs += READ_ONCE(p->wrs);
		for (dir = 0; dir < RISO_DIRS; dir++)
			sum->bytes[dir] += READ_ONCE(p->bytes[dir]);
	}
}
