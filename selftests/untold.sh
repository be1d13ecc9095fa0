#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Queue pairs that send what nobody has told the module of: those of programs without the
# verbs shim, and those that are posted to around the shim. They are marked, listeners and the
# doctor tell of them, and neither idle queue pairs nor those that only answer are among them.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

# More than three looks of the module
LOOKS=10
# Of this a busy host carries far more than 5 %
# shellcheck disable=SC2034 # of shim.inc
SHIM_RATE=10mbit

cleanup()
{
	# shellcheck disable=SC2046 # numbers
	kill $(jobs -p) 2>/dev/null
	teardown_all
	rm -rf "$dir"
}

# begins COMMAND...: in the background; $pid is its number
begins()
{
	"$@" >"$dir/out" 2>&1 &
	pid=$!
}

ends()
{
	kill -TERM "$pid"
	wait "$pid" && [ "$1" -eq 0 ] && return
	ktap_print_msg "$(tail -n 3 "$dir/out")"
	return 1
}

# sees FILTER: some event so far
sees()
{
	jq -se "any($1)" "$dir/events" >/dev/null 2>&1
}

# An event that is provoked until it is seen: the monitor listens.
is_listening()
{
	rdma-isolate dev set dev rxe1 max-ops 1000000
	rdma-isolate dev set dev rxe1 mode observe
	rdma-isolate dev set dev rxe1 mode enable max-ops 0
	sees '.dev == "rxe1"'
}

# is_marked REASON: the queue pair of $pid that sends, and no other
is_marked()
{
	shows "map(select(has(\"untold_rate\"))) | length == 1 and
		all(.pid == $pid and .dev == \"rxe0\" and .untold_rate > 0 and
		    .reason == \"$1\" and (.managed | not))" flow show
}

nothing_is_marked()
{
	shows 'any(has("untold_rate")) | not' flow show
}

# Nothing was sent by a queue pair that is looked at.
unknown_at_first()
{
	sleep "$LOOKS"
	shows 'map(select(has("untold_rate"))) == []' dev show && nothing_is_marked
}

idle()
{
	local status=0

	begins "$prog" rxe0 idle
	sleep "$LOOKS"
	nothing_is_marked && shows "any(.pid == $pid and .managed)" flow show || status=1
	ends "$status"
}

is_quiet()
{
	shows 'any(.dev == "rxe0" and .untold_rate == 0)' dev show
}

# without_shim: its queue pair on rxe1 answers, and sends nothing by itself
without_shim()
{
	local status=0

	begins "$writer" rxe0 rxe1
	busywait 60 is_marked user-qp >/dev/null
	is_marked user-qp &&
		shows 'any(.dev == "rxe0" and .untold_rate > 62500)' dev show &&
		busywait 10 sees ".event == \"flow\" and .pid == $pid and .untold_rate > 0" &&
		busywait 30 sees '.event == "device" and .dev == "rxe0" and
			.untold_rate > 62500' &&
		shows "any(.check == \"untold\" and .verdict == \"hint\" and
			(.found | contains(\"dlopen_write (process $pid)\")))" doctor show &&
		shows "any(.check == \"program\" and (.found | contains(\"dlopen_write\")) and
			(.found | contains(\"without the shim\")))" doctor show ||
		status=1
	ends "$status" && busywait 20 sees '.event == "device" and .dev == "rxe0" and
		.untold_rate == 0' && is_quiet
}

# Flows of class latency may post as they like.
protected()
{
	local status=0 rule

	begins "$writer" rxe0 rxe1
	busywait 60 is_marked user-qp >/dev/null
	is_marked user-qp || status=1
	rule=$(rdma-isolate -j rule add comm dlopen_write class latency | jq '.[0].id')
	busywait 20 nothing_is_marked >/dev/null
	nothing_is_marked && busywait 20 sees ".event == \"flow\" and .pid == $pid and
		.dev == \"rxe0\" and .class == \"latency\" and
		(has(\"untold_rate\") | not)" || status=1
	rdma-isolate rule delete id "$rule"
	ends "$status"
}

with_shim()
{
	local status=0

	begins rdma-isolate run -- "$writer" rxe0 rxe1
	sleep "$((2 * LOOKS))"
	nothing_is_marked && shows 'map(select(.comm == "dlopen_write")) | length == 2 and
		all(.managed)' flow show || status=1
	ends "$status" && [ "$(cat "$dir/out")" -gt 0 ]
}

tells()
{
	local status=0

	begins "$prog" rxe0 tell
	sleep "$((2 * LOOKS))"
	nothing_is_marked && shows "any(.pid == $pid and .managed)" flow show || status=1
	ends "$status"
}

around_shim()
{
	local status=0

	begins "$prog" rxe0 post
	busywait 60 is_marked posts-around >/dev/null
	is_marked posts-around &&
		sees ".event == \"flow\" and .pid == $pid and .reason == \"posts-around\"" &&
		shows "any(.check == \"untold\" and
			(.found | contains(\"posts_around (process $pid)\")))" doctor show ||
		status=1
	ends "$status"
}

dir=$(mktemp -d)
here=$(cd "$(dirname "$0")" && pwd)
prog=$here/posts_around
writer=$here/dlopen_write
trap cleanup EXIT
shim_setup
rdma-isolate -j monitor >"$dir/events" &
busywait 30 is_listening || skip_all "no events"
ktap_print_header
ktap_set_plan 8
check "not known at first" unknown_at_first
check "idle" idle
check "a program without the shim" without_shim
check "class latency" protected
check "a program with the shim" with_shim
check "a program that tells all" tells
check "a program that posts around the shim" around_shim
check_schema
ktap_finished
