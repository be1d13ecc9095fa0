#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perftest with the verbs shim as without: every kind of message on every transport
# that rxe has, one or more queue pairs, one way or both, by both APIs to post. It
# checks no data and polls without sleeping; both ends have to come to their end, and
# the client to report as many messages as it was asked for. All cases do so without
# the shim, which is tried only for the report of one that fails.
#
#	RISO_CASES	"all", or "pairs" (the default), see perftest_cases.py
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

port=20000
words=()

# A server of before may still hold the last one.
next_port()
{
	port=$((port + 1))
	server=("${words[@]}" -F -d rxe1 -x "$gid1" -p "$port")
	client=("${words[@]}" -F -d rxe0 -x "$gid0" -p "$port" 127.0.0.1)
	listens=(tcp "$port")
}

# comes_to_its_end SIZE COUNT: with the shim
comes_to_its_end()
{
	next_port
	pair "$SHIM"
	[ "$statuses" = "0 0" ] && grep -Eq "^ *$1 +$2 " "$dir/client"
}

# Perftest polls once for each event, and posts though it has found nothing. An event that is there
# when it calls may be that of a chunk, if the message takes longer than 100 ms, as it may on a busy
# host: programs.rst says so.
had_empty_event()
{
	[[ " ${words[*]} " = *" -e "* ]] && grep -q "Couldn't post send" "$dir/client"
}

# runs SIZE COUNT COMMAND...: a line of the cases
runs()
{
	local size=$1 count=$2
	local -x LD_PRELOAD=$known

	words=("${@:3}")
	comes_to_its_end "$size" "$count" && return
	if had_empty_event; then
		comes_to_its_end "$size" "$count" && return
	fi
	pair_report "with the shim"
	next_port
	pair ""
	[ "$statuses" = "0 0" ] || pair_report "without the shim"
	return 1
}

all_run()
{
	local line

	for line in "${cases[@]}"; do
		# shellcheck disable=SC2086 # words
		check "${line#* * }" runs $line
	done
}

known=$(realpath "$(dirname "$0")/perftest_device.so")
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
shim_setup ib_{write,read,send,atomic}_{bw,lat}
gid0=$(gid_of rxe0 10.0.0.1)
gid1=$(gid_of rxe1 10.0.0.2)
mapfile -t cases < <("$(dirname "$0")/perftest_cases.py" "${RISO_CASES:-pairs}")
ktap_print_header
ktap_set_plan $((${#cases[@]} + 1))
check "what was posted was paced" waited all_run
ktap_finished
