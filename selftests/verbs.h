/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs of the tests that use verbs have in common. Each ends with a message
 * where something fails.
 */
#ifndef RISO_TEST_VERBS_H
#define RISO_TEST_VERBS_H

#include <err.h>
#include <string.h>

#include <infiniband/verbs.h>

static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	if (!list)
		err(1, "devices");
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!context)
		err(1, "%s", name);
	return context;
}

static inline struct ibv_pd *make_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);

	if (!pd)
		err(1, "protection domain");
	return pd;
}

static inline struct ibv_cq *make_cq(struct ibv_context *context, int cqe)
{
	struct ibv_cq *cq = ibv_create_cq(context, cqe, NULL, NULL, 0);

	if (!cq)
		err(1, "completion queue of %d", cqe);
	return cq;
}

/* With room for @sends work requests of one element, and one receive */
static inline struct ibv_qp_init_attr qp_init(struct ibv_cq *cq, unsigned int sends)
{
	return (struct ibv_qp_init_attr) {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = sends, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
}

static inline struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq,
				     unsigned int sends)
{
	struct ibv_qp_init_attr attr = qp_init(cq, sends);
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	if (!qp)
		err(1, "queue pair");
	return qp;
}

/* The index of the GID that is an IPv4 address of RoCE v2, or -1 */
static inline int ipv4_gid(struct ibv_context *context, int num)
{
	static const unsigned char prefix[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;
	int i;

	for (i = 0; i < num; i++)
		if (!ibv_query_gid_ex(context, 1, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(entry.gid.raw, prefix, sizeof(prefix)))
			return i;
	return -1;
}

#endif /* RISO_TEST_VERBS_H */
