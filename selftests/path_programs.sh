#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Paths of programs with the verbs shim: what they may send to a peer, or read from it. A program
# writes from rxe0 to rxe1 all the time, in messages of 1 MB.
#
# The clock of the machine is not exact: a rate holds if 60 to 120 % of it are posted in one second
# of several.
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

# Mbit/s of wire: much less than an emulated machine sends
LIMIT=40
MB=$((1 << 20))

cleanup()
{
	shim_cleanup
}

# begin NAME LOAD [OPTION]...: a program; its process is $pid
begin()
{
	local name=$1 load=$2
	shift 2

	cp "$(command -v rperf)" "$dir/$name" && rm -f "$dir/ready"
	LD_PRELOAD=$SHIM "$dir/$name" --dev rxe0 --peer rxe1 --load "$load" --size $MB \
		--ready "$dir/ready" "$@" >/dev/null &
	pid=$!
	busywait 60 test -e "$dir/ready"
}

# end PROCESS: as it does by itself
end()
{
	kill "$1" && wait "$1"
}

# bytes_of PROCESS: what its group has posted
bytes_of()
{
	rdma-isolate -j group show dev rxe0 |
		jq "[.[] | select(.pid == $1) | .tx_bytes + .rx_bytes] | add // 0"
}

# measure_rate PROCESS: bytes per second, of about a second
measure_rate()
{
	local began from to

	began=${EPOCHREALTIME/./}
	from=$(bytes_of "$1")
	sleep 1
	to=$(bytes_of "$1")
	echo $(((to - from) * 1000000 / (${EPOCHREALTIME/./} - began)))
}

# holds_to PROCESS MBPS
holds_to()
{
	local rate

	rate=$(measure_rate "$1")
	[ "$rate" -ge $(($2 * 125000 * 6 / 10)) ] && [ "$rate" -le $(($2 * 125000 * 12 / 10)) ]
}

# keeps_to PROCESS MBPS
keeps_to()
{
	busywait 20 holds_to "$@" && return
	ktap_print_msg "$(measure_rate "$1") bytes/s"
	return 1
}

is_free()
{
	[ "$(measure_rate "$1")" -gt $((LIMIT * 125000 * 15 / 10)) ]
}

limit()
{
	rdma-isolate path set dev rxe0 peer "$peer" "$@"
}

# limit_is FILTER
limit_is()
{
	shows "$1" path show dev rxe0
}

is_governed()
{
	rdma-isolate -j flow show dev rxe0 |
		jq -e "any(.[]; .pid == $pid and .managed)" >/dev/null
}

limits()
{
	busywait 20 is_governed && busywait 20 is_free "$pid" || return
	limit dir tx rate ${LIMIT}mbit && keeps_to "$pid" $LIMIT &&
	limit_is '.[0].waits > 0 and .[0].bytes > 0' &&
	shows '.[0].path_ns > 5e8' explain group dev rxe0 id "$(group_of "$pid")"
}

group_of()
{
	rdma-isolate -j group show dev rxe0 | jq ".[] | select(.pid == $1).id"
}

changes()
{
	limit dir tx rate $((LIMIT / 2))mbit && keeps_to "$pid" $((LIMIT / 2)) &&
	limit dir tx rate ${LIMIT}mbit && keeps_to "$pid" $LIMIT
}

ends()
{
	limit dir tx rate off && busywait 20 is_free "$pid"
}

is_leased()
{
	limit dir tx rate ${LIMIT}mbit lease 5s && keeps_to "$pid" $LIMIT &&
	busywait 20 is_free "$pid" && busywait 10 limit_is 'length == 0'
}

# The other direction holds nobody who writes.
leaves_others()
{
	limit dir rx rate ${LIMIT}mbit && sleep 1 && is_free "$pid" && limit dir rx rate off
}

# A new program is held from its first message on.
is_held_at_once()
{
	local status

	end "$pid" && limit dir tx rate ${LIMIT}mbit && begin wload write --verify &&
		keeps_to "$pid" $LIMIT
	status=$?
	limit dir tx rate off && return $status
}

# Groups share a path by their weights.
shares_a_path()
{
	local first=$pid status

	begin heavy write --qps 4 || return
	limit dir tx rate $((2 * LIMIT))mbit && keeps_to "$pid" $((LIMIT * 3 / 2)) &&
		keeps_to "$first" $((LIMIT / 2))
	status=$?
	limit dir tx rate off && end "$pid" && pid=$first && return $status
}

reads()
{
	local first=$pid status

	begin reader read || return
	limit dir rx rate ${LIMIT}mbit && keeps_to "$pid" $LIMIT && is_free "$first"
	status=$?
	limit dir rx rate off && end "$pid" && pid=$first && return $status
}

is_shaped()
{
	local status

	rperf --dev rxe0 --peer rxe1 --samples 0 --seconds 100000 --interval 100000 >/dev/null &
	busywait 60 has_latency_flow rxe0 && limit dir tx rate ${LIMIT}mbit &&
		keeps_to "$pid" $LIMIT
	status=$?
	limit dir tx rate off && kill $! && return $status
}

# It sends all that it holds when the device is disabled, and has its data checked.
is_let_go()
{
	limit dir tx rate ${LIMIT}mbit && keeps_to "$pid" $LIMIT &&
	rdma-isolate dev set dev rxe0 mode disable && end "$pid"
}

dir=$(mktemp -d)
trap cleanup EXIT
require rdma rdma-isolate jq rperf
[ -e "$SHIM" ] || skip_all "no $SHIM"
need_module rdma_rxe rdma_ucm ib_uverbs
{ load_module && setup_rxe; } || skip_all "no module or no rxe devices"
rdma-isolate rule add comm rperf class latency >/dev/null
rdma-isolate rule add comm heavy class bandwidth weight 300 >/dev/null
rdma-isolate dev set dev rxe0 mode enable max-rate 10gbit chunk-bytes 16k ||
	skip_all "rxe0: not enabled"
begin wload write --verify || skip_all "no load"
peer=$(rdma-isolate -j flow show dev rxe0 | jq -r "[.[] | select(.pid == $pid).peer] | first")

ktap_print_header
ktap_set_plan 11
ktap_print_msg "to $peer: $(measure_rate "$pid") bytes/s without a limit"
check "a rate is kept" limits
check "another rate" changes
check "it ends" ends
check "for a while" is_leased
check "another direction" leaves_others
check "a new program" is_held_at_once
check "programs share a path by their weights" shares_a_path
check "what is read" reads
check "beside a latency flow" is_shaped
check_schema
check "disabled with a limit" is_let_go
ktap_finished
