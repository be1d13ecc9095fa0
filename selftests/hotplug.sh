#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Devices that are removed under traffic, enabled and with messages held: all
# ends in posting or flushing, nothing stays behind, and the module can go.

. "$(dirname "$0")/lib.sh"

require rdma nvme fio rperf rdma-isolate
need_module rdma_rxe nvme-rdma nvmet-rdma
# A program that has a device open would keep the removal waiting.
trap 'kill $(jobs -p) 2>/dev/null; teardown_all' EXIT

counter()
{
	rdma-isolate -j statistic show dev rxe1 |
		grep -o "\"$1\": *[0-9]*" | grep -o '[0-9]*$'
}

is_splitting()
{
	[ "$(counter wr_split)" -gt 0 ]
}

is_forgotten()
{
	! rdma-isolate dev show dev "$1" >/dev/null 2>&1
}

# remove DEV: while a disk at rxe1 is read
remove()
{
	local disk fio probe del

	setup_rxe 400mbit && start_nvmet riso0 10.0.0.2 || return
	disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1) || return
	rdma-isolate dev set dev rxe0 mode enable max-rate 400mbit &&
	rdma-isolate dev set dev rxe1 mode enable max-rate 400mbit || return
	rperf --dev rxe1 --peer rxe0 --samples 0 --seconds 1000 \
		--interval 10000 >/dev/null 2>&1 &
	probe=$!
	fio --name=bulk --filename="$disk" --rw=read --bs=1M --iodepth=8 \
		--ioengine=libaio --direct=1 --time_based --runtime=1d \
		--thread >/dev/null 2>&1 &
	fio=$!
	busywait 30 is_splitting || return
	# The removal waits for user-space programs to let go of the device.
	rdma link delete "$1" &
	del=$!
	kill "$probe"
	wait "$probe"
	wait "$del" || return
	busywait 60 is_forgotten "$1" || return
	disconnect_nvme riso0
	wait "$fio"
	stop_all_nvmet
	teardown_rxe
}

can_unload()
{
	rmmod rdma_isolate 2>/dev/null
}

ktap_print_header
ktap_set_plan 3
load_module || skip_all "cannot load the module"
rdma-isolate rule add comm rperf class latency >/dev/null
ktap_test_result "the device that sends the bulk" remove rxe1
ktap_test_result "the device that it goes to" remove rxe0
ktap_test_result "the module can go" busywait 60 can_unload
ktap_finished
