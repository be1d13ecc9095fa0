// SPDX-License-Identifier: GPL-2.0
/*
 * dlopen_write DEVICE PEER
 *
 * Loads libibverbs as recent versions of NCCL do: the file that NCCL_IBVERBS_LIB names,
 * else libibverbs.so or libibverbs.so.1, and each function by its name and version. It
 * is linked with none of them. WRITEs 1 MB from DEVICE to PEER and compares every byte,
 * again and again until SIGTERM. GID index 1 of both is used. Prints how often, and whether
 * the verbs shim, if it is there, has said meanwhile that the device is over its target.
 */
#include <dlfcn.h>
#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "connect.h"

#define LENGTH 1048576

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned char data[LENGTH];
};

static struct {
	typeof(ibv_get_device_list) *get_device_list;
	typeof(ibv_free_device_list) *free_device_list;
	typeof(ibv_get_device_name) *get_device_name;
	typeof(ibv_open_device) *open_device;
	typeof(ibv_close_device) *close_device;
	typeof(ibv_query_gid) *query_gid;
	typeof(ibv_alloc_pd) *alloc_pd;
	typeof(ibv_dealloc_pd) *dealloc_pd;
	typeof(ibv_reg_mr) *reg_mr;
	typeof(ibv_dereg_mr) *dereg_mr;
	typeof(ibv_create_cq) *create_cq;
	typeof(ibv_destroy_cq) *destroy_cq;
	typeof(ibv_create_qp) *create_qp;
	typeof(ibv_modify_qp) *modify_qp;
	typeof(ibv_destroy_qp) *destroy_qp;
} verbs;

/* What it looks up besides, but is of no use here. */
static const char * const others[][2] = {
	{ "ibv_get_async_event", "IBVERBS_1.1" },
	{ "ibv_ack_async_event", "IBVERBS_1.1" },
	{ "ibv_query_device", "IBVERBS_1.1" },
	{ "ibv_query_port", "IBVERBS_1.1" },
	{ "ibv_query_qp", "IBVERBS_1.1" },
	{ "ibv_fork_init", "IBVERBS_1.1" },
	{ "ibv_event_type_str", "IBVERBS_1.1" },
	{ "ibv_reg_mr_iova2", "IBVERBS_1.8" },
	{ "ibv_query_ece", "IBVERBS_1.10" },
	{ "ibv_set_ece", "IBVERBS_1.10" },
	{ "ibv_reg_dmabuf_mr", "IBVERBS_1.12" },
	{ NULL, NULL },
};

static struct end ends[2];

static bool is_told_to_stop(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM);
}

static void *symbol(void *handle, const char *name, const char *version)
{
	void *s = dlvsym(handle, name, version);

	if (!s)
		errx(1, "%s", dlerror());
	return s;
}

#define LOAD(name) (verbs.name = symbol(handle, "ibv_" #name, "IBVERBS_1.1"))

static void load(void)
{
	const char *name = getenv("NCCL_IBVERBS_LIB");
	void *handle = name ? dlopen(name, RTLD_NOW) : NULL;
	int i;

	if (name && !handle)
		errx(1, "%s", dlerror());
	if (!handle)
		handle = dlopen("libibverbs.so", RTLD_NOW);
	if (!handle)
		handle = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!handle)
		errx(1, "%s", dlerror());
	LOAD(get_device_list);
	LOAD(free_device_list);
	LOAD(get_device_name);
	LOAD(open_device);
	LOAD(close_device);
	LOAD(query_gid);
	LOAD(alloc_pd);
	LOAD(dealloc_pd);
	LOAD(reg_mr);
	LOAD(dereg_mr);
	LOAD(create_cq);
	LOAD(destroy_cq);
	LOAD(create_qp);
	LOAD(modify_qp);
	LOAD(destroy_qp);
	for (i = 0; others[i][0]; i++)
		symbol(handle, others[i][0], others[i][1]);
}

static void open_end(struct end *e, const char *name)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_device **list = verbs.get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(verbs.get_device_name(list[i]), name))
			e->context = verbs.open_device(list[i]);
	if (!e->context)
		errx(1, "%s: cannot be opened", name);
	verbs.free_device_list(list);
	e->pd = verbs.alloc_pd(e->context);
	e->cq = verbs.create_cq(e->context, 2, NULL, NULL, 0);
	if (!e->pd || !e->cq || verbs.query_gid(e->context, 1, 1, &e->gid))
		err(1, "%s", name);
	e->mr = verbs.reg_mr(e->pd, e->data, LENGTH,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	attr.send_cq = e->cq;
	attr.recv_cq = e->cq;
	e->qp = verbs.create_qp(e->pd, &attr);
	if (!e->mr || !e->qp)
		err(1, "%s", name);
}

static void write_once(struct end *from, struct end *to, unsigned int round)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)from->data,
		.length = LENGTH,
		.lkey = from->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = round,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to->data, .rkey = to->mr->rkey },
	};
	struct ibv_wc wc = { 0 };
	int i, n;

	srandom(round);
	for (i = 0; i < LENGTH; i++)
		from->data[i] = random();
	if (ibv_post_send(from->qp, &wr, &bad))
		err(1, "post");
	do {
		n = ibv_poll_cq(from->cq, 1, &wc);
	} while (!n);
	if (n < 0 || wc.status || wc.wr_id != round)
		errx(1, "%u: status %d, wr_id %llu", round, wc.status,
		     (unsigned long long)wc.wr_id);
	if (memcmp(from->data, to->data, LENGTH))
		errx(1, "%u: other data", round);
}

static void close_end(struct end *e)
{
	if (verbs.destroy_qp(e->qp) || verbs.destroy_cq(e->cq) ||
	    verbs.dereg_mr(e->mr) || verbs.dealloc_pd(e->pd) ||
	    verbs.close_device(e->context))
		err(1, "close");
}

int main(int argc, char **argv)
{
	int (*over_target)(struct ibv_qp *qp) =
		dlsym(RTLD_DEFAULT, "rdma_isolate_over_target");
	unsigned int round = 0;
	bool over = false;
	sigset_t set;

	if (argc != 3)
		errx(2, "usage: dlopen_write DEVICE PEER");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	load();
	open_end(&ends[0], argv[1]);
	open_end(&ends[1], argv[2]);
	connect_qp(verbs.modify_qp, ends[0].qp, ends[1].qp->qp_num, &ends[1].gid);
	connect_qp(verbs.modify_qp, ends[1].qp, ends[0].qp->qp_num, &ends[0].gid);
	do {
		write_once(&ends[0], &ends[1], round++);
		over = over || (over_target && over_target(ends[0].qp));
	} while (!is_told_to_stop());
	printf("%u%s\n", round, over ? ", over target" : "");
	close_end(&ends[0]);
	close_end(&ends[1]);
}
