/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Posts. They may be called in any context.
 */
#ifndef NULLRDMA_POST_H
#define NULLRDMA_POST_H

#include "nullrdma.h"

int nr_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		 const struct ib_send_wr **bad_wr);
int nr_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		 const struct ib_recv_wr **bad_wr);

#endif /* NULLRDMA_POST_H */
