// SPDX-License-Identifier: GPL-2.0
/*
 * These processes say that they post without grants. The cases check what this leaves for
 * others, and for them later.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/rdma_isolate_user.h>
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

/* Says again and again that it has posted a lot, without a registered queue pair. */
static int stranger(struct share *unused)
{
	struct riso_upage *u;
	int fd, dir, error;
	struct share s;

	(void)unused;
	/* They do so more often than one owner may in the long run. */
	if (setuid(4322))
		return 1;
	s = share_open_qp();
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED)) {
		fd = share_open_file();
		error = share_attach(fd, pages_device, RISO_USER_VERSION, s.qp->qp_num);
		if (error && error != EDQUOT)
			return 1;
		if (error) {
			close(fd);
			usleep(200);
			continue;
		}
		u = share_map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, pages_page,
			      RISO_USER_UPAGE);
		if (u == MAP_FAILED)
			return 1;
		for (dir = 0; dir < RISO_USER_DIRS; dir++) {
			u->path[dir].posted = 4ull << 30;
			u->path[dir].debt = 4ull << 30;
		}
		munmap(u, pages_page);
		close(fd);
		/* The processors are not what this is about. */
		usleep(200);
	}
	return 0;
}

/* Is a @part of what it is given alone left beside three such processes? */
static bool keeps_beside(int (*fn)(struct share *), unsigned int part)
{
	struct share s = share_join();
	__u64 alone, beside;
	pid_t pid[3];
	bool ok;

	share_take(&s, 200000000, true);
	alone = share_take(&s, 1500000000, true);
	pages_start_all(fn, pid, ARRAY_SIZE(pid));
	beside = share_take(&s, 1500000000, true);
	ok = pages_stop_all(pid, ARRAY_SIZE(pid));
	ksft_print_msg("%llu bytes alone, %llu beside them\n", (unsigned long long)alone,
		       (unsigned long long)beside);
	share_leave(&s);
	return ok && beside * part >= alone;
}

bool pages_strangers(void)
{
	return keeps_beside(stranger, 3);
}

/* Of the half that debt leaves, each has its share, and they have had theirs. */
bool pages_claiming(void)
{
	return keeps_beside(share_claim, 6);
}

bool pages_claiming_eight(void)
{
	return pages_keeps_beside_eight(share_claim);
}

/* What it posted as debt while nobody else was there does not count beside four later. */
bool pages_has_owed(void)
{
	__u64 mine[2], its[2], end;
	struct share s = share_join();
	pid_t pid[4];
	bool ok;

	/* One chunk for each slice is allowed, half of the device. */
	for (end = share_now() + 3000000000; share_now() < end; usleep(1000)) {
		s.u->path[0].posted += 1 << 20;
		s.u->path[0].debt += 1 << 20;
		share_wait(&s, 0);
	}
	pages_start_all(share_rival, pid, ARRAY_SIZE(pid));
	pages_compare_books(&s, pid[0], 2, mine, its);
	ok = pages_stop_all(pid, ARRAY_SIZE(pid));
	share_leave(&s);
	ksft_print_msg("%llu ns of debt, then %llu ns, and one of the others %llu ns\n",
		       (unsigned long long)mine[0], (unsigned long long)mine[1],
		       (unsigned long long)its[1]);
	return ok && mine[0] > 500000000 && mine[1] * 2 >= its[1];
}
