/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the programs of the tests connect two queue pairs of one host, also those that open
 * libibverbs when they run. They end with a message where that fails.
 */
#ifndef RISO_TEST_CONNECT_H
#define RISO_TEST_CONNECT_H

#include <err.h>

#include <infiniband/verbs.h>

typedef int (*modify_fn)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

/* Connect @qp by @modify, from GID 1 of port 1 to queue pair @qpn at @gid, for WRITEs both ways */
static inline void connect_qp(modify_fn modify, struct ibv_qp *qp, uint32_t qpn,
			      const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = { .dgid = *gid, .sgid_index = 1, .hop_limit = 64 },
		},
	};

	if (modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   IBV_QP_ACCESS_FLAGS))
		err(1, "INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (modify(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		   IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC))
		err(1, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		err(1, "RTS");
}

#endif /* RISO_TEST_CONNECT_H */
