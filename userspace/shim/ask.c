// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the kernel is asked for: a place for the process, and a class for each flow.
 *
 * Owns the order of questions and answers. The first queue pair attaches the process to the
 * device. The answer is put in force here. Whoever asks posts afterwards what may be posted.
 * The kernel learns why a flow cannot be governed.
 *
 * Locks: shim_class_lock is held from the question until the answer is in force, so the
 * last answer counts. shim_member.lock is taken inside it, only to put the answer into
 * force, and is left to the caller. The kernel is never asked under shim_member.lock.
 *
 * Runs in threads of the program. The helper asks for flows that hold something.
 */
#include <errno.h>
#include <string.h>
#include <linux/rdma_isolate.h>

#include "ask.h"
#include "comp.h"
#include "ctx.h"
#include "guard.h"
#include "line.h"
#include "map.h"
#include "member.h"
#include "pay.h"
#include "qp.h"
#include "record.h"
#include "shim.h"

/* Serialises who asks the kernel: the last answer is the one in force. */
pthread_mutex_t shim_class_lock = PTHREAD_MUTEX_INITIALIZER;

/* What was paid for a part of a piece was paid on the old path: the new one is paid in full. */
static void take_back_paid(struct shim_qp *f, int dir)
{
	struct shim_rec *rec;
	uint64_t paid = f->sq.paid;

	if (!paid || !shim_queue_len(f))
		return;
	rec = shim_find_rec(f, f->sq.head);
	if ((int)shim_get_dir(rec) != dir)
		return;
	shim_forget_paid(f, rec);
	rec->cost += paid;
	shim_add_cost(f, dir, paid);
}

/* Count what a flow holds, and will post, in the books of other paths. Its member is locked. */
static void shim_move_books(struct shim_qp *f, const uint8_t *path)
{
	struct shim_book *book = f->ctx->m->book;
	bool limited = false;
	int dir;

	for (dir = 0; dir < RISO_USER_DIRS; dir++) {
		uint32_t to = path[dir] < RISO_USER_PATHS ? path[dir] : dir;

		if (to != f->book[dir])
			take_back_paid(f, dir);
		book[f->book[dir]].held -= f->cost[dir];
		book[to].held += f->cost[dir];
		if (f->full) {
			book[f->book[dir]].stuck -= f->cost[dir];
			book[to].stuck += f->cost[dir];
		}
		f->book[dir] = to;
		limited = limited || to >= RISO_USER_DIRS;
	}
	__atomic_store_n(&f->limited, limited, __ATOMIC_RELAXED);
	/* In the line of the new book. */
	if (f->place == SHIM_PLACE_LINE &&
	    f->in_line != shim_get_book(f, shim_find_rec(f, f->sq.head)))
		shim_line_join(f);
}

/**
 * shim_ask_class_and_lock - ask the kernel for a class, and put it in force
 * @f: the flow, whose member is not locked; shim_class_lock is held
 * @wish: the class
 *
 * Return: 0, and the member is locked: what the flow holds may be posted now. Or an error,
 * which leaves the flow as it is, and the member not locked.
 */
int shim_ask_class_and_lock(struct shim_qp *f, uint32_t wish)
{
	struct shim_member *m = f->ctx->m;
	struct riso_ioc_register reg = { .qpn = f->qp->qp_num, .class_id = wish };
	int err;

	err = shim_member_register(m, &reg);
	if (err)
		return err;
	if (reg.class_id != RISO_CLASS_LATENCY)
		shim_comp_join(f);
	shim_lock(&m->lock);
	f->alone = false;
	f->class_id = reg.class_id;
	f->cut_imm = reg.flags & RISO_REGISTER_CUT_IMM;
	shim_move_books(f, reg.path);
	__atomic_store_n(&f->paced, f->class_id != RISO_CLASS_LATENCY, __ATOMIC_RELAXED);
	if (m->upage->lanes <= f->lane)
		__atomic_store_n(&m->upage->lanes, f->lane + 1, __ATOMIC_RELAXED);
	if (f->paced)
		shim_qp_step(f, SHIM_ON_GOVERN);
	else if (shim_queue_len(f))
		shim_line_jump(f);
	shim_qp_pass(f);
	return 0;
}

/**
 * shim_ask_to_close - have a flow that goes straight governed again, if the device is not open
 * @f: the flow, whose member is not locked
 */
void shim_ask_to_close(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;

	shim_lock(&shim_class_lock);
	if (shim_qp_is_shut(f) && shim_qp_is_direct(f)) {
		shim_comp_join(f);
		shim_lock(&m->lock);
		shim_qp_step(f, SHIM_ON_GOVERN);
		shim_unlock(&m->lock);
	}
	shim_unlock(&shim_class_lock);
}

/* Attach to the device, and ask for the class that the flow wishes. On success, it locks. */
static int shim_join_device(struct shim_qp *f, bool may_wait)
{
	struct shim_member *m = f->ctx->m;
	static bool told;
	uint32_t classes;
	int err;

	err = f->raw ? EOPNOTSUPP : may_wait ? shim_member_attach(m, f->qp->qp_num) : EAGAIN;
	/* Before the kernel is asked, so that a change after its answer is noticed. */
	classes = __atomic_load_n(&m->kpage->classes, __ATOMIC_ACQUIRE);
	__atomic_store_n(&f->classes, classes, __ATOMIC_RELAXED);
	if (err)
		return err;
	err = shim_ask_class_and_lock(f, f->class_wish);
	if (err != EPERM || f->class_wish == RISO_CLASS_BY_RULE)
		return err;
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		shim_warn("%s: no rule lets this program choose its class", m->name);
	return shim_ask_class_and_lock(f, RISO_CLASS_BY_RULE);
}

/* The kernel knows why it has no place for a process. */
static void report_refused(struct shim_qp *f, int err)
{
	struct shim_member *m = f->ctx->m;

	shim_debug("%s: QP %u takes no part: %s", m->name, f->qp->qp_num,
		   strerror(err));
	if (!f->raw)
		__atomic_store_n(&m->refused, true, __ATOMIC_RELAXED);
	switch (err) {
	case EUSERS:
	case EDQUOT:
		return;
	case ENOMEM:
		return shim_member_report(m, f->qp->qp_num, RISO_REASON_MEMORY);
	case EAGAIN:
		return shim_member_report(m, f->qp->qp_num, RISO_REASON_NO_THREAD);
	default:
		shim_member_report(m, f->qp->qp_num, RISO_REASON_SHIM_LIMIT);
	}
}

/**
 * shim_ask_kernel_and_lock - have a flow governed, in the class that it wishes
 * @f: the flow, whose member is not locked; shim_class_lock is held
 * @may_wait: work requests may wait, as there can be a helper that posts them
 *
 * A flow that the kernel has no place for goes straight to the provider. The member is locked
 * after this: what the flow holds may be posted now.
 */
void shim_ask_kernel_and_lock(struct shim_qp *f, bool may_wait)
{
	struct shim_member *m = f->ctx->m;
	int err;

	err = shim_join_device(f, may_wait);
	if (!err)
		return;
	report_refused(f, err);
	shim_lock(&m->lock);
	f->alone = true;
	__atomic_store_n(&f->paced, false, __ATOMIC_RELAXED);
	if (shim_queue_len(f))
		shim_line_jump(f);
	shim_qp_pass(f);
}

static bool mark_stale(void *value, void *arg)
{
	struct shim_qp *f = value;
	struct shim_member *m = f->ctx->m;

	if (m == arg)
		__atomic_store_n(&f->classes, m->kpage->classes - 1, __ATOMIC_RELAXED);
	return false;
}

/**
 * shim_ask_refused - have flows that were refused ask again
 * @m: the member, not locked
 *
 * There may be a place, or a thread, by now. All flows ask again with their next post.
 */
void shim_ask_refused(struct shim_member *m)
{
	shim_lock(&shim_class_lock);
	if (__atomic_exchange_n(&m->refused, false, __ATOMIC_RELAXED))
		shim_map_search(&shim_qps, mark_stale, m);
	shim_unlock(&shim_class_lock);
}

static bool tell_no_thread(void *value, void *arg)
{
	struct shim_qp *f = value;

	if (f->ctx->m == arg)
		shim_member_report(arg, f->qp->qp_num, RISO_REASON_NO_THREAD);
	return false;
}

/**
 * shim_qps_no_thread - a member has no helper, so nothing of it is governed
 * @m: the member, attached and not locked
 */
void shim_qps_no_thread(struct shim_member *m)
{
	shim_map_search(&shim_qps, tell_no_thread, m);
}
