/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules that give a flow its class and weight.
 */
#ifndef RISO_RULE_H
#define RISO_RULE_H

#include <linux/sched.h>
#include <linux/uidgid.h>
#include <rdma/ib_verbs.h>

#include "../uapi/linux/rdma_isolate.h"
#include "core/share.h"
#include "place.h"

struct netlink_ext_ack;

enum {
	RISO_ULP_LEN = 32,
	/* One byte more than a rule can have: it says whether the name ends there. */
	RISO_CGROUP_LEN = RDMA_ISOLATE_CGROUP_MAX + 2,
	RISO_WEIGHT_MIN = 1,
	RISO_WEIGHT_MAX = 10000,
	RISO_RULES_MAX = 1024,
};

/**
 * struct riso_rule_spec - a rule as the operator gives it
 * @id: identity, given by riso_rule_add()
 * @dev: name of the ib_device, empty for any
 * @ulp: name of the kernel ULP, empty for any
 * @peer: GID of the remote side, if @has_peer
 * @has_peer: @peer counts
 * @comm: name of the creating task, empty for any; a user can choose it freely
 * @uid: user of the creating task, if @has_uid
 * @has_uid: @uid counts
 * @cgroup: control group of the creating task, or one above it, empty for any
 * @class: class given to matching flows
 * @weight: weight of matching groups, RISO_WEIGHT_DEFAULT is an equal share
 * @choose: a process may choose the class of its flows instead
 * @cut_imm: the shim may cut WRITEs with immediate data
 */
struct riso_rule_spec {
	u32 id;
	char dev[IB_DEVICE_NAME_MAX];
	char ulp[RISO_ULP_LEN];
	union ib_gid peer;
	bool has_peer;
	char comm[TASK_COMM_LEN];
	uid_t uid;
	bool has_uid;
	char cgroup[RISO_CGROUP_LEN];
	enum riso_class class;
	u32 weight;
	bool choose;
	bool cut_imm;
};

enum { RISO_CLASSES = RISO_CLASS_BANDWIDTH + 1 };

/**
 * struct riso_identity - what rules look at, besides the name of the device
 * @ulp: name of the kernel ULP, empty for a user-space QP
 * @peer: GID of the remote side, if @peer_known
 * @peer_known: the QP has been connected
 * @comm: name of the creating task, empty for a kernel ULP
 * @pid: process of the creating task, 0 for a kernel ULP
 * @uid: user of the creating task
 * @cgroup: begin of the path of its control group, empty for a kernel ULP
 * @owner: whose places and, if the device says so, whose share it uses
 */
struct riso_identity {
	char ulp[RISO_ULP_LEN];
	union ib_gid peer;
	bool peer_known;
	char comm[TASK_COMM_LEN];
	pid_t pid;
	uid_t uid;
	char cgroup[RISO_CGROUP_LEN];
	struct riso_place_owner owner;
};

int riso_rule_add(const struct riso_rule_spec *spec, u32 *id,
		  struct netlink_ext_ack *extack);
int riso_rule_del(u32 id, struct netlink_ext_ack *extack);
int riso_rule_next(u32 id, struct riso_rule_spec *out);
bool riso_rule_match(const struct riso_identity *who, const char *dev,
		     struct riso_rule_spec *out);
void riso_rule_exit(void);

#endif /* RISO_RULE_H */
