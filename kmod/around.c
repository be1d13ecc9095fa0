// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs that send what nobody has told the module of.
 *
 * The module asks no provider for what a queue pair sends: a program could hold the answer back,
 * and with it all that waits for &riso_dev.mutex. An agent asks instead, and says here which queue
 * pairs it has seen to send while their process told of nothing.
 *
 * Owns &riso_flow.around and &riso_flow.around_told, under &riso_dev.mutex. It may sleep. Nothing
 * clears a mark when the process posts: riso_flow_is_around() sees that it has.
 */

#include <linux/netlink.h>

#include "around.h"
#include "notify.h"
#include "reason.h"

/* May a flow be marked? Mutex held. */
static int check_flow(const struct riso_flow *f, u32 group, struct netlink_ext_ack *extack)
{
	if (!f || !f->shown || (f->group ? f->group->id : 0) != group) {
		NL_SET_ERR_MSG(extack, "the device has no queue pair of this number in this group");
		return -ENOENT;
	}
	if (!f->tgid || f->qp_type != IB_QPT_RC) {
		NL_SET_ERR_MSG(extack, "this is no reliable connection of a program");
		return -EOPNOTSUPP;
	}
	if (riso_reason_is_reference(f)) {
		NL_SET_ERR_MSG(extack, "the agent measures with this queue pair");
		return -EOPNOTSUPP;
	}
	if (f->class == RISO_CLASS_LATENCY) {
		NL_SET_ERR_MSG(extack, "flows of class latency may post as they like");
		return -EOPNOTSUPP;
	}
	return 0;
}

/**
 * riso_around_mark - a queue pair was seen to send, and its process had told of nothing
 * @rd: the device
 * @qpn: number of the queue pair
 * @group: id of the group that it was in when it was seen
 * @extack: says why there is no mark
 *
 * Listeners are told. The mark holds until the process tells of something, or begins or ends to
 * post for the queue pair under grants.
 *
 * Context: may sleep.
 * Return: 0; -ENOENT if there is no such queue pair; -EOPNOTSUPP if it cannot be marked.
 */
int riso_around_mark(struct riso_dev *rd, u32 qpn, u32 group, struct netlink_ext_ack *extack)
{
	struct riso_flow *f;
	int err;

	riso_dev_lock(rd);
	f = rd->buried ? NULL : xa_load(&rd->qpns, qpn);
	err = check_flow(f, group, extack);
	if (!err) {
		/* Since the last mark the process has told of something: this one is new. */
		if (!riso_flow_is_around(f))
			f->told_around = false;
		WRITE_ONCE(f->around_told, riso_flow_told(f));
		WRITE_ONCE(f->around, true);
		riso_notify_news(f);
	}
	riso_dev_unlock(rd);
	return err;
}
