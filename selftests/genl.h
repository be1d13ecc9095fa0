/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages of netlink, of generic netlink mostly, for the programs of the tests that send
 * some.
 */
#ifndef RISO_TEST_GENL_H
#define RISO_TEST_GENL_H

#include <err.h>

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

enum { NETLINK_ANSWER = 32768 };

static inline struct mnl_socket *netlink_open(int protocol)
{
	struct mnl_socket *sock = mnl_socket_open(protocol);

	if (!sock || mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0)
		err(1, "netlink");
	return sock;
}

static inline struct nlmsghdr *genl_begin(char *buf, int type, int cmd, int flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	return nlh;
}

/* Send a request and take all of the answer; negative with errno if that is an error. */
static inline int netlink_ask(struct mnl_socket *sock, const struct nlmsghdr *nlh,
			      mnl_cb_t read_one, void *data)
{
	char buf[NETLINK_ANSWER];
	int n;

	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		return -1;
	do {
		n = mnl_socket_recvfrom(sock, buf, sizeof(buf));
		if (n > 0)
			n = mnl_cb_run(buf, n, 0, mnl_socket_get_portid(sock), read_one,
				       data);
	} while (n > MNL_CB_STOP);
	return n;
}

static inline int genl_take_family(const struct nlattr *attr, void *data)
{
	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
		*(unsigned int *)data = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

static inline int genl_read_family(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), genl_take_family, data);
}

/* The number of the family @name, or 0 */
static inline unsigned int genl_family(struct mnl_socket *sock, const char *name)
{
	unsigned int family = 0;
	struct nlmsghdr *nlh;
	char buf[256];

	nlh = genl_begin(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, name);
	return netlink_ask(sock, nlh, genl_read_family, &family) < 0 ? 0 : family;
}

#endif /* RISO_TEST_GENL_H */
