// SPDX-License-Identifier: GPL-2.0
/*
 * hostile module|kernel THREADS DEVICE
 *
 * Threads of one unprivileged process that do nothing but ask, until they are killed:
 * "module" calls RISO_IOC_WAIT, reads sysfs and dumps flows, groups and the budget of
 * DEVICE; "kernel" calls getppid() and reads as many files of /proc instead, so that the
 * two differ by what asking the module costs others, and not by the processor that they
 * take. Prints "ready" when all run.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>

enum {
	/* Calls between two rounds of reading: about as long as one round takes */
	CALLS = 200,
	ANSWER_SIZE = 32768,
	NOBODY = 65534,
};

static const char *device;
static int file = -1;
static uint16_t family;

static void read_file(const char *name)
{
	char buf[4096];
	int fd = open(name, O_RDONLY);

	if (fd < 0 || read(fd, buf, sizeof(buf)) < 0)
		err(1, "%s", name);
	close(fd);
}

static int take_family(const struct nlattr *attr, void *data)
{
	(void)data;
	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
		family = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

static int read_family(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), take_family, data);
}

static struct nlmsghdr *begin(char *buf, uint16_t type, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	return nlh;
}

/* Send a request, and take all of the answer. */
static void ask(struct mnl_socket *sock, const struct nlmsghdr *nlh, mnl_cb_t read_one)
{
	char buf[ANSWER_SIZE];
	ssize_t got;

	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		err(1, "netlink");
	do {
		got = mnl_socket_recvfrom(sock, buf, sizeof(buf));
		if (got < 0)
			err(1, "netlink");
	} while (mnl_cb_run(buf, got, 0, mnl_socket_get_portid(sock), read_one, NULL) >
		 MNL_CB_STOP);
}

static struct mnl_socket *open_netlink(void)
{
	struct mnl_socket *sock = mnl_socket_open(NETLINK_GENERIC);

	if (!sock || mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID))
		err(1, "netlink");
	return sock;
}

static void find_family(void)
{
	struct mnl_socket *sock = open_netlink();
	struct nlmsghdr *nlh;
	char buf[256];

	nlh = begin(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, RDMA_ISOLATE_FAMILY_NAME);
	ask(sock, nlh, read_family);
	mnl_socket_close(sock);
}

static void dump_all(struct mnl_socket *sock, uint8_t cmd)
{
	char buf[256];

	ask(sock, begin(buf, family, cmd, NLM_F_DUMP), NULL);
}

static void *ask_module(void *arg)
{
	struct mnl_socket *sock = open_netlink();
	struct riso_ioc_wait w = { };
	char state[128], safe_util[128];
	int i;

	(void)arg;
	snprintf(state, sizeof(state), "/sys/class/infiniband/%s/rdma_isolate/state", device);
	snprintf(safe_util, sizeof(safe_util),
		 "/sys/class/infiniband/%s/rdma_isolate/safe_util", device);
	for (;;) {
		for (i = 0; i < CALLS; i++)
			if (ioctl(file, RISO_IOC_WAIT, &w))
				err(1, "wait");
		read_file(state);
		read_file(safe_util);
		dump_all(sock, RDMA_ISOLATE_CMD_FLOW_GET);
		dump_all(sock, RDMA_ISOLATE_CMD_GROUP_GET);
		dump_all(sock, RDMA_ISOLATE_CMD_BUDGET_GET);
	}
	return NULL;
}

static void *ask_kernel(void *arg)
{
	int i;

	(void)arg;
	for (;;) {
		for (i = 0; i < CALLS; i++)
			if (getppid() < 0)
				return NULL;
		read_file("/proc/self/stat");
		read_file("/proc/self/status");
		read_file("/proc/self/maps");
		read_file("/proc/meminfo");
		read_file("/proc/loadavg");
	}
	return NULL;
}

/* A queue pair of its own, without which nobody takes part */
static void attach(void)
{
	struct riso_ioc_attach a = { .version = RISO_USER_VERSION };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			context = ibv_open_device(list[i]);
	if (!context)
		errx(1, "no %s", device);
	attr.send_cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	attr.recv_cq = attr.send_cq;
	qp = ibv_create_qp(ibv_alloc_pd(context), &attr);
	file = open(RISO_USER_FILE, O_RDWR);
	if (!qp || file < 0)
		err(1, "%s", device);
	a.qpn = qp->qp_num;
	snprintf(a.dev, sizeof(a.dev), "%s", device);
	if (ioctl(file, RISO_IOC_ATTACH, &a))
		err(1, "attach");
}

int main(int argc, char **argv)
{
	bool module = argc == 4 && !strcmp(argv[1], "module");
	pthread_t thread;
	int n;

	if (argc != 4 || (!module && strcmp(argv[1], "kernel")))
		errx(2, "usage: hostile module|kernel THREADS DEVICE");
	device = argv[3];
	if (setgid(NOBODY) || setuid(NOBODY))
		err(1, "nobody");
	if (module) {
		attach();
		find_family();
	}
	for (n = atoi(argv[2]); n > 0; n--) {
		errno = pthread_create(&thread, NULL, module ? ask_module : ask_kernel, NULL);
		if (errno)
			err(1, "thread");
	}
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
