// SPDX-License-Identifier: GPL-2.0
/*
 * Requests about devices: settings, counters, budgets and histograms.
 *
 * Messages are translated here, nothing is decided: ranges that the policies do not check
 * belong to riso_dev_set() and riso_settings_lend().
 *
 * Owns nothing. Handlers run in process context, any number at a time; what they call
 * takes its locks by itself.
 */

#include <linux/kernel.h>
#include <linux/sched.h>
#include <net/genetlink.h>

#include "dev.h"
#include "nl.h"
#include "nl_gen.h"
#include "observe.h"
#include "settings.h"
#include "stats.h"

static_assert(RDMA_ISOLATE_AUTO == RISO_AUTO);
static_assert(RDMA_ISOLATE_DEV_NAME_MAX + 1 == IB_DEVICE_NAME_MAX);

/* What there is one of for each device */
union dev_data {
	struct riso_dev_info info;
	struct riso_budget budget;
	u64 stats[RISO_STAT_MAX];
};

/**
 * struct dev_kind - how one of these is shown
 * @cmd: the command of its messages
 * @read: reads it
 * @fill: puts it into a message
 */
struct dev_kind {
	u8 cmd;
	void (*read)(struct riso_dev *rd, union dev_data *data);
	riso_nl_fill_fn fill;
};

static int reply_of_dev(struct genl_info *info, const struct nlattr *name,
			const struct dev_kind *kind)
{
	union dev_data data;
	struct riso_dev *rd;
	int err;

	rd = riso_nl_find_dev(name, info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);

	kind->read(rd, &data);
	err = riso_nl_reply(info, kind->cmd, kind->fill, rd->ibdev->name, &data);
	riso_dev_put(rd);
	return err;
}

/* cb->args[0] is the index of the next device */
static int dump_devs(struct sk_buff *skb, struct netlink_callback *cb,
		     const struct dev_kind *kind)
{
	union dev_data data;
	struct riso_dev *rd;
	u32 index;
	int err;

	err = riso_nl_check_plain_dump(cb);
	if (err)
		return err;

	riso_nl_watch_changes(cb);
	while ((rd = riso_dev_get_next(cb->args[0]))) {
		index = rd->index;
		kind->read(rd, &data);
		err = riso_nl_put_part(skb, cb, kind->cmd, kind->fill, rd->ibdev->name, &data);
		riso_dev_put(rd);
		if (err)
			return skb->len ?: err;
		cb->args[0] = index + 1;
		cond_resched();
	}
	riso_nl_watch_changes(cb);
	return skb->len;
}

static void read_dev(struct riso_dev *rd, union dev_data *data)
{
	riso_dev_fill_info(rd, &data->info);
}

static const struct dev_kind devs = {
	.cmd = RDMA_ISOLATE_CMD_DEV_GET,
	.read = read_dev,
	.fill = riso_nl_fill_dev,
};

int rdma_isolate_nl_dev_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	return reply_of_dev(info, info->attrs[RDMA_ISOLATE_A_DEV_DEV], &devs);
}

int rdma_isolate_nl_dev_get_dumpit(struct sk_buff *skb,
				   struct netlink_callback *cb)
{
	return dump_devs(skb, cb, &devs);
}

static void read_u64(struct nlattr **attrs, int attr, u64 *val, u32 bit,
		     struct riso_change *chg)
{
	if (!attrs[attr])
		return;
	*val = nla_get_u64(attrs[attr]);
	chg->mask |= bit;
}

static void read_u32(struct nlattr **attrs, int attr, u32 *val, u32 bit,
		     struct riso_change *chg)
{
	if (!attrs[attr])
		return;
	*val = nla_get_u32(attrs[attr]);
	chg->mask |= bit;
}

int rdma_isolate_nl_dev_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct riso_change chg = {};
	struct riso_dev *rd;
	u32 histogram = 0;
	u32 share = 0;
	u32 mode = 0;
	u32 ctrl = 0;
	int err;

	err = riso_nl_check_admin(skb, info);
	if (err)
		return err;

	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_MODE, &mode,
		 RISO_SET_MODE, &chg);
	chg.mode = mode;
	read_u64(info->attrs, RDMA_ISOLATE_A_DEV_MAX_RATE, &chg.cfg.max_rate,
		 RISO_SET_MAX_RATE, &chg);
	read_u64(info->attrs, RDMA_ISOLATE_A_DEV_MAX_OPS, &chg.cfg.max_ops,
		 RISO_SET_MAX_OPS, &chg);
	read_u64(info->attrs, RDMA_ISOLATE_A_DEV_SAFE_UTIL,
		 &chg.cfg.safe_util, RISO_SET_SAFE_UTIL, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_CHUNK_BYTES,
		 &chg.cfg.chunk_bytes, RISO_SET_CHUNK_BYTES, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_TOKEN_BYTES,
		 &chg.cfg.token_bytes, RISO_SET_TOKEN_BYTES, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_TOKEN_OPS,
		 &chg.cfg.token_ops, RISO_SET_TOKEN_OPS, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_INFLIGHT_BYTES,
		 &chg.cfg.inflight_bytes, RISO_SET_INFLIGHT_BYTES, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_HISTOGRAM, &histogram,
		 RISO_SET_HISTOGRAM, &chg);
	chg.cfg.histogram = histogram;
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_TARGET99_NS,
		 &chg.cfg.target99_ns, RISO_SET_TARGET99_NS, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_CTRL, &ctrl, RISO_SET_CTRL, &chg);
	chg.cfg.ctrl = ctrl;
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_SHARE, &share, RISO_SET_SHARE, &chg);
	chg.cfg.share = share;
	if (!chg.mask) {
		GENL_SET_ERR_MSG(info, "nothing to change was given");
		return -EINVAL;
	}

	rd = riso_nl_find_dev(info->attrs[RDMA_ISOLATE_A_DEV_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);
	err = riso_dev_set(rd, &chg, info->extack);
	riso_dev_put(rd);
	return err;
}

static void read_stats(struct riso_dev *rd, union dev_data *data)
{
	riso_dev_stats(rd, data->stats);
}

static int fill_stats(struct sk_buff *skb, const char *dev, const void *what)
{
	const u64 *vals = what;
	unsigned int i;

	if (nla_put_string(skb, RDMA_ISOLATE_A_STAT_DEV, dev))
		return -EMSGSIZE;

	for (i = 0; i < RISO_STAT_MAX; i++)
		if (riso_nl_put_counter(skb, RDMA_ISOLATE_A_STAT_COUNTER,
					riso_stat_names[i], vals[i]))
			return -EMSGSIZE;
	return 0;
}

static const struct dev_kind stats = {
	.cmd = RDMA_ISOLATE_CMD_STAT_GET,
	.read = read_stats,
	.fill = fill_stats,
};

int rdma_isolate_nl_stat_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	return reply_of_dev(info, info->attrs[RDMA_ISOLATE_A_STAT_DEV], &stats);
}

int rdma_isolate_nl_stat_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	return dump_devs(skb, cb, &stats);
}

static void read_budget(struct riso_dev *rd, union dev_data *data)
{
	riso_settings_fill_budget(rd, &data->budget);
}

static const struct dev_kind budgets = {
	.cmd = RDMA_ISOLATE_CMD_BUDGET_GET,
	.read = read_budget,
	.fill = riso_nl_fill_budget,
};

int rdma_isolate_nl_budget_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	return reply_of_dev(info, info->attrs[RDMA_ISOLATE_A_BUDGET_DEV], &budgets);
}

int rdma_isolate_nl_budget_get_dumpit(struct sk_buff *skb,
				      struct netlink_callback *cb)
{
	return dump_devs(skb, cb, &budgets);
}

int rdma_isolate_nl_budget_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *lease = info->attrs[RDMA_ISOLATE_A_BUDGET_LEASE_NS];
	struct riso_change chg = {};
	struct riso_dev *rd;
	u32 state = 0;
	int err;

	err = riso_nl_check_admin(skb, info);
	if (err)
		return err;

	if (!lease) {
		GENL_SET_ERR_MSG(info,
				 "the lease is missing; dev-set is for values that stay");
		return -EINVAL;
	}
	chg.lease_ns = nla_get_u64(lease);
	read_u64(info->attrs, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL,
		 &chg.cfg.safe_util, RISO_SET_SAFE_UTIL, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES,
		 &chg.cfg.chunk_bytes, RISO_SET_CHUNK_BYTES, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_BUDGET_INFLIGHT_BYTES,
		 &chg.cfg.inflight_bytes, RISO_SET_INFLIGHT_BYTES, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_BUDGET_AGENT_PID, &chg.steer.pid, 0,
		 &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_BUDGET_CTRL_STATE, &state, 0, &chg);
	/* Whoever it is, in whatever PID namespace: flows carry the same number. */
	if (chg.steer.pid)
		chg.steer.pid = task_tgid_nr(current);
	chg.steer.state = state;
	read_u32(info->attrs, RDMA_ISOLATE_A_BUDGET_TARGET99_NS,
		 &chg.steer.target99_ns, 0, &chg);
	read_u64(info->attrs, RDMA_ISOLATE_A_BUDGET_CURRENT99_NS,
		 &chg.steer.current99_ns, 0, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS,
		 &chg.steer.peer_latency, 0, &chg);
	if (!chg.steer.pid && (chg.steer.state || chg.steer.peer_latency ||
			       chg.steer.target99_ns || chg.steer.current99_ns)) {
		GENL_SET_ERR_MSG(info, "what an agent finds needs its agent-pid");
		return -EINVAL;
	}

	rd = riso_nl_find_dev(info->attrs[RDMA_ISOLATE_A_BUDGET_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);
	err = riso_settings_lend(rd, &chg, info->extack);
	riso_dev_put(rd);
	return err;
}

/**
 * struct hist - times from post to completion
 * @class: of which flows
 * @times: how many, by bucket
 */
struct hist {
	enum riso_class class;
	u64 times[RDMA_ISOLATE_BUCKETS];
};

static int fill_hist(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct hist *hist = what;
	char name[32];
	int i;

	if (nla_put_string(skb, RDMA_ISOLATE_A_HIST_DEV, dev) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_HIST_CLASS, hist->class))
		return -EMSGSIZE;

	for (i = 0; i < RDMA_ISOLATE_BUCKETS; i++) {
		if (i < RDMA_ISOLATE_BUCKETS - 1)
			snprintf(name, sizeof(name), "below_%luus", BIT(i));
		else
			strscpy(name, "more", sizeof(name));
		if (riso_nl_put_counter(skb, RDMA_ISOLATE_A_HIST_COUNTER, name,
					hist->times[i]))
			return -EMSGSIZE;
	}
	return 0;
}

int rdma_isolate_nl_hist_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *attr = info->attrs[RDMA_ISOLATE_A_HIST_CLASS];
	struct riso_dev *rd;
	struct hist hist;
	int err;

	if (!attr) {
		GENL_SET_ERR_MSG(info, "the class is missing");
		return -EINVAL;
	}
	hist.class = nla_get_u32(attr);

	rd = riso_nl_find_dev(info->attrs[RDMA_ISOLATE_A_HIST_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);

	riso_observe_times(rd, hist.class, hist.times);
	err = riso_nl_reply(info, RDMA_ISOLATE_CMD_HIST_GET, fill_hist, rd->ibdev->name, &hist);
	riso_dev_put(rd);
	return err;
}

/* cb->args[1] is the next class of this device */
static int dump_hists(struct sk_buff *skb, struct netlink_callback *cb,
		      struct riso_dev *rd)
{
	struct hist hist;
	int err;

	for (; cb->args[1] < RISO_CLASSES; cb->args[1]++) {
		hist.class = cb->args[1];
		riso_observe_times(rd, hist.class, hist.times);
		err = riso_nl_put_part(skb, cb, RDMA_ISOLATE_CMD_HIST_GET, fill_hist,
				       rd->ibdev->name, &hist);
		if (err)
			return err;
	}
	return 0;
}

int rdma_isolate_nl_hist_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	struct nlattr *attrs[RDMA_ISOLATE_A_HIST_CLASS + 1];
	int err;

	err = genlmsg_parse(cb->nlh, &riso_nl_family, attrs, RDMA_ISOLATE_A_HIST_CLASS,
			    rdma_isolate_hist_get_nl_policy, cb->extack);
	if (err)
		return err;

	return riso_nl_dump_of_devs(skb, cb, attrs[RDMA_ISOLATE_A_HIST_DEV],
				    attrs[RDMA_ISOLATE_A_HIST_CLASS], dump_hists);
}
