#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Settings and rules as a whole: rdma-isolate dump, sync and -b. What is dumped is
# read back, sync changes what differs and nothing else, and a file with anything
# wrong in it changes nothing and names the line.
#
# One kernel is enough: it tests the tool.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

require rdma rdma-isolate jq
need_module rdma_rxe
dir=$(mktemp -d)
cgroup="/a b/$(printf '%0200d' 0)"
trap 'teardown_all; rm -rf "$dir"' EXIT

# file NAME: from standard input
file()
{
	cat >"$dir/$1"
}

rule_ids()
{
	rdma-isolate -j rule show | jq -c 'map(.id)'
}

dump_is()
{
	rdma-isolate dump >"$dir/is" && diff "$dir/$1" "$dir/is" >"$dir/diff" &&
		return
	while read -r line; do
		ktap_print_msg "$line"
	done <"$dir/diff"
	return 1
}

# Nobody knows what it will be when the dump is read.
guess_is_auto()
{
	rdma-isolate dump | grep '^dev set dev rxe0 ' >"$dir/line" &&
	grep -q ' max-rate auto .*safe-util auto ' "$dir/line"
}

set_up()
{
	rdma-isolate dev set dev rxe0 max-rate 400mbit safe-util 385mbit \
		chunk-bytes 8k mode observe &&
	rdma-isolate rule add ulp one class bandwidth weight 300 &&
	rdma-isolate rule add comm 'two "2" #' class latency &&
	rdma-isolate rule add dev rxe1 peer 10.0.0.2 uid 0 ulp three \
		cgroup "$cgroup" class throughput choose on
}

# All of it is gone after a reload, and comes back.
read_back()
{
	rdma-isolate dump >"$dir/full" &&
	rdma-isolate dev set dev rxe0 mode disable && unload_module &&
	load_module && rdma-isolate sync "$dir/full" && dump_is full &&
	shows ".[2].cgroup == \"$cgroup\"" rule show
}

# Rules that stay keep their ids, and with them what flows say of them.
nothing_differs()
{
	local before

	before=$(rule_ids)
	rdma-isolate sync "$dir/full" && [ "$(rule_ids)" = "$before" ] &&
	sed '/ulp one/s/$/ choose off/' "$dir/full" | file off &&
	rdma-isolate sync "$dir/off" && [ "$(rule_ids)" = "$before" ] &&
	shows 'map(.choose) == [null, null, "on"]' rule show
}

only_settings_that_are_named()
{
	echo 'dev set dev rxe0 chunk-bytes 4k' | file chunk &&
	grep '^rule' "$dir/full" >>"$dir/chunk" &&
	rdma-isolate sync "$dir/chunk" &&
	shows '.[0] | .chunk_bytes == 4096 and .safe_util == 48125000 and
		.state == "observe"' dev show dev rxe0
}

# The kernel lets it follow max-rate while the two are equal.
safe_util_that_was_max_rate()
{
	rdma-isolate dev set dev rxe1 max-rate 100mbit safe-util 100mbit &&
	{
		echo 'dev set dev rxe1 max-rate 120mbit safe-util 100mbit'
		grep '^rule' "$dir/full"
	} | file rate
	rdma-isolate sync "$dir/rate" &&
	shows '.[0] | .max_rate == 15000000 and .safe_util == 12500000' \
		dev show dev rxe1 || return 1
	how=(-b)
	status_wanted=1
	wrong "wrong:2: safe-util may not be above max-rate" \
		"dev set dev rxe1 max-rate 100mbit" \
		"dev set dev rxe1 safe-util 1tbit"
}

# is_guess DEV: what the other device has, whose port is alike
is_guess()
{
	shows ".[0] | (.calibrated | not) and .max_rate == $guess and .safe_util == $guess and
		.believed_from == \"port\"" dev show dev "$1"
}

# A number stays until a file says auto, also the number of the guess.
guess_comes_back()
{
	rdma-isolate dev set dev rxe1 max-rate "${guess}B/s" safe-util "${guess}B/s" &&
	{
		echo 'dev set dev rxe1 chunk-bytes 8k'
		grep '^rule' "$dir/full"
	} | file unnamed
	rdma-isolate sync "$dir/unnamed" && shows '.[0].calibrated' dev show dev rxe1 &&
	sed 's/chunk-bytes/max-rate auto &/' "$dir/unnamed" | file auto &&
	rdma-isolate sync "$dir/auto" && is_guess rxe1 &&
	rdma-isolate sync "$dir/auto" && is_guess rxe1 || return
	rdma-isolate dump >"$dir/guess" &&
	rdma-isolate dev set dev rxe1 max-rate 400mbit safe-util 384mbit &&
	rdma-isolate sync "$dir/guess" && is_guess rxe1 && dump_is guess &&
	rdma-isolate dev set dev rxe1 safe-util 100mbit &&
	rdma-isolate sync "$dir/guess" && is_guess rxe1
}

# It is the same after a file that was refused.
guess_is_restored()
{
	for how in sync -b; do
		how=("$how")
		status_wanted=1
		wrong "wrong:2: " "dev set dev rxe1 max-rate 100mbit" \
			"dev set dev rxe9 mode observe" && is_guess rxe1 || return
	done
	wrong "wrong:2: with max-rate auto safe-util may not be above what the port tells" \
		"dev set dev rxe1 max-rate 1tbit safe-util 900gbit" \
		"dev set dev rxe1 max-rate auto" && is_guess rxe1
}

a_rule_less()
{
	local ids

	ids=$(rdma-isolate -j rule show | jq -c 'map(.id) | [.[0], .[2]]')
	grep -v two "$dir/full" | file less
	rdma-isolate sync "$dir/less" && [ "$(rule_ids)" = "$ids" ] &&
	rules_are one three
}

a_rule_between()
{
	rdma-isolate sync "$dir/full" && rules_are one 'two "2" #' three
}

# wrong TEXT LINE...: a file of these is refused with this, and nothing changes
wrong()
{
	local text=$1 status
	shift

	printf '%s\n' "$@" | file wrong
	rdma-isolate dump >"$dir/before"
	refused "$status_wanted" "$text" "${how[@]}" "$dir/wrong"
	status=$?
	dump_is before && return $status
}

refusals()
{
	status_wanted=2
	check "${how[*]}: unknown word" wrong "wrong:2: unknown word" \
		"dev set dev rxe0 chunk-bytes 4k" "dev set dev rxe0 chunks 4k"
	check "${how[*]}: wrong value" wrong 'wrong:3: chunk-bytes "x": must be' \
		"# a comment" "rule add ulp x class latency" \
		"dev set dev rxe0 chunk-bytes x"
	check "${how[*]}: half a quotation" wrong 'wrong:1: a " is missing' \
		'rule add comm "x class latency'
	status_wanted=1
	check "${how[*]}: refused by the kernel" wrong "wrong:3: " \
		"rule add ulp x class latency" "dev set dev rxe0 chunk-bytes 16k" \
		"dev set dev rxe0 safe-util 1tbit"
	check "${how[*]}: no such device" wrong \
		"wrong:2: dev rxe9: no RDMA device" \
		"dev set dev rxe1 mode observe" "dev set dev rxe9 mode observe"
}

show_is_not_a_setting()
{
	how=(sync)
	status_wanted=2
	wrong "wrong:1: only dev set and rule add may stand here" "dev show"
}

batch()
{
	printf '%s\n' "dev set dev rxe0 chunk-bytes 16k  # larger" "" \
		"rule add ulp four class latency" "dev show dev rxe0" |
		rdma-isolate -j -b - >"$dir/out" &&
	jq -se '.[2][0].chunk_bytes == 16384' "$dir/out" >/dev/null &&
	rules_are one 'two "2" #' three four
}

# A rule that was deleted comes back in its place.
deletion_is_undone()
{
	local id

	id=$(rdma-isolate -j rule show | jq '.[0].id')
	how=(-b)
	status_wanted=1
	wrong "wrong:3: " "rule delete id $id" "rule add ulp x class latency" \
		"rule delete id 4000000000"
}

load_module && setup_rxe || skip_all "no rxe devices"
ktap_print_header
ktap_set_plan 24
guess=$(rdma-isolate -j dev show dev rxe1 | jq '.[0].max_rate')
check "a guess is auto" guess_is_auto
check "settings and rules" set_up
check "read back after a reload" read_back
check "nothing differs" nothing_differs
check "only what is named" only_settings_that_are_named
check "safe-util that was max-rate" safe_util_that_was_max_rate
check "a guess comes back" guess_comes_back
check "a guess is restored" guess_is_restored
check "a rule less" a_rule_less
check "a rule between" a_rule_between
for how in sync -b; do
	how=("$how")
	refusals
done
check "sync takes settings only" show_is_not_a_setting
check "sync of no file" refused 1 "No such file" sync "$dir/none"
check "a batch" batch
check "a deletion is undone" deletion_is_undone
ktap_finished
