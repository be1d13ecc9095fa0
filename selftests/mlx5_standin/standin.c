// SPDX-License-Identifier: GPL-2.0
/*
 * A stand-in for libmlx5, for tests on machines without a ConnectX adapter: each rxe device is one
 * of the mlx5 driver.
 *
 * It is called as libmlx5 is, and has its symbols and versions. As there, no call passes a function
 * that a program may have put in front of libibverbs, or a pointer in the context: devices are
 * opened by the entry point that libibverbs has for providers, and objects are created by the
 * provider's own functions. These are read from a context that nobody else knows.
 *
 * With -DNEWER it takes what a newer libmlx5 takes. DEVX has no more than a program needs that
 * looks whether it is there. What is called is noted in the file that MLX5_STANDIN_LOG names.
 *
 * Each thread fills the table of functions with the same values; there is no other state.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

/* Of libibverbs, for providers only; so no header has it. */
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);

enum {
	/* Flags of mlx5dv_create_qp() that are known; newer ones process out of order */
#ifdef NEWER
	KNOWN_FLAGS = (1 << 8) - 1,
#else
	KNOWN_FLAGS = (1 << 7) - 1,
#endif
	/* Where an adapter's answer to QUERY_HCA_CAP has the largest message, and its logarithm */
	CAP_OPCODE = 0x100,
	CAP_MAX_MSG = 16 + 56,
	CAP_MAX_MSG_LOG = 30,
};

static struct {
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
} provider;

static void note(const char *function, struct ibv_device *device)
{
	const char *path = getenv("MLX5_STANDIN_LOG");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%s %s\n", function, device->name);
	close(fd);
}

bool mlx5dv_is_supported(struct ibv_device *device)
{
	return !strncmp(device->name, "rxe", 3);
}

static bool read_provider(struct ibv_device *device)
{
	struct ibv_context *context;
	struct verbs_context *v;

	if (!mlx5dv_is_supported(device)) {
		errno = EOPNOTSUPP;
		return false;
	}
	if (__atomic_load_n(&provider.create_cq_ex, __ATOMIC_ACQUIRE))
		return true;
	context = verbs_open_device(device, NULL);
	if (!context)
		return false;
	v = verbs_get_ctx(context);
	__atomic_store_n(&provider.create_qp_ex, v->create_qp_ex, __ATOMIC_RELAXED);
	__atomic_store_n(&provider.create_cq_ex, v->create_cq_ex, __ATOMIC_RELEASE);
	ibv_close_device(context);
	return true;
}

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
	if (!mlx5dv_is_supported(device)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	note(__func__, device);
	return verbs_open_device(device, attr);
}

/* What only an adapter does with a queue pair makes no difference here. */
static bool is_valid(const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *more)
{
	const __u64 known = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
			    MLX5DV_QP_INIT_ATTR_MASK_DC |
			    MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
			    MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;

	if (attr->qp_type == IBV_QPT_DRIVER || !(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return false;
	if (!more)
		return true;
	if ((more->comp_mask & ~known) || (more->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC))
		return false;
	return !(more->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) ||
	       !(more->create_flags & ~KNOWN_FLAGS);
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				struct mlx5dv_qp_init_attr *mlx5_attr)
{
	if (!read_provider(context->device))
		return NULL;
	if (!is_valid(attr, mlx5_attr)) {
		errno = EINVAL;
		return NULL;
	}
	note(__func__, context->device);
	return provider.create_qp_ex(context, attr);
}

struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				   struct mlx5dv_cq_init_attr *mlx5_attr)
{
	if (!read_provider(context->device))
		return NULL;
	if (mlx5_attr && mlx5_attr->comp_mask & ~7ULL) {
		errno = EINVAL;
		return NULL;
	}
	note(__func__, context->device);
	return provider.create_cq_ex(context, attr);
}

/* There is no memory of an adapter's queue, and no program of the tests looks into it. */
int mlx5dv_init_obj(struct mlx5dv_obj *obj, unsigned long type)
{
	if (type & MLX5DV_OBJ_QP)
		memset(obj->qp.out, 0, sizeof(*obj->qp.out));
	if (type & MLX5DV_OBJ_CQ)
		memset(obj->cq.out, 0, sizeof(*obj->cq.out));
	return 0;
}

/* The older version is the same. */
__asm__(".symver mlx5dv_init_obj, mlx5dv_init_obj@MLX5_1.0");
__asm__(".symver mlx5dv_init_obj, mlx5dv_init_obj@@MLX5_1.2");

int mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *attr)
{
	(void)context;
	attr->version = 0;
	attr->flags = 0;
	attr->comp_mask = 0;
	return 0;
}

struct mlx5dv_qp_ex *mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
	return (struct mlx5dv_qp_ex *)qp;
}

struct mlx5dv_devx_event_channel *
mlx5dv_devx_create_event_channel(struct ibv_context *context,
				 enum mlx5dv_devx_create_event_channel_flags flags)
{
	(void)context;
	(void)flags;
	return calloc(1, sizeof(struct mlx5dv_devx_event_channel));
}

void mlx5dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *channel)
{
	free(channel);
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t size,
					      __u32 access)
{
	(void)context;
	(void)addr;
	(void)size;
	(void)access;
	return calloc(1, sizeof(struct mlx5dv_devx_umem));
}

int mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *umem)
{
	free(umem);
	return 0;
}

/* An adapter that can do nothing but hold messages of 1 GB */
int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out,
			    size_t outlen)
{
	const unsigned char *opcode = in;

	if (inlen < 2 || outlen <= CAP_MAX_MSG || (opcode[0] << 8 | opcode[1]) != CAP_OPCODE) {
		errno = EOPNOTSUPP;
		return errno;
	}
	note(__func__, context->device);
	memset(out, 0, outlen);
	((unsigned char *)out)[CAP_MAX_MSG] = CAP_MAX_MSG_LOG;
	return 0;
}
