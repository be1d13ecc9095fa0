// SPDX-License-Identifier: GPL-2.0
/*
 * Handlers of the generic netlink family rdma_isolate, which
 * Documentation/netlink/specs/rdma_isolate.yaml describes.
 *
 * Messages are translated here, nothing is decided: policies are generated,
 * ranges that depend on anything else belong to the setters of dev.c and
 * rule.c. Operations run in parallel, so those setters do their own locking.
 *
 * The family is seen in the initial network namespace only.
 */

#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <net/genetlink.h>
#include <net/ipv6.h>
#include <net/netlink.h>

#include "compat.h"
#include "dev.h"
#include "flow.h"
#include "group.h"
#include "netlink.h"
#include "nl_gen.h"
#include "observe.h"
#include "rule.h"
#include "settings.h"
#include "show.h"
#include "stats.h"

static_assert((int)RISO_DEV_IDLE == (int)RISO_STATE_IDLE);
static_assert((int)RISO_DEV_OBSERVE == (int)RISO_STATE_OBSERVE);
static_assert((int)RISO_DEV_ENFORCE == (int)RISO_STATE_ENFORCE);
static_assert((int)RISO_DEV_DRAINING == (int)RISO_STATE_DRAINING);
static_assert((int)RISO_DEV_GONE == (int)RISO_STATE_GONE);
static_assert((int)RISO_ERROR_NONE == (int)IB_WC_SUCCESS);
static_assert((int)RISO_ERROR_RNR_RETRY_EXCEEDED == (int)IB_WC_RNR_RETRY_EXC_ERR);
static_assert((int)RISO_ERROR_GENERAL == (int)IB_WC_GENERAL_ERR);
static_assert(RDMA_ISOLATE_AUTO == RISO_AUTO);
static_assert(RDMA_ISOLATE_DEV_NAME_MAX + 1 == IB_DEVICE_NAME_MAX);
static_assert(RDMA_ISOLATE_ULP_NAME_MAX + 1 == RISO_ULP_LEN);
static_assert(RDMA_ISOLATE_COMM_MAX + 1 == TASK_COMM_LEN);
static_assert(RDMA_ISOLATE_WEIGHT_MAX == RISO_WEIGHT_MAX);

enum {
	/* Requests that an owner may make in the long run, one in... */
	RISO_REQUEST_NS = 10 * NSEC_PER_MSEC,
	/* ...and at once: a tool makes a few for each device. */
	RISO_REQUEST_BURST = 200,
	/* A dump of more groups counts for one request for each such part of them. */
	RISO_REQUEST_GROUPS = 128,
};

static struct genl_family family;
static struct riso_rate requests;

/* Protects event_up: an id of a group that was given back may be another's. */
static DEFINE_MUTEX(event_lock);
static bool event_up;

/*
 * Setters check this by hand, because GENL_ADMIN_PERM would refuse without
 * saying why.
 */
static int check_admin(struct sk_buff *skb, struct genl_info *info)
{
	if (netlink_capable(skb, CAP_NET_ADMIN))
		return 0;

	GENL_SET_ERR_MSG(info, "CAP_NET_ADMIN is needed");
	return -EPERM;
}

/*
 * Memory for an answer is had, and cleared, for each part of a dump, and what counts is
 * copied under the lock of the data path: others wait for that.
 */
static int check_rate(struct sk_buff *skb, struct netlink_ext_ack *extack)
{
	if (netlink_capable(skb, CAP_NET_ADMIN) ||
	    riso_rate_take(&requests, riso_place_own_key(), RISO_REQUEST_NS,
			   RISO_REQUEST_BURST))
		return 0;
	NL_SET_ERR_MSG(extack,
		       "a user without CAP_NET_ADMIN may make 100 requests a second");
	return -EBUSY;
}

int rdma_isolate_nl_dump_start(struct netlink_callback *cb)
{
	return check_rate(cb->skb, cb->extack);
}

static int begin_request(const RISO_GENL_OP *op, struct sk_buff *skb,
			 struct genl_info *info)
{
	return check_rate(skb, info->extack);
}

/* Who asks: flows and groups are shown as nldev would show their processes. */
static struct riso_viewer viewer(void)
{
	return (struct riso_viewer) {
		.ns = task_active_pid_ns(current),
		.user_ns = current_user_ns(),
	};
}

/* Grows when there is one more or less of what a dump lists; never 0. */
static atomic_t registry_seq = ATOMIC_INIT(1);

void riso_nl_changed(void)
{
	if (!atomic_inc_return(&registry_seq))
		atomic_inc(&registry_seq);
}

/*
 * To be called at the begin and the end of each part of a dump: the message that
 * ends it says so if anything came or went since its begin.
 */
static void watch_changes(struct netlink_callback *cb)
{
	cb->seq = atomic_read(&registry_seq);
	if (!cb->prev_seq)
		cb->prev_seq = cb->seq;
}

/* One policy serves do and dump: a dump without a filter takes none of it. */
static int check_dump_plain(struct netlink_callback *cb)
{
	if (!nlmsg_attrlen(cb->nlh, GENL_HDRLEN))
		return 0;

	NL_SET_ERR_MSG(cb->extack, "this dump takes no attributes");
	return -EINVAL;
}

/* Device named by an attribute, to be put, or an ERR_PTR() */
static struct riso_dev *find_dev(const struct nlattr *name,
				 struct netlink_ext_ack *extack)
{
	struct riso_dev *rd;

	if (!name) {
		NL_SET_ERR_MSG(extack, "the name of the device is missing");
		return ERR_PTR(-EINVAL);
	}

	rd = riso_dev_get_by_name(nla_data(name));
	if (!rd) {
		NL_SET_ERR_MSG_ATTR(extack, name, "no RDMA device of this name");
		return ERR_PTR(-ENODEV);
	}
	return rd;
}

static int put_counter(struct sk_buff *skb, int attr, const char *name, u64 val)
{
	struct nlattr *nest;

	nest = nla_nest_start(skb, attr);
	if (!nest ||
	    nla_put_string(skb, RDMA_ISOLATE_A_COUNTER_NAME, name) ||
	    nla_put_u64_64bit(skb, RDMA_ISOLATE_A_COUNTER_VALUE, val,
			      RDMA_ISOLATE_A_COUNTER_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * struct number - an attribute that carries a member of a structure
 * @attr: the attribute
 * @offset: where the member is
 * @size: bytes of the member: a bool, an enum, u32 or u64
 * @width: bytes of the attribute, 4 or 8
 */
struct number {
	u16 attr;
	u16 offset;
	u8 size;
	u8 width;
};

/* @field: a structure and its member, as offsetof() takes them */
#define NUMBER_U32(attr, field...) \
	{ attr, offsetof(field), sizeof_field(field), sizeof(u32) }
#define NUMBER_U64(attr, field...) \
	{ attr, offsetof(field), sizeof_field(field), sizeof(u64) }

static u64 read_number(const void *member, u8 size)
{
	switch (size) {
	case sizeof(u64):
		return *(const u64 *)member;
	case sizeof(u32):
		return *(const u32 *)member;
	default:
		return *(const bool *)member;
	}
}

/* Puts the @n numbers of @from that @table lists, in this order. */
static int put_numbers(struct sk_buff *skb, const struct number *table, size_t n,
		       const void *from, int pad)
{
	const struct number *t;
	u64 val;
	int err;

	for (t = table; t < table + n; t++) {
		val = read_number(from + t->offset, t->size);
		err = t->width == sizeof(u64) ? nla_put_u64_64bit(skb, t->attr, val, pad) :
						nla_put_u32(skb, t->attr, val);
		if (err)
			return err;
	}
	return 0;
}

static int put_text(struct sk_buff *skb, int attr, const char *text)
{
	return *text ? nla_put_string(skb, attr, text) : 0;
}

static int put_peer(struct sk_buff *skb, int attr, const union ib_gid *gid)
{
	char peer[INET6_ADDRSTRLEN];

	snprintf(peer, sizeof(peer), "%pI6c", gid->raw);
	return nla_put_string(skb, attr, peer);
}

/*
 * Puts the attributes of @what, which belongs to the device named @dev, into a message.
 * What it has put when there is no room for all is taken out again by its caller.
 */
typedef int (*fill_fn)(struct sk_buff *skb, const char *dev, const void *what);

static int put_msg(struct sk_buff *skb, u32 portid, u32 seq, int flags, u8 cmd,
		   fill_fn fill, const char *dev, const void *what)
{
	void *hdr;

	hdr = genlmsg_put(skb, portid, seq, &family, flags, cmd);
	if (!hdr)
		return -EMSGSIZE;

	if (fill(skb, dev, what)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* One message of a dump */
static int put_part(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
		    fill_fn fill, const char *dev, const void *what)
{
	return put_msg(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
		       NLM_F_MULTI, cmd, fill, dev, what);
}

static int reply(struct genl_info *info, u8 cmd, fill_fn fill,
		 const char *dev, const void *what)
{
	struct sk_buff *msg;
	int err;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;

	err = put_msg(msg, info->snd_portid, info->snd_seq, 0, cmd, fill, dev,
		      what);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	return genlmsg_reply(msg, info);
}

static const struct number dev_numbers[] = {
	NUMBER_U32(RDMA_ISOLATE_A_DEV_INDEX, struct riso_dev_info, index),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_STATE, struct riso_dev_info, state),
	NUMBER_U64(RDMA_ISOLATE_A_DEV_MAX_RATE, struct riso_dev_info, cfg.max_rate),
	NUMBER_U64(RDMA_ISOLATE_A_DEV_MAX_OPS, struct riso_dev_info, cfg.max_ops),
	NUMBER_U64(RDMA_ISOLATE_A_DEV_SAFE_UTIL, struct riso_dev_info, cfg.safe_util),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_CHUNK_BYTES, struct riso_dev_info, cfg.chunk_bytes),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_TOKEN_BYTES, struct riso_dev_info, cfg.token_bytes),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_TOKEN_OPS, struct riso_dev_info, cfg.token_ops),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_INFLIGHT_BYTES, struct riso_dev_info, cfg.inflight_bytes),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_CALIBRATED, struct riso_dev_info, cfg.calibrated),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_LATENCY_FLOWS, struct riso_dev_info, latency_flows),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_MANAGED_FLOWS, struct riso_dev_info, managed_flows),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_HELD_WRS, struct riso_dev_info, held),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_PORTS, struct riso_dev_info, ports),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_HISTOGRAM, struct riso_dev_info, cfg.histogram),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_PROGRAMS, struct riso_dev_info, programs),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_TARGET99_NS, struct riso_dev_info, cfg.target99_ns),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_CTRL, struct riso_dev_info, cfg.ctrl),
	NUMBER_U32(RDMA_ISOLATE_A_DEV_SHARE, struct riso_dev_info, cfg.share),
};

static int fill_dev(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct riso_dev_info *info = what;

	if (nla_put_string(skb, RDMA_ISOLATE_A_DEV_NAME, info->name) ||
	    put_numbers(skb, dev_numbers, ARRAY_SIZE(dev_numbers), info,
			RDMA_ISOLATE_A_DEV_PAD))
		return -EMSGSIZE;
	return 0;
}

/* What there is one of for each device */
union dev_data {
	struct riso_dev_info info;
	struct riso_budget budget;
	u64 stats[RISO_STAT_MAX];
};

/**
 * struct dev_kind - how it is shown
 * @cmd: the command of its messages
 * @read: reads it
 * @fill: puts it into a message
 */
struct dev_kind {
	u8 cmd;
	void (*read)(struct riso_dev *rd, union dev_data *data);
	fill_fn fill;
};

static int reply_of_dev(struct genl_info *info, const struct nlattr *name,
			const struct dev_kind *kind)
{
	union dev_data data;
	struct riso_dev *rd;
	int err;

	rd = find_dev(name, info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);

	kind->read(rd, &data);
	err = reply(info, kind->cmd, kind->fill, rd->ibdev->name, &data);
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

	err = check_dump_plain(cb);
	if (err)
		return err;

	watch_changes(cb);
	while ((rd = riso_dev_get_next(cb->args[0]))) {
		index = rd->index;
		kind->read(rd, &data);
		err = put_part(skb, cb, kind->cmd, kind->fill, rd->ibdev->name, &data);
		riso_dev_put(rd);
		if (err)
			return skb->len ?: err;
		cb->args[0] = index + 1;
		cond_resched();
	}
	watch_changes(cb);
	return skb->len;
}

static void read_dev(struct riso_dev *rd, union dev_data *data)
{
	riso_dev_info(rd, &data->info);
}

static const struct dev_kind devs = {
	.cmd = RDMA_ISOLATE_CMD_DEV_GET,
	.read = read_dev,
	.fill = fill_dev,
};

int rdma_isolate_nl_dev_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	return reply_of_dev(info, info->attrs[RDMA_ISOLATE_A_DEV_NAME], &devs);
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
	static const enum riso_state state_of_mode[] = {
		[RISO_MODE_DISABLE] = RISO_STATE_IDLE,
		[RISO_MODE_OBSERVE] = RISO_STATE_OBSERVE,
		[RISO_MODE_ENABLE] = RISO_STATE_ENFORCE,
	};
	struct riso_change chg = {};
	struct riso_dev *rd;
	u32 histogram = 0;
	u32 share = 0;
	u32 mode = 0;
	u32 ctrl = 0;
	int err;

	err = check_admin(skb, info);
	if (err)
		return err;

	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_MODE, &mode,
		 RISO_SET_MODE, &chg);
	chg.mode = state_of_mode[mode];
	read_u64(info->attrs, RDMA_ISOLATE_A_DEV_MAX_RATE, &chg.cfg.max_rate,
		 RISO_SET_MAX_RATE, &chg);
	read_u64(info->attrs, RDMA_ISOLATE_A_DEV_MAX_OPS, &chg.cfg.max_ops,
		 RISO_SET_MAX_OPS, &chg);
	read_u64(info->attrs, RDMA_ISOLATE_A_DEV_SAFE_UTIL,
		 &chg.cfg.safe_util, RISO_SET_SAFE_UTIL, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_CHUNK_BYTES,
		 &chg.cfg.chunk_bytes, RISO_SET_CHUNK, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_TOKEN_BYTES,
		 &chg.cfg.token_bytes, RISO_SET_TOKEN_BYTES, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_TOKEN_OPS,
		 &chg.cfg.token_ops, RISO_SET_TOKEN_OPS, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_INFLIGHT_BYTES,
		 &chg.cfg.inflight_bytes, RISO_SET_INFLIGHT, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_HISTOGRAM, &histogram,
		 RISO_SET_HISTOGRAM, &chg);
	chg.cfg.histogram = histogram;
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_TARGET99_NS,
		 &chg.cfg.target99_ns, RISO_SET_TARGET99, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_CTRL, &ctrl, RISO_SET_CTRL, &chg);
	chg.cfg.ctrl = ctrl;
	read_u32(info->attrs, RDMA_ISOLATE_A_DEV_SHARE, &share, RISO_SET_SHARE, &chg);
	chg.cfg.share = share;
	if (!chg.mask) {
		GENL_SET_ERR_MSG(info, "nothing to change was given");
		return -EINVAL;
	}

	rd = find_dev(info->attrs[RDMA_ISOLATE_A_DEV_NAME], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);
	err = riso_dev_set(rd, &chg, info->extack);
	riso_dev_put(rd);
	return err;
}

static const struct number flow_numbers[] = {
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_REASON, struct riso_flow_info, reason),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_QP_TYPE, struct riso_flow_info, qp_type),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_QP_STATE, struct riso_flow_info, qp_state),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_RULE_ID, struct riso_flow_info, rule_id),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_WEIGHT, struct riso_flow_info, weight),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_TX_BYTES, struct riso_flow_info, tx_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_RX_BYTES, struct riso_flow_info, rx_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_WRS, struct riso_flow_info, wrs),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_CHUNKS, struct riso_flow_info, chunks),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_SPLITS, struct riso_flow_info, splits),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_QUEUED, struct riso_flow_info, queued),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_WAIT_NS, struct riso_flow_info, wait_ns),
	NUMBER_U64(RDMA_ISOLATE_A_FLOW_HELD, struct riso_flow_info, held),
	NUMBER_U32(RDMA_ISOLATE_A_FLOW_GROUP, struct riso_flow_info, group),
};

static int fill_flow(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct riso_flow_info *info = what;
	const struct riso_identity *who = &info->who;
	int i;

	if (nla_put_string(skb, RDMA_ISOLATE_A_FLOW_DEV, dev) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_QPN, info->qpn) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_CLASS, info->class) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_MANAGED,
			info->reason == RISO_REASON_NONE) ||
	    put_numbers(skb, flow_numbers, ARRAY_SIZE(flow_numbers), info,
			RDMA_ISOLATE_A_FLOW_PAD) ||
	    put_text(skb, RDMA_ISOLATE_A_FLOW_ULP, who->ulp) ||
	    put_text(skb, RDMA_ISOLATE_A_FLOW_COMM, who->comm) ||
	    put_text(skb, RDMA_ISOLATE_A_FLOW_CGROUP, who->cgroup))
		return -EMSGSIZE;

	if (info->rnr_known &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_RNR_TIMER, info->rnr_timer))
		return -EMSGSIZE;

	if (info->error != IB_WC_SUCCESS &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_ERROR, info->error))
		return -EMSGSIZE;

	if (info->over_target &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_OVER_TARGET, 1))
		return -EMSGSIZE;

	if (who->peer_known &&
	    put_peer(skb, RDMA_ISOLATE_A_FLOW_PEER, &who->peer))
		return -EMSGSIZE;

	if (who->pid &&
	    (nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_PID, who->pid) ||
	     nla_put_u32(skb, RDMA_ISOLATE_A_FLOW_UID, who->uid)))
		return -EMSGSIZE;

	for (i = 0; i < RISO_SIZES; i++)
		if (put_counter(skb, RDMA_ISOLATE_A_FLOW_SIZE,
				riso_stat_names[RISO_STAT_SIZE + i],
				info->sizes[i]))
			return -EMSGSIZE;

	return 0;
}

int rdma_isolate_nl_flow_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *qpn = info->attrs[RDMA_ISOLATE_A_FLOW_QPN];
	struct riso_viewer who = viewer();
	struct riso_flow_info flow;
	struct riso_dev *rd;
	int err;

	if (!qpn) {
		GENL_SET_ERR_MSG(info, "the queue pair number is missing");
		return -EINVAL;
	}

	rd = find_dev(info->attrs[RDMA_ISOLATE_A_FLOW_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);

	if (riso_show_next_flow(rd, nla_get_u32(qpn), &who, &flow) ||
	    flow.qpn != nla_get_u32(qpn)) {
		NL_SET_ERR_MSG_ATTR(info->extack, qpn,
				    "the device has no queue pair of this number made since the module was loaded");
		err = -ENOENT;
	} else {
		err = reply(info, RDMA_ISOLATE_CMD_FLOW_GET, fill_flow, rd->ibdev->name,
			    &flow);
	}
	riso_dev_put(rd);
	return err;
}

/* cb->args[1] is the next queue pair number of this device */
static int dump_flows(struct sk_buff *skb, struct netlink_callback *cb,
		      struct riso_dev *rd)
{
	struct riso_viewer who = viewer();
	struct riso_flow_info flow;
	int err;

	while (!riso_show_next_flow(rd, cb->args[1], &who, &flow)) {
		err = put_part(skb, cb, RDMA_ISOLATE_CMD_FLOW_GET, fill_flow,
			       rd->ibdev->name, &flow);
		if (err)
			return err;
		cb->args[1] = flow.qpn + 1;
	}
	return 0;
}

/*
 * What each device has, or the one that is named. cb->args[0] is the index of the
 * device that args[1] is about, which says where @dump_one goes on.
 */
static int dump_of_devs(struct sk_buff *skb, struct netlink_callback *cb,
			const struct nlattr *name,
			const struct nlattr *surplus,
			int (*dump_one)(struct sk_buff *skb,
					struct netlink_callback *cb,
					struct riso_dev *rd))
{
	struct riso_dev *rd;
	u32 index;
	int err;

	if (surplus) {
		NL_SET_ERR_MSG_ATTR(cb->extack, surplus,
				    "a dump takes the device only");
		return -EINVAL;
	}

	watch_changes(cb);
	if (name) {
		rd = find_dev(name, cb->extack);
		if (IS_ERR(rd))
			return PTR_ERR(rd);
		err = dump_one(skb, cb, rd);
		riso_dev_put(rd);
		watch_changes(cb);
		return skb->len ?: err;
	}

	while ((rd = riso_dev_get_next(cb->args[0]))) {
		index = rd->index;
		if (index != cb->args[0]) {
			cb->args[0] = index;
			cb->args[1] = 0;
		}
		err = dump_one(skb, cb, rd);
		riso_dev_put(rd);
		if (err)
			return skb->len ?: err;
		cb->args[0] = index + 1;
		cb->args[1] = 0;
	}
	watch_changes(cb);
	return skb->len;
}

int rdma_isolate_nl_flow_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	struct nlattr *attrs[RDMA_ISOLATE_A_FLOW_QPN + 1];
	int err;

	err = genlmsg_parse(cb->nlh, &family, attrs, RDMA_ISOLATE_A_FLOW_QPN,
			    rdma_isolate_flow_get_nl_policy, cb->extack);
	if (err)
		return err;

	return dump_of_devs(skb, cb, attrs[RDMA_ISOLATE_A_FLOW_DEV],
			    attrs[RDMA_ISOLATE_A_FLOW_QPN], dump_flows);
}

static int put_behind(struct sk_buff *skb, const struct riso_behind *behind)
{
	struct nlattr *nest;

	nest = nla_nest_start(skb, RDMA_ISOLATE_A_GROUP_BEHIND);
	if (!nest)
		return -EMSGSIZE;

	if (nla_put_u32(skb, RDMA_ISOLATE_A_BEHIND_GROUP, behind->group) ||
	    nla_put_u64_64bit(skb, RDMA_ISOLATE_A_BEHIND_NS, behind->ns,
			      RDMA_ISOLATE_A_BEHIND_PAD))
		return -EMSGSIZE;

	nla_nest_end(skb, nest);
	return 0;
}

static const struct number pressure_numbers[] = {
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_HELD, struct riso_pressure_info, held),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_STALL_NS, struct riso_pressure_info, stall_ns),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_CLOCK_NS, struct riso_pressure_info, clock_ns),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_WINDOW_NS, struct riso_pressure_info, window_ns),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_OWN_NS, struct riso_pressure_info, own_ns),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_AVG10, struct riso_pressure_info, avg[0]),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_AVG60, struct riso_pressure_info, avg[1]),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_AVG300, struct riso_pressure_info, avg[2]),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_BEHIND_OTHERS_NS, struct riso_pressure_info, others_ns),
};

static int put_pressure(struct sk_buff *skb,
			const struct riso_pressure_info *info)
{
	const struct riso_behind *b;

	if (put_numbers(skb, pressure_numbers, ARRAY_SIZE(pressure_numbers), info,
			RDMA_ISOLATE_A_GROUP_PAD))
		return -EMSGSIZE;

	for (b = info->behind; b < info->behind + RISO_BEHIND && b->group; b++)
		if (put_behind(skb, b))
			return -EMSGSIZE;
	return 0;
}

static const struct number group_numbers[] = {
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_ID, struct riso_group_info, id),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_WEIGHT, struct riso_group_info, weight),
	NUMBER_U32(RDMA_ISOLATE_A_GROUP_FLOWS, struct riso_group_info, flows),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_TX_BYTES, struct riso_group_info, tx_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_RX_BYTES, struct riso_group_info, rx_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_WRS, struct riso_group_info, wrs),
	NUMBER_U64(RDMA_ISOLATE_A_GROUP_USED_NS, struct riso_group_info, used_ns),
};

static int fill_group(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct riso_group_info *info = what;
	const struct riso_identity *who = &info->who;

	if (nla_put_string(skb, RDMA_ISOLATE_A_GROUP_DEV, dev) ||
	    put_numbers(skb, group_numbers, ARRAY_SIZE(group_numbers), info,
			RDMA_ISOLATE_A_GROUP_PAD) ||
	    put_pressure(skb, &info->pressure) ||
	    put_text(skb, RDMA_ISOLATE_A_GROUP_ULP, who->ulp) ||
	    put_text(skb, RDMA_ISOLATE_A_GROUP_COMM, who->comm))
		return -EMSGSIZE;

	if (who->peer_known &&
	    put_peer(skb, RDMA_ISOLATE_A_GROUP_PEER, &who->peer))
		return -EMSGSIZE;

	if (who->pid &&
	    (nla_put_u32(skb, RDMA_ISOLATE_A_GROUP_PID, who->pid) ||
	     nla_put_u32(skb, RDMA_ISOLATE_A_GROUP_UID, who->uid) ||
	     nla_put_u32(skb, RDMA_ISOLATE_A_GROUP_SHIM, info->shim)))
		return -EMSGSIZE;

	if (info->fault &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_GROUP_FAULT, info->fault))
		return -EMSGSIZE;
	return 0;
}

int rdma_isolate_nl_group_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *id = info->attrs[RDMA_ISOLATE_A_GROUP_ID];
	struct riso_viewer who = viewer();
	struct riso_group_info group;
	struct riso_dev *rd;
	int err;

	if (!id) {
		GENL_SET_ERR_MSG(info, "the id of the group is missing");
		return -EINVAL;
	}

	rd = find_dev(info->attrs[RDMA_ISOLATE_A_GROUP_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);

	if (riso_show_next_group(rd, nla_get_u32(id), &who, &group) ||
	    group.id != nla_get_u32(id)) {
		NL_SET_ERR_MSG_ATTR(info->extack, id,
				    "no group has this id on the device");
		err = -ENOENT;
	} else {
		err = reply(info, RDMA_ISOLATE_CMD_GROUP_GET, fill_group, rd->ibdev->name,
			    &group);
	}
	riso_dev_put(rd);
	return err;
}

/*
 * cb->args[1] is the next id of this device, args[2] counts groups: for each the lock of the
 * data path is taken. Who may ask no more is not made to wait, as others may wait for what
 * the caller has: the dump ends with an error.
 */
static int dump_groups(struct sk_buff *skb, struct netlink_callback *cb,
		       struct riso_dev *rd)
{
	struct riso_viewer who = viewer();
	struct riso_group_info group;
	int err;

	/* There is none behind the largest id. */
	while (cb->args[1] <= U32_MAX &&
	       !riso_show_next_group(rd, cb->args[1], &who, &group)) {
		if (cb->args[2] == RISO_REQUEST_GROUPS) {
			err = check_rate(cb->skb, cb->extack);
			if (err)
				return err;
			cb->args[2] = 0;
		}
		err = put_part(skb, cb, RDMA_ISOLATE_CMD_GROUP_GET, fill_group,
			       rd->ibdev->name, &group);
		if (err)
			return err;
		cb->args[1] = (unsigned long)group.id + 1;
		cb->args[2]++;
	}
	return 0;
}

int rdma_isolate_nl_group_get_dumpit(struct sk_buff *skb,
				     struct netlink_callback *cb)
{
	struct nlattr *attrs[RDMA_ISOLATE_A_GROUP_ID + 1];
	int err;

	err = genlmsg_parse(cb->nlh, &family, attrs, RDMA_ISOLATE_A_GROUP_ID,
			    rdma_isolate_group_get_nl_policy, cb->extack);
	if (err)
		return err;

	return dump_of_devs(skb, cb, attrs[RDMA_ISOLATE_A_GROUP_DEV],
			    attrs[RDMA_ISOLATE_A_GROUP_ID], dump_groups);
}

/* Text of a rule, which has to be there when it is given: "" matches nothing */
static int read_text(const struct nlattr *attr, char *buf, size_t size,
		     struct netlink_ext_ack *extack)
{
	if (!attr)
		return 0;

	if (nla_strscpy(buf, attr, size) <= 0) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "this is empty");
		return -EINVAL;
	}
	return 0;
}

static int read_peer(const struct nlattr *attr, union ib_gid *gid,
		     struct netlink_ext_ack *extack)
{
	const char *text = nla_data(attr);
	const char *end;
	__be32 addr;

	if (in4_pton(text, -1, (u8 *)&addr, -1, &end) && !*end) {
		ipv6_addr_set_v4mapped(addr, (struct in6_addr *)gid->raw);
		return 0;
	}
	if (in6_pton(text, -1, gid->raw, -1, &end) && !*end)
		return 0;

	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "this is no IPv4 address, IPv6 address or GID");
	return -EINVAL;
}

/* As /proc/PID/cgroup has them: a path that looks otherwise matches nothing */
static int read_cgroup(const struct nlattr *attr, char *buf, size_t size,
		       struct netlink_ext_ack *extack)
{
	size_t len;
	int err;

	err = read_text(attr, buf, size, extack);
	if (err || !attr)
		return err;

	len = strlen(buf);
	if (buf[0] != '/' || (len > 1 && buf[len - 1] == '/')) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "a cgroup is a path with / first and not last");
		return -EINVAL;
	}
	return 0;
}

static int read_rule(struct genl_info *info, struct riso_rule_spec *spec)
{
	struct netlink_ext_ack *extack = info->extack;
	struct nlattr **attrs = info->attrs;
	int err;

	*spec = (struct riso_rule_spec) { .weight = RISO_WEIGHT_DEFAULT };

	if (!attrs[RDMA_ISOLATE_A_RULE_DEV] &&
	    !attrs[RDMA_ISOLATE_A_RULE_ULP] &&
	    !attrs[RDMA_ISOLATE_A_RULE_PEER] &&
	    !attrs[RDMA_ISOLATE_A_RULE_COMM] &&
	    !attrs[RDMA_ISOLATE_A_RULE_UID] &&
	    !attrs[RDMA_ISOLATE_A_RULE_CGROUP]) {
		NL_SET_ERR_MSG(extack,
			       "a rule needs one of dev, ulp, peer, comm, uid and cgroup");
		return -EINVAL;
	}
	if (!attrs[RDMA_ISOLATE_A_RULE_CLASS]) {
		NL_SET_ERR_MSG(extack, "the class is missing");
		return -EINVAL;
	}
	spec->class = nla_get_u32(attrs[RDMA_ISOLATE_A_RULE_CLASS]);

	err = read_text(attrs[RDMA_ISOLATE_A_RULE_DEV], spec->dev,
			sizeof(spec->dev), extack) ?:
	      read_text(attrs[RDMA_ISOLATE_A_RULE_ULP], spec->ulp,
			sizeof(spec->ulp), extack) ?:
	      read_text(attrs[RDMA_ISOLATE_A_RULE_COMM], spec->comm,
			sizeof(spec->comm), extack) ?:
	      read_cgroup(attrs[RDMA_ISOLATE_A_RULE_CGROUP], spec->cgroup,
			  sizeof(spec->cgroup), extack);
	if (err)
		return err;

	if (attrs[RDMA_ISOLATE_A_RULE_PEER]) {
		err = read_peer(attrs[RDMA_ISOLATE_A_RULE_PEER], &spec->peer,
				extack);
		if (err)
			return err;
		spec->has_peer = true;
	}
	if (attrs[RDMA_ISOLATE_A_RULE_UID]) {
		spec->uid = nla_get_u32(attrs[RDMA_ISOLATE_A_RULE_UID]);
		spec->has_uid = true;
	}
	if (attrs[RDMA_ISOLATE_A_RULE_WEIGHT])
		spec->weight = nla_get_u32(attrs[RDMA_ISOLATE_A_RULE_WEIGHT]);
	if (attrs[RDMA_ISOLATE_A_RULE_CHOOSE])
		spec->choose = nla_get_u32(attrs[RDMA_ISOLATE_A_RULE_CHOOSE]);
	return 0;
}

/* The reply is made first, so that no rule is added that nobody hears of. */
int rdma_isolate_nl_rule_add_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct riso_rule_spec spec;
	struct nlattr *id_attr;
	struct sk_buff *msg;
	void *hdr;
	int err;
	u32 id;

	err = check_admin(skb, info) ?: read_rule(info, &spec);
	if (err)
		return err;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;

	hdr = genlmsg_put_reply(msg, info, &family, 0,
				RDMA_ISOLATE_CMD_RULE_ADD);
	id_attr = nla_reserve(msg, RDMA_ISOLATE_A_RULE_ID, sizeof(id));
	if (!hdr || !id_attr) {
		err = -EMSGSIZE;
		goto free_msg;
	}

	err = riso_rule_add(&spec, &id, info->extack);
	if (err)
		goto free_msg;
	riso_dev_reclassify();

	memcpy(nla_data(id_attr), &id, sizeof(id));
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);

free_msg:
	nlmsg_free(msg);
	return err;
}

int rdma_isolate_nl_rule_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *id = info->attrs[RDMA_ISOLATE_A_RULE_ID];
	int err;

	err = check_admin(skb, info);
	if (err)
		return err;

	if (!id) {
		GENL_SET_ERR_MSG(info, "the id of the rule is missing");
		return -EINVAL;
	}
	err = riso_rule_del(nla_get_u32(id), info->extack);
	if (err)
		return err;

	riso_dev_reclassify();
	return 0;
}

/* Rules belong to no device. */
static int fill_rule(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct riso_rule_spec *spec = what;

	if (nla_put_u32(skb, RDMA_ISOLATE_A_RULE_ID, spec->id) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_RULE_CLASS, spec->class) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_RULE_WEIGHT, spec->weight) ||
	    put_text(skb, RDMA_ISOLATE_A_RULE_DEV, spec->dev) ||
	    put_text(skb, RDMA_ISOLATE_A_RULE_ULP, spec->ulp) ||
	    put_text(skb, RDMA_ISOLATE_A_RULE_COMM, spec->comm) ||
	    put_text(skb, RDMA_ISOLATE_A_RULE_CGROUP, spec->cgroup))
		return -EMSGSIZE;

	if (spec->has_peer &&
	    put_peer(skb, RDMA_ISOLATE_A_RULE_PEER, &spec->peer))
		return -EMSGSIZE;

	if (spec->has_uid &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_RULE_UID, spec->uid))
		return -EMSGSIZE;

	if (spec->choose &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_RULE_CHOOSE, RISO_SWITCH_ON))
		return -EMSGSIZE;
	return 0;
}

int rdma_isolate_nl_rule_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *id = info->attrs[RDMA_ISOLATE_A_RULE_ID];
	struct riso_rule_spec spec;

	if (!id) {
		GENL_SET_ERR_MSG(info, "the id of the rule is missing");
		return -EINVAL;
	}
	if (riso_rule_next(nla_get_u32(id), &spec) ||
	    spec.id != nla_get_u32(id)) {
		NL_SET_ERR_MSG_ATTR(info->extack, id, "no rule has this id");
		return -ENOENT;
	}
	return reply(info, RDMA_ISOLATE_CMD_RULE_GET, fill_rule, NULL, &spec);
}

/* cb->args[0] is the last id that was shown */
int rdma_isolate_nl_rule_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	struct riso_rule_spec spec;
	int err;

	err = check_dump_plain(cb);
	if (err)
		return err;

	watch_changes(cb);
	while (cb->args[0] < U32_MAX &&
	       !riso_rule_next(cb->args[0] + 1, &spec)) {
		err = put_part(skb, cb, RDMA_ISOLATE_CMD_RULE_GET, fill_rule,
			       NULL, &spec);
		if (err)
			return skb->len ?: err;
		cb->args[0] = spec.id;
		cond_resched();
	}
	watch_changes(cb);
	return skb->len;
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
		if (put_counter(skb, RDMA_ISOLATE_A_STAT_COUNTER,
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

static const struct number budget_numbers[] = {
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, struct riso_budget, cfg.safe_util),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES, struct riso_budget, cfg.chunk_bytes),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_INFLIGHT_BYTES, struct riso_budget, cfg.inflight_bytes),
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_LEASE_NS, struct riso_budget, lease_ns),
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_TX_PACE, struct riso_budget, pace[RISO_TX]),
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_RX_PACE, struct riso_budget, pace[RISO_RX]),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_AGENT_PID, struct riso_budget, steer.pid),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_CTRL_STATE, struct riso_budget, steer.state),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_TARGET99_NS, struct riso_budget, steer.target99_ns),
	NUMBER_U64(RDMA_ISOLATE_A_BUDGET_CURRENT99_NS, struct riso_budget, steer.current99_ns),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS,
		   struct riso_budget, groups[RISO_CLASS_LATENCY]),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS,
		   struct riso_budget, groups[RISO_CLASS_BANDWIDTH]),
	NUMBER_U32(RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS,
		   struct riso_budget, groups[RISO_CLASS_THROUGHPUT]),
};

static int fill_budget(struct sk_buff *skb, const char *dev, const void *what)
{
	if (nla_put_string(skb, RDMA_ISOLATE_A_BUDGET_DEV, dev) ||
	    put_numbers(skb, budget_numbers, ARRAY_SIZE(budget_numbers), what,
			RDMA_ISOLATE_A_BUDGET_PAD))
		return -EMSGSIZE;
	return 0;
}

static void read_budget(struct riso_dev *rd, union dev_data *data)
{
	riso_settings_fill_budget(rd, &data->budget);
}

static const struct dev_kind budgets = {
	.cmd = RDMA_ISOLATE_CMD_BUDGET_GET,
	.read = read_budget,
	.fill = fill_budget,
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

	err = check_admin(skb, info);
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
		 &chg.cfg.chunk_bytes, RISO_SET_CHUNK, &chg);
	read_u32(info->attrs, RDMA_ISOLATE_A_BUDGET_INFLIGHT_BYTES,
		 &chg.cfg.inflight_bytes, RISO_SET_INFLIGHT, &chg);
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
	if (!chg.steer.pid && (chg.steer.state || chg.steer.target99_ns ||
			       chg.steer.current99_ns)) {
		GENL_SET_ERR_MSG(info, "what an agent finds needs its agent-pid");
		return -EINVAL;
	}

	rd = find_dev(info->attrs[RDMA_ISOLATE_A_BUDGET_DEV], info->extack);
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
		if (put_counter(skb, RDMA_ISOLATE_A_HIST_COUNTER, name,
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

	rd = find_dev(info->attrs[RDMA_ISOLATE_A_HIST_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);

	riso_observe_times(rd, hist.class, hist.times);
	err = reply(info, RDMA_ISOLATE_CMD_HIST_GET, fill_hist, rd->ibdev->name, &hist);
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
		err = put_part(skb, cb, RDMA_ISOLATE_CMD_HIST_GET, fill_hist,
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

	err = genlmsg_parse(cb->nlh, &family, attrs, RDMA_ISOLATE_A_HIST_CLASS,
			    rdma_isolate_hist_get_nl_policy, cb->extack);
	if (err)
		return err;

	return dump_of_devs(skb, cb, attrs[RDMA_ISOLATE_A_HIST_DEV],
			    attrs[RDMA_ISOLATE_A_HIST_CLASS], dump_hists);
}

/* Storage may wait for event_lock, so that nobody who has it may wait for storage. */
static void tell_listeners(u8 cmd, fill_fn fill, const char *dev, const void *what)
{
	struct sk_buff *msg;
	unsigned int noio;

	mutex_lock(&event_lock);
	noio = memalloc_noio_save();
	if (!event_up ||
	    !genl_has_listeners(&family, &init_net, RDMA_ISOLATE_NLGRP_EVENTS))
		goto unlock;
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		goto unlock;
	if (put_msg(msg, 0, 0, 0, cmd, fill, dev, what))
		nlmsg_free(msg);
	else
		genlmsg_multicast(&family, msg, 0, RDMA_ISOLATE_NLGRP_EVENTS,
				  GFP_KERNEL);
unlock:
	memalloc_noio_restore(noio);
	mutex_unlock(&event_lock);
}

void riso_nl_dev_event(const struct riso_dev_info *info)
{
	tell_listeners(RDMA_ISOLATE_CMD_DEV_NTF, fill_dev, info->name, info);
}

void riso_nl_budget_event(const char *dev, const struct riso_budget *budget)
{
	tell_listeners(RDMA_ISOLATE_CMD_BUDGET_NTF, fill_budget, dev, budget);
}

void riso_nl_ctrl_event(const char *dev, const struct riso_budget *budget)
{
	tell_listeners(RDMA_ISOLATE_CMD_CTRL_NTF, fill_budget, dev, budget);
}

void riso_nl_flow_event(const char *dev, const struct riso_flow_info *info,
			enum riso_flow_event event)
{
	static const u8 cmds[] = {
		[RISO_FLOW_NEWS] = RDMA_ISOLATE_CMD_FLOW_NTF,
		[RISO_FLOW_FAILED] = RDMA_ISOLATE_CMD_FLOW_ERROR_NTF,
		[RISO_FLOW_GONE] = RDMA_ISOLATE_CMD_FLOW_DEL_NTF,
	};

	tell_listeners(cmds[event], fill_flow, dev, info);
}

void riso_nl_fault_event(const char *dev, const struct riso_group_info *info)
{
	tell_listeners(RDMA_ISOLATE_CMD_GROUP_FAULT_NTF, fill_group, dev, info);
}

/* Events tell of everybody, so that only an administrator may hear them. */
static const struct genl_multicast_group mcgrps[] = {
	[RDMA_ISOLATE_NLGRP_EVENTS] = {
		.name = RDMA_ISOLATE_MCGRP_EVENTS,
		.flags = GENL_MCAST_CAP_NET_ADMIN,
	},
};

static struct genl_family family __ro_after_init = {
	.name = RDMA_ISOLATE_FAMILY_NAME,
	.version = RDMA_ISOLATE_FAMILY_VERSION,
	.module = THIS_MODULE,
	.parallel_ops = true,
	.pre_doit = begin_request,
	.ops = rdma_isolate_nl_ops,
	.n_ops = ARRAY_SIZE(rdma_isolate_nl_ops),
	.mcgrps = mcgrps,
	.n_mcgrps = ARRAY_SIZE(mcgrps),
};

/**
 * riso_nl_init - register the family
 *
 * Return: 0 or a negative errno.
 */
int __init riso_nl_init(void)
{
	int err;

	riso_rate_init(&requests);
	err = genl_register_family(&family);
	if (err)
		return err;

	mutex_lock(&event_lock);
	event_up = true;
	mutex_unlock(&event_lock);
	return 0;
}

/**
 * riso_nl_exit - unregister the family
 *
 * Waits for operations that run. They may wait for event_lock, which is
 * therefore not held.
 */
void riso_nl_exit(void)
{
	mutex_lock(&event_lock);
	event_up = false;
	mutex_unlock(&event_lock);

	genl_unregister_family(&family);
}
