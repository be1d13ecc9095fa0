// SPDX-License-Identifier: GPL-2.0
/*
 * What follows from the description of a work request alone.
 *
 * Owns no state and takes no lock. Everything here may run in any context.
 */

#include <linux/kernel.h>
#include <linux/minmax.h>

#include "op.h"
#include "ulp.h"

u32 ulp_count_sges(const struct ulp_op *op)
{
	u32 n = clamp_t(u32, op->nsge, 1, ULP_MAX_SGE);

	if (op->skew)
		return op->len > n * n ? n : 1;
	return clamp_t(u32, op->len / 2, 1, n);
}

/* where piece i of a message begins: anywhere but aligned */
u32 ulp_find_cut(const struct ulp_op *op, u32 i)
{
	u32 n = ulp_count_sges(op);

	if (i == 0 || i >= n)
		return i ? op->len : 0;
	return op->skew ? i * i : (u32)((u64)op->len * i / n) | 1;
}

bool ulp_is_atomic(const struct ulp_op *op)
{
	return op->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       op->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

bool ulp_is_local(const struct ulp_op *op)
{
	return op->opcode == IB_WR_REG_MR || op->opcode == IB_WR_LOCAL_INV;
}

bool ulp_is_send(const struct ulp_op *op)
{
	return op->opcode == IB_WR_SEND || op->opcode == IB_WR_SEND_WITH_IMM ||
	       op->opcode == IB_WR_SEND_WITH_INV;
}

bool ulp_fills_local(const struct ulp_rec *rec)
{
	return rec->recv || rec->op.opcode == IB_WR_RDMA_READ ||
	       ulp_is_atomic(&rec->op);
}
