#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the selftests in virtual machines, side by side: one for each kernel, or two that
# share the tests where there is one kernel.
#
#   run.sh [-k KVER]... [-t TEST] [-c CPUS] [-s SECONDS]
#
# Build first ("make check" does both). The last line counts test cases over
# all machines; the status is 1 when any failed, or the kernel complained, and
# 4 when all were skipped. Everything is kept in build/results/RELEASE/, that of a
# second machine in build/results/RELEASE-2/.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
kvers=()
name=
cpus=
limit=${RISO_LIMIT:-}

while getopts k:t:c:s: opt; do
	case $opt in
	k)	kvers+=("$OPTARG") ;;
	t)	name=${OPTARG%.sh} ;;
	c)	cpus=$OPTARG ;;
	s)	limit=$OPTARG ;;
	*)	exit 2 ;;
	esac
done
[ ${#kvers[@]} -gt 0 ] || kvers=(6.12)

cd "$top/selftests"
tests=()
for t in *.sh; do
	[ "$t" != lib.sh ] || continue
	[ -z "$name" ] || [ "$t" = "$name.sh" ] || continue
	tests+=("$t")
done
if [ ${#tests[@]} -eq 0 ]; then
	echo "run.sh: no test '$name' in selftests/" >&2
	exit 2
fi

# Tests that say so run on one kernel, each in turn, unless all shall run everywhere. Where
# races are looked for, those run that post and complete; where memory and locks are, none
# that say that they test programs, or that shim_stress tests what is below: each program
# that is started takes long there.
is_planned()
{
	if [ "$kver" = kcsan ] && [ -z "$name" ]; then
		case $1 in ulp_*|user_pages.sh) return 0 ;; *) return 1 ;; esac
	fi
	if [ "$kver" = debug ] && [ -z "$name${RISO_EVERYWHERE:-}" ]; then
		! grep -Eq '^# One kernel is enough: (it tests|.*shim_stress)' "$1"
		return
	fi
	grep -q '^# One kernel is enough' "$1" && [ -z "$name${RISO_EVERYWHERE:-}" ] ||
		return 0
	turn=$(((turn + 1) % ${#kvers[@]}))
	[ "${kvers[$turn]}" = "$kver" ]
}

# run_machine KVER DIR TEST...: what it leaves is in DIR
run_machine()
{
	# Two machines with four processors each leave each of these a quarter of a real one on a
	# host that has two, and they spin for the locks of those that wait.
	local kver=$1 out=$2 own_cpus=${RISO_CPUS:-2} own_limit=4500
	shift 2

	# KCSAN looks for races, which need processors.
	[ "$kver" != kcsan ] || own_cpus=4

	# With KASAN and lockdep, processors that wait for a turn on the host's look hung. What
	# is wrong shows in fewer rounds, too.
	if [ "$kver" = debug ]; then
		own_cpus=2 own_limit=9000
		export RISO_ROUNDS=${RISO_ROUNDS:-2} RISO_COMMANDS=${RISO_COMMANDS:-2000} \
			RISO_KILLS=${RISO_KILLS:-40} RISO_ENDS=${RISO_ENDS:-60} \
			RISO_PRESSURE=${RISO_PRESSURE:-2}
	fi

	rm -rf "$out"
	mkdir -p "$out"
	printf '%s\n' "$@" >"$out/planned"
	echo "# Linux ${out##*/}: $# test files"
	"$here/boot.sh" -k "$kver" -c "${cpus:-$own_cpus}" -o "$out" \
		-s "${limit:-$own_limit}" "$here/guest.sh" "$@" || true
}

# Each line says which machine it is of, where there are several.
results=()
trap 'kill $(jobs -p) 2>/dev/null' EXIT
for kver in "${kvers[@]}"; do
	out=$top/build/results/$("$top/tools/kernel.sh" rel "$kver")
	turn=0
	first=()
	second=()
	for t in "${tests[@]}"; do
		is_planned "$t" || continue
		if [ ${#kvers[@]} -eq 1 ] && [ ${#first[@]} -gt ${#second[@]} ]; then
			second+=("$t")
		else
			first+=("$t")
		fi
	done
	results+=("$out")
	if [ ${#second[@]} -gt 0 ]; then
		results+=("$out-2")
		run_machine "$kver" "$out-2" "${second[@]}" > >(sed -u "s/^/2: /") &
	fi
	prefix=
	[ ${#second[@]} -eq 0 ] || prefix="1: "
	[ ${#kvers[@]} -eq 1 ] || prefix="$kver: "
	run_machine "$kver" "$out" "${first[@]}" > >(sed -u "s/^/$prefix/") &
done
wait
trap - EXIT
exec "$here/report.py" "${results[@]}"
