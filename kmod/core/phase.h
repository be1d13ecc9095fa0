/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How what a flow holds goes out, from its creation to the end of its queue pair.
 *
 * Owns the table of transitions. Documentation/design/flow-states.rst has a picture.
 */
#ifndef RISO_CORE_PHASE_H
#define RISO_CORE_PHASE_H

#include "types.h"

/**
 * enum riso_phase - how what a flow holds goes out
 * @RISO_PHASE_PACED: in its turn, cut, within clock and window
 * @RISO_PHASE_ENDING: the queue pair is about to end; up to the last work request that the peer
 *	is told of all goes at once and whole
 * @RISO_PHASE_FLUSHING: the queue pair is in error; all goes at once and whole
 * @RISO_PHASE_REFUSED: the provider takes no more; what is held completes here
 * @RISO_PHASES: number of phases
 */
enum riso_phase {
	RISO_PHASE_PACED,
	RISO_PHASE_ENDING,
	RISO_PHASE_FLUSHING,
	RISO_PHASE_REFUSED,
	RISO_PHASES,
};

/**
 * enum riso_phase_event - what changes the phase of a flow
 * @RISO_ON_HAND_OVER: the ULP ends the queue pair, and the peer has to be told of something
 * @RISO_ON_HANDED_OVER: of nothing any more, or it takes too long
 * @RISO_ON_FAIL: the queue pair goes to error, or a work request of it has failed
 * @RISO_ON_REFUSE: the provider has refused a batch for good
 * @RISO_ON_RESET: the queue pair was reset, and nothing is held any more
 * @RISO_PHASE_EVENTS: number of events
 */
enum riso_phase_event {
	RISO_ON_HAND_OVER,
	RISO_ON_HANDED_OVER,
	RISO_ON_FAIL,
	RISO_ON_REFUSE,
	RISO_ON_RESET,
	RISO_PHASE_EVENTS,
};

/**
 * riso_phase_next - look a transition up
 * @from: the phase
 * @event: what happens
 *
 * Every event may happen in every phase. A provider that has refused takes nothing until the
 * queue pair is reset, whatever happens.
 *
 * Return: the phase that follows.
 */
static inline enum riso_phase riso_phase_next(enum riso_phase from, enum riso_phase_event event)
{
	static const __u8 next[RISO_PHASE_EVENTS][RISO_PHASES] = {
		[RISO_ON_HAND_OVER] = {
			[RISO_PHASE_PACED] = RISO_PHASE_ENDING,
			[RISO_PHASE_ENDING] = RISO_PHASE_ENDING,
			[RISO_PHASE_FLUSHING] = RISO_PHASE_FLUSHING,
			[RISO_PHASE_REFUSED] = RISO_PHASE_REFUSED,
		},
		[RISO_ON_HANDED_OVER] = {
			[RISO_PHASE_PACED] = RISO_PHASE_PACED,
			[RISO_PHASE_ENDING] = RISO_PHASE_PACED,
			[RISO_PHASE_FLUSHING] = RISO_PHASE_FLUSHING,
			[RISO_PHASE_REFUSED] = RISO_PHASE_REFUSED,
		},
		[RISO_ON_FAIL] = {
			[RISO_PHASE_PACED] = RISO_PHASE_FLUSHING,
			[RISO_PHASE_ENDING] = RISO_PHASE_FLUSHING,
			[RISO_PHASE_FLUSHING] = RISO_PHASE_FLUSHING,
			[RISO_PHASE_REFUSED] = RISO_PHASE_REFUSED,
		},
		[RISO_ON_REFUSE] = {
			[RISO_PHASE_PACED] = RISO_PHASE_REFUSED,
			[RISO_PHASE_ENDING] = RISO_PHASE_REFUSED,
			[RISO_PHASE_FLUSHING] = RISO_PHASE_REFUSED,
			[RISO_PHASE_REFUSED] = RISO_PHASE_REFUSED,
		},
		[RISO_ON_RESET] = {
			[RISO_PHASE_PACED] = RISO_PHASE_PACED,
			[RISO_PHASE_ENDING] = RISO_PHASE_PACED,
			[RISO_PHASE_FLUSHING] = RISO_PHASE_PACED,
			[RISO_PHASE_REFUSED] = RISO_PHASE_PACED,
		},
	};

	return next[event][from];
}

#endif /* RISO_CORE_PHASE_H */
