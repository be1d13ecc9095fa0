#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Many queue pairs and rules: flow show lists each that stays exactly once, while
# others come and go, and says when they did.
#
# One kernel is enough: it tests the tool and what it asks for.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

QPS=1000
RULES=200

require rdma rdma-isolate jq
need_module rdma_rxe
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT

# In the background: a device that is open would not go.
make_qps()
{
	exec ./many_qps "$@" >"$dir/$1"
}

is_ready()
{
	[ "$(tail -n 1 "$dir/$1" 2>/dev/null)" = ready ]
}

many_rules()
{
	local i

	for ((i = 1; i <= RULES; i++)); do
		echo "rule add uid $((100000 + i)) class throughput weight $i"
	done >"$dir/rules"
	rdma-isolate -b "$dir/rules" >/dev/null &&
	shows "length == $RULES and (map(.weight) == [range(1; $RULES + 1)])" \
		rule show
}

# Every one, and nothing said of changes.
all_are_listed()
{
	local begin end

	begin=$(date +%s%N)
	rdma-isolate -j flow show dev rxe0 >"$dir/flows" 2>"$dir/error" || return
	end=$(date +%s%N)
	ktap_print_msg "flow show of $QPS took $(((end - begin) / 1000000)) ms"
	[ ! -s "$dir/error" ] &&
	cmp <(grep -v ready "$dir/rxe0" | sort) \
		<(jq '.[] | select(.reason == "user-qp").qpn' "$dir/flows" | sort)
}

# Those that stay, each once, in each of some dumps; and one of them was told that
# it is not of one moment.
stay_listed()
{
	local i told=0 missing twice

	for ((i = 0; i < 10; i++)); do
		if ! rdma-isolate -j flow show >"$dir/flows" 2>"$dir/error"; then
			ktap_print_msg "$(<"$dir/error")"
			return 1
		fi
		missing=$(comm -23 <(grep -v ready "$dir/rxe0" | sort) \
			<(jq '.[] | select(.dev == "rxe0").qpn' "$dir/flows" |
				sort))
		if [ -n "$missing" ]; then
			ktap_print_msg "missing:" $missing
			return 1
		fi
		twice=$(jq -c 'group_by([.dev, .qpn]) | map(select(length > 1)) |
			flatten | map([.dev, .qpn, .reason, .comm])' "$dir/flows")
		if [ "$twice" != '[]' ]; then
			ktap_print_msg "twice: $twice"
			return 1
		fi
		! grep -q "the list changed" "$dir/error" || told=$((told + 1))
	done
	ktap_print_msg "$told of $i lists had changes"
	[ "$told" -gt 0 ]
}

json_of_all()
{
	local object

	for object in dev flow group rule budget statistic doctor; do
		rdma-isolate -j "$object" show 2>/dev/null |
			jq -e . >/dev/null || return
	done
	rdma-isolate -j -p flow show 2>/dev/null | jq -e . >/dev/null
}

load_module && setup_rxe || skip_all "no rxe devices"
ktap_print_header
ktap_set_plan 6
check "$RULES rules" many_rules
make_qps rxe0 "$QPS" &
check "$QPS queue pairs" busywait 300 is_ready rxe0
check "all are listed" all_are_listed
make_qps rxe1 20 churn &
busywait 60 is_ready rxe1
check "those that stay are listed while others change" stay_listed
check "JSON of every object" json_of_all
# shellcheck disable=SC2046 # numbers
kill $(jobs -p)
wait
check "the module can go" unload_module
ktap_finished
