#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Chunks that have a tag and a completion together: with packets and chunks of 1 KB, room for many
# of them, and no clock, eight do. So what fails, is refused or flushed is mostly one in the midst
# of others. The cases are those of other tests, which run them alone as well.
#
# One kernel is enough: the other tests of the ULP are run on each.

. "$(dirname "$0")/lib.sh"
RISO_ULP_CHUNK=1024
. "$(dirname "$0")/ulp.inc"
. "$(dirname "$0")/layer.inc"
ULP_SAFE=$ULP_RATE
# On a machine that is slow paths are long, and on a fast one more than the rate is believed: a
# target keeps chunks small all the same.
ULP_SETTINGS=(inflight-bytes 64k target99 2us)

cases()
{
	local test

	for test in data queue error; do
		RISO_ULP_LIST=1 RISO_ULP_CHUNK=$ULP_CHUNK "$(dirname "$0")/ulp_$test.sh"
	done
}

# What completed, by the counters of the first device
count_completions()
{
	echo $(($(ulp_counter rxe0 cqe_hidden) + $(ulp_counter rxe0 wr_completed)))
}

chunks_share_completions()
{
	local chunks completions

	chunks=$(ulp_counter rxe0 chunk_completed) && completions=$(count_completions) &&
	ulp_run size op=write len=$((1 << 20)) count=8 || return
	chunks=$(($(ulp_counter rxe0 chunk_completed) - chunks))
	completions=$(($(count_completions) - completions))
	ktap_print_msg "$chunks chunks, $completions completions"
	[ "$chunks" -ge 8192 ] && [ "$chunks" -gt $((2 * completions)) ]
}

# in_parts CASE [KEY=VALUE]...: the provider takes three of a chain, and then has no room
in_parts()
{
	local status refused

	refused=$(seen refused)
	layer part 3
	ulp_run "$@"
	status=$?
	layer part 0
	refused=$(($(seen refused) - refused))
	ktap_print_msg "$*: refused $refused times"
	[ $status -eq 0 ] || ulp_report
	[ $status -eq 0 ] && [ "$refused" -gt "$REFUSED" ]
}

taken_in_part()
{
	REFUSED=100
	in_parts size op=write len=$((1 << 20)) count=4 &&
	in_parts size op=write len=$((1 << 20)) count=4 signal=0
}

# None of those that were taken last is signaled, and nothing is posted behind them.
fails_when_taken_in_part()
{
	local op

	REFUSED=0
	for op in write read; do
		in_parts remacc op=$op len=200001 &&
		in_parts remacc op=$op signal=1 len=200001 cq=softirq &&
		in_parts err op=$op after=2 cq=work odd=1 &&
		in_parts reset op=$op after=3 &&
		in_parts destroy op=$op after=1 cq=tasklet &&
		in_parts drain op=$op after=1 signal=0 count=12 len=300000 || return
	done
}

ulp_setup
load_test_module riso_test_layer || skip_all "no layer"
# rxe takes 1024 as the MTU of its paths then.
ip link set veth0 mtu 1500 && ip link set veth1 mtu 1500 || skip_all "no smaller MTU"
ulp_main_isolated chunks_share_completions taken_in_part fails_when_taken_in_part
