/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What readers see of flows and groups. See show.c.
 */
#ifndef RISO_SHOW_H
#define RISO_SHOW_H

#include "flow.h"

/**
 * struct riso_viewer - who looks at flows and groups
 * @ns: what belongs to processes of this PID namespace, and of those below, is shown;
 *	the kernel's own in the initial one
 * @user_ns: that users are shown by
 */
struct riso_viewer {
	struct pid_namespace *ns;
	struct user_namespace *user_ns;
};

/**
 * struct riso_flow_info - a flow as a dump shows it
 * @qpn: QP number
 * @class: latency, throughput or bandwidth
 * @reason: why it is not managed
 * @qp_type: as &enum ib_qp_type
 * @qp_state: as &enum ib_qp_state
 * @who: whom it belongs to
 * @rule_id: rule that gave class and weight, 0 for none
 * @weight: of its group
 * @tx_bytes: payload sent
 * @rx_bytes: payload fetched
 * @wrs: work requests posted to their last byte
 * @chunks: posted
 * @splits: work requests that were cut
 * @queued: work requests taken over
 * @wait_ns: time that they waited, sum
 * @held: work requests in the queue
 * @rnr_timer: delay for senders without a receive, as encoded
 * @rnr_known: @rnr_timer is valid
 * @over_target: Current99 was above Target99 when it was counted
 * @around: it was seen to send while its process told of nothing
 * @error: how its first failed work request failed
 * @group: id of its group, 0 when there was no memory for one
 * @sizes: messages by size class, posted while observed
 */
struct riso_flow_info {
	u32 qpn;
	enum riso_class class;
	enum riso_reason reason;
	u32 qp_type;
	u32 qp_state;
	struct riso_identity who;
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
	u32 rnr_timer;
	bool rnr_known;
	bool over_target;
	bool around;
	enum ib_wc_status error;
	u32 group;
	u64 sizes[RISO_SIZES];
};

void riso_show_fill_flow(struct riso_flow *f, struct riso_flow_info *info);
int riso_show_next_flow(struct riso_dev *rd, u32 qpn, const struct riso_viewer *viewer,
			struct riso_flow_info *info);
int riso_show_next_group(struct riso_dev *rd, u32 id, const struct riso_viewer *viewer,
			 struct riso_group_info *info);

#endif /* RISO_SHOW_H */
