#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-isolated: when it measures, what it lends, when that ends, and who may connect.
#
# One kernel is enough: it tests the agent, and the module lends the same on all.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/agent.inc"

GUEST=$(dirname "$0")/agent_guest
PORT=18516

# What rxe1 has sent, of any kind
sent()
{
	cat /sys/class/infiniband/rxe1/ports/1/hw_counters/sent_pkts
}

is_silent()
{
	local before

	before=$(sent)
	sleep 2
	[ "$(sent)" -eq "$before" ]
}

connects()
{
	busywait 30 grep -q "10.0.0.1: connected" "$dir/rxe1.log"
}

idle()
{
	connects &&
	becomes '.ctrl_state == "open" and .safe_util == 50000000 and
		.latency_groups == 0' && is_silent
}

# Its own queue pairs are no flows of the device.
measures()
{
	start_latency
	becomes '.ctrl_state == "tracking" and .current99_ns > 0 and
		.latency_groups == 1 and .target99_ns == 4000000000' &&
	shows "any(.pid == ${agents[rxe1]} and .reason == \"reference\")" \
		flow show dev rxe1
}

# get PATH [HEADER]: what it answers there, into $answer; by HTTP/1.0 it comes in one piece
get()
{
	local status

	exec 3<>"/dev/tcp/127.0.0.1/$METRICS_PORT" || return
	printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n%s\r\n' "$1" "${2:+$2$'\r\n'}" >&3
	answer=$(timeout 20 cat <&3 | tr -d '\r')
	status=$?
	exec 3>&-
	return "$status"
}

metrics()
{
	rdma-isolate path set dev rxe1 peer 10.9.9.9 dir rx rate 100mbit &&
	get /metrics "Accept: application/openmetrics-text" &&
	[[ $answer == "HTTP/1."?" 200 "* && $answer == *"# EOF" ]] && get /metrics &&
	[[ $answer == *"text/plain; version=0.0.4"* && $answer != *"# EOF"* ]] &&
	grep -q '^rdma_isolate_path_limit_bytes_per_second{dev="rxe1",.*="rx"} 12500000$' \
		<<<"$answer" &&
	rdma-isolate path set dev rxe1 peer 10.9.9.9 dir rx rate off &&
	grep -q '^rdma_isolate_target99_seconds{dev="rxe1"} 4' <<<"$answer" &&
	grep -q '^rdma_isolate_reference_messages_total{dev="rxe1".* [1-9]' \
		<<<"$answer" &&
	get /nothing && [[ $answer == "HTTP/1."?" 404 "* ]] && return
	ktap_print_msg "$(head -n 3 <<<"$answer")"
	return 1
}

sysfs_agrees()
{
	local files=/sys/class/infiniband/rxe1/rdma_isolate

	[ "$(cat $files/target99_ns)" = 4000000000 ] &&
	[ "$(cat $files/current99_ns)" -gt 0 ] && [ "$(cat $files/lease_ns)" -gt 0 ]
}

# Nobody is at this target; the bandwidth flow keeps what it is guaranteed.
misses()
{
	local load status=1

	sed -i '$a not-local = stay\nunattainable = keep\ndelta = 1s' "$dir/rxe1.conf"
	kill -HUP "${agents[rxe1]}"
	rdma-isolate dev set dev rxe1 target99 1us
	LD_PRELOAD=$AGENT_DIR/../shim/librdma_isolate.so "$dir/rload" \
		--dev rxe1 --peer rxe0 --load write >/dev/null 2>&1 &
	load=$!
	becomes '(.ctrl_state | IN("missed", "unattainable", "not-local")) and
		.bandwidth_groups == 1 and .safe_util == 25000000' && status=0
	kill "$load"
	wait "$load"
	return "$status"
}

# A flow that comes now knows what it is in for.
warns()
{
	local flow status=1

	rdma-isolate -j monitor >"$dir/events" 2>/dev/null &
	monitor=$!
	busywait 10 grep -q "Groups:" "/proc/$monitor/status"
	rdma-isolate dev set dev rxe1 target99 1us
	becomes '.current99_ns > .target99_ns and .target99_ns == 1000'
	rperf --dev rxe1 --peer rxe0 --port 18700 --samples 0 --seconds 100 \
		--interval 100000 >/dev/null &
	flow=$!
	busywait 20 is_over_target && status=0
	kill "$flow" "$monitor"
	wait "$flow" "$monitor" 2>/dev/null
	return "$status"
}

is_writing()
{
	shows 'any(.comm == "dlopen_write" and .managed)' flow show dev rxe1
}

# hears LINE: what a program with the shim has to say that writes meanwhile
hears()
{
	local pid

	LD_PRELOAD=$AGENT_DIR/../shim/librdma_isolate.so \
		"$(dirname "$0")/dlopen_write" rxe1 rxe0 >"$dir/writes" 2>&1 &
	pid=$!
	busywait 30 is_writing >/dev/null
	kill "$pid"
	wait "$pid" && grep -Eqx "$1" "$dir/writes" && return
	ktap_print_msg "$(cat "$dir/writes")"
	return 1
}

# A program can ask, for one of its own queue pairs.
tells_programs()
{
	rdma-isolate dev set dev rxe1 target99 4s
	becomes '.current99_ns < .target99_ns' && hears '[0-9]+' || return
	rdma-isolate dev set dev rxe1 target99 1us
	becomes '.current99_ns > .target99_ns' && hears '[0-9]+, over target'
}

is_over_target()
{
	rdma-isolate -j flow show dev rxe1 |
		jq -e 'any(.over_target and .class == "latency")' >/dev/null &&
	jq -e -n '[inputs | select(.event == "flow" and .over_target)] |
		length > 0' "$dir/events" >/dev/null
}

opens()
{
	stop_latency
	becomes '.ctrl_state == "open" and .safe_util == 50000000'
}

# The operator's wish wins, until it is taken back.
manual()
{
	rdma-isolate dev set dev rxe1 ctrl manual safe-util 300mbit &&
	becomes '.agent_pid == 0 and .safe_util == 37500000' &&
	sleep 1 && budget '.agent_pid == 0' &&
	rdma-isolate dev set dev rxe1 ctrl auto &&
	becomes '.agent_pid > 0'
}

# While it lends nobody else does.
one_agent()
{
	refused 1 "an agent steers the device" budget set dev rxe1 \
		safe-util 100mbit lease 1s
}

# A file that is wrong changes nothing.
reload()
{
	cp "$dir/rxe1.conf" "$dir/good"
	echo "nonsense = 1" >>"$dir/rxe1.conf"
	kill -HUP "${agents[rxe1]}"
	busywait 10 grep -q "not reloaded: .*nonsense" "$dir/rxe1.log" &&
	budget '.agent_pid > 0' || return
	cp "$dir/good" "$dir/rxe1.conf"
	kill -HUP "${agents[rxe1]}"
	busywait 10 grep -q "^reloaded" "$dir/rxe1.log" &&
	becomes '.agent_pid > 0'
}

# guests WHAT COUNT FILTER: what becomes of them
guests()
{
	local said

	said=$("$GUEST" "$1" 10.0.0.1 "$PORT" "$2" 2>&1)
	[[ $said =~ $3 ]] && return
	ktap_print_msg "$said"
	return 1
}

# The agent that was asked goes on measuring.
refuses()
{
	guests "$1" 3 "^accepted 0 refused 3 failed 0" &&
	guests "$1" 3 "^accepted 0 refused 3 failed 0" &&
	logged rxe0 1 "refused: $2"
}

# The log says once a minute that there are too many; a slow host takes minutes.
many()
{
	local is

	guests agent 1000 "^accepted [1-9]" && becomes '.agent_pid > 0' &&
	kill -0 "${agents[rxe0]}" || return
	is=$(grep -c 'too many' "$dir/rxe0.log")
	[ "$is" -ge 1 ] && [ "$is" -le 5 ] || {
		ktap_print_msg "$is lines of 'too many'"
		return 1
	}
	busywait 60 guests agent 1 "^accepted 1 "
}

connections()
{
	grep -c "10.0.0.1: connected" "$dir/rxe1.log"
}

# Whoever takes a place and is not heard of again loses it, one who is there does not.
room()
{
	local guest before status=1

	before=$(connections)
	"$GUEST" agent 10.0.0.1 "$PORT" 300 100 >"$dir/held" &
	guest=$!
	busywait 60 grep -q "^accepted [1-9].* refused [1-9]" "$dir/held" &&
	guests agent 1 "^accepted 0 refused 1 " &&
	busywait 40 guests agent 1 "^accepted 1 " &&
	[ "$(connections)" -eq "$before" ] && status=0
	kill "$guest"
	wait "$guest" 2>/dev/null
	return "$status"
}

# Without the other end it gives the device back, and finds it again.
peer_goes()
{
	start_latency
	becomes '.ctrl_state == "tracking"' || return
	stop_agent rxe0 KILL
	becomes '.ctrl_state == "no-peer" and .safe_util == 37500000' || return
	start_agent rxe0
	becomes '.ctrl_state == "tracking"'
}

ends()
{
	stop_agent rxe1
	busywait 5 budget '.agent_pid == 0 and .safe_util == 37500000'
}

dir=$(mktemp -d)
trap agent_cleanup EXIT
agent_setup
ln -s "$(command -v rperf)" "$dir/rload"
ktap_print_header
ktap_set_plan 21
start_agent rxe0
start_agent rxe1
check "no latency flow: no message is sent" idle
check "with one it measures" measures
check "sysfs agrees" sysfs_agrees
check "metrics" metrics
check "a target that cannot be met" misses
check "a latency flow that comes then" warns
check "a program asks" tells_programs
check "the last latency flow goes" opens
check "ctrl manual" manual
check "one agent at a time" one_agent
check "reload" reload
check "a peer of another version" refuses version "an agent of another version"
check "garbage" refuses garbage "not an agent"
check "nothing said" refuses nothing "not an agent"
check "1,000 connections" many
if is_debug_kernel; then
	ktap_test_skip "places of those who are silent: connections come more slowly than places get free"
else
	check "places of those who are silent" room
fi
rdma-isolate dev set dev rxe1 target99 4s
check "the peer goes and comes" peer_goes
check "no line of the log too many" test "$(wc -l <"$dir/rxe0.log")" -lt 50
check "what it shows" shows 'all(has("ctrl_state"))' budget show
check "it gives back what it was lent" ends
check_schema
[ "$KTAP_CNT_FAIL" -eq 0 ] || agent_report
ktap_finished
