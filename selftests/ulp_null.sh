#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The cases of a kernel ULP over nullrdma, isolated: work requests complete on another CPU than
# the one that posts them, which rxe hardly does. nullrdma.sh runs them alone.
#
# One kernel is enough: the other tests of the ULP are run on each.

. "$(dirname "$0")/lib.sh"
RISO_ULP_KIND=null
. "$(dirname "$0")/ulp.inc"

# The adapter has no shared receive queues.
cases()
{
	local test

	for test in data queue error; do
		RISO_ULP_LIST=1 "$(dirname "$0")/ulp_$test.sh"
	done | grep -v '^[a-z]* srq'
}

ulp_setup
ulp_main_isolated
