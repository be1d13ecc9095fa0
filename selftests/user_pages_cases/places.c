// SPDX-License-Identifier: GPL-2.0
/*
 * These cases take all places that a user, a container or a namespace has of a device.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/rdma_isolate_user.h>
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

/* A process of @uid attaches and stays; the error, if it cannot. */
static int take_place(uid_t uid, pid_t *pid)
{
	int ends[2], error = EPIPE;

	if (pipe(ends))
		err(1, "pipe");
	*pid = fork();
	if (!*pid) {
		struct share s;
		int fd;

		close(ends[0]);
		error = setuid(uid) ? errno : 0;
		s = share_open_qp();
		fd = share_open_file();
		if (!error)
			error = fd < 0 ? errno :
				share_attach(fd, pages_device, RISO_USER_VERSION,
					     s.qp->qp_num);
		if (error && error != EMFILE &&
		    !pages_has_reason(s.qp->qp_num, "\"no-place\""))
			error = EPROTO;
		if (write(ends[1], &error, sizeof(error)) < 0)
			_exit(1);
		pause();
	}
	close(ends[1]);
	if (read(ends[0], &error, sizeof(error)) < 0)
		error = errno;
	close(ends[0]);
	return error;
}

/* @pid is filled with up to @most places of users from @uid on, by turns; how many. */
static int take_places(uid_t uid, unsigned int uids, pid_t *pid, int most, int *error)
{
	int n;

	for (n = 0, *error = 0; n < most && !*error; n++)
		*error = take_place(uid + n % uids, &pid[n]);
	return n;
}

static void give_back(const pid_t *pid, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

/* Nobody has more places of a device than are left: one user, ... */
bool pages_many_places(void)
{
	static pid_t pid[512];
	int n, error, other;

	n = take_places(0, 1, pid, ARRAY_SIZE(pid) - 1, &error);
	other = take_place(65534, &pid[n]);
	give_back(pid, n + 1);
	ksft_print_msg("%d places, then %s, of another user %s\n", n - 1, strerror(error),
		       strerror(other));
	return error == EDQUOT && n - 1 == 256 && !other;
}

static int fill_container(struct share *unused)
{
	static pid_t pid[512];
	int n, error, other;
	bool ok;

	(void)unused;
	ok = pages_enter_cgroup("container/a");
	n = take_places(65500, 2, pid, 100, &error);
	ok = ok && !error && pages_enter_cgroup("container/b");
	n += take_places(65500, 2, pid + n, ARRAY_SIZE(pid) - n - 1, &error);
	ok = ok && pages_enter_cgroup("other") && !unshare(CLONE_NEWCGROUP);
	other = take_place(65510, &pid[n]);
	give_back(pid, n + 1);
	ksft_print_msg("%d places, then %s, of another container %s\n", n - 1,
		       strerror(error), strerror(other));
	return !(ok && error == EDQUOT && n - 1 == 256 && !other);
}

/* ... or the users of one container, in however many control groups below its own, ... */
bool pages_many_places_of_container(void)
{
	return !pages_in_container(fill_container);
}

static int fill_as_root(struct share *unused)
{
	static pid_t pid[512];
	int n, error, other = EPROTO;

	(void)unused;
	n = take_places(0, 1, pid, ARRAY_SIZE(pid) - 1, &error);
	/* What is begun from here on is outside. */
	if (!setns(open("/proc/1/ns/cgroup", O_RDONLY), CLONE_NEWCGROUP))
		other = take_place(0, &pid[n]);
	give_back(pid, n + 1);
	ksft_print_msg("%d places, then %s, of root outside %s\n", n - 1, strerror(error),
		       strerror(other));
	return !(error == EDQUOT && n - 1 == 256 && !other);
}

/* ... nor does root of a container count for root of the host, ... */
bool pages_many_places_of_root(void)
{
	return !pages_in_container(fill_as_root);
}

static int has_no_place(struct share *unused)
{
	struct share s = share_open_qp();
	int error;

	(void)unused;
	error = share_attach(share_open_file(), pages_device, RISO_USER_VERSION,
			     s.qp->qp_num);
	ksft_print_msg("in a PID namespace of its own %s\n", strerror(error));
	return error != EDQUOT;
}

static int leave_container(struct share *unused)
{
	pid_t pid;

	return setuid(65500) || unshare(CLONE_NEWUSER | CLONE_NEWPID) ||
	       pages_in_child(has_no_place, unused, &pid);
}

static int fill_and_leave(struct share *unused)
{
	static pid_t pid[512];
	int n, error, left;
	pid_t child;

	n = take_places(65500, 1, pid, ARRAY_SIZE(pid), &error);
	left = pages_in_child(leave_container, unused, &child);
	give_back(pid, n);
	return error != EDQUOT || left;
}

/* ... nor does a container end where one of its processes makes namespaces, ... */
bool pages_many_places_of_leaver(void)
{
	return !pages_in_container(fill_and_leave);
}

/* Say that it is in a user namespace of its own, and wait for its users. */
static int make_user_namespace(int to, int from)
{
	char byte = 0;

	return setuid(65530) || unshare(CLONE_NEWUSER) || write(to, &byte, 1) != 1 ||
	       read(from, &byte, 1) != 1;
}

static int fill_user_namespace(void)
{
	static pid_t pid[512];
	int n, error;

	n = take_places(0, 2, pid, ARRAY_SIZE(pid), &error);
	give_back(pid, n);
	ksft_print_msg("%d places, then %s\n", n - 1, strerror(error));
	return error != EDQUOT || n - 1 != 256;
}

/* ... or the users that one user has in a namespace. */
bool pages_many_places_of_namespace(void)
{
	int there[2], back[2], status;
	char byte, line[64];
	pid_t pid;

	if (pipe(there) || pipe(back))
		return false;
	pid = fork();
	if (!pid)
		_exit(make_user_namespace(there[1], back[0]) || fill_user_namespace());
	/* A child that fails says nothing, and nobody waits for it. */
	close(there[1]);
	snprintf(line, sizeof(line), "echo 0 65500 2 >/proc/%d/uid_map", pid);
	if (read(there[0], &byte, 1) != 1 || system(line) || write(back[1], &byte, 1) != 1)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return !status;
}
