/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory that messages are moved between. All of it runs under nr_engine.lock.
 */
#ifndef NULLRDMA_MEM_H
#define NULLRDMA_MEM_H

#include "mr.h"
#include "nullrdma.h"
#include "params.h"

/**
 * struct nr_mem - memory in pieces, as a message goes through it
 * @qp: queue pair whose end and protection domain it belongs to
 * @sge: next piece
 * @num: pieces from @sge on
 * @mr: region of the present piece, NULL if its address is a kernel address
 * @addr: where the present piece goes on
 * @left: bytes that are left of it
 */
struct nr_mem {
	struct nr_qp *qp;
	const struct ib_sge *sge;
	u32 num;
	struct nr_mr *mr;
	u64 addr;
	u32 left;
};

void nr_move(struct nr_mem *to, struct nr_mem *from, u32 length);
void nr_put(struct nr_mem *to, const void *data, u32 length);
void *nr_find_word(struct nr_mr *mr, u64 addr);

/* May the ULP use these pieces? */
static inline bool nr_may_use(struct nr_qp *qp, const struct ib_sge *sge, u32 num,
			      int access)
{
	for (; num; num--, sge++) {
		if (likely(sge->lkey == NR_ALL_LKEY) || !sge->length)
			continue;
		if (!nr_find_mr(qp->end, qp->ibqp.pd, sge->lkey, sge->addr,
				sge->length, access))
			return false;
	}
	return true;
}

/* Large messages are not moved if the module was told so. */
static inline bool nr_is_moved(u32 length)
{
	return READ_ONCE(nr_copy) || length <= READ_ONCE(nr_small);
}

static inline struct nr_mem nr_mem_of_sges(struct nr_qp *qp, const struct ib_sge *sge,
					   u32 num)
{
	return (struct nr_mem) { .qp = qp, .sge = sge, .num = num };
}

static inline struct nr_mem nr_mem_of_region(struct nr_qp *qp, struct nr_mr *mr, u64 addr,
					     u32 length)
{
	return (struct nr_mem) { .qp = qp, .mr = mr, .addr = addr, .left = length };
}

/* What a request sends, or what the answer to it fills. */
static inline struct nr_mem nr_mem_of_request(struct nr_wqe *wqe)
{
	if (wqe->flags & NR_INLINE)
		return nr_mem_of_region(wqe->qp, NULL, (uintptr_t)wqe->data, wqe->length);
	return nr_mem_of_sges(wqe->qp, wqe->sge, wqe->num_sge);
}

#endif /* NULLRDMA_MEM_H */
