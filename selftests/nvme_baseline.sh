#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The ground that the other tests stand on, without the module: two rxe devices
# that talk over their wire alone, and an NVMe disk at the far end.

. "$(dirname "$0")/lib.sh"

require rdma nvme
need_module rdma_rxe nvme-rdma nvmet-rdma sch_netem
trap teardown_all EXIT

tx_bytes()
{
	cat "/sys/class/net/$1/statistics/tx_bytes"
}

read_over_wire()
{
	local before

	before=$(tx_bytes veth1)
	dd if="$disk" of=/dev/null bs=1M count=8 iflag=direct status=none &&
	[ $(($(tx_bytes veth1) - before)) -gt $((8 << 20)) ]
}

write_and_read()
{
	dd if=/dev/urandom of=/dev/shm/pattern bs=1M count=4 status=none &&
	dd if=/dev/shm/pattern of="$disk" bs=256k oflag=direct status=none &&
	dd if="$disk" of=/dev/shm/back bs=512k count=8 iflag=direct \
		status=none &&
	cmp /dev/shm/pattern /dev/shm/back
}

ktap_print_header
ktap_set_plan 6
ktap_test_result "two rxe devices" setup_rxe 1gbit
ktap_test_result "a target" start_nvmet riso0 10.0.0.2
disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1)
ktap_test_result "a connected disk" test -b "$disk"
ktap_test_result "reads go over the wire" read_over_wire
ktap_test_result "what was written is read" write_and_read
teardown_all
ktap_test_result "nothing left behind" test ! -e /sys/class/infiniband/rxe0
ktap_finished
