/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended queue pairs of the fake provider.
 */
#ifndef RISO_TEST_FAKE_WR_H
#define RISO_TEST_FAKE_WR_H

#include <infiniband/verbs.h>

struct ibv_qp *fake_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);

#endif /* RISO_TEST_FAKE_WR_H */
