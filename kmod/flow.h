/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The registry of flows (one for each QP) and groups.
 */
#ifndef RISO_FLOW_H
#define RISO_FLOW_H

#include <linux/cache.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#include "arbiter.h"
#include "batch.h"
#include "core/phase.h"
#include "dev.h"
#include "lane.h"
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
 * @post: the provider's post_send if what is posted passes, else NULL
 * @hash: in riso_dev.qps, RCU
 * @lane: where the hooks find it, NULL if it is not of the kernel, or there was no room
 * @qp: the QP
 * @rd: its device
 * @mode: how the hooks treat it
 * @open: its posts go straight to the provider, see open.c
 * @class: latency, throughput or bandwidth
 * @group: flows that it shares with
 * @cq: shadow of the send CQ
 * @peer: what its peer lets it post, or NULL
 * @waits_for: the limit of a peer that it waits for, or NULL
 * @takes: which paths of its process it takes, by direction, if @shim
 * @passed: what it has posted while open, NULL if it is never open
 * @slots: its tags
 * @seen: counts of this time of being observed, NULL at other times
 * @watch: posts that are measured, or NULL; RCU
 * @unfit: why it can never be managed
 * @state: of the QP
 * @sq_depth: max_send_wr as told to the ULP
 * @max_sge: elements of a work request, at most
 * @max_inline: inline bytes of a work request, at most
 * @max_rd_atomic: READs and atomics that the QP may have out
 * @mtu: of the path, bytes
 * @signal_all: all its work requests are signaled
 * @q: what is held
 * @next: what it posts next, as riso_batch_next() found it last
 * @arb: in the list of its place
 * @list: which list @arb is in, if it has something to post
 * @arb_dir: the direction that it stands in
 * @phase: how what is held goes out, changed by riso_flow_step() only
 * @posting: one CPU is posting for this flow
 * @paused: nobody may begin to post for this flow
 * @debt: its next batch does not wait
 * @stale: what it has out does not stand in the NIC
 * @reap: in riso_dev.reap, or in riso_dev.stale: slots unretired
 * @inflight: wire bytes posted, not completed
 * @load: its part of riso_out.bytes
 * @far: its part of riso_out.far
 * @bound: what bounds its next post, by direction
 * @bound_of: &riso_arb.bounds that @bound was found with, 0 if it has to be found
 * @path: how long its path is
 * @progress_ns: when it last posted
 * @retry_ns: provider was full: not before this
 * @retries: how often in a row the provider had no room, RISO_RETRY_DOUBLINGS at most
 * @told_refused: the provider has refused a work request since creation or RESET
 * @marked: a marker of ours stands behind what the provider has taken
 * @error: of the first work request that failed since creation or RESET
 * @fail_ns: QP in error: since when the provider is full, or 0
 * @bytes: payload posted
 * @wrs: work requests posted to their last byte
 * @chunks: posted
 * @splits: work requests that were cut
 * @queued: work requests taken over
 * @wait_ns: time from there to the last byte posted, sum
 * @sizes: messages by size class, posted while observed
 * @managed: in riso_dev.managed
 * @news: in riso_dev.news while listeners have to be told of something
 * @qpn: QP number
 * @qp_type: of @qp, which may be gone when a dump shows it
 * @report: why its process does not govern it, as that says
 * @wish: class that its process would like, if @wishes
 * @rule_class: class that the rules give it, whatever its process would like
 * @rule_id: rule that gave class and weight, 0 for none
 * @weight: of its group
 * @cq_room: CQEs reserved in @cq
 * @cq_uses: its part of riso_cq.uses
 * @rnr_timer: delay for senders without a receive, as encoded, if @rnr_known
 * @told_reason: reason that listeners were told last
 * @told_class: class that listeners were told last
 * @told_rule: rule that listeners were told last
 * @told_error: @error as listeners were told last
 * @rnr_known: the QP has one
 * @shim: its process posts for it under grants
 * @sends: counted in riso_group.senders
 * @wishes: its process has said which class it would like
 * @choose: its rule lets its process choose the class
 * @cut_imm: its rule lets the shim cut WRITEs with immediate data
 * @no_memory: not managed: the cap on memory was reached
 * @counted: the flow counts as a latency flow in RTS
 * @dying: the provider is destroying the QP; its number may be another's already
 * @shown: all is set that is shown of it
 * @told: listeners were told of the flow
 * @told_over: @over_target as listeners were told last
 * @told_around: riso_flow_is_around() as listeners were told last
 * @over_target: Current99 was above Target99 when it was counted
 * @around: it was seen to send while its process told of nothing, see around.c
 * @around_told: riso_flow_told() at that time
 * @tallied: where it is counted in its group, or NULL
 * @tgid: the process that made it, NULL for a ULP; counted
 * @spent: memory of @seen that a dump may still read
 * @who: whom it belongs to, what rules match on
 * @refuse: completes what the provider refuses
 * @rcu: frees it
 * @batch: what the provider is being given of it, or NULL while it has no queue
 *
 * @qp, @rd, @qpn, @qp_type and the identity in @who are set before the flow can be found.
 * &riso_dev.lock protects @news, @mode, @state, @mtu, @rnr_timer, @rnr_known, @max_rd_atomic,
 * the links of @managed, @peer, and all from @q to @sizes; @mode is also read without it.
 * It protects @batch and @cq_uses too, and @unfit once the flow can be found. &riso_dev.mutex
 * protects the rest of what changes, @seen, @watch and the life of the flow.
 * Dumps read all of it under RCU alone.
 */
struct riso_flow {
	/* looked up by each hook: hardly ever written while the QP lives */
	int (*post)(struct ib_qp *qp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
	struct hlist_node hash;
	struct riso_lane *lane;
	struct ib_qp *qp;
	struct riso_dev *rd;
	enum riso_flow_mode mode;
	bool open;
	enum riso_class class;
	struct riso_group *group;
	struct riso_cq *cq;
	struct riso_peer *peer;
	struct riso_peer_limit *waits_for;
	u8 takes[RISO_DIRS];

	struct riso_passed __percpu *passed;
	struct riso_slots *slots;
	struct riso_traffic __percpu *seen;
	struct riso_watch __rcu *watch;
	enum riso_reason unfit;
	enum ib_qp_state state;
	u32 sq_depth;
	u32 max_sge;
	u32 max_inline;
	u32 max_rd_atomic;
	u32 mtu;
	bool signal_all;

	/* posting, under &riso_dev.lock */
	struct riso_ring q ____cacheline_aligned_in_smp;
	struct riso_next next;
	struct list_head arb;
	enum riso_list list;
	enum riso_dir arb_dir;
	enum riso_phase phase;
	bool posting;
	bool paused;
	bool debt;
	bool stale;
	struct list_head reap;
	u64 inflight[RISO_DIRS];
	u64 load[RISO_DIRS];
	u64 far[RISO_DIRS];
	struct riso_bound bound[RISO_DIRS];
	u32 bound_of[RISO_DIRS];
	struct riso_path path;
	u64 progress_ns;
	u64 retry_ns;
	u32 retries;
	bool told_refused;
	bool marked;
	enum ib_wc_status error;
	u64 fail_ns;

	/* counted with each post, or when observing ends, under &riso_dev.lock */
	u64 bytes[RISO_DIRS] ____cacheline_aligned_in_smp;
	u64 wrs;
	u64 chunks;
	u64 splits;
	u64 queued;
	u64 wait_ns;
	u64 sizes[RISO_SIZES];

	/* for slow paths */
	struct list_head managed ____cacheline_aligned_in_smp;
	struct list_head news;
	u32 qpn;
	enum ib_qp_type qp_type;
	enum riso_reason report;
	enum riso_class wish;
	enum riso_class rule_class;
	u32 rule_id;
	u32 weight;
	u32 cq_room;
	u32 cq_uses;
	u32 rnr_timer;
	enum riso_reason told_reason;
	enum riso_class told_class;
	u32 told_rule;
	enum ib_wc_status told_error;
	bool rnr_known;
	bool shim;
	bool sends;
	bool wishes;
	bool choose;
	bool cut_imm;
	bool no_memory;
	bool counted;
	bool dying;
	bool shown;
	bool told;
	bool told_over;
	bool told_around;
	bool over_target;
	bool around;
	u64 around_told;
	u32 *tallied;
	struct pid *tgid;
	struct riso_traffic __percpu *spent;
	struct riso_identity who;
	struct delayed_work refuse;
	struct rcu_head rcu;

	/* written by the one who posts */
	struct riso_batch *batch;
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

/* See again whether what is posted passes; under &riso_dev.lock. */
static inline void riso_flow_update_post(struct riso_flow *f)
{
	lockdep_assert_held(&f->rd->lock);
	WRITE_ONCE(f->post, f->mode == RISO_FLOW_PASS && !f->rd->observing ?
		   f->rd->orig.post_send : NULL);
}

/* Something happens that changes how what is held goes out; under &riso_dev.lock. */
static inline void riso_flow_step(struct riso_flow *f, enum riso_phase_event event)
{
	lockdep_assert_held(&f->rd->lock);
	f->phase = riso_phase_next(f->phase, event);
}

/* What the process of a flow that it posts for under grants has told of, bytes */
static inline u64 riso_flow_told(const struct riso_flow *f)
{
	const struct riso_group *g = READ_ONCE(f->group);

	/* Whoever is late with it sees a mark for a moment too long. */
	return f->shim && g ? data_race(g->bytes[RISO_TX] + g->bytes[RISO_RX]) : 0;
}

/* Was it seen to post around its process, which has told of nothing since? */
static inline bool riso_flow_is_around(const struct riso_flow *f)
{
	return READ_ONCE(f->around) && READ_ONCE(f->class) != RISO_CLASS_LATENCY &&
	       READ_ONCE(f->around_told) == riso_flow_told(f);
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
