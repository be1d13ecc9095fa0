// SPDX-License-Identifier: GPL-2.0
/*
 * The netlink family of the RDMA core. A queue pair that the connection manager
 * has made for a kernel module bears the connection manager's name, and there is
 * no way from it to its protection domain; the module's own name is on the
 * connection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include "error.h"
#include "rdma.h"

enum {
	REQUEST_SIZE = 256,
	ANSWER_SIZE = 32768,
};

/* what a dump is read into */
struct listing {
	struct rdma_qps *qps;
	const char *dev;
	int table;
	void (*read_entry)(struct listing *listing, const struct nlattr *entry);
	int err;
};

static int core_error(const char *what, int err)
{
	error("queue pairs from before load are not listed: RDMA netlink: %s: %s",
	      what, strerror(err));
	return -err;
}

struct rdma_qp *rdma_find(const struct rdma_qps *qps, const char *dev,
			  uint32_t qpn)
{
	struct rdma_qp *qp = qps->qp;

	for (; qp < qps->qp + qps->n; qp++)
		if (qp->qpn == qpn && !strcmp(qp->dev, dev))
			return qp;
	return NULL;
}

static uint32_t number(const struct nlattr *attr)
{
	if (mnl_attr_get_payload_len(attr) == sizeof(uint8_t))
		return mnl_attr_get_u8(attr);
	if (mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
		return mnl_attr_get_u32(attr);
	return 0;
}

static void copy_name(char *name, size_t size, const struct nlattr *attr)
{
	if (mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		snprintf(name, size, "%s", mnl_attr_get_str(attr));
}

static void read_qp(struct listing *listing, const struct nlattr *entry)
{
	struct rdma_qps *qps = listing->qps;
	const struct nlattr *attr;
	struct rdma_qp *qp;

	qp = realloc(qps->qp, (qps->n + 1) * sizeof(*qp));
	if (!qp) {
		listing->err = ENOMEM;
		return;
	}
	qps->qp = qp;
	qp += qps->n++;
	memset(qp, 0, sizeof(*qp));
	snprintf(qp->dev, sizeof(qp->dev), "%s", listing->dev);

	mnl_attr_for_each_nested(attr, entry) {
		switch (mnl_attr_get_type(attr)) {
		case RDMA_NLDEV_ATTR_RES_LQPN:
			qp->qpn = number(attr);
			break;
		case RDMA_NLDEV_ATTR_RES_TYPE:
			qp->type = number(attr);
			break;
		case RDMA_NLDEV_ATTR_RES_STATE:
			qp->state = number(attr);
			break;
		case RDMA_NLDEV_ATTR_RES_PID:
			qp->pid = number(attr);
			break;
		case RDMA_NLDEV_ATTR_RES_KERN_NAME:
			copy_name(qp->ulp, sizeof(qp->ulp), attr);
			break;
		}
	}
}

/* Who has asked the connection manager for a queue pair of a kernel module */
static void read_connection(struct listing *listing,
			    const struct nlattr *entry)
{
	const struct nlattr *attr, *name = NULL, *qpn = NULL;
	struct rdma_qp *qp;

	mnl_attr_for_each_nested(attr, entry) {
		switch (mnl_attr_get_type(attr)) {
		case RDMA_NLDEV_ATTR_RES_LQPN:
			qpn = attr;
			break;
		case RDMA_NLDEV_ATTR_RES_KERN_NAME:
			name = attr;
			break;
		}
	}
	if (!name || !qpn)
		return;
	qp = rdma_find(listing->qps, listing->dev, number(qpn));
	if (qp && *qp->ulp)
		copy_name(qp->ulp, sizeof(qp->ulp), name);
}

static int read_table(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *table, *entry;
	struct listing *listing = data;

	mnl_attr_for_each(table, nlh, 0) {
		if (mnl_attr_get_type(table) != listing->table)
			continue;
		mnl_attr_for_each_nested(entry, table)
			listing->read_entry(listing, entry);
	}
	return MNL_CB_OK;
}

/* A dump that fails has its errno in its last message. */
static int read_end(const struct nlmsghdr *nlh, void *data)
{
	const int *err = mnl_nlmsg_get_payload(nlh);
	struct listing *listing = data;

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(*err) && *err < 0)
		listing->err = -*err;
	return MNL_CB_STOP;
}

static int read_refusal(const struct nlmsghdr *nlh, void *data)
{
	const struct nlmsgerr *refusal = mnl_nlmsg_get_payload(nlh);
	struct listing *listing = data;

	listing->err = -refusal->error;
	return MNL_CB_STOP;
}

static int dump(struct mnl_socket *sock, uint16_t cmd, uint32_t index,
		struct listing *listing)
{
	static mnl_cb_t control[] = {
		[NLMSG_ERROR] = read_refusal,
		[NLMSG_DONE] = read_end,
	};
	char request[REQUEST_SIZE], answer[ANSWER_SIZE];
	static unsigned int seq;
	struct nlmsghdr *nlh;
	ssize_t got;
	int more = MNL_CB_OK;

	nlh = mnl_nlmsg_put_header(request);
	nlh->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd);
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = ++seq;
	mnl_attr_put_u32(nlh, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	/* those that drivers use themselves, too */
	mnl_attr_put_u8(nlh, RDMA_NLDEV_ATTR_DRIVER_DETAILS, 1);
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		return core_error("send", errno);

	do {
		got = mnl_socket_recvfrom(sock, answer, sizeof(answer));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return core_error("receive", errno);
		more = mnl_cb_run2(answer, got, seq,
				   mnl_socket_get_portid(sock), read_table,
				   listing, control,
				   sizeof(control) / sizeof(*control));
		if (more < 0)
			return core_error("answer", errno);
	} while (more > MNL_CB_STOP);
	return listing->err ? core_error(listing->dev, listing->err) : 0;
}

struct mnl_socket *rdma_open(void)
{
	struct mnl_socket *sock;

	sock = mnl_socket_open(NETLINK_RDMA);
	if (!sock) {
		core_error("open", errno);
		return NULL;
	}
	if (mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0) {
		core_error("bind", errno);
		mnl_socket_close(sock);
		return NULL;
	}
	return sock;
}

int rdma_list(struct mnl_socket *sock, const char *dev, uint32_t index,
	      struct rdma_qps *qps)
{
	struct listing qp_listing = {
		.qps = qps,
		.dev = dev,
		.table = RDMA_NLDEV_ATTR_RES_QP,
		.read_entry = read_qp,
	};
	struct listing connections = {
		.qps = qps,
		.dev = dev,
		.table = RDMA_NLDEV_ATTR_RES_CM_ID,
		.read_entry = read_connection,
	};

	return dump(sock, RDMA_NLDEV_CMD_RES_QP_GET, index, &qp_listing) ?:
	       dump(sock, RDMA_NLDEV_CMD_RES_CM_ID_GET, index, &connections);
}
