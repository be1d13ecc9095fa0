/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory that messages are moved between. All of it runs under nr_engine.lock.
 */
#ifndef NULLRDMA_MEM_H
#define NULLRDMA_MEM_H

#include "nullrdma.h"

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

bool nr_may_use(struct nr_qp *qp, const struct ib_sge *sge, u32 num, int access);
struct nr_mem nr_mem_of_request(struct nr_wqe *wqe);
struct nr_mem nr_mem_of_sges(struct nr_qp *qp, const struct ib_sge *sge, u32 num);
struct nr_mem nr_mem_of_region(struct nr_qp *qp, struct nr_mr *mr, u64 addr, u32 length);
void nr_move(struct nr_mem *to, struct nr_mem *from, u32 length);
void nr_put(struct nr_mem *to, const void *data, u32 length);
void *nr_find_word(struct nr_mr *mr, u64 addr);

#endif /* NULLRDMA_MEM_H */
