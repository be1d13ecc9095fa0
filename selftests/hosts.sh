#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The testbed of several hosts (hosts.inc): who reaches whom, by which way, and in which order a
# port of the switch sends. The module is not part of it.
#
# One kernel is enough: it tests what the tests are made of.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/hosts.inc"

require rdma rperf tc
need_module rdma_rxe
trap teardown_hosts EXIT

# reaches FROM TO
reaches()
{
	rperf --dev "rxe$1" --peer "rxe$2" --samples 5 --warmup 1 >/dev/null
}

# all_reach NUMBER: the neighbour, and the first reaches the last
all_reach()
{
	local host

	for ((host = 1; host < $1; host++)); do
		reaches "$host" "$((host + 1))" || return
	done
	reaches 1 "$1"
}

ten_hosts()
{
	setup_hosts 10 2 && all_reach 10 && crosses riso-up 1 2
}

# sent NETDEV: bytes
sent()
{
	cat "/sys/class/net/$1/statistics/tx_bytes"
}

# crosses NETDEV FROM TO: 64 KB do
crosses()
{
	local before

	before=$(sent "$1") &&
	rperf --dev "rxe$2" --peer "rxe$3" --samples 16 --size 4096 >/dev/null &&
	[ $(($(sent "$1") - before)) -gt 65536 ]
}

# stays_off NETDEV FROM TO
stays_off()
{
	! crosses "$@"
}

# passed CLASS: packets that a port of the switch has sent of that class
passed()
{
	tc -s class show dev s1 | grep -A 1 "^class [a-z]* $1 " | grep -q '[1-9][0-9]* pkt'
}

# sends ORDER: with a port of 40 Mbit/s two hosts reach the first
sends()
{
	set_output s1 40mbit "$1" && reaches 2 1 && reaches 3 1
}

# A class for each host
sends_in_turns()
{
	sends turns && passed 2:2 && passed 2:3
}

# Nobody asks for DSCP 46, so all goes by the other lane.
sends_by_lanes()
{
	sends lanes && passed 2:2 && ! passed 2:1
}

setup_hosts 3 || skip_all "no rxe devices"
ktap_print_header
ktap_set_plan 8
ktap_test_result "three hosts reach each other" all_reach 3
ktap_test_result "by the switch" crosses s2 1 2
ktap_test_result "and not by the port of another host" stays_off s3 1 2
ktap_test_result "a port sends as it came" sends fifo
ktap_test_result "a port sends in turns" sends_in_turns
ktap_test_result "a port with lanes" sends_by_lanes
teardown_hosts
ktap_test_result "ten hosts and two hops" ten_hosts
ktap_test_result "what one switch has stays there" stays_off riso-up 1 3
ktap_finished
