// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What programs ask libmlx5 for, on ConnectX adapters: contexts, queue pairs and CQs that are
 * those of libibverbs otherwise.
 *
 * libmlx5 opens and creates them by functions that only it and libibverbs know. So nothing of
 * them passes what the shim exports for libibverbs, or has swapped in the context. What the
 * program does with them afterwards does. A program can also get the memory of a queue from
 * libmlx5, and post or poll there by itself: the shim no longer governs that queue.
 *
 * Owns the table of the functions of libmlx5. preload.c fills it before the first call reads
 * it. A unit test fills it with functions of its own. Everybody reads it without a lock.
 *
 * Everything here runs in threads of the program. The shim holds no lock while it calls
 * libmlx5 from here.
 */
#include <errno.h>
#include <stdbool.h>

#include "cq.h"
#include "ctx.h"
#include "mlx5.h"
#include "qp.h"

struct shim_mlx5_real shim_mlx5_real;

/* What struct mlx5dv_qp_init_attr may say of a queue pair that is governed */
static const uint64_t known_attr = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
				   MLX5DV_QP_INIT_ATTR_MASK_DC |
				   MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
				   MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;

/**
 * shim_mlx5_open_device - mlx5dv_open_device()
 * @device: the device
 * @attr: how to open it
 *
 * Return: the context, or NULL and errno.
 */
struct ibv_context *shim_mlx5_open_device(struct ibv_device *device,
					  struct mlx5dv_context_attr *attr)
{
	if (!shim_mlx5_real.open_device) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return shim_govern_ctx(shim_mlx5_real.open_device(device, attr));
}

/**
 * struct creation - what libmlx5 gets besides the attributes of libibverbs
 * @context: the context
 * @qp_attr: attributes of a queue pair
 * @cq_attr: attributes of a CQ
 */
struct creation {
	struct ibv_context *context;
	struct mlx5dv_qp_init_attr *qp_attr;
	struct mlx5dv_cq_init_attr *cq_attr;
};

static struct ibv_qp *create_qp(void *arg, struct ibv_qp_init_attr *attr)
{
	struct creation *c = arg;

	return shim_mlx5_real.create_qp(c->context, (struct ibv_qp_init_attr_ex *)attr,
					c->qp_attr);
}

/*
 * Will nothing be posted but what libibverbs has? A vendor's operations are posted by functions of
 * libmlx5, and with signature pipelining libmlx5 takes posted work requests back.
 */
static bool posts_known(const struct mlx5dv_qp_init_attr *attr)
{
	if (!attr)
		return true;
	if (attr->comp_mask & ~known_attr)
		return false;
	if ((attr->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS) && attr->send_ops_flags)
		return false;
	return !(attr->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) ||
	       !(attr->create_flags & MLX5DV_QP_CREATE_SIG_PIPELINING);
}

/**
 * shim_mlx5_create_qp - mlx5dv_create_qp()
 * @context: an open device
 * @attr: what the program asks for
 * @mlx5_attr: what it asks for that only libmlx5 knows, or NULL
 *
 * Return: the queue pair, or NULL and errno.
 */
struct ibv_qp *shim_mlx5_create_qp(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr,
				   struct mlx5dv_qp_init_attr *mlx5_attr)
{
	struct creation c = { .context = context, .qp_attr = mlx5_attr };

	if (!shim_mlx5_real.create_qp) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return shim_create_qp_with(shim_find_ctx(context), create_qp, &c, attr,
				   posts_known(mlx5_attr));
}

static struct ibv_cq_ex *create_cq(void *arg, struct ibv_cq_init_attr_ex *attr)
{
	struct creation *c = arg;

	return shim_mlx5_real.create_cq(c->context, attr, c->cq_attr);
}

/**
 * shim_mlx5_create_cq - mlx5dv_create_cq()
 * @context: an open device
 * @attr: what the program asks for
 * @mlx5_attr: what it asks for that only libmlx5 knows, or NULL
 *
 * Return: the CQ, or NULL and errno.
 */
struct ibv_cq_ex *shim_mlx5_create_cq(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr,
				      struct mlx5dv_cq_init_attr *mlx5_attr)
{
	struct creation c = { .context = context, .cq_attr = mlx5_attr };

	if (!shim_mlx5_real.create_cq) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return shim_create_cq_with(shim_find_ctx(context), create_cq, &c, attr);
}

/**
 * shim_mlx5_init_obj - mlx5dv_init_obj()
 * @fn: that of libmlx5 in the version that the program asks for, or NULL
 * @obj: the queues, and what is filled in with their memory
 * @type: which of them are asked for
 *
 * Return: 0 or an error.
 */
int shim_mlx5_init_obj(shim_init_obj_fn fn, struct mlx5dv_obj *obj, uint64_t type)
{
	int err = fn ? fn(obj, type) : EOPNOTSUPP;

	if (err)
		return err;
	if (type & MLX5DV_OBJ_QP)
		err = shim_release_qp(obj->qp.in);
	if (!err && type & MLX5DV_OBJ_CQ)
		err = shim_release_cq(obj->cq.in);
	return err;
}
