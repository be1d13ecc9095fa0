// SPDX-License-Identifier: GPL-2.0
/*
 * Requests about paths: what a device may send to a peer, or read from it. peer.c holds to it.
 *
 * Owns nothing. Handlers run in process context, any number at a time; they take
 * &riso_dev.mutex.
 */

#include <net/genetlink.h>

#include "dev.h"
#include "manage.h"
#include "nl.h"
#include "nl_gen.h"
#include "peer.h"
#include "sched.h"
#include "settings.h"

static_assert((int)RISO_PATH_TX == (int)RISO_TX && (int)RISO_PATH_RX == (int)RISO_RX);

/* Peer and direction, which say what path it is */
static int read_path(struct genl_info *info, struct riso_peer_spec *spec)
{
	struct nlattr *peer = info->attrs[RDMA_ISOLATE_A_PATH_PEER];
	struct nlattr *dir = info->attrs[RDMA_ISOLATE_A_PATH_DIR];

	*spec = (struct riso_peer_spec) {};
	if (!peer) {
		GENL_SET_ERR_MSG(info, "the peer is missing");
		return -EINVAL;
	}
	if (!dir) {
		GENL_SET_ERR_MSG(info, "the direction is missing");
		return -EINVAL;
	}
	spec->dir = nla_get_u32(dir);
	return riso_nl_read_peer(peer, &spec->gid, info->extack);
}

static int read_limit(struct genl_info *info, struct riso_peer_spec *spec)
{
	struct nlattr *lease = info->attrs[RDMA_ISOLATE_A_PATH_LEASE_NS];
	struct nlattr *rate = info->attrs[RDMA_ISOLATE_A_PATH_RATE];
	struct nlattr *cut = info->attrs[RDMA_ISOLATE_A_PATH_CUT];

	if (!rate) {
		GENL_SET_ERR_MSG(info, "the rate is missing; 0 is for no limit");
		return -EINVAL;
	}
	spec->rate = nla_get_u64(rate);
	if (spec->rate && (spec->rate < RDMA_ISOLATE_RATE_MIN ||
			   spec->rate > RDMA_ISOLATE_RATE_MAX)) {
		NL_SET_ERR_MSG_ATTR(info->extack, rate,
				    "a rate is 100000 to 1000000000000 bytes per second, or 0");
		return -EINVAL;
	}
	spec->cut = cut && nla_get_u32(cut) == RISO_SWITCH_ON;
	spec->lease_ns = lease ? nla_get_u64(lease) : 0;
	if (spec->lease_ns && (spec->lease_ns < RDMA_ISOLATE_LEASE_MIN ||
			       spec->lease_ns > RDMA_ISOLATE_LEASE_MAX)) {
		NL_SET_ERR_MSG_ATTR(info->extack, lease, "a lease is 1 ms to 1 hour, or 0");
		return -EINVAL;
	}
	return 0;
}

int rdma_isolate_nl_path_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct riso_peer_spec spec;
	struct riso_dev *rd;
	bool rebound;
	int err;

	err = riso_nl_check_admin(skb, info) ?: read_path(info, &spec) ?: read_limit(info, &spec);
	if (err)
		return err;

	rd = riso_nl_find_dev(info->attrs[RDMA_ISOLATE_A_PATH_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);
	riso_dev_lock(rd);
	err = riso_peer_set(rd, &spec, &rebound, info->extack);
	if (rebound)
		riso_manage_refresh_all(rd);
	riso_dev_unlock(rd);
	if (!err)
		riso_sched_run(rd);
	riso_dev_put(rd);
	return err;
}

static int fill_path(struct sk_buff *skb, const char *dev, const void *what)
{
	const struct riso_peer_spec *spec = what;

	if (nla_put_string(skb, RDMA_ISOLATE_A_PATH_DEV, dev) ||
	    riso_nl_put_peer(skb, RDMA_ISOLATE_A_PATH_PEER, &spec->gid) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_PATH_DIR, spec->dir) ||
	    nla_put_u64_64bit(skb, RDMA_ISOLATE_A_PATH_RATE, spec->rate,
			      RDMA_ISOLATE_A_PATH_PAD) ||
	    nla_put_u32(skb, RDMA_ISOLATE_A_PATH_CUT,
			spec->cut ? RISO_SWITCH_ON : RISO_SWITCH_OFF) ||
	    nla_put_u64_64bit(skb, RDMA_ISOLATE_A_PATH_LEASE_NS, spec->lease_ns,
			      RDMA_ISOLATE_A_PATH_PAD) ||
	    nla_put_u64_64bit(skb, RDMA_ISOLATE_A_PATH_BYTES, spec->bytes,
			      RDMA_ISOLATE_A_PATH_PAD) ||
	    nla_put_u64_64bit(skb, RDMA_ISOLATE_A_PATH_WAITS, spec->waits,
			      RDMA_ISOLATE_A_PATH_PAD))
		return -EMSGSIZE;
	return 0;
}

/* The limit behind number @index */
static bool find_next(struct riso_dev *rd, u32 *index, struct riso_peer_spec *spec)
{
	bool found;

	riso_dev_lock(rd);
	found = riso_peer_next(rd, index, spec);
	riso_dev_unlock(rd);
	return found;
}

int rdma_isolate_nl_path_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct riso_peer_spec wanted, spec;
	struct riso_dev *rd;
	u32 index = 0;
	bool found;
	int err;

	err = riso_nl_check_admin(skb, info) ?: read_path(info, &wanted);
	if (err)
		return err;

	rd = riso_nl_find_dev(info->attrs[RDMA_ISOLATE_A_PATH_DEV], info->extack);
	if (IS_ERR(rd))
		return PTR_ERR(rd);
	do
		found = find_next(rd, &index, &spec);
	while (found && (spec.dir != wanted.dir ||
			 memcmp(&spec.gid, &wanted.gid, sizeof(spec.gid))));
	if (found) {
		err = riso_nl_reply(info, RDMA_ISOLATE_CMD_PATH_GET, fill_path, rd->ibdev->name,
				    &spec);
	} else {
		GENL_SET_ERR_MSG(info, "there is no limit for this peer in this direction");
		err = -ENOENT;
	}
	riso_dev_put(rd);
	return err;
}

/* cb->args[1] is the number of the last limit of this device that was shown */
static int dump_paths(struct sk_buff *skb, struct netlink_callback *cb, struct riso_dev *rd)
{
	struct riso_peer_spec spec;
	u32 index = cb->args[1];
	int err;

	while (find_next(rd, &index, &spec)) {
		err = riso_nl_put_part(skb, cb, RDMA_ISOLATE_CMD_PATH_GET, fill_path,
				       rd->ibdev->name, &spec);
		if (err)
			return err;
		cb->args[1] = index;
		cond_resched();
	}
	return 0;
}

int rdma_isolate_nl_path_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *attrs[RDMA_ISOLATE_A_PATH_DIR + 1];
	int err;

	if (!netlink_capable(cb->skb, CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG(cb->extack, "CAP_NET_ADMIN is needed");
		return -EPERM;
	}
	err = genlmsg_parse(cb->nlh, &riso_nl_family, attrs, RDMA_ISOLATE_A_PATH_DIR,
			    rdma_isolate_path_get_nl_policy, cb->extack);
	if (err)
		return err;

	return riso_nl_dump_of_devs(skb, cb, attrs[RDMA_ISOLATE_A_PATH_DEV],
				    attrs[RDMA_ISOLATE_A_PATH_PEER] ?:
				    attrs[RDMA_ISOLATE_A_PATH_DIR], dump_paths);
}
