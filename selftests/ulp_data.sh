#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every byte of what a kernel ULP moves: sizes around the chunk's, scattered
# buffers, inline and immediate data, and what depends on the order of data.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"

MB=$((1 << 20))

# How large the chunks of READs are depends on how long the path is found to be.
cases()
{
	local c=$ULP_CHUNK op len

	for len in 0 1 $((c - 1)) $c; do
		echo "whole size op=write len=$len"
		echo "whole size op=read len=$len"
		echo "whole size op=send len=$len"
	done
	echo "split size op=write len=$((c + 1))"
	echo "split size op=write len=$((2 * c))"
	echo "any size op=read len=$((c + 1))"
	echo "whole size op=send len=$((c + 1))"
	for len in $MB $((3 * MB + 7)); do
		echo "split size op=write len=$len"
		echo "split size op=read len=$len"
		echo "whole size op=send len=$len"
	done
	echo "any size op=read len=65535"
	echo "any size op=read len=65536"
	echo "split size op=read len=65537 count=9"
	echo "split size op=read len=300000 count=9 rdatomic=1"
	for op in writeimm sendimm; do
		echo "whole size op=$op len=0"
		echo "whole size op=$op len=$((c + 1))"
		echo "whole size op=$op len=$MB"
	done
	echo "split sge op=write len=40000"
	echo "split sge op=write len=300000 cq=softirq"
	echo "split sge op=read len=100000"
	echo "split sge op=read len=300000 cq=work"
	echo "whole sge op=send len=40000"
	echo "split inline"
	echo "split inline cq=work"
	echo "split fence op=write len=500000"
	echo "split fence op=write len=500000 rdatomic=1"
	echo "split fence op=send len=500000"
	echo "split fence op=writeimm len=50000"
	echo "split regmr"
	echo "split regmr len=500000 cq=work"
	echo "split atomic"
	echo "split atomic len=500000 cq=softirq"
	echo "split announce"
	echo "split announce len=400000 cq=softirq"
}

ulp_main
