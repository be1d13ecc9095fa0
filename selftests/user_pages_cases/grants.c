// SPDX-License-Identifier: GPL-2.0
/*
 * These cases check the size and the time of grants, and how a process waits for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <linux/rdma_isolate_user.h>
#include "../kmod/core/cost.h"
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

enum {
	/* The chunk size of PAGES_USUAL; what the page says is more where timers are late. */
	CHUNK = 64 * 1024,
};

/* A grant of whole chunks, so that nothing is left over for another. */
static bool is_chunks(const struct riso_kpage *k, __u64 bytes)
{
	__u32 mtu;

	for (mtu = 1024; mtu <= 4096; mtu *= 2)
		if (!(bytes % (riso_wire_bytes(CHUNK, mtu, k->header) + RISO_MESSAGE_HEADER)))
			return true;
	return false;
}

/* No more than the device sends, and at least some. */
bool pages_granting(void)
{
	struct share s = share_join();
	__u64 began = share_now(), bytes, most;
	bool ok;

	bytes = share_take(&s, 4000000000, true);
	/* Grants that are ahead, and what came before. */
	most = (share_now() - began) * pages_rate / 1000000000 + (1 << 20);
	ksft_print_msg("%llu bytes of %llu\n", (unsigned long long)bytes,
		       (unsigned long long)most);
	ok = s.k->mode == RISO_USER_PACED && s.k->path[0].chunk >= CHUNK && bytes &&
	     bytes <= most && is_chunks(s.k, s.k->path[0].grant[0].bytes) &&
	     !pages_is_named(getpid(), "");
	share_leave(&s);
	return ok;
}

/* What was posted while nobody looked is nobody's lie, and is not charged. */
bool pages_idling(void)
{
	const __u64 much = 1ull << 40;
	struct share s;
	bool ok;

	ok = !pages_configure("mode disable");
	s = share_join();
	s.u->path[0].posted = much;
	s.u->path[0].done = much;
	ok = ok && !pages_configure("mode enable") && share_take(&s, 500000000, true) &&
	     !pages_configure("mode disable");
	s.u->path[0].posted += much;
	s.u->path[0].done += much;
	share_leave(&s);
	ok = !pages_configure("mode enable") && ok;
	usleep(500000);
	return ok && !pages_is_named(getpid(), "counters");
}

/* A grant by a clock that is 1000 s ahead of the others' */
static int gets_one(struct share *unused)
{
	struct share s = share_join();
	const struct riso_kpath *k = &s.k->path[0];
	__s64 left;

	(void)unused;
	s.u->path[0].want = 1 << 20;
	while (!k->seq && !share_wait(&s, 100000))
		;
	left = k->grant[k->seq % 2].not_after - share_now();
	return !k->seq || left < -100000000000 || left > 100000000000;
}

static int another_time(struct share *unused)
{
	int fd = open("/proc/self/timens_offsets", O_WRONLY);
	static const char offset[] = "monotonic 1000 0";
	pid_t pid;

	if (unshare(CLONE_NEWTIME) || fd < 0 ||
	    write(fd, offset, sizeof(offset) - 1) != sizeof(offset) - 1)
		return 1;
	close(fd);
	return pages_in_child(gets_one, unused, &pid) != 0;
}

bool pages_timing(void)
{
	pid_t pid;

	return !pages_in_child(another_time, NULL, &pid);
}

/* Whoever wants a byte gets a 16th of what one turn has: 50 us at this rate. */
bool pages_wishing(void)
{
	struct share s = share_join();
	__u64 bytes;
	bool ok;

	ok = !pages_configure("max-rate 100gbit safe-util 100gbit chunk-bytes 4k");
	s.u->path[0].want = 1;
	while (ok && !s.k->path[0].seq)
		ok = !share_wait(&s, 100000);
	bytes = s.k->path[0].grant[1].bytes;
	ksft_print_msg("%llu bytes\n", (unsigned long long)bytes);
	share_leave(&s);
	return !pages_configure(PAGES_USUAL) && ok && bytes <= 12500000000 / 20000 / 16 &&
	       bytes > 12500000000 / 20000 / 17;
}

/* 1 if no other comes before a grant is void, -1 if this was too late to tell */
static int voids(void)
{
	struct share s = share_join();
	const struct riso_kpath *k = &s.k->path[0];
	int ret = -1;
	__u64 void_ns;

	s.u->path[0].want = 1 << 30;
	while (k->seq < 2 && !share_wait(&s, 100000))
		;
	void_ns = k->grant[1].not_after;
	if (k->seq != 2)
		goto out;
	ret = !share_wait(&s, 1000) && k->seq == 2;
	if (share_now() >= void_ns) {
		ret = -1;
		goto out;
	}
	while (share_now() < void_ns)
		usleep(1000);
	while (k->seq == 2 && !share_wait(&s, 100000))
		;
	ret = ret && k->seq > 2 && k->grant[1].not_after != void_ns;
out:
	share_leave(&s);
	return ret;
}

/* Two are good at a time; what nobody takes is void, and then there are others. */
bool pages_voiding(void)
{
	int ret = -1, i;

	for (i = 0; ret < 0 && i < 100; i++)
		ret = voids();
	return ret > 0;
}

static void *wait_on(void *arg)
{
	long err;

	/* The one that looks whether this waits may be in the way. */
	do
		err = share_wait(arg, 2000000);
	while (err == EBUSY);
	return (void *)err;
}

/* One thread waits, the others are told so. */
bool pages_waiting(void)
{
	struct share s = share_join();
	pthread_t thread;
	void *status;
	int n = 0;
	bool ok;

	pthread_create(&thread, NULL, wait_on, &s);
	while (share_wait(&s, 1) != EBUSY && n++ < 1000)
		usleep(1000);
	ok = share_wait(&s, 1) == EBUSY && !share_wait(&s, 0);
	pthread_join(thread, &status);
	ok = ok && !status && !share_wait(&s, 0);
	share_leave(&s);
	return ok;
}
