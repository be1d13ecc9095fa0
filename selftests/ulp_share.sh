#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Chunks that have a tag and a completion together: with packets and chunks of 1 KB, room for many
# of them, and no clock, eight do. So what fails, is refused or flushed is mostly one in the midst of
# others. The cases are those of other tests, which run them alone as well.
#
# One kernel is enough: the other tests of the ULP are run on each.

. "$(dirname "$0")/lib.sh"
RISO_ULP_CHUNK=1024
. "$(dirname "$0")/ulp.inc"
ULP_SAFE=$ULP_RATE
# On a machine that is slow paths are long: a target keeps chunks small all the same.
ULP_SETTINGS=(inflight-bytes 64k target99 80us)

cases()
{
	local test

	for test in data queue error; do
		RISO_ULP_LIST=1 "$(dirname "$0")/ulp_$test.sh"
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

ulp_setup
# rxe takes 1024 as the MTU of its paths then.
ip link set veth0 mtu 1500 && ip link set veth1 mtu 1500 || skip_all "no smaller MTU"
ulp_main_isolated chunks_share_completions
