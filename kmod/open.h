/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Open flows: their posts go straight to the provider. See open.c.
 */
#ifndef RISO_OPEN_H
#define RISO_OPEN_H

#include <linux/percpu.h>

#include "core/wr.h"
#include "flow.h"

/**
 * riso_open_count - count what passes of an open flow
 * @f: the flow
 * @wr: first work request, not NULL
 * @sign: 1, or -1 for what the provider has refused
 *
 * Nothing is written that another CPU writes.
 *
 * Context: any, not preempted; the flow is kept alive by the owner of its QP.
 */
static __always_inline void riso_open_count(const struct riso_flow *f,
					    const struct ib_send_wr *wr, int sign)
{
	struct riso_passed __percpu *whole = READ_ONCE(READ_ONCE(f->group)->passed);
	struct riso_passed __percpu *own = READ_ONCE(f->passed);

	do {
		u32 traits = riso_wr_traits(wr->opcode);
		enum riso_dir dir = traits & RISO_WR_READ ? RISO_RX : RISO_TX;
		s64 len = traits & RISO_WR_DATA ? riso_wr_bytes(wr) : 0;

		this_cpu_add(own->bytes[dir], sign * len);
		this_cpu_add(own->wrs, sign);
		/* One that the flow has joined just now may have none. */
		if (!whole)
			continue;
		this_cpu_add(whole->bytes[dir], sign * len);
		this_cpu_add(whole->wrs, sign);
	} while ((wr = wr->next));
}

void riso_open_equip(struct riso_flow *f);
void riso_open_update(struct riso_flow *f);
bool riso_open_watch(struct riso_dev *rd, u64 now, bool *contended);

#endif /* RISO_OPEN_H */
