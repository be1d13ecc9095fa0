// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices that a program opens: imported, renamed, and back under an old name.
 */
#include <errno.h>

#include "member.h"
#include "prog.h"
#include "tests.h"

/* A device that another process has opened is one like others. */
static void imported(void **state)
{
	struct prog *p = *state;

	fake_ctx = shim_import_device(5);
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	p->qp = prog_make_qp(p, p->cq, 0);
	assert_non_null(shim_map_find(&shim_qps, p->qp));
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 0);
	prog_pump(p, 1, 1);
}

/* The program's libibverbs is too old to have it. */
static void not_imported(void **state)
{
	(void)state;
	shim_real.import_device = NULL;
	errno = 0;
	assert_null(shim_import_device(5));
	assert_int_equal(errno, EOPNOTSUPP);
	fake_verbs_install();
}

/* The kernel is told of a device by its name of now, whenever it was opened. */
static void renamed(void **state)
{
	struct prog *p = *state;

	fake_kernel.now_called = "fake7";
	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	fake_kernel.now_called = "fake8";
	p->qp = prog_make_qp(p, p->cq, 0);
	assert_int_equal(fake_kernel.attached, 1);
	assert_string_equal(fake_kernel.attached_to, "fake8");
}

static void renamed_refused(void **state)
{
	struct prog *p = *state;

	fake_ctx = shim_open_device(&fake_verbs.device);
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	fake_kernel.now_called = "fake7";
	fake_kernel.attach_err = ENOMEM;
	p->qp = prog_make_qp(p, p->cq, 0);
	assert_int_equal(fake_kernel.reported, p->qp->ex.qp_base.qp_num);
	assert_int_equal(fake_kernel.reason, RISO_REASON_MEMORY);
}

/* Open @device besides, with a queue pair on it. */
static struct shim_member *open_second(struct prog *q, struct ibv_device *device)
{
	struct ibv_context *first = fake_ctx;
	struct shim_qp *f;

	fake_ctx = shim_open_device(device);
	q->cq = prog_make_cq(2 * PROG_DEPTH);
	q->qp = prog_make_qp(q, q->cq, 0);
	fake_ctx = first;
	f = shim_map_find(&shim_qps, q->qp);
	assert_false(f->alone);
	return f->ctx->m;
}

static void close_second(struct prog *q)
{
	struct ibv_context *context = q->qp->ex.qp_base.context;

	shim_destroy_qp(&q->qp->ex.qp_base);
	shim_destroy_cq(ibv_cq_ex_to_cq(&q->cq->cq));
	shim_close_device(context);
}

/* A device that is opened again after it was renamed is the same one. */
static void renamed_between(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct prog q = {};

	assert_int_equal(fake_kernel.attached, 1);
	fake_kernel.now_called = "fake7";
	assert_ptr_equal(open_second(&q, &fake_verbs.device), f->ctx->m);
	assert_int_equal(fake_kernel.attached, 1);
	close_second(&q);
}

/* Another one that has its name now is not. */
static void name_passed_on(void **state)
{
	struct ibv_device other = { .name = "fake0", .dev_name = "uverbs1" };
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct prog q = {};

	fake_kernel.now_called = "fake7";
	fake_kernel.other_called = "fake0";
	assert_ptr_not_equal(open_second(&q, &other), f->ctx->m);
	assert_int_equal(fake_kernel.attached, 2);
	assert_string_equal(fake_kernel.attached_to, "fake0");
	close_second(&q);
}

/*
 * The provider hears of no domain of a single thread, and what the program asks for stays as it
 * is, as in memory that nobody can write.
 */
static void parent_domain(void **state)
{
	static struct ibv_td td;
	static struct ibv_pd pd;
	/* Nobody can write there. */
	static const struct ibv_parent_domain_init_attr attr = {
		.pd = &pd,
		.td = &td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.pd_context = &td,
	};
	static const struct ibv_parent_domain_init_attr older = {
		.pd = &pd,
		.td = &td,
		.pd_context = &td,
	};
	const struct ibv_parent_domain_init_attr *asked = &fake_verbs.domain_asked;

	(void)state;
	assert_ptr_equal(ibv_alloc_parent_domain(fake_ctx, (void *)&attr), &fake_verbs.domain);
	assert_null(asked->td);
	assert_ptr_equal(asked->pd, &pd);
	assert_int_equal(asked->comp_mask, attr.comp_mask);
	assert_ptr_equal(asked->pd_context, &td);
	/* What it does not say that it has may be of somebody else. */
	assert_ptr_equal(ibv_alloc_parent_domain(fake_ctx, (void *)&older), &fake_verbs.domain);
	assert_null(asked->td);
	assert_ptr_equal(asked->pd, &pd);
	assert_null(asked->pd_context);
}

/* One that says more than the shim knows may be of a single thread only without the shim. */
static void newer_domain(void **state)
{
	struct ibv_td td;
	struct ibv_parent_domain_init_attr attr = { .comp_mask = 1 << 20 };

	(void)state;
	assert_ptr_equal(ibv_alloc_parent_domain(fake_ctx, &attr), &fake_verbs.domain);
	attr.td = &td;
	assert_null(ibv_alloc_parent_domain(fake_ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* One that came back under its name is another device, also if nothing was held there. */
static void came_back(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct shim_member *same, *other;

	same = shim_member_get(&fake_verbs.device);
	shim_member_put(same);
	assert_ptr_equal(same, f->ctx->m);
	fake_kernel.wait_err = ENODEV;
	other = shim_member_get(&fake_verbs.device);
	shim_member_attach(other, fake_verbs.next_qpn - 1);
	shim_member_put(other);
	assert_ptr_not_equal(other, f->ctx->m);
	assert_int_equal(fake_kernel.attached, 2);
}

/* A program closes all files, and opens another one, which gets the number of ours. */
static void file_taken(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	int closed = fake_kernel.closed;

	fake_kernel.file_device = 0;
	shim_member_close_file(f->ctx->m);
	assert_int_equal(fake_kernel.closed, closed);
	assert_int_equal(f->ctx->m->fd, -1);
	/* By the program */
	fake_kernel.closed++;
}

/* What it posts goes straight from when the kernel cannot be asked any more. */
static void file_closed(void **state)
{
	struct prog *p = *state;

	fake_kernel.wait_err = EBADF;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
	fake_run(p->qp, 1);
	prog_expect(p, 1, IBV_WC_SUCCESS);
}

/* Nobody asks for one device by the file of another. */
static void number_passed_on(void **state)
{
	struct ibv_device other = { .name = "fake1", .dev_name = "uverbs1" };
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	struct shim_member *m;
	struct prog q = {};

	fake_kernel.other_called = "fake1";
	fake_kernel.next_file = f->ctx->m->fd;
	/* By the program */
	fake_kernel.closed++;
	m = open_second(&q, &other);
	assert_int_equal(f->ctx->m->fd, -1);
	assert_int_equal(m->fd, fake_kernel.next_file);
	close_second(&q);
}

/* One whose provider cannot post, or cannot poll, is left alone. */
static void mangled(void **state)
{
	struct prog *p = *state;

	fake_verbs.lacks_poll = true;
	fake_ctx = shim_open_device(&fake_verbs.device);
	fake_verbs.lacks_poll = false;
	assert_null(fake_ctx->ops.poll_cq);
	p->cq = prog_make_cq(2 * PROG_DEPTH);
	p->qp = prog_make_qp(p, p->cq, 0);
	assert_null(shim_map_find(&shim_qps, p->qp));
	assert_int_equal(fake_kernel.reason, RISO_REASON_SHIM_LIMIT);
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(p->qp->posted, 1);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST_EMPTY(imported),
	PROG_TEST_EMPTY(not_imported),
	PROG_TEST_EMPTY(renamed),
	PROG_TEST_EMPTY(renamed_refused),
	PROG_TEST(renamed_between),
	PROG_TEST(name_passed_on),
	PROG_TEST(parent_domain),
	PROG_TEST(newer_domain),
	PROG_TEST(came_back),
	PROG_TEST(file_taken),
	PROG_TEST(file_closed),
	PROG_TEST(number_passed_on),
	PROG_TEST_EMPTY(mangled),
};

const struct prog_tests prog_device_tests = { tests, ARRAY_SIZE(tests) };
