/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs.
 *
 * layer_find_qp() may be called in any context, under RCU. All else sleeps.
 */
#ifndef RISO_TEST_LAYER_QP_H
#define RISO_TEST_LAYER_QP_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

struct layer_qp {
	struct hlist_node node;
	struct rcu_head rcu;
	struct ib_qp *qp;
	bool ready;
	bool dying;
};

/* the RC queue pairs of kernel ULPs, read under RCU */
extern struct hlist_head layer_qps;

void layer_note_call(const struct layer_qp *lq);
struct layer_qp *layer_find_qp(const struct ib_qp *qp);
int layer_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
		    struct ib_udata *udata);
int layer_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);
int layer_destroy_qp(struct ib_qp *qp, struct ib_udata *udata);
void layer_drain_sq(struct ib_qp *qp);

#endif /* RISO_TEST_LAYER_QP_H */
