/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Posts. Any context.
 */
#ifndef RISO_TEST_LAYER_POST_H
#define RISO_TEST_LAYER_POST_H

#include <rdma/ib_verbs.h>

int layer_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);

#endif /* RISO_TEST_LAYER_POST_H */
