// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that take part in a device by /dev/rdma_isolate, honest ones and others. They
 * have a queue pair, which posts nothing: what they say of it is in their page.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>
#include "share.h"

const char *share_device;
size_t share_page;
struct share_end *share_end;

void share_init(const char *device)
{
	share_device = device;
	share_page = sysconf(_SC_PAGESIZE);
	share_end = mmap(NULL, share_page, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (share_end == MAP_FAILED)
		err(1, "memory");
}

static bool goes_on(void)
{
	return !__atomic_load_n(&share_end->enough, __ATOMIC_RELAXED);
}

__u64 share_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int share_open_file(void)
{
	return open(RISO_USER_FILE, O_RDWR | O_CLOEXEC);
}

int share_attach(int fd, const char *dev, __u32 version, __u32 qpn)
{
	struct riso_ioc_attach a = { .version = version, .qpn = qpn };

	memcpy(a.dev, dev, strnlen(dev, sizeof(a.dev)));
	return ioctl(fd, RISO_IOC_ATTACH, &a) ? errno : 0;
}

int share_register(int fd, __u32 qpn, __u32 *class)
{
	struct riso_ioc_register r = { .qpn = qpn, .class_id = *class };

	if (ioctl(fd, RISO_IOC_REGISTER, &r))
		return errno;
	*class = r.class_id;
	return 0;
}

void *share_map(int fd, int prot, int flags, size_t size, off_t offset)
{
	return mmap(NULL, size, prot, flags, fd, offset * share_page);
}

int share_wait(const struct share *s, __u32 timeout_us)
{
	struct riso_ioc_wait w = {
		.grants = s->k->grants,
		.mode = s->k->mode,
		.timeout_us = timeout_us,
	};

	return ioctl(s->fd, RISO_IOC_WAIT, &w) ? errno : 0;
}

static void open_device(struct share *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), share_device))
			s->context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	s->pd = s->context ? ibv_alloc_pd(s->context) : NULL;
	s->cq = s->pd ? ibv_create_cq(s->context, 1, NULL, NULL, 0) : NULL;
	if (!s->cq)
		err(1, "%s", share_device);
}

void share_make_qp(struct share *s)
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
void share_connect_qp(struct share *s)
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

void share_take_part(struct share *s)
{
	__u32 class = RISO_CLASS_BY_RULE;

	s->fd = share_open_file();
	if (s->fd < 0 || share_attach(s->fd, share_device, RISO_USER_VERSION, s->qp->qp_num))
		err(1, "%s", share_device);
	s->k = share_map(s->fd, PROT_READ, MAP_SHARED, share_page, RISO_USER_KPAGE);
	s->u = share_map(s->fd, PROT_READ | PROT_WRITE, MAP_SHARED, share_page, RISO_USER_UPAGE);
	if (s->k == MAP_FAILED || s->u == MAP_FAILED)
		err(1, "map");
	if (share_register(s->fd, s->qp->qp_num, &class))
		err(1, "register");
}

struct share share_open_qp(void)
{
	struct share s = { .fd = -1 };

	open_device(&s);
	share_make_qp(&s);
	return s;
}

struct share share_join(void)
{
	struct share s = share_open_qp();

	share_connect_qp(&s);
	share_take_part(&s);
	return s;
}

void share_close_qp(struct share *s)
{
	ibv_destroy_qp(s->qp);
	ibv_destroy_cq(s->cq);
	ibv_dealloc_pd(s->pd);
	ibv_close_device(s->context);
}

void share_leave(struct share *s)
{
	share_close_qp(s);
	munmap((void *)s->k, share_page);
	munmap(s->u, share_page);
	close(s->fd);
}

/* Take all that is given for @ns, post none of it or all; the bytes. */
__u64 share_take(struct share *s, __u64 ns, bool post)
{
	__u64 end = share_now() + ns, bytes = 0, posted = s->u->path[0].posted;
	__u32 seq, taken = s->k->path[0].seq;

	s->u->path[0].taken = taken;
	s->u->path[0].want = 1 << 20;
	while (share_now() < end) {
		if (share_wait(s, 20000))
			return 0;
		seq = __atomic_load_n(&s->k->path[0].seq, __ATOMIC_ACQUIRE);
		while (taken != seq) {
			taken++;
			bytes += s->k->path[0].grant[taken % 2].bytes;
		}
		if (post) {
			s->u->path[0].posted = posted + bytes;
			s->u->path[0].done = posted + bytes;
		}
		s->u->path[0].taken = taken;
	}
	s->u->path[0].want = 0;
	return bytes;
}

/* Says the same with one, and is believed as far as the rule for debt allows. */
int share_claim(struct share *unused)
{
	struct share s = share_join();

	(void)unused;
	while (goes_on()) {
		s.u->path[0].posted += 1ull << 30;
		s.u->path[0].debt += 1ull << 30;
		share_wait(&s, 0);
		usleep(1000);
	}
	return 0;
}

/* Where the device is open: post something, so that a second sender makes it one of grants. */
static void post_openly(struct share *s, bool complete)
{
	s->u->path[0].posted += 1 << 16;
	if (complete)
		s->u->path[0].done = s->u->path[0].posted;
	share_wait(s, 1000);
}

/* It posts whatever it is given. */
int share_rival(struct share *unused)
{
	struct share s = share_join();

	(void)unused;
	while (goes_on()) {
		if (s.k->mode == RISO_USER_OPEN) {
			post_openly(&s, true);
			continue;
		}
		__atomic_add_fetch(&share_end->bytes, share_take(&s, 10000000, true),
				   __ATOMIC_RELAXED);
	}
	return 0;
}

/* It wants without end, takes what it is given, and posts nothing. */
int share_grasp(struct share *unused)
{
	struct share s = share_join();

	(void)unused;
	while (goes_on())
		share_take(&s, 100000000, false);
	return 0;
}

/* The same, and it never calls: what it has taken tells who wants more. */
int share_grasp_mute(struct share *unused)
{
	struct share s = share_join();
	__u32 seq;

	(void)unused;
	s.u->path[0].want = 1 << 30;
	share_wait(&s, 0);
	while (goes_on()) {
		seq = __atomic_load_n(&s.k->path[0].seq, __ATOMIC_ACQUIRE);
		__atomic_store_n(&s.u->path[0].taken, seq, __ATOMIC_RELEASE);
		usleep(1000);
	}
	return 0;
}

/* It says that it posts whatever it is given, and that nothing completes. */
int share_keep(struct share *unused)
{
	struct share s = share_join();
	__u32 seq, taken = s.k->path[0].seq;
	__u64 bytes;

	(void)unused;
	s.u->path[0].taken = taken;
	s.u->path[0].want = 1 << 20;
	while (goes_on()) {
		if (s.k->mode == RISO_USER_OPEN) {
			post_openly(&s, false);
			continue;
		}
		share_wait(&s, 10000);
		seq = __atomic_load_n(&s.k->path[0].seq, __ATOMIC_ACQUIRE);
		for (bytes = 0; taken != seq; ) {
			taken++;
			bytes += s.k->path[0].grant[taken % 2].bytes;
		}
		s.u->path[0].posted += bytes;
		__atomic_store_n(&s.u->path[0].taken, taken, __ATOMIC_RELEASE);
		__atomic_add_fetch(&share_end->bytes, bytes, __ATOMIC_RELAXED);
	}
	return 0;
}
