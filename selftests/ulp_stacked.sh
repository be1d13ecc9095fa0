#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Another module puts hooks of its own on top of ours, which lead to ours. Then ours have
# to stay, and work, until it has taken its own out: while modes are switched, when the
# module shall be unloaded, when the device is removed. Where its hooks do not lead to ours, ours
# must not be put in their place.
#
# One kernel is enough.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"
. "$(dirname "$0")/layer.inc"

# run_case governed|alone: messages, cut or not
run_case()
{
	local before after posts

	before=$(ulp_counter rxe0 chunk_posted)
	posts=$(seen posts)
	ulp_run size op=write || { ulp_report; return 1; }
	after=$(ulp_counter rxe0 chunk_posted)
	ktap_print_msg "$(($(seen posts) - posts)) posts above, $((after - before)) chunks below"
	[ "$(seen posts)" -gt "$posts" ] || return
	if [ "$1" = governed ]; then
		[ "$after" -gt "$before" ]
	else
		[ "$after" -eq "$before" ]
	fi
}

stack()
{
	load_test_module riso_test_layer stay=1 && run_case governed
}

switch()
{
	rdma-isolate dev set dev rxe0 mode disable && run_case alone &&
	rdma-isolate dev set dev rxe0 mode enable && run_case governed
}

has_gone()
{
	! is_loaded "$1"
}

# Its code is called as long as the other's is there.
unload_waits()
{
	local pid status=0

	ulp_run lat-off
	rdma-isolate dev set dev rxe0 mode disable &&
	rdma-isolate dev set dev rxe1 mode disable || return
	rmmod rdma_isolate &
	pid=$!
	sleep 3
	kill -0 $pid && ulp_run size op=write || { ulp_report; status=1; }
	rmmod riso_test_layer
	wait $pid && has_gone rdma_isolate && return $status
}

can_unload()
{
	rmmod rdma_isolate 2>/dev/null
}

removal()
{
	local pid

	ulp_isolate && load_test_module riso_test_layer stay=1 || return
	ulp_run traffic op=write len=300000 &
	pid=$!
	let_flow 1
	rdma link delete rxe0
	wait $pid || { ulp_report; return 1; }
	[ ! -e /sys/class/infiniband/rxe0 ] &&
	rdma-isolate dev set dev rxe1 mode disable || return
	# the device is gone, its operations may yet be called
	! can_unload && is_loaded rdma_isolate || return
	rmmod riso_test_layer && busywait 20 can_unload
}

# When another's hooks go, what they found comes back: ours would be lost in the middle.
refused_below()
{
	local said status

	load_module && load_test_module riso_test_layer || return
	said=$(rdma-isolate dev set dev rxe0 mode enable 2>&1)
	status=$?
	rmmod riso_test_layer || return
	ktap_print_msg "$said"
	[ $status -ne 0 ] && [[ $said == *"another module has put hooks of its own"* ]] &&
		rdma-isolate dev set dev rxe0 mode enable &&
		rdma-isolate dev set dev rxe0 mode disable && unload_module
}

ulp_has_isolation || skip_all "rdma_isolate is not built"
ulp_setup
ktap_print_header
ktap_set_plan 7
ktap_test_result "both devices enabled" ulp_isolate
ktap_test_result "hooks on top" stack
ktap_test_result "disabled and enabled below" switch
ktap_test_result "unloading waits for them to go" unload_waits
ktap_test_result "nothing is left" ulp_run size
ktap_test_result "not enabled below hooks that do not lead to ours" refused_below
ktap_test_result "a device is removed, they stay" removal
ktap_finished
