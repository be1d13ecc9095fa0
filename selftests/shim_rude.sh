#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs that do what nobody expects of them, with the verbs shim as without: the same
# output and status, and at most a line of the shim on standard error. And the shim beside
# other libraries of LD_PRELOAD, and in front of a provider that lacks functions.
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

own=$(cd "$(dirname "$0")" && pwd)
port=23000

# run_rude NAME PRELOAD COMMAND...: its output in NAME.out, what it complains of in NAME.err
run_rude()
{
	local name=$1 preload=$2
	shift 2

	LD_PRELOAD=$preload timeout -k 5 "$SHIM_SECONDS" "$@" >"$dir/$name.out" 2>"$dir/$name.err"
	echo "status $?" >>"$dir/$name.out"
}

# Only the shim may say anything, and in one line for each device at most.
said_little()
{
	! grep -v '^rdma_isolate: ' "$dir/shim.err" &&
		[ "$(wc -l <"$dir/shim.err")" -le 2 ]
}

# same COMMAND...: with $before and $behind beside the shim, and without it
same()
{
	run_rude plain "$before $behind" "$@"
	run_rude shim "$before $SHIM $behind" "$@"
	cmp -s "$dir/plain.out" "$dir/shim.out" && said_little && return
	ktap_print_msg "without: $(tr '\n' ' ' <"$dir/plain.out")"
	ktap_print_msg "with: $(cat "$dir/shim.out" "$dir/shim.err" | tr '\n' ' ')"
	return 1
}

# rude WAY [TEXT]: shim_rude ends well; the shim says this, or nothing
rude()
{
	local before="" behind=""

	same "$own/shim_rude" "$1" rxe0 rxe1 && grep -q 'status 0' "$dir/shim.out" || return
	if [ $# -eq 1 ]; then
		[ ! -s "$dir/shim.err" ]
	else
		grep -q "$2" "$dir/shim.err"
	fi && return
	ktap_print_msg "it says: $(cat "$dir/shim.err")"
	return 1
}

# The handler comes at any time, and seldom in the middle of a call: then there is a line.
rude_signals()
{
	local before="" behind=""

	same "$own/shim_rude" signal-busy rxe0 rxe1 && grep -q 'status 0' "$dir/shim.out"
}

# mangled FUNCTION WAY [TEXT]
mangled()
{
	local -x MANGLE=$1
	local before="" behind=$own/mangled.so

	same "$own/shim_rude" "$2" rxe0 rxe1 && grep -q 'status 0' "$dir/shim.out" &&
		[ "$(grep -c 'lacks a function' "$dir/shim.err")" = "${3:-0}" ]
}

# beside BEFORE BEHIND COMMAND...: other libraries in LD_PRELOAD
beside()
{
	local before=$1 behind=$2
	shift 2

	port=$((port + 1))
	same "${@/PORT/$port}" && grep -q 'status 0' "$dir/shim.out"
}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
shim_setup cmp
# No search: the files of the host are slow.
rsockets=$(ls /usr/lib/*/rsocket/librspreload.so)
jemalloc=$(ls /usr/lib/*/libjemalloc.so.2)
[ -n "$rsockets" ] || skip_all "no librspreload.so"
[ -n "$jemalloc" ] || skip_all "no libjemalloc.so.2"
copy=("$own/socket_copy" 10.0.0.2 10.0.0.1 PORT)
ping=("$own/shim_rude_plain" plain rxe0 rxe1)
ktap_print_header
ktap_set_plan 24
check "a program as they should be" waited rude plain
check "it closes all files before" waited rude close-before
check "it closes the files of others" waited rude close-others "not held: .* closed a file"
check "it closes all files" rude close-all
check "it forks in a completion handler" waited rude fork
check "verbs in a signal handler" waited rude signal-idle
check "verbs in a signal handler, in the middle of a call" waited rude_signals
check "verbs in a destructor" waited rude destructor
check "verbs in an exit handler" waited rude atexit
check "a malloc() of its own" waited rude malloc-count
check "a malloc() without memory" rude malloc-none
check "a malloc() without memory for the shim" rude malloc-shim
check "no post_send" mangled post_send open 2
check "no poll_cq" mangled poll_cq open 2
check "no req_notify_cq" mangled req_notify_cq plain 2
check "no bind_mw" waited mangled bind_mw plain
check "no create_qp_ex" waited mangled create_qp_ex plain
check "no create_cq_ex" waited mangled create_cq_ex plain
check "no alloc_parent_domain" waited mangled alloc_parent_domain plain
check "before rsockets" waited beside "" "$rsockets" "${copy[@]}"
check "behind rsockets" waited beside "$rsockets" "" "${copy[@]}"
check "before jemalloc" waited beside "" "$jemalloc" "${ping[@]}"
check "behind jemalloc" waited beside "$jemalloc" "" "${ping[@]}"
check "between jemalloc and rsockets" waited beside "$jemalloc" "$rsockets" "${copy[@]}"
ktap_finished
