// SPDX-License-Identifier: GPL-2.0
/*
 * These processes take grants and do not post. The cases check what this leaves for others,
 * and that an event names whoever hoards.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/rdma_isolate_user.h>
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

bool pages_grasping(void)
{
	return pages_has_half_beside(share_grasp, NULL);
}

bool pages_grasping_eight(void)
{
	return pages_keeps_beside_eight(share_grasp) &&
	       pages_keeps_beside_eight(share_grasp_mute);
}

/* It wants something, and then has no pages any more. It calls, and then not even that. */
static int unmapper(struct share *unused)
{
	__u64 end = share_now() + 1500000000;
	struct share s = share_join();
	struct share blind = { .fd = s.fd, .k = &(struct riso_kpage) { } };

	(void)unused;
	s.u->path[0].want = 1 << 30;
	share_wait(&s, 0);
	munmap((void *)s.k, pages_page);
	munmap(s.u, pages_page);
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED)) {
		if (share_now() < end)
			share_wait(&blind, 0);
		usleep(1000);
	}
	return 0;
}

bool pages_unmapping(void)
{
	return pages_has_half_beside(unmapper, "unspent");
}

bool pages_hoarding(void)
{
	pid_t pid;
	bool ok;

	pages_start_all(share_grasp, &pid, 1);
	ok = pages_named(pid, "unspent");
	return pages_stop_all(&pid, 1) && ok;
}

/* One that posted nothing for a while, and then posts, has its share again. */
bool pages_waking_up(void)
{
	struct share s = share_join();
	__u64 idle, after;
	pid_t pid;
	bool ok;

	pages_start_all(share_rival, &pid, 1);
	share_take(&s, 1000000000, false);
	idle = share_take(&s, 1000000000, false);
	s.u->path[0].posted += s.k->path[0].grant[s.k->path[0].seq % 2].bytes;
	after = share_take(&s, 200000000, true) + share_take(&s, 1500000000, true);
	ok = pages_stop_all(&pid, 1);
	ksft_print_msg("%llu bytes while it posts nothing, %llu then\n",
		       (unsigned long long)idle, (unsigned long long)after);
	share_leave(&s);
	return ok && idle < pages_rate / 100 && after > pages_rate / 4;
}

/*
 * One that is stopped with its grants is given hardly any others, also where each is void
 * before its next turn.
 */
bool pages_stopping(void)
{
	pid_t pid, other[12];
	struct share s;
	__u64 beside;
	int status;
	bool ok;

	pages_start_all(share_rival, other, ARRAY_SIZE(other));
	s = share_join();
	pid = fork();
	if (!pid) {
		struct share c = share_join();

		c.u->path[0].want = 1 << 30;
		share_wait(&c, 1000000);
		raise(SIGSTOP);
		_exit(c.k->path[0].seq);
	}
	waitpid(pid, &status, WUNTRACED);
	beside = share_take(&s, 2000000000, true);
	ok = pages_named(pid, "stopped");
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	ok = pages_stop_all(other, ARRAY_SIZE(other)) && ok;
	share_leave(&s);
	ksft_print_msg("%d grants, %llu bytes beside it\n", WEXITSTATUS(status),
		       (unsigned long long)beside);
	return WIFEXITED(status) && WEXITSTATUS(status) <= 4 && beside && ok;
}
