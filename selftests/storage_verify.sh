#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Data integrity with real storage: fio writes and reads back many requests
# with checksums through NVMe over RDMA while messages are cut both ways (the
# target WRITEs what is read and READs what is written).
#
#	RISO_REQUESTS	how many (default 15000; 5000 on a kernel with KASAN)

. "$(dirname "$0")/lib.sh"

require rdma nvme fio jq rperf rdma-isolate
need_module rdma_rxe nvme-rdma nvmet-rdma
# A program that has a device open would keep its removal waiting.
trap 'kill $(jobs -p) 2>/dev/null; teardown_all' EXIT

if [ -n "${RISO_REQUESTS:-}" ]; then
	requests=$RISO_REQUESTS
elif is_debug_kernel; then
	requests=5000
else
	requests=15000
fi
out=${RISO_OUT:-/tmp}/storage_verify.json

counter()
{
	rdma-isolate -j statistic show dev rxe1 |
		jq ".[0].$1 // .[0].counters.$1"
}

verify()
{
	fio --name=verify --filename="$disk" --rw=randrw --rwmixread=40 \
		--bssplit=8k/96:64k/3:1m/1 --size=32m --iodepth=16 \
		--ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 \
		--verify_backlog=1024 --loops=$((requests / 5000 + 1)) \
		--output-format=json --output="$out"
}

ktap_print_header
ktap_set_plan 4
load_module && setup_rxe && start_nvmet riso0 10.0.0.2 64 ||
	skip_all "no target"
rdma-isolate rule add comm rperf class latency >/dev/null
rdma-isolate dev set dev rxe1 mode enable max-rate 400mbit chunk-bytes 4k \
	target99 100us
disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1 4420 2)
rperf --dev rxe1 --peer rxe0 --samples 0 --seconds 100000 \
	--interval 100000 >/dev/null &
ktap_test_result "a latency flow beside" busywait 20 has_latency_flow rxe1
ktap_test_result "every checksum is right" verify
did=$(jq '.jobs[0] | .read.total_ios + .write.total_ios' "$out")
ktap_print_msg "$did requests, $(counter chunk_bytes) bytes in chunks," \
	"$(counter whole_bytes) whole"
ktap_test_result "$requests requests" test "$did" -ge "$requests"
ktap_test_result "nine tenths of the bytes in chunks" \
	test "$(counter chunk_bytes)" -ge $((9 * $(counter whole_bytes)))
pkill rperf
ktap_finished
