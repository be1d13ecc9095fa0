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
#include "batch.h"
#include "dev.h"
#include "observe.h"
#include "ring.h"
#include "rule.h"

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
 * @hash: in riso_dev.qps, RCU
 * @qp: the QP
 * @rd: its device
 * @rcu: frees it
 * @qpn: QP number
 * @qp_type: of @qp, which may be gone when a dump shows it
 * @sq_depth: max_send_wr as told to the ULP
 * @max_sge: elements of a work request, at most
 * @max_inline: inline bytes of a work request, at most
 * @unfit: why it can never be managed
 * @report: why its process does not govern it, as that says
 * @signal_all: all its work requests are signaled
 * @shim: its process posts for it under grants
 * @sends: counted in riso_group.senders
 * @wish: class that its process would like, if @wishes
 * @wishes: it would
 * @choose: its rule lets it
 * @who: whom it belongs to, what rules match on
 * @tgid: the process that made it, NULL for a ULP; counted
 * @class: latency, throughput or bandwidth
 * @rule_id: rule that gave class and weight, 0 for none
 * @weight: of its group
 * @group: flows that it shares with
 * @cq: shadow of the send CQ
 * @cq_room: CQEs reserved there
 * @cq_uses: its part of riso_cq.uses
 * @no_memory: not managed: the cap on memory was reached
 * @counted: as a latency flow
 * @tallied: where it is counted in its group, or NULL
 * @dying: the provider is destroying the QP; its number may be another's already
 * @shown: all is set that is shown of it
 * @told: listeners know of it
 * @told_reason: and that this is why it is not managed
 * @told_class: and that this is its class
 * @told_rule: and that this is its rule
 * @told_over: and that this is @over_target
 * @over_target: Current99 was above Target99 when it was counted
 * @told_error: and that this is @error
 * @news: in riso_dev.news: listeners may not know all of this
 * @mode: how the hooks treat it
 * @state: of the QP
 * @mtu: of the path, bytes
 * @rnr_timer: delay for senders without a receive, as encoded, if @rnr_known
 * @rnr_known: the QP has one
 * @max_rd_atomic: READs and atomics that the QP may have out
 * @posting: one CPU is posting for this flow
 * @paused: nobody may begin to
 * @charged: what is being posted was charged
 * @flush: QP in error: post at once, do not cut
 * @ending: QP is about to end: what the peer is told of goes to the provider before
 * @refused: provider takes no more: complete here
 * @told_refused: and has said so once
 * @marked: a marker stands behind what the provider has taken
 * @error: of the first work request that failed since creation or RESET
 * @debt: its next batch does not wait
 * @stale: what it has out does not stand in the NIC
 * @refuse: completes what the provider refuses
 * @retry_ns: provider was full: not before this
 * @retries: how often it was full since it took something, up to what counts
 * @fail_ns: QP in error: since when the provider is full, or 0
 * @progress_ns: when it last posted
 * @q: what is held
 * @batch: what the provider is being given of it
 * @slots: its tags
 * @managed: in riso_dev.managed
 * @arb: at its place
 * @place: where it stands if it has something to post
 * @arb_dir: the direction that it stands in
 * @reap: in riso_dev.reap: slots unretired
 * @inflight: wire bytes posted, not completed
 * @load: its part of riso_pacer.load
 * @path: how long its path is
 * @bytes: payload posted
 * @wrs: work requests posted to their last byte
 * @chunks: posted
 * @splits: work requests that were cut
 * @queued: work requests taken over
 * @wait_ns: time from there to the last byte posted, sum
 * @sizes: messages by size class, posted while observed
 * @seen: counts of this time of being observed, NULL at other times
 * @spent: memory of @seen that a dump may still read
 * @watch: posts that are measured, or NULL; RCU
 *
 * @qp, @rd, @qpn, @qp_type and the identity in @who are set before the flow can be found.
 * &riso_dev.lock protects @news and all from @mode on; @mode is also read without it.
 * &riso_dev.mutex protects report, shim, sends, wish, class, rule, group, what was told, @seen,
 * @watch and the life of the flow. Dumps read all of this under RCU alone.
 */
struct riso_flow {
	struct hlist_node hash;
	struct ib_qp *qp;
	struct riso_dev *rd;
	struct rcu_head rcu;

	u32 qpn;
	enum ib_qp_type qp_type;
	u32 sq_depth;
	u32 max_sge;
	u32 max_inline;
	enum riso_reason unfit;
	enum riso_reason report;
	bool signal_all;
	bool shim;
	bool sends;
	enum riso_class wish;
	bool wishes;
	bool choose;
	struct riso_identity who;
	struct pid *tgid;
	enum riso_class class;
	u32 rule_id;
	u32 weight;
	struct riso_group *group;
	struct riso_cq *cq;
	u32 cq_room;
	u32 cq_uses;
	bool no_memory;
	bool counted;
	u32 *tallied;
	bool dying;
	bool shown;
	bool told;
	enum riso_reason told_reason;
	enum riso_class told_class;
	u32 told_rule;
	bool told_over;
	bool over_target;
	enum ib_wc_status told_error;
	struct list_head news;

	enum riso_flow_mode mode;
	enum ib_qp_state state;
	u32 mtu;
	u32 rnr_timer;
	bool rnr_known;
	u32 max_rd_atomic;
	bool posting;
	bool paused;
	bool charged;
	bool flush;
	bool ending;
	bool refused;
	bool told_refused;
	bool marked;
	enum ib_wc_status error;
	bool debt;
	bool stale;
	struct delayed_work refuse;
	u64 retry_ns;
	u32 retries;
	u64 fail_ns;
	u64 progress_ns;

	struct riso_ring q;
	struct riso_batch batch;
	struct riso_slots *slots;
	struct list_head managed;
	struct list_head arb;
	enum riso_place place;
	enum riso_dir arb_dir;
	struct list_head reap;

	u64 inflight[RISO_DIRS];
	u64 load[RISO_DIRS];
	struct riso_path path;

	u64 bytes[RISO_DIRS];
	u64 wrs;
	u64 chunks;
	u64 splits;
	u64 queued;
	u64 wait_ns;
	u64 sizes[RISO_SIZES];
	struct riso_traffic __percpu *seen;
	struct riso_traffic __percpu *spent;
	struct riso_watch __rcu *watch;
};

/* The flow of a QP, of the kernel or of a @user's program, or NULL; under RCU. */
static inline struct riso_flow *riso_flow_find(struct riso_dev *rd,
					       const struct ib_qp *qp, bool user)
{
	struct riso_flow *f;

	hash_for_each_possible_rcu(rd->qps[user], f, hash, (unsigned long)qp)
		if (f->qp == qp)
			return f;
	return NULL;
}

void riso_flow_create(struct riso_dev *rd, struct ib_qp *qp,
		      const struct ib_qp_init_attr *attr, bool user);
void riso_flow_modified(struct riso_flow *f, const struct ib_qp_attr *attr,
			int mask);
void riso_flow_pause(struct riso_flow *f);
void riso_flow_resume(struct riso_flow *f);
void riso_flow_destroyed(struct riso_flow *f);
u32 riso_flow_held(struct riso_flow *f);
void riso_flow_check_all(struct riso_dev *rd);
void riso_flow_release_all(struct riso_dev *rd);
void riso_flow_forget_all(struct riso_dev *rd);

#endif /* RISO_FLOW_H */
