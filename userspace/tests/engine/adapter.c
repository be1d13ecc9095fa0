// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A simulated adapter: it sends what it is given, first come, first served.
 */
#include <assert.h>
#include <string.h>

#include "adapter.h"

void adapter_init(struct adapter *a, __u64 rate, __u64 delay_ns, __u64 now)
{
	memset(a, 0, sizeof(*a));
	a->rate = rate;
	a->delay_ns = delay_ns;
	a->left_ns = now;
}

void adapter_post(struct adapter *a, __u64 bytes, unsigned int group, __u64 now)
{
	struct adapter_piece *piece = &a->pieces[a->head++ % ADAPTER_PIECES];

	assert(a->head - a->tail <= ADAPTER_PIECES);
	if (now > a->left_ns) {
		a->idle_ns += now - a->left_ns;
		a->left_ns = now;
	}
	/* A part of a nanosecond is a whole one: the adapter is never too fast. */
	a->left_ns += (bytes * RISO_SECOND + a->rate - 1) / a->rate;
	*piece = (struct adapter_piece) {
		.bytes = bytes,
		.posted_ns = now,
		.left_ns = a->left_ns,
		.group = group,
	};
}

/* The oldest piece that has not completed, or NULL */
const struct adapter_piece *adapter_oldest(const struct adapter *a)
{
	return a->head == a->tail ? NULL : &a->pieces[a->tail % ADAPTER_PIECES];
}

/* When it completes, RISO_NEVER if there is none */
__u64 adapter_next(const struct adapter *a)
{
	const struct adapter_piece *oldest = adapter_oldest(a);

	return oldest ? oldest->left_ns + a->delay_ns : RISO_NEVER;
}

void adapter_complete(struct adapter *a)
{
	a->tail++;
}

/* Bytes that have not left yet, rounded down */
__u64 adapter_standing(const struct adapter *a, __u64 now)
{
	return a->left_ns > now ? riso_bytes_in(a->left_ns - now, a->rate) : 0;
}
