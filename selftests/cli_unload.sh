#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-isolate unload: names whoever keeps the module, and changes nothing then; else it
# disables all devices and unloads the module, also while an agent asks it all the time.
#
# One kernel is enough: it tests the tool.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/agent.inc"

dir=$(mktemp -d)
trap agent_cleanup EXIT

# A file of another name is the same device.
opened()
{
	local number major minor holder status

	number=$(cat /sys/class/misc/rdma_isolate/dev)
	IFS=: read -r major minor <<<"$number"
	mknod "$dir/node" c "$major" "$minor" || return
	sleep 1000 <>"$dir/node" &
	holder=$!
	busywait 10 readlink -q "/proc/$holder/fd/0" >/dev/null
	refused 1 "process $holder (sleep) has /dev/rdma_isolate open" unload &&
	refused 1 "nothing was changed" unload && budget '.agent_pid > 0' &&
	shows '.[0].state == "enforce"' dev show dev rxe1
	status=$?
	kill "$holder"
	wait "$holder" 2>/dev/null
	return $status
}

of_user()
{
	local err

	err=$(setpriv --reuid 65534 --clear-groups rdma-isolate unload 2>&1)
	[ $? -eq 1 ] && [[ $err == *"only root may unload the module"* ]]
}

goes()
{
	rdma-isolate unload && ! is_loaded rdma_isolate
}

agent_setup setpriv mknod
ktap_print_header
ktap_set_plan 6
start_agent rxe0
start_agent rxe1
start_latency
check "an agent steers" is_steered
check "a process has it open" opened
check "an ordinary user" of_user
stop_latency
check "it goes" goes
check "it is gone" refused 1 "module rdma_isolate is not loaded" unload
check "no word may follow" refused 2 "nothing may follow unload" unload now
[ "$KTAP_CNT_FAIL" -eq 0 ] || agent_report
ktap_finished
