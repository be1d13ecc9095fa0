// SPDX-License-Identifier: GPL-2.0
/*
 * These cases kill processes in every state, and check that the device is as it was.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/rdma_isolate_user.h>
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

static int killed(int state)
{
	struct share s = share_open_qp();
	int fd;

	fd = share_open_file();
	if (state == 0)
		raise(SIGKILL);
	if (share_attach(fd, pages_device, RISO_USER_VERSION, s.qp->qp_num))
		return 1;
	if (state == 1)
		raise(SIGKILL);
	close(fd);
	share_connect_qp(&s);
	share_take_part(&s);
	s.u->path[0].want = 1 << 30;
	s.u->path[1].want = 1 << 30;
	if (state == 2)
		raise(SIGKILL);
	if (state == 3)
		alarm(1);
	signal(SIGALRM, SIG_DFL);
	for (;;) {
		share_wait(&s, state == 3 ? 5000000 : 1000);
		if (state == 4)
			raise(SIGKILL);
	}
}

/* Post a while, as the mode of the page is; the bytes of grants. */
static __u64 post(struct share *s, __u64 ns)
{
	__u64 end = share_now() + ns, bytes = 0;

	while (share_now() < end) {
		if (s->k->mode == RISO_USER_PACED) {
			bytes += share_take(s, 10000000, true);
			continue;
		}
		s->u->path[0].posted += 1 << 16;
		s->u->path[0].done += 1 << 16;
		share_wait(s, 0);
		usleep(1000);
	}
	return bytes;
}

static int poster(struct share *unused)
{
	struct share s = share_join();

	(void)unused;
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED))
		post(&s, 100000000);
	return 0;
}

/* Killed in every state; the device is as it was. */
bool pages_killing(void)
{
	__u64 before, after;
	struct share s;
	int status, i;
	pid_t pid;

	s = share_join();
	before = post(&s, 500000000);
	for (i = 0; i < 200; i++) {
		pid = fork();
		if (!pid)
			_exit(killed(i % 5 == 3 && i > 5 ? 4 : i % 5));
		waitpid(pid, &status, 0);
		if (!WIFSIGNALED(status))
			return false;
	}
	/* Whatever else the machine does meanwhile. */
	for (i = 0, after = 0; i < 10 && after * 2 < before; i++)
		after = post(&s, 500000000);
	ksft_print_msg("%llu bytes before, %llu after\n",
		       (unsigned long long)before, (unsigned long long)after);
	share_leave(&s);
	return before && after * 2 >= before;
}

/* The same where nothing is cut, and two contend: there the window is what bounds. */
bool pages_killing_open(void)
{
	bool ok = !pages_configure("chunk-bytes 0");
	pid_t pid;

	pages_start_all(poster, &pid, 1);
	ok = ok && pages_killing();
	ok = pages_stop_all(&pid, 1) && ok;
	return !pages_configure(PAGES_USUAL) && ok;
}
