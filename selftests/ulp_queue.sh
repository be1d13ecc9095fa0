#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every completion that a kernel ULP waits for, exactly once and in order:
# chains, unsignaled requests, full queues, CQs with no room to spare, and
# whatever a ULP may use as wr_id.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"

MB=$((1 << 20))

cases()
{
	local cq

	for cq in wq unbound softirq work tasklet; do
		echo "split chain cq=$cq"
		echo "split size count=30 signal=1 cq=$cq"
	done
	echo "split chain len=300000 signal=0"
	echo "split chain len=300000 signal=5 cq=softirq"
	echo "split chain signal=0 cq=tasklet"
	echo "split chain signal=5 cq=work odd=1"
	echo "split chain cq=work batch=1"
	echo "split size count=30 signal=0"
	echo "split size count=30 signal=7"
	echo "split size op=read count=30 signal=0 cq=work"
	echo "split size count=30 signal=7 cq=work odd=1"
	echo "split size count=30 signal=1 cq=work odd=1 batch=1"
	echo "split size count=30 signal=1 cq=tasklet odd=1 batch=3"
	echo "split size count=3 depth=3"
	echo "split size count=1 depth=2 len=$MB"
	echo "split exactcq"
	echo "split exactcq op=read cq=work"
	echo "split exactcq len=300000 cq=tasklet"
	echo "split lazy"
	echo "split lazy op=read"
	echo "split depth len=$MB"
	echo "split depth len=$MB op=read cq=work"
	echo "split depth len=30000 depth=254 cq=softirq"
	echo "split overpost"
	echo "whole overpost op=chain"
	echo "split overpost len=500000 cq=work"
	echo "split onecq"
	echo "split onecq cq=work"
	echo "split onecq cq=work batch=1"
	echo "split onecq op=read cq=softirq qps=4"
	echo "split srq"
	echo "split srq cq=work"
}

ulp_main
