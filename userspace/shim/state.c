// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The state of a queue pair: which way the program's work requests take.
 *
 * Owns the table of transitions, the condition on which work requests go straight to the
 * provider, and the count of the flows that may have tagged ones out.
 * Documentation/design/shim-states.rst has a picture, and says which flags of struct shim_qp
 * are no part of the state.
 *
 * Lock: shim_member.lock is held for each step. %SHIM_ON_JOIN and %SHIM_ON_GOVERN come under
 * shim_class_lock, too, so no other pair of them comes in between. Everybody reads the state
 * without a lock.
 *
 * Runs in threads of the program and in the helper. It allocates no memory.
 */
#include <assert.h>
#include <stdint.h>
#include <linux/rdma_isolate.h>

#include "cq.h"
#include "ctx.h"
#include "member.h"
#include "qp.h"
#include "record.h"
#include "shim.h"
#include "soft.h"
#include "state.h"

/*
 * The state that follows, by event and present state. What is not here is impossible, and 0:
 * nothing becomes new. A flow that passes holds something only in a child, which may complete
 * what its parent began with ibv_wr_start().
 */
static const uint8_t next_state[SHIM_ON_EVENTS][SHIM_QP_STATES] = {
	[SHIM_ON_JOIN] = {
		[SHIM_QP_NEW] = SHIM_QP_QUEUED_JOINING,
		[SHIM_QP_QUEUED] = SHIM_QP_QUEUED_JOINING,
		[SHIM_QP_HOLDING] = SHIM_QP_HOLDING_JOINING,
		[SHIM_QP_LEAVING] = SHIM_QP_DIRECT_JOINING,
		[SHIM_QP_DIRECT] = SHIM_QP_DIRECT_JOINING,
	},
	[SHIM_ON_GOVERN] = {
		[SHIM_QP_QUEUED_JOINING] = SHIM_QP_QUEUED,
		[SHIM_QP_HOLDING_JOINING] = SHIM_QP_HOLDING,
		[SHIM_QP_DIRECT_JOINING] = SHIM_QP_QUEUED,
	},
	[SHIM_ON_HOLD] = {
		[SHIM_QP_QUEUED] = SHIM_QP_HOLDING,
		[SHIM_QP_QUEUED_JOINING] = SHIM_QP_HOLDING_JOINING,
		[SHIM_QP_LEAVING] = SHIM_QP_HOLDING,
		[SHIM_QP_DIRECT] = SHIM_QP_HOLDING,
	},
	[SHIM_ON_EMPTY] = {
		[SHIM_QP_HOLDING] = SHIM_QP_QUEUED,
		[SHIM_QP_HOLDING_JOINING] = SHIM_QP_QUEUED_JOINING,
	},
	[SHIM_ON_PASS] = {
		[SHIM_QP_NEW] = SHIM_QP_DIRECT,
		[SHIM_QP_QUEUED] = SHIM_QP_LEAVING,
		[SHIM_QP_QUEUED_JOINING] = SHIM_QP_DIRECT_JOINING,
		[SHIM_QP_LEAVING] = SHIM_QP_LEAVING,
		[SHIM_QP_DIRECT_JOINING] = SHIM_QP_DIRECT_JOINING,
		[SHIM_QP_DIRECT] = SHIM_QP_DIRECT,
	},
	[SHIM_ON_CLEAR] = {
		[SHIM_QP_LEAVING] = SHIM_QP_DIRECT,
		[SHIM_QP_DIRECT_JOINING] = SHIM_QP_DIRECT_JOINING,
		[SHIM_QP_DIRECT] = SHIM_QP_DIRECT,
	},
	[SHIM_ON_DETACH] = {
		[SHIM_QP_NEW] = SHIM_QP_GONE,
		[SHIM_QP_QUEUED] = SHIM_QP_GONE,
		[SHIM_QP_LEAVING] = SHIM_QP_GONE,
		[SHIM_QP_DIRECT] = SHIM_QP_GONE,
	},
};

/**
 * shim_get_next_state - look a transition up
 * @from: the state
 * @event: what happens
 *
 * Return: the state that follows, or %SHIM_QP_NEW if @event is impossible in @from.
 */
enum shim_qp_state shim_get_next_state(enum shim_qp_state from, enum shim_qp_event event)
{
	return next_state[event][from];
}

/* Count a flow among those of its CQ that may have tagged work requests out, or no more. */
static void count_tagged(struct shim_qp *f, bool tagged)
{
	f->cq->tagged += tagged ? 1 : -1;
	__atomic_add_fetch(&f->ctx->tagged, tagged ? 1 : -1, __ATOMIC_RELAXED);
	if (tagged)
		shim_cq_update(f->cq);
}

static void store_state(struct shim_qp *f, enum shim_qp_state to)
{
	/* Pairs with the acquire in shim_qp_is_direct(). */
	__atomic_store_n(&f->state, to, __ATOMIC_RELEASE);
}

/* All but the short way of shim_qp_step() */
static __attribute__((noinline)) void take_step(struct shim_qp *f, enum shim_qp_event event,
						enum shim_qp_state to)
{
	enum shim_qp_state from = f->state;

	assert(to != SHIM_QP_NEW);
	if (to == SHIM_QP_NEW) {
		shim_debug("QP %u: event %d in state %d", f->qp->qp_num, event, from);
		return;
	}
	/*
	 * What went straight was not counted: the provider knows how full it is. The release
	 * pairs with the acquire in shim_queue_stage().
	 */
	if (shim_state_is_direct(from) && !shim_state_is_direct(to)) {
		__atomic_store_n(&f->finished, f->accepted, __ATOMIC_RELEASE);
		f->sq.direct = true;
	}
	store_state(f, to);
	if (shim_state_is_tagged(from) != shim_state_is_tagged(to))
		count_tagged(f, shim_state_is_tagged(to));
}

/* Does a step do no more than change the state? Those of each post do. */
static inline bool is_plain(enum shim_qp_event event, enum shim_qp_state from,
			    enum shim_qp_state to)
{
	switch (event) {
	case SHIM_ON_HOLD:
		return to != SHIM_QP_NEW && !shim_state_is_direct(from);
	case SHIM_ON_EMPTY:
	case SHIM_ON_PASS:
		return to != SHIM_QP_NEW;
	default:
		return false;
	}
}

/**
 * shim_qp_step - change the state of a queue pair
 * @f: the flow; its member is locked
 * @event: what happens
 *
 * An impossible event leaves the state as it is, and fails an assertion in test programs. A
 * flow that may have tagged work requests out makes its CQ active. One that has none any more
 * leaves it active: the caller calls shim_cq_update() once the last completion is with the
 * program.
 */
void shim_qp_step(struct shim_qp *f, enum shim_qp_event event)
{
	enum shim_qp_state to = shim_get_next_state(f->state, event);

	if (is_plain(event, f->state, to))
		store_state(f, to);
	else
		take_step(f, event, to);
}

/**
 * shim_qp_is_open - may everything of a flow go out at once?
 * @f: the flow, its member locked or not
 *
 * Return: true if neither the device nor a path of it is held.
 */
bool shim_qp_is_open(const struct shim_qp *f)
{
	const struct shim_member *m = f->ctx->m;

	return shim_member_is_open(m) &&
	       (!__atomic_load_n(&f->limited, __ATOMIC_RELAXED) || shim_member_holds_none(m));
}

/**
 * shim_qp_passes - shall calls go straight to the provider?
 * @f: the flow
 *
 * Those of class latency do, and while the device is open all do, once nothing is held or being
 * built and the last tagged one has a completion: none that goes straight retires it. Pieces that
 * are out take more room in the provider's queue than the program knows of.
 *
 * Return: true if so.
 */
bool shim_qp_passes(const struct shim_qp *f)
{
	bool free = f->class_id == RISO_CLASS_LATENCY || shim_qp_is_open(f);

	return (f->alone || (free && !f->sq.silent)) &&
	       !shim_queue_len(f) && !f->build.open && !f->sq.chunks;
}

static __attribute__((noinline)) void let_pass(struct shim_qp *f)
{
	shim_qp_step(f, SHIM_ON_PASS);
	if (shim_count_slots(f))
		return;
	shim_qp_step(f, SHIM_ON_CLEAR);
	shim_cq_update(f->cq);
}

/**
 * shim_qp_pass - let calls go straight to the provider, if nothing keeps them from it
 * @f: the flow; its member is locked
 */
void shim_qp_pass(struct shim_qp *f)
{
	if (shim_qp_passes(f))
		let_pass(f);
}
