// SPDX-License-Identifier: GPL-2.0
/*
 * A connection to a module that a test plays. See fake_nl.h.
 */
#include <linux/genetlink.h>

#include "fake_nl.h"
#include "nl.h"

static char request[1024];

struct nl *__wrap_nl_open(void);
void __wrap_nl_close(struct nl *nl);
struct nlmsghdr *__wrap_nl_request(struct nl *nl, uint8_t cmd, bool dump);

struct nl *__wrap_nl_open(void)
{
	return (struct nl *)request;
}

void __wrap_nl_close(struct nl *nl)
{
	(void)nl;
}

struct nlmsghdr *fake_nl_message(char *buf, uint8_t cmd)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));

	genl->cmd = cmd;
	return nlh;
}

struct nlmsghdr *__wrap_nl_request(struct nl *nl, uint8_t cmd, bool dump)
{
	struct nlmsghdr *nlh = fake_nl_message(request, cmd);

	(void)nl;
	nlh->nlmsg_flags = dump ? NLM_F_DUMP : 0;
	return nlh;
}

const struct nlmsghdr *fake_nl_request(void)
{
	return (const struct nlmsghdr *)request;
}
