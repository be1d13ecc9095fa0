#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What may happen to a device while a kernel ULP uses it: its mode and its
# chunk are changed, it is removed. The ULP must see nothing of the former,
# and what it posted must have ended when the latter is done.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"

# during COMMAND...: with traffic before, meanwhile and after
during()
{
	local pid status

	ulp_run traffic op=write len=300000 &
	pid=$!
	let_flow 2 && "$@" && let_flow 2
	status=$?
	ulp_stop
	wait $pid || { ulp_report; return 1; }
	return $status
}

switch_modes()
{
	local mode

	for mode in disable enable observe enable disable enable; do
		rdma-isolate dev set dev "${ULP_KIND}0" mode $mode && let_flow 1 || return
	done
}

change_settings()
{
	local chunk

	for chunk in 8k 64k 5000 4k; do
		rdma-isolate dev set dev "${ULP_KIND}0" chunk-bytes $chunk && let_flow 1 ||
			return
	done
	rdma-isolate dev set dev "${ULP_KIND}0" max-rate 100mbit safe-util 90mbit && let_flow 1 &&
	rdma-isolate dev set dev "${ULP_KIND}0" max-rate "$ULP_RATE" safe-util "$ULP_SAFE" &&
	let_flow 1
}

# Megabytes of one that is broken are nothing that others have to wait for: at this
# rate it would be half a minute. More than a chunk, which might go ahead of all turns.
flush_takes_no_time()
{
	local begin status

	rdma-isolate dev set dev "${ULP_KIND}0" safe-util 800kbit &&
	ulp_run err op=write after=1 count=12 len=300000 || {
		ulp_report
		return 1
	}
	begin=$SECONDS
	ulp_run size op=write count=1 len=20000
	status=$?
	[ $((SECONDS - begin)) -le 15 ] || status=1
	rdma-isolate dev set dev "${ULP_KIND}0" safe-util "$ULP_SAFE" &&
		return "$status"
}

refuses_unload()
{
	! rmmod rdma_isolate 2>/dev/null && is_loaded rdma_isolate
}

# The remove callback of the ULP ends its traffic, and waits for that.
remove_device()
{
	local pid

	ulp_run traffic op=write len=300000 &
	pid=$!
	let_flow 2
	rdma link delete rxe0
	wait $pid || { ulp_report; return 1; }
	[ ! -e /sys/class/infiniband/rxe0 ]
}

set_up_again()
{
	teardown_rxe
	setup_rxe
}

isolated_removal()
{
	ulp_isolate && remove_device || return
	rdma-isolate dev set dev rxe1 mode disable && unload_module
}

module_first()
{
	rmmod riso_test_ulp && load_module && ulp_load
}

# The end of a device of nullrdma is first that of its link, of which the ULP hears.
if [ "$ULP_KIND" = null ]; then
	REMOVALS=0
else
	REMOVALS=5
fi

ulp_setup
ktap_print_header
ktap_set_plan $((8 + REMOVALS))
ktap_test_result "alone: traffic" during true
if [ $REMOVALS -gt 0 ]; then
	ktap_test_result "alone: the device is removed" remove_device
	ktap_test_result "another one" set_up_again
fi
if [ -n "${RISO_ULP_ALONE:-}" ] || ! ulp_has_isolation; then
	ktap_print_msg "no isolated cases: not wanted, or not built"
	for _ in $(seq $((REMOVALS ? 10 : 7))); do
		ktap_test_skip "isolated"
	done
	ktap_finished
fi
ktap_test_result "both devices enabled" ulp_isolate
ktap_test_result "isolated: traffic" during true
ktap_test_result "isolated: modes are switched" during switch_modes
ktap_test_result "isolated: settings are changed" during change_settings
ktap_test_result "isolated: what is flushed takes no time" flush_takes_no_time
ktap_test_result "isolated: unloading is refused" during refuses_unload
ktap_test_result "both disabled, and the module unloaded" ulp_release
if [ $REMOVALS -gt 0 ]; then
	ktap_test_result "isolated: the device is removed" isolated_removal
	ktap_test_result "another one, with the module loaded before the ULP" \
		eval "set_up_again && module_first"
	ktap_test_result "isolated: the device is removed" isolated_removal
fi
ktap_finished
