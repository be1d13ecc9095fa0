// SPDX-License-Identifier: GPL-2.0
/*
 * How the agent ends where it cannot talk to the module: with status 3, after which it is
 * not started again, only if there is none. Its netlink sockets are made up here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>

#include <linux/genetlink.h>
#include <linux/rdma_isolate.h>

#include "conf.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

int agent_main(int argc, char **argv);

/* Which call fails, at which time, and how */
static struct {
	const char *call;
	int time, err;
} fault;

static int times;
static struct nlmsghdr asked;

static int call(const char *name)
{
	if (strcmp(name, fault.call) || ++times < fault.time)
		return 0;
	errno = fault.err;
	return -1;
}

struct mnl_socket *mnl_socket_open(int bus)
{
	static int sock;

	(void)bus;
	return call("open") ? NULL : (void *)&sock;
}

int mnl_socket_close(struct mnl_socket *sock)
{
	(void)sock;
	errno = EBADF;
	return 0;
}

int mnl_socket_bind(struct mnl_socket *sock, unsigned int groups, pid_t pid)
{
	(void)sock;
	(void)groups;
	(void)pid;
	return call("bind");
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *sock)
{
	(void)sock;
	return 0;
}

int mnl_socket_setsockopt(const struct mnl_socket *sock, int type, void *buf,
			  socklen_t len)
{
	(void)sock;
	(void)buf;
	(void)len;
	return type == NETLINK_ADD_MEMBERSHIP ? call("join") : 0;
}

ssize_t mnl_socket_sendto(const struct mnl_socket *sock, const void *req, size_t size)
{
	(void)sock;
	asked = *(const struct nlmsghdr *)req;
	return call("send") ? -1 : (ssize_t)size;
}

/* Any family, without groups; or what an error of the kernel says */
ssize_t mnl_socket_recvfrom(const struct mnl_socket *sock, void *buf, size_t size)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlmsgerr *e;

	(void)sock;
	(void)size;
	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_seq = asked.nlmsg_seq;
	e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));
	e->error = call("answer") ? -errno : 0;
	return nlh->nlmsg_len;
}

/* Before it is started again */
unsigned int sleep(unsigned int seconds)
{
	(void)seconds;
	return 0;
}

/* The status of an agent that is told nothing */
static int run(void)
{
	char name[] = "rdma-isolated", option[] = "--config", file[] = "/dev/null";
	char *argv[4] = { name, option, file, NULL };
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		/* What it tells is meant to be wrong. */
		close(STDERR_FILENO);
		_exit(agent_main(3, argv));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void ends(void **state)
{
	static const struct {
		const char *call;
		int time, err, status;
	} cases[] = {
		{ "open", 1, EMFILE, CONF_FAILED },
		{ "open", 1, ENOMEM, CONF_FAILED },
		{ "open", 2, EMFILE, CONF_FAILED },
		{ "bind", 1, ENOMEM, CONF_FAILED },
		{ "send", 1, ENOBUFS, CONF_FAILED },
		{ "answer", 1, ENOMEM, CONF_FAILED },
		{ "answer", 2, ENOMEM, CONF_FAILED },
		{ "answer", 3, ENOMEM, CONF_FAILED },
		{ "join", 1, EPERM, CONF_FAILED },
		{ "join", 2, EPERM, CONF_FAILED },
		{ "answer", 1, ENOENT, CONF_NO_MODULE },
		{ "answer", 2, ENOENT, CONF_NO_MODULE },
		{ "join", 2, ENOENT, CONF_NO_MODULE },
	};
	size_t i;
	int status;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fault.call = cases[i].call;
		fault.time = cases[i].time;
		fault.err = cases[i].err;
		status = run();
		if (status != cases[i].status)
			fail_msg("%s %d, %s: status %d", fault.call, fault.time,
				 strerror(fault.err), status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_start", tests, NULL, NULL);
}
