#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The agent as its unit runs it: it comes with the module and with a device, may do what
# it has to and no more, takes a new file, and is there again after it was killed or hung.
# Without the module it fails at once.
#
# One kernel is enough: it tests the unit.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/systemd.inc"
. "$(dirname "$0")/agent.inc"

conf=/etc/rdma-isolated.conf
unit=rdma-isolated.service
PATH=$AGENT_DIR:$PATH
require unshare nsenter systemctl udevadm
! is_debug_kernel || skip_all "no systemd on the debug kernel"
! is_loaded rdma_isolate || skip_all "the module is loaded"
[ ! -e "$conf" ] || skip_all "there is a $conf"
dir=$(mktemp -d)
trap 'stop_systemd; rm -f "$conf"; agent_cleanup' EXIT

# Neither does anybody wait for the module, nor is the agent started again and again.
fails_without_module()
{
	local begin=$SECONDS said

	! timeout 60 nsenter -t "$systemd" -p -m systemctl start "$unit" 2>"$dir/said" &&
	[ $((SECONDS - begin)) -lt 60 ] && is_now failed "$unit" &&
	[ "$(ctl show -p ExecMainStatus "$unit")" = ExecMainStatus=3 ] &&
	said=$(rdma-isolated 2>&1)
	[ $? -eq 3 ] && [[ $said == *"module rdma_isolate is not loaded"* ]] && return
	ktap_print_msg "$said $(cat "$dir/said")"
	return 1
}

# A unit that is only there with the module would be told to be missing.
enables_quietly()
{
	local said

	said=$(nsenter -t "$systemd" -p -m systemctl --runtime enable "$unit" 2>&1) &&
	[[ $said != *"non-existent unit"* ]] && return
	ktap_print_msg "$said"
	return 1
}

# The one that lends now
agent_pid()
{
	rdma-isolate -j budget show dev rxe1 | jq '.[0].agent_pid'
}

# is_another PID: not the one that it was
is_another()
{
	budget ".agent_pid > 0 and .agent_pid != $1 and .ctrl_state != \"no-peer\""
}

# again_after SIGNAL: another steers, soon or when the watchdog has seen it
again_after()
{
	local pid

	pid=$(agent_pid)
	ctl kill --kill-who=main --signal="$1" "$unit" &&
	busywait 120 is_another "$pid" && is_now active "$unit" && return
	ktap_print_msg "$(ctl --no-pager status "$unit" | head -n 12)"
	return 1
}

# With a file that is wrong, and with one that is not; it is the same one then.
reloads()
{
	local pid

	pid=$(agent_pid)
	echo "nonsense = 1" >>"$conf"
	! ctl reload "$unit" || return
	sed -i '/nonsense/d; s/^peer/delta = 5s\n&/' "$conf"
	ctl reload "$unit" && is_steered && [ "$(agent_pid)" -eq "$pid" ]
}

# It has nothing left but what it needs.
is_least()
{
	local pid

	pid=$(pgrep -x rdma-isolated -P "$systemd") &&
	[ "$(sed -n 's/^CapBnd:\t//p' "/proc/$pid/status")" = 0000000000001000 ] &&
	[ "$(sed -n 's/^Seccomp:\t//p' "/proc/$pid/status")" = 2 ] &&
	! nsenter -t "$pid" -m touch /etc/riso-unit 2>/dev/null
}

device_comes()
{
	ctl stop "$unit" && is_now inactive "$unit" &&
	rdma link delete rxe1 && rdma link add rxe1 type rxe netdev veth1 &&
	unit_is active "$unit"
}

module_goes()
{
	rdma-isolate dev set dev rxe1 mode disable
	unload_module && unit_is inactive "$unit"
}

agent_conf rxe1 10.0.0.2 "peer = 10.0.0.1"
cp "$dir/rxe1.conf" "$conf"
start_systemd "$BOOT_DIR"/rdma-isolate{,@}.service "$AGENT_DIR/$unit" ||
	skip_all "no systemd"
ktap_print_header
ktap_set_plan 10
check "it is enabled" enables_quietly
check "without the module it fails at once" fails_without_module
agent_setup
check "it comes with the module" unit_is active "$unit"
start_agent rxe0
start_latency
check "it steers" is_steered
check "it may do little else" is_least
check "it takes a new file" reloads
check "killed" again_after KILL
check "hung" again_after STOP
stop_latency
stop_agent rxe0
check "it comes with a device" device_comes
check "it goes with the module" module_goes
[ "$KTAP_CNT_FAIL" -eq 0 ] || agent_report
ktap_finished
