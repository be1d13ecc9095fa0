#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The scripts of tools/bpftrace beside NVMe-oF writes and reads that are split:
# what each adds up from the tracepoints is what the counters say.
#
# All of them watch the same traffic: an event runs the programs of all, one
# after the other. What the kernel drops, because it comes while bpftrace reads
# a map on its CPU, all of them miss.
#
# One kernel is enough: the tracepoints are the module's own.

. "$(dirname "$0")/lib.sh"

require rdma rdma-isolate rperf nvme jq bpftrace
need_module rdma_rxe nvme-rdma nvmet-rdma null_blk sch_netem

SCRIPTS="riso_pacing riso_latency riso_waits riso_splits riso_timer riso_merge"
MEGABYTES=16

scripts=$(dirname "$(command -v rdma-isolate)")/../bpftrace
for s in $SCRIPTS; do
	[ -e "$scripts/$s.bt" ] || skip_all "no $s.bt beside rdma-isolate"
done
out=$(mktemp -d)
pids=()
declare -A tracer count

cleanup()
{
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null
	wait
	teardown_all
	rm -rf "$out"
}
trap cleanup EXIT

# --- what was counted, what was traced --------------------------------------

# counters WHEN: keeps all counters
counters()
{
	local name value

	while read -r name value; do
		count[$1,$name]=$value
	done < <(rdma-isolate -j statistic show dev rxe1 |
		 jq -r '.[0] | to_entries[] | "\(.key) \(.value)"')
}

# traced SCRIPT MAP: the sum over all keys of the device, 0 without any
traced()
{
	awk -v key="@$2[rxe1" '
		index($0, key "]:") == 1 || index($0, key ", ") == 1 {
			sub(/.*\]: */, "")
			n += $0
		}
		END { printf "%.0f\n", n }' "$out/$1"
}

# histogram SCRIPT MAP [FROM]: what is in the histograms of the device, in the
# classes that begin at FROM (16K, say) or above
histogram()
{
	awk -v key="@$2[rxe1" -v from="${3:-0}" '
		function number(s) {
			return s * 1024 ^ index("KMG", substr(s, length(s)))
		}
		/^@/ { on = index($0, key "]:") == 1 || index($0, key ", ") == 1 }
		on && /^\[.*\|/ {
			low = $1
			gsub(/[^0-9KMG]/, "", low)
			sub(/ *\|.*/, "")
			if (number(low) >= number(from))
				n += $NF
		}
		END { print n + 0 }' "$out/$1"
}

# agree SCRIPT NAME: the sum is what was counted. What came between a look at
# the counters and the script's begin or end may be in it or not, and the kernel
# drops some: up to 1 %, or two of a few.
agree()
{
	local least=$((count[after,$2] - count[before,$2]))
	local most=$((count[end,$2] - count[begin,$2])) traced

	traced=$(traced "$1" "$2")
	ktap_print_msg "$2: counted $least to $most, traced $traced"
	[ "$least" -gt 0 ] && [ "$traced" -le "$most" ] &&
	{ [ $((traced * 100)) -ge $((least * 99)) ] ||
	  [ $((traced + 2)) -ge "$least" ]; }
}

# adds_up SCRIPT NAME PART...: maps and histograms make up the sum
adds_up()
{
	local script=$1 name=$2 sum=0 part
	shift 2

	for part in "$@"; do
		sum=$((sum + $(traced "$script" "$part") +
		       $(histogram "$script" "$part")))
	done
	ktap_print_msg "$name: $(traced "$script" "$name"), of parts $sum"
	[ "$sum" -gt 0 ] && [ "$sum" -eq "$(traced "$script" "$name")" ]
}

# --- the scripts ------------------------------------------------------------

start_scripts()
{
	local s

	for s in $SCRIPTS; do
		"$scripts/$s.bt" rxe1 >"$out/$s" 2>&1 &
		tracer[$s]=$!
		pids+=("$!")
	done
}

# Before the kernel has checked the program, which takes a while
all_have_spoken()
{
	local s

	for s in $SCRIPTS; do
		grep -q "^$s.bt: starts" "$out/$s" || return
	done
}

# What BEGIN prints is seen when all is attached.
listens()
{
	grep -q "at Ctrl-C\.$" "$out/$1"
}

all_listen_or_are_dead()
{
	local s

	for s in $SCRIPTS; do
		listens "$s" || ! kill -0 "${tracer[$s]}" 2>/dev/null || return
	done
}

all_are_gone()
{
	! kill -0 "${tracer[@]}" 2>/dev/null
}

# bpftrace goes to sleep all the same if it is asked to stop just before: it is asked
# again, and then not any more.
stop_scripts()
{
	local s pid

	for s in INT INT INT INT INT INT INT INT INT INT INT KILL; do
		kill -$s "${tracer[@]}" 2>/dev/null
		busywait 10 all_are_gone && break
		for pid in "${tracer[@]}"; do
			[ ! -e "/proc/$pid" ] || ktap_print_msg "after $s:" \
				"$(tr '\0' ' ' <"/proc/$pid/cmdline")" \
				"$(cat "/proc/$pid/wchan")"
		done
	done
	wait "${tracer[@]}"
}

# --- the traffic ------------------------------------------------------------

latency_flow()
{
	rdma-isolate -j flow show dev rxe1 |
		jq -e 'any(.class == "latency" and .qp_state == "RTS")'
}

# The initiator's device too, so that there is something not to be shown.
enable()
{
	rdma-isolate rule add comm rperf class latency &&
	rdma-isolate dev set dev rxe0 mode enable &&
	rdma-isolate dev set dev rxe1 mode enable max-rate 400mbit \
		safe-util 390mbit chunk-bytes 4k || return
	rperf --dev rxe0 --peer rxe1 --samples 0 --seconds 1000 \
		--interval 20000 >/dev/null &
	pids+=($!)
	busywait 30 latency_flow >/dev/null
}

# The target sends what is read, and fetches what is written. Writes come first:
# udev looks at a disk that was written to.
traffic()
{
	dd if=/dev/zero of="$disk" bs=1M count="$MEGABYTES" oflag=direct \
		status=none &&
	dd if="$disk" of=/dev/null bs=1M count="$MEGABYTES" iflag=direct \
		status=none
}

# --- what else each script shows --------------------------------------------

# The tick that shows them comes within a second.
shows_flows()
{
	busywait 10 grep -q '^@chunks_per_s\[rxe1, [0-9]*\]: [1-9]' \
		"$out/riso_pacing" &&
	busywait 10 grep -q '^@bytes_per_s\[rxe1, [0-9]*\]: [1-9]' \
		"$out/riso_pacing"
}

# The tick that shows them comes within five seconds.
shows_times()
{
	busywait 30 grep -q '^@last_5s_us\[rxe1, 2\]: count [1-9]' "$out/riso_latency"
}

# at_least NUMBER SCRIPT MAP FROM
at_least()
{
	local n

	n=$(histogram "$2" "$3" "$4")
	ktap_print_msg "$3 from $4 on: $n"
	[ "$n" -ge "$1" ]
}

bandwidth_alone()
{
	grep -q '^@took_us\[rxe1, 2\]:' "$out/riso_latency" &&
	! grep -q '^@took_us\[rxe1, [013-9]' "$out/riso_latency"
}

# No longer than there was time, in each direction.
clock_waited()
{
	local ns

	ns=$(traced riso_waits clock_waited_ns)
	ktap_print_msg "waited $ns ns for the clock in $((stop - start)) ns"
	[ "$ns" -gt 0 ] && [ "$ns" -le $((2 * (stop - start))) ]
}

# The target is told of the last chunk of a write, and of none of a read. The kernel
# drops an event now and then: two may be missing.
hidden()
{
	local n all

	n=$(traced riso_merge chunk_hidden)
	all=$(traced riso_merge chunk_completed)
	ktap_print_msg "chunk_hidden: $n of $all, cqe_hidden:" \
		"$((count[after,cqe_hidden] - count[before,cqe_hidden]))"
	[ $((all - n + 2)) -ge $MEGABYTES ] && [ "$n" -ge $((all * 9 / 10)) ]
}

nothing_of_others()
{
	rdma-isolate -j statistic show dev rxe0 |
		jq -e '.[0].wr_completed > 0' >/dev/null &&
	! grep -q rxe0 "$out"/*
}

load_module || skip_all "the module does not load"
# They compile their programs first, which takes an emulated CPU a while.
start_scripts
setup_rxe 400mbit || skip_all "no rxe devices"
start_nvmet riso0 10.0.0.2 || skip_all "no NVMe target"
disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1) || skip_all "no NVMe disk"

ktap_print_header
ktap_set_plan 36
ktap_test_result "all speak at once" busywait 20 all_have_spoken
counters begin
# A kernel with KASAN takes minutes to check the programs.
busywait 1800 all_listen_or_are_dead
for s in $SCRIPTS; do
	ktap_test_result "$s: listens" listens "$s"
done
start=$(date +%s%N)
ktap_test_result "a device that paces" enable
counters before
ktap_test_result "writes and reads" traffic
ktap_test_result "riso_pacing: flows are shown live" shows_flows
ktap_test_result "riso_latency: times are shown live" shows_times
counters after
stop_scripts
stop=$(date +%s%N)
counters end

s=riso_pacing
ktap_test_result "$s: chunk_posted agrees" agree $s chunk_posted
ktap_test_result "$s: chunk_bytes agrees" agree $s chunk_bytes
ktap_test_result "$s: wr_queued agrees" agree $s wr_queued
ktap_test_result "$s: the waiting of all chunks" \
	adds_up $s chunk_posted queued_us
s=riso_latency
ktap_test_result "$s: wr_completed agrees" agree $s wr_completed
ktap_test_result "$s: the time of all" adds_up $s wr_completed took_us failed
ktap_test_result "$s: class bandwidth alone" bandwidth_alone
# A megabyte takes 21 ms on the wire.
ktap_test_result "$s: reads take 16 ms" at_least $MEGABYTES $s took_us 16K
s=riso_waits
ktap_test_result "$s: throttle_clock agrees" agree $s throttle_clock
ktap_test_result "$s: throttle_window agrees" agree $s throttle_window
ktap_test_result "$s: both windows" \
	adds_up $s throttle_window device_window flow_window
ktap_test_result "$s: each wait for the clock" adds_up $s throttle_clock clock_us
ktap_test_result "$s: how long the clock was waited for" clock_waited
s=riso_splits
ktap_test_result "$s: wr_split agrees" agree $s wr_split
ktap_test_result "$s: chunk_posted agrees" agree $s chunk_posted
ktap_test_result "$s: the size of all that was split" \
	adds_up $s wr_split wr_split_size
ktap_test_result "$s: the chunks of all sizes" \
	adds_up $s chunk_posted chunk_posted_size
s=riso_timer
ktap_test_result "$s: timer_fired agrees" agree $s timer_fired
ktap_test_result "$s: how late all were" adds_up $s timer_fired late_ns
s=riso_merge
ktap_test_result "$s: chunk_completed agrees" agree $s chunk_completed
ktap_test_result "$s: wr_completed agrees" agree $s wr_completed
ktap_test_result "$s: the chunks of all completions" \
	adds_up $s wr_completed chunks_merged
# A megabyte in chunks of 4 KB
ktap_test_result "$s: 256 chunks for a read" \
	at_least $MEGABYTES $s chunks_merged 256
ktap_test_result "$s: most are hidden" hidden
ktap_test_result "only the device that was asked for" nothing_of_others
for s in $SCRIPTS; do
	echo "# $s"
	grep -v '^$' "$out/$s" | tail -n 40 | sed 's/^/# /'
done
ktap_finished
