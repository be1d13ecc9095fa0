#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Queue pairs that end while the verbs shim holds SENDs of theirs: the provider gets them
# before.
#
#	RISO_ENDS	how many queue pairs end (default 300)
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

own=$(cd "$(dirname "$0")" && pwd)
ENDS=${RISO_ENDS:-300}
SHIM_SECONDS=$((120 + ENDS / 5))

# A round sends 139 KB, and some of that has to be held.
given()
{
	local line status

	LD_PRELOAD="$SHIM $own/sends_given.so" shim_run "" "$own/shim_teardown" \
		10.0.0.1 10.0.0.2 rxe0 "$ENDS" >"$dir/out"
	status=$?
	tail -n 4 "$dir/out" | while read -r line; do
		ktap_print_msg "$line"
	done
	return "$status"
}

dir=$(mktemp -d)
trap shim_cleanup EXIT
shim_setup
ktap_print_header
ktap_set_plan 1
check "$ENDS queue pairs end, what they held was given before" slowly 40mbit waited given
ktap_finished
