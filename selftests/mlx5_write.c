// SPDX-License-Identifier: GPL-2.0
/*
 * mlx5_write LOOKUP OPEN KIND DEVICE PEER
 *
 * WRITEs 1 MB from DEVICE to PEER, over queue pairs and CQs that libmlx5 has created, and compares
 * every byte, again and again until SIGTERM. It posts by ibv_post_send() and by ibv_wr_start() in
 * turn. GID index 1 of both is used. Prints how often.
 *
 * LOOKUP says how it finds libmlx5: mlx5_write is "linked" with it, mlx5_write_dl opens it and uses
 * "dlsym" or "dlvsym". OPEN is the library that opens the devices, "mlx5" or "verbs". KIND is what
 * is special about the queue pairs: nothing ("plain"), a flag of "newer" versions of libmlx5, an
 * operation of the "vendor", or that the program asks for their "memory".
 */
#include <dlfcn.h>
#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include "connect.h"

#define LENGTH 1048576

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned char data[LENGTH];
};

static struct {
	typeof(mlx5dv_is_supported) *is_supported;
	typeof(mlx5dv_open_device) *open_device;
	typeof(mlx5dv_create_cq) *create_cq;
	typeof(mlx5dv_create_qp) *create_qp;
	typeof(mlx5dv_init_obj) *init_obj;
} mlx5;

static struct end ends[2];

#ifdef WITH_DLOPEN
static void *symbol(void *handle, const char *how, const char *name, const char *version)
{
	void *s = strcmp(how, "dlvsym") ? dlsym(handle, name) : dlvsym(handle, name, version);

	if (!s)
		errx(1, "%s", dlerror());
	return s;
}

#define LOAD(name, version) \
	(mlx5.name = symbol(handle, how, "mlx5dv_" #name, "MLX5_" version))

static void load(const char *how)
{
	void *handle = dlopen("libmlx5.so.1", RTLD_NOW);

	if (!handle)
		errx(1, "%s", dlerror());
	LOAD(is_supported, "1.8");
	LOAD(open_device, "1.7");
	LOAD(create_cq, "1.1");
	LOAD(create_qp, "1.3");
	LOAD(init_obj, "1.2");
}
#else
static void load(const char *how)
{
	if (strcmp(how, "linked"))
		errx(2, "%s: this program is linked", how);
	mlx5.is_supported = mlx5dv_is_supported;
	mlx5.open_device = mlx5dv_open_device;
	mlx5.create_cq = mlx5dv_create_cq;
	mlx5.create_qp = mlx5dv_create_qp;
	mlx5.init_obj = mlx5dv_init_obj;
}
#endif

static bool is_told_to_stop(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM);
}

static struct ibv_context *open_device(struct ibv_device *device, const char *with)
{
	struct mlx5dv_context_attr attr = {};

	if (!mlx5.is_supported(device))
		errx(1, "%s: not of libmlx5", ibv_get_device_name(device));
	return strcmp(with, "mlx5") ? ibv_open_device(device) : mlx5.open_device(device, &attr);
}

static void find_device(struct end *e, const char *name, const char *with)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			e->context = open_device(list[i], with);
	if (!e->context)
		err(1, "%s: cannot be opened", name);
	ibv_free_device_list(list);
}

static void create_qp(struct end *e, const char *kind)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(e->cq);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct mlx5dv_qp_init_attr more = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
	};
	struct mlx5dv_qp memory = {};
	struct mlx5dv_obj obj = { .qp.out = &memory };

	/* Data out of order, which has no name in older headers */
	if (!strcmp(kind, "newer"))
		more.create_flags |= 1 << 7;
	if (!strcmp(kind, "vendor")) {
		more.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
		more.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST;
	}
	e->qp = mlx5.create_qp(e->context, &attr, &more);
	if (!e->qp)
		err(1, "queue pair");
	obj.qp.in = e->qp;
	if (!strcmp(kind, "memory") && mlx5.init_obj(&obj, MLX5DV_OBJ_QP))
		errx(1, "memory");
}

static void open_end(struct end *e, const char *name, const char *with, const char *kind)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 2, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };

	find_device(e, name, with);
	e->pd = ibv_alloc_pd(e->context);
	e->cq = mlx5.create_cq(e->context, &attr, NULL);
	if (!e->pd || !e->cq || ibv_query_gid(e->context, 1, 1, &e->gid))
		err(1, "%s", name);
	e->mr = ibv_reg_mr(e->pd, e->data, LENGTH,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!e->mr)
		err(1, "%s", name);
	create_qp(e, kind);
}

static void post(struct end *from, struct end *to, unsigned int round)
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
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(from->qp);

	if (round % 2) {
		if (ibv_post_send(from->qp, &wr, &bad))
			err(1, "post");
		return;
	}
	ibv_wr_start(ex);
	ex->wr_id = round;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, to->mr->rkey, (uintptr_t)to->data);
	ibv_wr_set_sge(ex, from->mr->lkey, (uintptr_t)from->data, LENGTH);
	if (ibv_wr_complete(ex))
		err(1, "post");
}

static void write_once(struct end *from, struct end *to, unsigned int round)
{
	struct ibv_poll_cq_attr attr = {};
	int i, ret;

	srandom(round);
	for (i = 0; i < LENGTH; i++)
		from->data[i] = random();
	post(from, to, round);
	do {
		ret = ibv_start_poll(from->cq, &attr);
	} while (ret == ENOENT);
	if (ret)
		errx(1, "%u: poll: %s", round, strerror(ret));
	if (from->cq->status || from->cq->wr_id != round)
		errx(1, "%u: status %d, wr_id %llu", round, from->cq->status,
		     (unsigned long long)from->cq->wr_id);
	ibv_end_poll(from->cq);
	/* Not by ibv_next_poll(): where there is nothing, rxe skips an entry for it. */
	if (ibv_start_poll(from->cq, &attr) != ENOENT)
		errx(1, "%u: more than one completion", round);
	if (memcmp(from->data, to->data, LENGTH))
		errx(1, "%u: other data", round);
}

static void close_end(struct end *e)
{
	if (ibv_destroy_qp(e->qp) || ibv_destroy_cq(ibv_cq_ex_to_cq(e->cq)) ||
	    ibv_dereg_mr(e->mr) || ibv_dealloc_pd(e->pd) || ibv_close_device(e->context))
		err(1, "close");
}

int main(int argc, char **argv)
{
	unsigned int round = 0;
	sigset_t set;

	if (argc != 6)
		errx(2, "usage: mlx5_write LOOKUP OPEN KIND DEVICE PEER");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	load(argv[1]);
	open_end(&ends[0], argv[4], argv[2], argv[3]);
	open_end(&ends[1], argv[5], argv[2], argv[3]);
	connect_qp(ibv_modify_qp, ends[0].qp, ends[1].qp->qp_num, &ends[1].gid);
	connect_qp(ibv_modify_qp, ends[1].qp, ends[0].qp->qp_num, &ends[0].gid);
	do {
		write_once(&ends[0], &ends[1], round++);
	} while (!is_told_to_stop());
	printf("%u\n", round);
	close_end(&ends[0]);
	close_end(&ends[1]);
}
