#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-isolate group, explain and top: who waited, what for and behind whom. Three
# initiators read from one target: bulk, one that waits for it, and one that does
# next to nothing and is innocent.
#
# One kernel is enough: it tests the tool, and what the module counts is the same.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

BULK=10.0.0.1
WAITS=10.0.0.3
INNOCENT=10.0.0.4

require rdma nvme fio jq rdma-isolate
need_module rdma_rxe nvme-rdma nvmet-rdma
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT

# group ADDRESS FIELD: of the group of flows to an initiator
group()
{
	rdma-isolate -j group show dev rxe1 |
		jq -r ".[] | select(.ulp == \"nvmet_rdma\" and
			.peer == \"::ffff:$1\") | .$2"
}

# reads NAME HOST-ADDRESS [FIO-OPTION]...: a job beside
reads()
{
	local disk name=$1 host=$2
	shift 2

	disk=$(connect_nvme "$name" 10.0.0.2 "$host") || return
	fio --name="$host" --filename="$disk" --rw=randread --direct=1 \
		--ioengine=libaio --time_based --runtime=1d --thread "$@" \
		>"$dir/$host" 2>&1 &
}

has_posted()
{
	[ "$(group "$1" tx_bytes)" -gt "$2" ]
}

# explains ADDRESS FILTER: does it hold for what is said of its group
explains()
{
	shows ".[0] | $2" explain group dev rxe1 id "$(group "$1" id)"
}

names_the_cause()
{
	explains "$WAITS" ".behind[0] |
		.group == $(group "$BULK" id) and .share >= 90 and
		.who == \"nvmet_rdma to ::ffff:$BULK\"" &&
	explains "$WAITS" "[.behind[] | select(.group == $(group "$INNOCENT" id)) |
		.share] | add // 0 < 5"
}

# Nobody waits longer than all in all, or for more than the others have used.
sums_agree()
{
	shows '(map(.used_ns) | add) as $all | all(.[]; .behind_others_ns +
		([.behind[].used_ns] | add // 0) <= ($all - .used_ns) * 1.01)' \
		group show dev rxe1 &&
	shows 'all(.[]; .id as $id | all(.behind[]; .group != $id))' \
		group show dev rxe1 &&
	shows 'all(.[]; .clock_ns + .window_ns <=
		(.stall_ns - .own_ns) * 1.01 + 1000000)' group show dev rxe1 &&
	shows 'any(.[]; .clock_ns > 1000000000)' group show dev rxe1
}

pressure_is_seen()
{
	local bulk innocent

	bulk=$(group "$BULK" 'avg10 | floor') &&
	innocent=$(group "$INNOCENT" 'avg10 | floor') &&
	ktap_print_msg "avg10 $bulk % and $innocent %" &&
	[ "$bulk" -ge 20 ] && [ "$innocent" -lt $((bulk / 4)) ]
}

# A byte takes 20 ns on this link, and headers a little.
bytes_are_counted()
{
	[ "$(group "$BULK" "tx_bytes >= $bulk")" = true ] &&
	[ "$(group "$BULK" 'used_ns / .tx_bytes | . >= 20 and . < 23')" = true ] &&
	shows 'map(.flows) | add >= 3' group show dev rxe1
}

# Who stands behind the bulk waits, and the classes are those that rules gave. The
# link is no faster than it is, except for what is posted ahead.
top_tells_them_apart()
{
	local out bulk waits

	bulk=$(group "$BULK" id) && waits=$(group "$WAITS" id) &&
	out=$(rdma-isolate -j top dev rxe1 interval 5s count 1) || return
	answers+=$(printf 'top\t%s' "$out")$'\n'
	jq -e "(.group | map(.share)) as \$shares |
		(.group | map({key: (.id | tostring), value: .}) | from_entries) as \$of |
		\$of[\"$bulk\"] as \$bulk | \$of[\"$waits\"] as \$waits |
		.state == \"enable\" and .latency_groups >= 1 and
		\$shares == (\$shares | sort | reverse) and
		(\$shares | add | . > 99 and . <= 100) and
		\$bulk.class == \"bandwidth\" and \$waits.class == \"bandwidth\" and
		\$bulk.who == \"nvmet_rdma to ::ffff:$BULK\" and
		\$bulk.rate > 0 and \$waits.rate > 0 and \$waits.wait > 0 and
		(.group | map(.rate) | add) <= 1.5 * .max_rate and
		any(.group[]; .class == \"latency\")" <<<"$out" >/dev/null && return
	ktap_print_msg "$out"
	return 1
}

explains_a_flow()
{
	local qpn

	qpn=$(rdma-isolate -j flow show dev rxe1 | jq "[.[] |
		select(.group == $(group "$WAITS" id))] | max_by(.tx_bytes).qpn")
	shows ".[0] | .qpn == $qpn and .managed and .class == \"bandwidth\" and
		.rule[0].weight == 150 and .weight == 150 and
		.rule[0].peer == \"::ffff:$WAITS\"" \
		explain flow dev rxe1 qpn "$qpn" &&
	rdma-isolate explain flow dev rxe1 qpn "$qpn" |
		grep -q "^    behind group [0-9]* who \"nvmet_rdma to ::ffff:$BULK\""
}

explains_an_untouched_flow()
{
	local qpn

	qpn=$(rdma-isolate -j flow show dev rxe1 |
		jq '[.[] | select(.class == "latency")][0].qpn')
	shows '.[0] | .managed == false and .reason == "latency-class"' \
		explain flow dev rxe1 qpn "$qpn"
}

none_is_left()
{
	[ -z "$(group "$WAITS" id)" ]
}

goes_with_its_flows()
{
	# shellcheck disable=SC2046 # numbers
	kill $(jobs -p)
	wait
	disconnect_nvme riso1
	busywait 10 none_is_left
}

# It has a line for each thing, and what comes after it has not.
explains_in_a_batch()
{
	printf '%s\n' "explain group dev rxe1 id $(group "$WAITS" id)" "rule show" |
		rdma-isolate -b - >"$dir/batch" &&
	rdma-isolate rule show >"$dir/rules" &&
	tail -n 2 "$dir/batch" | diff - "$dir/rules"
}

refuses()
{
	refused 1 "no group has this id on the device" \
		explain group dev rxe1 id 4000000000 &&
	[ "$(rdma-isolate -j explain group dev rxe1 id 4000000000 2>/dev/null)" = \
		'[]' ] &&
	refused 1 "the device has no queue pair of this number" \
		explain flow dev rxe1 qpn 16777215 &&
	refused 2 "dev is missing" explain group id 1 &&
	refused 2 "id needs dev" group show id 1 &&
	refused 2 'id "0": must be' group show dev rxe1 id 0
}

ktap_print_header
ktap_set_plan 12
load_module && load_test_module riso_test_ulp && setup_rxe 400mbit &&
	add_address rxe0 "$WAITS" rxe1 10.0.0.2 &&
	add_address rxe0 "$INNOCENT" rxe1 10.0.0.2 &&
	start_nvmet riso0 10.0.0.2 16 && start_nvmet riso1 10.0.0.2 16 &&
	start_nvmet riso2 10.0.0.2 16 || skip_all "no target"
rdma-isolate rule add ulp riso_test_lat class latency >/dev/null
rdma-isolate rule add dev rxe1 peer "$WAITS" class bandwidth weight 150 >/dev/null
rdma-isolate dev set dev rxe1 mode enable max-rate 400mbit safe-util 390mbit
echo lat-on >/sys/kernel/debug/riso_test_ulp/run
# A command that takes 30 s is one too many for the initiator.
bulk=$((32 << 20))
! is_debug_kernel || bulk=$((4 << 20))
reads riso0 "$BULK" --bs=$((bulk / 32)) --iodepth=8
reads riso1 "$WAITS" --bs=64k
reads riso2 "$INNOCENT" --bs=4k --rate_iops=2
busywait 120 has_posted "$BULK" $bulk
busywait 120 has_posted "$WAITS" 1000000 &&
	busywait 120 has_posted "$INNOCENT" 16384 ||
	ktap_print_msg "$(tail -n 3 "$dir/$WAITS")"
# for the averages
sleep 10
check "the one who is waited for is named, the innocent is not" names_the_cause
check "times by reason and by group are possible" sums_agree
check "pressure of those who wait, and only theirs" pressure_is_seen
check "traffic is counted" bytes_are_counted
check "top: shares, rates and waits" top_tells_them_apart
check "a flow: its class, rule and waits" explains_a_flow
check "a flow that is not touched: why not" explains_an_untouched_flow
check "in a batch" explains_in_a_batch
check "what is not there is refused" refuses
check "a group goes with its flows" goes_with_its_flows
echo lat-off >/sys/kernel/debug/riso_test_ulp/run
rdma-isolate dev set dev rxe1 mode disable
check "the module can go" unload_module
check_schema
ktap_finished
