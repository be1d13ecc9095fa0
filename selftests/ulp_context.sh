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
}

ulp_main
