#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Storage that reconnects waits for nobody: neither for a grace period of RCU, nor for
# memory that waits for storage.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

ROUNDS=1000
PARAMETERS=/sys/module/riso_test_reconnect/parameters

require rdma rdma-isolate
need_module rdma_rxe
trap 'rmmod riso_test_reconnect 2>/dev/null; teardown_all' EXIT
load_module && setup_rxe || skip_all "no module or no rxe devices"
rdma-isolate rule add ulp riso_test_reconnect class bandwidth >/dev/null

# The locks of those that measure with KASAN and lockdep sleep by themselves.
most=$((ROUNDS / 20))

reconnects()
{
	local sleeps longest

	insmod "$(dirname "$0")/test_modules/riso_test_reconnect.ko" dev=rxe0 \
		rounds=$ROUNDS || return
	sleeps=$(cat $PARAMETERS/sleeps) longest=$(cat $PARAMETERS/longest_us)
	may_wait=$(cat $PARAMETERS/may_wait_for_io)
	no_wait=$(cat $PARAMETERS/waits_for_no_io)
	rmmod riso_test_reconnect
	ktap_print_msg "$ROUNDS queue pairs: slept $sleeps times, the longest took $longest us"
	[ "$sleeps" -le "$most" ]
}

# Queues and tags are allocated where storage waits. Counted while it was enabled.
waits_for_no_io()
{
	ktap_print_msg "of $((may_wait + no_wait)) allocations $may_wait may wait for I/O"
	[ "$no_wait" -ge $((2 * ROUNDS)) ] && [ "$may_wait" -eq 0 ]
}

ktap_print_header
ktap_set_plan 3
check "while the device is idle" reconnects
rdma-isolate dev set dev rxe0 mode enable >/dev/null
check "while it is enabled" reconnects
check "memory that waits for no I/O" waits_for_no_io
ktap_finished
