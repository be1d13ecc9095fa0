// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Classes: which class a flow has, and who may choose it.
 *
 * Owns what the program wishes and what is in force. The shim asks the kernel when a queue
 * pair is created, when the program chooses a class, and when the kernel has changed its
 * rules. The first queue pair attaches the process to the device. The kernel learns why a
 * flow cannot be governed.
 *
 * Locks: shim_class_lock is held from the question until the answer is in force, so the
 * last answer counts. shim_member.lock is taken inside it, only to put the answer into
 * force. The kernel is never asked under shim_member.lock.
 *
 * Runs in threads of the program. The helper asks for flows that hold something.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/rdma_isolate.h>

#include "class.h"
#include "comp.h"
#include "ctx.h"
#include "guard.h"
#include "helper.h"
#include "map.h"
#include "member.h"
#include "post.h"
#include "qp.h"
#include "shim.h"

/* Serialises who asks the kernel: the last answer is the one in force. */
pthread_mutex_t shim_class_lock = PTHREAD_MUTEX_INITIALIZER;

/**
 * shim_get_default_wish - get the class of a program that chooses none
 *
 * Return: the class that RDMA_ISOLATE_CLASS names, or RISO_CLASS_BY_RULE.
 */
uint32_t shim_get_default_wish(void)
{
	static const struct {
		const char *name;
		uint32_t class_id;
	} names[] = {
		{ "latency", RISO_CLASS_LATENCY },
		{ "throughput", RISO_CLASS_THROUGHPUT },
		{ "bandwidth", RISO_CLASS_BANDWIDTH },
	};
	const char *env = getenv("RDMA_ISOLATE_CLASS");
	size_t i;

	if (!env)
		return RISO_CLASS_BY_RULE;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(env, names[i].name))
			return names[i].class_id;
	shim_debug("RDMA_ISOLATE_CLASS: there is no class '%s'", env);
	return RISO_CLASS_BY_RULE;
}

/* Ask the kernel for class @wish. An error leaves the flow as it is. shim_class_lock is held. */
static int shim_ask_class(struct shim_qp *f, uint32_t wish)
{
	struct shim_member *m = f->ctx->m;
	uint32_t class_id = wish;
	int err;

	err = shim_member_register(m, f->qp->qp_num, &class_id);
	if (err)
		return err;
	if (class_id != RISO_CLASS_LATENCY)
		shim_comp_join(f);
	shim_lock(&m->lock);
	f->alone = false;
	f->class_id = class_id;
	if (class_id != RISO_CLASS_LATENCY)
		shim_qp_step(f, SHIM_ON_GOVERN);
	else
		shim_qp_pass(f);
	if (m->held)
		shim_queue_drive(m);
	shim_unlock_and_drive(m);
	return 0;
}

/* Attach to the device, and ask for the class that the flow wishes. shim_class_lock is held. */
static int shim_join_device(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;
	uint32_t classes;
	int err;

	err = shim_member_attach(m, f->qp->qp_num);
	/* Before the kernel is asked, so that a change after its answer is noticed. */
	classes = __atomic_load_n(&m->kpage->classes, __ATOMIC_ACQUIRE);
	__atomic_store_n(&f->classes, classes, __ATOMIC_RELAXED);
	if (err)
		return err;
	err = shim_ask_class(f, f->class_wish);
	if (err != EPERM || f->class_wish == RISO_CLASS_BY_RULE)
		return err;
	shim_debug("%s: no rule lets this program choose its class", m->name);
	return shim_ask_class(f, RISO_CLASS_BY_RULE);
}

/* The kernel knows why it has no place for a process. */
static void report_refused(struct shim_qp *f, int err)
{
	struct shim_member *m = f->ctx->m;

	shim_debug("%s: QP %u takes no part: %s", m->name, f->qp->qp_num,
		   strerror(err));
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

static void ask_kernel(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;
	int err;

	err = shim_join_device(f);
	if (!err)
		return;
	report_refused(f, err);
	shim_lock(&m->lock);
	f->alone = true;
	shim_qp_pass(f);
	if (m->held)
		shim_queue_drive(m);
	shim_unlock_and_drive(m);
}

/**
 * shim_qp_ask - have a flow governed, in a class
 * @f: the flow; nothing is locked
 *
 * A wish that no rule allows is kept: another rule may.
 */
void shim_qp_ask(struct shim_qp *f)
{
	shim_lock(&shim_class_lock);
	ask_kernel(f);
	shim_unlock(&shim_class_lock);
}

/* Does it hold something, and may its class have changed? */
static bool is_stale(void *value, void *arg)
{
	struct shim_qp *f = value;

	return f->ctx->m == arg && !shim_qp_fresh(f) && shim_qp_holds(f);
}

/**
 * shim_qps_refresh - ask for the classes of flows that hold something
 * @m: the member, not locked
 *
 * For those that the program does not post to. A flow leaves the map under
 * shim_class_lock, so those that are found stay.
 */
void shim_qps_refresh(struct shim_member *m)
{
	/* Before the kernel is asked, so that a change after its answer is noticed. */
	uint32_t classes = __atomic_load_n(&shim_member_kpage(m)->classes,
					   __ATOMIC_ACQUIRE);
	struct shim_qp *f;
	int saved = errno;

	shim_lock(&shim_class_lock);
	while ((f = shim_map_search(&shim_qps, is_stale, m)))
		ask_kernel(f);
	__atomic_store_n(&m->classes, classes, __ATOMIC_RELAXED);
	shim_unlock(&shim_class_lock);
	errno = saved;
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

/**
 * shim_set_class - rdma_isolate_set_class()
 * @qp: an RC queue pair
 * @class_id: the class that the program asks for
 *
 * Return: 0; EINVAL for what is no class; EPERM when no rule lets the program choose the
 * class; ENODEV when the device is gone; EOPNOTSUPP for a queue pair that is not governed.
 */
int shim_set_class(struct ibv_qp *qp, uint32_t class_id)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	int err;

	if (class_id > RISO_CLASS_BANDWIDTH)
		return EINVAL;
	if (!f)
		return EOPNOTSUPP;
	shim_lock(&shim_class_lock);
	err = f->alone ? EOPNOTSUPP : shim_ask_class(f, class_id);
	if (!err)
		f->class_wish = class_id;
	shim_unlock(&shim_class_lock);
	return err;
}

/**
 * shim_over_target - rdma_isolate_over_target()
 * @qp: an RC queue pair
 *
 * Return: 1 while latency flows of the device wait longer than their target, else 0.
 */
int shim_over_target(struct ibv_qp *qp)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);

	return f && !f->alone &&
	       __atomic_load_n(&shim_member_kpage(f->ctx->m)->over_target,
			       __ATOMIC_RELAXED);
}
