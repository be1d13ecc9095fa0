/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The last two grants of one path, in a page that the kernel writes and a process reads.
 *
 * Owns the order of loads and stores on &struct riso_kpath. One writes, with whatever lock it
 * needs to be the only one; any number read, without a lock. A grant that is overwritten while
 * it is being read was void.
 */
#ifndef RISO_CORE_GRANTRING_H
#define RISO_CORE_GRANTRING_H

#include "../../uapi/linux/rdma_isolate_user.h"
#include "shared.h"
#include "types.h"

/* Grants that the page has room for */
enum { RISO_GRANTS = 2 };

/**
 * riso_grantring_follow - the number of the next grant
 * @seq: number of a grant, 0 before the first
 *
 * Return: the number; there is no grant 0.
 */
static inline __u32 riso_grantring_follow(__u32 seq)
{
	return seq + 1 ? seq + 1 : 1;
}

/**
 * riso_grantring_write - give a grant
 * @path: the path in the page
 * @g: the grant; its number follows that of the grant before
 */
static inline void riso_grantring_write(struct riso_kpath *path, const struct riso_grant *g)
{
	struct riso_grant *to = &path->grant[g->seq % RISO_GRANTS];

	riso_store(&to->seq, 0);
	/*
	 * Nobody takes the new bytes for those of the old number. Pairs with
	 * riso_order_loads() in riso_grantring_read().
	 */
	riso_order_stores();
	riso_store(&to->bytes, g->bytes);
	riso_store(&to->not_after, g->not_after);
	/* Who sees the number sees the bytes. Pairs with the acquire in riso_grantring_read(). */
	riso_store_release(&to->seq, g->seq);
	/* Pairs with the acquires of riso_kpath.seq in riso_grantring_read(). */
	riso_store_release(&path->seq, g->seq);
}

/**
 * riso_grantring_read - read the next grant
 * @path: the path in the page
 * @taken: number of the last grant that was taken over
 * @g: filled in
 *
 * Return: the grant's number, or @taken when there is no further one.
 */
static inline __u32 riso_grantring_read(const struct riso_kpath *path, __u32 taken,
					struct riso_grant *g)
{
	/* Pairs with the release of riso_kpath.seq in riso_grantring_write(). */
	__u32 seq = riso_load_acquire(&path->seq);
	const struct riso_grant *from;
	__u32 n;

	while (seq != taken) {
		/* Only the last two are there. */
		n = seq - taken > RISO_GRANTS ? seq - 1 : taken + 1;
		/* There is no number 0. */
		if (!n)
			n = 1;
		from = &path->grant[n % RISO_GRANTS];
		/* Pairs with the release of riso_grant.seq in riso_grantring_write(). */
		g->seq = riso_load_acquire(&from->seq);
		g->not_after = riso_load(&from->not_after);
		g->bytes = riso_load(&from->bytes);
		/* Pairs with riso_order_stores() in riso_grantring_write(). */
		riso_order_loads();
		if (g->seq == n && riso_load(&from->seq) == n)
			return n;
		/* Pairs with the release of riso_kpath.seq in riso_grantring_write(). */
		seq = riso_load_acquire(&path->seq);
	}
	return taken;
}

#endif /* RISO_CORE_GRANTRING_H */
