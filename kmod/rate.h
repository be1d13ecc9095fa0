/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How often each owner may do what costs others the processor. The rules are in rate.c.
 */
#ifndef RISO_RATE_H
#define RISO_RATE_H

#include <linux/atomic.h>
#include <linux/types.h>

enum {
	/* 256 counts: that two of 16 owners share one has a chance of about one third. */
	RISO_RATE_BITS = 8,
};

/**
 * struct riso_rate - how often each owner has done one thing
 * @seed: makes it chance whom an owner shares a count with
 * @used_ns: up to when its turns are used up, by a hash of the owner, ns
 */
struct riso_rate {
	u32 seed;
	atomic64_t used_ns[1 << RISO_RATE_BITS];
};

void riso_rate_init(struct riso_rate *r);
bool riso_rate_take(struct riso_rate *r, unsigned long key, s64 each_ns, u32 burst);

#endif /* RISO_RATE_H */
