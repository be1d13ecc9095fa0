/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs: created, changed, destroyed. All of it sleeps.
 */
#ifndef NULLRDMA_QP_H
#define NULLRDMA_QP_H

#include "nullrdma.h"

int nr_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int nr_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_udata *udata);
int nr_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		struct ib_qp_init_attr *init);
int nr_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

#endif /* NULLRDMA_QP_H */
