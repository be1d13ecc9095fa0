#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Posts from several CPUs at once, to one queue and to many, from completion
# handlers of each kind, and from hard interrupts.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"

cases()
{
	local cq

	for cq in wq softirq work tasklet; do
		echo "split cpus cq=$cq"
		echo "split cpus op=read qps=4 cq=$cq"
		echo "split repost cq=$cq"
		echo "split repost op=read qps=4 cq=$cq"
		echo "split hardirq cq=$cq"
	done
	echo "split cpus threads=8 cq=softirq"
	echo "split cpus threads=8 qps=8 cq=work"
	echo "split repost threads=8 cq=unbound"
	echo "split hardirq op=read"
	# as many as the queue may hold, all the time
	echo "split repost threads=8 depth=7"
	echo "whole repost threads=8 depth=7 count=300 len=2000 cq=softirq"
}

ulp_main
