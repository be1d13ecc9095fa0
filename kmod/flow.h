/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The registry of flows (one for each QP) and groups.
 */
#ifndef RISO_FLOW_H
#define RISO_FLOW_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#include "arbiter.h"
#include "comp.h"
#include "queue.h"
#include "rule.h"

struct riso_dev;

/**
 * enum riso_flow_mode - how the hooks treat a flow
 * @RISO_FLOW_PASS: not at all
 * @RISO_FLOW_MANAGED: queue, cut, pace
 * @RISO_FLOW_DRAIN: what is held goes out, then back to PASS
 */
enum riso_flow_mode {
	RISO_FLOW_PASS,
	RISO_FLOW_MANAGED,
	RISO_FLOW_DRAIN,
};

/**
 * struct riso_flow - one QP
 *
 * @qp, @rd, @qpn and the identity in @who are set before the flow can be found.
 * &riso_dev.lock protects all from @mode on; @mode is also read without it.
 * &riso_dev.mutex protects class, rule, group and the life of the flow.
 */
struct riso_flow {
	struct hlist_node hash;		/* in riso_dev.qps, RCU */
	struct ib_qp *qp;
	struct riso_dev *rd;
	struct rcu_head rcu;

	u32 qpn;
	u32 sq_depth;			/* max_send_wr as told to the ULP */
	u32 max_sge;
	u32 max_inline;
	enum riso_reason unfit;		/* why it can never be managed */
	struct riso_identity who;
	enum riso_class class;
	u32 rule_id;
	u32 weight;
	struct riso_group *group;
	struct riso_cq *cq;		/* shadow of the send CQ */
	u32 cq_room;			/* CQEs reserved there */
	u32 cq_uses;			/* its part of riso_cq.uses */
	bool no_memory;
	bool counted;			/* as a latency flow */

	enum riso_flow_mode mode;
	enum ib_qp_state state;
	u32 mtu;
	u32 max_rd_atomic;
	bool posting;			/* one CPU is posting for this flow */
	bool paused;			/* nobody may begin to */
	bool flush;			/* QP in error: post at once, do not cut */
	bool refused;			/* provider takes no more: complete here */
	bool told_refused;		/* and has said so once */
	bool debt;			/* its next batch does not wait */
	bool stale;			/* what it has out does not stand in the NIC */
	struct delayed_work refuse;
	u64 retry_ns;			/* provider was full: not before this */
	u64 fail_ns;			/* since when the provider is full, or 0 */
	u64 progress_ns;		/* when it last posted */

	struct riso_queue q;
	struct riso_slots *slots;
	struct list_head managed;	/* in riso_dev.managed */
	struct list_head arb;		/* at its place */
	enum riso_place place;
	enum riso_dir arb_dir;
	struct list_head reap;		/* in riso_dev.reap: slots unretired */

	u64 inflight[RISO_DIRS];	/* wire bytes posted, not completed */
	u64 load[RISO_DIRS];		/* its part of riso_arb.load */
	u64 rtt_min;			/* ns, U64_MAX before the first sample */
	u64 rtt_ns;			/* begin of this epoch */

	u64 bytes[RISO_DIRS];
	u64 wrs;
	u64 chunks;
	u64 splits;
	u64 queued;
	u64 wait_ns;
};

/**
 * struct riso_flow_info - a flow as a dump shows it
 */
struct riso_flow_info {
	u32 qpn;
	enum riso_class class;
	enum riso_reason reason;
	u32 qp_type;
	u32 qp_state;
	char ulp[RISO_ULP_LEN];
	union ib_gid peer;
	bool peer_known;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	uid_t uid;
	u32 rule_id;
	u32 weight;
	u64 tx_bytes;
	u64 rx_bytes;
	u64 wrs;
	u64 chunks;
	u64 splits;
	u64 queued;
	u64 wait_ns;
	u32 held;
};

/**
 * riso_flow_find - look a QP up
 * @rd: its device
 * @qp: the QP
 *
 * Context: RCU read side.
 * Return: the flow or NULL.
 */
struct riso_flow *riso_flow_find(struct riso_dev *rd, const struct ib_qp *qp);
void riso_flow_create(struct riso_dev *rd, struct ib_qp *qp,
		      const struct ib_qp_init_attr *attr, bool user);
void riso_flow_modified(struct riso_flow *f, const struct ib_qp_attr *attr,
			int mask);
void riso_flow_pause(struct riso_flow *f);
void riso_flow_resume(struct riso_flow *f);
void riso_flow_destroyed(struct riso_flow *f);

void riso_flow_update_all(struct riso_dev *rd);
void riso_flow_surrender(struct riso_flow *f);
u32 riso_flow_held(struct riso_flow *f);
u32 riso_flow_settle_all(struct riso_dev *rd);
void riso_flow_release_all(struct riso_dev *rd);
void riso_flow_bare_all(struct riso_dev *rd);
void riso_flow_forget_all(struct riso_dev *rd);
int riso_flow_info_next(struct riso_dev *rd, u32 qpn,
			struct riso_flow_info *info);

#endif /* RISO_FLOW_H */
