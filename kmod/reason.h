/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Why a flow is managed, or not. See reason.c.
 */
#ifndef RISO_REASON_H
#define RISO_REASON_H

#include "flow.h"

enum riso_reason riso_reason_judge(const struct ib_qp *qp, const struct ib_qp_init_attr *attr,
				   bool user);
bool riso_reason_wants(const struct riso_flow *f);
bool riso_reason_is_reference(const struct riso_flow *f);
enum riso_reason riso_reason_of(const struct riso_flow *f);

#endif /* RISO_REASON_H */
