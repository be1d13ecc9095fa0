#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots one kernel on an instruction clock and measures in it:
#
#   run.sh [-k KVER] [-c CPUS] [-p PLAN] [-r REPEATS] [-o DIR]
#
# PLAN is "full" (the default), "baseline" (no module), "demo", "shim" (programs
# with the verbs shim, which has to be built), "agent" (what the agent makes of
# them), "hostile" (what threads that only ask do to others), "kv" (the transfers of a
# key-value cache), or any phases of phases.sh, shim.inc, agent.inc, hostile.inc and
# kv.inc, as in -p "alone beside isolated"; or "links", and parts of links.sh if not
# all of them are wanted, as in -p "links cost busy"; or "hosts", and parts of hosts.sh.
# Prints a table, and leaves result.json beside the raw figures in DIR
# (build/bench/RELEASE-PLAN), with a picture of each phase that was recorded, one of "kv",
# and one of what both laws of the agent would have made of the latencies of agent_grow.
#
# With -c the machine has that many CPUs and the clock of the host, for what one CPU cannot
# show; the host should do nothing else.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
kver=6.12
plan=full
repeats=
out=
clock=-i
clock_name="1 vCPU, 1 ns per instruction"

while getopts k:c:p:r:o: opt; do
	case $opt in
	k)	kver=$OPTARG ;;
	c)	clock="-c $OPTARG"; clock_name="$OPTARG vCPUs, clock of the host" ;;
	p)	plan=$OPTARG ;;
	r)	repeats=$OPTARG ;;
	o)	out=$OPTARG ;;
	*)	exit 2 ;;
	esac
done

rel=$("$top/tools/kernel.sh" rel "$kver")
out=${out:-$top/build/bench/$rel-${plan%% *}}
rm -rf "$out"
mkdir -p "$out"
echo "measuring on Linux $rel, some minutes, links about an hour" >&2

commit=$(git -C "$top" describe --always --dirty 2>/dev/null || echo unknown)

# measure SCRIPT SECONDS [MEMORY]: in the machine
measure()
{
	# shellcheck disable=SC2086 # -c and its number are two words
	"$top/selftests/vm/boot.sh" -k "$kver" $clock -s "$2" -m "${3:-2G}" -o "$out" \
		"$top/build/$rel/selftests/rdma_isolate/bench/$1" >&2
}

if [ "${plan%% *}" = links ]; then
	export RISO_PLAN=${plan#links}
	status=0
	# 100,000 queue pairs of a program take 4 GB.
	measure links.sh 10800 6G || status=$?
	"$here/links.py" --kernel "$rel" --clock "$clock_name" --commit "$commit" "$out"
	exit "$status"
fi

if [ "${plan%% *}" = hosts ]; then
	export RISO_PLAN=${plan#hosts}
	status=0
	measure hosts.sh 3600 || status=$?
	"$here/hosts.py" --kernel "$rel" --clock "$clock_name" --commit "$commit" "$out"
	exit "$status"
fi

export RISO_PLAN=$plan RISO_REPEATS=$repeats
status=0
measure phases.sh 3600 || status=$?
"$here/report.py" --kernel "$rel" --plan "$plan" --clock "$clock_name" \
	--commit "$commit" "$out"
if [ "$plan" = kv ] && [ "$status" -eq 0 ]; then
	"$top/tools/plot/latency.py" "$out/result.json" >"$out/kv.svg"
	echo "$out/kv.svg has the picture"
fi
for trace in "$out"/*.trace; do
	[ ! -e "$trace" ] || "$top/tools/plot/agent.py" "$out" \
		"$(basename "$trace" .trace)" >"${trace%.trace}.svg"
done
# Of a phase: MaxRate and the target are in the first line.
draw_laws()
{
	local steps=$out/$1.steps replay=$top/userspace/tests rate target

	"$top/tools/plot/steps.py" "$out" "$1" >"$steps"
	read -r _ rate target <"$steps"
	make -s -C "$replay" replay_aimd >&2
	"$replay/replay_aimd" "$rate" "$target" <"$steps" |
		"$top/tools/plot/aimd.py" "$rate" "$target" >"$out/$1-laws.svg"
}
[ ! -e "$out/agent_grow.trace" ] || draw_laws agent_grow
[ "$status" -eq 0 ] || {
	echo "the measurement did not come to its end (status $status), see $out" >&2
	exit 1
}
