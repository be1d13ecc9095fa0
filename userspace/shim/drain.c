// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Draining: a queue pair is about to change or to go, so all that it holds goes out first.
 *
 * Owns how long that may take.
 *
 * Locks: shim_queue_drain() takes shim_member.lock, and sleeps without it.
 *
 * Everything here runs in threads of the program, and allocates no memory.
 */
#include <unistd.h>

#include "cq.h"
#include "ctx.h"
#include "drain.h"
#include "guard.h"
#include "helper.h"
#include "member.h"
#include "post.h"
#include "qp.h"
#include "reap.h"
#include "record.h"
#include "shim.h"
#include "soft.h"

/*
 * A drain looks for room every 100 us, for a second: providers free it within less. What
 * they flush comes within 10 ms.
 */
enum { DRAIN_US = 100, DRAIN_LOOKS = 10000, FLUSH_LOOKS = 100 };

/*
 * Is an event to come of what the flow has out, for a program that sleeps and has a
 * completion to poll, or was not told of an event as that of a message is to come? None of ours
 * is solicited.
 */
static bool brings_event(const struct shim_qp *f)
{
	const struct shim_cq *c = f->cq;

	return f->sq.signaled &&
	       ((c->armed && c->soft_head != c->soft_tail) || (c->awaits && f->awaited)) &&
	       !__atomic_load_n(&c->solicited, __ATOMIC_RELAXED);
}

/*
 * The queue pair is to go. In error it completes at once what it has out, and the event
 * comes. A provider that takes longer is not waited for, nor a session, which may be that
 * of this thread.
 */
static void flush_for_event(struct shim_qp *f)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct shim_member *m = f->ctx->m;
	uint32_t looks;

	shim_real.modify_qp(f->qp, &attr, IBV_QP_STATE);
	for (looks = 0; looks < FLUSH_LOOKS; looks++) {
		shim_lock(&m->lock);
		/* The CQ may not be active any more. */
		if (brings_event(f))
			shim_comp_reap_most(f->cq, UINT32_MAX);
		if (!brings_event(f) || !shim_comp_may_reap(f->cq))
			looks = FLUSH_LOOKS;
		shim_cq_update(f->cq);
		shim_unlock_and_drive(m);
		if (looks < FLUSH_LOOKS)
			usleep(DRAIN_US);
	}
}

/**
 * shim_queue_drain - give the provider all that a flow holds
 * @f: the flow, whose queue pair is about to change or to go; its member is not locked
 * @goes: to go, or to be reset, with all that is out
 *
 * The program was told that it is posted. Where the send queue is full, what completes
 * makes room. An event that would go with the queue pair comes before.
 */
void shim_queue_drain(struct shim_qp *f, bool goes)
{
	struct shim_member *m = f->ctx->m;
	uint32_t looks;

	shim_lock(&m->lock);
	for (looks = 0; looks < DRAIN_LOOKS && shim_queue_len(f); looks++) {
		if (looks)
			shim_comp_reap_most(f->cq, UINT32_MAX);
		shim_urge_flow(f);
		if (!looks || !shim_queue_len(f))
			continue;
		shim_unlock(&m->lock);
		usleep(DRAIN_US);
		shim_lock(&m->lock);
	}
	goes = goes && brings_event(f);
	shim_cq_update(f->cq);
	shim_unlock_and_drive(m);
	if (goes)
		flush_for_event(f);
}
