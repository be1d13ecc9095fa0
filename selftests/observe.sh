#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mode observe: what a kernel ULP posts is counted exactly, for the device, for each
# flow and by size; times from post to completion are measured for each work request
# that is signaled, when that is on; and nothing is delayed or cut.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/ulp.inc"

require rdma rdma-isolate jq rperf
dir=$(mktemp -d)

SIZES="64 256 1024 4096 16384 65536 262144 1048576"
MB=$((1 << 20))

# --- what should be counted -------------------------------------------------

declare -A want

# messages tx|rx LENGTH [COUNT]: more of them
messages()
{
	local n=${3:-1} name=more i=64
	local -A names=([1024]=1k [4096]=4k [16384]=16k [65536]=64k
		[262144]=256k [1048576]=1m)

	for i in $SIZES; do
		[ "$2" -gt "$i" ] || { name=${names[$i]:-$i}; break; }
	done
	: $((want[observed_wrs] += n)) $((want[size_$name] += n)) \
		$((want[observed_$1_bytes] += n * $2)) \
		$((want[observed_bytes] += n * $2))
}

# What the ULP posts for itself: memory is registered twice on the first QP, and each
# queue is drained with an empty WRITE, which completes with an error.
pair()
{
	want=([observed_wrs]=2)
	messages tx 0 "$1"
}

want_json()
{
	local key

	for key in "${!want[@]}"; do
		[ "${want[$key]}" -eq 0 ] || echo "\"$key\":${want[$key]}"
	done | paste -sd, | sed 's/.*/{&}/'
}

# --- what was counted -------------------------------------------------------

stats()
{
	rdma-isolate -j statistic show dev "$1" | jq -c '.[0]'
}

# Of a device since $before, by name
counted()
{
	jq -nc --argjson a "$before" --argjson b "$(stats "$1")" '$b |
		with_entries(select(.key | test("^(observed|size)_")) |
			.value -= $a[.key] | select(.value != 0))'
}

gone()
{
	grep -c '"event":"flow-gone"' "$dir/events"
}

# gone_are NUMBER
gone_are()
{
	[ "$(gone)" -ge "$1" ]
}

# The sum of the flows of a device that have gone since so many had
flows_counted()
{
	grep '"event":"flow-gone"' "$dir/events" | tail -n +$(($2 + 1)) |
		jq -sc --arg dev "$1" 'map(select(.dev == $dev) |
			{observed_wrs: .wrs, observed_tx_bytes: .tx_bytes,
			 observed_rx_bytes: .rx_bytes,
			 observed_bytes: (.tx_bytes + .rx_bytes)} +
			with_entries(select(.key | startswith("size_"))) |
			to_entries[]) | group_by(.key) |
			map({key: .[0].key, value: (map(.value) | add)} |
				select(.value != 0)) | from_entries'
}

# same WHAT JSON WANTED
same()
{
	jq -ne --argjson a "$2" --argjson b "$3" '$a == $b' >/dev/null &&
		return
	ktap_print_msg "$1: $2"
	ktap_print_msg "not $3"
	return 1
}

# counts QPS CASE [KEY=VALUE]...: the case posts what $want says on rxe0, and
# nothing of its own on rxe1, on so many QPs
counts()
{
	local qps=$1 last before expect
	shift

	last=$(gone)
	expect=$(want_json)
	before=$(stats rxe0)
	ulp_run "$@" || { ulp_report; return 1; }
	same "$*" "$(counted rxe0)" "$expect" &&
	busywait 20 gone_are $((last + 2 * qps)) &&
	same "$*: flows" "$(flows_counted rxe0 "$last")" "$expect" || return
	pair "$qps"
	same "$*: the peer" "$(flows_counted rxe1 "$last")" "$(want_json)"
}

sizes()
{
	local edge len

	for edge in $SIZES; do
		for len in "$edge" $((edge + 1)); do
			pair 1
			messages tx $len 2
			counts 1 size op=write len=$len count=2 || return
		done
	done
}

# of REG_MR and LOCAL_INV no data is sent
operations()
{
	local op way

	for op in write read send writeimm sendimm; do
		way=tx
		[ $op != read ] || way=rx
		pair 1
		messages $way 5000 7
		counts 1 size op=$op len=5000 count=7 || return
	done
}

chain()
{
	local dirs=(tx tx rx tx tx rx) i len

	pair 1
	for ((i = 0; i < 24; i++)); do
		len=$((i % 3 ? 3000 : 64 + i))
		messages "${dirs[$((i % 6))]}" $len
	done
	counts 1 chain len=3000 count=24
}

# more QPs on one CQ, and both ends post
flows()
{
	local last before qps=3

	last=$(gone)
	before=$(stats rxe0)
	ulp_run onecq qps=$qps || { ulp_report; return 1; }
	busywait 20 gone_are $((last + 2 * qps)) &&
	same "device and flows" "$(counted rxe0)" \
		"$(flows_counted rxe0 "$last")"
}

# The same queue from several CPUs, and several queues
cpus()
{
	pair 1
	messages tx 3000 $((4 * 64))
	counts 1 cpus len=3000 threads=4 count=64 || return
	pair 3
	messages tx 3000 $((6 * 64))
	counts 3 cpus len=3000 threads=6 qps=3 count=64
}

# What the provider refuses is not counted: the rest has completed.
refused_posts()
{
	local last before counts

	last=$(gone)
	before=$(stats rxe0)
	ulp_run overpost len=3000 op="$1" || { ulp_report; return 1; }
	counts=$(counted rxe0)
	busywait 20 gone_are $((last + 2)) &&
	same "device and flows" "$counts" "$(flows_counted rxe0 "$last")" &&
	same "bytes" "$(jq .observed_tx_bytes <<<"$counts")" \
		"$(sed -n '1s/.*bytes //p' "$ULP/result")"
}

# --- times ------------------------------------------------------------------

histograms()
{
	rdma-isolate -j statistic histogram
}

# How many of each device and class there are since $before
times()
{
	jq -nc --argjson a "$before" --argjson b "$(histograms)" '
		[$a, $b] | map(map({key: (.dev + " " + .class),
				    value: (del(.dev, .class) | add)}) |
			from_entries) | .[0] as $a | .[1] |
		with_entries(.value -= $a[.key] | select(.value != 0))'
}

# timed COUNT CASE [KEY=VALUE]...: so many on rxe0 of class $class, and no others
timed()
{
	local count=$1 want="{}" before
	shift

	[ "$count" -eq 0 ] || want="{\"rxe0 $class\":$count}"
	before=$(histograms)
	ulp_run "$@" || { ulp_report; return 1; }
	same "$*" "$(times)" "$want"
}

off_by_default()
{
	shows '.[0].histogram == "off"' dev show dev rxe0 &&
	timed 0 size len=3000 count=5 signal=1
}

# The ULP signals every n-th message, and the last one.
totals()
{
	local cq op

	for cq in wq softirq work tasklet; do
		timed 30 size len=3000 count=30 signal=1 cq=$cq &&
		timed 6 size len=3000 count=30 signal=7 cq=$cq || return
	done
	for op in write read send writeimm sendimm; do
		timed 1 size op=$op len=3000 count=30 signal=0 &&
		timed 20 size op=$op len=100 count=20 signal=1 || return
	done
	timed 30 size len=3000 count=30 signal=1 cq=work odd=1 &&
	timed 30 size len=3000 count=30 signal=1 cq=tasklet odd=1 batch=1 &&
	timed 62 depth len=3000 signal=1 &&
	timed 1000 size len=100 count=1000 depth=1000 signal=1
}

both_polled()
{
	timed 30 size len=3000 count=30 signal=1 &&
	timed 5 size len=3000 count=30 signal=9 cq=work
}

# QPs that signal every work request do so without being asked.
all_signaled()
{
	timed 30 size len=3000 count=30 signal=0 sigall=1 &&
	timed 24 chain len=3000 count=24 signal=0 sigall=1
}

# What was posted on an error, or did not complete at all, is not measured, nor
# is it taken for what comes later.
errors()
{
	ulp_run remacc && ulp_run reset && ulp_run errpost && ulp_run destroy &&
	timed 30 size len=3000 count=30 signal=1
}

# A megabyte takes 20 ms at this rate, and longer if nobody looks.
in_microseconds()
{
	local before grown status

	before=$(histograms)
	set_rate 400mbit
	timed 1 size len=$MB count=1 signal=1
	status=$?
	set_rate none
	grown=$(jq -n --argjson a "$before" --argjson b "$(histograms)" -r '
		[$a, $b] | map(map(select(.dev == "rxe0" and
			.class == "bandwidth"))[0]) | .[0] as $a | .[1] |
		to_entries[] | select(.value != $a[.key]).key')
	case $grown in
	below_32768us|below_65536us|below_131072us|below_262144us)
		return $status
	esac
	ktap_print_msg "$grown"
	return 1
}

by_class()
{
	local id status

	id=$(rdma-isolate -j rule add ulp riso_test_ulp class "$1" |
		jq '.[0].id') || return
	class=$1
	timed 30 size len=3000 count=30 signal=1
	status=$?
	rdma-isolate rule delete id "$id"
	class=bandwidth
	return $status
}

# --- with traffic -----------------------------------------------------------

during()
{
	local pid status

	ulp_run traffic op=write len=100000 &
	pid=$!
	let_flow 1 && "$@"
	status=$?
	ulp_run stop
	wait $pid || { ulp_report; return 1; }
	return $status
}

# The flow that carries the traffic
busiest()
{
	rdma-isolate -j flow show dev rxe0 sort bytes limit 1
}

# No work request of it was held or cut.
left_alone()
{
	busiest | jq -e '.[0] | .ulp == "riso_test_ulp" and (.managed | not) and
		.tx_bytes > 1000000 and .wrs > 10 and .size_256k > 10 and
		.chunks == 0 and .splits == 0 and .queued == 0 and
		.wait_ns == 0 and .held == 0' >/dev/null
}

top_talkers()
{
	shows 'map(.tx_bytes + .rx_bytes // 0) | . == (sort | reverse) and
		.[0] > 1000000' flow show dev rxe0 sort bytes &&
	shows 'map(.wrs // 0) | . == (sort | reverse) and .[0] > 10' \
		flow show sort ops &&
	shows 'map(.wait_ns // 0) | . == (sort | reverse)' flow show sort wait &&
	shows 'length == 2 and .[0].ulp == "riso_test_ulp" and
		.[0].tx_bytes > .[1].tx_bytes' flow show sort bytes limit 2 &&
	shows 'length == 1' flow show limit 1 &&
	[ "$(rdma-isolate flow show sort ops limit 3 | wc -l)" -eq 3 ] &&
	[[ $(rdma-isolate -d flow show dev rxe0 sort bytes limit 1) == *\
"ulp riso_test_ulp "*" size_64 "*" size_256k "[1-9]* ]]
}

wrs_of()
{
	rdma-isolate -j flow show dev rxe0 qpn "$1" | jq '.[0].wrs'
}

# What was counted stays when the device is left, and nothing is added then.
counts_stay()
{
	local qpn first then

	qpn=$(busiest | jq '.[0].qpn')
	first=$(wrs_of "$qpn")
	rdma-isolate dev set dev rxe0 mode disable || return
	then=$(wrs_of "$qpn")
	[ "$then" -ge "$first" ] && let_flow 1 &&
	same "idle" "$(wrs_of "$qpn")" "$then" &&
	rdma-isolate dev set dev rxe0 mode observe && let_flow 1 &&
	[ "$(wrs_of "$qpn")" -gt "$then" ]
}

switch()
{
	local before i

	before=$(histograms)
	for i in {1..5}; do
		rdma-isolate dev set dev rxe0 histogram off &&
		rdma-isolate dev set dev rxe0 histogram on &&
		rdma-isolate dev set dev rxe0 mode disable &&
		rdma-isolate dev set dev rxe0 mode observe || return
	done
	let_flow 2
	times | jq -e '."rxe0 bandwidth" > 0' >/dev/null
}

# --- what is not counted ----------------------------------------------------

# An enabled device counts nothing for the flows that it leaves alone.
enabled()
{
	local before

	rdma-isolate rule add ulp riso_test_ulp class latency >/dev/null &&
	rdma-isolate dev set dev rxe0 mode enable && before=$(stats rxe0) &&
	timed 0 size len=3000 count=30 signal=1 &&
	same enabled "$(counted rxe0)" '{}'
}

# Programs post without the kernel: their flows are listed with nothing.
program()
{
	local last before

	last=$(gone)
	before=$(stats rxe0)
	rperf --dev rxe0 --peer rxe1 --samples 100 --interval 1000 \
		>/dev/null || return
	busywait 20 gone_are $((last + 2)) &&
	grep '"event":"flow-gone"' "$dir/events" | tail -n +$((last + 1)) |
		jq -se 'map(select(.comm == "rperf")) | length >= 2 and
			all(.reason == "user-qp" and .wrs == 0 and
			.tx_bytes == 0 and .rx_bytes == 0 and .size_64 == 0)' \
			>/dev/null
}

is_listening()
{
	rdma-isolate dev set dev rxe1 mode observe
	rdma-isolate dev set dev rxe1 mode disable
	[ -s "$dir/events" ]
}

# From the first case to here
nothing_was_touched()
{
	local dev

	for dev in rxe0 rxe1; do
		stats $dev | jq -e '[.wr_queued, .wr_split, .whole_posted,
			.chunk_posted, .wr_completed, .cqe_hidden, .cqe_reaped,
			.debt_posted, .throttle_clock, .throttle_window,
			.timer_fired] | add == 0' >/dev/null && continue
		ktap_print_msg "$(rdma-isolate statistic show dev $dev)"
		return 1
	done
}

start()
{
	rdma-isolate -j monitor >"$dir/events" &
	busywait 30 is_listening &&
	rdma-isolate dev set dev rxe0 mode observe &&
	rdma-isolate dev set dev rxe1 mode observe
}

# It may be managed then, and its CQs are looked after already.
rule()
{
	managed=$(rdma-isolate -j rule add ulp riso_test_ulp class bandwidth |
		jq '.[0].id')
}

no_rule()
{
	rdma-isolate rule delete id "$managed"
}

ulp_setup
trap 'ulp_run stop; kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
load_module || skip_all "the module does not load"
class=bandwidth
ktap_print_header
ktap_set_plan 28
check "both devices observed" start
check "size classes" sizes
check "operations" operations
check "a chain" chain
check "more flows" flows
check "more CPUs" cpus
check "more than the queue holds" refused_posts write
check "a chain of more than the queue holds" refused_posts chain
check "no times by default" off_by_default
check "times are measured when asked for" \
	rdma-isolate dev set dev rxe0 histogram on
check "one for each that is signaled" totals
check "all are signaled" all_signaled
check "errors" errors
check "in microseconds" in_microseconds
check "of class latency" by_class latency
check "of class throughput" by_class throughput
check "with a rule to manage it" rule
check "a chain of it" chain
check "its times" both_polled
check "traffic is left alone" during left_alone
check "top talkers" during top_talkers
check "counts stay" during counts_stay
check "on and off" during switch
check "without the rule" no_rule
check "programs" program
check "nothing was held, cut or hidden" nothing_was_touched
check "an enabled device" enabled
check_schema
ktap_finished
