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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>
#include "../kmod/chunk.h"
#include "kselftest.h"

/* A process that takes part, with a queue pair that posts nothing. */
struct share {
	int fd;
	const struct riso_kpage *k;
	struct riso_upage *u;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

/* Settings between cases */
#define USUAL "max-rate 400mbit safe-util 400mbit chunk 64k"

static const char *device, *events, *cgroups;
static __u64 rate;
static size_t page;

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int open_file(void)
{
	return open(RISO_USER_FILE, O_RDWR | O_CLOEXEC);
}

static int attach(int fd, const char *dev, __u32 version, __u32 qpn)
{
	struct riso_ioc_attach a = { .version = version, .qpn = qpn };

	memcpy(a.dev, dev, strnlen(dev, sizeof(a.dev)));
	return ioctl(fd, RISO_IOC_ATTACH, &a) ? errno : 0;
}

static int reg(int fd, __u32 qpn, __u32 *class)
{
	struct riso_ioc_register r = { .qpn = qpn, .class = *class };

	if (ioctl(fd, RISO_IOC_REGISTER, &r))
		return errno;
	*class = r.class;
	return 0;
}

static void *map(int fd, int prot, int flags, size_t size, off_t offset)
{
	return mmap(NULL, size, prot, flags, fd, offset * page);
}

static int wait_for(const struct share *s, __u32 timeout_us)
{
	struct riso_ioc_wait w = {
		.seq = { s->k->dir[0].seq, s->k->dir[1].seq },
		.mode = s->k->mode,
		.timeout_us = timeout_us,
	};

	return ioctl(s->fd, RISO_IOC_WAIT, &w) ? errno : 0;
}

static int report(int fd, const char *dev, __u32 qpn, __u32 reason)
{
	struct riso_ioc_report r = { .qpn = qpn, .reason = reason };

	memcpy(r.dev, dev, strnlen(dev, sizeof(r.dev)));
	return ioctl(fd, RISO_IOC_REPORT, &r) ? errno : 0;
}

static void open_device(struct share *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			s->context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	s->pd = s->context ? ibv_alloc_pd(s->context) : NULL;
	s->cq = s->pd ? ibv_create_cq(s->context, 1, NULL, NULL, 0) : NULL;
	if (!s->cq)
		err(1, "%s", device);
}

static void make_qp(struct share *s)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};

	s->qp = ibv_create_qp(s->pd, &attr);
	if (!s->qp)
		err(1, "queue pair");
}

/* To itself; it is in RTS then. */
static void connect_qp(struct share *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int error;

	error = ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = s->qp->qp_num,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 },
	};
	error = error ?: ibv_query_gid(s->context, 1, 1, &attr.ah_attr.grh.dgid) ?:
		ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	error = error ?: ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
						     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (error)
		errx(1, "queue pair: %s", strerror(error));
}

static void take_part(struct share *s)
{
	__u32 class = RISO_CLASS_BY_RULE;

	s->fd = open_file();
	if (s->fd < 0 || attach(s->fd, device, RISO_USER_VERSION, s->qp->qp_num))
		err(1, "%s", device);
	s->k = map(s->fd, PROT_READ, MAP_SHARED, page, RISO_USER_KPAGE);
	s->u = map(s->fd, PROT_READ | PROT_WRITE, MAP_SHARED, page, RISO_USER_UPAGE);
	if (s->k == MAP_FAILED || s->u == MAP_FAILED)
		err(1, "map");
	if (reg(s->fd, s->qp->qp_num, &class))
		err(1, "register");
}

static struct share open_qp(void)
{
	struct share s = { .fd = -1 };

	open_device(&s);
	make_qp(&s);
	return s;
}

static struct share join(void)
{
	struct share s = open_qp();

	connect_qp(&s);
	take_part(&s);
	return s;
}

static void close_qp(struct share *s)
{
	ibv_destroy_qp(s->qp);
	ibv_destroy_cq(s->cq);
	ibv_dealloc_pd(s->pd);
	ibv_close_device(s->context);
}

static void leave(struct share *s)
{
	close_qp(s);
	munmap((void *)s->k, page);
	munmap(s->u, page);
	close(s->fd);
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

/* --- what is refused --- */

static bool attaching(void)
{
	struct riso_ioc_wait w = { .timeout_us = 1 };
	int fd = open_file(), other = open_file();
	__u32 class = RISO_CLASS_BY_RULE;
	struct share s = open_qp();
	__u32 qpn = s.qp->qp_num;
	bool ok;

	ok = fd >= 0 && other >= 0 &&
	     ioctl(fd, RISO_IOC_WAIT, &w) == -1 && errno == ENOTCONN &&
	     reg(fd, 1, &class) == ENOTCONN &&
	     ioctl(fd, _IO(RISO_IOC_MAGIC, 9)) == -1 && errno == ENOTTY &&
	     ioctl(fd, RISO_IOC_ATTACH, NULL) == -1 && errno == EFAULT &&
	     attach(fd, device, RISO_USER_VERSION + 1, qpn) == EPROTONOSUPPORT &&
	     attach(fd, "no-such", RISO_USER_VERSION, qpn) == ENODEV &&
	     attach(fd, "a-name-that-has-no-end-and-fills-all-of-the-sixty-four-bytes-of-it",
		    RISO_USER_VERSION, qpn) == EINVAL &&
	     attach(fd, device, RISO_USER_VERSION, 1) == ENOENT &&
	     attach(fd, device, RISO_USER_VERSION, 0xfffffe) == ENOENT &&
	     !attach(fd, device, RISO_USER_VERSION, qpn) &&
	     attach(fd, device, RISO_USER_VERSION, qpn) == EBUSY &&
	     attach(other, device, RISO_USER_VERSION, qpn) == EBUSY;
	close(fd);
	ok = ok && !attach(other, device, RISO_USER_VERSION, qpn);
	close(other);
	close_qp(&s);
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
	struct share s = open_qp(), other = join();
	__u32 class = RISO_CLASS_BY_RULE;
	__u32 qpn = s.qp->qp_num;
	int fd = open_file();
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
	     !reg(other.fd, qpn, &class) && has_reason(qpn, "\"none\"");
	close(fd);
	leave(&other);
	close_qp(&s);
	return ok;
}

/* In another network namespace, which does not have the device */
static int moves_away(struct share *unused)
{
	struct share s = open_qp();
	int fd = open_file();

	(void)unused;
	if (unshare(CLONE_NEWNET))
		return 1;
	return attach(fd, device, RISO_USER_VERSION, s.qp->qp_num) != ENODEV ||
	       report(fd, device, s.qp->qp_num, RISO_REASON_MEMORY) != ENODEV;
}

static bool moving_away(void)
{
	pid_t pid;

	return !in_child(moves_away, NULL, &pid);
}

static bool refuses(int fd, int prot, int flags, size_t size, off_t offset, int error)
{
	void *p = map(fd, prot, flags, size, offset);

	if (p != MAP_FAILED)
		munmap(p, size);
	return p == MAP_FAILED && errno == error;
}

static bool mapping(void)
{
	struct share s = join();
	bool ok;

	ok = refuses(s.fd, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0, EACCES) &&
	     refuses(s.fd, PROT_READ, MAP_PRIVATE, page, 0, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_PRIVATE, page, 1, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_SHARED, 2 * page, 0, EINVAL) &&
	     refuses(s.fd, PROT_READ, MAP_SHARED, page, 2, EINVAL) &&
	     map(s.fd, PROT_READ | PROT_EXEC, MAP_SHARED, page, 1) == MAP_FAILED &&
	     mprotect((void *)s.k, page, PROT_READ | PROT_WRITE) && errno == EACCES &&
	     mremap(s.u, page, 2 * page, MREMAP_MAYMOVE) == MAP_FAILED &&
	     s.k->version == RISO_USER_VERSION;
	leave(&s);
	return ok;
}

static int child_uses(struct share *s)
{
	unsigned char in_core;

	struct share mine = { .fd = s->fd, .k = &(struct riso_kpage) { } };

	if (wait_for(&mine, 1) != EPERM)
		return 1;
	if (map(s->fd, PROT_READ, MAP_SHARED, page, 0) != MAP_FAILED || errno != EPERM)
		return 2;
	if (!mincore(s->u, page, &in_core) || !mincore((void *)s->k, page, &in_core))
		return 3;
	return 0;
}

static int shares_memory(void *arg)
{
	const struct share *s = arg;

	return wait_for(s, 0) != EPERM ||
	       map(s->fd, PROT_READ, MAP_SHARED, page, 0) != MAP_FAILED;
}

/* A child, and one that has all of its parent but is another process */
static bool forking(void)
{
	static max_align_t stack[4096];
	struct share s = join();
	pid_t pid;
	int status = in_child(child_uses, &s, &pid);
	bool ok = !status && !wait_for(&s, 0);

	pid = clone(shares_memory, stack + ARRAY_SIZE(stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
		    &s);
	ok = ok && waitpid(pid, &status, 0) == pid && !status && !wait_for(&s, 0);

	if (status)
		ksft_print_msg("child: %x\n", status);
	leave(&s);
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

		_exit(got.fd < 0 || wait_for(&got, 1) != EPERM ||
		      !ioctl(got.fd, RISO_IOC_ATTACH, &a) || errno != EPERM ||
		      map(got.fd, PROT_READ, MAP_SHARED, page, 0) != MAP_FAILED ||
		      errno != EPERM);
	}
	s = join();
	ok = send_file(ends[0], s.fd);
	waitpid(pid, &status, 0);
	ok = ok && !status && !wait_for(&s, 0);
	leave(&s);
	close(ends[0]);
	close(ends[1]);
	return ok;
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
		s = open_qp();
		fd = open_file();
		if (!error)
			error = fd < 0 ? errno : attach(fd, device, RISO_USER_VERSION,
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
	ok = ok && enter_cgroup("other");
	other = take_place(65510, &pid[n]);
	give_back(pid, n + 1);
	ksft_print_msg("%d places, then %s, of another control group %s\n", n - 1,
		       strerror(error), strerror(other));
	return !(ok && error == EDQUOT && n - 1 == 256 && !other);
}

/* ... or the users of one container, in however many control groups below its own, ... */
static bool many_places_of_container(void)
{
	return !in_container(fill_container);
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
	struct share s = join();
	__u32 qpn = s.qp->qp_num;
	bool ok;

	ok = !reg(s.fd, qpn, &class) && class == RISO_CLASS_BANDWIDTH &&
	     !reg(s.fd, qpn, &again) && again == class &&
	     reg(s.fd, qpn, &wish) == EPERM && reg(s.fd, qpn, &wrong) == EINVAL &&
	     reg(s.fd, 1, &other) == ENOENT && reg(s.fd, 0xfffffe, &other) == ENOENT;
	/* Without a queue pair there are no grants, ... */
	ibv_destroy_qp(s.qp);
	ok = ok && reg(s.fd, qpn, &other) == ENOENT;
	s.u->dir[0].want = 4096;
	ok = ok && !wait_for(&s, 100000) && !s.k->dir[0].seq;
	/* ... nor with one that cannot send yet. */
	make_qp(&s);
	ok = ok && !reg(s.fd, s.qp->qp_num, &other) && !wait_for(&s, 100000) &&
	     !s.k->dir[0].seq;
	connect_qp(&s);
	while (ok && !s.k->dir[0].seq)
		ok = !wait_for(&s, 100000);
	leave(&s);
	return ok;
}

/* As many as one user may have, and after that as before. */
static bool many_files(void)
{
	static int fds[10000];
	int n, i, error = 0;

	for (n = 0; n < (int)ARRAY_SIZE(fds); n++) {
		fds[n] = open_file();
		if (fds[n] < 0) {
			error = errno;
			break;
		}
	}
	for (i = 0; i < n; i++)
		close(fds[i]);
	i = open_file();
	close(i);
	ksft_print_msg("%d files\n", n);
	return error == EMFILE && n >= 256 && n < 10000 && i >= 0;
}

#define TRACING "/sys/kernel/tracing/"

/* How often the arbiter was asked since it is counted; 0 turns that off. */
static unsigned long long count_asks(bool on)
{
	unsigned long long hits = 0;
	char name[64] = "";
	FILE *f;

	if (on) {
		if (system("echo 'p:riso/ask riso_arb_ask' >" TRACING "kprobe_events") ||
		    system("echo 1 >" TRACING "events/riso/ask/enable"))
			errx(1, "kprobes");
		return 0;
	}
	f = fopen(TRACING "kprobe_profile", "r");
	if (!f || fscanf(f, "%63s %llu", name, &hits) != 2)
		errx(1, "kprobes: no profile");
	fclose(f);
	if (system("echo 0 >" TRACING "events/riso/ask/enable") ||
	    system("echo >" TRACING "kprobe_events"))
		errx(1, "kprobes");
	return hits;
}

/* Whoever calls in a loop has nobody look at it: what is allowed, a chain of grants. */
static bool calling(void)
{
	unsigned long long hits, most;
	struct share s = join();
	unsigned int calls = 0;
	__u64 began, end;
	bool ok = true;

	count_asks(true);
	for (; ok && calls < 10000; calls++)
		ok = !wait_for(&s, 0);
	hits = count_asks(false);
	ksft_print_msg("wants nothing: %llu looks in %u calls\n", hits, calls);
	ok = ok && !hits;

	/* It says that it has posted, so that it is listened to, and takes no grant. */
	s.u->dir[0].want = 1 << 20;
	count_asks(true);
	began = now_ns();
	end = began + 1000000000;
	for (calls = 0; ok && now_ns() < end; calls++) {
		s.u->dir[0].posted += 1 << 16;
		ok = !wait_for(&s, 0);
	}
	hits = count_asks(false);
	most = (now_ns() - began) / 20000 + 16;
	ksft_print_msg("wants much: %llu looks in %u calls, at most %llu\n", hits, calls, most);
	leave(&s);
	return ok && hits && hits <= most;
}

/* --- what is given --- */

/* Take all that is given for @ns, post none of it or all; the bytes. */
static __u64 take(struct share *s, __u64 ns, bool post)
{
	__u64 end = now_ns() + ns, bytes = 0, posted = s->u->dir[0].posted;
	__u32 seq, taken = s->k->dir[0].seq;

	s->u->dir[0].taken = taken;
	s->u->dir[0].want = 1 << 20;
	while (now_ns() < end) {
		if (wait_for(s, 20000))
			return 0;
		seq = __atomic_load_n(&s->k->dir[0].seq, __ATOMIC_ACQUIRE);
		while (taken != seq) {
			taken++;
			bytes += s->k->dir[0].grant[taken % 2].bytes;
		}
		if (post) {
			s->u->dir[0].posted = posted + bytes;
			s->u->dir[0].done = posted + bytes;
		}
		s->u->dir[0].taken = taken;
	}
	s->u->dir[0].want = 0;
	return bytes;
}

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
	struct share s = join();
	__u64 began = now_ns(), bytes, most;
	bool ok;

	bytes = take(&s, 1000000000, true);
	/* Grants that are ahead, and what came before. */
	most = (now_ns() - began) * rate / 1000000000 + (1 << 20);
	ksft_print_msg("%llu bytes of %llu\n", (unsigned long long)bytes,
		       (unsigned long long)most);
	ok = s.k->mode == RISO_USER_PACED && s.k->dir[0].chunk && bytes &&
	     bytes <= most && is_chunk(s.k, s.k->dir[0].grant[0].bytes) &&
	     !is_named(getpid(), "");
	leave(&s);
	return ok;
}

/* What was posted while nobody looked is nobody's lie, and is not charged. */
static bool idling(void)
{
	const __u64 much = 1ull << 40;
	struct share s;
	bool ok;

	ok = !configure("mode disable");
	s = join();
	s.u->dir[0].posted = much;
	s.u->dir[0].done = much;
	ok = ok && !configure("mode enable") && take(&s, 500000000, true) &&
	     !configure("mode disable");
	s.u->dir[0].posted += much;
	s.u->dir[0].done += much;
	leave(&s);
	ok = !configure("mode enable") && ok;
	usleep(500000);
	return ok && !is_named(getpid(), "counters");
}

/* A grant by a clock that is 1000 s ahead of the others' */
static int gets_one(struct share *unused)
{
	struct share s = join();
	const struct riso_kdir *k = &s.k->dir[0];
	__s64 left;

	(void)unused;
	s.u->dir[0].want = 1 << 20;
	while (!k->seq && !wait_for(&s, 100000))
		;
	left = k->grant[k->seq % 2].not_after - now_ns();
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
	struct share s = join();
	__u64 bytes;
	bool ok;

	ok = !configure("max-rate 100gbit safe-util 100gbit chunk 4k");
	s.u->dir[0].want = 1;
	while (ok && !s.k->dir[0].seq)
		ok = !wait_for(&s, 100000);
	bytes = s.k->dir[0].grant[1].bytes;
	ksft_print_msg("%llu bytes\n", (unsigned long long)bytes);
	leave(&s);
	return !configure(USUAL) && ok && bytes <= 12500000000 / 20000 / 16 &&
	       bytes > 12500000000 / 20000 / 17;
}

/* 1 if no other comes before a grant is void, -1 if this was too late to tell */
static int voids(void)
{
	struct share s = join();
	const struct riso_kdir *k = &s.k->dir[0];
	int ret = -1;
	__u64 void_ns;

	s.u->dir[0].want = 1 << 30;
	while (k->seq < 2 && !wait_for(&s, 100000))
		;
	void_ns = k->grant[1].not_after;
	if (k->seq != 2)
		goto out;
	ret = !wait_for(&s, 1000) && k->seq == 2;
	if (now_ns() >= void_ns) {
		ret = -1;
		goto out;
	}
	while (now_ns() < void_ns)
		usleep(1000);
	while (k->seq == 2 && !wait_for(&s, 100000))
		;
	ret = ret && k->seq > 2 && k->grant[1].not_after != void_ns;
out:
	leave(&s);
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
/* Shared with children, who go on until then. */
static bool *enough;

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
	struct share s = join();
	pthread_t thread;

	(void)unused;
	pthread_create(&thread, NULL, scribble, &s);
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED))
		wait_for(&s, 100);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return 0;
}

/* It says that it has posted more than there is. */
static int boaster(struct share *unused)
{
	struct share s = join();

	(void)unused;
	s.u->dir[0].want = 1;
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED)) {
		s.u->dir[0].posted += 1ull << 34;
		s.u->dir[0].debt += 1ull << 34;
		s.u->dir[0].taken = s.k->dir[0].seq;
		wait_for(&s, 0);
		usleep(1000);
	}
	return 0;
}

static void *wait_on(void *arg)
{
	long err;

	/* The one that looks whether this waits may be in the way. */
	do
		err = wait_for(arg, 2000000);
	while (err == EBUSY);
	return (void *)err;
}

/* One thread waits, the others are told so. */
static bool waiting(void)
{
	struct share s = join();
	pthread_t thread;
	void *status;
	int n = 0;
	bool ok;

	pthread_create(&thread, NULL, wait_on, &s);
	while (wait_for(&s, 1) != EBUSY && n++ < 1000)
		usleep(1000);
	ok = wait_for(&s, 1) == EBUSY && !wait_for(&s, 0);
	pthread_join(thread, &status);
	ok = ok && !status && !wait_for(&s, 0);
	leave(&s);
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
		got += take(s, 100000000, true);
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

	__atomic_store_n(enough, false, __ATOMIC_RELAXED);
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

	__atomic_store_n(enough, true, __ATOMIC_RELAXED);
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

	s = join();
	start_all(fn, &pid, 1);
	got = compare_books(&s, pid, 3, mine, its);
	ok = stop_all(&pid, 1);
	ksft_print_msg("%llu ns, and the other %llu ns\n", (unsigned long long)mine[1],
		       (unsigned long long)its[1]);
	leave(&s);
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
	struct share s = open_qp();

	(void)unused;
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED)) {
		int fd = open_file(), dir;
		struct riso_upage *u;

		if (fd < 0 || attach(fd, device, RISO_USER_VERSION, s.qp->qp_num))
			return 1;
		u = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, page, RISO_USER_UPAGE);
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

/* Says the same with one, and is believed as far as the rule for debt allows. */
static int claimant(struct share *unused)
{
	struct share s = join();

	(void)unused;
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED)) {
		s.u->dir[0].posted += 1ull << 30;
		s.u->dir[0].debt += 1ull << 30;
		wait_for(&s, 0);
		usleep(1000);
	}
	return 0;
}

/* It posts whatever it is given. */
static int rival(struct share *unused)
{
	struct share s = join();

	(void)unused;
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED))
		take(&s, 100000000, true);
	return 0;
}

/* Is a @part of what it is given alone left beside three such processes? */
static bool keeps_beside(int (*fn)(struct share *), unsigned int part)
{
	struct share s = join();
	__u64 alone, beside;
	pid_t pid[3];
	bool ok;

	take(&s, 200000000, true);
	alone = take(&s, 1500000000, true);
	start_all(fn, pid, ARRAY_SIZE(pid));
	beside = take(&s, 1500000000, true);
	ok = stop_all(pid, ARRAY_SIZE(pid));
	ksft_print_msg("%llu bytes alone, %llu beside them\n", (unsigned long long)alone,
		       (unsigned long long)beside);
	leave(&s);
	return ok && beside * part >= alone;
}

/*
 * Do eight such processes leave this one what one honest process leaves it, nineteen
 * twentieths of that at least?
 */
static bool keeps_beside_eight(int (*fn)(struct share *))
{
	struct share s = join();
	__u64 beside_one, beside_eight;
	pid_t pid[8];
	bool ok;

	start_all(rival, pid, 1);
	take(&s, 200000000, true);
	beside_one = take(&s, 1500000000, true);
	ok = stop_all(pid, 1);
	start_all(fn, pid, ARRAY_SIZE(pid));
	take(&s, 200000000, true);
	beside_eight = take(&s, 1500000000, true);
	ok = stop_all(pid, ARRAY_SIZE(pid)) && ok;
	ksft_print_msg("%llu bytes beside an honest one, %llu beside eight of these\n",
		       (unsigned long long)beside_one, (unsigned long long)beside_eight);
	leave(&s);
	return ok && beside_eight * 20 >= beside_one * 19;
}

static bool strangers(void)
{
	return keeps_beside(stranger, 3);
}

/* Of the half that debt leaves, each has its share, and they have had theirs. */
static bool claiming(void)
{
	return keeps_beside(claimant, 6);
}

/* It takes a grant that was never given. */
static int thief(struct share *unused)
{
	struct share s = join();

	(void)unused;
	s.u->dir[0].taken = 7;
	return wait_for(&s, 0);
}

/* It wants without end, takes what it is given, and posts nothing. */
static int grasper(struct share *unused)
{
	struct share s = join();

	(void)unused;
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED))
		take(&s, 100000000, false);
	return 0;
}

static bool grasping(void)
{
	return has_half_beside(grasper, NULL);
}

/* It wants something, and then has no pages any more. It calls, and then not even that. */
static int unmapper(struct share *unused)
{
	__u64 end = now_ns() + 1500000000;
	struct share s = join();
	struct share blind = { .fd = s.fd, .k = &(struct riso_kpage) { } };

	(void)unused;
	s.u->dir[0].want = 1 << 30;
	wait_for(&s, 0);
	munmap((void *)s.k, page);
	munmap(s.u, page);
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED)) {
		if (now_ns() < end)
			wait_for(&blind, 0);
		usleep(1000);
	}
	return 0;
}

/* The same, and it never calls: what it has taken tells who wants more. */
static int mute_grasper(struct share *unused)
{
	struct share s = join();
	__u32 seq;

	(void)unused;
	s.u->dir[0].want = 1 << 30;
	wait_for(&s, 0);
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED)) {
		seq = __atomic_load_n(&s.k->dir[0].seq, __ATOMIC_ACQUIRE);
		__atomic_store_n(&s.u->dir[0].taken, seq, __ATOMIC_RELEASE);
		usleep(1000);
	}
	return 0;
}

static bool grasping_eight(void)
{
	return keeps_beside_eight(grasper) && keeps_beside_eight(mute_grasper);
}

static bool claiming_eight(void)
{
	return keeps_beside_eight(claimant);
}

/* One that posted nothing for a while, and then posts, has its share again. */
static bool waking_up(void)
{
	struct share s = join();
	__u64 idle, after;
	pid_t pid;
	bool ok;

	start_all(rival, &pid, 1);
	take(&s, 1000000000, false);
	idle = take(&s, 1000000000, false);
	s.u->dir[0].posted += s.k->dir[0].grant[s.k->dir[0].seq % 2].bytes;
	after = take(&s, 200000000, true) + take(&s, 1500000000, true);
	ok = stop_all(&pid, 1);
	ksft_print_msg("%llu bytes while it posts nothing, %llu then\n",
		       (unsigned long long)idle, (unsigned long long)after);
	leave(&s);
	return ok && idle < rate / 100 && after > rate / 4;
}

/* Bytes that rivals have been given, by all of them */
static __u64 *rivals_bytes;

static int counted_rival(struct share *unused)
{
	struct share s = join();

	(void)unused;
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED))
		__atomic_add_fetch(rivals_bytes, take(&s, 50000000, true), __ATOMIC_RELAXED);
	return 0;
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
	s = join();
	take(&s, 500000000, true);
	theirs = __atomic_load_n(rivals_bytes, __ATOMIC_RELAXED);
	mine = take(&s, 4000000000, true);
	theirs = __atomic_load_n(rivals_bytes, __ATOMIC_RELAXED) - theirs;
	ratio = (double)theirs / mine;
	ksft_print_msg("eight have %.3f of what one has\n", ratio);
	/* Each would have as much. How exact it is, the bench tells, on its own clock. */
	return ratio < 0.67 || ratio > 1.5;
}

/* With share cgroup, eight processes of a control group have what one of another has. */
static bool sharing(void)
{
	bool ok = !configure("share cgroup");
	pid_t pid[8], one;

	rivals_bytes = (__u64 *)(enough + 64);
	ok = ok && enter_cgroup("eight");
	start_all(counted_rival, pid, ARRAY_SIZE(pid));
	ok = !in_child(lone, NULL, &one) && ok;
	ok = stop_all(pid, ARRAY_SIZE(pid)) && ok;
	return enter_cgroup("") && !configure("share process") && ok;
}

static bool unmapping(void)
{
	return has_half_beside(unmapper, "unspent");
}

/* What it posted as debt while nobody else was there does not count beside four later. */
static bool has_owed(void)
{
	__u64 mine[2], its[2], end;
	struct share s = join();
	pid_t pid[4];
	bool ok;

	/* One chunk for each slice is allowed, half of the device. */
	for (end = now_ns() + 3000000000; now_ns() < end; usleep(1000)) {
		s.u->dir[0].posted += 1 << 20;
		s.u->dir[0].debt += 1 << 20;
		wait_for(&s, 0);
	}
	start_all(rival, pid, ARRAY_SIZE(pid));
	compare_books(&s, pid[0], 2, mine, its);
	ok = stop_all(pid, ARRAY_SIZE(pid));
	leave(&s);
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

	start_all(grasper, &pid, 1);
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

	start_all(rival, other, ARRAY_SIZE(other));
	s = join();
	pid = fork();
	if (!pid) {
		struct share c = join();

		c.u->dir[0].want = 1 << 30;
		wait_for(&c, 1000000);
		raise(SIGSTOP);
		_exit(c.k->dir[0].seq);
	}
	waitpid(pid, &status, WUNTRACED);
	beside = take(&s, 2000000000, true);
	ok = named(pid, "stopped");
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	ok = stop_all(other, ARRAY_SIZE(other)) && ok;
	leave(&s);
	ksft_print_msg("%d grants, %llu bytes beside it\n", WEXITSTATUS(status),
		       (unsigned long long)beside);
	return WIFEXITED(status) && WEXITSTATUS(status) <= 4 && beside && ok;
}

static int killed(int state)
{
	struct share s = open_qp();
	int fd;

	fd = open_file();
	if (state == 0)
		raise(SIGKILL);
	if (attach(fd, device, RISO_USER_VERSION, s.qp->qp_num))
		return 1;
	if (state == 1)
		raise(SIGKILL);
	close(fd);
	connect_qp(&s);
	take_part(&s);
	s.u->dir[0].want = 1 << 30;
	s.u->dir[1].want = 1 << 30;
	if (state == 2)
		raise(SIGKILL);
	if (state == 3)
		alarm(1);
	signal(SIGALRM, SIG_DFL);
	for (;;) {
		wait_for(&s, state == 3 ? 5000000 : 1000);
		if (state == 4)
			raise(SIGKILL);
	}
}

/* Post a while, as the mode of the page is; the bytes of grants. */
static __u64 post(struct share *s, __u64 ns)
{
	__u64 end = now_ns() + ns, bytes = 0;

	while (now_ns() < end) {
		if (s->k->mode == RISO_USER_PACED) {
			bytes += take(s, 10000000, true);
			continue;
		}
		s->u->dir[0].posted += 1 << 16;
		s->u->dir[0].done += 1 << 16;
		wait_for(s, 0);
		usleep(1000);
	}
	return bytes;
}

static int poster(struct share *unused)
{
	struct share s = join();

	(void)unused;
	while (!__atomic_load_n(enough, __ATOMIC_RELAXED))
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

	s = join();
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
	leave(&s);
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
	{ "another network namespace", moving_away },
	{ "map", mapping },
	{ "fork", forking },
	{ "passed through a socket", passing },
	{ "register", registering },
	{ "many files", many_files },
	{ "many places of a user", many_places },
	{ "many places of a container", many_places_of_container },
	{ "many places of a user namespace", many_places_of_namespace },
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
	enough = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (enough == MAP_FAILED)
		err(1, "memory");
	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(cases));
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		ksft_test_result(cases[i].run(), "%s\n", cases[i].name);
	ksft_finished();
}
