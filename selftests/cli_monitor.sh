#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-isolate monitor: devices and flows are told of when they come, change, fail and
# go, once each, as lines of text and of JSON.
#
# One kernel is enough: it tests the tool.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/ulp.inc"

require rdma rdma-isolate jq ibv_rc_pingpong
need_module rdma_rxe
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT

# has_told FILTER COUNT: so many events, or more
has_told()
{
	jq -se "map(select($1)) | length >= $2" "$dir/json" >/dev/null 2>&1
}

# told FILTER COUNT: how many events there are, once as many have come
told()
{
	local n

	busywait 20 has_told "$1" "$2"
	n=$(jq -s "map(select($1)) | length" "$dir/json")
	[ "$n" -eq "$2" ] && return
	ktap_print_msg "$n events $1"
	tail -n 3 "$dir/json" | while read -r line; do
		ktap_print_msg "$line"
	done
	return 1
}

# An event that is provoked until it is seen: the monitor listens.
is_listening()
{
	rdma-isolate dev set dev rxe1 mode observe
	rdma-isolate dev set dev rxe1 mode disable
	has_told '.dev == "rxe1"' 1 && [ -s "$dir/text" ]
}

device_changes()
{
	rdma-isolate dev set dev rxe0 mode observe &&
	told '.event == "device" and .dev == "rxe0" and .state == "observe"' 1 &&
	rdma-isolate dev set dev rxe0 mode disable &&
	told '.event == "device" and .dev == "rxe0" and .state == "idle"' 1
}

flow_comes()
{
	ibv_rc_pingpong -d rxe0 >/dev/null &
	server=$!
	told ".event == \"flow\" and .pid == $server and
		.class == \"bandwidth\" and .reason == \"user-qp\"" 1
}

flow_is_reclassified()
{
	rdma-isolate rule add comm ibv_rc_pingpong class latency >/dev/null &&
	told ".event == \"flow\" and .pid == $server and .class == \"latency\"" 1
}

# A rule for others changes nothing for it.
nothing_changes()
{
	rdma-isolate rule add comm other class throughput >/dev/null
	rdma-isolate dev set dev rxe0 mode observe
	rdma-isolate dev set dev rxe0 mode disable
	told '.dev == "rxe0" and .state == "idle"' 2 &&
	told ".event == \"flow\" and .pid == $server" 2
}

flow_goes()
{
	kill "$server"
	wait "$server" 2>/dev/null
	told ".event == \"flow-gone\" and .pid == $server" 1
}

lease_expires()
{
	rdma-isolate dev set dev rxe1 max-rate 400mbit safe-util 300mbit &&
	rdma-isolate budget set dev rxe1 safe-util 100mbit lease 1min &&
	rdma-isolate budget set dev rxe1 chunk-bytes 8k lease 500ms &&
	told '.event == "lease-expired" and .dev == "rxe1" and
		.safe_util == 37500000 and .chunk_bytes == 4096' 1 &&
	shows '.[0].lease_ns == 0' budget show dev rxe1
}

device_goes_and_comes()
{
	rdma link delete rxe0 &&
	told '.event == "device" and .dev == "rxe0" and .state == "gone"' 1 &&
	rdma link add rxe0 type rxe netdev veth0 &&
	told '.event == "device" and .dev == "rxe0" and .state == "idle"' 3
}

# The peer refuses a message half-way, and one that goes out whole and asks for no
# completion. What is flushed has not failed.
flow_fails()
{
	ulp_isolate && ulp_run size len=200001 count=2 && ulp_run drain &&
	ulp_run remacc len=200001 || { ulp_report; return 1; }
	told '.event == "flow-gone" and .error == "remote-access"' 1 &&
	told '.event == "flow-error" and .dev == "rxe0" and
		.ulp == "riso_test_ulp" and .error == "remote-access"' 1 &&
	told '.event == "flow-error"' 1 &&
	ulp_run remacc len=3000 signal=0 && told '.event == "flow-error"' 2 &&
	busywait 20 grep -q '^event flow-error dev rxe0 .* error remote-access ' "$dir/text" &&
	ulp_release
}

only_one_device()
{
	busywait 20 grep -q '"dev":"rxe0"' "$dir/only" && ! grep -q rxe1 "$dir/only"
}

text_is_the_same()
{
	busywait 20 grep -q '^event device dev rxe0 .* state gone ' "$dir/text" &&
	[ "$(grep -c '^event device dev rxe0 .* state gone ' "$dir/text")" -eq 1 ]
}

# The module is unloaded by now. A monitor would never hear of anything again.
module_goes()
{
	busywait 20 grep -q "module rdma_isolate was unloaded" "$dir/said" || return
	wait "$text"
	[ $? -eq 1 ]
}

load_test_module riso_test_ulp
load_module && setup_rxe || skip_all "no rxe devices"
rdma-isolate -j monitor >"$dir/json" &
rdma-isolate monitor >"$dir/text" 2>"$dir/said" &
text=$!
rdma-isolate -j monitor show dev rxe0 >"$dir/only" &
ktap_print_header
ktap_set_plan 13
check "the monitor listens" busywait 30 is_listening
check "a device changes" device_changes
check "a flow comes" flow_comes
check "and is reclassified" flow_is_reclassified
check "and is left alone" nothing_changes
check "and goes" flow_goes
check "a lease expires" lease_expires
check "a device goes and comes" device_goes_and_comes
check "only one device" only_one_device
check "text" text_is_the_same
check "a flow fails" flow_fails
check "the module goes" module_goes
check_schema "$(sed 's/^/monitor show\t/' "$dir/json")"
ktap_finished
