// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Classes: which class a flow has, and who may choose it.
 *
 * Owns what the program wishes. The shim asks the kernel when a queue pair is created, when
 * the program chooses a class, and when the kernel has changed its rules. ask.c has the
 * questions.
 *
 * Locks: shim_class_lock protects the wishes.
 *
 * Everything here runs in threads of the program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/rdma_isolate.h>

#include "class.h"
#include "ctx.h"
#include "guard.h"
#include "helper.h"
#include "map.h"
#include "member.h"
#include "post.h"
#include "qp.h"
#include "shim.h"

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
	static bool told;
	size_t i;

	if (!env)
		return RISO_CLASS_BY_RULE;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(env, names[i].name))
			return names[i].class_id;
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		shim_warn("RDMA_ISOLATE_CLASS: there is no class '%s'", env);
	return RISO_CLASS_BY_RULE;
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
	shim_ask_and_drive(f);
	shim_unlock(&shim_class_lock);
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
	struct shim_member *m;
	int err;

	if (class_id > RISO_CLASS_BANDWIDTH)
		return EINVAL;
	if (!f)
		return EOPNOTSUPP;
	m = f->ctx->m;
	shim_lock(&shim_class_lock);
	err = f->alone ? EOPNOTSUPP : shim_ask_class_and_lock(f, class_id);
	if (!err) {
		f->class_wish = class_id;
		if (m->held)
			shim_queue_drive(m);
		shim_unlock_and_drive(m);
	}
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
