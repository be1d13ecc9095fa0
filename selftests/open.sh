#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A device with nobody to protect is open: posts of its managed flows go straight to the
# provider, and are counted. It closes when a latency flow comes, or when several groups
# fill it, and opens again. A MaxRate that is too low does not hold bulk back.
#
# One kernel is enough: a device that is open goes by the same code on each.

. "$(dirname "$0")/lib.sh"

LOAD=/sys/kernel/debug/riso_test_load
ULP=/sys/kernel/debug/riso_test_ulp/run
# Mbit/s: what an emulated processor can keep busy in messages of 64 KB
RATE=400

counter()
{
	rdma-isolate -j statistic show dev null0 | jq ".[0].$1"
}

grows()
{
	local before

	before=$(counter "$1")
	sleep 1
	[ "$(counter "$1")" -gt "$before" ]
}

# stays COUNTER: in the time in which others grow
stays()
{
	local before

	before=$(counter "$1")
	sleep 1
	[ "$(counter "$1")" -eq "$before" ]
}

# begin_load [KEY=VALUE]...: large messages until end_load
begin_load()
{
	echo "load len=65536 depth=4 window_ms=60000 windows=10 $*" >$LOAD/run &
	pid=$!
	busywait 10 has_flow
}

end_load()
{
	kill "$pid"
	wait "$pid"
	pid=
	rdma-isolate dev set dev null0 max-rate ${RATE}mbit
}

has_flow()
{
	rdma-isolate -j flow show dev null0 | jq -e 'any(.[]; .wrs > 0 and
		(.ulp // "" | startswith("riso_load")))' >/dev/null
}

# What groups have posted, bytes
posted()
{
	rdma-isolate -j group show dev null0 |
		jq '[.[] | select(.ulp // "" | startswith("riso_load")) | .tx_bytes] | add'
}

# Work requests and bytes of a flow, of which one may be counted just now
flow_agrees()
{
	rdma-isolate -j flow show dev null0 | jq -e 'any(.[]; .tx_bytes > 0 and
		.wrs * 65536 == .tx_bytes)' >/dev/null
}

# One ULP, and nobody to protect
passes()
{
	local before after status

	begin_load &&
	grows passed_wrs && stays wr_queued && before=$(posted) && sleep 1 &&
	after=$(posted) && [ "$after" -gt "$before" ] && busywait 10 flow_agrees
	status=$?
	end_load && [ "$status" -eq 0 ]
}

# A latency flow comes, and goes.
closes_for_latency()
{
	local status

	begin_load && grows passed_wrs &&
	echo lat-on >$ULP && busywait 5 grows chunk_posted && stays passed_wrs &&
	echo lat-off >$ULP && busywait 5 grows passed_wrs && stays chunk_posted
	status=$?
	[ ! -e $ULP ] || echo lat-off >$ULP
	end_load && [ "$status" -eq 0 ]
}

# Two ULPs that fill the device take turns: one has eight times as much out.
closes_for_groups()
{
	local before

	before=$(counter wr_queued)
	echo "load len=65536 groups=2 depth=32 depth2=4 wait_ms=1000 window_ms=3000" >$LOAD/run &&
	[ "$(counter wr_queued)" -gt "$before" ] &&
	jq -e '.windows[0] | .bytes0 / .bytes1 | . > 0.7 and . < 1.4' $LOAD/result >/dev/null ||
		{ ktap_print_msg "$(cat $LOAD/result)"; return 1; }
}

# Two ULPs that do not fill it leave it open.
stays_open()
{
	local status

	rdma-isolate dev set dev null0 max-rate 100gbit &&
	begin_load groups=2 && sleep 1 && grows passed_wrs && stays wr_queued
	status=$?
	end_load && [ "$status" -eq 0 ]
}

# A tenth of what the link can do
exceeds_max_rate()
{
	rdma-isolate dev set dev null0 max-rate $((RATE / 10))mbit &&
	echo "load len=65536 every_us=10000 wait_ms=3000 window_ms=3000" >$LOAD/run &&
	jq -e ".windows[0] | .bytes0 * 8 / .ns * 1000 > $RATE / 8" $LOAD/result >/dev/null ||
		{ ktap_print_msg "$(cat $LOAD/result)"; return 1; }
}

believes()
{
	rdma-isolate -j dev show dev null0 | jq -e ".[0] | .believed_rate $1 .max_rate" >/dev/null
}

# What is believed instead is shown and told until MaxRate is set.
tells_believed_rate()
{
	believes ">" &&
	rdma-isolate -j doctor | jq -e 'any(.check == "believed-rate")' >/dev/null &&
	jq -es 'any(.. | objects; .believed_rate? > .max_rate)' "$events" >/dev/null &&
	rdma-isolate dev set dev null0 max-rate ${RATE}mbit && believes ==
}

# Nothing is held, so there is nothing to wait for.
disables_under_load()
{
	local status

	begin_load && grows passed_wrs &&
	rdma-isolate dev set dev null0 mode disable timeout 20s
	status=$?
	end_load && [ "$status" -eq 0 ] && rdma-isolate dev set dev null1 mode disable && unload_module
}

require rdma ip tc jq
command -v rdma-isolate >/dev/null || skip_all "no rdma-isolate"
load_test_module riso_test_ulp dev_a=null0 dev_b=null1
trap 'kill "${pid:-}" 2>/dev/null; wait; teardown_all' EXIT
setup_null rate_mbps=$RATE copy=0 || skip_all "no two devices of nullrdma"
load_test_module riso_test_load
load_module || skip_all "rdma_isolate cannot be loaded"
rdma-isolate rule add ulp riso_load0 class bandwidth >/dev/null
rdma-isolate rule add ulp riso_load1 class bandwidth >/dev/null
rdma-isolate rule add ulp riso_test_lat class latency >/dev/null
rdma-isolate rule add ulp riso_load_small class latency >/dev/null
for dev in null0 null1; do
	rdma-isolate dev set dev $dev mode enable max-rate ${RATE}mbit
done

ktap_print_header
ktap_set_plan 7
ktap_test_result "one ULP: posts pass, and are counted" passes
ktap_test_result "a latency flow closes it" closes_for_latency
ktap_test_result "two ULPs that fill it close it" closes_for_groups
ktap_test_result "two ULPs that do not" stays_open
events=$(mktemp)
rdma-isolate -j monitor >"$events" &
listener=$!
ktap_test_result "a MaxRate of a tenth" exceeds_max_rate
kill "$listener"
ktap_test_result "what is believed instead" tells_believed_rate
rm -f "$events"
ktap_test_result "disabled under load" disables_under_load
ktap_finished
