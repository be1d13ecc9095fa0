#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# shim_stress with the verbs shim and without: what a program may do with verbs, in
# several threads, and what happens to programs, while their work requests wait.
# RISO_SEED is where its random numbers begin, RISO_KILLS how many programs are killed.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

PROG=$(cd "$(dirname "$0")" && pwd)/shim_stress
# It ends by itself where nothing completes.
SHIM_SECONDS=600
KILLS=${RISO_KILLS:-200}
seed=${RISO_SEED:-$((SRANDOM % 100000))}

# stress SHIM MODE [NUMBER]: with the next seed
stress()
{
	local shim=$1 mode=$2 line
	shift 2

	seed=$((seed + 1))
	shim_run "$shim" "$PROG" "$mode" "$seed" "$@" >"$dir/out"
	set -- $?
	tail -n 12 "$dir/out" | while read -r line; do
		ktap_print_msg "${line#\# }"
	done
	[ "$1" -eq 0 ] && return
	ktap_print_msg "$mode, seed $seed: status $1"
	return 1
}

# bystander SHIM NAME: a program that runs on, until it is told to end
bystander()
{
	LD_PRELOAD=$1 "$dir/$2" --dev rxe0 --peer rxe1 --load write --verify \
		--size 64k --ready "$dir/$2.ready" >"$dir/$2.out" 2>&1 &
	bystanders+=($!)
	busywait 60 test -e "$dir/$2.ready"
}

ended_well()
{
	local pid status=0

	for pid in "${bystanders[@]}"; do
		kill -TERM "$pid" && wait "$pid" || status=1
	done
	[ "$status" -eq 0 ] && return
	ktap_print_msg "$(cat "$dir/plain.out" "$dir/shimmed.out")"
	return 1
}

nothing_is_left()
{
	shows 'all(.comm != "shim_stress")' flow show &&
	shows 'all(.comm != "shim_stress")' group show &&
	shows 'all(.held_wrs == 0 or .managed_flows > 0)' dev show
}

balanced()
{
	busywait 20 nothing_is_left >/dev/null
	nothing_is_left
}

loads()
{
	shim_run "$SHIM" "$dir/shimmed" --dev rxe1 --peer rxe0 --load read --verify --seconds 1 \
		>"$dir/out" && return
	ktap_print_msg "$(tail -n 3 "$dir/out")"
	return 1
}

# For a program that does not read the length that its receives tell
cuts_imm()
{
	local rule status=0

	rule=$(rdma-isolate -j rule add comm shim_stress class bandwidth cut-imm on |
		jq '.[0].id') || return
	waited stress "$SHIM" cut-imm 4 || status=1
	rdma-isolate rule delete id "$rule"
	return "$status"
}

dir=$(mktemp -d)
trap shim_cleanup EXIT
shim_setup
for name in plain shimmed; do
	ln -s "$(command -v rperf)" "$dir/$name"
done
ktap_print_header
ktap_set_plan 11
check "a mix, without the shim" stress "" mix 2
check "a mix" waited stress "$SHIM" mix 4
check "a mix, another one" waited stress "$SHIM" mix 4
check "a mix, WRITEs with an immediate are cut" cuts_imm
check "errors, without the shim" stress "" error
check "errors" waited stress "$SHIM" error
check "fork and exec" waited stress "$SHIM" fork 4
bystanders=()
bystander "" plain
bystander "$SHIM" shimmed
check "$KILLS that are killed" waited stress "$SHIM" kill "$KILLS"
check "nothing of them is left" balanced
check "others did not notice" ended_well
check "and there is room for more" waited loads
ktap_finished
