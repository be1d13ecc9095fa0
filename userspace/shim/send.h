/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ibv_post_send() and ibv_bind_mw(). See send.c.
 */
#ifndef SHIM_SEND_H
#define SHIM_SEND_H

#include <infiniband/verbs.h>

int shim_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int shim_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif /* SHIM_SEND_H */
