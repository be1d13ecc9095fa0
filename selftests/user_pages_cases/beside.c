// SPDX-License-Identifier: GPL-2.0
/*
 * These functions measure what this process has beside others, and what they have.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"
#include "../share.h"
#include "pages.h"

/* Device time that two processes were charged, as the books have it. */
static void read_books(pid_t a, pid_t b, __u64 *used_a, __u64 *used_b)
{
	static char text[65536];
	unsigned long long ns[2] = { 0, 0 };
	const pid_t pids[2] = { a, b };
	char word[64];
	FILE *pipe;
	size_t len;
	int i;

	snprintf(word, sizeof(word), "rdma-isolate -j group show dev %s", pages_device);
	pipe = popen(word, "r");
	len = pipe ? fread(text, 1, sizeof(text) - 1, pipe) : 0;
	text[len] = 0;
	if (pipe)
		pclose(pipe);
	for (i = 0; i < 2; i++) {
		const char *at;

		snprintf(word, sizeof(word), "\"pid\":%d,", pids[i]);
		at = strstr(text, word);
		at = at ? strstr(at, "\"used_ns\":") : NULL;
		if (!at || sscanf(at, "\"used_ns\":%llu", &ns[i]) != 1)
			ksft_print_msg("no books of %d\n", pids[i]);
	}
	*used_a = ns[0];
	*used_b = ns[1];
}

/*
 * The same for this process, which takes what it is given meanwhile, and another, twice,
 * so many seconds apart. What it has posted.
 */
__u64 pages_compare_books(struct share *s, pid_t other, unsigned int seconds,
			  __u64 *mine, __u64 *its)
{
	__u64 *seen = mmap(NULL, pages_page, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t self = getpid(), pid = fork();
	__u64 got = 0;

	if (!pid) {
		read_books(self, other, &seen[0], &seen[1]);
		sleep(seconds);
		read_books(self, other, &seen[2], &seen[3]);
		_exit(0);
	}
	while (!waitpid(pid, NULL, WNOHANG))
		got += share_take(s, 100000000, true);
	mine[0] = seen[0];
	its[0] = seen[1];
	mine[1] = seen[2] - seen[0];
	its[1] = seen[3] - seen[1];
	munmap(seen, pages_page);
	return got;
}

/*
 * Beside a process that writes anything, another one has its half, or nearly: it has
 * to wake up for its grants, which takes time where the processors are busy.
 */
bool pages_has_half_beside(int (*fn)(struct share *), const char *fault)
{
	__u64 mine[2], its[2], got;
	struct share s;
	pid_t pid;
	bool ok;

	s = share_join();
	pages_start_all(fn, &pid, 1);
	got = pages_compare_books(&s, pid, 3, mine, its);
	ok = pages_stop_all(&pid, 1);
	ksft_print_msg("%llu ns, and the other %llu ns\n", (unsigned long long)mine[1],
		       (unsigned long long)its[1]);
	share_leave(&s);
	return ok && got && mine[1] * 4 >= mine[1] + its[1] &&
	       (!fault || pages_named(pid, fault));
}

/*
 * Do eight such processes leave this one what one honest process leaves it, or nearly?
 * Both are read by the clock of a machine that others use, so they may differ by a
 * quarter here; the benchmark has the bound of nineteen twentieths, on its own clock.
 */
bool pages_keeps_beside_eight(int (*fn)(struct share *))
{
	struct share s = share_join();
	__u64 beside_one, beside_eight;
	pid_t pid[8];
	bool ok;

	pages_start_all(share_rival, pid, 1);
	share_take(&s, 200000000, true);
	beside_one = share_take(&s, 1500000000, true);
	ok = pages_stop_all(pid, 1);
	pages_start_all(fn, pid, ARRAY_SIZE(pid));
	share_take(&s, 200000000, true);
	beside_eight = share_take(&s, 1500000000, true);
	ok = pages_stop_all(pid, ARRAY_SIZE(pid)) && ok;
	ksft_print_msg("%llu bytes beside an honest one, %llu beside eight of these\n",
		       (unsigned long long)beside_one, (unsigned long long)beside_eight);
	share_leave(&s);
	return ok && beside_eight * 4 >= beside_one * 3;
}
