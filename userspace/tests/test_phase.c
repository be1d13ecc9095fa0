// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The phases of a flow of kmod/core: the table of transitions, written down here a second time
 * by phase, and what it promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/phase.h"

/* Short names, for a table with one phase a line */
enum {
	PACED = RISO_PHASE_PACED,
	ENDING = RISO_PHASE_ENDING,
	FLUSHING = RISO_PHASE_FLUSHING,
	REFUSED = RISO_PHASE_REFUSED,
};

static const uint8_t expected[RISO_PHASES][RISO_PHASE_EVENTS] = {
	/*	       HAND_OVER  HANDED_OVER  FAIL	 REFUSE   RESET */
	[PACED] =    { ENDING,	  PACED,       FLUSHING, REFUSED, PACED },
	[ENDING] =   { ENDING,	  PACED,       FLUSHING, REFUSED, PACED },
	[FLUSHING] = { FLUSHING,  FLUSHING,    FLUSHING, REFUSED, PACED },
	[REFUSED] =  { REFUSED,	  REFUSED,     REFUSED,	 REFUSED, PACED },
};

static void each_transition(void **state)
{
	int from, event;

	(void)state;
	for (from = 0; from < RISO_PHASES; from++)
		for (event = 0; event < RISO_PHASE_EVENTS; event++)
			assert_int_equal(riso_phase_next(from, event), expected[from][event]);
}

/* Who looks at a flow that ends need not know what else has happened meanwhile. */
static void ends_in_any_order(void **state)
{
	int first, second;

	(void)state;
	for (first = 0; first < RISO_ON_RESET; first++)
		for (second = 0; second < RISO_ON_RESET; second++) {
			enum riso_phase a = riso_phase_next(RISO_PHASE_PACED, first);
			enum riso_phase b = riso_phase_next(RISO_PHASE_PACED, second);

			/* An end of the hand-over takes back its begin, and nothing else. */
			if (first == RISO_ON_HANDED_OVER || second == RISO_ON_HANDED_OVER)
				continue;
			assert_int_equal(riso_phase_next(a, second), riso_phase_next(b, first));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_transition),
		cmocka_unit_test(ends_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
