#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the virtual machine: the given tests (file names), one by one, with
# the kernel's own kselftest runner. Leaves in $RISO_OUT
#   results	a line for each test, "ok 1 selftests: ..." or "not ok ..."
#   NAME.log	what the test wrote
#   dmesg	the kernel's log, with a line where each test begins
#   leaks	what kmemleak found, where the kernel has it

export BASE_DIR=$RISO_BUILD/selftests
cd "$BASE_DIR/rdma_isolate" || exit 1
# shellcheck source=/dev/null
. "$BASE_DIR/kselftest/runner.sh"

leaks=/sys/kernel/debug/kmemleak

# keep_in_memory PROGRAM...: by their own names, with their libraries. The root file
# system is the host's, and each start of a program would read it again.
keep_in_memory()
{
	local prog file copy=/dev/shm/riso-kept

	for prog in "$@"; do
		prog=$(command -v "$prog") || continue
		echo "$prog"
		ldd "$prog" | grep -o '/[^ ]*'
	done | xargs realpath | sort -u | while read -r file; do
		mkdir -p "$copy${file%/*}" && cp "$file" "$copy$file" &&
			mount --bind "$copy$file" "$file"
	done
}

keep_in_memory bash cat gojq grep head mkdir mktemp nvme rdma rdma-isolate rm rperf sed \
	sleep tail tc timeout tr wc
# Debian's jq compiles its own library at each start, for 0.3 s here; gojq takes a tenth.
mount --bind "$(command -v gojq)" "$(realpath "$(command -v jq)")"

dmesg --follow >"$RISO_OUT/dmesg" &
logger=$!

# KASAN and lockdep, emulated, are many times slower.
kselftest_override_timeout=${RISO_TIMEOUT:-}
if [ -e "$leaks" ]; then
	: "${kselftest_override_timeout:=$((4 * $(sed -n 's/^timeout=//p' settings)))}"
	echo clear >"$leaks"
fi

n=0
for t in "$@"; do
	n=$((n + 1))
	logfile=$RISO_OUT/$t.log
	echo "riso-selftest: begin $t" >/dev/kmsg
	began=$SECONDS
	run_one rdma_isolate "$t" "$n" |
		grep -v "^#" | tee -a "$RISO_OUT/results"
	grep '^# not ok' "$logfile"
	echo "# $((SECONDS - began)) s"
done
echo "riso-selftest: end" >/dev/kmsg

if [ -e "$leaks" ]; then
	# An object must be unreferenced in a scan and 5 s old to be reported.
	echo scan >"$leaks"
	sleep 6
	echo scan >"$leaks"
	cat "$leaks" >"$RISO_OUT/leaks"
fi

until grep -q 'riso-selftest: end' "$RISO_OUT/dmesg"; do
	sleep 0.1
done
kill "$logger"
! grep -q '^not ok' "$RISO_OUT/results"
