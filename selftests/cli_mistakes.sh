#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What is easily done wrong is told: a rule that is there already, a device that is not,
# chunks that are off, a tool that is asked as an ordinary user or in another network
# namespace.
#
# One kernel is enough: it tests the tool.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

require rdma rdma-isolate rperf jq setpriv unshare
need_module rdma_rxe
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; umount /etc/rdma-isolate.d 2>/dev/null; rm -rf "$dir"' EXIT

as_user()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# says TEXT STATUS COMMAND...: on the standard error
says()
{
	local text=$1 want=$2 err status
	shift 2

	err=$("$@" 2>&1 >/dev/null)
	status=$?
	[ "$status" -eq "$want" ] && [[ $err == *"$text"* ]] && return
	ktap_print_msg "status $status: $err"
	return 1
}

silent()
{
	local err

	err=$("$@" 2>&1 >/dev/null) && [ -z "$err" ] && return
	ktap_print_msg "$err"
	return 1
}

rules()
{
	rdma-isolate -j rule show | jq length
}

# The same words, the same in other words, and nothing that differs.
same_rule()
{
	local id

	id=$(rdma-isolate -j rule add ulp nvmet_rdma peer 10.0.0.2 class bandwidth |
		jq '.[0].id') &&
	refused 1 "there is a rule that says the same" rule add ulp nvmet_rdma \
		peer 10.0.0.2 class bandwidth &&
	refused 1 "it has id $id" rule add class bandwidth weight 100 \
		peer ::ffff:10.0.0.2 choose off cut-imm off ulp nvmet_rdma &&
	[ "$(rules)" -eq 1 ]
}

other_rules()
{
	silent rdma-isolate rule add ulp nvmet_rdma peer 10.0.0.2 class latency &&
	silent rdma-isolate rule add ulp nvmet_rdma peer 10.0.0.2 class bandwidth \
		weight 200 &&
	silent rdma-isolate rule add ulp nvmet_rdma peer 10.0.0.2 class bandwidth \
		choose on &&
	silent rdma-isolate rule add ulp nvmet_rdma class bandwidth &&
	silent rdma-isolate rule add uid 12345 class bandwidth &&
	silent rdma-isolate rule add uid 12345 class bandwidth cut-imm on &&
	shows 'map(.cut_imm // "off") == ["off", "off", "off", "off", "off", "off", "on"]' \
		rule show &&
	[ "$(rules)" -eq 7 ]
}

# What would have no effect
nothing_to_cut()
{
	refused 1 "cut-imm is for programs" rule add ulp nvmet_rdma class bandwidth \
		cut-imm on &&
	refused 1 "flows of class latency are never cut" rule add uid 12346 class latency \
		cut-imm on &&
	refused 2 'cut-imm "maybe"' rule add uid 12346 class bandwidth cut-imm maybe &&
	[ "$(rules)" -eq 7 ]
}

# sync may have to put the same rule at another place.
rules_change_places()
{
	rdma-isolate dump | grep ^rule >"$dir/rules" &&
	tac "$dir/rules" >"$dir/turned" && rdma-isolate sync "$dir/turned" &&
	rdma-isolate dump | grep ^rule | diff - "$dir/turned" &&
	rdma-isolate sync "$dir/rules" &&
	rdma-isolate dump | grep ^rule | diff - "$dir/rules"
}

twice_in_a_file()
{
	sed p "$dir/rules" >"$dir/twice"
	refused 1 "$dir/twice:2: there is a rule that says the same" sync "$dir/twice" &&
	rdma-isolate dump | grep ^rule | diff - "$dir/rules"
}

no_such_device()
{
	says "warning: there is no device nosuch now" 0 \
		rdma-isolate rule add dev nosuch comm a class latency &&
	silent rdma-isolate rule add dev rxe0 comm a class latency
}

no_chunks()
{
	says "warning: with chunk-bytes off" 0 rdma-isolate dev set dev rxe0 chunk-bytes off &&
	says "warning: with chunk-bytes off" 0 rdma-isolate dev set dev rxe0 chunk-bytes 0 \
		mode enable &&
	shows 'any(.check == "chunk-bytes" and .verdict == "hint" and
		(.found | contains("rxe0")))' doctor &&
	says "warning: with chunk-bytes off" 0 \
		rdma-isolate budget set dev rxe0 chunk-bytes off lease 1ms &&
	silent rdma-isolate dev set dev rxe0 chunk-bytes 8k &&
	shows 'any(.check == "chunk-bytes") | not' doctor &&
	silent rdma-isolate dev set dev rxe0 mode disable
}

# What a user may not see is not called missing.
doctor_of_user()
{
	answer=$(as_user rdma-isolate -j doctor) &&
	jq -e 'any(.check == "tracing" and .verdict == "ok") and
		all(.verdict != "bad")' <<<"$answer" >/dev/null && return
	ktap_print_msg "${answer//$'\n'/ }"
	return 1
}

apply_of_user()
{
	mkdir -p /etc/rdma-isolate.d &&
	mount -t tmpfs -o mode=755 riso-mistakes /etc/rdma-isolate.d &&
	echo "rule add comm b class latency" >/etc/rdma-isolate.d/a.conf &&
	says "only root may apply settings" 1 as_user rdma-isolate apply &&
	[ "$(as_user rdma-isolate apply --check)" = OK ]
}

# The module is loaded, and does not answer there: all say the same.
in_namespace()
{
	local text="is loaded, but does not answer in this network namespace"

	says "$text" 1 unshare -n rdma-isolate dev show &&
	says "$text" 1 unshare -n rdma-isolate doctor &&
	unshare -n rdma-isolate -j doctor 2>/dev/null | jq -e '
		any(.check == "module" and .verdict == "ok") and
		any(.check == "namespace" and .verdict == "bad")' >/dev/null &&
	shows 'all(.check != "namespace")' doctor
}

# A device that has paced something: what the doctor says of it is what is shown of it.
slow_host()
{
	local latency late slow seconds=5

	! is_debug_kernel || seconds=40
	ln -s "$(command -v rperf)" "$dir/rload"
	rdma-isolate rule add dev rxe1 comm rperf class latency >/dev/null &&
	rdma-isolate dev set dev rxe1 max-rate 400mbit chunk-bytes 4k mode enable || return
	rperf --dev rxe0 --peer rxe1 --port 18700 --samples 0 --seconds 1000 \
		--interval 10000 >/dev/null 2>&1 &
	latency=$!
	busywait 60 has_latency_flow rxe1 || return
	timeout "$seconds" rdma-isolate run -- "$dir/rload" --dev rxe1 --peer rxe0 --load write \
		>/dev/null 2>&1
	busywait 60 no_bulk
	late=$(rdma-isolate -j statistic show dev rxe1 | jq '.[0].late_ns')
	slow=$(rdma-isolate -j budget show dev rxe1 |
		jq '.[0] | ([.tx_pace, .rx_pace] | min) < (.safe_util / 2 | floor)')
	kill "$latency"
	ktap_print_msg "late $late ns, slow $slow"
	[ "$late" -gt 0 ] &&
	shows "any(.check == \"timer\") == ($late > 100000) and
		any(.check == \"pace\") == $slow" doctor
}

no_bulk()
{
	rdma-isolate -j dev show dev rxe1 | jq -e '.[0].processes == 0' >/dev/null
}

load_module && setup_rxe 400mbit || skip_all "no module or no rxe devices"
ktap_print_header
ktap_set_plan 11
check "a rule that is there" same_rule
check "rules that differ" other_rules
check "cut-imm without effect" nothing_to_cut
check "rules change their places" rules_change_places
check "a rule twice in a file" twice_in_a_file
check "a device that is not there" no_such_device
check "chunks that are off" no_chunks
check "an ordinary user asks the doctor" doctor_of_user
check "an ordinary user applies" apply_of_user
check "another network namespace" in_namespace
check "a host that is slow" slow_host
ktap_finished
