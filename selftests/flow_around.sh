#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Queue pairs that send what nobody has told the module of: those of programs without the verbs
# shim, and those that are posted to around it. The agent marks them, flow show, an event and the
# doctor name them. Programs that tell of what they post are not among them, nor idle ones.
#
# One kernel is enough: it tests programs, and the agent.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

# Three looks of the agent, ten seconds from one to the next, and a late start
# shellcheck disable=SC2034 # of shim.inc
LOOKS=60
PATH=$(dirname "$SHIM_DIR")/agent:$PATH

# begins NAME COMMAND...: in the background; ${pids[NAME]} is its number
begins()
{
	local name=$1
	shift

	"$@" >"$dir/$name" 2>&1 &
	pids[$name]=$!
}

# ends NAME STATUS: it ends well, and all was well before
ends()
{
	kill -TERM "${pids[$1]}"
	wait "${pids[$1]}" && [ "$2" -eq 0 ] && return
	ktap_print_msg "$1: $(tail -n 3 "$dir/$1")"
	return 1
}

# sees FILTER: some event so far
sees()
{
	jq -se "any($1)" "$dir/events" >/dev/null 2>&1
}

# An event that is provoked until it is seen: the monitor listens.
is_listening()
{
	rdma-isolate dev set dev rxe1 mode observe
	rdma-isolate dev set dev rxe1 mode enable
	sees '.dev == "rxe1"'
}

# is_marked PID REASON: its queue pair on rxe0 has the mark, and no other
is_marked()
{
	shows "map(select(.around)) | length == 1 and
		all(.pid == $1 and .dev == \"rxe0\" and .reason == \"$2\")" flow show
}

nothing_is_marked()
{
	shows 'any(.around) | not' flow show
}

# named PID: in an event and by the doctor
named()
{
	local status=0

	busywait 10 sees ".event == \"flow\" and .around and .pid == $1 and .dev == \"rxe0\"" ||
		{ ktap_print_msg "no event"; status=1; }
	shows "map(select(.check == \"around\")) | length == 1 and
		all(.verdict == \"hint\" and (.found | contains(\"(process $1)\")))" \
		doctor show || status=1
	return "$status"
}

# sends PID: it has a flow that may do so
sends()
{
	shows "any(.pid == $1 and .qp_state == \"RTS\")" flow show
}

# The looks of the doctor alone: no agent runs.
doctor_finds()
{
	local pid status=0

	begins plain "$prog" rxe0 plain
	begins idle "$prog" rxe0 idle
	for pid in "${pids[@]}"; do
		busywait 20 sends "$pid" >/dev/null
	done
	shows "map(select(.check == \"around\")) | length == 1 and all(.verdict == \"hint\" and
		(.found | contains(\"(process ${pids[plain]})\")))" doctor show || status=1
	nothing_is_marked || status=1
	ends plain "$status" && ends idle 0
}

# Its queue pair on rxe1 answers, and sends nothing by itself.
without_shim()
{
	local pid status=0

	begins writer "$writer" rxe0 rxe1
	pid=${pids[writer]}
	busywait "$LOOKS" is_marked "$pid" user-qp >/dev/null
	is_marked "$pid" user-qp && named "$pid" || status=1
	ends writer "$status"
}

# It has posted by itself since, but cannot be held otherwise.
around_shim()
{
	local pid status=0

	begins around "$prog" rxe0 around
	pid=${pids[around]}
	busywait "$LOOKS" is_marked "$pid" none >/dev/null
	is_marked "$pid" none && named "$pid" || status=1
	kill -USR1 "$pid"
	busywait 20 nothing_is_marked >/dev/null
	nothing_is_marked || status=1
	ends around "$status"
}

# All at once: they are looked at for as long as it takes to mark one.
not_named()
{
	local status=0 pid

	begins shim rdma-isolate run -- "$writer" rxe0 rxe1
	begins told "$prog" rxe0 told
	begins idle "$prog" rxe0 idle
	sleep "$LOOKS"
	for pid in "${pids[@]}"; do
		sends "$pid" || status=1
	done
	nothing_is_marked &&
		shows 'map(select(.check == "around")) | length == 1 and
			all(.verdict == "ok")' doctor show || status=1
	sees '.around' && status=1
	for pid in shim told idle; do
		ends "$pid" "$status" || status=1
	done
	return "$status"
}

dir=$(mktemp -d)
here=$(cd "$(dirname "$0")" && pwd)
prog=$here/posts_around
writer=$here/dlopen_write
declare -A pids
trap shim_cleanup EXIT
shim_setup rdma-isolated
rdma-isolate -j monitor >"$dir/events" &
busywait 30 is_listening || skip_all "no events"
printf '[agent]\nlisten = 10.0.0.1\n' >"$dir/conf"
ktap_print_header
ktap_set_plan 5
check "the doctor alone" doctor_finds
pids=()
begins agent rdma-isolated --config "$dir/conf"
unset "pids[agent]"
check "programs that tell, and idle ones" not_named
check "a program without the shim" without_shim
check "a program that posts around the shim" around_shim
check_schema
ktap_finished
