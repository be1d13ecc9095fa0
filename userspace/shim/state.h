/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state of a queue pair between the program and the provider. See state.c, and
 * Documentation/design/shim-states.rst.
 */
#ifndef SHIM_STATE_H
#define SHIM_STATE_H

#include <stdbool.h>

struct shim_qp;

/**
 * enum shim_qp_state - which way the program's work requests take
 * @SHIM_QP_NEW: the kernel has not been asked for a class yet
 * @SHIM_QP_GONE: the queue pair is gone
 * @SHIM_QP_QUEUED: work requests become records; none is held
 * @SHIM_QP_QUEUED_JOINING: as %SHIM_QP_QUEUED, and a paced class is about to be in force
 * @SHIM_QP_HOLDING: work requests become records; some are held
 * @SHIM_QP_HOLDING_JOINING: as %SHIM_QP_HOLDING, and a paced class is about to be in force
 * @SHIM_QP_LEAVING: work requests go straight to the provider; tagged ones are still out
 * @SHIM_QP_DIRECT_JOINING: work requests go straight to the provider; a paced class is about
 *	to be in force
 * @SHIM_QP_DIRECT: work requests go straight to the provider; no tagged one is out
 * @SHIM_QP_STATES: number of states
 *
 * The order counts: shim_state_is_direct(), shim_state_is_tagged() and shim_state_holds()
 * compare with the ends of a range, so that each is one load for its reader.
 */
enum shim_qp_state {
	SHIM_QP_NEW,
	SHIM_QP_GONE,
	SHIM_QP_QUEUED,
	SHIM_QP_QUEUED_JOINING,
	SHIM_QP_HOLDING,
	SHIM_QP_HOLDING_JOINING,
	SHIM_QP_LEAVING,
	SHIM_QP_DIRECT_JOINING,
	SHIM_QP_DIRECT,
	SHIM_QP_STATES,
};

/**
 * enum shim_qp_event - what changes the state of a queue pair
 * @SHIM_ON_JOIN: the kernel has given a paced class
 * @SHIM_ON_GOVERN: the paced class is in force
 * @SHIM_ON_HOLD: the first record is held
 * @SHIM_ON_EMPTY: no record is held any more
 * @SHIM_ON_PASS: nothing keeps work requests from going straight, see shim_qp_passes()
 * @SHIM_ON_CLEAR: no tagged work request is out any more; follows %SHIM_ON_PASS
 * @SHIM_ON_DETACH: the queue pair leaves its CQ
 * @SHIM_ON_EVENTS: number of events
 */
enum shim_qp_event {
	SHIM_ON_JOIN,
	SHIM_ON_GOVERN,
	SHIM_ON_HOLD,
	SHIM_ON_EMPTY,
	SHIM_ON_PASS,
	SHIM_ON_CLEAR,
	SHIM_ON_DETACH,
	SHIM_ON_EVENTS,
};

enum shim_qp_state shim_get_next_state(enum shim_qp_state from, enum shim_qp_event event);
void shim_qp_step(struct shim_qp *f, enum shim_qp_event event);
bool shim_qp_is_open(const struct shim_qp *f);
bool shim_qp_passes(const struct shim_qp *f);
void shim_qp_pass(struct shim_qp *f);

/**
 * shim_state_is_direct - tell whether work requests go straight to the provider
 * @state: the state
 *
 * Return: true if they do.
 */
static inline bool shim_state_is_direct(enum shim_qp_state state)
{
	return state >= SHIM_QP_LEAVING;
}

/**
 * shim_state_is_tagged - tell whether tagged work requests may be out
 * @state: the state
 *
 * Return: true if so, or if they are about to be posted.
 */
static inline bool shim_state_is_tagged(enum shim_qp_state state)
{
	return state >= SHIM_QP_QUEUED && state <= SHIM_QP_DIRECT_JOINING;
}

/**
 * shim_state_holds - tell whether records are held
 * @state: the state
 *
 * Return: true if some are.
 */
static inline bool shim_state_holds(enum shim_qp_state state)
{
	return state == SHIM_QP_HOLDING || state == SHIM_QP_HOLDING_JOINING;
}

#endif /* SHIM_STATE_H */
