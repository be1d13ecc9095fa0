/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What programs ask libmlx5 for. See mlx5.c.
 */
#ifndef SHIM_MLX5_H
#define SHIM_MLX5_H

#include <stdint.h>
#include <infiniband/mlx5dv.h>

typedef int (*shim_init_obj_fn)(struct mlx5dv_obj *obj, uint64_t type);

/**
 * struct shim_mlx5_real - the functions of libmlx5 that the shim stands in front of
 * @open_device: mlx5dv_open_device()
 * @create_qp: mlx5dv_create_qp()
 * @create_cq: mlx5dv_create_cq()
 * @init_obj: mlx5dv_init_obj()
 * @init_obj_1_0: mlx5dv_init_obj() of version MLX5_1.0, which tells of a CQ in another way
 *
 * NULL is what the program's libmlx5 does not have.
 */
struct shim_mlx5_real {
	struct ibv_context *(*open_device)(struct ibv_device *device,
					   struct mlx5dv_context_attr *attr);
	struct ibv_qp *(*create_qp)(struct ibv_context *context,
				    struct ibv_qp_init_attr_ex *attr,
				    struct mlx5dv_qp_init_attr *mlx5_attr);
	struct ibv_cq_ex *(*create_cq)(struct ibv_context *context,
				       struct ibv_cq_init_attr_ex *attr,
				       struct mlx5dv_cq_init_attr *mlx5_attr);
	shim_init_obj_fn init_obj;
	shim_init_obj_fn init_obj_1_0;
};

extern struct shim_mlx5_real shim_mlx5_real;

struct ibv_context *shim_mlx5_open_device(struct ibv_device *device,
					  struct mlx5dv_context_attr *attr);
struct ibv_qp *shim_mlx5_create_qp(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr,
				   struct mlx5dv_qp_init_attr *mlx5_attr);
struct ibv_cq_ex *shim_mlx5_create_cq(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr,
				      struct mlx5dv_cq_init_attr *mlx5_attr);
int shim_mlx5_init_obj(shim_init_obj_fn fn, struct mlx5dv_obj *obj, uint64_t type);

#endif /* SHIM_MLX5_H */
