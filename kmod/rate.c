// SPDX-License-Identifier: GPL-2.0
/*
 * How often each owner, a container or a user, may do what costs others the processor.
 *
 * Owns the counts of turns. There is no lock: each count is one word, and goes on by
 * compare and exchange. Everything here runs in any context.
 */

#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/random.h>

#include "rate.h"

/**
 * riso_rate_init - nobody has done anything
 * @r: the counts, zeroed
 */
void riso_rate_init(struct riso_rate *r)
{
	r->seed = get_random_u32();
}

/**
 * riso_rate_take - may an owner do it once more?
 * @r: the counts
 * @key: riso_place_key() of the owner
 * @each_ns: once in this many nanoseconds in the long run
 * @burst: as often at once
 *
 * Context: any, takes no lock.
 * Return: true if so, and it is counted.
 */
bool riso_rate_take(struct riso_rate *r, unsigned long key, s64 each_ns, u32 burst)
{
	atomic64_t *slot = &r->used_ns[hash_long(key ^ r->seed, RISO_RATE_BITS)];
	s64 used = atomic64_read(slot);
	s64 now = ktime_get_ns();

	do {
		if (used > now + burst * each_ns)
			return false;
	} while (!atomic64_try_cmpxchg(slot, &used, max(used, now) + each_ns));
	return true;
}
