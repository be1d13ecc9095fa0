// SPDX-License-Identifier: GPL-2.0
/*
 * Asks the RDMA core for queue pairs, as "rdma resource show qp" does.
 *
 * Owns the process that asks. It keeps nothing by which its parent has devices open: of the file
 * descriptors the pipe alone, and no shared mapping. So the devices of a parent that has ended are
 * closed, even while the kernel does not let go of the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include "psn.h"

enum {
	/* As the kernel numbers states of queue pairs */
	STATE_RTS = 3,
	/* The core wants to know the port. Devices with more than one are not enabled. */
	PORT = 1,
	ANSWER_SIZE = 8192,
};

/* What a message says of a queue pair */
struct told {
	bool sends;
	bool numbered;
	uint32_t psn;
};

static int read_qp(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *attr;
	struct told *told = data;

	mnl_attr_for_each(attr, nlh, 0) {
		switch (mnl_attr_get_type(attr)) {
		case RDMA_NLDEV_ATTR_RES_STATE:
			told->sends = mnl_attr_get_u8(attr) == STATE_RTS;
			break;
		case RDMA_NLDEV_ATTR_RES_SQ_PSN:
			told->numbered = true;
			told->psn = mnl_attr_get_u32(attr);
			break;
		}
	}
	return MNL_CB_OK;
}

/* 0 or an errno */
static int ask(struct mnl_socket *sock, const struct psn_query *query, struct told *told)
{
	char buf[ANSWER_SIZE];
	struct nlmsghdr *nlh;
	ssize_t got;

	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET);
	nlh->nlmsg_flags = NLM_F_REQUEST;
	mnl_attr_put_u32(nlh, RDMA_NLDEV_ATTR_DEV_INDEX, query->index);
	mnl_attr_put_u32(nlh, RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
	mnl_attr_put_u32(nlh, RDMA_NLDEV_ATTR_RES_LQPN, query->qpn);
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		return errno;
	got = mnl_socket_recvfrom(sock, buf, sizeof(buf));
	if (got < 0 || mnl_cb_run(buf, got, 0, mnl_socket_get_portid(sock), read_qp, told) < 0)
		return errno;
	return told->sends && !told->numbered ? ENODATA : 0;
}

static void ask_all(int fd, const struct psn_query *query, size_t n)
{
	struct mnl_socket *sock = mnl_socket_open(NETLINK_RDMA);
	int err = 0;
	size_t i;

	if (!sock || mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0)
		err = errno;
	for (i = 0; i < n; i++) {
		struct psn_answer answer = { .of = query[i] };
		struct told told = { };

		answer.err = err ? err : ask(sock, &query[i], &told);
		answer.sends = !answer.err && told.sends;
		answer.psn = told.psn;
		if (write(fd, &answer, sizeof(answer)) != sizeof(answer))
			return;
	}
}

/* Registers and queues of a device are mapped shared. Each mapping keeps the device open. */
static bool drop_shared_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char shared, line[512];

	if (!maps)
		return false;
	/* A long line comes in parts, of which the first alone reads so. */
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*3c%c", &from, &to, &shared) == 3 && shared == 's')
			munmap((void *)from, to - from);
	fclose(maps);
	return true;
}

/* The pipe is all that it keeps. */
static void run_child(pid_t parent, int fd, const struct psn_query *query, size_t n)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(fd, STDIN_FILENO) < 0 || close_range(1, ~0U, 0) ||
	    !drop_shared_mappings())
		_exit(1);
	ask_all(STDIN_FILENO, query, n);
	_exit(0);
}

/* Is the process before gone? */
static bool is_gone(struct psn *p)
{
	if (p->pid && !waitpid(p->pid, NULL, WNOHANG))
		return false;
	p->pid = 0;
	return true;
}

int psn_begin(struct psn *p, const struct psn_query *query, size_t n)
{
	pid_t parent = getpid();
	int fds[2], err;

	if (!is_gone(p))
		return -EBUSY;
	if (!n)
		return 0;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	p->pid = fork();
	if (!p->pid)
		run_child(parent, fds[1], query, n);
	err = p->pid < 0 ? errno : 0;
	close(fds[1]);
	if (!err && fcntl(fds[0], F_SETFL, O_NONBLOCK))
		err = errno;
	if (err) {
		close(fds[0]);
		p->pid = p->pid < 0 ? 0 : p->pid;
		return -err;
	}
	p->fd = fds[0];
	return 0;
}

/* What is written at once is read at once. */
int psn_read(struct psn *p, struct psn_answer *answer)
{
	ssize_t got = read(p->fd, answer, sizeof(*answer));

	if (got == sizeof(*answer))
		return 1;
	return got < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : 0;
}

void psn_end(struct psn *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	if (!p->pid)
		return;
	kill(p->pid, SIGKILL);
	is_gone(p);
}
