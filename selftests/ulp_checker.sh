#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The other ulp_*.sh tests believe what the kernel ULP finds. This one shows
# it errors, which it must find, each by its name.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"

# finds TEXT CASE [KEY=VALUE]...
finds()
{
	local text=$1
	shift

	if ulp_run "$@"; then
		ktap_print_msg "nothing was found"
	elif grep -q "$text" "$ULP/result"; then
		ktap_test_pass "$*"
		return
	else
		ulp_report
	fi
	ktap_test_fail "$*"
}

ulp_setup
ktap_print_header
ktap_set_plan 20
ktap_test_result "no error, no complaint" ulp_run size
for cq in wq work; do
	finds "bytes differ" size mutate=byte cq=$cq
	finds "bytes differ" size mutate=guard cq=$cq
	finds "is next" size mutate=swallow cq=$cq
	finds "2 of 3 completions came" size count=1 mutate=swallow timeout=2 cq=$cq
	finds "that nothing waits for" size mutate=dup cq=$cq
	finds "ended with" size mutate=status cq=$cq
	finds "has opcode" size mutate=opcode cq=$cq
	finds "has byte_len" size op=read mutate=len cq=$cq
	finds "is next" size count=6 signal=1 mutate=order cq=$cq
done
ktap_test_result "no error, no complaint" ulp_run size
ktap_finished
