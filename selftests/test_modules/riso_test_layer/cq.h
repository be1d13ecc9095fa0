/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues.
 *
 * layer_req_notify_cq() and layer_poll_cq() may be called in any context. All else
 * sleeps.
 */
#ifndef RISO_TEST_LAYER_CQ_H
#define RISO_TEST_LAYER_CQ_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../compat.h"

struct layer_cq {
	struct hlist_node node;
	struct rcu_head rcu;
	struct ib_cq *cq;
	ib_comp_handler handler;
	struct delayed_work event;
	spinlock_t lock;	/* what is saved; held over the provider's poll_cq */
	struct ib_wc *saved;
	u32 head;
	u32 tail;
};

/* the CQs that kernel ULPs use, read under RCU */
extern struct hlist_head layer_cqs;

/* Completions are withheld until @layer_unstall has run, or the parameter is cleared. */
extern bool layer_stall;
extern struct delayed_work layer_unstall;

void layer_forget_cq(struct ib_cq *cq);
int layer_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);
int layer_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc);
void layer_purge_cq(struct ib_cq *cq, const struct ib_qp *qp);
int layer_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		    TEST_CREATE_CQ_ARG *arg);
int layer_destroy_cq(struct ib_cq *cq, struct ib_udata *udata);

#endif /* RISO_TEST_LAYER_CQ_H */
