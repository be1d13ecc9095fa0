#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What others may see: in the initial PID namespace all flows and groups, in another one
# those of the processes that are seen there.
#
# One kernel is enough: all show the same.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

require rdma rdma-isolate ibv_rc_pingpong jq nsenter pgrep setpriv unshare
need_module rdma_rxe

# unshare heeds no other signal. A device goes when no program has it open any more.
cleanup()
{
	# shellcheck disable=SC2046 # numbers
	kill -KILL $(jobs -p) 2>/dev/null
	wait 2>/dev/null
	busywait 30 sh -c '! pgrep -x ibv_rc_pingpong >/dev/null'
	teardown_all
}

trap cleanup EXIT
load_module && setup_rxe || skip_all "no module or no rxe devices"

# A server that waits for its client for ever, here and in a PID namespace of its own
ibv_rc_pingpong -d rxe0 -p 20001 >/dev/null &
outside=$!
unshare --pid --fork --kill-child --mount-proc sh -c '
	ibv_rc_pingpong -d rxe0 -p 20002 >/dev/null &
	sleep 1000' &

as_nobody()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# in_namespace COMMAND...: in that PID namespace
in_namespace()
{
	nsenter --target "$(pgrep -xn ibv_rc_pingpong)" --pid --mount "$@"
}

# counts COMMAND...: kernel flows and those of programs
counts()
{
	"$@" rdma-isolate -j flow show dev rxe0 |
		jq -c '[map(select(.pid | not)), map(select(.pid))] | map(length)'
}

counts_are()
{
	local want=$1
	shift

	[ "$(counts "$@")" = "$want" ] && return
	ktap_print_msg "wanted $want: $(counts "$@")"
	return 1
}

host_sees_all()
{
	counts_are '[1,2]' env && counts_are '[1,2]' as_nobody
}

container_sees_its_own()
{
	counts_are '[0,1]' in_namespace &&
		in_namespace rdma-isolate -j flow show dev rxe0 |
			jq -e '.[0].pid < 10 and (.[0] | has("cgroup") | not)' >/dev/null &&
		in_namespace rdma-isolate -j group show dev rxe0 |
			jq -e 'length == 1 and .[0].pid < 10' >/dev/null
}

# The flow of a program outside, by its number
one_by_one()
{
	local qpn

	qpn=$(rdma-isolate -j flow show dev rxe0 |
		jq ".[] | select(.pid == $outside).qpn") &&
	rdma-isolate flow show dev rxe0 qpn "$qpn" >/dev/null &&
	! in_namespace rdma-isolate flow show dev rxe0 qpn "$qpn" 2>/dev/null
}

events_need_a_right()
{
	local out

	out=$(as_nobody timeout 5 rdma-isolate monitor 2>&1)
	[ $? -ne 124 ] && [[ "$out" == *"not permitted"* || "$out" == *CAP_NET_ADMIN* ]] &&
		return
	ktap_print_msg "$out"
	return 1
}

# More requests than a user may make at once
requests_have_a_bound()
{
	local out

	out=$(for ((i = 0; i < 1000; i++)); do echo dev show; done |
		as_nobody rdma-isolate -b - 2>&1 >/dev/null)
	[ $? -eq 1 ] && [[ $out == *"without CAP_NET_ADMIN may make 100 requests a second"* ]] &&
		return
	ktap_print_msg "$out"
	return 1
}

both_are_there()
{
	[ "$(pgrep -xc ibv_rc_pingpong)" -eq 2 ] && [ "$(counts env)" = '[1,2]' ]
}
busywait 30 both_are_there || skip_all "no queue pairs"

ktap_print_header
ktap_set_plan 5
check "the host sees all" host_sees_all
check "a container sees its own" container_sees_its_own
check "a flow by its number" one_by_one
check "events need a right" events_need_a_right
if is_debug_kernel; then
	ktap_test_skip "requests have a bound: the kernel is too slow for so many"
else
	check "requests have a bound" requests_have_a_bound
fi
ktap_finished
