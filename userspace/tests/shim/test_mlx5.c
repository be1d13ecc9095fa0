// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that asks libmlx5 for contexts, queue pairs, CQs and their memory. The functions of
 * libmlx5 here are those of the fake provider. As with libmlx5, no other function sees the calls.
 */
#include <errno.h>
#include <string.h>

#include "fake_wr.h"
#include "mlx5.h"
#include "prog.h"
#include "tests.h"

/* A bit of a mask that libmlx5 may have one day */
static const uint64_t newer_bit = (uint64_t)1 << 40;

static struct {
	const void *attr;	/* what only libmlx5 knows, in the last creation */
	uint32_t created_qpn;	/* of the last queue pair that it created */
	uint64_t init_type;	/* of the last mlx5dv_init_obj() */
	int init_err;		/* error of mlx5dv_init_obj() */
} mlx5;

static struct ibv_context *open_device(struct ibv_device *device,
				       struct mlx5dv_context_attr *attr)
{
	mlx5.attr = attr;
	return shim_real.open_device(device);
}

static struct ibv_qp *create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				struct mlx5dv_qp_init_attr *mlx5_attr)
{
	struct ibv_qp *qp = fake_create_qp_ex(context, attr);

	mlx5.attr = mlx5_attr;
	mlx5.created_qpn = qp ? qp->qp_num : 0;
	return qp;
}

static struct ibv_cq_ex *create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				   struct mlx5dv_cq_init_attr *mlx5_attr)
{
	mlx5.attr = mlx5_attr;
	return fake_create_cq_ex(context, attr);
}

static int init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
	(void)obj;
	mlx5.init_type = type;
	return mlx5.init_err;
}

/* A device that mlx5dv_open_device() has opened, and a CQ */
static int mlx5_setup(void **state)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct prog *p;

	prog_setup_empty(state);
	p = *state;
	memset(&mlx5, 0, sizeof(mlx5));
	shim_mlx5_real = (struct shim_mlx5_real) {
		.open_device = open_device,
		.create_qp = create_qp,
		.create_cq = create_cq,
		.init_obj = init_obj,
	};
	fake_ctx = shim_mlx5_open_device(&fake_verbs.device, &attr);
	assert_ptr_equal(mlx5.attr, &attr);
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	return 0;
}

static int mlx5_teardown(void **state)
{
	shim_mlx5_real = (struct shim_mlx5_real) { };
	return prog_teardown(state);
}

#define MLX5_TEST(fn) cmocka_unit_test_setup_teardown(fn, mlx5_setup, mlx5_teardown)

/* The attributes stay as the program has them. */
static struct fake_qp *make_qp_as(struct prog *p, enum ibv_qp_type type, uint64_t send_ops,
				  struct mlx5dv_qp_init_attr *mlx5_attr)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.recv_cq = ibv_cq_ex_to_cq(&p->cq->cq),
		.cap = {
			.max_send_wr = PROG_DEPTH,
			.max_send_sge = FAKE_SGES,
			.max_inline_data = FAKE_INLINE,
		},
		.qp_type = type,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct ibv_qp_attr mod = {
		.path_mtu = IBV_MTU_1024, .max_rd_atomic = 4, .qp_state = IBV_QPS_RTS,
	};
	struct ibv_qp *qp;

	if (send_ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = send_ops;
	}
	qp = shim_mlx5_create_qp(fake_ctx, &attr, mlx5_attr);
	assert_non_null(qp);
	assert_int_equal(mlx5.created_qpn, qp->qp_num);
	assert_ptr_equal(mlx5.attr, mlx5_attr);
	assert_int_equal(attr.cap.max_send_wr, PROG_DEPTH);
	assert_int_equal(attr.sq_sig_all, 1);
	shim_modify_qp(qp, &mod, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MAX_QP_RD_ATOMIC);
	return (struct fake_qp *)qp;
}

static struct fake_qp *make_qp(struct prog *p)
{
	return make_qp_as(p, IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND, NULL);
}

static void expect_governed(struct fake_qp *qp)
{
	assert_non_null(shim_map_find(&shim_qps, qp));
	assert_int_equal(fake_kernel.reported, 0);
	assert_true(qp->depth > PROG_DEPTH);
	assert_int_equal(qp->init.sq_sig_all, 0);
}

/* It goes straight to the provider, as the program has asked for it. */
static void expect_alone(struct fake_qp *qp, uint32_t reason)
{
	assert_null(shim_map_find(&shim_qps, qp));
	assert_int_equal(fake_kernel.reported, reason ? qp->ex.qp_base.qp_num : 0);
	assert_int_equal(fake_kernel.reason, reason);
	assert_int_equal(qp->depth, PROG_DEPTH);
	assert_int_equal(qp->init.sq_sig_all, 1);
	fake_kernel.reported = 0;
	fake_kernel.reason = 0;
}

static void opened(void **state)
{
	struct prog *p = *state;

	assert_non_null(shim_find_ctx(fake_ctx));
	p->qp = prog_make_qp(p, p->cq, 0);
	expect_governed(p->qp);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	prog_pump(p, 1, 1);
}

/* What has no function there is answered as libmlx5 does for devices of others. */
static void missing(void **state)
{
	struct ibv_qp_init_attr_ex qp_attr = {};
	struct ibv_cq_init_attr_ex cq_attr = {};
	struct mlx5dv_obj obj = {};

	(void)state;
	shim_mlx5_real = (struct shim_mlx5_real) { };
	errno = 0;
	assert_null(shim_mlx5_open_device(&fake_verbs.device, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(shim_mlx5_create_qp(fake_ctx, &qp_attr, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(shim_mlx5_create_cq(fake_ctx, &cq_attr, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(shim_mlx5_init_obj(NULL, &obj, MLX5DV_OBJ_QP), EOPNOTSUPP);
}

static void created(void **state)
{
	struct prog *p = *state;

	p->qp = make_qp(p);
	expect_governed(p->qp);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 3 * FAKE_CHUNK, 0), 0);
	ibv_wr_start(&p->qp->ex);
	p->qp->ex.wr_id = 2;
	p->qp->ex.wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(&p->qp->ex, 7, (uintptr_t)prog_remote);
	ibv_wr_set_sge(&p->qp->ex, 7, (uintptr_t)prog_local, 2 * FAKE_CHUNK);
	assert_int_equal(ibv_wr_complete(&p->qp->ex), 0);
	assert_int_equal(p->qp->posted, 0);
	prog_pump(p, 1, 2);
	assert_int_equal(p->qp->posted, 5);
}

/* How the adapter carries out what is posted is no matter of the shim. */
static void created_with_flags(void **state)
{
	struct mlx5dv_qp_init_attr attr = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE |
				MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | 1 << 7,
	};
	struct prog *p = *state;

	p->qp = make_qp_as(p, IBV_QPT_RC, 0, &attr);
	expect_governed(p->qp);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 3 * FAKE_CHUNK, 0), 0);
	assert_int_equal(p->qp->posted, 0);
	prog_pump(p, 1, 1);
}

static void may_post_more(void **state)
{
	struct mlx5dv_qp_init_attr attrs[] = {
		{
			.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
			.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST,
		}, {
			.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
			.create_flags = MLX5DV_QP_CREATE_SIG_PIPELINING,
		},
		{ .comp_mask = newer_bit },
	};
	struct prog *p = *state;
	struct fake_qp *qp;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		qp = make_qp_as(p, IBV_QPT_RC, IBV_QP_EX_WITH_SEND, &attrs[i]);
		expect_alone(qp, RISO_REASON_UNKNOWN_OPCODE);
		shim_destroy_qp(&qp->ex.qp_base);
	}
	/* A FLUSH, which no ibv_send_wr can say */
	qp = make_qp_as(p, IBV_QPT_RC, 1 << 11, NULL);
	expect_alone(qp, RISO_REASON_UNKNOWN_OPCODE);
	shim_destroy_qp(&qp->ex.qp_base);
}

/* The kernel itself knows what type a queue pair has. */
static void dynamic(void **state)
{
	struct mlx5dv_qp_init_attr attr = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST,
	};
	struct prog *p = *state;
	struct fake_qp *qp = make_qp_as(p, IBV_QPT_DRIVER, IBV_QP_EX_WITH_SEND, &attr);

	expect_alone(qp, RISO_REASON_NONE);
	shim_destroy_qp(&qp->ex.qp_base);
}

/* A context that the shim did not see being opened */
static void unknown_context(void **state)
{
	struct verbs_context other = { .context.device = &fake_verbs.device };
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = PROG_DEPTH };
	struct ibv_qp_init_attr_ex qp_attr = {
		.cap.max_send_wr = PROG_DEPTH, .qp_type = IBV_QPT_RC,
	};
	struct mlx5dv_qp_init_attr attr = { .comp_mask = newer_bit };
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;

	(void)state;
	cq = shim_mlx5_create_cq(&other.context, &cq_attr, NULL);
	assert_non_null(cq);
	assert_int_equal(cq->cqe, PROG_DEPTH);
	assert_null(shim_map_find(&shim_cqs, cq));
	qp_attr.send_cq = ibv_cq_ex_to_cq(cq);
	qp_attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = shim_mlx5_create_qp(&other.context, &qp_attr, &attr);
	assert_non_null(qp);
	assert_null(shim_map_find(&shim_qps, qp));
	assert_int_equal(fake_kernel.reported, 0);
	shim_destroy_qp(qp);
	shim_destroy_cq(ibv_cq_ex_to_cq(cq));
}

/* Its completions are those of the program, and it has room for those of chunks. */
static void created_cq(void **state)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 2 * PROG_DEPTH,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct mlx5dv_cq_init_attr mlx5_attr = {};
	struct ibv_poll_cq_attr poll = {};
	struct prog *p = *state;

	shim_destroy_cq(ibv_cq_ex_to_cq(&p->cq->cq));
	p->cq = (struct fake_cq *)shim_mlx5_create_cq(fake_ctx, &attr, &mlx5_attr);
	assert_non_null(p->cq);
	assert_ptr_equal(mlx5.attr, &mlx5_attr);
	assert_int_equal(attr.cqe, 2 * PROG_DEPTH);
	assert_int_equal(attr.flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	assert_int_equal(attr.wc_flags, 0);
	assert_true(p->cq->cq.cqe > 2 * PROG_DEPTH);
	p->qp = make_qp(p);
	expect_governed(p->qp);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 9, 2 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, 2 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(fake_run(p->qp, 2), 2);
	assert_int_equal(ibv_start_poll(&p->cq->cq, &poll), 0);
	assert_int_equal(p->cq->cq.wr_id, 9);
	assert_int_equal(ibv_next_poll(&p->cq->cq), ENOENT);
	ibv_end_poll(&p->cq->cq);
}

/* What a program asks for with mlx5dv_init_obj() */
static int ask_memory(struct prog *p, uint64_t type)
{
	struct mlx5dv_obj obj = {
		.qp.in = p->qp ? &p->qp->ex.qp_base : NULL,
		.cq.in = ibv_cq_ex_to_cq(&p->cq->cq),
	};
	int err = shim_mlx5_init_obj(shim_mlx5_real.init_obj, &obj, type);

	assert_int_equal(mlx5.init_type, type);
	return err;
}

/* All that is posted from here on goes straight, and the kernel knows why. */
static void expect_released(struct prog *p)
{
	uint32_t posted = p->qp->posted;
	int registers = fake_kernel.registers;

	assert_int_equal(fake_kernel.reported, p->qp->ex.qp_base.qp_num);
	assert_int_equal(fake_kernel.reason, RISO_REASON_SHIM_LIMIT);
	/* Also with other rules */
	fake_kernel.k.classes++;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 77, 2 * FAKE_CHUNK, 0), 0);
	assert_int_equal(p->qp->posted, posted + 1);
	assert_int_equal(p->qp->sq[posted].wr.wr_id, 77);
	assert_int_equal(fake_kernel.registers, registers);
	assert_int_equal(shim_set_class(&p->qp->ex.qp_base, RISO_CLASS_LATENCY), EOPNOTSUPP);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 77, IBV_WC_SUCCESS);
}

static void memory_of_qp(void **state)
{
	struct prog *p = *state;
	struct fake_qp *other;

	p->qp = make_qp(p);
	expect_governed(p->qp);
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_QP), 0);
	expect_released(p);
	/* Others on the CQ are governed. */
	fake_kernel.reported = 0;
	other = prog_make_qp(p, p->cq, 0);
	expect_governed(other);
	assert_int_equal(prog_post(other, IBV_WR_SEND, 1, 8, 0), 0);
	assert_int_equal(other->posted, 0);
	shim_destroy_qp(&other->ex.qp_base);
}

/* What was posted before is out before the program posts by itself. */
static void memory_of_busy_qp(void **state)
{
	struct prog *p = *state;
	struct ibv_wc wc;

	p->qp = make_qp(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 3 * FAKE_CHUNK, 0), 0);
	assert_int_equal(p->qp->posted, 0);
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_QP), 0);
	assert_true(p->qp->posted > 0);
	fake_run(p->qp, UINT32_MAX);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	assert_int_equal(wc.wr_id, 1);
	prog_expect_none(p);
	expect_released(p);
}

static struct fake_qp *full_qp;

static void take_at_third(void)
{
	if (++fake_verbs.calls == 3)
		full_qp->refuse = 0;
}

/* Also what the provider has no room for at first */
static void memory_of_full_qp(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f;

	p->qp = make_qp(p);
	f = shim_map_find(&shim_qps, p->qp);
	full_qp = p->qp;
	p->qp->refuse = ENOMEM;
	p->qp->refuse_from = 2;
	fake_grant(RISO_USER_TX, MB);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 4 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 2);
	/* In a second there is no room, and then there is. */
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_QP), EBUSY);
	assert_true(shim_qp_holds(f));
	fake_verbs.calls = 0;
	fake_verbs.at_call = take_at_third;
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_QP), 0);
	fake_verbs.at_call = NULL;
	assert_false(shim_qp_holds(f));
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect(p, 2, IBV_WC_SUCCESS);
	expect_released(p);
}

/* Whoever polls a CQ by itself would see the completions of chunks. */
static void memory_of_cq(void **state)
{
	struct prog *p = *state;
	struct fake_qp *first;

	p->qp = make_qp(p);
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_CQ), 0);
	expect_released(p);
	first = p->qp;
	fake_kernel.reported = 0;
	p->qp = make_qp(p);
	expect_alone(p->qp, RISO_REASON_SHIM_LIMIT);
	shim_destroy_qp(&first->ex.qp_base);
}

/* The memory would tell of pieces that are out. Later it may be had. */
static void memory_of_busy_cq(void **state)
{
	struct prog *p = *state;

	p->qp = make_qp(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 4 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 4 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	assert_int_equal(p->qp->posted, 4);
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_CQ), EBUSY);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_CQ), 0);
}

/* Nothing was handed out, or nothing of a queue. */
static void no_memory_of_queues(void **state)
{
	struct prog *p = *state;

	p->qp = make_qp(p);
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_PD | MLX5DV_OBJ_AH), 0);
	mlx5.init_err = EINVAL;
	assert_int_equal(ask_memory(p, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), EINVAL);
	expect_governed(p->qp);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, 0), 0);
	assert_int_equal(p->qp->posted, 0);
	prog_pump(p, 1, 1);
}

static const struct CMUnitTest tests[] = {
	MLX5_TEST(opened),
	MLX5_TEST(missing),
	MLX5_TEST(created),
	MLX5_TEST(created_with_flags),
	MLX5_TEST(may_post_more),
	MLX5_TEST(dynamic),
	MLX5_TEST(unknown_context),
	MLX5_TEST(created_cq),
	MLX5_TEST(memory_of_qp),
	MLX5_TEST(memory_of_busy_qp),
	MLX5_TEST(memory_of_full_qp),
	MLX5_TEST(memory_of_cq),
	MLX5_TEST(memory_of_busy_cq),
	MLX5_TEST(no_memory_of_queues),
};

const struct prog_tests prog_mlx5_tests = { tests, ARRAY_SIZE(tests) };
