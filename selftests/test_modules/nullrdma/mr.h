/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory regions. The functions with &struct ib_mr or &struct ib_pd sleep, except
 * nr_map_mr_sg(). All else runs under nr_engine.lock.
 */
#ifndef NULLRDMA_MR_H
#define NULLRDMA_MR_H

#include "nullrdma.h"

struct ib_mr *nr_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *nr_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
struct ib_mr *nr_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt,
			     int access, struct ib_udata *udata);
int nr_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		 unsigned int *sg_offset);
int nr_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

struct nr_mr *nr_find_mr(struct nr_end *end, struct ib_pd *pd, u32 key, u64 addr,
			 u32 length, int access);
enum ib_wc_status nr_register(struct nr_wqe *wqe);
enum ib_wc_status nr_invalidate(struct nr_end *end, struct ib_pd *pd, u32 key);

#endif /* NULLRDMA_MR_H */
