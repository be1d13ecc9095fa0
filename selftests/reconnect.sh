#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Storage that reconnects waits for nobody: neither for a grace period of RCU, nor for
# memory that waits for storage.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

ROUNDS=1000
PARAMETERS=/sys/module/riso_test_reconnect/parameters

require rdma rdma-isolate bpftrace
need_module rdma_rxe
scratch=$(mktemp -d)
trap 'rmmod riso_test_reconnect 2>/dev/null; teardown_all; rm -r "$scratch"' EXIT
load_module && setup_rxe || skip_all "no module or no rxe devices"
rdma-isolate rule add ulp riso_test_reconnect class bandwidth >/dev/null

# The locks of those that measure with KASAN and lockdep sleep by themselves.
most=$((ROUNDS / 20))

reconnects()
{
	local sleeps longest status=0

	insmod "$(dirname "$0")/test_modules/riso_test_reconnect.ko" dev=rxe0 \
		rounds=$ROUNDS || return
	sleeps=$(cat $PARAMETERS/sleeps) longest=$(cat $PARAMETERS/longest_us)
	rmmod riso_test_reconnect
	ktap_print_msg "$ROUNDS queue pairs: slept $sleeps times, the longest took $longest us"
	[ "$sleeps" -le "$most" ] || status=1
	return $status
}

# 0x80000 is PF_MEMALLOC_NOIO: what is allocated then waits for no I/O.
ALLOCATIONS='
kprobe:riso_queue_alloc, kprobe:riso_comp_alloc {
	@[(curtask->flags & 0x80000) ? "noio" : "io"] = count();
}
BEGIN { printf("begins\n"); }'

tracing_has_begun()
{
	grep -q begins "$scratch/allocations"
}

# As a rule is added to a device that is enabled, and for new queue pairs
waits_for_no_io()
{
	local tracer

	bpftrace -e "$ALLOCATIONS" >"$scratch/allocations" &
	tracer=$!
	busywait 60 tracing_has_begun &&
		insmod "$(dirname "$0")/test_modules/riso_test_reconnect.ko" dev=rxe0 \
			rounds=10 && rmmod riso_test_reconnect
	kill -INT "$tracer"
	wait "$tracer"
	grep -q '@\[noio\]' "$scratch/allocations" &&
		! grep -q '@\[io\]' "$scratch/allocations" && return
	ktap_print_msg "$(tr '\n' ' ' <"$scratch/allocations")"
	return 1
}

ktap_print_header
ktap_set_plan 3
check "while the device is idle" reconnects
rdma-isolate dev set dev rxe0 mode enable >/dev/null
check "while it is enabled" reconnects
check "memory that waits for no I/O" waits_for_no_io
ktap_finished
