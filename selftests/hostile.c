// SPDX-License-Identifier: GPL-2.0
/*
 * hostile KIND THREADS DEVICE
 *
 * Threads of one unprivileged process that do nothing but ask, until they are told to end:
 * "module" calls RISO_IOC_WAIT, reads sysfs, dumps flows, groups and the budget of DEVICE
 * and asks for its statistics; "kernel" calls getppid() and reads as many files of /proc
 * instead, so that the two differ by what asking the module costs others, and not by the
 * processor that they take. "same" does what "module" does at interfaces that the kernel
 * has without it: it calls getppid(), reads two files of /proc and dumps links of the
 * network as often. "wait", "sysfs" and "netlink" do one part of "module"; "register"
 * calls RISO_IOC_REGISTER, and so sleeps most of the time. Prints "ready" when all run,
 * and at its end how often they asked, slept and lost the processor, as JSON.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/rtnetlink.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>

#include "genl.h"
#include "kselftest.h"
#include "verbs.h"

enum {
	/* Calls between two rounds of reading: about as long as one round takes */
	CALLS = 200,
	REGISTERS = 20,
	NOBODY = 65534,
};

enum part {
	PART_WAIT = 1,
	PART_SYSFS = 2,
	PART_NETLINK = 4,
	PART_KERNEL = 8,
	PART_SAME = 16,
	PART_REGISTER = 32,
};

static const struct {
	const char *name;
	enum part parts;
} kinds[] = {
	{ "module", PART_WAIT | PART_SYSFS | PART_NETLINK },
	{ "kernel", PART_KERNEL },
	{ "same", PART_SAME },
	{ "wait", PART_WAIT },
	{ "register", PART_REGISTER },
	{ "sysfs", PART_SYSFS },
	{ "netlink", PART_NETLINK },
};

static enum part parts;
static atomic_ulong rounds;
static const char *device;
static int file = -1;
static __u32 qpn;
static unsigned int family;

static void read_file(const char *name)
{
	char buf[4096];
	int fd = open(name, O_RDONLY);

	if (fd < 0 || read(fd, buf, sizeof(buf)) < 0)
		err(1, "%s", name);
	close(fd);
}

/* What changes meanwhile ends a dump with an error. */
static void dump_all(struct mnl_socket *sock, uint8_t cmd)
{
	char buf[256];

	netlink_ask(sock, genl_begin(buf, family, cmd, NLM_F_DUMP), NULL, NULL);
}

static void call_wait(void)
{
	struct riso_ioc_wait w = { };
	int i;

	for (i = 0; i < CALLS; i++)
		if (ioctl(file, RISO_IOC_WAIT, &w))
			err(1, "wait");
}

static void call_register(void)
{
	struct riso_ioc_register r;
	int i;

	for (i = 0; i < REGISTERS; i++) {
		r = (struct riso_ioc_register) { .qpn = qpn, .class_id = RISO_CLASS_BY_RULE };
		if (ioctl(file, RISO_IOC_REGISTER, &r))
			err(1, "register");
	}
}

static void ask_statistics(struct mnl_socket *sock)
{
	struct nlmsghdr *nlh;
	char buf[256];

	nlh = genl_begin(buf, family, RDMA_ISOLATE_CMD_STAT_GET, NLM_F_ACK);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_STAT_DEV, device);
	netlink_ask(sock, nlh, NULL, NULL);
}

static void read_sysfs(void)
{
	static const char * const names[] = { "state", "safe_util" };
	char path[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/rdma_isolate/%s",
			 device, names[i]);
		read_file(path);
	}
}

static void call_getppid(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		if (getppid() < 0)
			err(1, "getppid");
}

static void dump_links(struct mnl_socket *sock)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	netlink_ask(sock, nlh, NULL, NULL);
}

static void ask_same(struct mnl_socket *sock)
{
	int i;

	call_getppid();
	read_file("/proc/self/stat");
	read_file("/proc/loadavg");
	for (i = 0; i < 3; i++)
		dump_links(sock);
}

static void ask_kernel(void)
{
	call_getppid();
	read_file("/proc/self/stat");
	read_file("/proc/self/status");
	read_file("/proc/self/maps");
	read_file("/proc/meminfo");
	read_file("/proc/loadavg");
}

static void *ask_on(void *arg)
{
	struct mnl_socket *sock = netlink_open(parts & PART_SAME ? NETLINK_ROUTE :
								  NETLINK_GENERIC);

	(void)arg;
	for (;;) {
		if (parts & PART_WAIT)
			call_wait();
		if (parts & PART_REGISTER)
			call_register();
		if (parts & PART_SYSFS)
			read_sysfs();
		if (parts & PART_NETLINK) {
			dump_all(sock, RDMA_ISOLATE_CMD_FLOW_GET);
			dump_all(sock, RDMA_ISOLATE_CMD_GROUP_GET);
			dump_all(sock, RDMA_ISOLATE_CMD_BUDGET_GET);
			ask_statistics(sock);
		}
		if (parts & PART_SAME)
			ask_same(sock);
		if (parts & PART_KERNEL)
			ask_kernel();
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

/* A queue pair of its own, without which nobody takes part */
static void attach(void)
{
	struct riso_ioc_attach a = { .version = RISO_USER_VERSION };
	struct ibv_context *context = open_device(device);
	struct ibv_qp *qp = make_qp(make_pd(context), make_cq(context, 1), 1);

	file = open(RISO_USER_FILE, O_RDWR);
	if (file < 0)
		err(1, "%s", device);
	qpn = qp->qp_num;
	a.qpn = qpn;
	snprintf(a.dev, sizeof(a.dev), "%s", device);
	if (ioctl(file, RISO_IOC_ATTACH, &a))
		err(1, "attach");
}

static void print_totals(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	printf("{\"rounds\": %lu, \"slept\": %ld, \"preempted\": %ld, ",
	       atomic_load(&rounds), use.ru_nvcsw, use.ru_nivcsw);
	printf("\"user_ms\": %ld, \"system_ms\": %ld}\n",
	       use.ru_utime.tv_sec * 1000 + use.ru_utime.tv_usec / 1000,
	       use.ru_stime.tv_sec * 1000 + use.ru_stime.tv_usec / 1000);
}

int main(int argc, char **argv)
{
	struct mnl_socket *sock;
	pthread_t thread;
	sigset_t end;
	size_t i;
	int n;

	for (i = 0; argc == 4 && i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(argv[1], kinds[i].name))
			parts = kinds[i].parts;
	if (!parts)
		errx(2, "usage: hostile KIND THREADS DEVICE");
	device = argv[3];
	if (setgid(NOBODY) || setuid(NOBODY))
		err(1, "nobody");
	if (parts & (PART_WAIT | PART_REGISTER))
		attach();
	if (parts & PART_NETLINK) {
		sock = netlink_open(NETLINK_GENERIC);
		family = genl_family(sock, RDMA_ISOLATE_FAMILY_NAME);
		mnl_socket_close(sock);
		if (!family)
			errx(1, "no module");
	}
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	for (n = atoi(argv[2]); n > 0; n--) {
		errno = pthread_create(&thread, NULL, ask_on, NULL);
		if (errno)
			err(1, "thread");
	}
	puts("ready");
	fflush(stdout);
	sigwait(&end, &n);
	print_totals();
	return 0;
}
