// SPDX-License-Identifier: GPL-2.0
/*
 * Requests about rules.
 *
 * Messages are translated here. What may be in a rule, besides what the policies check, is
 * for riso_rule_add() to say. Whoever changes rules lets the flows of all devices be
 * judged anew.
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
#include "rule.h"

static_assert(RDMA_ISOLATE_ULP_NAME_MAX + 1 == RISO_ULP_LEN);
static_assert(RDMA_ISOLATE_COMM_MAX + 1 == TASK_COMM_LEN);
static_assert(RDMA_ISOLATE_WEIGHT_MAX == RISO_WEIGHT_MAX);
static_assert(RDMA_ISOLATE_WEIGHT_DEFAULT == RISO_WEIGHT_DEFAULT);

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

/* Only the shim cuts these, and nothing of class latency. */
static int read_cut_imm(const struct nlattr *attr, struct riso_rule_spec *spec,
			struct netlink_ext_ack *extack)
{
	if (!attr || nla_get_u32(attr) == RISO_SWITCH_OFF)
		return 0;

	if (spec->ulp[0]) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "cut-imm is for programs, and a ulp is none");
		return -EINVAL;
	}
	if (spec->class == RISO_CLASS_LATENCY && !spec->choose) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "flows of class latency are never cut");
		return -EINVAL;
	}
	spec->cut_imm = true;
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
		err = riso_nl_read_peer(attrs[RDMA_ISOLATE_A_RULE_PEER], &spec->peer,
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
	return read_cut_imm(attrs[RDMA_ISOLATE_A_RULE_CUT_IMM], spec, extack);
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

	err = riso_nl_check_admin(skb, info) ?: read_rule(info, &spec);
	if (err)
		return err;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;

	hdr = genlmsg_put_reply(msg, info, &riso_nl_family, 0,
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

	err = riso_nl_check_admin(skb, info);
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
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_RULE_DEV, spec->dev) ||
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_RULE_ULP, spec->ulp) ||
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_RULE_COMM, spec->comm) ||
	    riso_nl_put_text(skb, RDMA_ISOLATE_A_RULE_CGROUP, spec->cgroup))
		return -EMSGSIZE;

	if (spec->has_peer &&
	    riso_nl_put_peer(skb, RDMA_ISOLATE_A_RULE_PEER, &spec->peer))
		return -EMSGSIZE;

	if (spec->has_uid &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_RULE_UID, spec->uid))
		return -EMSGSIZE;

	if (spec->choose &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_RULE_CHOOSE, RISO_SWITCH_ON))
		return -EMSGSIZE;

	if (spec->cut_imm &&
	    nla_put_u32(skb, RDMA_ISOLATE_A_RULE_CUT_IMM, RISO_SWITCH_ON))
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
	return riso_nl_reply(info, RDMA_ISOLATE_CMD_RULE_GET, fill_rule, NULL, &spec);
}

/* cb->args[0] is the last id that was shown */
int rdma_isolate_nl_rule_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	struct riso_rule_spec spec;
	int err;

	err = riso_nl_check_plain_dump(cb);
	if (err)
		return err;

	riso_nl_watch_changes(cb);
	while (cb->args[0] < U32_MAX &&
	       !riso_rule_next(cb->args[0] + 1, &spec)) {
		err = riso_nl_put_part(skb, cb, RDMA_ISOLATE_CMD_RULE_GET, fill_rule,
				       NULL, &spec);
		if (err)
			return skb->len ?: err;
		cb->args[0] = spec.id;
		cond_resched();
	}
	riso_nl_watch_changes(cb);
	return skb->len;
}
