#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# MaxRate that nobody has set: it is what the port tells, also when that changes, and a
# port that is down holds nothing back. What somebody has set stays, until somebody sets auto.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

require rdma rdma-isolate jq
need_module rdma_rxe
trap teardown_all EXIT

# What rxe tells over veth: 10 Gbit/s
PORT=1250000000
# The largest that can be set
MOST=1000000000000

is()
{
	shows ".[0] | .calibrated == $1 and .max_rate == $2 and .safe_util == $3" \
		dev show dev rxe0 >/dev/null
}

# What it is after the events of the port have been looked at
stays()
{
	udevadm settle 2>/dev/null
	sleep 1
	is "$@"
}

link()
{
	ip link set veth0 "$1"
}

as_the_port_tells()
{
	is false $PORT $PORT
}

goes_down()
{
	link down && stays false $PORT $PORT
}

down_from_the_begin()
{
	unload_module && load_module && is false $MOST $MOST
}

is_told()
{
	timeout 20 rdma-isolate -j monitor >"$events" &
	busywait 10 [ -s "$events" ] || sleep 1
	link up && busywait 10 is false $PORT $PORT &&
	busywait 10 grep -q "\"max_rate\":$PORT" "$events"
}

safe_util_stays()
{
	link down && unload_module && load_module &&
	rdma-isolate dev set dev rxe0 safe-util 20gbit &&
	link up && stays false $MOST 2500000000 &&
	rdma-isolate dev set dev rxe0 safe-util 5gbit && link down && link up &&
	busywait 10 is false $PORT 625000000
}

own_setting_stays()
{
	rdma-isolate dev set dev rxe0 max-rate 5gbit safe-util 5gbit &&
	link down && link up && stays true 625000000 625000000
}

# believed_from WORD
believed_from()
{
	shows ".[0].believed_from == \"$1\"" dev show dev rxe0 >/dev/null
}

# auto is what the port tells, then and later, and safe-util follows it.
auto_after_a_setting()
{
	rdma-isolate dev set dev rxe0 max-rate 5gbit safe-util 5gbit && believed_from set &&
	rdma-isolate dev set dev rxe0 max-rate auto && as_the_port_tells && believed_from port &&
	rdma-isolate dev set dev rxe0 max-rate "${PORT}B/s" && is true $PORT $PORT &&
	rdma-isolate dev set dev rxe0 max-rate auto safe-util 5gbit && is false $PORT 625000000 &&
	believed_from port && link down && link up && stays false $PORT 625000000
}

auto_below_safe_util()
{
	rdma-isolate dev set dev rxe0 max-rate 20gbit safe-util 15gbit &&
	refused 1 "safe-util may not be above what the port tells" \
		dev set dev rxe0 max-rate auto chunk-bytes 4k &&
	is true 2500000000 1875000000 &&
	shows '.[0].chunk_bytes == "auto"' dev show dev rxe0 >/dev/null
}

auto_before_the_port_tells()
{
	link down && unload_module && load_module &&
	rdma-isolate dev set dev rxe0 max-rate 5gbit &&
	rdma-isolate dev set dev rxe0 max-rate auto && is false $MOST $MOST &&
	believed_from nothing && link up && busywait 10 is false $PORT $PORT &&
	believed_from port
}

# Nobody has set MaxRate, and it stays above a safe-util that the port cannot do: a batch that
# is refused brings it back as a number.
batch_above_the_port()
{
	link down && unload_module && load_module &&
	rdma-isolate dev set dev rxe0 safe-util 20gbit && link up &&
	stays false $MOST 2500000000 && believed_from set || return
	printf '%s\n' "dev set dev rxe0 max-rate 5gbit safe-util 5gbit" \
		"dev set dev rxe9 mode observe" | refused 1 "no RDMA device" -b - &&
	is true $MOST 2500000000 &&
	rdma-isolate dev set dev rxe0 max-rate auto safe-util "${PORT}B/s" &&
	as_the_port_tells
}

# A lease does not hide the port from the settings that come back.
under_a_lease()
{
	link down && unload_module && load_module &&
	rdma-isolate budget set dev rxe0 safe-util 100mbit lease 4s && link up &&
	busywait 3 shows ".[0] | .safe_util == 12500000" budget show dev rxe0 >/dev/null &&
	busywait 10 is false $PORT $PORT
}

load_module && setup_rxe || skip_all "no module or no rxe devices"
events=$(mktemp)
ktap_print_header
ktap_set_plan 11
ktap_test_result "as the port tells" as_the_port_tells
ktap_test_result "the port goes down" goes_down
ktap_test_result "down from the beginning" down_from_the_begin
ktap_test_result "it comes up, and listeners are told" is_told
ktap_test_result "safe-util that was set stays" safe_util_stays
ktap_test_result "max-rate that was set stays" own_setting_stays
ktap_test_result "max-rate auto" auto_after_a_setting
ktap_test_result "max-rate auto, below safe-util" auto_below_safe_util
ktap_test_result "max-rate auto, before the port has told" auto_before_the_port_tells
ktap_test_result "a batch that is refused" batch_above_the_port
ktap_test_result "while settings are lent" under_a_lease
rm -f "$events"
ktap_finished
