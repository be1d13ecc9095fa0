#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Load, connect, enable, traffic, disable, unload, again and again. Each round
# proves that messages were split, that the module cannot be unloaded while the
# device is enabled, and that the disk still works when it is gone.
#
#	RISO_ROUNDS	how often (default 5)

. "$(dirname "$0")/lib.sh"

require rdma nvme rperf rdma-isolate
need_module rdma_rxe nvme-rdma nvmet-rdma
# A program that has a device open would keep its removal waiting.
trap 'kill $(jobs -p) 2>/dev/null; teardown_all' EXIT

rounds=${RISO_ROUNDS:-5}

counter()
{
	rdma-isolate -j statistic show dev rxe1 |
		grep -o "\"$1\": *[0-9]*" | grep -o '[0-9]*$'
}

read_disk()
{
	dd if="$disk" of=/dev/null bs=1M count="$1" iflag=direct status=none
}

round()
{
	local probe

	load_module || return
	disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1) || return
	rdma-isolate rule add comm rperf class latency >/dev/null &&
	rdma-isolate dev set dev rxe1 mode enable max-rate 10gbit || return
	rperf --dev rxe1 --peer rxe0 --samples 0 --seconds 1000 \
		--interval 100000 >/dev/null &
	probe=$!
	busywait 20 has_latency_flow rxe1 && read_disk 2 || return
	[ "$(counter wr_split)" -gt 0 ] || return
	! rmmod rdma_isolate 2>/dev/null || return
	if [ $(($1 % 2)) = 0 ]; then
		kill "$probe"
		wait "$probe"
	fi
	rdma-isolate dev set dev rxe1 mode disable &&
	rmmod rdma_isolate && read_disk 1 || return
	[ $(($1 % 2)) = 0 ] || kill "$probe"
	wait "$probe"
	disconnect_nvme riso0
}

rounds_pass()
{
	local i

	for ((i = 1; i <= rounds; i++)); do
		if ! round "$i"; then
			ktap_print_msg "round $i failed"
			return 1
		fi
	done
}

ktap_print_header
ktap_set_plan 2
setup_rxe && start_nvmet riso0 10.0.0.2 || skip_all "no target"
ktap_test_result "$rounds rounds" rounds_pass
pkill rperf
teardown_all
ktap_test_result "nothing left behind" test ! -e /sys/module/rdma_isolate
ktap_finished
