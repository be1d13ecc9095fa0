// SPDX-License-Identifier: GPL-2.0
/*
 * With "share cgroup", all processes of a group have one share. These cases try three ways to
 * have eight.
 */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "kselftest.h"
#include "../share.h"
#include "pages.h"

/* A process alone in its control group, which counts what it has beside the eight */
static int lone(struct share *unused)
{
	double ratio;
	__u64 mine, theirs;
	struct share s;

	(void)unused;
	if (!pages_enter_cgroup("lone"))
		return 1;
	s = share_join();
	share_take(&s, 500000000, true);
	theirs = __atomic_load_n(&share_end->bytes, __ATOMIC_RELAXED);
	mine = share_take(&s, 4000000000, true);
	theirs = __atomic_load_n(&share_end->bytes, __ATOMIC_RELAXED) - theirs;
	ratio = (double)theirs / mine;
	ksft_print_msg("eight have %.3f of what one has\n", ratio);
	/* Each would have as much. How exact it is, the bench tells, on its own clock. */
	return ratio < 0.67 || ratio > 1.5;
}

static int run_eight(int (*fn)(struct share *))
{
	pid_t pid[8];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(fn(NULL));
	}
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED))
		usleep(10000);
	return !pages_stop_all(pid, ARRAY_SIZE(pid));
}

/* Each in a control group of its own */
static bool enter_own_cgroup(void)
{
	char name[32];

	snprintf(name, sizeof(name), "eight-%d", getpid());
	return pages_enter_cgroup(name);
}

static int eight_of_cgroup(struct share *unused)
{
	(void)unused;
	return !pages_enter_cgroup("eight") || run_eight(share_rival);
}

static int rival_of_user(struct share *unused)
{
	return !enter_own_cgroup() || setuid(65520) || share_rival(unused);
}

static int eight_of_user(struct share *unused)
{
	(void)unused;
	return run_eight(rival_of_user);
}

static int nested_rival(struct share *unused)
{
	return !enter_own_cgroup() || unshare(CLONE_NEWUSER | CLONE_NEWCGROUP) ||
	       share_rival(unused);
}

static int eight_in_container(struct share *unused)
{
	(void)unused;
	return run_eight(nested_rival);
}

/* The first process of a container goes when all others of it were waited for. */
static int eight_of_container(struct share *unused)
{
	pid_t pid;

	return unshare(CLONE_NEWPID) || pages_in_child(eight_in_container, unused, &pid);
}

/* With share cgroup, do eight such processes have what one of another group has? */
static bool shares_one(int (*eight)(struct share *))
{
	bool ok = !pages_configure("share cgroup");
	pid_t pid, one;

	pages_start_all(eight, &pid, 1);
	ok = !pages_in_child(lone, NULL, &one) && ok;
	ok = pages_stop_all(&pid, 1) && ok;
	return !pages_configure("share process") && ok;
}

/* They are of one control group, ... */
bool pages_sharing(void)
{
	return shares_one(eight_of_cgroup);
}

/* ... or one user has made them groups of their own, ... */
bool pages_sharing_by_user(void)
{
	return shares_one(eight_of_user);
}

/* ... or they have made them, and namespaces, inside a container. */
bool pages_sharing_by_container(void)
{
	return shares_one(eight_of_container);
}
