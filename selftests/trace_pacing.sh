#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/bpftrace/riso_pacing.bt beside NVMe-oF reads that are split: what it
# adds up from the tracepoints is what the counters say.

. "$(dirname "$0")/lib.sh"

require rdma rdma-isolate rperf nvme jq bpftrace
need_module rdma_rxe nvme-rdma nvmet-rdma null_blk sch_netem

script=$(dirname "$(command -v rdma-isolate)")/../bpftrace/riso_pacing.bt
[ -e "$script" ] || skip_all "no riso_pacing.bt beside rdma-isolate"
out=$(mktemp)
pids=()

cleanup()
{
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null
	wait
	teardown_all
	rm -f "$out"
}
trap cleanup EXIT

# counters WHEN: keeps the counters that the script adds up, too
counters()
{
	local name value

	while read -r name value; do
		count[$1,$name]=$value
	done < <(rdma-isolate -j statistic show dev rxe1 | jq -r '.[0] |
		"chunk_posted \(.chunk_posted)", "chunk_bytes \(.chunk_bytes)",
		"wr_queued \(.wr_queued)"')
}

# traced NAME: the sum of the script, 0 when it has none
traced()
{
	awk -v key="@$1[rxe1]:" '$1 == key { n = $2 } END { print n + 0 }' \
		"$out"
}

# agree NAME: the sum is what was counted. What came between a look at the
# counters and the script's begin or end may be in it or not, and the kernel
# drops what comes while a CPU runs another BPF program: up to 1 %, or two of
# a few.
agree()
{
	local least=$((count[after,$1] - count[before,$1]))
	local most=$((count[end,$1] - count[begin,$1])) traced

	traced=$(traced "$1")
	ktap_print_msg "$1: counted $least to $most, traced $traced"
	[ "$least" -gt 0 ] && [ "$traced" -le "$most" ] &&
	{ [ $((traced * 100)) -ge $((least * 99)) ] ||
	  [ $((traced + 2)) -ge "$least" ]; }
}

latency_flow()
{
	rdma-isolate -j flow show dev rxe1 |
		jq -e 'any(.class == "latency" and .qp_state == "RTS")'
}

enable()
{
	rdma-isolate rule add dev rxe1 comm rperf class latency &&
	rdma-isolate dev set dev rxe1 mode enable max-rate 400mbit \
		safe-util 390mbit chunk 4k || return
	rperf --dev rxe0 --peer rxe1 --samples 0 --seconds 1000 \
		--interval 20000 >/dev/null &
	pids+=($!)
	busywait 30 latency_flow >/dev/null
}

# A kernel with KASAN takes minutes to check the program.
script_listens()
{
	busywait 900 is_listening_or_dead && is_listening
}

is_listening()
{
	grep -q "^Chunks and bytes" "$out"
}

is_listening_or_dead()
{
	is_listening || ! kill -0 "$tracer" 2>/dev/null
}

stop_script()
{
	kill -INT "$tracer"
	wait "$tracer"
	busywait 10 grep -q '^@chunk_posted' "$out"
}

# The tick that shows them comes within a second.
shows_flows()
{
	busywait 10 grep -q '^@chunks_per_s\[rxe1, [0-9]*\]: [1-9]' "$out" &&
	busywait 10 grep -q '^@bytes_per_s\[rxe1, [0-9]*\]: [1-9]' "$out"
}

histogram()
{
	grep -q '^@queued_us\[rxe1, [0-9]*\]:' "$out" && grep -q '@@' "$out"
}

nothing_of_others()
{
	! grep -q 'rxe0' "$out"
}

load_module || skip_all "the module does not load"
# It compiles its program first, which takes an emulated CPU a while.
"$script" rxe1 >"$out" 2>&1 &
tracer=$!
pids+=("$tracer")
setup_rxe 400mbit || skip_all "no rxe devices"
start_nvmet riso0 10.0.0.2 || skip_all "no NVMe target"
disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1) || skip_all "no NVMe disk"

ktap_print_header
ktap_set_plan 9
declare -A count
counters begin
ktap_test_result "the script listens" script_listens
ktap_test_result "a device that paces" enable
counters before
ktap_test_result "reads" dd if="$disk" of=/dev/null bs=1M count=16 \
	iflag=direct status=none
ktap_test_result "flows are shown live" shows_flows
counters after
stop_script
counters end
ktap_test_result "chunk_posted agrees" agree chunk_posted
ktap_test_result "chunk_bytes agrees" agree chunk_bytes
ktap_test_result "wr_queued agrees" agree wr_queued
ktap_test_result "a histogram of the waiting" histogram
ktap_test_result "only the device that was asked for" nothing_of_others
grep -v '^$' "$out" | tail -n 40 | sed 's/^/# /'
ktap_finished
