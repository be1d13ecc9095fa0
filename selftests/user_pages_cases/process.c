// SPDX-License-Identifier: GPL-2.0
/*
 * These functions start and stop children, and put processes into control groups.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../share.h"
#include "pages.h"

/* The status of a child that runs @fn. */
int pages_in_child(int (*fn)(struct share *), struct share *s, pid_t *pid)
{
	int status;

	*pid = fork();
	if (!*pid)
		_exit(fn(s));
	waitpid(*pid, &status, 0);
	return status;
}

/* Make this process and its children members of a control group. */
bool pages_enter_cgroup(const char *name)
{
	char line[256];

	snprintf(line, sizeof(line), "mkdir -p %s/%s && echo %d >%s/%s/cgroup.procs",
		 pages_cgroups, name, getpid(), pages_cgroups, name);
	return !system(line);
}

/* Run @fn in a child that has a control group as the root of its namespace. */
int pages_in_container(int (*fn)(struct share *))
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(!pages_enter_cgroup("container") || unshare(CLONE_NEWCGROUP) ||
		      fn(NULL));
	waitpid(pid, &status, 0);
	return status;
}

/* Children that go on until there is enough */
void pages_start_all(int (*fn)(struct share *), pid_t *pid, unsigned int num)
{
	unsigned int i;

	__atomic_store_n(&share_end->enough, false, __ATOMIC_RELAXED);
	for (i = 0; i < num; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(fn(NULL));
	}
	usleep(500000);
}

/* True if all of them end well. */
bool pages_stop_all(const pid_t *pid, unsigned int num)
{
	bool ok = true;
	unsigned int i;
	int status;

	__atomic_store_n(&share_end->enough, true, __ATOMIC_RELAXED);
	for (i = 0; i < num; i++) {
		waitpid(pid[i], &status, 0);
		ok = ok && !status;
	}
	return ok;
}
