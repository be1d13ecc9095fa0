// SPDX-License-Identifier: GPL-2.0
/*
 * These cases open files, join, register and call until the module limits them.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

/* As many as one user may have, and after that as before. */
bool pages_many_files(void)
{
	static int fds[10000];
	int n, i, error = 0;

	for (n = 0; n < (int)ARRAY_SIZE(fds); n++) {
		fds[n] = share_open_file();
		if (fds[n] < 0) {
			error = errno;
			break;
		}
	}
	for (i = 0; i < n; i++)
		close(fds[i]);
	i = share_open_file();
	close(i);
	ksft_print_msg("%d files\n", n);
	return error == EMFILE && n >= 256 && n < 10000 && i >= 0;
}

/* Root of a container has files of its own, and leaves root of the host those of its own. */
static int fill_files(struct share *unused)
{
	(void)unused;
	while (share_open_file() >= 0)
		;
	/* What is opened from here on is outside. */
	return errno != EMFILE ||
	       setns(open("/proc/1/ns/cgroup", O_RDONLY), CLONE_NEWCGROUP) ||
	       share_open_file() < 0;
}

bool pages_many_files_of_container(void)
{
	return !pages_in_container(fill_files);
}

/* It takes part, and leaves; an errno or 0 */
static int join_once(const struct share *s)
{
	int fd = share_open_file();
	int error = share_attach(fd, pages_device, RISO_USER_VERSION, s->qp->qp_num);

	close(fd);
	return error;
}

/* As another user, by the real number; the effective one stays root's. */
static void become(uid_t uid)
{
	if (setresuid(uid, -1, -1))
		err(1, "setresuid");
}

/* How many of a thousand other users may not take part, while @uid may not? */
static unsigned int count_refused(const struct share *s, uid_t uid)
{
	unsigned int refused = 0;
	struct share other = *s;
	uid_t u;

	for (u = 5000; u < 6000; u++) {
		become(uid);
		while (!join_once(s))
			;
		become(u);
		share_make_qp(&other);
		refused += join_once(&other) != 0;
		ibv_destroy_qp(other.qp);
	}
	return refused;
}

/*
 * Whoever takes part anew is given something before it posts: the processes of a user may
 * do that 1,024 times at once, and 20 times a second. Others are not refused for that.
 */
bool pages_joining_anew(void)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		__u64 begin = share_now();
		int most, n, error = 0;
		unsigned int refused;
		struct share s;
		bool ok;

		become(4321);
		s = share_open_qp();
		for (n = -1; n < 4000 && !error; n++)
			error = join_once(&s);
		most = 1026 + (share_now() - begin) / 50000000;
		ok = error == EDQUOT && n >= 1024 && n <= most &&
		     pages_has_reason(s.qp->qp_num, "\"no-place\"");
		refused = count_refused(&s, 4321);
		ksft_print_msg("%d times, then %s; %u others refused\n", n, strerror(error),
			       refused);
		_exit(!ok || refused);
	}
	waitpid(pid, &status, 0);
	return !status;
}

/* Who takes the mutex of the device all the time has to wait. */
bool pages_registering_on(void)
{
	struct share s = share_join();
	__u64 begin = share_now();
	__u64 least = (5000 - 1026) * 100000ull;
	__u32 class;
	bool good = true;
	int n;

	for (n = 0; good && n < 5000; n++) {
		class = RISO_CLASS_BY_RULE;
		good = !share_register(s.fd, s.qp->qp_num, &class);
	}
	good = good && share_now() - begin >= least;
	share_leave(&s);
	return good;
}

/* Whoever calls in a loop has nobody look at it: what is allowed, a chain of grants. */
bool pages_calling(void)
{
	unsigned long long hits, most;
	struct share s = share_join();
	unsigned int calls = 0;
	__u64 began, end;
	bool ok = true;

	pages_start_counting("riso_process_ask");
	for (; ok && calls < 10000; calls++)
		ok = !share_wait(&s, 0);
	hits = pages_stop_counting();
	ksft_print_msg("wants nothing: %llu looks in %u calls\n", hits, calls);
	ok = ok && !hits;

	/* It says that it has posted, so that it is listened to, and takes no grant. */
	s.u->path[0].want = 1 << 20;
	pages_start_counting("riso_process_ask");
	began = share_now();
	end = began + 1000000000;
	for (calls = 0; ok && share_now() < end; calls++) {
		s.u->path[0].posted += 1 << 16;
		ok = !share_wait(&s, 0);
	}
	hits = pages_stop_counting();
	most = (share_now() - began) / 20000 + 16;
	ksft_print_msg("wants much: %llu looks in %u calls, at most %llu\n", hits, calls, most);
	share_leave(&s);
	return ok && hits && hits <= most;
}
