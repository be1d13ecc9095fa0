#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# An agent, or the one that it measures with, is killed or stopped, again and again,
# beside bulk and a latency flow: the device is the operator's again when the lease is
# over, nothing stalls, and it is steered again when they are back.
#
#	RISO_ROUNDS	how often (default 2)
#
# One kernel is enough: it tests the agent. What ends a lease is the module's own.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/agent.inc"

rounds=${RISO_ROUNDS:-2}
tracing=/sys/kernel/tracing

# Bulk gets through: so many bytes on the wire within a time that is long enough.
sent()
{
	cat /sys/class/net/veth1/statistics/tx_bytes
}

has_moved()
{
	[ "$(sent)" -gt "$1" ]
}

moves()
{
	busywait 20 has_moved $(($(sent) + 4000000)) && return
	ktap_print_msg "nothing moves"
	return 1
}

is_the_operators()
{
	becomes '.agent_pid == 0 and .lease_ns == 0 and .safe_util == 37500000'
}

is_killed()
{
	stop_agent rxe1 KILL
	moves && is_the_operators || return
	start_agent rxe1
	is_steered && moves
}

# It is not the same lease that the one goes on with.
is_stopped()
{
	kill -STOP "${agents[rxe1]}"
	moves && is_the_operators || return
	kill -CONT "${agents[rxe1]}"
	is_steered && moves
}

# One that comes while the lease holds takes over.
is_replaced()
{
	stop_agent rxe1 KILL
	start_agent rxe1
	busywait 20 budget ".agent_pid == ${agents[rxe1]}" && is_steered && moves
}

# leases SECONDS: of the next agent of rxe1
leases()
{
	sed -i "s/^lease = .*/lease = $1/" "$dir/rxe1.conf"
}

# Killed, and started again as the unit would do; $last is what was lent last.
is_restarted()
{
	stop_agent rxe1 KILL
	last=$(rdma-isolate -j budget show dev rxe1)
	sleep 0.1
	start_agent rxe1
	last=$(jq -c '.[0] | [.safe_util, .target99_ns]' <<<"$last")
}

# What the present agent was the first to lend, if it has
first_lent()
{
	first=$(jq -c -n "first(inputs | select(.event == \"control\" and
		.agent_pid == ${agents[rxe1]}) | [.safe_util, .target99_ns])" "$dir/events")
	[ -n "$first" ]
}

# At the floor of a target that nobody meets; then with a target that was found, which
# cannot be found beside bulk. An emulated agent takes long to start.
is_resumed()
{
	local last first status=1

	rdma-isolate dev set dev rxe1 target99 1us
	leases 20s
	stop_agent rxe1
	start_agent rxe1
	becomes '.agent_pid > 0 and .safe_util == 25000000' && is_restarted &&
	busywait 20 first_lent && [ "$first" = "$last" ] &&
	kill "$bulk" && rdma-isolate dev set dev rxe1 target99 auto &&
	becomes '.agent_pid > 0 and .target99_ns > 0' && start_bulk &&
	becomes '.bandwidth_groups == 1' && is_restarted &&
	becomes ".agent_pid == ${agents[rxe1]} and [.target99_ns] == ${last}[1:]" && status=0
	[ "$status" -eq 0 ] || ktap_print_msg "first $first, before $last"
	rdma-isolate dev set dev rxe1 target99 4s
	leases "${AGENT_LEASE_MS}ms"
	stop_agent rxe1
	start_agent rxe1
	is_steered && return "$status"
}

peer_is_killed()
{
	stop_agent rxe0 KILL
	becomes '.ctrl_state == "no-peer" and .safe_util == 37500000' && moves ||
		return
	start_agent rxe0
	is_steered && moves
}

# What it is written to needs nothing of it.
peer_is_stopped()
{
	kill -STOP "${agents[rxe0]}"
	sleep 1
	is_steered && moves && kill -CONT "${agents[rxe0]}"
}

again()
{
	local i

	for ((i = 1; i <= rounds; i++)); do
		"$@" && continue
		ktap_print_msg "round $i of $*"
		return 1
	done
}

# Each time that nobody took over, by event and by trace: $is and $traced
agrees()
{
	is=$(jq -n '[inputs | select(.event == "lease-expired")] | length' "$dir/events")
	traced=$(grep -c "budget_expire: dev=rxe1 safe_util=37500000 " $tracing/trace)
	[ "$is" -ge $((2 * rounds)) ] && [ "$traced" -eq "$is" ]
}

expired()
{
	local is traced

	busywait 20 agrees && return
	ktap_print_msg "$is events, traced $traced times"
	return 1
}

start_bulk()
{
	LD_PRELOAD=$AGENT_DIR/../shim/librdma_isolate.so "$dir/rload" --dev rxe1 \
		--peer rxe0 --load write --seconds 100000 >/dev/null &
	bulk=$!
}

dir=$(mktemp -d)
trap agent_cleanup EXIT
agent_setup
ln -s "$(command -v rperf)" "$dir/rload"
rdma-isolate dev set dev rxe1 safe-util 300mbit
rdma-isolate -j monitor >"$dir/events" &
mountpoint -q $tracing || mount -t tracefs tracefs $tracing
echo 1 >$tracing/events/rdma_isolate/budget_expire/enable
start_latency
start_bulk
echo "not-local = stay" >>"$dir/rxe1.conf"
start_agent rxe0
start_agent rxe1
ktap_print_header
ktap_set_plan 8
check "it steers" is_steered
check "killed $rounds times" again is_killed
check "stopped" again is_stopped
check "replaced" again is_replaced
check "started again as soon as the unit does" is_resumed
check "its peer killed" again peer_is_killed
check "its peer stopped" again peer_is_stopped
check "each lease that ended was told" expired
[ "$KTAP_CNT_FAIL" -eq 0 ] || agent_report
ktap_finished
