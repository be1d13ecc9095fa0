#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Agents that tell each other what their hosts send: hosts 2 and 3 send to host 1, whose agent
# says how much of that may be.
#
# The target is one that is always met: how well messages fare is for the bench.
#
# One kernel is enough: it tests agents.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"
. "$(dirname "$0")/hosts.inc"
. "$(dirname "$0")/agent.inc"

# Mbit/s of each host
RATE=40
MB=$((1 << 20))

cleanup()
{
	# shellcheck disable=SC2046 # numbers
	kill -9 $(jobs -p) 2>/dev/null
	wait
	teardown_hosts
	# The other end of a program that was killed has the module until it finds that out.
	busywait 30 unload_module 2>/dev/null
	rm -rf "$dir"
}

# send NAME HOST: a program of that host sends to host 1; its process is $pid
send()
{
	cp "$(command -v rperf)" "$dir/$1" && rm -f "$dir/ready" || return
	LD_PRELOAD=$SHIM "$dir/$1" --dev "rxe$2" --peer rxe1 --load write --size $MB \
		--ready "$dir/ready" >/dev/null &
	pid=$!
	busywait 90 test -e "$dir/ready"
}

# A latency flow from host 2 to host 1
start_ping()
{
	rperf --dev rxe2 --peer rxe1 --samples 0 --seconds 100000 --interval 100000 >/dev/null &
	ping=$!
	busywait 60 has_latency_flow rxe2
}

end()
{
	kill "$1"
	wait "$1" 2>/dev/null
}

# may HOST: what it may send to host 1, percent of what all may; empty if nobody says
may()
{
	rdma-isolate -j path show dev "rxe$1" |
		jq ".[] | select(.dir == \"tx\" and .peer == \"::ffff:10.0.9.1\") |
			.rate / ($RATE * 1250) | floor"
}

# may_be HOST LEAST MOST
may_be()
{
	local is

	is=$(may "$1")
	[ -n "$is" ] && [ "$is" -ge "$2" ] && [ "$is" -le "$3" ]
}

# comes_to_be HOST LEAST MOST
comes_to_be()
{
	busywait 30 may_be "$@" && return
	ktap_print_msg "host $1: $(may "$1") % and not $2 to $3: $(rdma-isolate path show dev "rxe$1")"
	return 1
}

# is_cut HOST on|off
is_cut()
{
	shows ".[] | select(.dir == \"tx\").cut == \"$2\"" path show dev "rxe$1"
}

# no_path HOST
no_path()
{
	shows 'length == 0' path show dev "rxe$1"
}

# Nobody has a latency flow, so nobody is held back.
all_may_send()
{
	send early 2 && sleep 2 && no_path 2 && end "$pid"
}

is_split()
{
	local second

	start_ping && send second 2 && second=$pid && send third 3 &&
	comes_to_be 2 40 60 && comes_to_be 3 40 60 && is_cut 2 on && is_cut 3 on &&
	shows '[.[] | .rate] | add | . > 0' path show dev rxe3 &&
	rates=($second "$pid")
}

# group_of HOST PROCESS
group_of()
{
	rdma-isolate -j group show dev "rxe$1" | jq ".[] | select(.pid == $2).id"
}

# Who is held back can see by whom.
is_explained()
{
	busywait 30 shows '.[0].waits_for // [] | any(.[]; .peer == "::ffff:10.0.9.1" and
		.dir == "tx" and .lease_ns > 0 and .set_by == "agent")' \
		explain group dev rxe3 id "$(group_of 3 "${rates[1]}")"
}

# Both together have no more than there is. One may hear of its part a moment before the other.
is_no_more()
{
	local host i is sum=0

	for ((i = 0; i < 20; i++)); do
		for host in 2 3; do
			is=$(may $host)
			sum=$((sum + ${is:-0}))
		done
		sleep 0.1
	done
	[ $sum -le $((20 * 105)) ] && return
	ktap_print_msg "$((sum / 20)) % together"
	return 1
}

# Host 3 has nothing to send.
is_left_to_others()
{
	end "${rates[1]}"
	comes_to_be 2 75 100
}

# The device of host 2 is not what is full.
is_not_blamed()
{
	shows '.[0].ctrl_state == "tracking" and .[0].safe_util >= .[0].tx_pace' \
		budget show dev rxe2
}

# Nobody says it any more: it ends with its lease.
ends_with_its_agent()
{
	stop_agent rxe1 KILL
	busywait 10 no_path 2
}

is_back()
{
	start_agent rxe1
	comes_to_be 2 50 100 && is_cut 2 on
}

keeps_an_operators()
{
	rdma-isolate path set dev rxe2 peer 10.0.9.1 dir tx rate 10mbit && sleep 2 &&
	may_be 2 25 25 && shows '.[] | select(.dir == "tx").lease_ns == 0' path show dev rxe2 &&
	rdma-isolate path set dev rxe2 peer 10.0.9.1 dir tx rate off && comes_to_be 2 50 100
}

# What host 1 reads from host 2 is for host 2 to say, and there is nobody: no limit.
is_silent()
{
	no_path 1
}

# Host 1 answers latency flows of others, though it has a rule for none.
answers_others()
{
	busywait 10 shows '.[0].peer_latency_groups == 1' budget show dev rxe1 || return
	end "$ping"
	busywait 10 shows '.[0].peer_latency_groups == 0' budget show dev rxe1
}

PATH=$AGENT_DIR:$PATH
require rdma rdma-isolate rdma-isolated jq rperf tc
[ -e "$SHIM" ] || skip_all "no $SHIM"
need_module rdma_rxe rdma_ucm ib_uverbs
dir=$(mktemp -d)
trap cleanup EXIT
{ load_module && setup_hosts 3; } || skip_all "no module or no rxe devices"
rdma-isolate rule add dev rxe2 comm rperf class latency >/dev/null || skip_all "no rule"
for host in 1 2 3; do
	set_adapter $host ${RATE}mbit
	rdma-isolate dev set dev rxe$host mode enable max-rate ${RATE}mbit target99 4s ||
		skip_all "rxe$host: not enabled"
done
# A busy emulator may keep an agent from its turn for some time.
AGENT_LEASE_MS=2000
agent_conf rxe1 10.0.9.1
agent_conf rxe2 10.0.9.2 "peer = 10.0.9.1"
agent_conf rxe3 10.0.9.3 "peer = 10.0.9.1"
for host in 1 2 3; do
	sed -i '/^listen/a ref-period = 5ms' "$dir/rxe$host.conf"
	start_agent rxe$host
done

ktap_print_header
ktap_set_plan 11
check "without latency flows all may send" all_may_send
check "what comes in is split" is_split
check "which explain tells" is_explained
check "and is no more than there is" is_no_more
check "what one does not send others may" is_left_to_others
check "nor is who sends to blame" is_not_blamed
check "who reads nothing is told nothing" is_silent
check "limits end with the agent that says them" ends_with_its_agent
check "and are back with it" is_back
check "an operator's limit stays" keeps_an_operators
check "a host keeps short what others wait for" answers_others
agent_report
ktap_finished
