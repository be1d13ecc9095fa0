// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The functions of ibv_wr_start() to ibv_wr_complete().
 *
 * Owns the functions that the shim swaps in struct ibv_qp_ex. On a governed queue pair they
 * write records behind those that are held. ibv_wr_complete() makes these a part of the
 * queue, and from there on it is as if ibv_post_send() had posted them. Otherwise the
 * provider's own functions are called.
 *
 * Lock: shim_build.lock is held from start to complete or abort, as providers hold one
 * of their own, so nobody else writes there. A signal handler that finds it held in the middle of
 * another call does without: it builds in vain, and ibv_wr_complete() tells it so.
 *
 * Everything here runs in threads of the program.
 */
#include <errno.h>

#include "class.h"
#include "ctx.h"
#include "guard.h"
#include "helper.h"
#include "passed.h"
#include "poller.h"
#include "post.h"
#include "qp.h"
#include "record.h"
#include "wr.h"

enum {
	/* Queue pairs on which a thread builds in vain at the same time; the next one waits */
	MAX_REFUSED = 4,
};

/*
 * Where this thread builds in vain: a signal handler has begun to in the middle of a call of the
 * shim, while shim_build.lock was held, maybe by its own thread.
 */
static __thread struct ibv_qp_ex *refused[MAX_REFUSED]
	__attribute__((tls_model("initial-exec")));
static __thread unsigned int num_refused __attribute__((tls_model("initial-exec")));

/* In place of the flow then: it takes nothing. */
static struct shim_qp refused_flow = { .build = { .err = EDEADLK } };

static __attribute__((noinline)) bool is_refused(const struct ibv_qp_ex *qp)
{
	unsigned int i;

	for (i = 0; i < num_refused; i++)
		if (refused[i] == qp)
			return true;
	return false;
}

/* The signal handler has built enough. */
static int end_refused(const struct ibv_qp_ex *qp)
{
	unsigned int i = 0;

	while (refused[i] != qp)
		i++;
	refused[i] = refused[--num_refused];
	return EDEADLK;
}

static struct shim_qp *find(struct ibv_qp_ex *qp)
{
	if (__builtin_expect(num_refused, 0) && is_refused(qp))
		return &refused_flow;
	return shim_map_find(&shim_qps, qp);
}

/* False if the flow goes straight to the provider. */
static bool open_build(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;

	shim_lock(&m->lock);
	if (!shim_qp_is_direct(f)) {
		f->build.open = true;
		f->build.num = 0;
		f->build.err = 0;
		shim_queue_rewind(f);
	}
	shim_unlock(&m->lock);
	return f->build.open;
}

/*
 * A signal handler in the middle of a call does not wait: its own thread may have the lock, or
 * something that who has it waits for. False if it builds in vain then.
 */
static bool lock_build(struct shim_qp *f, struct ibv_qp_ex *qp)
{
	if (!shim_is_in_call() || num_refused == MAX_REFUSED)
		return !pthread_mutex_lock(&f->build.lock);
	if (!pthread_mutex_trylock(&f->build.lock))
		return true;
	refused[num_refused++] = qp;
	return !shim_is_nested();
}

static void wr_start(struct ibv_qp_ex *qp)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	bool direct;

	if (!shim_is_in_call())
		shim_qp_refresh(f);
	if (!lock_build(f, qp))
		return;
	direct = shim_qp_is_direct(f);
	if (!direct && shim_is_nested()) {
		f->build.direct = false;
		f->build.err = EDEADLK;
		return;
	}
	f->build.direct = direct || !open_build(f);
	if (f->build.direct)
		f->real.wr_start(qp);
}

/* Post what was built, or nothing of it. */
static int close_build(struct shim_qp *f, uint32_t num)
{
	struct shim_member *m = f->ctx->m;
	int err = 0;

	shim_lock(&m->lock);
	if (num)
		err = shim_queue_publish(f, num, true);
	f->build.open = false;
	shim_qp_pass(f);
	shim_unlock_and_drive(m);
	return err;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct shim_qp *f = find(qp);
	int err;

	if (f == &refused_flow)
		return end_refused(qp);
	/* The provider may make a system call here. */
	shim_enter();
	if (f->build.direct) {
		err = f->real.wr_complete(qp);
	} else if (f->build.err) {
		err = f->build.err;
		if (f->build.open)
			close_build(f, 0);
	} else {
		err = close_build(f, f->build.num);
	}
	pthread_mutex_unlock(&f->build.lock);
	shim_leave();
	return err;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	struct shim_qp *f = find(qp);

	if (f == &refused_flow) {
		end_refused(qp);
		return;
	}
	if (f->build.direct)
		f->real.wr_abort(qp);
	else if (f->build.open)
		close_build(f, 0);
	pthread_mutex_unlock(&f->build.lock);
}

/* Begin a record; without a flow's room it is only noted that there was none. */
static void stage(struct shim_qp *f, struct ibv_qp_ex *qp,
		  struct ibv_send_wr *wr)
{
	struct shim_rec *rec;
	int err;

	if (f->build.err)
		return;
	wr->wr_id = qp->wr_id;
	wr->send_flags = qp->wr_flags & ~IBV_SEND_INLINE;
	rec = shim_queue_stage(f, f->build.num);
	err = rec ? shim_queue_copy(f, rec, wr) : ENOMEM;
	if (err)
		f->build.err = err;
	else
		f->build.num++;
}

/*
 * For the provider's function: the completion that the program asked for when it
 * created the queue pair, of which the provider was not told. Returns the flags to be
 * restored.
 */
static unsigned int signal_all(const struct shim_qp *f, struct ibv_qp_ex *qp)
{
	unsigned int flags = qp->wr_flags;

	if (f->sig_all)
		qp->wr_flags |= IBV_SEND_SIGNALED;
	return flags;
}

/* Does the provider make it, with the flags that are set now? Else it is staged. */
static bool goes_direct(struct shim_qp *f, struct ibv_qp_ex *qp,
			struct ibv_send_wr *wr, unsigned int *flags)
{
	if (!f->build.direct) {
		stage(f, qp, wr);
		return false;
	}
	*flags = signal_all(f, qp);
	f->build.opcode = wr->opcode;
	return true;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			      uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic.remote_addr = addr,
		.wr.atomic.rkey = rkey,
		.wr.atomic.compare_add = compare,
		.wr.atomic.swap = swap,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_atomic_cmp_swp(qp, rkey, addr, compare, swap);
	qp->wr_flags = flags;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t addr, uint64_t add)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic.remote_addr = addr,
		.wr.atomic.rkey = rkey,
		.wr.atomic.compare_add = add,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_atomic_fetch_add(qp, rkey, addr, add);
	qp->wr_flags = flags;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw.mw = mw,
		.bind_mw.rkey = rkey,
		.bind_mw.bind_info = *info,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_bind_mw(qp, mw, rkey, info);
	qp->wr_flags = flags;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_LOCAL_INV,
		.invalidate_rkey = rkey,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_local_inv(qp, rkey);
	qp->wr_flags = flags;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma.remote_addr = addr,
		.wr.rdma.rkey = rkey,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_rdma_read(qp, rkey, addr);
	qp->wr_flags = flags;
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma.remote_addr = addr,
		.wr.rdma.rkey = rkey,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_rdma_write(qp, rkey, addr);
	qp->wr_flags = flags;
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			      __be32 imm_data)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = imm_data,
		.wr.rdma.remote_addr = addr,
		.wr.rdma.rkey = rkey,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_rdma_write_imm(qp, rkey, addr, imm_data);
	qp->wr_flags = flags;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_send(qp);
	qp->wr_flags = flags;
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = imm_data,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_send_imm(qp, imm_data);
	qp->wr_flags = flags;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_INV,
		.invalidate_rkey = rkey,
	};
	struct shim_qp *f = find(qp);
	unsigned int flags;

	if (!goes_direct(f, qp, &wr, &flags))
		return;
	f->real.wr_send_inv(qp, rkey);
	qp->wr_flags = flags;
}

/* The record that was begun last; its data come after its kind. */
static struct shim_rec *last_rec(struct shim_qp *f)
{
	if (f->build.err || !f->build.num)
		return NULL;
	return shim_queue_stage(f, f->build.num - 1);
}

static void set_sges(struct shim_qp *f, size_t num, const struct ibv_sge *sge)
{
	struct shim_rec *rec = last_rec(f);
	struct ibv_send_wr wr;

	if (!rec)
		return;
	wr = rec->wr;
	wr.sg_list = (struct ibv_sge *)sge;
	wr.num_sge = num > f->max_sge ? -1 : (int)num;
	f->build.err = shim_queue_copy(f, rec, &wr);
}

static void set_inline(struct shim_qp *f, size_t num,
		       const struct ibv_data_buf *buf)
{
	struct shim_rec *rec = last_rec(f);
	size_t i;

	if (!rec)
		return;
	shim_queue_inline(rec);
	for (i = 0; i < num && !f->build.err; i++)
		f->build.err = shim_queue_inline_add(f, rec, buf[i].addr,
						     buf[i].length);
}

/* It goes straight, and is counted though the provider may still refuse all of it. */
static void count_direct(const struct shim_qp *f, uint64_t len)
{
	if (shim_qp_counts(f))
		shim_qp_count(f, shim_wr_dir(f->build.opcode), shim_qp_price(f, len));
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct shim_qp *f = find(qp);
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	if (!f->build.direct)
		return set_sges(f, 1, &sge);
	count_direct(f, length);
	f->real.wr_set_sge(qp, lkey, addr, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct shim_qp *f = find(qp);
	uint64_t len = 0;
	size_t i;

	if (!f->build.direct)
		return set_sges(f, num_sge, sg_list);
	for (i = 0; i < num_sge; i++)
		len += sg_list[i].length;
	count_direct(f, len);
	f->real.wr_set_sge_list(qp, num_sge, sg_list);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct shim_qp *f = find(qp);
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	if (!f->build.direct)
		return set_inline(f, 1, &buf);
	count_direct(f, length);
	f->real.wr_set_inline_data(qp, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct shim_qp *f = find(qp);
	uint64_t len = 0;
	size_t i;

	if (!f->build.direct)
		return set_inline(f, num_buf, buf_list);
	for (i = 0; i < num_buf; i++)
		len += buf_list[i].length;
	count_direct(f, len);
	f->real.wr_set_inline_data_list(qp, num_buf, buf_list);
}

/**
 * shim_wr_swap - put our functions in front of those the provider has
 * @f: a flow, which is in the map already
 * @qp: its queue pair
 */
void shim_wr_swap(struct shim_qp *f, struct ibv_qp_ex *qp)
{
	f->real = *qp;
	if (qp->wr_atomic_cmp_swp)
		qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (qp->wr_atomic_fetch_add)
		qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (qp->wr_bind_mw)
		qp->wr_bind_mw = wr_bind_mw;
	if (qp->wr_local_inv)
		qp->wr_local_inv = wr_local_inv;
	if (qp->wr_rdma_read)
		qp->wr_rdma_read = wr_rdma_read;
	if (qp->wr_rdma_write)
		qp->wr_rdma_write = wr_rdma_write;
	if (qp->wr_rdma_write_imm)
		qp->wr_rdma_write_imm = wr_rdma_write_imm;
	if (qp->wr_send)
		qp->wr_send = wr_send;
	if (qp->wr_send_imm)
		qp->wr_send_imm = wr_send_imm;
	if (qp->wr_send_inv)
		qp->wr_send_inv = wr_send_inv;
	if (qp->wr_set_sge)
		qp->wr_set_sge = wr_set_sge;
	if (qp->wr_set_sge_list)
		qp->wr_set_sge_list = wr_set_sge_list;
	if (qp->wr_set_inline_data)
		qp->wr_set_inline_data = wr_set_inline_data;
	if (qp->wr_set_inline_data_list)
		qp->wr_set_inline_data_list = wr_set_inline_data_list;
	if (qp->wr_start)
		qp->wr_start = wr_start;
	if (qp->wr_complete)
		qp->wr_complete = wr_complete;
	if (qp->wr_abort)
		qp->wr_abort = wr_abort;
}
