#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Queue pairs of programs with the verbs shim that cannot be governed: "flow show" gives
# the reason, whatever that is, and never that there was no shim.
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

# More than one user may have on a device
MANY=300

# runs FILE COMMAND...: the program with the shim, until it is ready; $pid is its number
runs()
{
	local out=$1
	shift

	rdma-isolate run -- "$@" >"$out" 2>"$dir/err" &
	pid=$!
	busywait 60 grep -q ready "$out"
}

ends()
{
	kill "$pid"
	wait "$pid"
	[ "$1" -eq 0 ] && return
	ktap_print_msg "$(tail -n 3 "$dir/err")"
	return 1
}

# shows_each FILE [REASON]: that each line says, or this one
shows_each()
{
	local qpn reason status=0

	while read -r qpn reason; do
		[ "$qpn" != ready ] || continue
		shows "any(.qpn == $qpn and .reason == \"${2:-$reason}\")" \
			flow show dev rxe0 || status=1
	done <"$1"
	[ "$(wc -l <"$1")" -eq 4 ] && return "$status"
}

each_of_its_own()
{
	local status=0

	runs "$dir/each" "$prog" rxe0 && shows_each "$dir/each" || status=1
	ends "$status"
}

single_threaded()
{
	local status=0

	runs "$dir/single" env MLX5_SINGLE_THREADED=1 "$prog" rxe0 &&
		shows_each "$dir/single" shim-limit || status=1
	ends "$status"
}

# It has posted, so it was refused a thread, and goes on.
lacks_thread()
{
	shows 'map(select(.comm == "dlopen_write" and .dev == "rxe0")) |
		length == 1 and all(.reason == "no-thread" and (.managed | not))' \
		flow show
}

without_threads()
{
	local status=0

	setpriv --reuid 65534 --clear-groups prlimit --nproc=1 env LD_PRELOAD="$SHIM" \
		"$(dirname "$prog")/dlopen_write" rxe0 rxe1 >"$dir/out" 2>"$dir/err" &
	pid=$!
	busywait 30 lacks_thread >/dev/null
	lacks_thread || status=1
	kill "$pid"
	wait "$pid" || status=1
	[ "$status" -eq 0 ] && return
	ktap_print_msg "$(tail -n 3 "$dir/err")"
	return 1
}

# Some are governed, the others know that there was no place.
are_there()
{
	shows "map(select(.comm == \"shim_reasons\")) | length == $MANY and
		any(.managed) and any(.managed | not) and
		all(.managed or .reason == \"no-place\")" flow show dev rxe0
}

too_many()
{
	local status=0

	runs "$dir/many" "$prog" rxe0 "$MANY" && busywait 120 are_there >/dev/null
	are_there || status=1
	ends "$status"
}

dir=$(mktemp -d)
prog=$(cd "$(dirname "$0")" && pwd)/shim_reasons
trap shim_cleanup EXIT
shim_setup setpriv prlimit
ktap_print_header
ktap_set_plan 4
check "a queue pair like others, no room in a CQ, nothing to send" each_of_its_own
check "a provider that was told that there is one thread" single_threaded
check "no thread" without_threads
check "no place" too_many
ktap_finished
