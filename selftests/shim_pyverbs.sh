#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests of Debian's pyverbs: with the verbs shim the same ones pass, and the same ones are
# skipped for the same reason, as without.
#
#	RISO_CASES	"all" tests, else those of queue pairs and completion queues
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

own=$(cd "$(dirname "$0")" && pwd)
TESTS=/usr/share/doc/rdma-core/tests
modules=(test_cq_events test_cq test_qp test_qpex)
[ "${RISO_CASES:-}" != all ] || modules=()

# results NAME [COMMAND]...: what came of each test, into the file of that name. One is left
# out: test_resize_cq does not wait for the completions that it wants to be there.
results()
{
	local name=$1
	shift

	(cd "$dir" && timeout -k 5 $((10 * SHIM_SECONDS)) "$@" "$own/pyverbs_results.py" \
		"$dir" rxe0 "$gid0" "$dir/$name.all" "${modules[@]}") >"$dir/$name.said" 2>&1 &&
		grep -v test_resize_cq "$dir/$name.all" >"$dir/$name"
}

# How many tests have passed without the shim is not known to this test.
have_passed()
{
	results plain && grep -q ' ok$' "$dir/plain" && return
	ktap_print_msg "$(tail -n 3 "$dir/plain.said")"
	return 1
}

same_results()
{
	results shim rdma-isolate run -- && cmp -s "$dir/plain" "$dir/shim" && return
	diff "$dir/plain" "$dir/shim" | head -n 20 | while read -r line; do
		ktap_print_msg "$line"
	done
	ktap_print_msg "$(tail -n 3 "$dir/shim.said")"
	return 1
}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
shim_setup python3 gunzip cmp
python3 -c 'import pyverbs' 2>/dev/null && [ -e "$TESTS" ] || skip_all "no pyverbs"
cp -r "$TESTS" "$dir" && gunzip "$dir"/tests/*.gz || skip_all "no tests of pyverbs"
gid0=$(gid_of rxe0 10.0.0.1)
ktap_print_header
ktap_set_plan 2
check "tests pass without the shim" have_passed
check "$(grep -c ' ok$' "$dir/plain") pass, $(grep -c skipped "$dir/plain") are skipped with it" \
	same_results
ktap_finished
