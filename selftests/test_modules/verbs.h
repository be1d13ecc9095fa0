/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the ULPs of the test modules do alike.
 *
 * Owns nothing and takes no lock.
 */
#ifndef RISO_TEST_VERBS_H
#define RISO_TEST_VERBS_H

#include <linux/err.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

/*
 * The MTU of a port and its first address of RoCE v2 that is an IPv4 address. Process context,
 * sleeps. -EADDRNOTAVAIL if there is none.
 */
static inline int test_find_gid(struct ib_device *dev, u32 port, enum ib_mtu *mtu,
				union ib_gid *gid, int *index)
{
	struct ib_port_attr attr;
	int i, err;

	err = ib_query_port(dev, port, &attr);
	if (err)
		return err;
	*mtu = attr.active_mtu;
	for (i = 0; i < attr.gid_tbl_len; i++) {
		const struct ib_gid_attr *entry = rdma_get_gid_attr(dev, port, i);
		bool found;

		if (IS_ERR(entry))
			continue;
		found = entry->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
			ipv6_addr_v4mapped((struct in6_addr *)&entry->gid);
		*gid = entry->gid;
		rdma_put_gid_attr(entry);
		if (found) {
			*index = i;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

/* An RC queue pair that posts up to @depth work requests of one element, and receives little. */
static inline void test_init_qp(struct ib_qp_init_attr *attr, struct ib_cq *cq, u32 depth)
{
	*attr = (struct ib_qp_init_attr) {
		.cap = {
			.max_send_wr = depth,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
	};
}

#endif /* RISO_TEST_VERBS_H */
