#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What adapters do and rxe does not: they are full for seconds, refuse a part of a chain,
# purge the completions of a queue pair that goes, drain by a work request of their own,
# tell of no completion that somebody else has polled. The ULP must lose nothing by it.
#
#	RISO_ENDS	how many queue pairs end with SENDs waiting (default 300)
#
# One kernel is enough.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"
. "$(dirname "$0")/layer.inc"

# The flow is healthy: it goes on when there is room, and nobody hammers meanwhile. Each
# refused post makes some adapters print a line.
is_full()
{
	local refused pid status=0

	ulp_run traffic op=write len=300000 &
	pid=$!
	let_flow 1
	refused=$(seen refused)
	layer refuse "$1"
	sleep "$2"
	layer refuse 0
	refused=$(($(seen refused) - refused))
	let_flow 1 || status=1
	ulp_stop
	wait $pid || { ulp_report; return 1; }
	ktap_print_msg "refused $refused times in $2 s"
	[ "$refused" -gt 3 ] && [ "$refused" -lt $((200 * $2)) ] && return $status
}

# One that is taken off its CPU between the decision to post and the post would keep
# everybody else from posting for the flow.
is_not_preempted()
{
	local posts preemptible

	posts=$(seen posts)
	preemptible=$(seen preemptible)
	ulp_run cpus count=200 || { ulp_report; return 1; }
	posts=$(($(seen posts) - posts))
	preemptible=$(($(seen preemptible) - preemptible))
	ktap_print_msg "$preemptible of $posts posts"
	[ "$posts" -gt 100 ] && [ "$preemptible" -eq 0 ]
}

adapter_case()
{
	ulp_run "$@" || { ulp_report; return 1; }
}

# Destroyed, put into error, disconnected, a third each. SENDs go nowhere, so that nothing
# is on the wire when a queue pair goes.
ends()
{
	local status

	layer sink 1
	rdma-isolate dev set dev rxe0 safe-util 4mbit &&
		adapter_case end count="${RISO_ENDS:-300}" depth=200 len=3000
	status=$?
	layer sink 0
	rdma-isolate dev set dev rxe0 safe-util "$ULP_SAFE" &&
		return $status
}

# A device that takes its time in creating holds up nobody else's removal.
is_creating()
{
	[ "$(seen creating)" -gt 0 ]
}

removes_another()
{
	local pid status removal

	layer hold_create Y
	ulp_run size count=1 &
	pid=$!
	busywait 60 is_creating && setup_rxe_pair 1 &&
		rdma-isolate dev show dev rxe2 >/dev/null && {
		rdma link delete rxe2 &
		removal=$!
		busywait 60 sh -c "! kill -0 $removal 2>/dev/null" && is_creating
	}
	status=$?
	layer hold_create N
	wait $pid || { ulp_report; return 1; }
	wait $removal && return $status
}

# What was taken is still out when the rest is refused.
on_slow_wire()
{
	local status

	set_rate 100kbit rxe0 && "$@"
	status=$?
	set_rate none rxe0 && return $status
}

# All of its pieces are out at once.
in_pieces()
{
	local status

	rdma-isolate dev set dev rxe0 inflight-bytes 1m safe-util "$ULP_RATE" &&
		adapter_case "$@"
	status=$?
	rdma-isolate dev set dev rxe0 inflight-bytes auto safe-util "$ULP_SAFE" && return $status
}

CASES=(
	"an event is asked for, the answer ignored|adapter_case arm"
	"an event is asked for, READs|adapter_case arm op=read"
	"completions go with a queue pair that is destroyed|adapter_case purge op=write"
	"completions go with a queue pair that is reset|adapter_case purge op=reset"
	"a part has failed, and is found while the queue pair is destroyed|in_pieces dying op=write len=100000"
	"the device is full for seconds|is_full 12 3"
	"the device tells to try again|is_full 11 2"
	"the device is full when it is drained|adapter_case fulldrain after=1"
	"a post is not preempted|is_not_preempted"
	"a reply goes with its data|adapter_case reply len=4096"
	"an unknown operation waits for its turn|adapter_case unknown"
	"pieces take no room from what is posted|on_slow_wire in_pieces surrender depth=30 len=40960"
	"a part of a chain is refused|on_slow_wire adapter_case partial len=100 after=3"
	"all behind a signal is refused|on_slow_wire adapter_case partial len=100 after=6"
	"handlers of its own|on_slow_wire adapter_case partial len=100 after=5 cq=work"
	"more than one batch|on_slow_wire adapter_case partial len=100 after=10"
	"a completion outlives its queue pair|adapter_case stale len=100"
	"what was accepted is given to the device before the end|ends"
	"removing a device waits for no other|removes_another"
)

ulp_has_isolation || skip_all "rdma_isolate is not built"
ulp_setup
load_test_module riso_test_layer drain=1 purge=1 slow_ms=7000 alias=1
ktap_print_header
ktap_set_plan $((${#CASES[@]} + 2))
ktap_test_result "both devices enabled" ulp_isolate
for c in "${CASES[@]}"; do
	# slow_ms is for the drain alone
	case $c in *fulldrain*) layer slow_ms 7000 ;; *) layer slow_ms 0 ;; esac
	ktap_test_result "${c%%|*}" eval "${c#*|}"
	layer refuse 0
done
ktap_test_result "both disabled, and the module unloaded" ulp_release
ktap_finished
