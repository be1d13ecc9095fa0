// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A provider that completes at once what it is given, and a kernel beside it. A completion is
 * an entry of a ring, which the poll reads; nothing is locked, as each ring has one thread.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/rdma_isolate.h>

#include "core/grantring.h"
#include "cq.h"
#include "ctx.h"
#include "member.h"
#include "null.h"
#include "qp.h"
#include "shim.h"

enum {
	RING = 1024,
	ENTRIES = 256,
	DEPTH = 16,
	FILE_NR = 1000,
	MTU = 1024,
	PLENTY = 1 << 28,
	GRANT_NS = 10000000,
	/* The kernel's timer, and what it grants each time at 10 Gbit/s */
	TIMER_NS = 50000,
	PACE = 64 * 1024,
};

struct null_cq {
	struct ibv_cq cq;
	uint32_t head;
	uint32_t tail;
	uint64_t wr_id[RING];
};

static struct ibv_device device = { .name = "null0", .dev_name = "uverbs0" };
static struct ibv_context *plain, *shimmed;
static struct verbs_context contexts[2];
static int num_contexts;
static uint32_t next_qpn = 17;

/* --- the kernel --- */

static union {
	struct riso_kpage k;
	char room[4096];
} kpage __attribute__((aligned(4096)));
static union {
	struct riso_upage u;
	char room[4096];
} upage __attribute__((aligned(4096)));
static uint32_t class_given;
static uint32_t grants;
static bool keeps_grants;
static bool paces;
static uint64_t granted_ns;
static pthread_t program;
static uint32_t calls;

uint32_t null_pace(bool pace)
{
	uint32_t so_far = calls;

	paces = pace;
	program = pthread_self();
	calls = 0;
	return so_far;
}

void null_set_mode(uint32_t mode)
{
	__atomic_store_n(&kpage.k.mode, mode, __ATOMIC_RELEASE);
}

void null_keep_grants(bool keep)
{
	keeps_grants = keep;
}

void null_grant(uint64_t bytes)
{
	struct riso_grant g = {
		.not_after = shim_sys.now() + GRANT_NS, .bytes = bytes, .seq = ++grants,
	};

	riso_grantring_write(&kpage.k.path[RISO_USER_TX], &g);
	__atomic_add_fetch(&kpage.k.grants, 1, __ATOMIC_RELEASE);
}

/* As the timer of the kernel does, if it is time */
static void grant_by_timer(void)
{
	uint64_t now = shim_sys.now();

	__atomic_store_n(&kpage.k.looked, now, __ATOMIC_RELAXED);
	__atomic_store_n(&kpage.k.looks_until, UINT64_MAX, __ATOMIC_RELAXED);
	if (now < granted_ns + TIMER_NS)
		return;
	granted_ns = now;
	null_grant(PACE);
}

/* Give what is wanted, if no other thread does so: a grant has one writer at a time. */
static void give(void)
{
	static atomic_flag busy = ATOMIC_FLAG_INIT;

	if (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
		return;
	if (paces)
		grant_by_timer();
	else
		null_grant(PLENTY);
	atomic_flag_clear_explicit(&busy, memory_order_release);
}

static int null_ioctl(int fd, unsigned long request, ...)
{
	struct riso_ioc_register *reg;
	struct riso_ioc_wait *w;
	va_list ap;
	void *arg;

	(void)fd;
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request == RISO_IOC_REGISTER) {
		reg = arg;
		reg->class_id = class_given;
		reg->path[RISO_USER_RX] = RISO_USER_RX;
	} else if (request == RISO_IOC_WAIT) {
		w = arg;
		calls += pthread_equal(program, pthread_self());
		if (!keeps_grants && upage.u.path[RISO_USER_TX].want)
			give();
		else if (w->timeout_us)
			usleep(w->timeout_us);
	}
	return 0;
}

static int null_open_file(const char *path, int flags, ...)
{
	(void)flags;
	if (!strcmp(path, RISO_USER_FILE))
		return FILE_NR;
	errno = ENOENT;
	return -1;
}

static void *null_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	(void)addr;
	(void)len;
	(void)prot;
	(void)flags;
	(void)fd;
	return off ? (void *)&upage : (void *)&kpage;
}

static int null_munmap(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	return 0;
}

static int null_close_file(int fd)
{
	(void)fd;
	return 0;
}

/* --- the provider --- */

static int null_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct null_cq *cq = (struct null_cq *)qp->send_cq;

	(void)bad;
	for (; wr; wr = wr->next)
		if (wr->send_flags & IBV_SEND_SIGNALED)
			cq->wr_id[cq->tail++ % RING] = wr->wr_id;
	return 0;
}

/* The kernel looks by itself after who polls. Only who has the member's lock says so here. */
static void look_after_poller(void)
{
	if (upage.u.polls && !keeps_grants && upage.u.path[RISO_USER_TX].want)
		give();
}

static int null_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct null_cq *cq = (struct null_cq *)ibcq;
	int n;

	look_after_poller();
	for (n = 0; n < num && cq->head != cq->tail; n++) {
		wc[n].wr_id = cq->wr_id[cq->head++ % RING];
		wc[n].status = IBV_WC_SUCCESS;
		wc[n].opcode = IBV_WC_RDMA_WRITE;
		wc[n].byte_len = 0;
	}
	return n;
}

/* There are no events, and nobody waits for one. */
static int null_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	(void)ibcq;
	(void)solicited_only;
	return 0;
}

static struct ibv_context *null_open_device(struct ibv_device *of)
{
	struct verbs_context *v = &contexts[num_contexts++];

	v->sz = sizeof(*v);
	v->context.device = of;
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.post_send = null_post_send;
	v->context.ops.poll_cq = null_poll_cq;
	v->context.ops.req_notify_cq = null_req_notify_cq;
	return &v->context;
}

static const char *null_get_device_name(struct ibv_device *of)
{
	return of->name;
}

static int null_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	attr->max_qp_wr = 1024;
	attr->max_cqe = 4096;
	return 0;
}

static struct ibv_cq *null_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				     struct ibv_comp_channel *channel, int vector)
{
	struct null_cq *cq = calloc(1, sizeof(*cq));

	(void)vector;
	if (!cq)
		return NULL;
	cq->cq.context = context;
	cq->cq.cq_context = cq_context;
	cq->cq.channel = channel;
	cq->cq.cqe = cqe;
	return &cq->cq;
}

static struct ibv_qp *null_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = calloc(1, sizeof(struct ibv_qp_ex));

	if (!qp)
		return NULL;
	qp->context = pd->context;
	qp->qp_num = next_qpn++;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	return qp;
}

static int null_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	return 0;
}

static struct ibv_qp_ex *null_qp_to_qp_ex(struct ibv_qp *qp)
{
	(void)qp;
	return NULL;
}

void null_start(void)
{
	shim_real = (struct shim_real) {
		.open_device = null_open_device,
		.get_device_name = null_get_device_name,
		.query_device = null_query_device,
		.create_qp = null_create_qp,
		.modify_qp = null_modify_qp,
		.qp_to_qp_ex = null_qp_to_qp_ex,
		.create_cq = null_create_cq,
	};
	shim_sys.open = null_open_file;
	shim_sys.ioctl = null_ioctl;
	shim_sys.mmap = null_mmap;
	shim_sys.munmap = null_munmap;
	shim_sys.close = null_close_file;
	kpage.k.version = RISO_USER_VERSION;
	kpage.k.header = 58;
	kpage.k.window = UINT64_MAX;
	kpage.k.path[RISO_USER_TX].chunk = 4096;
	kpage.k.path[RISO_USER_RX].chunk = 4096;
	plain = null_open_device(&device);
	shimmed = shim_open_device(&device);
}

void null_make(struct null_end *e, bool shim, uint32_t class_id)
{
	struct ibv_pd pd = { .context = shim ? shimmed : plain };
	struct ibv_qp_attr attr = {
		.path_mtu = IBV_MTU_1024, .max_rd_atomic = 16, .qp_state = IBV_QPS_RTS,
	};
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 }, .qp_type = IBV_QPT_RC,
	};

	class_given = class_id;
	e->cq = shim ? shim_create_cq(shimmed, ENTRIES, NULL, NULL, 0) :
		       null_create_cq(plain, ENTRIES, NULL, NULL, 0);
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	e->qp = shim ? shim_create_qp(&pd, &init) : null_create_qp(&pd, &init);
	if (!shim)
		return;
	shim_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MAX_QP_RD_ATOMIC);
}
