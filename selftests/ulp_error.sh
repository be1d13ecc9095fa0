#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Messages that fail half-way, and queues that end with messages waiting: the
# error is reported once, and everything behind it is flushed.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"

cases()
{
	local op cq

	for op in write read; do
		for cq in wq softirq work; do
			echo "split remacc op=$op cq=$cq len=200001"
		done
		echo "split remacc op=$op signal=1 len=200001"
		echo "split remacc op=$op cq=tasklet batch=1 odd=1 len=150000"
	done
	echo "any locprot"
	echo "any locprot op=read"
	echo "split rnr"
	echo "split rnr cq=work"
	for op in write read; do
		echo "any drain op=$op"
		echo "split drain op=$op after=3"
		echo "split drain op=$op after=3 cq=softirq"
		echo "split drain op=$op after=1 signal=0 count=12 len=300000"
		echo "any err op=$op"
		echo "split err op=$op after=2 cq=work odd=1"
		echo "split err op=$op after=2 cq=softirq"
		echo "any reset op=$op"
		echo "split reset op=$op after=3"
		echo "split reset op=$op after=3 cq=work"
		echo "any destroy op=$op"
		echo "split destroy op=$op after=3"
		echo "split destroy op=$op after=3 cq=work"
		echo "split destroy op=$op after=1 cq=tasklet"
	done
	echo "any drain signal=0"
	echo "any peergone"
	echo "split peergone after=3"
	echo "split peergone after=3 cq=work"
	echo "whole badstate"
	echo "whole badstate cq=work"
	echo "split errpost after=10"
	echo "split errpost after=10 cq=softirq qps=2"
	echo "split errpost after=10 cq=work"
	echo "split size"
}

ulp_main
