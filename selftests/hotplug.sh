#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A device is removed while a disk is read over it and work requests are held:
# the reader gets an error, nothing stays behind, and the module can go.

. "$(dirname "$0")/lib.sh"

require rdma nvme rperf rdma-isolate
need_module rdma_rxe nvme-rdma nvmet-rdma
trap 'kill $(jobs -p) 2>/dev/null; teardown_all' EXIT

is_holding()
{
	rdma-isolate dev show dev rxe1 | grep -q 'held-wrs [1-9]'
}

is_forgotten()
{
	! rdma-isolate dev show dev "$1" >/dev/null 2>&1
}

has_ended()
{
	! kill -0 "$1" 2>/dev/null
}

# One command at a time: with more, a retransmission lets rxe register memory
# twice, and fail.
read_until_error()
{
	while dd if="$1" of=/dev/null bs=1M iflag=direct status=none 2>&1; do
		:
	done
}

# remove DEV: while a disk at rxe1 is read from rxe0
remove()
{
	local dev disk probe reader removal

	setup_rxe 400mbit && start_nvmet riso0 10.0.0.2 &&
	disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1) || return
	# An error is final, else reconnecting goes on for ten minutes.
	echo 0 >"/sys/class/nvme/$(nvme_ctrl riso0)/ctrl_loss_tmo" || return
	for dev in rxe0 rxe1; do
		rdma-isolate dev set dev "$dev" mode enable \
			max-rate 400mbit || return
	done
	rperf --dev rxe1 --peer rxe0 --samples 0 --seconds 1000 \
		--interval 10000 >/dev/null 2>&1 &
	probe=$!
	read_until_error "$disk" &
	reader=$!
	busywait 60 is_holding || return
	rdma link delete "$1" &
	removal=$!
	# It waits for programs to let go of the device.
	kill "$probe"
	busywait 60 has_ended "$removal" && wait "$removal" &&
	busywait 60 is_forgotten "$1" &&
	busywait 60 has_ended "$reader" || return
	stop_all_nvmet
	teardown_rxe
}

can_unload()
{
	rmmod rdma_isolate 2>/dev/null
}

ktap_print_header
ktap_set_plan 3
load_module || skip_all "the module does not load"
rdma-isolate rule add comm rperf class latency >/dev/null
ktap_test_result "the device of the target" remove rxe1
ktap_test_result "the device of the initiator" remove rxe0
ktap_test_result "the module can go" busywait 60 can_unload
ktap_finished
