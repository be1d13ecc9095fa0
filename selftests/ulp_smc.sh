#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# SMC-R, which asks for events and ignores the answer, whose CQs live as long as the
# device, and which destroys queue pairs without draining them. Events come late, so that
# the reaper is there before the ULP, time and again: no completion may be lost by that.
# SMC of 6.1 makes no link over rxe and uses TCP instead.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"
. "$(dirname "$0")/layer.inc"

BYTES=$((4 << 20))

# copy CONNECTIONS [REAPED]: there and back, with chunks posted and at least so many
# completions reaped
copy()
{
	local chunks reaped

	chunks=$(ulp_counter rxe0 chunk_posted)
	reaped=$(ulp_counter rxe0 cqe_reaped)
	./smc_copy 10.0.0.2 10.0.0.1 $BYTES "$1" || return
	chunks=$(($(ulp_counter rxe0 chunk_posted) - chunks))
	reaped=$(($(ulp_counter rxe0 cqe_reaped) - reaped))
	ktap_print_msg "$chunks chunks, $reaped completions reaped"
	[ $chunks -gt 100 ] && [ $reaped -ge "${2:-0}" ]
}

# What the device has lost, SMC only knows by the link that is down.
forget_links()
{
	rmmod smc_diag 2>/dev/null
	busywait 60 rmmod smc 2>/dev/null
}

# It has no tool to say so here, and TCP in its place would prove nothing.
is_governed()
{
	rdma-isolate flow show dev rxe0 | grep -q 'ulp smc'
}

copy_meanwhile()
{
	copy 1 1 & local pid=$!
	busywait 60 is_governed
	local status=$?
	wait $pid && return $status
}

require rdma-isolate
case $(uname -r) in 6.1.*) skip_all "SMC of 6.1 makes no link over rxe" ;; esac
ulp_setup
need_module smc
load_test_module riso_test_layer deep=1 late=1 purge=1
ktap_print_header
ktap_set_plan 6
ktap_test_result "both devices enabled" ulp_isolate
ktap_test_result "a copy over a governed queue pair, events late" copy_meanwhile
ktap_test_result "three more" copy 3 3
layer late 0
ktap_test_result "events in time" copy 1
ktap_test_result "the links are gone" forget_links
ktap_test_result "both disabled, and the module unloaded" ulp_release
ktap_finished
