#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-isolate with its module and two rxe devices that carry no traffic: what
# is set is shown, in text and JSON, and what the kernel refuses says why. A disk
# and a program have connected before the module is loaded: they are listed, too.
#
# One kernel is enough: the module answers alike on all.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

require rdma rdma-isolate jq ibv_rc_pingpong nvme rping python3
need_module rdma_rxe nvme-rdma nvmet-rdma
trap 'kill $(jobs -p) 2>/dev/null; teardown_all' EXIT

# text WORDS COMMAND...: is this a part of the text of a command
text()
{
	local want=$1 out
	shift

	out=$(rdma-isolate "$@") && [[ " $out " == *" $want "* ]] && return
	ktap_print_msg "$out"
	return 1
}

set_rxe0()
{
	rdma-isolate dev set dev rxe0 max-rate 400mbit safe-util 48.75MB/s \
		max-ops 100000 chunk-bytes 4k token-bytes auto token-ops auto \
		inflight-bytes auto
}

settings_in_text()
{
	text "max-rate 400mbit believed-rate 400mbit believed-from set calibrated yes max-ops 100000 safe-util 390mbit" \
		dev show dev rxe0 &&
	text "safe-util 390mbit chunk-bytes 4k token-bytes auto" dev show dev rxe0
}

# What the text says can be given back and changes nothing.
round_trip()
{
	local before after words

	before=$(rdma-isolate dev show dev rxe0)
	words=$(sed -E 's/ (index|state|believed-rate|believed-from|calibrated|latency-flows|managed-flows|held-wrs|ports|processes) [^ ]+//g' \
		<<<"$before")
	# shellcheck disable=SC2086 # words
	rdma-isolate dev set $words || return
	after=$(rdma-isolate dev show dev rxe0)
	[ "$before" = "$after" ]
}

nothing_was_set()
{
	refused 1 "safe-util may not be above" dev set dev rxe0 \
		max-rate 1tbit safe-util 2tbit chunk-bytes 64k &&
	shows '.[0] | .max_rate == 50000000 and .chunk_bytes == 4096' \
		dev show dev rxe0
}

observe_and_back()
{
	rdma-isolate dev set dev rxe0 mode observe &&
	shows '.[0].state == "observe"' dev show dev rxe0 &&
	rdma-isolate dev set dev rxe0 mode disable timeout 20s &&
	shows '.[0].state == "idle"' dev show dev rxe0
}

enable_and_back()
{
	rdma-isolate dev set dev rxe0 mode enable &&
	shows '.[0].state == "enable"' dev show dev rxe0 &&
	rdma-isolate dev set dev rxe0 mode disable timeout 20s &&
	shows '.[0].state == "idle"' dev show dev rxe0
}

doctor_of_enabled()
{
	local status

	rdma-isolate dev set dev rxe1 mode enable &&
	shows 'map(select(.found | contains("rxe1")) | .check) | sort |
		. - ["timer", "pace"] == ["latency", "max-rate"]' doctor
	status=$?
	rdma-isolate dev set dev rxe1 mode disable && return $status
}

no_unload()
{
	rdma-isolate dev set dev rxe0 mode enable && ! rmmod rdma_isolate
	local status=$?

	rdma-isolate dev set dev rxe0 mode disable && return $status
}

# A server that nobody comes to
user_flow()
{
	local pid status

	ibv_rc_pingpong -d rxe0 >/dev/null &
	pid=$!
	busywait 20 has_flow
	shows ".[0] | .reason == \"user-qp\" and .pid == $pid and
		.comm == \"ibv_rc_pingpong\" and .uid == 0 and
		.qp_type == \"RC\" and (.managed | not)" flow show dev rxe0
	status=$?
	kill "$pid"
	wait "$pid" 2>/dev/null
	return $status
}

has_flow()
{
	rdma-isolate -j flow show dev rxe0 |
		jq -e 'any(.reason == "user-qp")' >/dev/null
}

has_connection()
{
	shows 'map(select(.comm == "rping" and .qp_state == "RTS")) | length == 2' \
		flow show >/dev/null
}

core_has_listener()
{
	rdma -j resource show cm_id |
		jq -e 'any(.comm == "rping" and .state == "LISTEN")' >/dev/null
}

# rdma_cm leaves the timer at the longest delay.
slow_timer()
{
	local status

	shows 'any(.check == "rnr-timer" and .verdict == "ok")' doctor || return
	rping -s -a 10.0.0.2 >/dev/null 2>&1 &
	busywait 20 core_has_listener
	rping -c -I 10.0.0.1 -a 10.0.0.2 >/dev/null 2>&1 &
	busywait 20 has_connection
	shows 'map(select(.check == "rnr-timer")) | .[0].verdict == "hint" and
		(.[0].found | startswith("2 queue pairs"))' doctor &&
	shows 'map(select(.comm == "rping").rnr_timer) == [0, 0]' flow show
	status=$?
	pkill rping
	return $status
}

# --- from before load -------------------------------------------------------

core_has_program()
{
	rdma -j resource show qp |
		jq -e "any(.pid == $program)" >/dev/null
}

# A connection to a disk, and a server that nobody comes to
connect_before_load()
{
	setup_rxe && start_nvmet riso0 10.0.0.2 &&
	connect_nvme riso0 10.0.0.2 10.0.0.1 >/dev/null || return
	ibv_rc_pingpong -d rxe1 >/dev/null &
	program=$!
	busywait 20 core_has_program
}

same_as_core()
{
	local want

	want=$(rdma -j resource show qp |
		jq -c 'map([.ifname, .lqpn]) | sort') &&
	shows "(map([.dev, .qpn]) | sort) == $want" flow show
}

one_of_them()
{
	local qpn

	qpn=$(rdma-isolate -j flow show dev rxe1 |
		jq ".[] | select(.pid == $program).qpn") &&
	shows "length == 1 and .[0].pid == $program" \
		flow show dev rxe1 qpn "$qpn"
}

# The one socket that it may open is for the module.
without_core()
{
	(exec 3>&- && ulimit -n 4 && exec rdma-isolate "$@")
}

core_is_missed()
{
	local err out

	err=$(without_core flow show dev rxe0 2>&1 >/dev/null) && return 1
	out=$(without_core -j flow show dev rxe0 2>/dev/null)
	[[ $err == *"from before load are not listed"* ]] &&
	jq -e 'length == 2 and all(.reason == "disabled")' <<<"$out" >/dev/null &&
		return
	ktap_print_msg "$err $out"
	return 1
}

all_are_new()
{
	shows 'map(select(.ulp == "nvme_rdma" or .ulp == "nvmet_rdma")) |
		length == 4 and all(.reason == "disabled")' flow show
}

# The target frees a connection some time after its other end has gone.
reconnected()
{
	disconnect_nvme riso0 &&
	connect_nvme riso0 10.0.0.2 10.0.0.1 >/dev/null || return
	busywait 20 all_are_new >/dev/null || all_are_new
}

none_are_left()
{
	shows 'all(.reason == "special-qp")' flow show
}

leave()
{
	stop_all_nvmet
	kill "$program"
	wait "$program" 2>/dev/null
	busywait 20 none_are_left >/dev/null || none_are_left
}

add_rules()
{
	first=$(rdma-isolate -j rule add ulp nvmet_rdma class bandwidth \
		weight 300 | jq '.[0].id') &&
	second=$(rdma-isolate rule add dev rxe1 peer 10.0.0.2 comm 'a b' \
		uid 7 class latency) && second=${second#id } &&
	[ "$second" -gt "$first" ]
}

class_is()
{
	[ "$(rdma-isolate -j flow show |
		jq -r '.[] | select(.comm == "ibv_rc_pingpong").class')" = "$1" ]
}

# Flows are judged again when their device gets another name.
follows_the_name()
{
	local id pid status

	ibv_rc_pingpong -d rxe1 >/dev/null &
	pid=$!
	id=$(rdma-isolate -j rule add dev isl1 class latency | jq '.[0].id') &&
	busywait 20 class_is bandwidth && rdma dev set rxe1 name isl1 &&
	class_is latency
	status=$?
	rdma dev set isl1 name rxe1 && class_is bandwidth &&
	rdma-isolate rule delete id "$id" || status=1
	kill "$pid"
	wait "$pid" 2>/dev/null
	return $status
}

# cgroup_gives PATH CLASS: what a rule by it does to the program
cgroup_gives()
{
	local id status=0

	id=$(rdma-isolate -j rule add cgroup "$1" class latency | jq '.[0].id') &&
		shows "map(select(.id == $id).cgroup) == [\"$1\"]" rule show &&
		class_is "$2" || status=1
	rdma-isolate rule delete id "$id" && [ "$status" -eq 0 ] ||
		{ ktap_print_msg "cgroup $1"; return 1; }
}

# Where the program was when it created its queue pair, and all that is above; a name
# that begins alike is another.
goes_by_cgroup()
{
	local pid path status=0

	begin_cgroups /riso/one || return
	in_cgroup /riso/one ibv_rc_pingpong -d rxe1 >/dev/null &
	pid=$!
	busywait 20 class_is bandwidth && echo "$pid" >"$cgroups/cgroup.procs" &&
		shows 'map(select(.comm == "ibv_rc_pingpong").cgroup) == ["/riso/one"]' \
			flow show || status=1
	for path in / /riso /riso/one; do
		cgroup_gives "$path" latency || status=1
	done
	for path in /riso/on /riso/one/x /one /risotto; do
		cgroup_gives "$path" bandwidth || status=1
	done
	kill "$pid"
	wait "$pid" 2>/dev/null
	end_cgroups /riso/one && [ "$status" -eq 0 ]
}

delete_rules()
{
	rdma-isolate rule delete id "$first" &&
	shows "length == 1 and .[0].id == $second" rule show &&
	rdma-isolate rule delete id "$second" && shows '. == []' rule show
}

lend()
{
	rdma-isolate budget set dev rxe0 safe-util 200mbit chunk-bytes 8k lease 60s &&
	shows '.[0] | .dev == "rxe0" and .safe_util == 25000000 and
		.chunk_bytes == 8192 and .inflight_bytes == "auto" and
		.lease_ns > 50000000000 and .lease_ns <= 60000000000 and
		.tx_pace == 25000000 and .rx_pace == 25000000' \
		budget show dev rxe0
}

# What is lent is nobody's setting.
operators_stay()
{
	shows '.[0] | .safe_util == 48750000 and .chunk_bytes == 4096' \
		dev show dev rxe0 &&
	rdma-isolate dump | grep -q 'dev rxe0 .*safe-util 390mbit chunk-bytes 4k'
}

lend_nothing()
{
	refused 1 "safe-util may not be above max-rate" \
		budget set dev rxe0 chunk-bytes 2k safe-util 1gbit lease 1s &&
	refused 2 'lease "61min": must be' \
		budget set dev rxe0 chunk-bytes 2k lease 61min &&
	refused 2 "1ms to" budget set dev rxe0 chunk-bytes 2k lease 1us &&
	refused 1 "no RDMA device" budget set dev rxe9 chunk-bytes 2k lease 1s &&
	refused 2 "lease is missing" budget set dev rxe0 chunk-bytes 2k &&
	refused 2 "budget may not stand here" \
		-b <(echo budget set dev rxe0 chunk-bytes 2k lease 1s) &&
	shows '.[0] | .chunk_bytes == 8192 and .lease_ns > 1000000000' \
		budget show dev rxe0
}

take_back()
{
	rdma-isolate dev set dev rxe0 mode observe &&
	rdma-isolate dev set dev rxe0 mode disable &&
	shows '.[0].lease_ns > 0' budget show dev rxe0 &&
	rdma-isolate dev set dev rxe0 token-bytes auto &&
	shows '.[0] | .lease_ns == 0 and .safe_util == 48750000 and
		.chunk_bytes == 4096' budget show dev rxe0
}

# --- top ----------------------------------------------------------------------

# use FILTER WORD...: does it hold for the lines, as a list, that top -j prints
use()
{
	local filter=$1 out
	shift

	out=$(rdma-isolate -j top "$@") || return
	answers+=$(sed 's/^/top\t/' <<<"$out")$'\n'
	jq -se "$filter" >/dev/null <<<"$out" && return
	ktap_print_msg "$out"
	return 1
}

# Whatever there is, in the order of the shares, and nobody uses anything.
top_of_idle()
{
	use 'map(.dev) | sort == ["rxe0", "rxe0", "rxe1", "rxe1"]' \
		interval 200ms count 2 &&
	use 'length == 1 and (.[0] | .dev == "rxe0" and .state == "idle" and
		.max_rate == 50000000 and .safe_util == 48750000 and
		.current99_ns == 0 and .target99_ns == "auto" and
		.ctrl_state == "none" and .agent_pid == 0 and
		.interval_ns >= 300000000 and .interval_ns < 10000000000 and
		all(.group[]; .share == 0 and .rate == 0 and .wait == 0))' \
		dev rxe0 interval 300ms count 1
}

same_groups()
{
	local ids

	ids=$(rdma-isolate -j group show dev rxe1 | jq -c 'map(.id) | sort') &&
	use "(.[0].group | map(.id) | sort) == $ids" \
		dev rxe1 interval 100ms count 1
}

top_in_text()
{
	local out

	out=$(rdma-isolate top --batch dev rxe0 interval 100ms count 2) &&
	[ "$(grep -c "^rxe0 idle: SafeUtil 390mbit of MaxRate 400mbit, 97.50% " \
		<<<"$out")" -eq 2 ] &&
	[ "$(grep -c '^  Current99 - of Target99 auto; no agent; ' \
		<<<"$out")" -eq 2 ] &&
	[ "$(grep -c '^  GROUP  *SHARE  *RATE  *WAIT  *CLASS  *WHO$' \
		<<<"$out")" -eq 2 ] &&
	[[ $out != *$'\033'* ]] && return
	ktap_print_msg "$out"
	return 1
}

# on_terminal KEYS WORD...: what the tool draws; the keys are pressed when it has
on_terminal()
{
	python3 -c 'import os, pty, sys
keys, seen = sys.argv[1].encode(), b""
def read(fd):
    global keys, seen
    data = os.read(fd, 1024)
    seen += data
    if b" idle: " in seen and keys:
        os.write(fd, keys)
        keys = b""
    return data
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:], read)))' \
		"$1" rdma-isolate "${@:2}" </dev/null
}

# It draws, leaves on the key, and shows the cursor again.
top_on_terminal()
{
	local out

	out=$(on_terminal xq top dev rxe0 interval 60s) &&
	[[ $out == *$'\033[?25l\033[H'*"every 60s; q quits"*"rxe0 idle: "* ]] &&
	[[ $out == *$'\033[J\033[?25h' ]] && return
	ktap_print_msg "$(cat -v <<<"$out")"
	return 1
}

top_of_unknown()
{
	refused 1 "no RDMA device of this name" top dev rxe9 &&
	refused 1 "no RDMA device of this name" top --batch dev rxe9 count 1
}

connect_before_load || skip_all "no rxe devices, or no target on them"
load_module || skip_all "the module does not load"
ktap_print_header
ktap_set_plan 52
check "an older connection of the kernel" shows '
	map(select(.reason == "before-load")) | length == 2 and all(.ulp == "nvme_rdma" and .qp_type == "RC" and .qp_state == "RTS" and
	(.managed | not) and (has("pid") | not))' flow show dev rxe0
check "both ends of it" shows 'map(select(.ulp == "nvmet_rdma" and
	.reason == "before-load")) | length == 2' flow show
check "an older program" shows "any(.reason == \"before-load\" and
	.pid == $program and .comm == \"ibv_rc_pingpong\" and
	(has(\"ulp\") | not))" flow show dev rxe1
check "the doctor counts them" shows 'map(select(.check == "order")) |
	length == 1 and .[0].verdict == "hint" and
	(.[0].found | startswith("5 queue pairs"))' doctor
check "what to do about it" text \
	'managed no reason "created before load, reconnect" qp-type RC' \
	flow show dev rxe0
check "management queue pairs" shows 'map(select(.qp_type == "GSI")) |
	length == 2 and all(.reason == "special-qp" and .ulp == "ib_core")' \
	flow show
check "all that the core lists" same_as_core
check "one by its number" one_of_them
check "not older after reconnecting" reconnected
check "says when the core does not answer" core_is_missed
check "all have gone" leave
check "two devices, idle" shows \
	'map(select(.dev | test("^rxe[01]$")) | .state == "idle") == [true, true]' \
	dev show
check "one device" shows 'length == 1 and .[0].ports == 1' \
	dev show dev rxe1
check "the default verb" shows 'length > 1' dev
check "settings" set_rxe0
check "settings in JSON" shows '.[0] |
	.max_rate == 50000000 and .safe_util == 48750000 and .calibrated and
	.max_ops == 100000 and .chunk_bytes == 4096 and
	.token_bytes == "auto" and .inflight_bytes == "auto"' \
	dev show dev rxe0
check "settings in text" settings_in_text
check "text is read back" round_trip
check "pretty text" text "dev rxe0
    index" -p dev show dev rxe0
check "pretty JSON" shows '.[0].dev == "rxe0"' -p \
	dev show dev rxe0
check "all or nothing" nothing_was_set
check "a budget is lent" lend
check "the settings stay the operator's" operators_stay
check "a wrong budget changes nothing" lend_nothing
check "the operator takes it back" take_back
check "observe and disable" observe_and_back
check "enable and disable" enable_and_back
check "the doctor misses a rate and a latency flow" doctor_of_enabled
check "no unloading while enabled" no_unload
check "an unknown device" refused 1 \
	"dev rxe9: no RDMA device of this name" dev set dev rxe9 mode enable
check "a program's flow" user_flow
check "the doctor finds a slow timer" slow_timer
check "every flow has a reason" shows \
	'all(.managed == (.reason == "none"))' flow show
check "an unknown flow" refused 1 "qpn 16000000: " \
	flow show dev rxe0 qpn 16000000
check "flows of an unknown device" refused 1 "no RDMA device" \
	flow show dev rxe9
check "rules" add_rules
check "rules in order" shows \
	"map(.id) == [$first, $second]" rule show
check "a rule in JSON" shows '.[0] |
	.dev == "rxe1" and .peer == "::ffff:10.0.0.2" and .comm == "a b" and
	.uid == 7 and .class == "latency" and .weight == 100' \
	rule show id "$second"
check "a rule in text" text \
	"id $first ulp nvmet_rdma class bandwidth weight 300" \
	rule show id "$first"
check "rules are deleted" delete_rules
check "a rule goes by the present name" follows_the_name
check "a rule goes by control groups" goes_by_cgroup
check "an unknown rule" refused 1 "rule" rule delete id "$first"
check "counters" shows \
	'.[0] | .dev == "rxe0" and .chunk_posted == 0 and .chunk_bytes == 0' \
	statistic show dev rxe0
check "histograms" shows 'map(select(.dev == "rxe1").class) ==
	["latency", "throughput", "bandwidth"] and all(.below_1us == 0)' \
	statistic histogram
check "counters of an unknown device" refused 1 "dev rxe9: " \
	statistic show dev rxe9
check "top of idle devices" top_of_idle
check "top has the groups" same_groups
check "top in text" top_in_text
check "top on a terminal" top_on_terminal
check "top of an unknown device" top_of_unknown
check_schema
ktap_finished
