// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try which mappings the file refuses, and what another process can do with it.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/rdma_isolate_user.h>
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

static bool refuses(int fd, int prot, int flags, size_t size, off_t offset, int error)
{
	void *p = share_map(fd, prot, flags, size, offset);

	if (p != MAP_FAILED)
		munmap(p, size);
	return p == MAP_FAILED && errno == error;
}

bool pages_mapping(void)
{
	struct share s = share_join();
	bool ok;

	ok = refuses(s.fd, PROT_READ | PROT_WRITE, MAP_SHARED, pages_page, 0, EACCES) &&
	     refuses(s.fd, PROT_READ, MAP_PRIVATE, pages_page, 0, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_PRIVATE, pages_page, 1, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_SHARED, 2 * pages_page, 0, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_SHARED, pages_page, 2, EINVAL) &&
	     share_map(s.fd, PROT_READ | PROT_EXEC, MAP_SHARED, pages_page, 1) == MAP_FAILED &&
	     mprotect((void *)s.k, pages_page, PROT_READ | PROT_WRITE) && errno == EACCES &&
	     mremap(s.u, pages_page, 2 * pages_page, MREMAP_MAYMOVE) == MAP_FAILED &&
	     s.k->version == RISO_USER_VERSION;
	share_leave(&s);
	return ok;
}

static int child_uses(struct share *s)
{
	unsigned char in_core;

	struct share mine = { .fd = s->fd, .k = &(struct riso_kpage) { } };

	if (share_wait(&mine, 1) != EPERM)
		return 1;
	if (share_map(s->fd, PROT_READ, MAP_SHARED, pages_page, 0) != MAP_FAILED ||
	    errno != EPERM)
		return 2;
	if (!mincore(s->u, pages_page, &in_core) ||
	    !mincore((void *)s->k, pages_page, &in_core))
		return 3;
	return 0;
}

static int shares_memory(void *arg)
{
	const struct share *s = arg;

	return share_wait(s, 0) != EPERM ||
	       share_map(s->fd, PROT_READ, MAP_SHARED, pages_page, 0) != MAP_FAILED;
}

/* A child, and one that has all of its parent but is another process */
bool pages_forking(void)
{
	static max_align_t stack[4096];
	struct share s = share_join();
	pid_t pid;
	int status = pages_in_child(child_uses, &s, &pid);
	bool ok = !status && !share_wait(&s, 0);

	pid = clone(shares_memory, stack + ARRAY_SIZE(stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
		    &s);
	ok = ok && waitpid(pid, &status, 0) == pid && !status && !share_wait(&s, 0);

	if (status)
		ksft_print_msg("child: %x\n", status);
	share_leave(&s);
	return ok;
}

/* The first that comes through the socket */
static int received(int from)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec data = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd = -1;

	if (recvmsg(from, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static bool send_file(int to, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = "", byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(to, &msg, 0) == 1;
}

/* Another process is given the file: it can do nothing with it. */
bool pages_passing(void)
{
	struct riso_ioc_attach a = { .version = RISO_USER_VERSION };
	int status = -1, ends[2];
	struct share s;
	pid_t pid;
	bool ok;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return false;
	/* It comes before the file, so that it has none by itself. */
	pid = fork();
	if (!pid) {
		struct share got = { .fd = received(ends[1]), .k = &(struct riso_kpage) { } };

		_exit(got.fd < 0 || share_wait(&got, 1) != EPERM ||
		      !ioctl(got.fd, RISO_IOC_ATTACH, &a) || errno != EPERM ||
		      share_map(got.fd, PROT_READ, MAP_SHARED, pages_page, 0) != MAP_FAILED ||
		      errno != EPERM);
	}
	s = share_join();
	ok = send_file(ends[0], s.fd);
	waitpid(pid, &status, 0);
	ok = ok && !status && !share_wait(&s, 0);
	share_leave(&s);
	close(ends[0]);
	close(ends[1]);
	return ok;
}
