// SPDX-License-Identifier: GPL-2.0
/*
 * user_pages DEVICE RATE EVENTS CGROUPS
 *
 * What /dev/rdma_isolate allows and refuses, and that nothing which a process writes to
 * its page gets it more than its share, but names it. DEVICE is enabled with a max-rate
 * of RATE bytes per second and has a latency flow; EVENTS is what "rdma-isolate -j
 * monitor" writes; CGROUPS is where control groups of version 2 are mounted. KTAP on
 * standard output.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>
#include <linux/userfaultfd.h>
#include "../kmod/chunk.h"
#include "kselftest.h"
#include "share.h"

/* Settings between cases */
#define USUAL "max-rate 400mbit safe-util 400mbit chunk 64k"

static const char *device, *events, *cgroups;
static __u64 rate;
static size_t page;

static int report(int fd, const char *dev, __u32 qpn, __u32 reason)
{
	struct riso_ioc_report r = { .qpn = qpn, .reason = reason };

	memcpy(r.dev, dev, strnlen(dev, sizeof(r.dev)));
	return ioctl(fd, RISO_IOC_REPORT, &r) ? errno : 0;
}

/* The status of a child that runs @fn. */
static int in_child(int (*fn)(struct share *), struct share *s, pid_t *pid)
{
	int status;

	*pid = fork();
	if (!*pid)
		_exit(fn(s));
	waitpid(*pid, &status, 0);
	return status;
}

/* Settings of the device */
static int configure(const char *settings)
{
	char line[128];

	snprintf(line, sizeof(line), "rdma-isolate dev set dev %s %s", device, settings);
	return system(line);
}

/* Is there an event of this process now? */
static bool is_named(pid_t pid, const char *fault)
{
	FILE *file = fopen(events, "r");
	char who[32], what[32], *line = NULL;
	bool found = false;
	size_t size = 0;

	if (!file)
		err(1, "%s", events);
	snprintf(who, sizeof(who), "\"pid\":%d,", pid);
	snprintf(what, sizeof(what), "\"fault\":\"%s", fault);
	while (!found && getline(&line, &size, file) > 0)
		found = strstr(line, "\"group-fault\"") && strstr(line, who) &&
			strstr(line, what);
	free(line);
	fclose(file);
	return found;
}

/* An event says so, soon. */
static bool named(pid_t pid, const char *fault)
{
	int n;

	for (n = 0; n < 100 && !is_named(pid, fault); n++)
		usleep(50000);
	if (n < 100)
		return true;
	ksft_print_msg("no event says %s of %d\n", fault, pid);
	return false;
}

#define TRACING "/sys/kernel/tracing/"

/* Count how often a function of the module is called. */
static void start_counting(const char *function)
{
	char line[160];

	snprintf(line, sizeof(line), "echo 'p:riso/calls %s' >" TRACING "kprobe_events",
		 function);
	if (system(line) || system("echo 1 >" TRACING "events/riso/calls/enable"))
		errx(1, "kprobes");
}

/* How often that was, until now */
static unsigned long long stop_counting(void)
{
	unsigned long long hits = 0;
	char name[64] = "";
	FILE *f;

	f = fopen(TRACING "kprobe_profile", "r");
	if (!f || fscanf(f, "%63s %llu", name, &hits) != 2)
		errx(1, "kprobes: no profile");
	fclose(f);
	if (system("echo 0 >" TRACING "events/riso/calls/enable") ||
	    system("echo >" TRACING "kprobe_events"))
		errx(1, "kprobes");
	return hits;
}

/* --- what is refused --- */

static bool attaching(void)
{
	struct riso_ioc_wait w = { .timeout_us = 1 };
	int fd = share_open_file(), other = share_open_file();
	__u32 class = RISO_CLASS_BY_RULE;
	struct share s = share_open_qp();
	__u32 qpn = s.qp->qp_num;
	bool ok;

	ok = fd >= 0 && other >= 0 &&
	     ioctl(fd, RISO_IOC_WAIT, &w) == -1 && errno == ENOTCONN &&
	     share_register(fd, 1, &class) == ENOTCONN &&
	     ioctl(fd, _IO(RISO_IOC_MAGIC, 9)) == -1 && errno == ENOTTY &&
	     ioctl(fd, RISO_IOC_ATTACH, NULL) == -1 && errno == EFAULT &&
	     share_attach(fd, device, RISO_USER_VERSION + 1, qpn) == EPROTONOSUPPORT &&
	     share_attach(fd, "no-such", RISO_USER_VERSION, qpn) == ENODEV &&
	     share_attach(fd, "a-name-that-has-no-end-and-fills-all-of-the-sixty-four-bytes-of-it",
			  RISO_USER_VERSION, qpn) == EINVAL &&
	     share_attach(fd, device, RISO_USER_VERSION, 1) == ENOENT &&
	     share_attach(fd, device, RISO_USER_VERSION, 0xfffffe) == ENOENT &&
	     !share_attach(fd, device, RISO_USER_VERSION, qpn) &&
	     share_attach(fd, device, RISO_USER_VERSION, qpn) == EBUSY &&
	     share_attach(other, device, RISO_USER_VERSION, qpn) == EBUSY;
	close(fd);
	ok = ok && !share_attach(other, device, RISO_USER_VERSION, qpn);
	close(other);
	share_close_qp(&s);
	return ok;
}

/* Has a queue pair this reason in "flow show"? */
static bool has_reason(__u32 qpn, const char *reason)
{
	char line[160];

	snprintf(line, sizeof(line), "rdma-isolate -j flow show dev %s qpn %u | grep -q '%s'",
		 device, qpn, reason);
	return !system(line);
}

/* A process says why it does not govern a queue pair, of its own only. */
static bool reporting(void)
{
	struct share s = share_open_qp(), other = share_join();
	__u32 class = RISO_CLASS_BY_RULE;
	__u32 qpn = s.qp->qp_num;
	int fd = share_open_file();
	bool ok;

	ok = has_reason(qpn, "\"user-qp\"") &&
	     report(fd, "no-such", qpn, RISO_REASON_MEMORY) == ENODEV &&
	     report(fd, device, 1, RISO_REASON_MEMORY) == ENOENT &&
	     report(fd, device, 0xfffffe, RISO_REASON_MEMORY) == ENOENT &&
	     report(fd, device, qpn, RISO_REASON_DISABLED) == EINVAL &&
	     report(fd, device, qpn, 1000) == EINVAL &&
	     ioctl(fd, RISO_IOC_REPORT, NULL) == -1 && errno == EFAULT &&
	     !report(fd, device, qpn, RISO_REASON_NO_CQ_ROOM) &&
	     has_reason(qpn, "\"no-cq-room\"") &&
	     !report(fd, device, qpn, RISO_REASON_SHIM_LIMIT) &&
	     has_reason(qpn, "\"shim-limit\"") &&
	     !report(fd, device, qpn, RISO_REASON_NONE) && has_reason(qpn, "\"user-qp\"") &&
	     !report(fd, device, qpn, RISO_REASON_NO_THREAD) &&
	     !share_register(other.fd, qpn, &class) && has_reason(qpn, "\"none\"");
	/* A second file of the process changes nothing. */
	qpn = other.qp->qp_num;
	ok = ok && !report(fd, device, qpn, RISO_REASON_NO_THREAD) &&
	     share_attach(fd, device, RISO_USER_VERSION, qpn) == EBUSY &&
	     has_reason(qpn, "\"no-thread\"");
	close(fd);
	share_leave(&other);
	share_close_qp(&s);
	return ok;
}

/* How many events of the queue pair there were; is @reason what the last one says? */
static unsigned int count_events(__u32 qpn, const char *reason, bool *last)
{
	FILE *file = fopen(events, "r");
	char who[32], *line = NULL;
	unsigned int num = 0;
	size_t size = 0;

	if (!file)
		err(1, "%s", events);
	snprintf(who, sizeof(who), "\"qpn\":%u,", qpn);
	for (*last = false; getline(&line, &size, file) > 0; ) {
		if (!strstr(line, who))
			continue;
		*last = strstr(line, reason);
		num++;
	}
	free(line);
	fclose(file);
	return num;
}

/* Who says something else all the time is not told of each time, but of the last. */
static bool reporting_much(void)
{
	static const __u32 reasons[] = { RISO_REASON_MEMORY, RISO_REASON_NO_THREAD };
	struct share s = share_open_qp();
	__u64 began = share_now(), most;
	unsigned int i, num = 0;
	int fd = share_open_file();
	bool ok = true, last = false;

	for (i = 0; ok && i < 20000; i++)
		ok = !report(fd, device, s.qp->qp_num, reasons[i % 2]);
	ok = ok && !report(fd, device, s.qp->qp_num, RISO_REASON_SHIM_LIMIT);
	for (i = 0; ok && !last && i < 200; i++) {
		usleep(50000);
		num = count_events(s.qp->qp_num, "\"shim-limit\"", &last);
	}
	/* The first one, a hundred at once, and as many in a second */
	most = 102 + (share_now() - began) / 10000000;
	ksft_print_msg("%u events, at most %llu\n", num, (unsigned long long)most);
	close(fd);
	share_close_qp(&s);
	return ok && last && num > 100 && num <= most;
}

/*
 * Of many queue pairs whose process says something else at once, not all can be told of for
 * seconds. A few of them are looked at meanwhile, 100 times a second.
 */
static bool owing_much(void)
{
	static struct ibv_qp *qp[600];
	struct share s = share_open_qp();
	unsigned long long looks, most;
	int fd = share_open_file();
	bool ok = true, last;
	__u64 began;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(qp); i++) {
		qp[i] = s.qp;
		share_make_qp(&s);
	}
	for (i = 0; ok && i < ARRAY_SIZE(qp); i++)
		ok = !report(fd, device, qp[i]->qp_num, RISO_REASON_NO_CQ_ROOM);
	start_counting("riso_rate_take");
	began = share_now();
	sleep(1);
	looks = stop_counting();
	most = 32 * ((share_now() - began) / 10000000 + 2);
	ksft_print_msg("%llu looks, at most %llu\n", looks, most);
	ok = ok && looks && looks <= most;
	for (i = 0, last = false; ok && !last && i < 200; i++) {
		usleep(100000);
		count_events(qp[ARRAY_SIZE(qp) - 1]->qp_num, "\"no-cq-room\"", &last);
	}
	for (i = 0; i < ARRAY_SIZE(qp); i++)
		ibv_destroy_qp(qp[i]);
	close(fd);
	share_close_qp(&s);
	return ok && last;
}

/* Are listeners told of the queue pair, soon? Then they were of what was before. */
static bool is_told_of(__u32 qpn)
{
	bool unused;
	int n;

	for (n = 0; n < 200 && !count_events(qpn, "", &unused); n++)
		usleep(100000);
	return n < 200;
}

/* How many events of queue pairs of this process there were */
static unsigned int count_own_events(void)
{
	FILE *file = fopen(events, "r");
	char who[32], *line = NULL;
	unsigned int num = 0;
	size_t size = 0;

	if (!file)
		err(1, "%s", events);
	snprintf(who, sizeof(who), "\"pid\":%d,", getpid());
	while (getline(&line, &size, file) > 0)
		num += strstr(line, "\"event\":\"flow") && strstr(line, who);
	free(line);
	fclose(file);
	return num;
}

/* Nor is told of each queue pair that is made and destroyed, but of the last. */
static bool making_many(void)
{
	struct share s = share_open_qp();
	unsigned int i, num, most;
	bool ok = is_told_of(s.qp->qp_num);
	__u64 began;

	num = count_own_events();
	began = share_now();
	for (i = 0; i < 2000; i++) {
		ibv_destroy_qp(s.qp);
		share_make_qp(&s);
	}
	ok = is_told_of(s.qp->qp_num) && ok;
	most = 102 + (share_now() - began) / 10000000;
	num = count_own_events() - num;
	ksft_print_msg("%u events, at most %u\n", num, most);
	share_close_qp(&s);
	return ok && num && num <= most;
}

/* Nobody waits for what a program does with completion queues, or changes again and again. */
static bool changing_little(void)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 1 };
	struct share s = share_open_qp();
	unsigned long long forgotten, runs;
	bool ok = true;
	int i;

	share_connect_qp(&s);
	start_counting("riso_comp_cq_destroyed");
	for (i = 0; ok && i < 100; i++)
		ok = !ibv_destroy_cq(ibv_create_cq(s.context, 1, NULL, NULL, 0));
	forgotten = stop_counting();
	start_counting("riso_arb_run");
	for (i = 0; ok && i < 1000; i++)
		ok = !ibv_modify_qp(s.qp, &attr, IBV_QP_MIN_RNR_TIMER);
	runs = stop_counting();
	share_close_qp(&s);
	ksft_print_msg("%llu completion queues forgotten, %llu runs\n", forgotten, runs);
	return ok && !forgotten && runs < 500;
}

/* In another network namespace, which does not have the device */
static int moves_away(struct share *unused)
{
	struct share s = share_open_qp();
	int fd = share_open_file();

	(void)unused;
	if (unshare(CLONE_NEWNET))
		return 1;
	return share_attach(fd, device, RISO_USER_VERSION, s.qp->qp_num) != ENODEV ||
	       report(fd, device, s.qp->qp_num, RISO_REASON_MEMORY) != ENODEV;
}

static bool moving_away(void)
{
	pid_t pid;

	return !in_child(moves_away, NULL, &pid);
}

static bool refuses(int fd, int prot, int flags, size_t size, off_t offset, int error)
{
	void *p = share_map(fd, prot, flags, size, offset);

	if (p != MAP_FAILED)
		munmap(p, size);
	return p == MAP_FAILED && errno == error;
}

static bool mapping(void)
{
	struct share s = share_join();
	bool ok;

	ok = refuses(s.fd, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0, EACCES) &&
	     refuses(s.fd, PROT_READ, MAP_PRIVATE, page, 0, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_PRIVATE, page, 1, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_SHARED, 2 * page, 0, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_SHARED, page, 2, EINVAL) &&
	     share_map(s.fd, PROT_READ | PROT_EXEC, MAP_SHARED, page, 1) == MAP_FAILED &&
	     mprotect((void *)s.k, page, PROT_READ | PROT_WRITE) && errno == EACCES &&
	     mremap(s.u, page, 2 * page, MREMAP_MAYMOVE) == MAP_FAILED &&
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
	if (share_map(s->fd, PROT_READ, MAP_SHARED, page, 0) != MAP_FAILED || errno != EPERM)
		return 2;
	if (!mincore(s->u, page, &in_core) || !mincore((void *)s->k, page, &in_core))
		return 3;
	return 0;
}

static int shares_memory(void *arg)
{
	const struct share *s = arg;

	return share_wait(s, 0) != EPERM ||
	       share_map(s->fd, PROT_READ, MAP_SHARED, page, 0) != MAP_FAILED;
}

/* A child, and one that has all of its parent but is another process */
static bool forking(void)
{
	static max_align_t stack[4096];
	struct share s = share_join();
	pid_t pid;
	int status = in_child(child_uses, &s, &pid);
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
static bool passing(void)
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
		      share_map(got.fd, PROT_READ, MAP_SHARED, page, 0) != MAP_FAILED ||
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

/* A page that is not there until this program gives it, and then not to be written to */
static void *absent;
static int faults;

static bool make_absent(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	struct uffdio_register r = {
		.range = { .len = page },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};

	absent = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	r.range.start = (uintptr_t)absent;
	return absent != MAP_FAILED && faults >= 0 && !ioctl(faults, UFFDIO_API, &api) &&
	       !ioctl(faults, UFFDIO_REGISTER, &r);
}

static bool give_absent(void *content)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)absent,
		.src = (uintptr_t)content,
		.len = page,
		.mode = UFFDIO_COPY_MODE_WP,
	};

	return !ioctl(faults, UFFDIO_COPY, &copy);
}

static bool let_write_absent(void)
{
	struct uffdio_writeprotect w = { .range = { (uintptr_t)absent, page } };

	return !ioctl(faults, UFFDIO_WRITEPROTECT, &w);
}

/* Does somebody wait for the page, soon? */
static bool is_awaited(void)
{
	struct pollfd p = { .fd = faults, .events = POLLIN };
	struct uffd_msg msg;

	return poll(&p, 1, 10000) == 1 && read(faults, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_PAGEFAULT;
}

/* A process that has @fd, too, and closes it when @tell is closed */
static pid_t start_holder(int fd, int *tell)
{
	int ends[2];
	char byte;
	pid_t pid;

	if (pipe(ends))
		err(1, "pipe");
	pid = fork();
	if (!pid) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) || close(fd));
	}
	close(ends[0]);
	*tell = ends[1];
	return pid;
}

/* Does it end well, soon? */
static bool ends_soon(pid_t pid)
{
	int n, status;

	for (n = 0; n < 1000; n++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return !status;
		usleep(10000);
	}
	return false;
}

static void *register_absent(void *file)
{
	return (void *)(long)ioctl(*(int *)file, RISO_IOC_REGISTER, absent);
}

static void *close_another(void *file)
{
	return (void *)(long)close(dup(*(int *)file));
}

/* Does a thread that closes the file in its own process end soon? Its process waits. */
static bool closes_soon(int *file, pthread_t *thread)
{
	struct timespec end;

	if (pthread_create(thread, NULL, close_another, file))
		err(1, "thread");
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	return !pthread_timedjoin_np(*thread, NULL, &end);
}

/*
 * The kernel waits for memory of a call, to read it and then to write to it. Whoever
 * closes the file meanwhile does not wait: another process at first, and then its own.
 */
static bool closing(void)
{
	struct riso_ioc_register *r = calloc(1, page);
	struct share s = share_join();
	pthread_t caller, closer;
	bool ok, other, own;
	void *failed;
	pid_t pid;
	int tell;

	pid = start_holder(s.fd, &tell);
	if (!r || !make_absent())
		err(1, "userfaultfd");
	r->qpn = s.qp->qp_num;
	r->class = RISO_CLASS_BY_RULE;
	if (pthread_create(&caller, NULL, register_absent, &s.fd))
		err(1, "thread");
	ok = is_awaited();
	close(tell);
	other = ends_soon(pid);
	ok = give_absent(r) && is_awaited() && ok;
	own = closes_soon(&s.fd, &closer);
	ok = let_write_absent() && ok;
	pthread_join(caller, &failed);
	if (!other)
		waitpid(pid, NULL, 0);
	if (!own)
		pthread_join(closer, NULL);
	ksft_print_msg("the other process %s, its own %s\n", other ? "closed it" : "waited",
		       own ? "closed it" : "waited");
	close(faults);
	munmap(absent, page);
	share_leave(&s);
	free(r);
	return ok && other && own && !failed;
}

/* Its process may close it again and again: others wait for that once. */
static bool closing_on(void)
{
	struct share s = share_join();
	unsigned long long hits;
	int n;

	start_counting("riso_flow_dismiss");
	for (n = 0; n < 1000; n++)
		close(dup(s.fd));
	hits = stop_counting();
	share_leave(&s);
	ksft_print_msg("dismissed %llu times\n", hits);
	return hits == 1;
}

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
			error = fd < 0 ? errno : share_attach(fd, device, RISO_USER_VERSION,
							s.qp->qp_num);
		if (error && error != EMFILE && !has_reason(s.qp->qp_num, "\"no-place\""))
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

/* Make this process and its children members of a control group. */
static bool enter_cgroup(const char *name)
{
	char line[256];

	snprintf(line, sizeof(line), "mkdir -p %s/%s && echo %d >%s/%s/cgroup.procs",
		 cgroups, name, getpid(), cgroups, name);
	return !system(line);
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
static bool many_places(void)
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

/* It takes part, and leaves; an errno or 0 */
static int join_once(const struct share *s)
{
	int fd = share_open_file();
	int error = share_attach(fd, device, RISO_USER_VERSION, s->qp->qp_num);

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
static bool joining_anew(void)
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
		     has_reason(s.qp->qp_num, "\"no-place\"");
		refused = count_refused(&s, 4321);
		ksft_print_msg("%d times, then %s; %u others refused\n", n, strerror(error),
			       refused);
		_exit(!ok || refused);
	}
	waitpid(pid, &status, 0);
	return !status;
}

/* Run @fn in a child that has a control group as the root of its namespace. */
static int in_container(int (*fn)(struct share *))
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(!enter_cgroup("container") || unshare(CLONE_NEWCGROUP) ||
		      fn(NULL));
	waitpid(pid, &status, 0);
	return status;
}

static int fill_container(struct share *unused)
{
	static pid_t pid[512];
	int n, error, other;
	bool ok;

	(void)unused;
	ok = enter_cgroup("container/a");
	n = take_places(65500, 2, pid, 100, &error);
	ok = ok && !error && enter_cgroup("container/b");
	n += take_places(65500, 2, pid + n, ARRAY_SIZE(pid) - n - 1, &error);
	ok = ok && enter_cgroup("other") && !unshare(CLONE_NEWCGROUP);
	other = take_place(65510, &pid[n]);
	give_back(pid, n + 1);
	ksft_print_msg("%d places, then %s, of another container %s\n", n - 1,
		       strerror(error), strerror(other));
	return !(ok && error == EDQUOT && n - 1 == 256 && !other);
}

/* ... or the users of one container, in however many control groups below its own, ... */
static bool many_places_of_container(void)
{
	return !in_container(fill_container);
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
static bool many_places_of_root(void)
{
	return !in_container(fill_as_root);
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
static bool many_places_of_namespace(void)
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

static bool registering(void)
{
	__u32 class = RISO_CLASS_BY_RULE, again = class, other = class;
	__u32 wish = RISO_CLASS_LATENCY, wrong = 3;
	struct share s = share_join();
	__u32 qpn = s.qp->qp_num;
	bool ok;

	ok = !share_register(s.fd, qpn, &class) && class == RISO_CLASS_BANDWIDTH &&
	     !share_register(s.fd, qpn, &again) && again == class &&
	     share_register(s.fd, qpn, &wish) == EPERM &&
	     share_register(s.fd, qpn, &wrong) == EINVAL &&
	     share_register(s.fd, 1, &other) == ENOENT &&
	     share_register(s.fd, 0xfffffe, &other) == ENOENT;
	/* Without a queue pair there are no grants, ... */
	ibv_destroy_qp(s.qp);
	ok = ok && share_register(s.fd, qpn, &other) == ENOENT;
	s.u->dir[0].want = 4096;
	ok = ok && !share_wait(&s, 100000) && !s.k->dir[0].seq;
	/* ... nor with one that cannot send yet. */
	share_make_qp(&s);
	ok = ok && !share_register(s.fd, s.qp->qp_num, &other) && !share_wait(&s, 100000) &&
	     !s.k->dir[0].seq;
	share_connect_qp(&s);
	while (ok && !s.k->dir[0].seq)
		ok = !share_wait(&s, 100000);
	share_leave(&s);
	return ok;
}

/* As many as one user may have, and after that as before. */
static bool many_files(void)
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

static bool many_files_of_container(void)
{
	return !in_container(fill_files);
}

/* Who takes the mutex of the device all the time has to wait. */
static bool registering_on(void)
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
static bool calling(void)
{
	unsigned long long hits, most;
	struct share s = share_join();
	unsigned int calls = 0;
	__u64 began, end;
	bool ok = true;

	start_counting("riso_arb_ask");
	for (; ok && calls < 10000; calls++)
		ok = !share_wait(&s, 0);
	hits = stop_counting();
	ksft_print_msg("wants nothing: %llu looks in %u calls\n", hits, calls);
	ok = ok && !hits;

	/* It says that it has posted, so that it is listened to, and takes no grant. */
	s.u->dir[0].want = 1 << 20;
	start_counting("riso_arb_ask");
	began = share_now();
	end = began + 1000000000;
	for (calls = 0; ok && share_now() < end; calls++) {
		s.u->dir[0].posted += 1 << 16;
		ok = !share_wait(&s, 0);
	}
	hits = stop_counting();
	most = (share_now() - began) / 20000 + 16;
	ksft_print_msg("wants much: %llu looks in %u calls, at most %llu\n", hits, calls, most);
	share_leave(&s);
	return ok && hits && hits <= most;
}

/* --- what is given --- */

/* A grant of one whole chunk, so that nothing is left over for another. */
static bool is_chunk(const struct riso_kpage *k, __u64 bytes)
{
	__u32 mtu;

	for (mtu = 1024; mtu <= 4096; mtu *= 2)
		if (bytes == riso_wire_bytes(k->dir[0].chunk, mtu, k->header) +
			     RISO_MESSAGE_HEADER)
			return true;
	return false;
}

/* No more than the device sends, and at least some. */
static bool granting(void)
{
	struct share s = share_join();
	__u64 began = share_now(), bytes, most;
	bool ok;

	bytes = share_take(&s, 1000000000, true);
	/* Grants that are ahead, and what came before. */
	most = (share_now() - began) * rate / 1000000000 + (1 << 20);
	ksft_print_msg("%llu bytes of %llu\n", (unsigned long long)bytes,
		       (unsigned long long)most);
	ok = s.k->mode == RISO_USER_PACED && s.k->dir[0].chunk && bytes &&
	     bytes <= most && is_chunk(s.k, s.k->dir[0].grant[0].bytes) &&
	     !is_named(getpid(), "");
	share_leave(&s);
	return ok;
}

/* What was posted while nobody looked is nobody's lie, and is not charged. */
static bool idling(void)
{
	const __u64 much = 1ull << 40;
	struct share s;
	bool ok;

	ok = !configure("mode disable");
	s = share_join();
	s.u->dir[0].posted = much;
	s.u->dir[0].done = much;
	ok = ok && !configure("mode enable") && share_take(&s, 500000000, true) &&
	     !configure("mode disable");
	s.u->dir[0].posted += much;
	s.u->dir[0].done += much;
	share_leave(&s);
	ok = !configure("mode enable") && ok;
	usleep(500000);
	return ok && !is_named(getpid(), "counters");
}

/* A grant by a clock that is 1000 s ahead of the others' */
static int gets_one(struct share *unused)
{
	struct share s = share_join();
	const struct riso_kdir *k = &s.k->dir[0];
	__s64 left;

	(void)unused;
	s.u->dir[0].want = 1 << 20;
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
	return in_child(gets_one, unused, &pid) != 0;
}

static bool timing(void)
{
	pid_t pid;

	return !in_child(another_time, NULL, &pid);
}

/* Whoever wants a byte gets a 16th of what one turn has: 50 us at this rate. */
static bool wishing(void)
{
	struct share s = share_join();
	__u64 bytes;
	bool ok;

	ok = !configure("max-rate 100gbit safe-util 100gbit chunk 4k");
	s.u->dir[0].want = 1;
	while (ok && !s.k->dir[0].seq)
		ok = !share_wait(&s, 100000);
	bytes = s.k->dir[0].grant[1].bytes;
	ksft_print_msg("%llu bytes\n", (unsigned long long)bytes);
	share_leave(&s);
	return !configure(USUAL) && ok && bytes <= 12500000000 / 20000 / 16 &&
	       bytes > 12500000000 / 20000 / 17;
}

/* 1 if no other comes before a grant is void, -1 if this was too late to tell */
static int voids(void)
{
	struct share s = share_join();
	const struct riso_kdir *k = &s.k->dir[0];
	int ret = -1;
	__u64 void_ns;

	s.u->dir[0].want = 1 << 30;
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
static bool voiding(void)
{
	int ret = -1, i;

	for (i = 0; ret < 0 && i < 100; i++)
		ret = voids();
	return ret > 0;
}

static bool stop;

static void *scribble(void *arg)
{
	struct share *s = arg;
	unsigned int seed = 1;
	__u32 *word = (__u32 *)s->u;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		word[rand_r(&seed) % (sizeof(*s->u) / 4)] =
			rand_r(&seed) & 1 ? rand_r(&seed) : -(rand_r(&seed) % 3);
	return NULL;
}

static int liar(struct share *unused)
{
	struct share s = share_join();
	pthread_t thread;

	(void)unused;
	pthread_create(&thread, NULL, scribble, &s);
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED))
		share_wait(&s, 100);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return 0;
}

/* It says that it has posted more than there is. */
static int boaster(struct share *unused)
{
	struct share s = share_join();

	(void)unused;
	s.u->dir[0].want = 1;
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED)) {
		s.u->dir[0].posted += 1ull << 34;
		s.u->dir[0].debt += 1ull << 34;
		s.u->dir[0].taken = s.k->dir[0].seq;
		share_wait(&s, 0);
		usleep(1000);
	}
	return 0;
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
static bool waiting(void)
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

	snprintf(word, sizeof(word), "rdma-isolate -j group show dev %s", device);
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
static __u64 compare_books(struct share *s, pid_t other, unsigned int seconds,
			   __u64 *mine, __u64 *its)
{
	__u64 *seen = mmap(NULL, page, PROT_READ | PROT_WRITE,
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
	munmap(seen, page);
	return got;
}

/* Children that go on until there is enough */
static void start_all(int (*fn)(struct share *), pid_t *pid, unsigned int num)
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
static bool stop_all(const pid_t *pid, unsigned int num)
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

/*
 * Beside a process that writes anything, another one has its half, or nearly: it has
 * to wake up for its grants, which takes time where the processors are busy.
 */
static bool has_half_beside(int (*fn)(struct share *), const char *fault)
{
	__u64 mine[2], its[2], got;
	struct share s;
	pid_t pid;
	bool ok;

	s = share_join();
	start_all(fn, &pid, 1);
	got = compare_books(&s, pid, 3, mine, its);
	ok = stop_all(&pid, 1);
	ksft_print_msg("%llu ns, and the other %llu ns\n", (unsigned long long)mine[1],
		       (unsigned long long)its[1]);
	share_leave(&s);
	return ok && got && mine[1] * 4 >= mine[1] + its[1] &&
	       (!fault || named(pid, fault));
}

static bool lying(void)
{
	return has_half_beside(liar, "counters");
}

static bool boasting(void)
{
	return has_half_beside(boaster, "counters");
}

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
		error = share_attach(fd, device, RISO_USER_VERSION, s.qp->qp_num);
		if (error && error != EDQUOT)
			return 1;
		if (error) {
			close(fd);
			usleep(200);
			continue;
		}
		u = share_map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, page, RISO_USER_UPAGE);
		if (u == MAP_FAILED)
			return 1;
		for (dir = 0; dir < RISO_USER_DIRS; dir++) {
			u->dir[dir].posted = 4ull << 30;
			u->dir[dir].debt = 4ull << 30;
		}
		munmap(u, page);
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
	start_all(fn, pid, ARRAY_SIZE(pid));
	beside = share_take(&s, 1500000000, true);
	ok = stop_all(pid, ARRAY_SIZE(pid));
	ksft_print_msg("%llu bytes alone, %llu beside them\n", (unsigned long long)alone,
		       (unsigned long long)beside);
	share_leave(&s);
	return ok && beside * part >= alone;
}

/*
 * Do eight such processes leave this one what one honest process leaves it, nineteen
 * twentieths of that at least?
 */
static bool keeps_beside_eight(int (*fn)(struct share *))
{
	struct share s = share_join();
	__u64 beside_one, beside_eight;
	pid_t pid[8];
	bool ok;

	start_all(share_rival, pid, 1);
	share_take(&s, 200000000, true);
	beside_one = share_take(&s, 1500000000, true);
	ok = stop_all(pid, 1);
	start_all(fn, pid, ARRAY_SIZE(pid));
	share_take(&s, 200000000, true);
	beside_eight = share_take(&s, 1500000000, true);
	ok = stop_all(pid, ARRAY_SIZE(pid)) && ok;
	ksft_print_msg("%llu bytes beside an honest one, %llu beside eight of these\n",
		       (unsigned long long)beside_one, (unsigned long long)beside_eight);
	share_leave(&s);
	return ok && beside_eight * 20 >= beside_one * 19;
}

static bool strangers(void)
{
	return keeps_beside(stranger, 3);
}

/* Of the half that debt leaves, each has its share, and they have had theirs. */
static bool claiming(void)
{
	return keeps_beside(share_claim, 6);
}

/* It takes a grant that was never given. */
static int thief(struct share *unused)
{
	struct share s = share_join();

	(void)unused;
	s.u->dir[0].taken = 7;
	return share_wait(&s, 0);
}

static bool grasping(void)
{
	return has_half_beside(share_grasp, NULL);
}

/* It wants something, and then has no pages any more. It calls, and then not even that. */
static int unmapper(struct share *unused)
{
	__u64 end = share_now() + 1500000000;
	struct share s = share_join();
	struct share blind = { .fd = s.fd, .k = &(struct riso_kpage) { } };

	(void)unused;
	s.u->dir[0].want = 1 << 30;
	share_wait(&s, 0);
	munmap((void *)s.k, page);
	munmap(s.u, page);
	while (!__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED)) {
		if (share_now() < end)
			share_wait(&blind, 0);
		usleep(1000);
	}
	return 0;
}

static bool grasping_eight(void)
{
	return keeps_beside_eight(share_grasp) && keeps_beside_eight(share_grasp_mute);
}

static bool claiming_eight(void)
{
	return keeps_beside_eight(share_claim);
}

/* One that posted nothing for a while, and then posts, has its share again. */
static bool waking_up(void)
{
	struct share s = share_join();
	__u64 idle, after;
	pid_t pid;
	bool ok;

	start_all(share_rival, &pid, 1);
	share_take(&s, 1000000000, false);
	idle = share_take(&s, 1000000000, false);
	s.u->dir[0].posted += s.k->dir[0].grant[s.k->dir[0].seq % 2].bytes;
	after = share_take(&s, 200000000, true) + share_take(&s, 1500000000, true);
	ok = stop_all(&pid, 1);
	ksft_print_msg("%llu bytes while it posts nothing, %llu then\n",
		       (unsigned long long)idle, (unsigned long long)after);
	share_leave(&s);
	return ok && idle < rate / 100 && after > rate / 4;
}

/* A process alone in its control group, which counts what it has beside the eight */
static int lone(struct share *unused)
{
	double ratio;
	__u64 mine, theirs;
	struct share s;

	(void)unused;
	if (!enter_cgroup("lone"))
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
	return !stop_all(pid, ARRAY_SIZE(pid));
}

/* Each in a control group of its own */
static bool enter_own_cgroup(void)
{
	char name[32];

	snprintf(name, sizeof(name), "eight-%d", getpid());
	return enter_cgroup(name);
}

static int eight_of_cgroup(struct share *unused)
{
	(void)unused;
	return !enter_cgroup("eight") || run_eight(share_rival);
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

	return unshare(CLONE_NEWPID) || in_child(eight_in_container, unused, &pid);
}

/* With share cgroup, do eight such processes have what one of another group has? */
static bool shares_one(int (*eight)(struct share *))
{
	bool ok = !configure("share cgroup");
	pid_t pid, one;

	start_all(eight, &pid, 1);
	ok = !in_child(lone, NULL, &one) && ok;
	ok = stop_all(&pid, 1) && ok;
	return !configure("share process") && ok;
}

/* They are of one control group, ... */
static bool sharing(void)
{
	return shares_one(eight_of_cgroup);
}

/* ... or one user has made them groups of their own, ... */
static bool sharing_by_user(void)
{
	return shares_one(eight_of_user);
}

/* ... or they have made them, and namespaces, inside a container. */
static bool sharing_by_container(void)
{
	return shares_one(eight_of_container);
}

static bool unmapping(void)
{
	return has_half_beside(unmapper, "unspent");
}

/* What it posted as debt while nobody else was there does not count beside four later. */
static bool has_owed(void)
{
	__u64 mine[2], its[2], end;
	struct share s = share_join();
	pid_t pid[4];
	bool ok;

	/* One chunk for each slice is allowed, half of the device. */
	for (end = share_now() + 3000000000; share_now() < end; usleep(1000)) {
		s.u->dir[0].posted += 1 << 20;
		s.u->dir[0].debt += 1 << 20;
		share_wait(&s, 0);
	}
	start_all(share_rival, pid, ARRAY_SIZE(pid));
	compare_books(&s, pid[0], 2, mine, its);
	ok = stop_all(pid, ARRAY_SIZE(pid));
	share_leave(&s);
	ksft_print_msg("%llu ns of debt, then %llu ns, and one of the others %llu ns\n",
		       (unsigned long long)mine[0], (unsigned long long)mine[1],
		       (unsigned long long)its[1]);
	return ok && mine[0] > 500000000 && mine[1] * 2 >= its[1];
}

static bool stealing(void)
{
	pid_t pid;

	return !in_child(thief, NULL, &pid) && named(pid, "taken");
}

static bool hoarding(void)
{
	pid_t pid;
	bool ok;

	start_all(share_grasp, &pid, 1);
	ok = named(pid, "unspent");
	return stop_all(&pid, 1) && ok;
}

/*
 * One that is stopped with its grants is given hardly any others, also where each is void
 * before its next turn.
 */
static bool stopping(void)
{
	pid_t pid, other[12];
	struct share s;
	__u64 beside;
	int status;
	bool ok;

	start_all(share_rival, other, ARRAY_SIZE(other));
	s = share_join();
	pid = fork();
	if (!pid) {
		struct share c = share_join();

		c.u->dir[0].want = 1 << 30;
		share_wait(&c, 1000000);
		raise(SIGSTOP);
		_exit(c.k->dir[0].seq);
	}
	waitpid(pid, &status, WUNTRACED);
	beside = share_take(&s, 2000000000, true);
	ok = named(pid, "stopped");
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	ok = stop_all(other, ARRAY_SIZE(other)) && ok;
	share_leave(&s);
	ksft_print_msg("%d grants, %llu bytes beside it\n", WEXITSTATUS(status),
		       (unsigned long long)beside);
	return WIFEXITED(status) && WEXITSTATUS(status) <= 4 && beside && ok;
}

static int killed(int state)
{
	struct share s = share_open_qp();
	int fd;

	fd = share_open_file();
	if (state == 0)
		raise(SIGKILL);
	if (share_attach(fd, device, RISO_USER_VERSION, s.qp->qp_num))
		return 1;
	if (state == 1)
		raise(SIGKILL);
	close(fd);
	share_connect_qp(&s);
	share_take_part(&s);
	s.u->dir[0].want = 1 << 30;
	s.u->dir[1].want = 1 << 30;
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
		s->u->dir[0].posted += 1 << 16;
		s->u->dir[0].done += 1 << 16;
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
static bool killing(void)
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
static bool killing_open(void)
{
	bool ok = !configure("chunk 0");
	pid_t pid;

	start_all(poster, &pid, 1);
	ok = ok && killing();
	ok = stop_all(&pid, 1) && ok;
	return !configure(USUAL) && ok;
}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "attach", attaching },
	{ "report", reporting },
	{ "many reports", reporting_much },
	{ "reports of many", owing_much },
	{ "many queue pairs, one after another", making_many },
	{ "little changes", changing_little },
	{ "another network namespace", moving_away },
	{ "map", mapping },
	{ "fork", forking },
	{ "passed through a socket", passing },
	{ "closed while a call waits for memory", closing },
	{ "closed again and again", closing_on },
	{ "register", registering },
	{ "many files", many_files },
	{ "many files of a container", many_files_of_container },
	{ "many places of a user", many_places },
	{ "many places of a container", many_places_of_container },
	{ "many places of root of a container", many_places_of_root },
	{ "many places of a user namespace", many_places_of_namespace },
	{ "one that joins anew", joining_anew },
	{ "one that registers without end", registering_on },
	{ "calls without a reason", calling },
	{ "grants", granting },
	{ "posts while idle", idling },
	{ "another clock", timing },
	{ "a small wish", wishing },
	{ "void grants", voiding },
	{ "waiting", waiting },
	{ "a liar", lying },
	{ "a boaster", boasting },
	{ "three without queue pairs that boast", strangers },
	{ "three that claim as much as they can", claiming },
	{ "one that has owed", has_owed },
	{ "one that wants without end", grasping },
	{ "eight that take grants and post nothing", grasping_eight },
	{ "eight that claim as much as they can", claiming_eight },
	{ "one that posts again", waking_up },
	{ "eight of one control group", sharing },
	{ "eight control groups of one user", sharing_by_user },
	{ "eight control groups of one container", sharing_by_container },
	{ "one that unmaps its pages", unmapping },
	{ "a thief", stealing },
	{ "a hoarder", hoarding },
	{ "one that is stopped", stopping },
	{ "200 that are killed", killing },
	{ "200 that are killed, nothing is cut", killing_open },
};

int main(int argc, char **argv)
{
	struct rlimit files = { 16384, 16384 };
	unsigned int i;

	if (argc != 5)
		errx(2, "usage: user_pages DEVICE RATE EVENTS CGROUPS");
	device = argv[1];
	rate = strtoull(argv[2], NULL, 10);
	events = argv[3];
	cgroups = argv[4];
	page = sysconf(_SC_PAGESIZE);
	setrlimit(RLIMIT_NOFILE, &files);
	share_init(device);
	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(cases));
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		ksft_test_result(cases[i].run(), "%s\n", cases[i].name);
	ksft_finished();
}
